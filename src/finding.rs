//! [`Finding`]: a sentence for people about something that crawlgate noticed, with an id by which
//! programs and tests recognize it. The status, the control socket and reports have it as `{ "id":
//! ..., "message": ... }`.

use crate::printable::without_error_numbers;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A sentence for a person, with an id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Its id, in kebab case.
    pub id: Cow<'static, str>,
    /// The sentence.
    pub message: String,
}

impl Finding {
    /// A finding with an id of crawlgate's own.
    pub fn new(id: &'static str, message: impl Into<String>) -> Finding {
        Finding {
            id: id.into(),
            message: without_error_numbers(&message.into()).into_owned(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Only the sentence: the log writes lists of findings.
impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.message, f)
    }
}

/// The ids of findings, for tests.
#[cfg(test)]
pub fn finding_ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| &*finding.id).collect()
}
