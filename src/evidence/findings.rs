//! [`CaseFindings`]: the result of checking a case (an excerpt of the evidence log, as one file),
//! with the [`Findings`] about each log in it. The report of the case shows them, and programs read
//! them as JSON.

use crate::finding::Finding;
use crate::record::{Field, Row};
use serde::Serialize;
use std::borrow::Cow;

/// What was found in a case.
#[derive(Debug, Default, Serialize)]
pub struct CaseFindings {
    /// What does not hold, in any log. Empty in a case that was not changed.
    pub faults: Vec<Finding>,
    /// What was found in each log of the case.
    pub logs: Vec<Findings>,
}

impl CaseFindings {
    /// The findings of a case, from those of its logs. With several logs each fault says which log
    /// has it (`log 2: ...`).
    pub fn of(logs: Vec<Findings>) -> CaseFindings {
        let mut faults = Vec::new();
        for (number, log) in (1..).zip(&logs) {
            for fault in &log.faults {
                let mut fault = fault.clone();
                if logs.len() > 1 {
                    fault.message = format!("log {number}: {fault}");
                }
                faults.push(fault);
            }
        }
        CaseFindings { faults, logs }
    }
}

/// The name of a log that is there twice.
pub fn named_twice(logs: &[Findings]) -> Option<&str> {
    let mut names: Vec<&str> = logs.iter().map(|log| log.log.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(twice[0])
}

/// What was found in a log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The site.
    pub site: String,
    /// The crawler's label.
    pub crawler: String,
    /// The span of time, as the case says.
    pub from: String,
    /// Its end.
    pub to: String,
    /// The log: the name of its key.
    pub log: String,
    /// What does not hold. Empty in a case that was not changed.
    pub faults: Vec<Finding>,
    /// What was checked and holds.
    pub holds: Vec<Finding>,
    /// Personal values that were deleted.
    pub withdrawn: u64,
    /// What cannot be known: gaps, and what no log shows.
    pub unknown: Vec<Finding>,
    /// When the site published which robots.txt.
    pub published: Vec<PublishedVersion>,
    /// When the crawler was served which robots.txt.
    pub served: Vec<ServedFile>,
    /// The requests against the rules that were recorded in this time.
    pub requests: Vec<RequestFinding>,
    /// What proves who the clients were.
    pub proofs: Vec<ProofFinding>,
}

impl Findings {
    /// Adds something that does not hold.
    pub fn add_fault(&mut self, id: &'static str, message: impl Into<String>) {
        self.faults.push(Finding::new(id, message));
    }

    /// Adds something that was checked and holds.
    pub fn add_check(&mut self, id: &'static str, message: impl Into<String>) {
        self.holds.push(Finding::new(id, message));
    }

    /// Adds something that cannot be known.
    pub fn add_unknown(&mut self, id: &'static str, message: impl Into<String>) {
        self.unknown.push(Finding::new(id, message));
    }
}

/// What proves that a client is the crawler, or that it is not.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProofFinding {
    /// The number of its entry.
    pub number: u64,
    /// `verified` or `impostor`.
    pub identity: String,
    /// `list`, `reverse_dns`, `list_and_reverse_dns` or `signature`.
    pub means: String,
    /// The client, unless it was withdrawn or never kept.
    pub client: Option<String>,
    /// What it rests on, and what of that was checked, in sentences.
    pub says: Vec<Finding>,
    /// How many requests of the case rest on it.
    pub requests: usize,
}

/// A publication.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PublishedVersion {
    /// Since when.
    pub since: String,
    /// The version; empty where the site was withdrawn.
    pub version: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The status of the answer.
    pub answer: u64,
}

/// A copy that the crawler was served.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServedFile {
    /// When it was served.
    pub time: String,
    /// The host.
    pub host: String,
    /// The version.
    pub version: String,
    /// 200, or 304 where the crawler's own copy is good.
    pub status: u64,
    /// The validator that the crawler sent for its own copy.
    pub if_none_match: Option<String>,
    /// What was proven of its name.
    pub identity: String,
}

/// A request against the rules, and what the case says of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RequestFinding {
    /// The number of its entry.
    pub number: u64,
    /// When it arrived.
    pub time: String,
    /// When its entry was written.
    pub recorded: String,
    /// The fields of its entry. The personal ones are missing where they were withdrawn or never
    /// kept.
    #[serde(flatten)]
    pub request: Row,
    /// The number of the `proof` entry.
    pub proof_entry: Option<u64>,
    /// When the crawler was last served the version in force before the request.
    pub served_at: Option<String>,
    /// The log that has this copy, where it is another log of the case: that of another instance.
    pub served_by: Option<String>,
    /// What the engine finds by the files in the case: `disallowed`, `allowed`, `not judged`.
    pub rejudged: &'static str,
    /// A remark about it.
    pub remark: Option<String>,
}

impl RequestFinding {
    /// The text of a field; `None` where the entry has none.
    pub fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let value = self.request.get(field)?;
        (!value.is_nothing()).then(|| value.to_text())
    }

    /// The text of a field; empty where the entry has none.
    pub fn shown(&self, field: Field) -> Cow<'_, str> {
        self.request.text(field)
    }
}
