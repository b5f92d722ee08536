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
    ContentType,
    ETag,
    LastModified,
    Link,
    Location,
    RetryAfter,
    Server,
    StrictTransportSecurity,
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
            Field::ContentType => "Content-Type",
            Field::ETag => "ETag",
            Field::LastModified => "Last-Modified",
            Field::Link => "Link",
            Field::Location => "Location",
            Field::RetryAfter => "Retry-After",
            Field::Server => "Server",
            Field::StrictTransportSecurity => "Strict-Transport-Security",
            Field::WwwAuthenticate => "WWW-Authenticate",
            Field::XRobotsTag => "X-Robots-Tag",
        }
    }

    /// Its name for `http`.
    pub fn name(self) -> HeaderName {
        match self {
            Field::Allow => header::ALLOW,
            Field::CacheControl => header::CACHE_CONTROL,
            Field::ContentLength => header::CONTENT_LENGTH,
            Field::ContentType => header::CONTENT_TYPE,
            Field::ETag => header::ETAG,
            Field::LastModified => header::LAST_MODIFIED,
            Field::Link => header::LINK,
            Field::Location => header::LOCATION,
            Field::RetryAfter => header::RETRY_AFTER,
            Field::Server => header::SERVER,
            Field::StrictTransportSecurity => header::STRICT_TRANSPORT_SECURITY,
            Field::WwwAuthenticate => header::WWW_AUTHENTICATE,
            Field::XRobotsTag => X_ROBOTS_TAG,
        }
    }
}
