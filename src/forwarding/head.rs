//! [`EditableHead`]: a trait to read and change the header fields of a request or response that
//! crawlgate passes on. `HeaderMap`, Pingora's heads and the forwarder's `FieldLines` implement it,
//! so that the same code changes all of them.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Fields that can be read and changed. `&str` names are as they are written in HTTP/1.1. A line
/// with an invalid value is logged and not added.
pub trait EditableHead {
    /// The values of all lines of this field, in their order.
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]>;

    /// Replaces all lines of this field by one.
    fn set(&mut self, name: &'static str, value: &[u8]);

    /// Adds a line.
    fn add(&mut self, name: &'static str, value: &[u8]);

    /// Removes all lines of this field.
    fn remove(&mut self, name: &HeaderName);

    /// Removes the lines of all fields for whose name `is_unwanted` is true.
    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool);

    /// Whether there is a line of this field.
    fn has(&self, name: HeaderName) -> bool {
        self.lines(name).next().is_some()
    }
}

impl EditableHead for HeaderMap {
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
        self.get_all(name).iter().map(HeaderValue::as_bytes)
    }

    fn set(&mut self, name: &'static str, value: &[u8]) {
        if let Some(value) = valid_field_value(name, value) {
            self.insert(name, value);
        }
    }

    fn add(&mut self, name: &'static str, value: &[u8]) {
        if let Some(value) = valid_field_value(name, value) {
            self.append(name, value);
        }
    }

    fn remove(&mut self, name: &HeaderName) {
        HeaderMap::remove(self, name);
    }

    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
        for name in names_matching(self, is_unwanted) {
            HeaderMap::remove(self, name);
        }
    }
}

/// The names in the map for which `predicate` is true.
pub fn names_matching(headers: &HeaderMap, predicate: impl Fn(&str) -> bool) -> Vec<HeaderName> {
    headers
        .keys()
        .filter(|name| predicate(name.as_str()))
        .cloned()
        .collect()
}

/// The value of a field; `None`, with a line in the log, if it is invalid.
pub fn valid_field_value(name: &'static str, value: &[u8]) -> Option<HeaderValue> {
    match HeaderValue::from_bytes(value) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(name, %error, "a field cannot be written; the message is sent without it");
            None
        }
    }
}
