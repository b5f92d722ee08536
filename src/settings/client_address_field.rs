//! [`ClientAddressField`]: the setting that names the header field in which trusted proxies send
//! the address of the client, such as X-Forwarded-For. crawlgate reads only this one field: if it
//! read two, a client could send the field that the proxy does not set, and fake its address.

use crate::yaml::NodeReader;
use http::{HeaderName, header};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The header field in which trusted proxies send the address of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAddressField(pub HeaderName);

impl Default for ClientAddressField {
    fn default() -> ClientAddressField {
        ClientAddressField(X_FORWARDED_FOR)
    }
}

impl ClientAddressField {
    /// Whether it is X-Forwarded-For.
    pub fn is_x_forwarded_for(&self) -> bool {
        self.0 == X_FORWARDED_FOR
    }

    /// Whether it is Forwarded (RFC 7239), which has a syntax of its own.
    pub fn is_forwarded(&self) -> bool {
        self.0 == header::FORWARDED
    }
}

/// Any name of a header field.
pub fn decode_client_address(node: NodeReader<'_>) -> Option<ClientAddressField> {
    let text = node.text("the name of a field, like x-forwarded-for or cf-connecting-ip")?;
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    if name.is_none() {
        node.error_with_help(
            "bad-value",
            "this is not the name of a header field",
            "write x-forwarded-for, forwarded, x-real-ip, cf-connecting-ip, true-client-ip, or \
             the field of your proxy",
        );
    }
    name.map(ClientAddressField)
}
