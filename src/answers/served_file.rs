//! [`FileAnswers`]: the prepared 200 and 304 responses for robots.txt or `/.well-known/tdmrep.json`
//! of one site. Every client gets the same bytes, entity tag and date.

use super::answer::Answer;
use super::field::AnswerField;
use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use std::sync::Arc;

pub struct FileAnswers {
    /// 200, with the bytes.
    whole: Answer,
    /// 304.
    not_modified: Answer,
}

impl FileAnswers {
    /// Prepares the 200 and the 304 of a file. `validators` are the lines that both have; one that
    /// is no field value is left out.
    pub fn new(
        validators: &[(AnswerField, &str)],
        content_type: &'static str,
        body: Arc<[u8]>,
    ) -> FileAnswers {
        let mut lines = Vec::new();
        for (field, text) in validators {
            // A policy puts no control character there; without the line the file would still be
            // whole.
            if let Ok(value) = HeaderValue::from_str(text) {
                lines.push((*field, value));
            }
        }
        let content = [
            (
                AnswerField::ContentType,
                HeaderValue::from_static(content_type),
            ),
            (AnswerField::ContentLength, body.len().into()),
        ];
        // The bytes of the snapshot are sent without being copied.
        let bytes = Bytes::from_owner(body);
        FileAnswers {
            whole: Answer::new(
                StatusCode::OK,
                lines.clone().into_iter().chain(content),
                bytes,
            ),
            not_modified: Answer::new(StatusCode::NOT_MODIFIED, lines, Bytes::new()),
        }
    }

    /// The 304 if the client's copy is current, else the 200.
    pub fn answer(&self, is_fresh: bool) -> Answer {
        if is_fresh {
            self.not_modified.clone()
        } else {
            self.whole.clone()
        }
    }
}
