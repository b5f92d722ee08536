//! [`CrawlerRow`]: the requests under one crawler's name by clients of one identity, and the
//! [`Part`] of the report that it belongs to. A user agent is a claim, so verified crawlers,
//! clients that are not verified, and clients that pretend have rows of their own.

use super::{RuleCount, Totals};
use crate::crawlers::{Crawler, Purpose, Registry};
use crate::record::Counts;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::{Kind, KnownIdentity};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use strum::{IntoStaticStr, VariantArray};

/// The label of bots that the registry does not know.
pub(super) const UNKNOWN_BOTS: &str = "other";
/// The label of tools that the registry does not know.
const TOOLS: &str = "tool";
/// The label of crawlers beyond the bound of the counts.
const OVERFLOW: &str = "overflow";

/// Who sent requests under a crawler's name.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ClientIdentity {
    /// The crawler: it is proven.
    Verified,
    /// It is not known.
    Unverified,
    /// Another client, it seems: the address is outside of the crawler's networks. A log proves
    /// no more.
    SuspectedImpostor,
    /// Another client: it is proven.
    Impostor,
}

impl ClientIdentity {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            ClientIdentity::Verified => "verified",
            ClientIdentity::Unverified => "not verified",
            ClientIdentity::SuspectedImpostor => "probably pretends",
            ClientIdentity::Impostor => "pretends",
        }
    }
}

impl From<KnownIdentity> for ClientIdentity {
    fn from(identity: KnownIdentity) -> ClientIdentity {
        match identity {
            KnownIdentity::Verified => ClientIdentity::Verified,
            KnownIdentity::Unverified => ClientIdentity::Unverified,
            KnownIdentity::Impostor => ClientIdentity::Impostor,
        }
    }
}

/// The part of a report that a row belongs to, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It has requests against the rules.
    BreaksRules,
    /// It uses the name of a crawler that it is not.
    Pretends,
    /// It has disallowed requests, and none of them counts.
    DoesNotCount,
    /// It obeys.
    Obeys,
    /// The rules do not bind it, or its requests were not judged.
    #[default]
    NotJudged,
    /// A tool, which anybody may run.
    Tool,
}

/// A request that broke the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// When it came.
    #[serde(serialize_with = "rfc3339")]
    pub time: Option<Timestamp>,
    /// The site that it came to; empty in a log.
    pub site: String,
    /// Method, host and target; empty where only the rule is known.
    pub request: String,
    /// The line of robots.txt that disallows it; empty for a trap.
    pub rule: String,
    /// Where that line is written: `file:line:column`.
    pub place: String,
}

/// What to write into a policy, so that a crawler is blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToBlock {
    /// The file, with the line of its `enforcement` if it has one.
    pub place: String,
    /// The part of the file that the line belongs into, like `enforcement.agents`; empty where the
    /// line stands alone.
    pub under: String,
    /// The line to write.
    pub line: String,
}

/// The requests under one crawler's name by clients of one identity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrawlerRow {
    /// The registry's id, the token of a policy, `other` (unknown bots) or `tool`.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Its purpose, by the registry.
    pub purpose: Option<Purpose>,
    /// `None` for names that claim nothing which could be proven.
    pub identity: Option<ClientIdentity>,
    /// The part of the report that it belongs to.
    pub part: Part,
    /// Its requests.
    pub counts: Counts,
    /// When it first broke a rule in the period.
    #[serde(serialize_with = "rfc3339")]
    pub first: Option<Timestamp>,
    /// When it last broke a rule in the period.
    #[serde(serialize_with = "rfc3339")]
    pub last: Option<Timestamp>,
    /// Whether its latest request against the rules was blocked; `None` where that is not known.
    pub is_blocked: Option<bool>,
    /// The latest request against the rules.
    pub example: Option<Example>,
    /// Requests among them that seem to come from another client: their addresses are outside of
    /// the crawler's networks, and reverse DNS is not asked.
    pub suspected: u64,
    /// Bytes that were sent for disallowed requests; of a log alone.
    pub disallowed_bytes: u64,
    /// The rules that disallowed its requests; of a log alone.
    pub rules: Vec<RuleCount>,
    /// What to write so that it is blocked, where a policy can say so.
    pub to_block: Option<ToBlock>,
}

/// The crawler of the registry that has an id.
pub fn known(id: &str) -> Option<&'static Crawler> {
    let mut crawlers = Registry::builtin().crawlers().iter();
    crawlers.find(|crawler| crawler.id == id)
}

/// Whether a label is that of tools.
fn is_tool(id: &str) -> bool {
    id == TOOLS || known(id).is_some_and(|crawler| crawler.purpose == Purpose::Tool)
}

/// What people call the crawler with a label.
pub fn crawler_name(id: &str) -> &str {
    match (id, known(id)) {
        (_, Some(crawler)) => &crawler.name,
        (UNKNOWN_BOTS, None) => "unknown bots",
        (TOOLS, None) => "unknown tools",
        (OVERFLOW, None) => "more crawlers than can be counted",
        (token, None) => token,
    }
}

/// Whether a label claims nothing that could be proven.
pub fn claims_nothing(id: &str) -> bool {
    matches!(id, UNKNOWN_BOTS | TOOLS | OVERFLOW)
}

impl CrawlerRow {
    /// A row with these counts. Names that claim nothing get no identity.
    pub fn new(id: &str, identity: ClientIdentity, counts: Counts) -> CrawlerRow {
        CrawlerRow {
            id: id.to_owned(),
            name: crawler_name(id).to_owned(),
            purpose: known(id).map(|crawler| crawler.purpose),
            identity: (!claims_nothing(id)).then_some(identity),
            counts,
            ..CrawlerRow::default()
        }
    }

    /// Whether these are the bots that the registry does not know.
    pub fn is_unknown_bots(&self) -> bool {
        self.id == UNKNOWN_BOTS
    }

    /// The identity in words; empty for a name that claims nothing, and for a tool.
    pub fn identity_words(&self) -> &'static str {
        match self.part {
            // Anybody may run a tool.
            Part::Tool => "",
            _ if self.is_unknown_bots() => "unknown bot",
            _ => self.identity.map_or("", ClientIdentity::words),
        }
    }

    /// The purpose in words; empty if it is not known.
    pub fn purpose_words(&self) -> &'static str {
        self.purpose.map_or("", |purpose| match purpose {
            Purpose::Training => "AI training",
            Purpose::Assistant => "AI assistant",
            Purpose::Seo => "SEO",
            purpose => purpose.name(),
        })
    }

    /// Whether the clients are, or seem to be, somebody else than the crawler.
    pub fn pretends(&self) -> bool {
        matches!(
            self.identity,
            Some(ClientIdentity::Impostor | ClientIdentity::SuspectedImpostor)
        )
    }

    /// What happens to its requests against the rules, in words.
    pub fn now_words(&self) -> &'static str {
        match self.is_blocked {
            Some(true) => "blocked",
            Some(false) => "passes",
            None => "",
        }
    }

    /// Decides the part. Stale copies that could not be in use any more at `now` become obedience.
    pub(super) fn classify(&mut self, now: Timestamp) {
        self.counts.settle(now);
        let counts = &self.counts;
        let judged = counts.kept() + counts.uncounted() + counts.broke();
        self.part = if judged == 0 && is_tool(&self.id) {
            Part::Tool
        } else if self.pretends() {
            Part::Pretends
        } else if counts.broke() > 0 {
            Part::BreaksRules
        } else if counts.uncounted() > 0 {
            Part::DoesNotCount
        } else if counts.kept() + counts.robots_txt() + counts.of_kind(Kind::Exempt) > 0 {
            Part::Obeys
        } else {
            Part::NotJudged
        };
    }

    /// The place among the rows: by part, verified crawlers before others, by requests against the
    /// rules, by requests, by name.
    pub(super) fn order(&self) -> impl Ord + use<> {
        (
            self.part,
            self.identity.is_none(),
            self.identity,
            Reverse((self.counts.broke(), self.counts.requests())),
            self.id.clone(),
        )
    }

    /// Adds the row to sums.
    pub(super) fn add_to(&self, totals: &mut Totals) {
        let counts = &self.counts;
        match self.part {
            Part::Tool => totals.tools += counts.requests(),
            Part::Pretends => totals.pretended += counts.requests(),
            _ => {
                totals.requests += counts.requests();
                totals.against_rules += counts.broke();
                totals.blocked += counts.refused();
                if self.is_unknown_bots() {
                    totals.unknown_bots_would_block += counts.would_refuse();
                } else {
                    totals.would_block += counts.would_refuse();
                }
            }
        }
    }
}
