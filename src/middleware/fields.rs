//! [`RequestFields`]: the fields of a request that the gate reads, found in one pass. A look-up of its own for each takes
//! longer than judging. Must not know what they are read for.

use crate::forwarding::is_forwarding_field;
use crate::heads::{self, SignatureFields};
use http::{HeaderMap, HeaderValue};

/// What the gate reads of a head.
pub struct RequestFields<'a> {
    headers: &'a HeaderMap,
    /// Host.
    pub host: Option<&'a HeaderValue>,
    /// User-Agent.
    pub user_agent: Option<&'a HeaderValue>,
    /// Referer.
    pub referer: Option<&'a HeaderValue>,
    /// Whether it is a call of gRPC.
    pub is_grpc: bool,
    /// Whether a field says that the peer speaks for another client.
    pub names_another_client: bool,
    has_authorization: bool,
    is_signed: bool,
}

impl<'a> RequestFields<'a> {
    /// Those of a head. Of several lines of a field the first counts.
    pub fn of(headers: &'a HeaderMap) -> RequestFields<'a> {
        let mut fields = RequestFields {
            headers,
            host: None,
            user_agent: None,
            referer: None,
            is_grpc: false,
            names_another_client: false,
            has_authorization: false,
            is_signed: false,
        };
        for (name, value) in headers {
            match name.as_str() {
                "host" => fields.host = fields.host.or(Some(value)),
                "user-agent" => fields.user_agent = fields.user_agent.or(Some(value)),
                "referer" => fields.referer = fields.referer.or(Some(value)),
                "content-type" => fields.is_grpc = value.as_bytes().starts_with(b"application/grpc"),
                "authorization" => fields.has_authorization = true,
                "signature-input" => fields.is_signed = true,
                name => fields.names_another_client |= is_forwarding_field(name),
            }
        }
        fields
    }

    /// The lines of X-Forwarded-For.
    pub fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let headers = self.names_another_client.then_some(self.headers);
        headers.into_iter().flat_map(|headers| headers.get_all("x-forwarded-for")).map(HeaderValue::as_bytes)
    }

    /// The signature, if there is one.
    pub fn signature(&self) -> Option<SignatureFields<'a>> {
        if self.is_signed { heads::signature(self.headers) } else { None }
    }

    /// Whether the request carries a licence token.
    pub fn has_license_token(&self) -> bool {
        self.has_authorization && heads::has_license_token(self.headers)
    }
}
