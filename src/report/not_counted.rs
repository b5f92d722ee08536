//! [`NotCounted`]: disallowed requests that accuse no crawler, with the [`Reason`] and until when
//! that is so.

use super::{CrawlerRow, Part, Source, join_first};
use crate::numbers::counted;
use crate::record::Counts;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::Kind;
use askama::Template;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

/// Different ends of one reason.
const MAX_ENDS: usize = 3;
const HOUR: i64 = 3_600;

/// Why requests do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// robots.txt changed, and the crawler may use the one before.
    OlderCopy,
    /// crawlgate has not observed the host for long enough: on the first day, or after a gap.
    NotObserved,
    /// A cache in front of crawlgate may answer crawlers.
    PerhapsCached,
    /// Another instance has not reported what it served.
    PeersUnknown,
    /// Parsers read the URL in different ways.
    Ambiguous,
}

/// Requests that do not count for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCounted {
    /// Why.
    pub reason: Reason,
    /// How many.
    pub requests: u64,
    /// The latest time until which one of them could rest on another robots.txt; `None` where no
    /// time ends it.
    #[serde(serialize_with = "rfc3339")]
    pub until: Option<Timestamp>,
    /// Whether that time is over at the end of the report.
    pub is_over: bool,
    /// The names of the crawlers that sent them.
    pub crawlers: Vec<String>,
    /// What that means, in a sentence or two.
    pub sentence: String,
}

impl Reason {
    /// The requests of these counts that do not count for this reason.
    fn requests(self, counts: &Counts) -> u64 {
        match self {
            Reason::OlderCopy => counts.of_kind(Kind::StaleCopy),
            Reason::NotObserved => counts
                .of_kind(Kind::Unproven)
                .saturating_sub(counts.perhaps_cached() + counts.peers_unknown()),
            Reason::PerhapsCached => counts.perhaps_cached(),
            Reason::PeersUnknown => counts.peers_unknown(),
            Reason::Ambiguous => counts.of_kind(Kind::Ambiguous),
        }
    }

    /// The time that ends it for the requests of these counts, if one does.
    fn until(self, counts: &Counts) -> Option<Timestamp> {
        match self {
            Reason::OlderCopy => counts.older_until(Kind::StaleCopy),
            Reason::NotObserved => counts.older_until(Kind::Unproven),
            Reason::PerhapsCached | Reason::PeersUnknown | Reason::Ambiguous => None,
        }
    }
}

/// What is said of such requests.
#[derive(Template)]
#[template(path = "not_counted.txt")]
struct Sentence<'a> {
    part: &'a NotCounted,
    source: Source,
}

impl Sentence<'_> {
    /// What crawlers may use in place of the robots.txt in force.
    fn older_copy(&self) -> &'static str {
        match (self.part.reason, self.source) {
            (Reason::OlderCopy, _) => "the robots.txt before the last change",
            (_, Source::History) => "a robots.txt from before crawlgate watched this site",
            (_, Source::Logs | Source::LogsByPolicies) => {
                "a robots.txt from before the first one that you gave"
            }
        }
    }
}

/// The requests of crawlers that do not count, by reason and end. Those of pretenders and tools are
/// left out. Ends within an hour are one; of each reason there are at most `MAX_ENDS`.
pub(super) fn by_reason(
    crawlers: &[CrawlerRow],
    source: Source,
    now: Timestamp,
) -> Vec<NotCounted> {
    let mut parts = Vec::new();
    for reason in Reason::VARIANTS {
        let mut rows: Vec<(Option<Timestamp>, u64, &CrawlerRow)> = Vec::new();
        for row in crawlers {
            let requests = reason.requests(&row.counts);
            if requests > 0 && !matches!(row.part, Part::Pretends | Part::Tool) {
                let until = reason.until(&row.counts);
                rows.push((until, requests, row));
            }
        }
        rows.sort_by_key(|(until, ..)| *until);
        let mut ends: Vec<NotCounted> = Vec::new();
        for (until, requests, row) in rows {
            let is_full = ends.len() == MAX_ENDS;
            let same = ends.last_mut().filter(|last| {
                let hour = |moment: Timestamp| moment.0.div_euclid(HOUR);
                is_full || last.until.map(hour) == until.map(hour)
            });
            match same {
                Some(last) => last.add(until, requests, row),
                None => {
                    let mut first = NotCounted::new(*reason);
                    first.add(until, requests, row);
                    ends.push(first);
                }
            }
        }
        for end in &mut ends {
            end.is_over = end.until.is_some_and(|until| until <= now);
            end.sentence = Sentence { part: end, source }.to_string();
        }
        parts.append(&mut ends);
    }
    parts
}

impl NotCounted {
    fn new(reason: Reason) -> NotCounted {
        NotCounted {
            reason,
            requests: 0,
            until: None,
            is_over: false,
            crawlers: Vec::new(),
            sentence: String::new(),
        }
    }

    fn add(&mut self, until: Option<Timestamp>, requests: u64, row: &CrawlerRow) {
        self.until = self.until.max(until);
        self.requests += requests;
        if !self.crawlers.contains(&row.name) {
            self.crawlers.push(row.name.clone());
        }
    }

    /// The crawlers in one line: the first six, and how many more there are.
    pub(super) fn names(&self) -> String {
        const NAMED: usize = 6;
        join_first(self.crawlers.clone(), NAMED)
    }
}
