//! [`AnswerField`]: the names of the header fields in crawlgate's own responses, each as spelled in
//! HTTP/1.1 and as a name of the crate `http`. Date and Connection are missing, because they are
//! added when a response is sent.

use crate::heads::X_ROBOTS_TAG;
use http::{HeaderName, header};

/// A header field of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AnswerField {
    Allow,
    CacheControl,
    ContentLength,
    ContentSignal,
    ContentType,
    ContentUsage,
    /// Tells a proxy that asks for a decision that the request may pass.
    Decision,
    ETag,
    LastModified,
    Link,
    Location,
    /// The id of the request, by which logs name it.
    RequestId,
    RetryAfter,
    Server,
    /// Tells a proxy that asks for a decision that crawlgate refuses, and with which status.
    Status,
    StrictTransportSecurity,
    TagsHtml,
    TagsImage,
    TagsOther,
    TagsPdf,
    TagsVideo,
    TdmPolicy,
    TdmReservation,
    WwwAuthenticate,
    XRobotsTag,
}

/// The names of each field: as HTTP/1.1 spells it, and for `http`. In the order of [`AnswerField`].
static NAMES: [(&str, HeaderName); AnswerField::XRobotsTag as usize + 1] = [
    ("Allow", header::ALLOW),
    ("Cache-Control", header::CACHE_CONTROL),
    ("Content-Length", header::CONTENT_LENGTH),
    ("Content-Signal", HeaderName::from_static("content-signal")),
    ("Content-Type", header::CONTENT_TYPE),
    ("Content-Usage", HeaderName::from_static("content-usage")),
    (
        "Crawlgate-Decision",
        HeaderName::from_static("crawlgate-decision"),
    ),
    ("ETag", header::ETAG),
    ("Last-Modified", header::LAST_MODIFIED),
    ("Link", header::LINK),
    ("Location", header::LOCATION),
    ("X-Request-Id", HeaderName::from_static("x-request-id")),
    ("Retry-After", header::RETRY_AFTER),
    ("Server", header::SERVER),
    (
        "Crawlgate-Status",
        HeaderName::from_static("crawlgate-status"),
    ),
    (
        "Strict-Transport-Security",
        header::STRICT_TRANSPORT_SECURITY,
    ),
    (
        "Crawlgate-Tags-Html",
        HeaderName::from_static("crawlgate-tags-html"),
    ),
    (
        "Crawlgate-Tags-Image",
        HeaderName::from_static("crawlgate-tags-image"),
    ),
    (
        "Crawlgate-Tags-Other",
        HeaderName::from_static("crawlgate-tags-other"),
    ),
    (
        "Crawlgate-Tags-Pdf",
        HeaderName::from_static("crawlgate-tags-pdf"),
    ),
    (
        "Crawlgate-Tags-Video",
        HeaderName::from_static("crawlgate-tags-video"),
    ),
    ("tdm-policy", HeaderName::from_static("tdm-policy")),
    (
        "tdm-reservation",
        HeaderName::from_static("tdm-reservation"),
    ),
    ("WWW-Authenticate", header::WWW_AUTHENTICATE),
    ("X-Robots-Tag", X_ROBOTS_TAG),
];

impl AnswerField {
    /// The name of the field as HTTP/1.1 spells it.
    pub fn http1_name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// The name of the field for `http`.
    pub fn name(self) -> HeaderName {
        NAMES[self as usize].1.clone()
    }

    /// The field with this name, if it is one of the signals that a policy can send.
    pub(super) fn from_signal_name(name: &str) -> Option<AnswerField> {
        let signals = [
            AnswerField::ContentSignal,
            AnswerField::ContentUsage,
            AnswerField::Link,
            AnswerField::TdmReservation,
            AnswerField::TdmPolicy,
        ];
        signals.into_iter().find(|field| field.http1_name() == name)
    }
}
