//! Implements [`Head`] for Pingora's heads, so that `forwarding` can read and change them.

use crate::forwarding::{Head, field_value, unwanted};
use http::{HeaderName, HeaderValue};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

/// Pingora has a type for each direction, with the same methods.
macro_rules! head {
    ($($header:ty),+) => { $(
        impl Head for $header {
            fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
                self.headers.get_all(name).iter().map(HeaderValue::as_bytes)
            }

            fn set(&mut self, name: &'static str, value: &[u8]) {
                if let Some(value) = field_value(name, value) {
                    written(name, self.insert_header(name, value));
                }
            }

            fn add(&mut self, name: &'static str, value: &[u8]) {
                if let Some(value) = field_value(name, value) {
                    written(name, self.append_header(name, value));
                }
            }

            fn remove(&mut self, name: &HeaderName) {
                self.remove_header(name);
            }

            fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
                for name in unwanted(&self.headers, is_unwanted) {
                    self.remove_header(&name);
                }
            }
        }
    )+ };
}

head!(RequestHeader, ResponseHeader);

/// Logs that Pingora refused a field: it does so if there are more fields than a head can hold.
fn written<T>(name: &'static str, result: Result<T>) {
    if let Err(error) = result {
        tracing::warn!(name, %error, "a field cannot be written; the message goes on without it");
    }
}
