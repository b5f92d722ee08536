//! [`report`] makes the [`Report`] of an audit from the merged counts of all workers. The end of
//! the log takes the place of the present: until then it is decided which older robots.txt may be
//! in use.

use super::input::Input;
use super::rules::Rules;
use super::sketch::Sketch;
use super::tally::{Day, Example as UnreadableExample, Row, RuleKey, Tally};
use super::worker::PublishedNetworks;
use crate::policy::Site;
use crate::printable::printable;
use crate::report::charts::Bar;
use crate::report::{
    ClientIdentity, CrawlerRow, Damaged, Example, LogFacts, Period, Report, RuleCount, Source, Top,
    UnreadableLine, join_first,
};
use crate::state::history::{DAY, Step};
use crate::time::Timestamp;
use crate::verdict::source_place;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of the lists of URLs, rules and unknown bots.
const TOP: usize = 20;

/// Places of one rule that are named.
const PLACES: usize = 4;

/// More days are shown as weeks.
const MAX_DAYS: i64 = 120;

/// Days before the last one that have a bar; a log with wrong times may hold any.
const MAX_AGE: i64 = 4_000;

/// The report of what was counted in `inputs`, some of which may be `damaged`.
pub(super) fn report(
    mut tally: Tally,
    rules: &Rules,
    networks: Option<&PublishedNetworks>,
    inputs: &[Input],
    damaged: Vec<Damaged>,
) -> Report {
    let sites: Vec<&Site> = rules.entries().map(|entry| &*entry.site).collect();
    let end = tally.span.last.unwrap_or_default();
    let mut crawlers = Vec::new();
    let mut by_rule = Vec::new();
    for (label, rows) in &tally.rows {
        for (identity, row) in rows.iter() {
            crawlers.push(crawler(label, identity, row, &sites, end));
            by_rule.extend(row.rules.iter().map(|(key, hits)| (*key, hits.disallowed)));
        }
    }
    let mut rule_counts = rule_counts(by_rule, &sites);
    rule_counts.truncate(TOP);
    let report = Report {
        from: tally.span.first,
        to: tally.span.last,
        source: if rules.are_policies() {
            Source::LogsByPolicies
        } else {
            Source::Logs
        },
        crawlers,
        unknown_bots: top(std::mem::take(&mut tally.unknown_bots)),
        visitors: tally.visitors,
        periods: periods(&tally.days, end),
        rules: rule_counts,
        urls: top(std::mem::take(&mut tally.urls)),
        log: Some(LogFacts {
            damaged,
            lists: networks.map(PublishedNetworks::used),
            policy_networks: sites.iter().any(|site| !site.networks.is_empty()),
            ..log_facts(tally, inputs)
        }),
        ..Report::default()
    };
    report.finish(end)
}

/// What was read, and what could not be judged.
fn log_facts(tally: Tally, inputs: &[Input]) -> LogFacts {
    let name = |input: usize| inputs.get(input).map(Input::name).unwrap_or_default();
    let without = tally
        .has_user_agents
        .iter()
        .filter(|(_, has_one)| !**has_one);
    let unreadable = tally.unreadable.iter();
    LogFacts {
        lines: tally.lines,
        unreadable: tally.unreadable.values().sum(),
        unreadable_reasons: unreadable
            .map(|(reason, number)| (reason.id().to_owned(), *number))
            .collect(),
        without_user_agents: without.map(|(input, _)| name(*input)).collect(),
        examples: tally
            .examples
            .into_iter()
            .map(|example| {
                let UnreadableExample {
                    input,
                    line,
                    reason,
                    text,
                } = example;
                UnreadableLine {
                    file: name(input),
                    line,
                    reason: reason.id().to_owned(),
                    text,
                }
            })
            .collect(),
        no_request: tally.no_request,
        server_messages: tally.server_messages,
        no_user_agent: tally.no_user_agent,
        no_host: tally.no_host,
        other_hosts: tally.other_hosts,
        disallowed: tally.disallowed,
        visitors_bytes: tally.visitors_bytes,
        ..LogFacts::default()
    }
}

/// The row of one label and identity. Its example is the rule that it broke most.
fn crawler(
    label: &str,
    identity: ClientIdentity,
    row: &Row,
    sites: &[&Site],
    end: Timestamp,
) -> CrawlerRow {
    let hits = row.rules.iter();
    let worst = hits
        .clone()
        .max_by_key(|(key, hits)| (hits.broken, Reverse(**key)));
    let worst = worst.filter(|(_, hits)| hits.broken > 0);
    CrawlerRow {
        first: row.broke.first,
        last: row.broke.last,
        disallowed_bytes: row.disallowed_bytes,
        rules: rule_counts(hits.map(|(key, hits)| (*key, hits.disallowed)), sites),
        example: worst.and_then(|(key, _)| example(sites, *key)),
        ..CrawlerRow::new(label, identity, row.counts.settled(end))
    }
}

/// The rule with its place; a log is too long to keep requests.
fn example(sites: &[&Site], key: RuleKey) -> Option<Example> {
    let pattern = pattern(sites, key)?;
    Some(Example {
        rule: format!("Disallow: {}", printable(pattern.as_bytes())),
        place: place(sites, key)?,
        ..Example::default()
    })
}

/// A bar for each day, or for each week of a log of more than `MAX_DAYS`.
fn periods(days: &BTreeMap<i64, Day>, end: Timestamp) -> Vec<Bar> {
    let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else {
        return Vec::new();
    };
    let first = *first.max(&(last - MAX_AGE));
    let step = if last - first < MAX_DAYS {
        Step::Day
    } else {
        Step::Week
    };
    let period = Period {
        from: step.begin(Timestamp(first * DAY)),
        to: Timestamp(last * DAY),
        step,
    };
    let mut bars = period.bars(&[]);
    for (day, counted) in days.range(first..) {
        let place = period.place(Timestamp(day * DAY));
        if let Some(bar) = place.and_then(|place| bars.get_mut(place)) {
            bar.add(ClientIdentity::Unverified, &counted.own.settled(end));
            bar.add(
                ClientIdentity::SuspectedImpostor,
                &counted.pretended.settled(end),
            );
        }
    }
    bars
}

/// Rules with the same pattern together, the most frequent first, with all their places.
fn rule_counts(rules: impl IntoIterator<Item = (RuleKey, u64)>, sites: &[&Site]) -> Vec<RuleCount> {
    let mut by_pattern: BTreeMap<&str, (u64, BTreeSet<RuleKey>)> = BTreeMap::new();
    for (key, count) in rules {
        let Some(pattern) = pattern(sites, key) else {
            continue;
        };
        let entry = by_pattern.entry(pattern).or_default();
        entry.0 += count;
        entry.1.insert(key);
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
    join_first(places, PLACES)
}

fn place(sites: &[&Site], key: RuleKey) -> Option<String> {
    let site = sites.get(key.site)?;
    let (_, source) = site.rule(key.group, key.rule)?;
    Some(source_place(source, site).0)
}

/// The 20 most frequent keys of a sketch, printable, the most frequent first.
fn top(sketch: Sketch) -> Vec<Top> {
    let counted = sketch.top(TOP).into_iter();
    counted
        .map(|counted| Top {
            name: printable(&counted.key),
            count: counted.count,
            error: counted.error,
        })
        .collect()
}
