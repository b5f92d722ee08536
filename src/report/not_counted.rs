//! [`NotCountedRequests`]: requests that robots.txt disallows, but that a report does not count as
//! violations. The [`NotCountedReason`] says why, for example because the crawler may still use an
//! older robots.txt. Most reasons end at a known time, and requests after that time count.

use super::{CrawlerRow, ReportSource, join_first};
use crate::numbers::plural_thousands;
use crate::record::RequestCounts;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::Kind;
use NotCountedReason::{Ambiguous, NotObserved, OlderCopy, PeersUnknown, PerhapsCached};
use askama::Template;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// The parts that one reason may have, by their ends.
const MAX_ENDS: usize = 3;
const HOUR: i64 = 3_600;

/// Why disallowed requests do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum NotCountedReason {
    /// robots.txt changed, and the crawler may use the previous version.
    #[default]
    OlderCopy,
    /// crawlgate has not observed the host for long enough: on the first day, or after a gap.
    NotObserved,
    /// A cache in front of crawlgate may answer crawlers.
    PerhapsCached,
    /// Another instance has not reported what it served.
    PeersUnknown,
    /// Parsers of robots.txt disagree about the URL.
    Ambiguous,
}

/// Requests that do not count, for one reason and end.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NotCountedRequests {
    /// The reason.
    pub reason: NotCountedReason,
    /// How many requests.
    pub requests: u64,
    /// Until when crawlers may use another robots.txt; `None` if the reason has no end.
    #[serde(serialize_with = "rfc3339")]
    pub until: Option<Timestamp>,
    /// Whether that time is before the end of the report.
    pub is_over: bool,
    /// The names of the crawlers that sent them.
    pub crawlers: Vec<String>,
    /// The sentence for people.
    pub sentence: String,
}

impl NotCountedReason {
    /// How many requests do not count for this reason.
    fn count_in(self, counts: &RequestCounts) -> u64 {
        match self {
            OlderCopy => counts.requests_of_kind(Kind::StaleCopy),
            NotObserved => counts
                .requests_of_kind(Kind::Unproven)
                .saturating_sub(counts.perhaps_cached() + counts.peers_unknown()),
            PerhapsCached => counts.perhaps_cached(),
            PeersUnknown => counts.peers_unknown(),
            Ambiguous => counts.requests_of_kind(Kind::Ambiguous),
        }
    }

    /// When requests count again; `None` if the reason has no end.
    fn doubt_ends_at(self, counts: &RequestCounts) -> Option<Timestamp> {
        match self {
            OlderCopy => counts.older_until(Kind::StaleCopy),
            NotObserved => counts.older_until(Kind::Unproven),
            PerhapsCached | PeersUnknown | Ambiguous => None,
        }
    }
}

/// The sentence about such requests.
#[derive(Template)]
#[template(path = "not_counted.txt")]
struct NotCountedText<'a> {
    part: &'a NotCountedRequests,
    source: ReportSource,
}

impl NotCountedText<'_> {
    /// The robots.txt that crawlers may use in place of the one in force.
    fn older_copy(&self) -> &'static str {
        match (self.part.reason, self.source) {
            (OlderCopy, _) => "an older robots.txt",
            (_, ReportSource::History) => "a robots.txt from before crawlgate watched the site",
            (_, ReportSource::Logs | ReportSource::LogsByPolicies) => {
                "an older robots.txt that you did not give"
            }
        }
    }
}

/// Groups the requests that do not count by reason and end, without impostors and tools. Ends within
/// the same hour are one. After [`MAX_ENDS`] ends, later ones are added to the last.
pub fn group_by_reason(
    crawlers: &[CrawlerRow],
    source: ReportSource,
    now: Timestamp,
) -> Vec<NotCountedRequests> {
    let mut parts = Vec::new();
    for reason in NotCountedReason::VARIANTS {
        let mut rows: Vec<(Option<Timestamp>, u64, &CrawlerRow)> = Vec::new();
        for row in crawlers {
            let requests = reason.count_in(&row.counts);
            if requests > 0 && row.is_of_crawler() {
                rows.push((reason.doubt_ends_at(&row.counts), requests, row));
            }
        }
        rows.sort_by_key(|(until, ..)| *until);
        let mut ends: Vec<NotCountedRequests> = Vec::new();
        for (until, requests, row) in rows {
            let is_full = ends.len() == MAX_ENDS;
            let same = ends.last_mut().filter(|last| {
                let hour = |moment: Timestamp| moment.0.div_euclid(HOUR);
                is_full || last.until.map(hour) == until.map(hour)
            });
            match same {
                Some(last) => last.add(until, requests, row),
                None => {
                    let mut first = NotCountedRequests {
                        reason: *reason,
                        ..NotCountedRequests::default()
                    };
                    first.add(until, requests, row);
                    ends.push(first);
                }
            }
        }
        for end in &mut ends {
            end.is_over = end.until.is_some_and(|until| until <= now);
            end.sentence = NotCountedText { part: end, source }.to_string();
        }
        parts.append(&mut ends);
    }
    parts
}

impl NotCountedRequests {
    fn add(&mut self, until: Option<Timestamp>, requests: u64, row: &CrawlerRow) {
        self.until = self.until.max(until);
        self.requests += requests;
        if !self.crawlers.contains(&row.name) {
            self.crawlers.push(row.name.clone());
        }
    }

    /// The first crawlers in one line, and how many more there are.
    pub(super) fn crawler_names(&self) -> String {
        const NAMED: usize = 6;
        join_first(&self.crawlers, NAMED)
    }
}
