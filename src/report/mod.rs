//! [`Report`]: which crawlers break the rules of a site, which pretend to be others, which obey,
//! and what does not count and until when. It is made from the history ([`Report::from_history`])
//! or from access logs (`audit`), and shown as text, HTML ([`html`]), JSON or Markdown: `report`,
//! `audit` and the overview of the dashboard are this one model.

mod about_log;
pub mod charts;
mod headline;
mod history;
mod html;
pub mod links;
mod log;
mod markdown;
mod not_counted;
mod period;
mod row;
#[cfg(test)]
mod tests;
mod text;

pub use html::{Content, Numbers, html};
pub use log::{Damaged, ListsUsed, LogFacts, RuleCount, Top, UnreadableLine};
pub use markdown::markdown;
pub use not_counted::NotCounted;
pub use period::Period;
pub use row::{
    ClientIdentity, CrawlerRow, Example, Part, ToBlock, claims_nothing, crawler_name, known,
};
pub use text::{table, text};

use crate::record::Counts;
use crate::time::{Timestamp, rfc3339};
use charts::Bar;
use serde::{Deserialize, Serialize};

/// What crawlers did in a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The first sentence, with numbers: who breaks the rules.
    pub headline: String,
    /// What was blocked, and what enforcement would block; empty if neither.
    pub enforcement: String,
    /// The beginning of the period; `None` for a log without requests.
    #[serde(serialize_with = "rfc3339")]
    pub from: Option<Timestamp>,
    /// The end of the period.
    #[serde(serialize_with = "rfc3339")]
    pub to: Option<Timestamp>,
    /// What the report is made from.
    pub source: Source,
    /// The site that it is about; empty for all sites.
    pub site: String,
    /// Whose counts these are, where several instances share a store; else empty.
    pub instances: String,
    /// Requests by crawlers and under their names. Tools and visitors are not in it.
    pub totals: Totals,
    /// Requests that do not count, by reason.
    pub not_counted: Vec<NotCounted>,
    /// Crawlers by name and identity, in the order of the parts; in each part those with most
    /// requests against the rules come first, then those with most requests.
    pub crawlers: Vec<CrawlerRow>,
    /// Names that unknown bots give themselves, with their requests.
    pub unknown_bots: Vec<Top>,
    /// Requests by visitors.
    pub visitors: u64,
    /// Requests for hosts without a policy, and requests that were blocked before they were judged.
    pub unclaimed: u64,
    /// Requests by hour, day or week.
    pub periods: Vec<Bar>,
    /// What crawlers did on each site; empty in the report of one site or of a log.
    pub sites: Vec<SiteRow>,
    /// Rules by the requests that they disallowed; of a log alone.
    pub rules: Vec<RuleCount>,
    /// Disallowed URLs by their requests, without the query; of a log alone.
    pub urls: Vec<Top>,
    /// What was read, where the report is made from logs.
    pub log: Option<LogFacts>,
}

/// What a report is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The counts of a running crawlgate.
    #[default]
    History,
    /// Access logs, judged by the robots.txt files that were in force.
    Logs,
    /// Access logs, judged by policies that need not have been in force.
    LogsByPolicies,
}

/// Sums over all crawlers. Impostors are in `pretended` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Totals {
    pub requests: u64,
    pub against_rules: u64,
    pub not_counted: u64,
    pub blocked: u64,
    /// Requests that enforcement would block; without those by unknown bots.
    pub would_block: u64,
    /// Requests by unknown bots that `purposes: { other: enforce }` would block.
    pub unknown_bots_would_block: u64,
    /// Requests by clients that only used the name of a crawler.
    pub pretended: u64,
    /// Requests by tools, which are in no other sum.
    pub tools: u64,
}

/// What crawlers did on a site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Its name.
    pub site: String,
    /// The mode of its policy, where it is known.
    pub mode: Option<String>,
    /// What crawlers did, without impostors.
    pub counts: Counts,
    /// Requests by impostors.
    pub pretended: u64,
}

impl Report {
    /// The rows of a part.
    pub fn part(&self, part: Part) -> impl Iterator<Item = &CrawlerRow> {
        self.crawlers.iter().filter(move |row| row.part == part)
    }

    /// Whether unknown bots are to be named apart: they came, and no other part names them.
    fn lists_unknown_bots(&self) -> bool {
        let mut rows = self.crawlers.iter();
        let is_named = rows.any(|row| {
            row.is_unknown_bots() && matches!(row.part, Part::BreaksRules | Part::DoesNotCount)
        });
        !self.unknown_bots.is_empty() && !is_named
    }

    /// The rows whose latest request against the rules is known.
    fn examples(&self) -> Vec<&CrawlerRow> {
        let rows = self.crawlers.iter();
        rows.filter(|row| row.example.is_some()).collect()
    }

    /// The rows with requests that seem to come from somebody else; one row each of a name.
    fn suspected(&self) -> Vec<&CrawlerRow> {
        let rows = self.crawlers.iter();
        rows.filter(|row| row.suspected > 0).collect()
    }

    /// What to write into policies so that crawlers which pass are blocked, each line once.
    fn to_block(&self) -> Vec<&ToBlock> {
        let mut lines: Vec<&ToBlock> = Vec::new();
        for row in self.part(Part::BreaksRules) {
            if let Some(to_block) = &row.to_block
                && !lines.contains(&to_block)
            {
                lines.push(to_block);
            }
        }
        lines
    }

    /// Sorts the rows, adds them up, and writes the sentences. `now` decides which older copies may
    /// still be in use.
    pub fn finish(mut self, now: Timestamp) -> Report {
        for row in &mut self.crawlers {
            row.classify(now);
        }
        for row in &mut self.crawlers {
            if row.is_unknown_bots() && !self.unknown_bots.is_empty() {
                row.name = names_of_bots(&self.unknown_bots);
            }
        }
        self.crawlers.sort_by_cached_key(CrawlerRow::order);
        let mut totals = Totals::default();
        for row in &self.crawlers {
            row.add_to(&mut totals);
        }
        self.not_counted = not_counted::by_reason(&self.crawlers, self.source, now);
        totals.not_counted = self.not_counted.iter().map(|part| part.requests).sum();
        self.totals = totals;
        self.headline = headline::headline(&self);
        self.enforcement = headline::enforcement(&self);
        self
    }
}

/// The first two names of unknown bots, and how many more there are.
fn names_of_bots(bots: &[Top]) -> String {
    let mut names: Vec<String> = Vec::new();
    for bot in bots.iter().take(2) {
        names.push(crate::printable::printable(bot.name.as_bytes()));
    }
    if bots.len() > 2 {
        names.push(format!("{} more", bots.len() - 2));
    }
    names.join(", ")
}

/// The first `most` of these words, separated by commas, and how many more there are.
pub fn join_first(mut words: Vec<String>, most: usize) -> String {
    if words.len() > most {
        let more = words.len() - most;
        words.truncate(most);
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}
