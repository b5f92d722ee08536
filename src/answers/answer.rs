//! [`Answer`]: a complete HTTP response that crawlgate makes itself, instead of forwarding the
//! request. An answer keeps its status and header lines in two forms: as bytes for HTTP/1.1, and as
//! fields for other versions of HTTP. A clone shares these bytes and fields, so it is cheap.

use super::field::REQUEST_ID;
use crate::heads::{X_ROBOTS_TAG, tag_values};
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use smallvec::SmallVec;
use std::sync::Arc;

const SERVER: HeaderValue = HeaderValue::from_static("crawlgate");

/// A status, head lines and a body. Cloning copies no bytes of the body and of the shared lines.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    shared: Arc<HeadLines>,
    /// Lines of this answer alone, after the shared ones.
    extra: SmallVec<[(HeaderName, HeaderValue); 3]>,
    body: Bytes,
    closes: bool,
}

/// Head lines that all clones of an answer share, from the status line on.
#[derive(Debug)]
struct HeadLines {
    bytes: Vec<u8>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    /// An answer with Server and these lines, in this order. They must have Content-Length, except
    /// for a 304. The connection may stay open after it.
    pub(super) fn new(
        status: StatusCode,
        fields: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Answer {
        let mut lines = HeadLines {
            bytes: Vec::with_capacity(256),
            fields: Vec::with_capacity(8),
        };
        write_status_line(status, &mut lines.bytes);
        for (field, value) in [(header::SERVER, SERVER)].into_iter().chain(fields) {
            write_field_line(&field, &value, &mut lines.bytes);
            lines.fields.push((field, value));
        }
        Answer {
            status,
            shared: Arc::new(lines),
            extra: SmallVec::new(),
            body,
            closes: false,
        }
    }

    /// An answer with `Cache-Control: no-store`, Content-Type and Content-Length, and then `more`.
    pub(super) fn uncacheable(
        status: StatusCode,
        content_type: &'static str,
        more: Option<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Answer {
        let fields = [
            (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (header::CONTENT_LENGTH, body.len().into()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        Answer::new(status, fields.into_iter().chain(more), body)
    }

    /// Adds a head line after the others, also if there is one of the same field.
    pub fn with_field(mut self, field: HeaderName, value: HeaderValue) -> Answer {
        self.extra.push((field, value));
        self
    }

    /// Adds X-Request-Id. An id that is no valid field value is left out.
    pub fn with_request_id(self, request_id: &[u8]) -> Answer {
        match HeaderValue::from_bytes(request_id) {
            Ok(id) => self.with_field(REQUEST_ID, id),
            Err(_) => self,
        }
    }

    /// Adds the lines of X-Robots-Tag that the policy has for the path, and for the status and type
    /// of the answer.
    pub(super) fn with_tags(self, entry: &SiteEntry, decision: &Decision) -> Answer {
        let content_type = self
            .values(header::CONTENT_TYPE)
            .next()
            .map(HeaderValue::as_bytes);
        match entry
            .site
            .tags
            .tags(&decision.path_rules, self.status.as_u16(), content_type)
        {
            Some(tags) => tag_values(&tags.lines)
                .fold(self, |answer, line| answer.with_field(X_ROBOTS_TAG, line)),
            None => self,
        }
    }

    /// Closes the connection after the answer.
    pub(super) fn closing_connection(mut self) -> Answer {
        self.closes = true;
        self
    }

    /// Removes the body if the method is HEAD. Content-Length stays.
    pub(super) fn for_method(mut self, method: &Method) -> Answer {
        if method == Method::HEAD {
            self.body = Bytes::new();
        }
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body. It is empty in reply to HEAD; Content-Length is that of the answer to GET.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the connection must be closed after this answer.
    pub fn closes_connection(&self) -> bool {
        self.closes
    }

    /// The head lines in the order in which they are sent.
    pub fn fields(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.shared
            .fields
            .iter()
            .chain(&self.extra)
            .map(|(name, value)| (name, value))
    }

    /// The lines of this field.
    pub fn values(&self, wanted: HeaderName) -> impl Iterator<Item = &HeaderValue> {
        self.fields()
            .filter(move |(name, _)| **name == wanted)
            .map(|(_, value)| value)
    }

    /// Writes the whole answer as HTTP/1.1. `date` is the value of Date. `keeps_alive` says whether
    /// the connection stays open; it is closed in any case if
    /// [`closes_connection`](Answer::closes_connection) is true.
    pub fn write_http1(&self, date: &[u8], keeps_alive: bool, out: &mut Vec<u8>) {
        out.reserve(self.shared.bytes.len() + self.body.len() + 256);
        self.write_http1_head(date, keeps_alive, out);
        out.extend_from_slice(&self.body);
    }

    /// Writes the head alone, with Date and Connection: see [`Answer::write_http1`].
    pub fn write_http1_head(&self, date: &[u8], keeps_alive: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.shared.bytes);
        for (field, value) in &self.extra {
            write_field_line(field, value, out);
        }
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(date);
        let connection: &[u8] = if keeps_alive && !self.closes {
            b"\r\nConnection: keep-alive\r\n\r\n"
        } else {
            b"\r\nConnection: close\r\n\r\n"
        };
        out.extend_from_slice(connection);
    }
}

impl From<Answer> for Response<Bytes> {
    fn from(answer: Answer) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status;
        for (field, value) in answer.fields() {
            response.headers_mut().append(field, value.clone());
        }
        *response.body_mut() = answer.body;
        response
    }
}

fn write_status_line(status: StatusCode, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_field_line(name: &HeaderName, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(http1_name(name).as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The name as HTTP/1.1 commonly spells it: `content-type` as `Content-Type`.
pub fn http1_name(name: &HeaderName) -> String {
    match name.as_str() {
        "etag" => "ETag".to_owned(),
        "www-authenticate" => "WWW-Authenticate".to_owned(),
        name => {
            let mut begins_word = true;
            let spell = |byte: char| {
                let spelled = if begins_word {
                    byte.to_ascii_uppercase()
                } else {
                    byte
                };
                begins_word = byte == '-';
                spelled
            };
            name.chars().map(spell).collect()
        }
    }
}
