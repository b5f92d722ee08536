//! [`MappedRequest`]: a head with its fields in a map, as Pingora, hyper and proxies that ask for decisions have it. The
//! fields are found in one pass: a look-up of its own for each takes longer than judging.

use super::head::{HeadFields, RequestHead};
use super::mistake::Mistake;
use super::strict::{Seen, check};
use crate::forwarding::is_forwarding_field;
use crate::heads::{self, is_host};
use crate::settings::Limits;
use http::{HeaderMap, HeaderValue, Method, header};
use std::borrow::Cow;

/// A head with its fields in a map.
#[derive(Clone, Copy)]
pub struct MappedRequest<'a> {
    method: &'a [u8],
    /// The method of the message itself, where that is another one.
    framed_by: &'a Method,
    target: &'a [u8],
    host: &'a [u8],
    authority: Option<&'a str>,
    http: &'static str,
    headers: &'a HeaderMap,
    fields: HeadFields<'a>,
    has_several_hosts: bool,
    /// Whether the server before the door has checked everything but the host.
    is_checked: bool,
}

impl<'a> MappedRequest<'a> {
    /// A head as HTTP/2 has it; [`MappedRequest::checked`] names another version. `target` is its path with its query,
    /// `authority` is its `:authority`.
    pub fn new(
        method: &'a Method,
        target: &'a [u8],
        authority: Option<&'a str>,
        headers: &'a HeaderMap,
    ) -> MappedRequest<'a> {
        let mut request = MappedRequest {
            method: method.as_str().as_bytes(),
            framed_by: method,
            target,
            host: b"",
            authority,
            http: "2",
            headers,
            fields: HeadFields::default(),
            has_several_hosts: false,
            is_checked: false,
        };
        let (mut host, mut is_signed, mut has_authorization) = (None, false, false);
        let fields = &mut request.fields;
        for (name, value) in headers {
            let octets = || Some(value.as_bytes());
            match name.as_str() {
                "host" if host.is_some() => request.has_several_hosts = true,
                "host" => host = Some(value.as_bytes().trim_ascii()),
                "user-agent" => fields.user_agent = fields.user_agent.or_else(octets),
                "referer" => fields.referer = fields.referer.or_else(octets),
                "authorization" => has_authorization = true,
                "signature-input" => is_signed = true,
                "x-request-id" => fields.request_id = fields.request_id.or_else(octets),
                "traceparent" => fields.note_traceparent(value.as_bytes()),
                name => fields.names_another_client |= is_forwarding_field(name),
            }
        }
        fields.has_license_token = has_authorization && heads::has_license_token(headers);
        fields.signature = if is_signed { heads::signature(headers) } else { None };
        request.host = host.unwrap_or_else(|| request.authority.unwrap_or_default().as_bytes());
        request
    }

    /// The same over this version of HTTP, from a server that has checked all but the host.
    pub fn checked(self, http: &'static str) -> MappedRequest<'a> {
        MappedRequest { http, is_checked: true, ..self }
    }

    /// A question about another request than the one that asks it.
    pub fn about(self, method: &'a [u8], target: &'a [u8], host: &'a [u8]) -> MappedRequest<'a> {
        // The proxy has read that request, and named its client.
        let fields = HeadFields { names_another_client: false, ..self.fields };
        MappedRequest { method, target, host, authority: None, fields, ..self }
    }

    fn is_odd(&self, limits: &Limits) -> Result<(), Mistake> {
        if self.has_several_hosts {
            return Err(Mistake::BadHost);
        }
        if self.is_checked {
            return if self.host.is_empty() || is_host(self.host) { Ok(()) } else { Err(Mistake::BadHost) };
        }
        let mut seen = Seen::new(self.method, self.target, false);
        seen.authority = self.authority.map(str::as_bytes);
        let mut has_cookies = false;
        for (name, value) in self.headers {
            seen.note(name.as_str(), value.as_bytes().trim_ascii())?;
            // `: ` and the line's end are four octets.
            seen.octets += name.as_str().len() + value.len() + 4;
            // A cookie comes in pieces over HTTP/2, and the origin gets one field (RFC 9113 section 8.2.3).
            let is_piece = name == header::COOKIE && std::mem::replace(&mut has_cookies, true);
            seen.fields += usize::from(!is_piece);
        }
        check(&seen, limits).map(drop)
    }
}

impl RequestHead for MappedRequest<'_> {
    fn method(&self) -> &[u8] {
        self.method
    }

    fn target(&self) -> &[u8] {
        self.target
    }

    fn host(&self) -> &[u8] {
        self.host
    }

    fn http(&self) -> &'static str {
        self.http
    }

    fn fields(&self) -> HeadFields<'_> {
        self.fields
    }

    fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        let headers = self.fields.names_another_client.then_some(self.headers);
        headers.into_iter().flat_map(|headers| headers.get_all("x-forwarded-for")).map(HeaderValue::as_bytes)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Borrowed(self.headers)
    }

    fn answer_method(&self) -> Method {
        self.framed_by.clone()
    }

    fn mistake(&self, limits: &Limits) -> Option<Mistake> {
        self.is_odd(limits).err()
    }
}
