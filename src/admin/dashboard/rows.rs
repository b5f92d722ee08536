//! Rows of the tables of crawlers. [`CrawlerRow`]: the counts of one crawler name and one identity
//! (`verified`, `unverified` or `impostor`). [`Row`]: a `CrawlerRow` with its link and its text.
//! Each identity has its own row, so that the requests of impostors do not count against the
//! crawler.

use crate::crawlers::{Crawler, Registry};
use crate::record::{ByIdentity, Counts};
use crate::verdict::KnownIdentity;
use serde::Serialize;

/// The label of unlisted bots, which `mode: enforce` alone does not refuse.
pub const UNLISTED: &str = "other";

/// The crawler of the registry that has an id.
pub fn known(id: &str) -> Option<&'static Crawler> {
    Registry::builtin()
        .crawlers()
        .iter()
        .find(|crawler| crawler.id == id)
}

/// What people call the crawler of an id: its name in the registry, words for the collective
/// labels, else the id itself (a token of a policy).
pub fn name(id: &str) -> String {
    let name = match (id, known(id)) {
        (_, Some(crawler)) => &crawler.name,
        ("other", None) => "unlisted bots",
        ("tool", None) => "unlisted programs",
        ("overflow", None) => "crawlers beyond the bound",
        (id, None) => id,
    };
    name.to_owned()
}

/// Names that claim nothing which could be proven: unlisted bots, unlisted programs, and what is
/// beyond the bound.
pub fn claims_nothing(id: &str) -> bool {
    matches!(id, "other" | "tool" | "overflow")
}

/// What an identity proves of a name, in words; empty for a label that claims nothing. `name` is
/// the crawler's name for people.
pub fn in_words(id: &str, name: &str, identity: KnownIdentity) -> String {
    match identity {
        _ if claims_nothing(id) => String::new(),
        KnownIdentity::Verified => "verified".to_owned(),
        KnownIdentity::Impostor => format!("impostor: proven not to be {name}"),
        KnownIdentity::Unverified => format!("claims to be {name}; nothing is proven"),
    }
}

/// The counts of one crawler name and one identity.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrawlerRow {
    /// The registry's id, the policy's token, `other` or `tool`.
    pub id: String,
    /// What is proven of the name.
    pub identity: KnownIdentity,
    /// Requests among the unverified ones that come from outside of all lists of the operator,
    /// where reverse DNS is not asked. By whole days.
    pub suspected: u64,
    /// Requests of unlisted bots that would be refused if `purposes: { other: enforce }` were
    /// written, too; `counts` is without them.
    pub unlisted_would_refuse: u64,
    /// The name of the crawler.
    pub name: String,
    /// The purpose of the crawler; empty for an unlisted one.
    pub purpose: &'static str,
    /// The counts.
    pub counts: Counts,
    /// The share of requests that obeyed the rules, in percent of those of which it is known;
    /// `None` where most disallowed requests do not count.
    pub compliance: Option<f64>,
    /// When it first and last broke a rule; of impostors, when they came.
    pub broke: Option<(String, String)>,
    /// Requests of which it is known whether they broke a rule, and those that did, by hour, day or
    /// week.
    pub trend: Vec<(u64, u64)>,
}

impl CrawlerRow {
    /// A row of these counts, without times. For unlisted bots the requests that would be refused
    /// move from the counts to `unlisted_would_refuse`.
    pub fn new(id: &str, identity: KnownIdentity, mut counts: Counts) -> CrawlerRow {
        let unlisted_would_refuse = if id == UNLISTED {
            counts.would_refuse()
        } else {
            0
        };
        counts.subtract_would_refuse(unlisted_would_refuse);
        CrawlerRow {
            id: id.to_owned(),
            identity,
            unlisted_would_refuse,
            name: name(id),
            purpose: known(id).map_or("", |crawler| crawler.purpose.name()),
            compliance: counts.compliance(),
            counts,
            ..CrawlerRow::default()
        }
    }
}

/// A row of a table.
pub struct Row {
    /// The link of the name.
    pub href: String,
    pub name: String,
    /// What is proven of the name.
    pub says: String,
    /// The site of the counts; empty for all sites.
    pub site: String,
    pub of: CrawlerRow,
}

impl Row {
    /// A row with a link to the page of the crawler and a text about its identity. Of unlisted bots
    /// the text says how many requests `other: enforce` would refuse.
    pub fn new(site: &str, of: CrawlerRow) -> Row {
        let mut says = in_words(&of.id, &of.name, of.identity);
        if of.unlisted_would_refuse > 0 {
            let number = super::format::thousands(of.unlisted_would_refuse);
            says.push_str(&format!(
                "{number} would be refused with purposes: {{ other: enforce }}"
            ));
        }
        Row {
            href: super::layout::crawler_link(&of.id),
            name: of.name.clone(),
            says,
            site: site.to_owned(),
            of,
        }
    }

    /// A row for each identity with requests.
    pub fn each(site: &str, id: &str, counts: &ByIdentity) -> Vec<Row> {
        let some = counts.iter().filter(|(_, counts)| counts.requests() > 0);
        some.map(|(identity, counts)| Row::new(site, CrawlerRow::new(id, identity, *counts)))
            .collect()
    }
}
