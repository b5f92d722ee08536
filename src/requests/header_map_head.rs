//! [`HeaderMapHead`]: a request head whose fields are in a `HeaderMap`, for HTTP/2, the middleware
//! (crawlgate inside an application) and the decision service (for other proxies).
//! [`HeaderMapHead::new`] finds all fields that judging needs in one pass, because looking up each
//! field by its name would take longer than judging the request.

use super::head::RequestHead;
use super::head_check::{HeadParts, check_head};
use super::head_error::HeadError;
use crate::heads::{HeadFields, is_host};
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::borrow::Cow;

/// A head with its fields in a map.
pub struct HeaderMapHead<'a> {
    fields: HeadFields<'a>,
    /// The method of the message itself. In the decision service it is that of the query.
    message_method: &'a Method,
    authority: Option<&'a str>,
    headers: &'a HeaderMap,
    has_several_hosts: bool,
    has_other_scheme: bool,
    /// Whether another server has checked everything but the host.
    is_prechecked: bool,
}

impl<'a> HeaderMapHead<'a> {
    /// A head of HTTP/2; [`HeaderMapHead::prechecked`] sets another version. `target` is its
    /// path with its query, `authority` is its `:authority`. The host is that of the first Host
    /// field, else the authority.
    pub fn new(
        method: &'a Method,
        target: &'a [u8],
        authority: Option<&'a str>,
        headers: &'a HeaderMap,
    ) -> HeaderMapHead<'a> {
        let mut fields = HeadFields {
            method: method.as_str().as_bytes(),
            target,
            http: "2",
            ..HeadFields::default()
        };
        let mut host = None;
        let mut has_several_hosts = false;
        for (name, value) in headers {
            match name.as_str() {
                "host" if host.is_some() => has_several_hosts = true,
                "host" => host = Some(value.as_bytes().trim_ascii()),
                name => fields.record_line(name, value.as_bytes()),
            }
        }
        fields.host = host.unwrap_or_else(|| authority.unwrap_or_default().as_bytes());
        HeaderMapHead {
            fields,
            message_method: method,
            authority,
            headers,
            has_several_hosts,
            has_other_scheme: false,
            is_prechecked: false,
        }
    }

    /// Sets another version of HTTP. Another server has checked everything but the host.
    pub fn prechecked(mut self, http: &'static str) -> HeaderMapHead<'a> {
        self.fields.http = http;
        self.is_prechecked = true;
        self
    }

    /// Adds the `:scheme` of the request. Only http and https are valid.
    pub fn with_scheme(mut self, scheme: &str) -> HeaderMapHead<'a> {
        let mut valid = ["http", "https"].iter();
        self.has_other_scheme = !valid.any(|known| scheme.eq_ignore_ascii_case(known));
        self
    }

    /// The head of the request that a proxy asks about: the fields of the proxy's own request, with
    /// this method, target and host. The method of the proxy's request still decides whether the
    /// answer has a body.
    pub fn with_original_request(
        mut self,
        method: &'a [u8],
        target: &'a [u8],
        host: &'a [u8],
    ) -> HeaderMapHead<'a> {
        self.fields.method = method;
        self.fields.target = target;
        self.fields.host = host;
        self.authority = None;
        self
    }

    /// Checks the head, and fails with the first error. If another server has checked it, only the
    /// host and the scheme are checked.
    fn validate(&self, limits: &Limits) -> Result<(), HeadError> {
        if self.has_several_hosts {
            return Err(HeadError::BadHost);
        }
        if self.has_other_scheme {
            return Err(HeadError::Target);
        }
        if self.is_prechecked {
            return if self.fields.host.is_empty() || is_host(self.fields.host) {
                Ok(())
            } else {
                Err(HeadError::BadHost)
            };
        }
        let mut parts = HeadParts::new(self.fields.method, self.fields.target, false);
        parts.authority = self.authority.map(str::as_bytes);
        let mut has_cookies = false;
        for (name, value) in self.headers {
            parts.add_field(name.as_str(), value.as_bytes().trim_ascii())?;
            // `: ` and the line's end are four bytes.
            parts.bytes += name.as_str().len() + value.len() + 4;
            // A cookie comes in pieces over HTTP/2, and the origin gets one field (RFC 9113 section
            // 8.2.3).
            let is_piece = name == header::COOKIE && std::mem::replace(&mut has_cookies, true);
            parts.fields += usize::from(!is_piece);
        }
        check_head(&parts, limits).map(drop)
    }
}

impl RequestHead for HeaderMapHead<'_> {
    fn fields(&self) -> HeadFields<'_> {
        self.fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.headers.get_all(name).iter().map(HeaderValue::as_bytes)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Borrowed(self.headers)
    }

    /// The method of the message itself, also if the head is that of another request
    /// ([`HeaderMapHead::with_original_request`]).
    fn answer_method(&self) -> Method {
        self.message_method.clone()
    }

    fn head_error(&self, limits: &Limits) -> Option<HeadError> {
        self.validate(limits).err()
    }
}
