//! [`CrawlerRow`]: one line of a report, about the requests that came under one crawler's name.
//! Anybody can send a crawler's user agent, so verified clients, unverified clients and impostors
//! each have a line of their own. [`ReportSection`] is the section of the report that a line
//! belongs to.

use super::{
    MAX_TOP, ReportTotals, ResponseStatusRow, RuleCount, SitemapCoverage, TopEntry, join_words,
};
use crate::crawlers::{Crawler, Purpose, Registry};
use crate::numbers::{plural_thousands, thousands};
use crate::record::RequestCounts;
use crate::sketch::KeyUsage;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::{IdentityStatus, Kind};
use ClientIdentity::{Impostor, SuspectedImpostor, Unverified, Verified};
use ReportSection::{BreaksRules, DoesNotCount, NotJudged, Obeys, Pretends, Tool};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use strum::{IntoStaticStr, VariantArray};

/// The label of bots that the registry does not know.
pub const UNKNOWN_BOTS: &str = "other";
/// The label of tools that the registry does not know.
const TOOLS: &str = "tool";
/// The label of crawlers beyond the bound of the counts.
const OVERFLOW: &str = "overflow";
/// The addresses of a pretender that are shown if no more are asked for.
const MAX_ADDRESSES: usize = 3;

/// Whether the clients that use a crawler's name are the crawler.
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
    /// Proven to be the crawler.
    Verified,
    /// Not known.
    Unverified,
    /// The address is outside of the crawler's networks, which alone proves nothing.
    SuspectedImpostor,
    /// Proven to be another client.
    Impostor,
}

named!(ClientIdentity);

impl ClientIdentity {
    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Verified => "verified",
            Unverified => "not verified",
            SuspectedImpostor => "probably pretends",
            Impostor => "pretends",
        }
    }
}

impl From<IdentityStatus> for ClientIdentity {
    fn from(identity: IdentityStatus) -> ClientIdentity {
        match identity {
            IdentityStatus::Verified => Verified,
            IdentityStatus::Unverified => Unverified,
            IdentityStatus::Impostor => Impostor,
        }
    }
}

/// The sections of a report, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportSection {
    /// Crawlers with requests against the rules.
    BreaksRules,
    /// Clients that use the name of another crawler.
    Pretends,
    /// Crawlers with disallowed requests, none of which counts.
    DoesNotCount,
    /// Crawlers that obey in all requests that the rules bind.
    Obeys,
    /// Crawlers that the rules do not bind, that a policy exempts, or that were not judged.
    #[default]
    NotJudged,
    /// Tools, which anybody may run.
    Tool,
}

/// A request that broke the rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViolationExample {
    /// When it came.
    #[serde(serialize_with = "rfc3339")]
    pub time: Option<Timestamp>,
    /// The site that it came to; empty in a log.
    pub site: String,
    /// Method, host and target; empty where only the rule is known.
    pub request: String,
    /// The line of robots.txt that disallows it; empty for a trap.
    pub rule: String,
    /// The place of that line: `file:line:column`.
    pub place: String,
}

/// The line to write into a policy so that a crawler is blocked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockInstruction {
    /// The file, with the line of its `enforcement` if it has one.
    pub place: String,
    /// The section of the file that the line belongs to, like `enforcement.agents`; empty for a line
    /// at the top level.
    pub under: String,
    /// The line to write.
    pub line: String,
}

/// The requests under one crawler's name by clients of one identity. A running crawlgate of an older
/// version sends fewer fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CrawlerRow {
    /// The registry's id, the token of a policy, `other` (unknown bots) or `tool`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The purpose, by the registry.
    pub purpose: Option<Purpose>,
    /// `None` for labels whose identity cannot be proven.
    pub identity: Option<ClientIdentity>,
    /// The section of the report.
    pub part: ReportSection,
    /// The requests.
    pub counts: RequestCounts,
    /// When it first broke a rule in the period.
    #[serde(serialize_with = "rfc3339")]
    pub first: Option<Timestamp>,
    /// When it last broke a rule in the period.
    #[serde(serialize_with = "rfc3339")]
    pub last: Option<Timestamp>,
    /// The sites whose rules it broke; empty for logs.
    pub sites: Vec<String>,
    /// Whether its requests against the rules are blocked now, on all these sites; `None` where that
    /// is not known.
    pub is_blocked: Option<bool>,
    /// Whether they are blocked on some of these sites.
    pub is_blocked_somewhere: bool,
    /// The latest request against the rules.
    pub example: Option<ViolationExample>,
    /// Requests that seem to come from another client: their addresses are outside of the crawler's
    /// networks, and reverse DNS is not asked.
    pub suspected: u64,
    /// Bytes that were sent for disallowed requests; only for logs.
    pub disallowed_bytes: u64,
    /// The rules that disallowed its requests; only for logs.
    pub rules: Vec<RuleCount>,
    /// The URLs of its requests against the rules, without the values of parameters; only for logs.
    pub urls_against_rules: Vec<TopEntry>,
    /// What its requests took, with their durations if the log has them; only for logs.
    pub usage: KeyUsage,
    /// The first directories of the paths that it requested most, `/` for pages in no directory; only
    /// for logs.
    pub sections: Vec<TopEntry>,
    /// Its requests with a query that is not empty; only for logs.
    pub with_parameters: u64,
    /// The names of the parameters in the queries that it requested most; only for logs.
    pub parameters: Vec<TopEntry>,
    /// The sections with the names of parameters that it requested most, such as
    /// `/shop/...?color&size`; only for logs.
    pub combinations: Vec<TopEntry>,
    /// Its requests as `smartphone` and as `desktop`; only for logs.
    pub devices: Vec<TopEntry>,
    /// Its requests by UTC day, in order; only for logs.
    pub days: Vec<TopEntry>,
    /// The paths that it requested most, with the query of redirects and errors; only for logs.
    pub paths: Vec<TopEntry>,
    /// How many different paths it requested, with the query of redirects and errors; only for logs.
    pub distinct_paths: u64,
    /// The statuses of the responses, without those with robots.txt, the most frequent first; only
    /// for logs.
    pub statuses: Vec<ResponseStatusRow>,
    /// What it requested of the URLs of sitemaps; only for logs.
    pub sitemap: Option<SitemapCoverage>,
    /// The addresses that requests of a pretender came from most; only for logs.
    pub addresses: Vec<TopEntry>,
    /// How to block it, where a policy can.
    pub to_block: Option<BlockInstruction>,
}

/// The crawler with this id.
pub fn registry_crawler(id: &str) -> Option<&'static Crawler> {
    let mut crawlers = Registry::builtin().crawlers().iter();
    crawlers.find(|crawler| crawler.id == id)
}

/// The name for people of the crawler with a label.
pub fn crawler_name(id: &str) -> &str {
    match (id, registry_crawler(id)) {
        (_, Some(crawler)) => &crawler.name,
        (UNKNOWN_BOTS, None) => "unknown bots",
        (TOOLS, None) => "unknown tools",
        (OVERFLOW, None) => "more crawlers than can be counted",
        (token, None) => token,
    }
}

/// Whether a label stands for clients whose identity cannot be proven.
pub fn is_unprovable_label(id: &str) -> bool {
    matches!(id, UNKNOWN_BOTS | TOOLS | OVERFLOW)
}

impl CrawlerRow {
    /// A row with these counts. Drops the identity if it cannot be proven.
    pub fn new(id: &str, identity: ClientIdentity, counts: RequestCounts) -> CrawlerRow {
        CrawlerRow {
            id: id.to_owned(),
            name: crawler_name(id).to_owned(),
            purpose: registry_crawler(id).map(|crawler| crawler.purpose),
            identity: (!is_unprovable_label(id)).then_some(identity),
            counts,
            ..CrawlerRow::default()
        }
    }

    /// Its requests on the day with the most.
    pub(super) fn max_per_day(&self) -> u64 {
        self.days.iter().map(|day| day.count).max().unwrap_or(0)
    }

    /// Whether the row has the bots that the registry does not know.
    pub fn is_unknown_bots(&self) -> bool {
        self.id == UNKNOWN_BOTS
    }

    /// The identity in words; empty for tools, where the name says it, and where it cannot be proven.
    pub fn identity_words(&self) -> &'static str {
        match self.part {
            Tool => "",
            _ if self.is_unknown_bots() && self.name != "unknown bots" => "unknown bot",
            _ => self.identity.map_or("", ClientIdentity::words),
        }
    }

    /// Whether its operator says that robots.txt may not apply, because it fetches for a person.
    pub(super) fn fetches_for_person(&self) -> bool {
        let note = registry_crawler(&self.id).and_then(|crawler| crawler.note.as_deref());
        note.is_some_and(|note| note.contains("\"may not apply\""))
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

    /// Whether the clients are, or seem to be, other than the crawler.
    pub fn is_pretender(&self) -> bool {
        matches!(self.identity, Some(Impostor | SuspectedImpostor))
    }

    /// Whether the rules do not bind it, or a policy exempts it.
    pub(super) fn is_unbound(&self) -> bool {
        let exempt = self.counts.requests_of_kind(Kind::Exempt);
        exempt + self.counts.requests_of_kind(Kind::NotBound) > 0
    }

    /// That a pretender's requests are not the crawler's, and where most of them came from: `top`
    /// addresses, or three.
    pub(super) fn pretender_words(&self, top: Option<usize>) -> String {
        let words = match self.identity {
            Some(SuspectedImpostor) => "probably not from it",
            _ => "not from it",
        };
        let shown = top.unwrap_or(MAX_ADDRESSES).min(MAX_TOP);
        let addresses = self.addresses.iter().take(shown);
        let addresses: Vec<String> = addresses
            .map(|address| format!("{} from {}", address.count_words(), address.name))
            .collect();
        if addresses.is_empty() {
            words.to_owned()
        } else {
            format!("{words} ({})", addresses.join(", "))
        }
    }

    /// Whether the requests are those of a crawler: of no pretender, and of no tool.
    pub(super) fn is_of_crawler(&self) -> bool {
        !matches!(self.part, Pretends | Tool)
    }

    /// How many requests had no licence, and how many of them were answered with the demand. `None`
    /// if no request lacked one.
    pub(super) fn license_words(&self) -> Option<String> {
        let lacking = self.counts.without_license();
        if lacking == 0 {
            return None;
        }
        let answer = match self.counts.license_demanded() {
            0 => "only observed".to_owned(),
            all if all == lacking => "refused".to_owned(),
            refused => format!("{} refused", thousands(refused)),
        };
        let requests = plural_thousands(lacking, "request");
        let words = join_words([self.identity_words(), &answer]);
        Some(format!("{}: {requests} ({words})", self.name))
    }

    /// What happens to its requests against the rules, in words. Requests that an older robots.txt
    /// allows pass meanwhile.
    pub fn outcome_words(&self) -> &'static str {
        match self.is_blocked {
            Some(true) if self.counts.requests_of_kind(Kind::StaleCopy) == 0 => "blocked",
            Some(false) if !self.is_blocked_somewhere => "passes",
            Some(_) => "in part",
            None => "",
        }
    }

    /// The command that names the rule which a search engine broke. `None` for other crawlers and
    /// for logs.
    pub(super) fn explain_command(&self, config_option: &str) -> Option<String> {
        let example = self.example.as_ref()?;
        // A single request is never too fast.
        if example.rule.starts_with("Crawl-delay") {
            return None;
        }
        // Suspected requests are perhaps of other clients.
        if self.purpose != Some(Purpose::Search) || example.site.is_empty() || self.suspected > 0 {
            return None;
        }
        let (_, url) = example.request.split_once(' ')?;
        let (host, path) = url.split_at(url.find('/')?);
        let [host, path] = [host, path].map(|part| part.replace('\'', "%27"));
        let command = format!(
            "crawlgate explain --live {config_option}--host '{host}' --user-agent {} '{path}'",
            self.id
        );
        Some(crate::printable::printable(command.as_bytes()))
    }

    /// Decides the section. Requests by stale copies that are out of use at `now` count as obedient.
    pub(super) fn assign_section(&mut self, now: Timestamp) {
        self.counts.count_expired_stale_copies_as_allowed(now);
        let counts = &self.counts;
        let judged =
            counts.rule_obeying_requests() + counts.uncounted() + counts.rule_breaking_requests();
        let is_tool = self.id == TOOLS
            || registry_crawler(&self.id).is_some_and(|crawler| crawler.purpose == Purpose::Tool);
        self.part = if judged == 0 && is_tool {
            Tool
        } else if self.is_pretender() {
            Pretends
        } else if counts.rule_breaking_requests() > 0 {
            BreaksRules
        } else if counts.uncounted() > 0 {
            DoesNotCount
        } else if counts.rule_obeying_requests() > 0
            || counts.robots_txt() > 0 && !self.is_unbound()
        {
            Obeys
        } else {
            NotJudged
        };
    }

    /// Sorts by section, then identity, then violations, then requests, then name.
    pub(super) fn sort_key(&self) -> impl Ord + use<> {
        (
            self.part,
            self.identity.is_none(),
            self.identity,
            Reverse((self.counts.rule_breaking_requests(), self.counts.requests())),
            self.id.clone(),
        )
    }

    pub(super) fn add_to(&self, totals: &mut ReportTotals) {
        let counts = &self.counts;
        match self.part {
            Tool => totals.tools += counts.requests(),
            Pretends => totals.pretended += counts.requests(),
            _ => {
                totals.requests += counts.requests();
                totals.against_rules += counts.rule_breaking_requests();
                totals.blocked += counts.refused();
                totals.blocked_against_rules += counts.refused_against_rules();
                totals.license_demanded += counts.license_demanded();
                // These are treated alike.
                if self.is_unknown_bots() || self.purpose == Some(Purpose::Other) {
                    totals.unknown_bots_would_block += counts.would_refuse();
                    totals.unknown_bots_would_block_against_rules +=
                        counts.would_refuse_against_rules();
                } else {
                    totals.would_block += counts.would_refuse();
                    totals.would_block_against_rules += counts.would_refuse_against_rules();
                }
            }
        }
    }
}
