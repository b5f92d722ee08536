//! Compares old and new rules for `crawlgate diff`. The old and the new rules ([`ComparedRules`])
//! are each a directory of policies, a single policy or a single robots.txt. [`Comparison`] judges
//! URLs by the old and by the new rules. It makes the URLs from the path patterns in the rules,
//! unless the user gives a list of URLs or an access log. The result is a [`Difference`]: crawlers
//! that are treated differently, changed header lines of pages, and changed settings.

mod comparison;
mod crawlers;
mod pairs;
mod response;
mod settings;
mod show;
mod witnesses;

pub use comparison::Comparison;
pub use show::{render_csv, render_markdown, render_text};

use crate::policy::Snapshot;
use serde::Serialize;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::BTreeMap;

use AccessEffect::*;

/// The old or the new rules.
pub struct ComparedRules {
    /// The file or directory, for messages.
    pub name: String,
    /// The sites.
    pub snapshot: Snapshot,
    /// Whether it is a single file. Two single files are compared whatever their hosts are.
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
    /// The only crawlers that were compared, with commas; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawler: Option<String>,
    /// The kind of URLs or requests that were compared.
    pub basis: ComparisonBasis,
    /// URLs or requests that were compared.
    pub compared: u64,
    /// Requests for hosts that neither side has a policy for.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_hosts: u64,
    /// Requests of clients that only pretend to be a crawler. They count as requests of others.
    #[serde(skip_serializing_if = "is_zero")]
    pub pretended: u64,
    /// The differences, by site.
    pub sites: Vec<SiteDifference>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What two sets of rules are compared on.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonBasis {
    /// URLs that the patterns of both sides match.
    Patterns,
    /// URLs from a file.
    Urls,
    /// Requests from an access log.
    Log,
}

impl Difference {
    /// Whether a log was compared, and no crawler gains access. That does not show that nothing
    /// opens: crawlers that obey never request what is closed to them.
    fn may_hide_gains(&self) -> bool {
        self.basis == ComparisonBasis::Log && !self.has_effect(Gains)
    }

    /// Whether a change has this effect on a crawler.
    pub fn has_effect(&self, effect: AccessEffect) -> bool {
        self.sites
            .iter()
            .flat_map(|site| &site.access)
            .any(|change| change.effect == effect)
    }
}

/// The differences on some hosts.
#[derive(Serialize)]
pub struct SiteDifference {
    /// Whether both sides are robots.txt files, so that no policy is involved.
    #[serde(skip)]
    pub is_plain: bool,
    /// The hosts, or words for all hosts that no other policy names.
    pub hosts: Vec<String>,
    /// The old policy file or robots.txt; `None` where there was none.
    pub old: Option<String>,
    /// The new one.
    pub new: Option<String>,
    /// How many crawlers either side judges.
    pub crawlers: usize,
    /// The crawlers whose requests in a log change, those with the most such requests first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_crawler: Vec<CrawlerRequests>,
    /// Verdicts and answers that change.
    pub access: Vec<AccessChange>,
    /// Tags and signals that change.
    pub responses: Vec<PageHeaderChange>,
    /// Settings that change.
    pub settings: Vec<SettingChange>,
    /// Parts that could not be compared completely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The requests of a crawler in a log.
#[derive(Default, Serialize)]
pub struct CrawlerRequests {
    /// Its label.
    pub crawler: String,
    /// All that were compared.
    pub requests: u64,
    /// Those that change, by the effect.
    pub changes: BTreeMap<AccessEffect, ChangedRequests>,
}

/// Requests of a crawler that change.
#[derive(Default, Serialize)]
pub struct ChangedRequests {
    /// All of them.
    pub requests: u64,
    /// Their different paths, without the query.
    pub paths: u64,
}

/// A change of verdict or answer for some crawlers.
#[derive(Serialize)]
pub struct AccessChange {
    /// Whether they lose or gain access.
    pub effect: AccessEffect,
    /// Registry ids, tokens of the policy, `other` and `tool`.
    pub crawlers: Vec<String>,
    /// The old treatment.
    pub old: CrawlerTreatment,
    /// The new treatment.
    pub new: CrawlerTreatment,
    /// The URLs or requests for which it changes.
    #[serde(flatten)]
    pub found: Occurrences,
}

/// The URLs or requests for which something changes.
#[derive(Default, Serialize)]
pub struct Occurrences {
    /// The shortest URL.
    pub url: String,
    /// The URLs for which access changes, each with its requests of crawlers (1 without a log).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub urls: BTreeMap<String, u64>,
    /// URLs, or requests of crawlers.
    pub count: u64,
    /// Requests of visitors, tools, and clients that only pretend to be a crawler.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: u64,
    /// The number of the URL or request counted last.
    #[serde(skip)]
    last: u64,
}

impl Occurrences {
    /// Whether there is only one, with or without the requests of others.
    fn is_one(&self, with_others: bool) -> bool {
        self.count + if with_others { self.others } else { 0 } == 1
    }

    /// Counts a URL or request, and keeps its URL if it is the shortest so far. `number` identifies
    /// it: a second call with the same number, for another crawler, does not count it again. Returns
    /// whether it counted.
    fn add(&mut self, number: u64, url: &str, is_crawler: bool) -> bool {
        let is_new = self.last != number;
        let counted = if is_crawler {
            &mut self.count
        } else {
            &mut self.others
        };
        *counted += u64::from(is_new);
        self.last = number;
        if self.url.is_empty() || (url.len(), url) < (self.url.len(), self.url.as_str()) {
            self.url = url.to_owned();
        }
        is_new
    }
}

/// The effect of a change of access on crawlers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessEffect {
    /// Requests get less far than before.
    Loses,
    /// Requests get further.
    Gains,
    /// Requests get as far as before, with another answer.
    Changes,
}

impl AccessEffect {
    /// Words for people.
    fn words(self) -> &'static str {
        match self {
            Loses => "lose access",
            Gains => "gain access",
            Changes => "get another answer",
        }
    }

    fn from_treatments(old: &CrawlerTreatment, new: &CrawlerTreatment) -> AccessEffect {
        match new.access_rank().cmp(&old.access_rank()) {
            Less => Loses,
            Greater => Gains,
            Equal => Changes,
        }
    }
}

/// The verdict on a crawler's request, and the action, as texts.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CrawlerTreatment {
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
    /// Whether this line of a file is misspelt, so that other crawlers than Google's may ignore it.
    #[serde(rename = "misspelt", skip_serializing_if = "std::ops::Not::not")]
    pub is_misspelt: bool,
    /// `file:line:column` of the line behind the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl CrawlerTreatment {
    /// How far a request gets: 0 if it is blocked, slowed down, paused or asked for a licence; 1 if
    /// it passes although it is disallowed; 2 otherwise.
    fn access_rank(&self) -> u8 {
        let is_answered = ["block", "slow", "license", "pause"]
            .iter()
            .any(|action| self.action.starts_with(action));
        match self.verdict {
            _ if is_answered => 0,
            "disallowed" => 1,
            _ => 2,
        }
    }
}

/// Changed header lines of pages.
#[derive(Serialize)]
pub struct PageHeaderChange {
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

/// A changed setting that does not depend on the URL.
#[derive(Serialize)]
pub struct SettingChange {
    /// Its name in policies.
    pub setting: String,
    /// Its value on the old side.
    pub old: String,
    /// Its value on the new side.
    pub new: String,
    /// The affected crawlers; empty for a setting of the site.
    pub crawlers: Vec<String>,
}
