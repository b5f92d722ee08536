//! The parts of a report that only `crawlgate audit` fills in, because only this command reads
//! access logs. [`LogSummary`] says what was read of the logs, and what could not be judged.
//! [`TopEntry`] and [`RuleCount`] are entries of the lists that show what occurs most often.

use crate::numbers::thousands;
use crate::sketch::KeyUsage;
use crate::time::{Timestamp, rfc3339};
use derive_more::AddAssign;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was read of the logs, and what could not be judged.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogSummary {
    /// The logs.
    pub names: Vec<String>,
    /// The files with the rules: robots.txt or policies.
    pub rules: Vec<String>,
    /// The judged hosts, at most 1,000.
    pub hosts: Vec<String>,
    /// The hosts that are not judged, at most 1,000.
    pub unjudged_hosts: Vec<String>,
    /// When the first and the last request for a judged host outside of the period came.
    #[serde(skip)]
    pub outside_span: [Option<Timestamp>; 2],
    /// Whether any request has a referrer.
    pub has_referrers: bool,
    /// The numbers of lines and requests.
    #[serde(flatten)]
    pub counts: LineCounts,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Unreadable lines by the id of the reason.
    pub unreadable_reasons: BTreeMap<String, u64>,
    /// The first lines that could not be read.
    pub examples: Vec<UnreadableLine>,
    /// Logs that could not be read to their end.
    pub damaged: Vec<DamagedLog>,
    /// Logs in which every request has an empty user agent.
    pub without_user_agents: Vec<String>,
    /// The published networks that were known.
    pub lists: Option<NetworkListUsage>,
    /// Whether a policy lists networks of crawlers.
    pub policy_networks: bool,
    /// Whether no robots.txt has a group, so that everything is allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_no_rules: bool,
    /// What the reader must know before the numbers, such as misspelt lines of robots.txt.
    pub cautions: Vec<String>,
    /// Whether the first of the rules was always in force, as far as is known.
    #[serde(skip)]
    pub is_undated: bool,
}

/// Lines and requests of logs, by what they are.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Lines that are not empty.
    pub lines: u64,
    /// Lines about connections without a request.
    pub no_request: u64,
    /// Messages of servers about start and errors.
    pub server_messages: u64,
    /// Requests in formats without user agents.
    pub no_user_agent: u64,
    /// Requests in lines that end with columns which are not read.
    pub unread_columns: u64,
    /// Requests in the period without a host, where several policies might have judged them.
    pub no_host: u64,
    /// Requests in the period to hosts that are not judged.
    pub other_hosts: u64,
    /// Requests outside the period that was asked for, to any host.
    pub outside_period: u64,
    /// Requests whose URL was disallowed when they came, even if they do not count.
    pub disallowed: u64,
    /// Requests of crawlers and tools from addresses that end with zeros, as if they were shortened.
    pub shortened_addresses: u64,
    /// Requests of crawlers and tools without a certain address of the client.
    pub no_address: u64,
    /// Bytes that were sent to visitors.
    pub visitors_bytes: u64,
}

/// A line that could not be read.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct UnreadableLine {
    pub file: String,
    pub line: u64,
    pub reason: String,
    pub text: String,
}

/// A log that could not be read to its end.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DamagedLog {
    pub file: String,
    pub error: String,
}

impl DamagedLog {
    /// The message for people.
    pub fn message(&self) -> String {
        format!(
            "{} is damaged or cut off: {}. It was read up to there.",
            self.file, self.error
        )
    }
}

/// How many lists of networks were used.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkListUsage {
    /// All lists.
    pub known: usize,
    /// Lists that may make a client a suspected impostor: their servers confirmed them within seven
    /// days.
    pub fresh: usize,
    /// When a list was last confirmed.
    #[serde(serialize_with = "rfc3339")]
    pub checked: Option<Timestamp>,
}

/// A rule, and the requests that it disallowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleCount {
    /// Its pattern.
    pub pattern: String,
    /// Requests.
    pub count: u64,
    /// The file and line.
    pub place: String,
}

/// The responses with one status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseStatusRow {
    /// The status.
    pub status: u16,
    /// All requests that were answered with it.
    pub requests: u64,
    /// These requests by UTC day, in order.
    pub days: Vec<TopEntry>,
    /// The first directories of these paths.
    pub sections: Vec<TopEntry>,
    /// The paths that were requested most, with the query if the response was a redirect or an error.
    pub paths: Vec<TopEntry>,
}

impl ResponseStatusRow {
    /// The first digit of the status, but 2 for 1xx and 304, which are no redirects and no errors.
    pub(super) fn class(&self) -> u16 {
        match self.status {
            304 => 2,
            status => status.max(200) / 100,
        }
    }
}

/// An entry of a list of frequent names or URLs, which is counted in bounded memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopEntry {
    /// The name or URL.
    pub name: String,
    /// Requests.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
    /// What these requests took; only for sections, paths, days and combinations of logs.
    #[serde(flatten)]
    pub usage: Option<KeyUsage>,
    /// How many different URLs have this combination of parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<u64>,
    /// Whether the audit left out entries of this list.
    #[serde(skip)]
    pub is_of_cut_list: bool,
}

impl TopEntry {
    /// The count with its error, as in `120` or `120 ± 3`.
    pub(super) fn count_words(&self) -> String {
        count_with_error(self.count, self.error)
    }
}

/// A count with the error that it may have, as in `120` or `120 ± 3`.
pub fn count_with_error(count: u64, error: u64) -> String {
    match error {
        0 => thousands(count),
        error => format!("{} ± {}", thousands(count), thousands(error)),
    }
}
