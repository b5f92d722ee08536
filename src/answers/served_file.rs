//! [`FileAnswers`]: the 200 and the 304 of a file that crawlgate serves itself, robots.txt or
//! `/.well-known/tdmrep.json` (see `docs/semantics.md`). Every client gets the same bytes and
//! validators.

use super::answer::Answer;
use super::field::Field;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct FileAnswers {
    /// 200, with the bytes.
    whole: Answer,
    /// 304.
    not_modified: Answer,
}

impl FileAnswers {
    /// `validators` are the lines that both answers have.
    pub(super) fn new(
        validators: &[(Field, &str)],
        content_type: &'static str,
        body: Arc<[u8]>,
    ) -> FileAnswers {
        let validators = || {
            // A policy puts no control character there; without the line the file would still be
            // whole.
            let value = |text: &str| HeaderValue::from_str(text).ok();
            validators
                .iter()
                .filter_map(move |(field, text)| Some((*field, value(text)?)))
        };
        let content = [
            (Field::ContentType, HeaderValue::from_static(content_type)),
            (Field::ContentLength, body.len().into()),
        ];
        // The bytes of the snapshot are sent without being copied.
        let bytes = Bytes::from_owner(body);
        FileAnswers {
            whole: Answer::new(StatusCode::OK, validators().chain(content), bytes),
            not_modified: Answer::new(StatusCode::NOT_MODIFIED, validators(), Bytes::new()),
        }
    }

    /// The 304 if the client's copy is current, else the 200.
    pub(super) fn answer(&self, is_fresh: bool) -> Answer {
        if is_fresh {
            self.not_modified.clone()
        } else {
            self.whole.clone()
        }
    }
}
