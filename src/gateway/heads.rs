//! Implements [`EditableHead`] for Pingora's request and response heads, so that the code in
//! `forwarding` can read and change them.

use crate::forwarding::{EditableHead, names_matching, valid_field_value};
use http::{HeaderName, HeaderValue};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

/// Pingora has two types with the same methods.
macro_rules! impl_editable_head {
    ($($header:ty),+) => { $(
        impl EditableHead for $header {
            fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
                self.headers.get_all(name).iter().map(HeaderValue::as_bytes)
            }

            fn set(&mut self, name: &'static str, value: &[u8]) {
                if let Some(value) = valid_field_value(name, value) {
                    log_refused(name, self.insert_header(name, value));
                }
            }

            fn add(&mut self, name: &'static str, value: &[u8]) {
                if let Some(value) = valid_field_value(name, value) {
                    log_refused(name, self.append_header(name, value));
                }
            }

            fn remove(&mut self, name: &HeaderName) {
                self.remove_header(name);
            }

            fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
                for name in names_matching(&self.headers, is_unwanted) {
                    self.remove_header(&name);
                }
            }
        }
    )+ };
}

impl_editable_head!(RequestHeader, ResponseHeader);

/// Logs that Pingora rejected a field: the head has too many of them.
fn log_refused<T>(name: &'static str, result: Result<T>) {
    if let Err(error) = result {
        tracing::warn!(name, %error, "a field cannot be written; the message is sent without it");
    }
}
