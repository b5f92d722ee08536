//! [`CaseFindings`]: the result of checking a case (an excerpt of the evidence log, as one file).
//! It has the [`LogFindings`] about each log in the case. The report of the case shows the result,
//! and programs read it as JSON.

use crate::finding::Finding;
use crate::hash::Hash;
use crate::numbers::plural_thousands;
use crate::printable::{join, join_first};
use crate::record::{RecordField, RecordRow};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

use RecordField::*;

/// More hosts, rules or lines are only counted.
pub const MAX_NAMED: usize = 3;

/// What is said of a request to a page with a published reservation.
pub const RESERVED_PAGE: &str =
    "to a page with a published reservation (TDM, Content-Signal or Content-Usage)";

/// The result of checking a case.
#[derive(Default, Serialize)]
pub struct CaseFindings {
    /// The faults in all logs. Empty for an unchanged case.
    pub faults: Vec<Finding>,
    /// The findings about each log.
    pub logs: Vec<LogFindings>,
}

impl CaseFindings {
    /// With several logs each fault names its log (`log 2: ...`).
    pub fn from_logs(logs: Vec<LogFindings>) -> CaseFindings {
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

/// The name of a log that is in the case twice.
pub fn duplicate_log(logs: &[LogFindings]) -> Option<&str> {
    let mut names = BTreeSet::new();
    let mut all = logs.iter().map(|log| log.log.as_str());
    all.find(|name| !names.insert(*name))
}

/// The result of checking one log of a case.
#[derive(Clone, Default, Serialize)]
pub struct LogFindings {
    /// The site.
    pub site: String,
    /// The crawler's label.
    pub crawler: String,
    /// The beginning of the span of time.
    pub from: String,
    /// The end of the span of time.
    pub to: String,
    /// The name of the log's key.
    pub log: String,
    /// Empty for an unchanged case.
    pub faults: Vec<Finding>,
    /// Successful checks.
    pub holds: Vec<Finding>,
    /// The timestamps of checkpoints, in the order of the checkpoints.
    pub timestamps: Vec<CheckpointTimestamp>,
    /// How many gaps of the log are in the span.
    pub gaps: usize,
    /// The number of personal values that were deleted.
    pub withdrawn: u64,
    /// What cannot be known: gaps, and what no log shows.
    pub unknown: Vec<Finding>,
    /// The versions that the site published.
    pub published: Vec<PublishedVersion>,
    /// The robots.txt files that the site declared for the time before crawlgate. No log of the case
    /// observed them.
    pub declared: Vec<Hash>,
    /// The copies of robots.txt that the crawler was served.
    pub served: Vec<ServedRobotsTxt>,
    /// The recorded requests in the span.
    pub requests: Vec<RequestFinding>,
    /// The proofs of the clients' identities.
    pub proofs: Vec<ProofFinding>,
}

impl LogFindings {
    /// Adds a fault.
    pub fn add_fault(&mut self, id: &'static str, message: impl Into<String>) {
        self.faults.push(Finding::new(id, message));
    }

    /// Adds a fault with the name of its file.
    pub fn add_file_fault(&mut self, file: &str, fault: Finding) {
        self.faults.push(Finding {
            message: format!("{file}: {fault}"),
            ..fault
        });
    }

    /// Adds a fault that these lines of a file have, if there are any.
    pub fn add_lines_fault(&mut self, id: &'static str, fault: &str, lines: Vec<usize>) {
        if !lines.is_empty() {
            self.add_fault(id, format!("{fault}: {}", join_first(lines, MAX_NAMED)));
        }
    }

    /// Adds a successful check.
    pub fn add_check(&mut self, id: &'static str, message: impl Into<String>) {
        self.holds.push(Finding::new(id, message));
    }

    /// Adds something that cannot be known.
    pub fn add_unknown(&mut self, id: &'static str, message: impl Into<String>) {
        self.unknown.push(Finding::new(id, message));
    }

    /// `, except 2 gaps`; empty without a gap in the span.
    pub fn gaps_text(&self) -> String {
        match self.gaps {
            0 => String::new(),
            gaps => format!(", except {}", plural_thousands(gaps, "gap")),
        }
    }
}

/// The timestamp of a checkpoint by an authority that the site chose. Its signature was not checked.
#[derive(Clone, Serialize)]
pub struct CheckpointTimestamp {
    /// The time of the checkpoint: it covers all earlier entries.
    pub covers_until: String,
    /// The time that the authority says.
    pub time: String,
    /// The authority, by its certificate in the timestamp.
    pub authority: String,
}

/// A proof that a client is the crawler, or an impostor.
#[derive(Clone, Default, Serialize)]
pub struct ProofFinding {
    /// The number of its entry.
    pub number: u64,
    /// `verified` or `impostor`.
    pub identity: String,
    /// `list`, `reverse_dns`, `list_and_reverse_dns` or `signature`.
    pub means: String,
    /// The client or its network, unless it was withdrawn or never kept.
    pub client: Option<String>,
    /// Whether the case has the value that it is about: the whole address, or the signed text.
    /// Otherwise only the site says whose requests these are.
    pub is_complete: bool,
    /// Whether it rests on a list or keys that the site supplied itself.
    pub is_supplied: bool,
    /// Its parts, and which of them were checked.
    pub says: Vec<Finding>,
    /// How many requests of the case refer to it.
    pub requests: usize,
}

/// A version of robots.txt that the site published.
#[derive(Clone, Default, Serialize)]
pub struct PublishedVersion {
    /// Since when it was published.
    pub since: String,
    /// Empty if the site was removed.
    pub version: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The status of the response.
    pub answer: u64,
    /// When its entry was written.
    pub recorded: String,
    /// The header lines about the use of the content, and `tdmrep.json`, as set when the entry was
    /// written.
    pub signals: Vec<String>,
}

/// A robots.txt that the crawler was served.
#[derive(Clone, Serialize)]
pub struct ServedRobotsTxt {
    /// When it was served.
    pub time: String,
    /// The host.
    pub host: String,
    /// The version.
    pub version: String,
    /// 200, or 304 if the crawler's own copy is valid.
    pub status: u64,
    /// The validator that the crawler sent for its own copy.
    pub if_none_match: Option<String>,
    /// The client, unless it was withdrawn or never kept.
    pub client: Option<String>,
    /// The identity of the client.
    pub identity: String,
}

/// A request, as recorded and as judged again.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RequestFinding {
    /// The number of its entry.
    pub number: u64,
    /// When it arrived.
    pub time: String,
    /// When its entry was written.
    pub recorded: String,
    /// The fields of its entry, without personal values that were withdrawn or never kept.
    #[serde(flatten)]
    pub request: RecordRow,
    /// The URL of the licence that the request lacked.
    pub license: Option<String>,
    /// The number of the `proof` entry.
    pub proof_entry: Option<u64>,
    /// When the version of the request was served before it: the last time to the same client, else
    /// to one without an address, else to another one. All are of the same identity.
    pub served_at: Option<String>,
    /// The log with that copy, if another instance served it.
    pub served_by: Option<String>,
    /// The client that was served that copy. `None` as in
    /// [`ServedRobotsTxt::client`].
    pub served_to: Option<String>,
    /// The file in the case and its line that disallow the request.
    pub rule_in_case: Option<String>,
    /// The verdict by the files in the case: `disallowed`, `allowed`, `not judged`.
    pub rejudged: &'static str,
    /// A remark about the verdict.
    pub remark: Option<String>,
}

impl RequestFinding {
    /// The text of a recorded field.
    pub fn field_text(&self, field: RecordField) -> Option<Cow<'_, str>> {
        let value = self.request.get(field)?;
        (!value.is_empty()).then(|| value.to_text())
    }

    /// Whether robots.txt disallows the request: by the files of the case, or by its entry.
    pub fn is_disallowed(&self) -> bool {
        self.rejudged == "disallowed" || self.field_text_or_empty(Verdict) == "disallowed"
    }

    /// Whether the request lacked a licence, although robots.txt allows it, by its entry.
    pub fn lacks_license(&self) -> bool {
        let answers = [Action, Would].map(|field| self.field_text_or_empty(field));
        !self.is_disallowed() && answers.contains(&"license".into())
    }

    /// Whether the request passed to a page with a published reservation.
    pub fn is_reserved(&self) -> bool {
        self.field_text(Reserved).is_some()
    }

    /// Whether the request had a licence token, which was not checked.
    pub fn has_license_token(&self) -> bool {
        self.field_text(LicenseToken).is_some()
    }

    /// Whether the request lacked a licence or simply passed: its kind is no reason.
    pub fn is_allowed(&self) -> bool {
        let kind = self.field_text_or_empty(Kind);
        matches!(&*kind, "allowed" | "not_bound") && !self.is_disallowed() || self.lacks_license()
    }

    /// What the kind of the request means. The kind itself if it says that.
    pub fn kind_reason(&self) -> Cow<'_, str> {
        let kind = self.field_text_or_empty(Kind);
        let history = self.field_text_or_empty(History);
        Cow::Borrowed(match (&*kind, &*history) {
            ("unproven", "perhaps_cached") => {
                "may be no violation: a cache in front of the site may have answered with an older robots.txt"
            }
            ("unproven" | "stale_copy", _) => {
                "may be no violation: the client may have used an older robots.txt"
            }
            ("ambiguous", _) => {
                "may be no violation: the path can be read in two ways, and robots.txt allows one"
            }
            ("not_bound", _) => "may be no violation: robots.txt does not bind this crawler",
            ("impostor", _) => "the client only pretended to be the crawler",
            ("trapped", _) => "the client requested a trap",
            ("unverified", _) => "the client is not verified",
            ("too_fast", _) => "too fast",
            _ => return kind,
        })
    }

    /// What the request is recorded as, for people.
    pub fn kind_words(&self) -> String {
        let mut words = vec![self.kind_reason()];
        if self.is_allowed() {
            words[0] = "not disallowed by robots.txt".into();
        }
        if self.lacks_license() {
            words.push("without a licence".into());
        }
        if self.has_license_token() {
            words.push("with a licence token".into());
        }
        if self.is_reserved() {
            words.push(RESERVED_PAGE.into());
        }
        join(words, "; ")
    }

    /// The text of a field; empty if it was not recorded.
    pub fn field_text_or_empty(&self, field: RecordField) -> Cow<'_, str> {
        self.request.text(field)
    }
}
