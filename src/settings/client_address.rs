//! [`ClientAddress`]: the field in which trusted proxies name their client. Exactly one field
//! counts: of two, a client could send the one that the proxy does not set.

use crate::yaml::Reader;
use http::{HeaderName, header};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The field in which trusted proxies name their client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub HeaderName);

impl Default for ClientAddress {
    fn default() -> ClientAddress {
        ClientAddress(X_FORWARDED_FOR)
    }
}

impl ClientAddress {
    /// Whether it is X-Forwarded-For.
    pub fn is_x_forwarded_for(&self) -> bool {
        self.0 == X_FORWARDED_FOR
    }

    /// Whether it is Forwarded (RFC 7239), which has more than an address.
    pub fn is_forwarded(&self) -> bool {
        self.0 == header::FORWARDED
    }
}

/// Reads the name of a header field, of which any is accepted.
pub fn client_address(node: Reader<'_>) -> Option<ClientAddress> {
    let text = node.text("the name of a field, like x-forwarded-for or cf-connecting-ip")?;
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    if name.is_none() {
        node.error_with_help("bad-value",
            "this is no name of a field",
            "write x-forwarded-for, forwarded, x-real-ip, cf-connecting-ip, true-client-ip, or the field of your proxy",
        );
    }
    name.map(ClientAddress)
}
