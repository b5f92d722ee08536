//! [`Mistake`]: why crawlgate refuses the head of a request (malformed, too large, too late).
//! [`Mistake::name`] is its name in metrics and logs. [`Mistake::rejection`] is the [`Rejection`]
//! that determines the response.

use crate::answers::Rejection;
use strum::IntoStaticStr;

/// What is wrong with the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)]
pub enum Mistake {
    /// A line ends without a carriage return.
    BareLineFeed,
    /// A field goes on in the next line (RFC 9112 section 5.2).
    FoldedLine,
    RequestLine,
    Version,
    /// A space before a colon, an octet that no field may have, a line without a colon.
    Field,
    TooManyFields,
    HeadersTooLarge,
    TargetTooLong,
    /// HTTP/1.1 without Host.
    NoHost,
    /// Several Host fields, or one that is no host.
    BadHost,
    /// Several User-Agent fields: which of them the origin takes, crawlgate cannot know.
    UserAgent,
    /// The target names another host than Host.
    OtherHost,
    /// A target that is neither a path nor a URL of this server.
    Target,
    /// Several lengths, or one that is no number.
    ContentLength,
    /// More than `limits.body`.
    BodyTooLarge,
    /// A coding other than chunked alone, or one beside a length, or one over HTTP/1.0.
    TransferEncoding,
    /// TRACE and CONNECT.
    Method,
    /// An expectation other than `100-continue`.
    Expectation,
    /// The head did not arrive in time.
    HeadTimeout,
}

impl Mistake {
    /// Its word in metrics and logs.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of answer to it. Mistakes without one of their own are `Malformed`.
    pub fn rejection(self) -> Rejection {
        match self {
            Mistake::NoHost => Rejection::NoHost,
            Mistake::Method => Rejection::Method,
            Mistake::TargetTooLong => Rejection::TargetTooLong,
            Mistake::TooManyFields | Mistake::HeadersTooLarge => Rejection::HeadersTooLarge,
            Mistake::Expectation => Rejection::Expectation,
            Mistake::HeadTimeout => Rejection::Timeout,
            Mistake::BodyTooLarge => Rejection::BodyTooLarge,
            _ => Rejection::Malformed,
        }
    }
}
