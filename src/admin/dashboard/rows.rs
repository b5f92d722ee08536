//! [`Row`]: what was done under a name by clients of one identity, as the tables of all pages show it. Keeps verified,
//! unverified and impostor apart, so that no crawler is charged with what others did in its name.

use super::charts::trend;
use super::format::{percent, thousands};
use super::layout::{crawler_link, samples_link};
use crate::state::history::{ByIdentity, Counts};
use serde::Serialize;

/// The label of unlisted bots, which `mode: enforce` alone does not refuse.
pub const UNLISTED: &str = "other";

/// Names that claim nothing which could be proven: unlisted bots, unlisted programs, and what is beyond the bound.
pub fn claims_nothing(id: &str) -> bool {
    matches!(id, "other" | "tool" | "overflow")
}

/// What an identity means for a name, in words.
pub fn in_words(id: &str, name: &str, identity: &str) -> String {
    match identity {
        _ if claims_nothing(id) => String::new(),
        "verified" => "verified".to_owned(),
        "impostor" => format!("impostor: proven not to be {name}"),
        _ => format!("claims to be {name}; nothing is proven"),
    }
}

/// What an unlisted bot would be refused for beyond `mode: enforce`; nothing of no request.
fn unlisted_in_words(would_refuse: u64) -> String {
    match would_refuse {
        0 => String::new(),
        number => format!("{} would be refused with purposes: {{ other: enforce }}", thousands(number)),
    }
}

/// A row of a table.
#[derive(Default)]
pub struct Row {
    pub href: String,
    pub name: String,
    /// What is proven of the name.
    pub says: String,
    /// The samples of its requests.
    pub samples: String,
    pub requests: String,
    pub robots_txt: String,
    pub broke: u64,
    pub hits: String,
    pub unproven: String,
    pub would_refuse: String,
    pub refused: String,
    pub compliance: String,
    /// When it first broke a rule, and last where that is another period.
    pub first: String,
    pub last: String,
    pub trend: String,
    pub purpose: &'static str,
}

impl Row {
    /// Of a crawler with this id and name, on a site or on all (an empty one). The row is not yet named.
    pub fn new(site: &str, (id, name): (&str, &str), identity: &'static str, counts: &Counts) -> Row {
        let count = |column| thousands(counts.get(column));
        // An impostor is refused whatever it asks for: what it would have done to the rules says nothing.
        let is_impostor = identity == "impostor";
        let would_refuse = counts.get("would_refuse");
        let (would_refuse, unlisted) = if id == UNLISTED { (0, would_refuse) } else { (would_refuse, 0) };
        Row {
            says: in_words(id, name, identity) + &unlisted_in_words(unlisted),
            samples: samples_link(&[("site", site), ("crawler", id), ("identity", identity)]),
            requests: thousands(counts.requests()),
            robots_txt: count("robots_txt"),
            broke: counts.broke(),
            hits: if is_impostor { "-".to_owned() } else { thousands(counts.broke()) },
            unproven: count("unproven"),
            would_refuse: thousands(would_refuse),
            refused: count("refused"),
            compliance: counts.compliance().map_or_else(|| "-".to_owned(), percent),
            ..Row::default()
        }
    }

    /// One for each identity that there are requests of.
    pub fn each(site: &str, (id, name): (&str, &str), counts: &ByIdentity) -> Vec<Row> {
        let some = counts.each().into_iter().filter(|(_, counts)| counts.requests() > 0);
        some.map(|(identity, counts)| Row::new(site, (id, name), identity, counts)).collect()
    }
}

/// What was done in the name of a crawler by clients of one identity.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrawlerRow {
    /// The registry's id, the policy's token, `other` or `tool`.
    pub id: String,
    /// What is proven of the name: `verified`, `unverified` or `impostor`.
    pub identity: &'static str,
    /// Requests among the unverified ones that come from outside of all lists of the operator, where reverse DNS is not
    /// asked. By whole days.
    pub suspected: u64,
    /// Requests of unlisted bots that would be refused if `purposes: { other: enforce }` were written, too; `counts` is
    /// without them.
    pub unlisted_would_refuse: u64,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: &'static str,
    /// What it did.
    pub counts: Counts,
    /// Requests that kept to the rules, of a hundred of which it is known.
    pub compliance: Option<f64>,
    /// When it first and last broke a rule; of impostors, when they came.
    pub broke: Option<(String, String)>,
    /// Requests of which it is known whether they broke a rule, and those that did, by hour, day or week.
    pub trend: Vec<(u64, u64)>,
}

impl CrawlerRow {
    /// As a row of the table of crawlers.
    pub fn shown(&self) -> Row {
        let class = match self.identity {
            "verified" => "bad",
            "impostor" => "impostor",
            _ => "claimed",
        };
        Row {
            href: crawler_link(&self.id),
            name: self.name.clone(),
            purpose: self.purpose,
            first: self.broke.as_ref().map(|(first, _)| first.clone()).unwrap_or_default(),
            last: self
                .broke
                .as_ref()
                .filter(|(first, last)| first != last)
                .map(|(_, last)| last.clone())
                .unwrap_or_default(),
            trend: trend(&self.trend, class),
            says: in_words(&self.id, &self.name, self.identity) + &unlisted_in_words(self.unlisted_would_refuse),
            ..Row::new("", (&self.id, &self.name), self.identity, &self.counts)
        }
    }
}
