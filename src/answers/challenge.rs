//! The answer to an authority that asks for the proof that a host is the operator's.

use super::answer::Answer;
use super::field::Field;
use super::negotiate::form;
use super::page::Page;
use super::ruling::Asked;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};

/// The file, or that there is none.
pub fn challenge(file: Option<Vec<u8>>, asked: &Asked<'_>) -> Answer {
    let answer = match file {
        Some(file) => {
            let fields = [
                (Field::ContentType, HeaderValue::from_static("text/plain")),
                (Field::ContentLength, file.len().into()),
                (Field::CacheControl, HeaderValue::from_static("no-store")),
            ];
            Answer::new(StatusCode::OK, fields, Bytes::from(file))
        }
        None => {
            Page::new(StatusCode::NOT_FOUND, "no_challenge", "There is no such challenge.").answer(form(asked.headers))
        }
    };
    answer.in_reply_to(asked.method)
}
