//! [`build_report`] makes the [`Report`] of an audit from the merged counts of all worker threads.
//! A crawler may use a cached copy of an older robots.txt for some time. The report counts
//! separately the requests that only the older robots.txt allows. If the log goes on beyond that
//! time, the report counts these requests as allowed.

use super::input::LogInput;
use super::rules::AuditRules;
use super::sitemap_urls::SitemapUrls;
use super::tally::{
    AuditTally, ByIdentity, ProvisionalCounts, RequestTally, RuleKey, SitemapTally, hash,
    path_section,
};
use super::worker::{AuditOptions, PublishedNetworks};
use crate::policy::Site;
use crate::printable::{join_first, printable};
use crate::record::printable_path;
use crate::report::charts::PeriodBar;
use crate::report::{
    ClientIdentity, CrawlerRow, DamagedLog, LogSummary, Report, ReportPeriod, ReportSource,
    ResponseStatusRow, RuleCount, SitemapCoverage, TopEntry, TrafficReport, UnreadableLine,
    ViolationExample,
};
use crate::sketch::TopKSketch;
use crate::state::history::{DAY, PeriodLength, ServiceVisits};
use crate::time::Timestamp;
use crate::verdict::source_location;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The length of the lists of URLs, rules and unknown bots.
const MAX_TOP_ENTRIES: usize = 20;

/// How many addresses of a client that probably pretends are listed: by default, and at most.
const MAX_ADDRESSES: [usize; 2] = [5, 1_000];

/// The places of one rule that are listed.
const MAX_LOCATIONS: usize = 4;

/// A longer log has weekly bars.
const MAX_DAILY_BARS: i64 = 120;

/// Days further before the last one have no bar: a log with wrong times may have any day.
const MAX_AGE_DAYS: i64 = 4_000;

/// Makes the report of the counts of `inputs`, some of which may be `damaged`.
pub fn build_report(
    tally: AuditTally,
    rules: &AuditRules,
    options: &AuditOptions,
    inputs: &[LogInput],
    damaged: Vec<DamagedLog>,
) -> Report {
    let sites: Vec<&Site> = rules.site_entries().map(|entry| &*entry.site).collect();
    let end = tally.span.last.unwrap_or_default();
    let mut crawlers = Vec::new();
    let mut by_rule = Vec::new();
    let violators = top_entries(&tally.unknown_violators, MAX_TOP_ENTRIES);
    let unknown_bots = top_entries(&tally.unknown_bots, MAX_TOP_ENTRIES);
    let all_by_violators: u64 = unknown_bots
        .iter()
        .filter(|bot| violators.iter().any(|one| one.name == bot.name))
        .map(|bot| bot.count)
        .sum();
    let violators = join_first(violators.iter().map(|bot| &bot.name), 2);
    let mut cautions = rules.cautions();
    for (label, rows) in &tally.rows {
        for (identity, row) in rows.iter().filter(|(_, row)| row.counts.requests() > 0) {
            let mut shown = crawler_row(label, identity, row, &sites, end);
            if shown.is_unknown_bots() && !violators.is_empty() {
                // The row counts all unknown bots, also those that obey.
                if all_by_violators >= shown.counts.requests() {
                    shown.name.clone_from(&violators);
                } else {
                    cautions.push(format!(
                        "Of the unknown bots, these broke the rules: {violators}."
                    ));
                }
            }
            crawlers.push(with_urls(shown, row, options));
            by_rule.extend(row.rules.iter().map(|(key, hits)| (*key, hits.disallowed)));
        }
    }
    let mut rule_counts = rule_counts(by_rule, &sites);
    rule_counts.truncate(MAX_TOP_ENTRIES);
    let mut report = Report {
        from: tally.span.first,
        to: tally.span.last,
        source: if rules.is_from_policies() {
            ReportSource::LogsByPolicies
        } else {
            ReportSource::Logs
        },
        site: options.site.clone().unwrap_or_else(|| rules.host_names()),
        crawlers,
        top: options.top,
        unknown_bots,
        visitors: tally.visitors,
        periods: period_bars(&tally.days, end),
        rules: rule_counts,
        urls: top_entries(&tally.urls, MAX_TOP_ENTRIES),
        sitemap: options
            .sitemap
            .as_ref()
            .map(|urls| urls.summary(&tally.hosts)),
        log: Some(LogSummary {
            rules: rules.file_names(),
            cautions,
            is_undated: rules.history_unknown_until(Duration::ZERO).is_none(),
            damaged,
            lists: options
                .networks
                .as_ref()
                .map(PublishedNetworks::network_list_usage),
            policy_networks: sites.iter().any(|site| !site.networks.0.is_empty()),
            ..log_summary_of_tally(&tally, inputs)
        }),
        ..Report::default()
    }
    .finish(end);
    report.traffic = Some(traffic(&report, &tally));
    report
}

/// What crawlers read and take, and who comes back.
fn traffic(report: &Report, tally: &AuditTally) -> TrafficReport {
    let mut traffic = TrafficReport::new(report, tally.lines.visitors_bytes);
    if tally.has_referers || !tally.visits.is_empty() {
        let mut visits: Vec<ServiceVisits> = tally
            .visits
            .iter()
            .map(|(service, visits)| ServiceVisits {
                service: (*service).to_owned(),
                visits: *visits,
            })
            .collect();
        // Stable: equal numbers stay in the order of the ids.
        visits.sort_by_key(|sent| Reverse(sent.visits));
        traffic.set_visits(visits, report.pages_by_crawler());
    }
    traffic
}

/// What was read of the logs, and what could not be judged.
fn log_summary_of_tally(tally: &AuditTally, inputs: &[LogInput]) -> LogSummary {
    let name = |input: usize| {
        inputs
            .get(input)
            .map(LogInput::display_name)
            .unwrap_or_default()
    };
    let without = tally
        .has_user_agents
        .iter()
        .filter(|(_, has_one)| !**has_one);
    let unreadable = tally.unreadable.iter();
    LogSummary {
        names: (0..inputs.len()).map(name).collect(),
        counts: tally.lines,
        hosts: tally.hosts.iter().cloned().collect(),
        unjudged_hosts: tally.unjudged_hosts.iter().cloned().collect(),
        outside_span: [tally.outside_span.first, tally.outside_span.last],
        has_referrers: tally.has_referers,
        unreadable: tally.unreadable.values().sum(),
        unreadable_reasons: unreadable
            .map(|(reason, number)| (reason.id().to_owned(), *number))
            .collect(),
        without_user_agents: without.map(|(input, _)| name(*input)).collect(),
        examples: tally
            .examples
            .iter()
            .map(|example| UnreadableLine {
                file: name(example.input),
                line: example.line,
                reason: example.reason.id().to_owned(),
                text: example.text.clone(),
            })
            .collect(),
        ..LogSummary::default()
    }
}

/// The row of one label and identity, with the rule that it broke most as the example.
fn crawler_row(
    label: &str,
    identity: ClientIdentity,
    row: &RequestTally,
    sites: &[&Site],
    end: Timestamp,
) -> CrawlerRow {
    let hits = row.rules.iter();
    let worst = hits
        .clone()
        .max_by_key(|(key, hits)| (hits.violations, Reverse(**key)))
        .filter(|(_, hits)| hits.violations > 0);
    CrawlerRow {
        first: row.violation_times.first,
        last: row.violation_times.last,
        disallowed_bytes: row.disallowed_bytes,
        rules: rule_counts(hits.map(|(key, hits)| (*key, hits.disallowed)), sites),
        example: worst.and_then(|(key, _)| rule_example(sites, *key)),
        ..CrawlerRow::new(label, identity, row.counts.totals_at(end))
    }
}

/// Adds what a crawler requested most to its row.
fn with_urls(row: CrawlerRow, tally: &RequestTally, options: &AuditOptions) -> CrawlerRow {
    let limit = options.list_length.max(MAX_TOP_ENTRIES);
    let addresses = match options.list_length {
        0 => MAX_ADDRESSES[0],
        length => length.min(MAX_ADDRESSES[1]),
    };
    let sitemap = options.sitemap.as_ref();
    let mut all_days = TopKSketch::default();
    let mut sections = TopKSketch::default();
    let mut paths = TopKSketch::default();
    let mut statuses = Vec::new();
    for (status, of_status) in &tally.statuses {
        all_days.merge(&of_status.days);
        sections.merge(&of_status.sections);
        paths.merge(&of_status.paths);
        if *status > 0 {
            statuses.push(ResponseStatusRow {
                status: *status,
                requests: of_status.requests,
                days: sorted_days(&of_status.days),
                sections: top_entries(&of_status.sections, limit),
                paths: top_entries(&of_status.paths, limit),
            });
        }
    }
    let mut devices = top_entries(&tally.devices, limit);
    // Most crawlers have no form for smartphones.
    if devices.iter().all(|device| device.name == "desktop") {
        devices.clear();
    }
    let mut combinations = top_entries(&tally.combinations, limit);
    for (combination, counted) in combinations.iter_mut().zip(tally.combinations.top(limit)) {
        let urls = tally.combined_urls.get(&hash(&*counted.key));
        combination.urls = urls.map(|urls| urls.len() as u64);
    }
    // Stable: equal numbers stay in the order of the statuses.
    statuses.sort_by_key(|of_status| Reverse(of_status.requests));
    CrawlerRow {
        urls_against_rules: top_entries(&tally.urls_against_rules, limit),
        addresses: top_entries(&tally.addresses, addresses),
        usage: tally.usage,
        sections: top_entries(&sections, limit),
        with_parameters: tally.with_parameters,
        parameters: top_entries(&tally.parameters, limit),
        combinations,
        devices,
        days: sorted_days(&all_days),
        distinct_paths: paths.len() as u64,
        paths: top_entries(&paths, limit),
        statuses,
        sitemap: sitemap
            .and_then(|urls| sitemap_coverage(urls, &tally.sitemap, limit, options.section_depth)),
        ..row
    }
}

/// What a crawler requested of the URLs of sitemaps. `None` if it requested no page.
fn sitemap_coverage(
    urls: &SitemapUrls,
    tally: &SitemapTally,
    limit: usize,
    section_depth: usize,
) -> Option<SitemapCoverage> {
    let mut coverage = SitemapCoverage {
        requested: tally.requested.len() as u64,
        requests: tally.inside + tally.outside,
        requests_outside: tally.outside,
        outside: top_entries(&tally.outside_urls, limit),
        ..SitemapCoverage::default()
    };
    if coverage.requests == 0 {
        return None;
    }
    let mut sections = TopKSketch::default();
    for url in urls.never_requested(tally) {
        coverage.never_requested += 1;
        sections.add(
            path_section(&printable_path(url.as_bytes()), section_depth),
            true,
        );
    }
    coverage.sections = top_entries(&sections, limit);
    coverage.examples = urls
        .never_requested(tally)
        .take(limit)
        .map(|url| printable(url.as_bytes()))
        .collect();
    Some(coverage)
}

/// The rule with its place, without a request: a log has too many to keep one for each rule.
fn rule_example(sites: &[&Site], key: RuleKey) -> Option<ViolationExample> {
    let pattern = rule_pattern(sites, key)?;
    Some(ViolationExample {
        rule: format!("Disallow: {}", printable(pattern.as_bytes())),
        place: rule_location(sites, key)?,
        ..ViolationExample::default()
    })
}

/// A bar for each day, or for each week of a long log.
fn period_bars(
    days: &BTreeMap<i64, ByIdentity<ProvisionalCounts>>,
    end: Timestamp,
) -> Vec<PeriodBar> {
    let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else {
        return Vec::new();
    };
    let first = *first.max(&(last - MAX_AGE_DAYS));
    let step = if last - first < MAX_DAILY_BARS {
        PeriodLength::Day
    } else {
        PeriodLength::Week
    };
    let period = ReportPeriod {
        from: step.start_of(Timestamp(first * DAY)),
        to: Timestamp(last * DAY),
        step,
    };
    let mut bars = period.bars(&[]);
    for (day, counted) in days.range(first..) {
        let place = period.step_index(Timestamp(day * DAY));
        if let Some(bar) = place.and_then(|place| bars.get_mut(place)) {
            for (identity, counts) in counted.iter() {
                bar.add(identity, &counts.totals_at(end));
            }
        }
    }
    bars
}

/// Sums rules with the same pattern, the most frequent first, with all their places.
fn rule_counts(rules: impl IntoIterator<Item = (RuleKey, u64)>, sites: &[&Site]) -> Vec<RuleCount> {
    let mut by_pattern: BTreeMap<&str, (u64, BTreeSet<RuleKey>)> = BTreeMap::new();
    for (key, count) in rules {
        let Some(pattern) = rule_pattern(sites, key) else {
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
            place: rule_locations(sites, &keys),
        })
        .collect();
    // Stable: equal counts stay in the order of their patterns.
    counts.sort_by_key(|rule| Reverse(rule.count));
    counts
}

fn rule_pattern<'a>(sites: &[&'a Site], key: RuleKey) -> Option<&'a str> {
    let (rule, _) = sites.get(key.site)?.rule(key.group, key.rule)?;
    Some(rule.pattern.as_str())
}

/// The first places of a rule, separated by commas, and how many more there are.
fn rule_locations(sites: &[&Site], keys: &BTreeSet<RuleKey>) -> String {
    let mut places: Vec<String> = keys
        .iter()
        .filter_map(|key| rule_location(sites, *key))
        .collect();
    // One rule of a policy may stand in several groups.
    places.dedup();
    join_first(places, MAX_LOCATIONS)
}

fn rule_location(sites: &[&Site], key: RuleKey) -> Option<String> {
    let site = sites.get(key.site)?;
    let (_, source) = site.rule(key.group, key.rule)?;
    Some(source_location(source, site).0)
}

/// All days of a sketch, in order.
fn sorted_days(sketch: &TopKSketch) -> Vec<TopEntry> {
    let mut days = top_entries(sketch, usize::MAX);
    days.sort_by(|day, other| day.name.cmp(&other.name));
    days
}

/// At most `limit` of the most frequent keys of a sketch, the most frequent first.
fn top_entries(sketch: &TopKSketch, limit: usize) -> Vec<TopEntry> {
    let top = sketch.top(limit.saturating_add(1));
    let is_of_cut_list = top.len() > limit;
    top.into_iter()
        .take(limit)
        .map(|counted| TopEntry {
            name: printable(&counted.key),
            count: counted.count,
            error: counted.error,
            usage: sketch.usages.get(&*counted.key).copied(),
            urls: None,
            is_of_cut_list,
        })
        .collect()
}
