//! [`MappedRequest`]: a request head whose fields are in a `HeaderMap`. HTTP/2, the middleware and
//! the decision service use it. [`MappedRequest::new`] finds all fields that judging needs in one
//! pass. A look-up for each field would take longer than judging.

use super::head::RequestHead;
use super::mistake::Mistake;
use super::strict::{Seen, check};
use crate::heads::{HeadFields, is_host};
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::borrow::Cow;

/// A head with its fields in a map.
pub struct MappedRequest<'a> {
    fields: HeadFields<'a>,
    /// The method of the message itself: that of the question, in the decision service.
    framed_by: &'a Method,
    authority: Option<&'a str>,
    headers: &'a HeaderMap,
    has_several_hosts: bool,
    has_other_scheme: bool,
    /// Whether another server has checked everything but the host.
    is_checked: bool,
}

impl<'a> MappedRequest<'a> {
    /// A head as HTTP/2 has it; [`MappedRequest::checked`] names another version. `target` is its
    /// path with its query, `authority` is its `:authority`. The host is that of the first Host
    /// field, else the authority.
    pub fn new(
        method: &'a Method,
        target: &'a [u8],
        authority: Option<&'a str>,
        headers: &'a HeaderMap,
    ) -> MappedRequest<'a> {
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
                name => fields.note(name, value.as_bytes()),
            }
        }
        fields.host = host.unwrap_or_else(|| authority.unwrap_or_default().as_bytes());
        MappedRequest {
            fields,
            framed_by: method,
            authority,
            headers,
            has_several_hosts,
            has_other_scheme: false,
            is_checked: false,
        }
    }

    /// Names another version of HTTP. Another server has checked everything but the host.
    pub fn checked(self, http: &'static str) -> MappedRequest<'a> {
        MappedRequest {
            fields: HeadFields {
                http,
                ..self.fields
            },
            is_checked: true,
            ..self
        }
    }

    /// Adds the `:scheme` of the request. Another one than http and https is a mistake.
    #[cfg(feature = "proxy")]
    pub fn with_scheme(self, scheme: &str) -> MappedRequest<'a> {
        let is_http = ["http", "https"]
            .iter()
            .any(|own| scheme.eq_ignore_ascii_case(own));
        MappedRequest {
            has_other_scheme: !is_http,
            ..self
        }
    }

    /// The head of the request that a proxy asks about: the fields of the proxy's own request, but
    /// this method, target and host. The method of the proxy's request still decides how the answer
    /// is sent.
    pub fn about(self, method: &'a [u8], target: &'a [u8], host: &'a [u8]) -> MappedRequest<'a> {
        let fields = HeadFields {
            method,
            target,
            host,
            ..self.fields
        };
        MappedRequest {
            fields,
            authority: None,
            ..self
        }
    }

    /// Checks the head, and fails with the first mistake. Of a head that another server has
    /// checked, only the host and the scheme are looked at; any other one goes through `check`.
    fn is_odd(&self, limits: &Limits) -> Result<(), Mistake> {
        if self.has_several_hosts {
            return Err(Mistake::BadHost);
        }
        if self.has_other_scheme {
            return Err(Mistake::Target);
        }
        if self.is_checked {
            return if self.fields.host.is_empty() || is_host(self.fields.host) {
                Ok(())
            } else {
                Err(Mistake::BadHost)
            };
        }
        let mut seen = Seen::new(self.fields.method, self.fields.target, false);
        seen.authority = self.authority.map(str::as_bytes);
        let mut has_cookies = false;
        for (name, value) in self.headers {
            seen.note(name.as_str(), value.as_bytes().trim_ascii())?;
            // `: ` and the line's end are four octets.
            seen.octets += name.as_str().len() + value.len() + 4;
            // A cookie comes in pieces over HTTP/2, and the origin gets one field (RFC 9113 section
            // 8.2.3).
            let is_piece = name == header::COOKIE && std::mem::replace(&mut has_cookies, true);
            seen.fields += usize::from(!is_piece);
        }
        check(&seen, limits).map(drop)
    }
}

impl RequestHead for MappedRequest<'_> {
    fn fields(&self) -> HeadFields<'_> {
        self.fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.headers.get_all(name).iter().map(HeaderValue::as_bytes)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Borrowed(self.headers)
    }

    /// The method of the message itself, also where the head is that of another request
    /// ([`MappedRequest::about`]).
    fn answer_method(&self) -> Method {
        self.framed_by.clone()
    }

    fn mistake(&self, limits: &Limits) -> Option<Mistake> {
        self.is_odd(limits).err()
    }
}
