//! [`HeadError`]: why crawlgate rejects the head of a request (malformed, too large, too late).
//! [`HeadError::name`] is its name in metrics and logs. [`HeadError::to_rejection`] gives the
//! [`Rejection`], which determines the response.

use crate::answers::Rejection;
use strum::IntoStaticStr;

/// What is wrong with the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)]
pub enum HeadError {
    /// A line ends without a carriage return.
    BareLineFeed,
    /// A field continues in the next line (RFC 9112 section 5.2).
    FoldedLine,
    RequestLine,
    Version,
    /// A space before a colon, a byte that no field may have, a line without a colon.
    Field,
    TooManyFields,
    HeadersTooLarge,
    TargetTooLong,
    /// HTTP/1.1 without Host.
    NoHost,
    /// Several Host fields, or one that is no host.
    BadHost,
    /// Several User-Agent fields: crawlgate cannot know which of them the origin reads.
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
    /// It came through crawlgate several times already.
    Loop,
}

named!(HeadError);

impl HeadError {
    /// The kind of answer to it; `Malformed` for most errors.
    pub fn to_rejection(self) -> Rejection {
        use HeadError::*;

        match self {
            NoHost => Rejection::NoHost,
            Method => Rejection::Method,
            TargetTooLong => Rejection::TargetTooLong,
            TooManyFields | HeadersTooLarge => Rejection::HeadersTooLarge,
            Expectation => Rejection::Expectation,
            HeadTimeout => Rejection::Timeout,
            BodyTooLarge => Rejection::BodyTooLarge,
            Loop => Rejection::Loop,
            _ => Rejection::Malformed,
        }
    }
}
