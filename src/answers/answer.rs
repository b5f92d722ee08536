//! [`Answer`]: a complete response that crawlgate makes itself. Head lines that many answers share
//! are made once, as octets for HTTP/1.1 and as fields for every other version of HTTP.

use super::field::Field;
use crate::heads::tag_values;
use crate::policy::SiteEntry;
use crate::verdict::Decision;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode};
use smallvec::SmallVec;
use std::sync::Arc;

const SERVER: HeaderValue = HeaderValue::from_static("crawlgate");

/// A status, head lines and a body. Cloning copies no octets of the body and of the shared lines.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    shared: Arc<Lines>,
    /// Lines of this answer alone, after the shared ones.
    own: SmallVec<[(Field, HeaderValue); 4]>,
    body: Bytes,
    closes: bool,
}

/// Head lines made once, from the status line on.
#[derive(Debug)]
struct Lines {
    octets: Vec<u8>,
    fields: Vec<(Field, HeaderValue)>,
}

impl Answer {
    /// An answer with Server and these lines, in this order. The caller gives Content-Length among
    /// them, except for a 304. The connection may go on after it.
    pub(super) fn new(
        status: StatusCode,
        fields: impl IntoIterator<Item = (Field, HeaderValue)>,
        body: Bytes,
    ) -> Answer {
        let mut lines = Lines {
            octets: Vec::with_capacity(256),
            fields: Vec::with_capacity(8),
        };
        write_status_line(status, &mut lines.octets);
        for (field, value) in [(Field::Server, SERVER)].into_iter().chain(fields) {
            write_line(field, &value, &mut lines.octets);
            lines.fields.push((field, value));
        }
        Answer {
            status,
            shared: Arc::new(lines),
            own: SmallVec::new(),
            body,
            closes: false,
        }
    }

    /// An answer with `Cache-Control: no-store`, Content-Type and Content-Length, and with one line
    /// `more` after these.
    pub(super) fn uncached(
        status: StatusCode,
        content_type: &'static str,
        more: Option<(Field, HeaderValue)>,
        body: Bytes,
    ) -> Answer {
        let fields = [
            (Field::ContentType, HeaderValue::from_static(content_type)),
            (Field::ContentLength, body.len().into()),
            (Field::CacheControl, HeaderValue::from_static("no-store")),
        ];
        Answer::new(status, fields.into_iter().chain(more), body)
    }

    /// Adds a head line after the others. A line of the same field stays.
    pub fn with(mut self, field: Field, value: HeaderValue) -> Answer {
        self.own.push((field, value));
        self
    }

    /// Adds X-Request-Id. An id that no field may have is left out.
    pub fn named(self, request_id: &[u8]) -> Answer {
        match HeaderValue::from_bytes(request_id) {
            Ok(id) => self.with(Field::RequestId, id),
            Err(_) => self,
        }
    }

    /// Adds the lines of X-Robots-Tag that the policy has for the path, and for the status and type
    /// of the answer.
    pub(super) fn with_tags(self, entry: &SiteEntry, decision: &Decision) -> Answer {
        let content_type = self
            .values(Field::ContentType)
            .next()
            .map(HeaderValue::as_bytes);
        match entry
            .site
            .tags
            .tags(&decision.path_rules, self.status.as_u16(), content_type)
        {
            Some(tags) => tag_values(&tags.lines)
                .fold(self, |answer, line| answer.with(Field::XRobotsTag, line)),
            None => self,
        }
    }

    /// Marks the answer: the connection ends after it.
    pub(super) fn closing(mut self) -> Answer {
        self.closes = true;
        self
    }

    /// The answer to a request with this method: without the body for HEAD. Content-Length stays.
    pub(super) fn in_reply_to(mut self, method: &Method) -> Answer {
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

    /// Whether the connection has to end after this answer.
    pub fn closes(&self) -> bool {
        self.closes
    }

    /// The head lines in the order in which they are sent.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &HeaderValue)> {
        self.shared
            .fields
            .iter()
            .chain(&self.own)
            .map(|(field, value)| (*field, value))
    }

    /// The lines of this field.
    pub fn values(&self, wanted: Field) -> impl Iterator<Item = &HeaderValue> {
        self.fields()
            .filter(move |(field, _)| *field == wanted)
            .map(|(_, value)| value)
    }

    /// Writes the whole answer as HTTP/1.1. `date` is the value of Date. `keeps_alive` says whether
    /// the connection goes on; it ends in any case after an answer that [`closes`](Answer::closes).
    pub fn write_http1(&self, date: &[u8], keeps_alive: bool, out: &mut Vec<u8>) {
        out.reserve(self.shared.octets.len() + self.body.len() + 256);
        self.write_http1_head(date, keeps_alive, out);
        out.extend_from_slice(&self.body);
    }

    /// Writes the head alone, with Date and Connection: see [`Answer::write_http1`].
    pub fn write_http1_head(&self, date: &[u8], keeps_alive: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.shared.octets);
        for (field, value) in &self.own {
            write_line(*field, value, out);
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
            response.headers_mut().append(field.name(), value.clone());
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

fn write_line(field: Field, value: &HeaderValue, out: &mut Vec<u8>) {
    out.extend_from_slice(field.written().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}
