//! [`HeadFields`]: the parts of a request's head that judging and recording read. A reader of HTTP/1
//! or HTTP/2 fills them while it reads the lines.

use super::{ForwardingFields, SignatureFields, is_license_token};

/// The parts of a head. Of several lines of a field the first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadFields<'a> {
    /// The method.
    pub method: &'a [u8],
    /// The target as it came, in origin form or absolute form.
    pub target: &'a [u8],
    /// The host that is asked for, with its port if it has one. Empty where an HTTP/1.0 request has
    /// none.
    pub host: &'a [u8],
    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// User-Agent.
    pub user_agent: Option<&'a [u8]>,
    /// Referer.
    pub referer: Option<&'a [u8]>,
    /// The signature; its fields are empty where there is none.
    pub signature: SignatureFields<'a>,
    /// Whether the request carries a licence token.
    pub has_license_token: bool,
    /// Fields that say that the peer speaks for another client.
    pub forwarding: ForwardingFields,
    /// X-Request-Id.
    pub request_id: Option<&'a [u8]>,
    /// The `traceparent` of W3C Trace Context. Empty, which is malformed, where there are several
    /// lines.
    pub traceparent: Option<&'a [u8]>,
}

impl<'a> HeadFields<'a> {
    /// Takes a line into the fields, if it is one that is read; the host is not. Of several lines
    /// the first counts. Several of `traceparent` make an empty one, which is malformed.
    pub fn note(&mut self, name: &str, value: &'a [u8]) {
        match name.len() {
            7 if name.eq_ignore_ascii_case("referer") => {
                self.referer = self.referer.or(Some(value))
            }
            9 if name.eq_ignore_ascii_case("signature") => {
                first(&mut self.signature.signature, value)
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
                first(&mut self.signature.input, value)
            }
            15 if name.eq_ignore_ascii_case("signature-agent") => {
                first(&mut self.signature.agent, value)
            }
            _ => self.forwarding |= ForwardingFields::named(name),
        }
    }
}

/// Keeps the first line of a field. One that is no text leaves the field empty.
fn first<'a>(field: &mut &'a str, value: &'a [u8]) {
    if field.is_empty() {
        *field = std::str::from_utf8(value).unwrap_or_default();
    }
}
