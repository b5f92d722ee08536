//! [`HeadFields`]: the parts of an HTTP request head that crawlgate needs to judge and log the
//! request, such as method, host and user agent. The parsers of HTTP/1 and HTTP/2 fill them.

use super::{ForwardingFieldSet, SignatureFields, is_license_token};

/// The parts of a request's head. Of several lines of a field, the first counts.
#[derive(Clone, Copy, Default)]
pub struct HeadFields<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target as it came, in origin form or absolute form.
    pub target: &'a [u8],
    /// The host, with its port if it has one. Empty for an HTTP/1.0 request without one.
    pub host: &'a [u8],
    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// User-Agent.
    pub user_agent: Option<&'a [u8]>,
    /// Referer.
    pub referer: Option<&'a [u8]>,
    /// The signature; empty without one.
    pub signature: SignatureFields<'a>,
    /// Whether the request carries a licence token.
    pub has_license_token: bool,
    /// The forwarding fields that are present.
    pub forwarding: ForwardingFieldSet,
    /// X-Request-Id.
    pub request_id: Option<&'a [u8]>,
    /// The `traceparent` of W3C Trace Context. Empty, which is malformed, if there are several
    /// lines.
    pub traceparent: Option<&'a [u8]>,
}

impl<'a> HeadFields<'a> {
    /// Records a field line, if it is one of these. The caller records the host.
    pub fn record_line(&mut self, name: &str, value: &'a [u8]) {
        match name.len() {
            7 if name.eq_ignore_ascii_case("referer") => {
                self.referer = self.referer.or(Some(value))
            }
            9 if name.eq_ignore_ascii_case("signature") => {
                set_if_empty(&mut self.signature.signature, value)
            }
            10 if name.eq_ignore_ascii_case("user-agent") => {
                self.user_agent = self.user_agent.or(Some(value))
            }
            11 if name.eq_ignore_ascii_case("traceparent") => {
                self.traceparent = Some(if self.traceparent.is_some() {
                    b""
                } else {
                    value
                })
            }
            12 if name.eq_ignore_ascii_case("x-request-id") => {
                self.request_id = self.request_id.or(Some(value))
            }
            13 if name.eq_ignore_ascii_case("authorization") => {
                self.has_license_token |= is_license_token(value)
            }
            15 if name.eq_ignore_ascii_case("signature-input") => {
                set_if_empty(&mut self.signature.input, value)
            }
            15 if name.eq_ignore_ascii_case("signature-agent") => {
                set_if_empty(&mut self.signature.agent, value)
            }
            _ => self.forwarding |= ForwardingFieldSet::from_name(name),
        }
    }
}

/// Records the first line of a field. One that is not UTF-8 counts as empty.
fn set_if_empty<'a>(field: &mut &'a str, value: &'a [u8]) {
    if field.is_empty() {
        *field = std::str::from_utf8(value).unwrap_or_default();
    }
}
