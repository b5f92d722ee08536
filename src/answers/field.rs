//! The fields that answers have.

use crate::heads::X_ROBOTS_TAG;
use http::{HeaderName, header};

/// A field of an answer. A closed list: the spelling on the wire and the name for lookups are both at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Field {
    Allow,
    CacheControl,
    ContentLength,
    ContentSignal,
    ContentType,
    ContentUsage,
    /// What a proxy that asked is told to do.
    Decision,
    ETag,
    LastModified,
    Link,
    Location,
    /// The id of the request, by which logs name it.
    RequestId,
    RetryAfter,
    Server,
    /// The status of an answer that a proxy fetches in a second step.
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

impl Field {
    /// Its name as it is written in HTTP/1.1.
    pub const fn written(self) -> &'static str {
        match self {
            Field::Allow => "Allow",
            Field::CacheControl => "Cache-Control",
            Field::ContentLength => "Content-Length",
            Field::ContentSignal => "Content-Signal",
            Field::ContentType => "Content-Type",
            Field::ContentUsage => "Content-Usage",
            Field::Decision => "Crawlgate-Decision",
            Field::ETag => "ETag",
            Field::LastModified => "Last-Modified",
            Field::Link => "Link",
            Field::Location => "Location",
            Field::RequestId => "X-Request-Id",
            Field::RetryAfter => "Retry-After",
            Field::Server => "Server",
            Field::Status => "Crawlgate-Status",
            Field::StrictTransportSecurity => "Strict-Transport-Security",
            Field::TagsHtml => "Crawlgate-Tags-Html",
            Field::TagsImage => "Crawlgate-Tags-Image",
            Field::TagsOther => "Crawlgate-Tags-Other",
            Field::TagsPdf => "Crawlgate-Tags-Pdf",
            Field::TagsVideo => "Crawlgate-Tags-Video",
            Field::TdmPolicy => "tdm-policy",
            Field::TdmReservation => "tdm-reservation",
            Field::WwwAuthenticate => "WWW-Authenticate",
            Field::XRobotsTag => "X-Robots-Tag",
        }
    }

    /// The field of a signal, by the name that its draft spells.
    pub(super) fn of_signal(name: &str) -> Option<Field> {
        let signals = [Field::ContentSignal, Field::ContentUsage, Field::Link, Field::TdmReservation, Field::TdmPolicy];
        signals.into_iter().find(|field| field.written() == name)
    }

    /// Its name for `http`.
    pub fn name(self) -> HeaderName {
        match self {
            Field::Allow => header::ALLOW,
            Field::CacheControl => header::CACHE_CONTROL,
            Field::ContentLength => header::CONTENT_LENGTH,
            Field::ContentSignal => HeaderName::from_static("content-signal"),
            Field::ContentType => header::CONTENT_TYPE,
            Field::ContentUsage => HeaderName::from_static("content-usage"),
            Field::Decision => HeaderName::from_static("crawlgate-decision"),
            Field::ETag => header::ETAG,
            Field::LastModified => header::LAST_MODIFIED,
            Field::Link => header::LINK,
            Field::Location => header::LOCATION,
            Field::RequestId => HeaderName::from_static("x-request-id"),
            Field::RetryAfter => header::RETRY_AFTER,
            Field::Server => header::SERVER,
            Field::Status => HeaderName::from_static("crawlgate-status"),
            Field::StrictTransportSecurity => header::STRICT_TRANSPORT_SECURITY,
            Field::TagsHtml => HeaderName::from_static("crawlgate-tags-html"),
            Field::TagsImage => HeaderName::from_static("crawlgate-tags-image"),
            Field::TagsOther => HeaderName::from_static("crawlgate-tags-other"),
            Field::TagsPdf => HeaderName::from_static("crawlgate-tags-pdf"),
            Field::TagsVideo => HeaderName::from_static("crawlgate-tags-video"),
            Field::TdmPolicy => HeaderName::from_static("tdm-policy"),
            Field::TdmReservation => HeaderName::from_static("tdm-reservation"),
            Field::WwwAuthenticate => header::WWW_AUTHENTICATE,
            Field::XRobotsTag => X_ROBOTS_TAG,
        }
    }
}
