//! [`Head`]: the fields of a request or response that is passed on, however a door keeps them.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Fields that can be read and changed. Names are given as they are written in HTTP/1.1.
pub trait Head {
    /// The fields.
    fn headers(&self) -> &HeaderMap;

    /// Puts one line in the place of all lines of this field.
    fn set(&mut self, name: &'static str, value: HeaderValue);

    /// Adds a line.
    fn add(&mut self, name: &'static str, value: HeaderValue);

    /// Takes away all lines of this field.
    fn remove(&mut self, name: &HeaderName);
}

impl Head for HeaderMap {
    fn headers(&self) -> &HeaderMap {
        self
    }

    fn set(&mut self, name: &'static str, value: HeaderValue) {
        self.insert(name, value);
    }

    fn add(&mut self, name: &'static str, value: HeaderValue) {
        self.append(name, value);
    }

    fn remove(&mut self, name: &HeaderName) {
        HeaderMap::remove(self, name);
    }
}
