//! [`LogFacts`]: what was read of access logs, and what of it could not be judged. Lists of what is
//! counted in bounded memory: [`Top`], [`RuleCount`].

use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was read of logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogFacts {
    /// Lines that are not empty.
    pub lines: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Why, by the id of the reason.
    pub unreadable_reasons: BTreeMap<String, u64>,
    /// The first lines that could not be read.
    pub examples: Vec<UnreadableLine>,
    /// Logs that break off.
    pub damaged: Vec<Damaged>,
    /// Lines about connections without a request.
    pub no_request: u64,
    /// Lines that servers write of their start and of errors.
    pub server_messages: u64,
    /// Requests in lines whose format has no user agent.
    pub no_user_agent: u64,
    /// Requests without a host, where several policies might have judged them.
    pub no_host: u64,
    /// Requests to hosts that are not judged.
    pub other_hosts: u64,
    /// Logs in which every request has an empty user agent.
    pub without_user_agents: Vec<String>,
    /// Requests whose URL was disallowed when they came, whether they count or not.
    pub disallowed: u64,
    /// The published networks that were at hand.
    pub lists: Option<ListsUsed>,
    /// Whether a policy lists networks of crawlers.
    pub policy_networks: bool,
    /// Bytes that were sent to visitors.
    pub visitors_bytes: u64,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct UnreadableLine {
    pub file: String,
    pub line: u64,
    pub reason: String,
    pub text: String,
}

/// A log that breaks off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Damaged {
    pub file: String,
    pub error: String,
}

impl Damaged {
    /// What happened, and what was done.
    pub fn message(&self) -> String {
        format!(
            "{} is damaged or cut off: {}. It was read up to there.",
            self.file, self.error
        )
    }
}

/// The lists of networks that were used, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListsUsed {
    /// How many.
    pub known: usize,
    /// Those that may raise a suspicion: their servers confirmed them within seven days.
    pub fresh: usize,
    /// When the latest was confirmed.
    #[serde(serialize_with = "rfc3339")]
    pub checked: Option<Timestamp>,
}

/// A rule, and the requests that it disallowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    /// Its pattern.
    pub pattern: String,
    /// Requests.
    pub count: u64,
    /// Where it is written.
    pub place: String,
}

/// An entry of a list that is kept in bounded memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    /// The name or URL.
    pub name: String,
    /// Requests.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}
