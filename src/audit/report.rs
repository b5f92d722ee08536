//! [`Report`]: the result of an audit as data, which is also its JSON. It is made once, from the
//! merged counts of all workers.

#![allow(missing_docs)]

use super::input::Input;
use super::rules::Rules;
use super::sketch::{Counted, Sketch};
use super::tally::{ClientIdentity, DayCounts, Row, Rows, RuleKey, Tally};
use super::worker::{ListsUsed, PublishedNetworks};
use crate::crawlers::{Purpose, Registry};
use crate::policy::Site;
use crate::printable::printable;
use crate::time::{Timestamp, rfc3339};
use crate::verdict::{Kind, source_place};
use ahash::AHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of the lists of URLs, rules and unlisted bots.
const TOP: usize = 20;

/// Places of one rule that are named.
const PLACES: usize = 4;

/// What an audit found.
#[derive(Serialize)]
pub struct Report {
    /// Lines that are not empty.
    pub lines: u64,
    pub unreadable: u64,
    /// Why, by the id of the reason.
    pub unreadable_reasons: BTreeMap<&'static str, u64>,
    /// The first lines that could not be read.
    pub examples: Vec<Unreadable>,
    /// Logs that break off.
    pub damaged: Vec<Damaged>,
    /// Lines about connections without a request.
    pub no_request: u64,
    /// Lines that servers write of their start and of errors.
    pub server_messages: u64,
    /// Requests in lines whose format has no user agent.
    pub no_user_agent: u64,
    /// Requests without a host, where several policies might have judged them.
    pub no_host: u64,
    /// Requests to hosts that are not judged.
    pub other_hosts: u64,
    /// Logs in which every request has an empty user agent.
    pub without_user_agents: Vec<String>,
    #[serde(serialize_with = "rfc3339")]
    pub from: Option<Timestamp>,
    #[serde(serialize_with = "rfc3339")]
    pub to: Option<Timestamp>,
    pub disallowed: u64,
    pub certain: u64,
    /// Requests of clients that claim a crawler's name, by what the networks say of the clients.
    pub identities: Identities,
    /// The published networks that were at hand.
    pub lists: Option<ListsUsed>,
    /// Whether a policy lists networks of crawlers.
    pub policy_networks: bool,
    /// Whether the rules are those of policies that need not have been published at that time.
    pub by_policies: bool,
    pub people: People,
    /// The crawlers with the most disallowed requests first. One name has a row for each identity
    /// of clients.
    pub crawlers: Vec<Crawler>,
    pub rules: Vec<RuleCount>,
    pub urls: Vec<Top>,
    /// Unlisted bots by what they call themselves.
    pub unlisted: Vec<Unlisted>,
    pub days: Vec<Day>,
}

#[derive(Serialize)]
pub struct Unreadable {
    pub file: String,
    pub line: u64,
    pub reason: &'static str,
    pub text: String,
}

#[derive(Serialize)]
pub struct Damaged {
    pub file: String,
    pub error: String,
}

impl Damaged {
    /// What happened, and what was done.
    pub fn message(&self) -> String {
        format!(
            "{} is damaged or cut off: {}. It was read up to there.",
            self.file, self.error
        )
    }
}

#[derive(Serialize)]
pub struct People {
    pub requests: u64,
    pub bytes: u64,
}

/// Requests of those that claim a crawler's name.
#[derive(Default, Serialize)]
pub struct Identities {
    pub verified: IdentityCounts,
    pub unverified: IdentityCounts,
    pub suspected_impostor: IdentityCounts,
}

#[derive(Default, Serialize)]
pub struct IdentityCounts {
    pub requests: u64,
    pub disallowed: u64,
    pub certain: u64,
}

/// The requests of one row in numbers, and the bytes that were sent.
#[derive(Serialize)]
pub struct CrawlerCounts {
    pub requests: u64,
    pub robots_txt: u64,
    pub disallowed: u64,
    pub certain: u64,
    pub stale: u64,
    pub unproven: u64,
    pub not_bound: u64,
    pub exempt: u64,
    pub ambiguous: u64,
    pub bytes: u64,
    pub bytes_disallowed: u64,
}

impl CrawlerCounts {
    fn new(row: &Row) -> CrawlerCounts {
        let Row {
            all, disallowed, ..
        } = row;
        CrawlerCounts {
            requests: all.requests(),
            robots_txt: all.robots_txt(),
            disallowed: disallowed.requests(),
            certain: row.certain(),
            stale: disallowed.of_kind(Kind::StaleCopy),
            unproven: disallowed.of_kind(Kind::Unproven),
            not_bound: disallowed.of_kind(Kind::NotBound),
            exempt: disallowed.of_kind(Kind::Exempt),
            ambiguous: all.of_kind(Kind::Ambiguous),
            bytes: all.bytes(),
            bytes_disallowed: disallowed.bytes(),
        }
    }
}

/// The requests under one crawler's name by clients of one identity.
#[derive(Serialize)]
pub struct Crawler {
    /// The registry's id, the token of the robots.txt, `other` or `tool`.
    pub id: String,
    pub name: String,
    pub purpose: Option<Purpose>,
    /// Whether robots.txt concerns it: tools that no group names are not judged.
    pub judged: bool,
    #[serde(flatten)]
    pub counts: CrawlerCounts,
    /// The first and the last disallowed request.
    #[serde(serialize_with = "rfc3339")]
    pub first_disallowed: Option<Timestamp>,
    #[serde(serialize_with = "rfc3339")]
    pub last_disallowed: Option<Timestamp>,
    /// `None` of bots and tools that claim no name that could be proven.
    pub identity: Option<ClientIdentity>,
    pub rules: Vec<RuleCount>,
    /// What `mode: enforce` would have done, by action.
    pub would: BTreeMap<&'static str, u64>,
}

impl Crawler {
    /// What tables call its identity.
    pub(super) fn identity_name(&self) -> &'static str {
        self.identity.map_or("", ClientIdentity::name)
    }

    /// Requests that enforcement would have blocked.
    pub(super) fn would_block(&self) -> u64 {
        self.would.get("block").copied().unwrap_or(0)
    }

    /// The days of its first and its last disallowed request; empty where there was none.
    pub(super) fn days(&self) -> String {
        match (
            self.first_disallowed.map(Timestamp::day),
            self.last_disallowed.map(Timestamp::day),
        ) {
            (Some(first), Some(last)) if first == last => first,
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => String::new(),
        }
    }
}

#[derive(Serialize)]
pub struct RuleCount {
    pub pattern: String,
    pub count: u64,
    /// Where it stands.
    pub place: String,
}

/// An entry of a list that is kept in bounded memory.
#[derive(Serialize)]
pub struct Top {
    pub name: String,
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

/// An unlisted bot.
#[derive(Serialize)]
pub struct Unlisted {
    #[serde(flatten)]
    pub top: Top,
    /// Those of its requests that are disallowed.
    pub disallowed: u64,
}

#[derive(Serialize)]
pub struct Day {
    pub day: String,
    #[serde(flatten)]
    pub counts: DayCounts,
}

impl Report {
    pub(super) fn new(
        tally: Tally,
        rules: &Rules,
        registry: &Registry,
        networks: Option<&PublishedNetworks>,
        inputs: &[Input],
        damaged: Vec<Damaged>,
    ) -> Report {
        let sites: Vec<&Site> = rules.entries().map(|entry| &*entry.site).collect();
        let rows = tally.rows.values().flat_map(Rows::all);
        let all = rule_counts(rows.flat_map(|(_, row)| &row.rules), &sites);
        let crawlers = crawlers(&tally.rows, registry, &sites);
        let examples = tally.examples.into_iter().map(|example| Unreadable {
            file: inputs
                .get(example.input)
                .map(Input::name)
                .unwrap_or_default(),
            line: example.line,
            reason: example.reason.id(),
            text: example.text,
        });
        let without_user_agents = tally
            .has_user_agents
            .iter()
            .filter(|(_, has_one)| !**has_one);
        let without_user_agents =
            without_user_agents.filter_map(|(input, _)| Some(inputs.get(*input)?.name()));
        let days = tally.days.iter().map(|(day, counts)| Day {
            day: Timestamp(day * 86_400).day(),
            counts: *counts,
        });
        Report {
            lines: tally.lines,
            unreadable: tally.unreadable.values().sum(),
            unreadable_reasons: tally
                .unreadable
                .iter()
                .map(|(reason, number)| (reason.id(), *number))
                .collect(),
            examples: examples.collect(),
            damaged,
            no_request: tally.no_request,
            server_messages: tally.server_messages,
            no_user_agent: tally.no_user_agent,
            no_host: tally.no_host,
            other_hosts: tally.other_hosts,
            without_user_agents: without_user_agents.collect(),
            from: tally.span.first,
            to: tally.span.last,
            by_policies: rules.are_policies(),
            disallowed: crawlers
                .iter()
                .map(|crawler| crawler.counts.disallowed)
                .sum(),
            certain: crawlers.iter().map(|crawler| crawler.counts.certain).sum(),
            identities: Identities::of(&crawlers),
            lists: networks.map(PublishedNetworks::used),
            policy_networks: rules.entries().any(|entry| !entry.site.networks.is_empty()),
            people: People {
                requests: tally.people,
                bytes: tally.people_bytes,
            },
            crawlers,
            rules: all.into_iter().take(TOP).collect(),
            urls: top(tally.urls),
            unlisted: unlisted(tally.unlisted, tally.unlisted_disallowed),
            days: days.collect(),
        }
    }

    /// The number of requests of people and of all crawlers and tools, also of tools that
    /// robots.txt does not concern.
    pub fn judged(&self) -> u64 {
        self.people.requests
            + self
                .crawlers
                .iter()
                .map(|crawler| crawler.counts.requests)
                .sum::<u64>()
    }
}

impl Identities {
    /// Sums of the rows of each identity. Rows without one are left out.
    fn of(crawlers: &[Crawler]) -> Identities {
        let mut all = Identities::default();
        for crawler in crawlers {
            let counts = match crawler.identity {
                Some(ClientIdentity::Verified) => &mut all.verified,
                Some(ClientIdentity::Unverified) => &mut all.unverified,
                Some(ClientIdentity::SuspectedImpostor) => &mut all.suspected_impostor,
                None => continue,
            };
            counts.requests += crawler.counts.requests;
            counts.disallowed += crawler.counts.disallowed;
            counts.certain += crawler.counts.certain;
        }
        all
    }

    /// Certain requests of all of them.
    pub fn certain(&self) -> u64 {
        self.verified.certain + self.unverified.certain + self.suspected_impostor.certain
    }
}

/// A row for each name and identity that has requests. Rows of one name stand together; the name
/// with the most disallowed requests comes first, of equal ones the one with the most requests.
fn crawlers(rows: &AHashMap<Box<str>, Rows>, registry: &Registry, sites: &[&Site]) -> Vec<Crawler> {
    let mut names: Vec<Vec<Crawler>> = Vec::new();
    for (label, rows) in rows {
        let rows = rows.all();
        names.push(
            rows.map(|(identity, row)| crawler(label, identity, row, registry, sites))
                .collect(),
        );
    }
    names.sort_by_cached_key(|rows| {
        let disallowed: u64 = rows.iter().map(|row| row.counts.disallowed).sum();
        let requests: u64 = rows.iter().map(|row| row.counts.requests).sum();
        let id = rows.first().map(|row| row.id.clone());
        (Reverse((disallowed, requests)), id)
    });
    names.into_iter().flatten().collect()
}

/// The row of one label (a registry's id, a token, `other` or `tool`) and identity, with the name
/// and purpose that the registry has for the label. `would` always has an entry for `block`.
fn crawler(
    label: &str,
    identity: Option<ClientIdentity>,
    row: &Row,
    registry: &Registry,
    sites: &[&Site],
) -> Crawler {
    let known = registry
        .crawlers()
        .iter()
        .find(|crawler| crawler.id == label);
    let name = known.map_or(
        match label {
            "other" => "unlisted bots",
            "tool" => "unlisted tools",
            token => token,
        },
        |crawler| crawler.name.as_str(),
    );
    let mut would = row.would.clone();
    would.entry("block").or_default();
    Crawler {
        id: label.to_owned(),
        name: name.to_owned(),
        purpose: known.map(|crawler| crawler.purpose),
        judged: row.judged,
        counts: CrawlerCounts::new(row),
        first_disallowed: row.span.first,
        last_disallowed: row.span.last,
        identity,
        rules: rule_counts(&row.rules, sites),
        would,
    }
}

/// Rules with the same pattern together, the most frequent first, with all their places.
fn rule_counts<'a>(
    rules: impl IntoIterator<Item = (&'a RuleKey, &'a u64)>,
    sites: &[&Site],
) -> Vec<RuleCount> {
    let mut by_pattern: BTreeMap<&str, (u64, BTreeSet<RuleKey>)> = BTreeMap::new();
    for (key, count) in rules {
        let Some(pattern) = pattern(sites, *key) else {
            continue;
        };
        let entry = by_pattern.entry(pattern).or_default();
        entry.0 += count;
        entry.1.insert(*key);
    }
    let mut counts: Vec<RuleCount> = by_pattern
        .into_iter()
        .map(|(pattern, (count, keys))| RuleCount {
            pattern: printable(pattern.as_bytes()),
            count,
            place: places(sites, &keys),
        })
        .collect();
    // Stable: equal counts stay in the order of their patterns.
    counts.sort_by_key(|rule| Reverse(rule.count));
    counts
}

fn pattern<'a>(sites: &[&'a Site], key: RuleKey) -> Option<&'a str> {
    let (rule, _) = sites.get(key.site)?.rule(key.group, key.rule)?;
    Some(rule.pattern.as_str())
}

/// The places of a rule, separated by commas: the first four, and how many more there are.
fn places(sites: &[&Site], keys: &BTreeSet<RuleKey>) -> String {
    let mut places: Vec<String> = keys.iter().filter_map(|key| place(sites, *key)).collect();
    // One rule of a policy may stand in several groups.
    places.dedup();
    if places.len() > PLACES {
        let more = places.len() - PLACES;
        places.truncate(PLACES);
        places.push(format!("and {more} more"));
    }
    places.join(", ")
}

fn place(sites: &[&Site], key: RuleKey) -> Option<String> {
    let site = sites.get(key.site)?;
    let (_, source) = site.rule(key.group, key.rule)?;
    Some(source_place(source, site).0)
}

/// The 20 unlisted bots with the most requests, in the order of their disallowed requests, the most
/// first. A bot that `disallowed` does not have counts as 0.
fn unlisted(all: Sketch, disallowed: Sketch) -> Vec<Unlisted> {
    let disallowed: Vec<Counted> = disallowed.top(usize::MAX);
    let mut named: Vec<Unlisted> = Vec::new();
    for top in top(all) {
        let mut disallowed = disallowed.iter();
        let counted = disallowed.find(|counted| printable(&counted.key) == top.name);
        named.push(Unlisted {
            disallowed: counted.map_or(0, |counted| counted.count),
            top,
        });
    }
    named.sort_by_key(|unlisted| Reverse(unlisted.disallowed));
    named
}

/// The 20 most frequent keys of a sketch, printable, the most frequent first.
fn top(sketch: Sketch) -> Vec<Top> {
    sketch
        .top(TOP)
        .into_iter()
        .map(|counted| Top {
            name: printable(&counted.key),
            count: counted.count,
            error: counted.error,
        })
        .collect()
}
