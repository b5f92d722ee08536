//! [`Head`]: the fields of the head of a request or response that crawlgate passes on. `HeaderMap`,
//! the heads of Pingora, and `Lines` implement it, so that the same code changes all of them.
//! (`Lines` are the fields in the lane, `edge/lane`, which forwards most requests without Pingora's
//! proxy.)

use http::{HeaderMap, HeaderName, HeaderValue};

/// Fields that can be read and changed. Names are given as they are written in HTTP/1.1. A value
/// that no field may have is logged and left out.
pub trait Head {
    /// The values of all lines of this field, in their order.
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]>;

    /// Puts one line in the place of all lines of this field.
    fn set(&mut self, name: &'static str, value: &[u8]);

    /// Adds a line.
    fn add(&mut self, name: &'static str, value: &[u8]);

    /// Removes all lines of this field.
    fn remove(&mut self, name: &HeaderName);

    /// Removes all lines with a name that is unwanted.
    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool);

    /// Whether there is a line of this field.
    fn has(&self, name: HeaderName) -> bool {
        self.lines(name).next().is_some()
    }
}

impl Head for HeaderMap {
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
        self.get_all(name).iter().map(HeaderValue::as_bytes)
    }

    fn set(&mut self, name: &'static str, value: &[u8]) {
        if let Some(value) = field_value(name, value) {
            self.insert(name, value);
        }
    }

    fn add(&mut self, name: &'static str, value: &[u8]) {
        if let Some(value) = field_value(name, value) {
            self.append(name, value);
        }
    }

    fn remove(&mut self, name: &HeaderName) {
        HeaderMap::remove(self, name);
    }

    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
        for name in unwanted(self, is_unwanted) {
            HeaderMap::remove(self, name);
        }
    }
}

/// The names in the map for which `is_unwanted` is true.
pub fn unwanted(headers: &HeaderMap, is_unwanted: impl Fn(&str) -> bool) -> Vec<HeaderName> {
    headers
        .keys()
        .filter(|name| is_unwanted(name.as_str()))
        .cloned()
        .collect()
}

/// The value of a field; `None`, with a line in the log, if no field may have it.
pub fn field_value(name: &'static str, value: &[u8]) -> Option<HeaderValue> {
    match HeaderValue::from_bytes(value) {
        Ok(value) => Some(value),
        Err(error) => {
            tracing::warn!(name, %error, "a field cannot be written; the message goes on without it");
            None
        }
    }
}
