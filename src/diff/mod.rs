//! Compares old and new rules for `crawlgate diff`: what changes for crawlers? [`Comparison`]
//! compares two [`Side`]s, each a set of policies or a single file. It makes URLs from the path
//! patterns of both sides, or takes URLs and requests from the caller. [`Difference`] is the
//! result: changed verdicts and answers for crawlers, changed header lines of pages, changed
//! settings.

mod comparison;
mod crawlers;
mod pairs;
mod response;
mod settings;
mod show;
mod witnesses;

pub use comparison::Comparison;
pub use show::{markdown, text};

use crate::policy::Snapshot;
use serde::Serialize;
use std::cmp::Ordering;

/// One of the two sets of rules that are compared.
pub struct Side {
    /// Its name in messages: a file or a directory.
    pub name: String,
    /// Its sites.
    pub snapshot: Snapshot,
    /// Whether it was given as a single file: two single files are compared whatever their hosts
    /// are.
    pub is_one_file: bool,
}

/// The result of a comparison.
#[derive(Serialize)]
pub struct Difference {
    /// The name of the old side.
    pub old: String,
    /// The name of the new side.
    pub new: String,
    /// Whether anything differs.
    pub changed: bool,
    /// The kind of URLs or requests that were compared.
    pub basis: Basis,
    /// URLs or requests that were compared.
    pub compared: u64,
    /// Requests for hosts that neither side has a policy for.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_hosts: u64,
    /// The differences, by site.
    pub sites: Vec<SiteDifference>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The URLs or requests that two sides are compared on.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// URLs that the patterns of both sides match.
    Patterns,
    /// URLs from a file.
    Urls,
    /// Requests from an access log.
    Log,
}

/// The differences on some hosts.
#[derive(Serialize)]
pub struct SiteDifference {
    /// The hosts; `every other host` for those that no policy names.
    pub hosts: Vec<String>,
    /// The old policy file or robots.txt; `None` where there was none.
    pub old: Option<String>,
    /// The new one.
    pub new: Option<String>,
    /// Crawlers that are judged here by either side.
    pub crawlers: usize,
    /// Verdicts and answers that change.
    pub access: Vec<AccessChange>,
    /// Tags and signals that change.
    pub responses: Vec<ResponseChange>,
    /// Settings that change, whatever the URL is.
    pub settings: Vec<SettingChange>,
    /// Parts that could not be compared completely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Some crawlers get another verdict or another answer.
#[derive(Serialize)]
pub struct AccessChange {
    /// Whether they lose or gain access.
    pub effect: Effect,
    /// Registry ids, tokens of the policy, `other` and `tool`.
    pub crawlers: Vec<String>,
    /// The ruling of the old side.
    pub old: Ruling,
    /// The ruling of the new side.
    pub new: Ruling,
    /// The URLs or requests for which it changes.
    #[serde(flatten)]
    pub found: Occurrences,
}

/// The URLs or requests for which something changes.
#[derive(Default, Serialize)]
pub struct Occurrences {
    /// The shortest URL.
    pub url: String,
    /// URLs, or requests of crawlers.
    pub count: u64,
    /// Requests of people and tools: tags are not for them.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: u64,
    /// The number of the URL or request that was counted last.
    #[serde(skip)]
    last: u64,
}

impl Occurrences {
    /// Counts a URL or request, and keeps its URL if it is the shortest so far. `number` is its
    /// running number: with the same number as in the last call it is not counted again, so that a
    /// URL counts once, however many crawlers it is about.
    fn add(&mut self, number: u64, url: &str, is_crawler: bool) {
        let counted = if is_crawler {
            &mut self.count
        } else {
            &mut self.others
        };
        *counted += u64::from(self.last != number);
        self.last = number;
        if self.url.is_empty() || (url.len(), url) < (self.url.len(), self.url.as_str()) {
            self.url = url.to_owned();
        }
    }
}

/// The effect of a change of access on crawlers.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// They may do less than before.
    Loses,
    /// They may do more.
    Gains,
    /// They get another answer to what they may do as before.
    Changes,
}

impl Effect {
    /// The effect of a change from the old to the new ruling, by how far a request gets.
    fn of(old: &Ruling, new: &Ruling) -> Effect {
        match new.openness().cmp(&old.openness()) {
            Ordering::Less => Effect::Loses,
            Ordering::Greater => Effect::Gains,
            Ordering::Equal => Effect::Changes,
        }
    }
}

/// The verdict for a crawler, and the action on its request.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Ruling {
    /// `allowed`, `disallowed`, `not_bound` or `not_a_crawler`.
    pub verdict: &'static str,
    /// The action: `pass`, `block 403`, ...
    pub action: String,
    /// What enforcement would do, where it is only observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<String>,
    /// The line of robots.txt that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// `file:line:column` of the line behind the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Ruling {
    /// How far a request gets: 0 if it is blocked, slowed down, paused or needs a licence; 1 if it
    /// passes although it is disallowed; 2 otherwise.
    fn openness(&self) -> u8 {
        let is_answered = ["block", "slow", "license", "pause"]
            .iter()
            .any(|action| self.action.starts_with(action));
        match self.verdict {
            _ if is_answered => 0,
            "disallowed" => 1,
            _ => 2,
        }
    }

    /// Whether a crawler notices no difference: verdict and actions are the same. The rule behind
    /// them plays no role.
    fn is_like(&self, other: &Ruling) -> bool {
        (self.verdict, &self.action, &self.would) == (other.verdict, &other.action, &other.would)
    }
}

/// Pages get other header lines.
#[derive(Serialize)]
pub struct ResponseChange {
    /// The lines.
    #[serde(flatten)]
    pub lines: HeaderChange,
    /// The URLs or requests for which they change.
    #[serde(flatten)]
    pub found: Occurrences,
}

/// Header lines that differ.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HeaderChange {
    /// `X-Robots-Tag`, or `signals` for the lines about the use of the content.
    pub field: &'static str,
    /// The lines of the old side.
    pub old: Vec<String>,
    /// The lines of the new side.
    pub new: Vec<String>,
    /// The type of the response.
    pub content_type: String,
    /// The status of the response.
    pub status: u16,
}

/// Something that changes whatever the URL is.
#[derive(Serialize)]
pub struct SettingChange {
    /// Its name in policies.
    pub setting: &'static str,
    /// Its value on the old side.
    pub old: String,
    /// Its value on the new side.
    pub new: String,
    /// The crawlers that it changes for; empty where it is about the site.
    pub crawlers: Vec<String>,
}
