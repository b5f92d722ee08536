//! [`file_answer`]: the 200 and 304 responses for robots.txt or `/.well-known/tdmrep.json` of a
//! site. Every client gets the same bytes, entity tag and date.

use super::answer::Answer;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use std::sync::Arc;

/// The 200 of a file, or its 304 if the client's copy `is_fresh`. `validators` are the lines that
/// both have; one that is no field value is left out.
pub fn file_answer(
    is_fresh: bool,
    validators: &[(HeaderName, &str)],
    content_type: &'static str,
    body: Arc<[u8]>,
) -> Answer {
    let mut fields = Vec::new();
    for (name, text) in validators {
        if let Ok(value) = HeaderValue::from_str(text) {
            fields.push((name.clone(), value));
        }
    }
    if is_fresh {
        return Answer::new(StatusCode::NOT_MODIFIED, fields, Bytes::new());
    }
    fields.push((header::CONTENT_TYPE, HeaderValue::from_static(content_type)));
    fields.push((header::CONTENT_LENGTH, body.len().into()));
    Answer::new(StatusCode::OK, fields, Bytes::from_owner(body))
}
