//! [`AuditTally`]: what one worker thread of an audit has counted. It has a [`RequestTally`] for
//! each crawler and each identity (verified, unverified, or suspected impostor). At the end of the
//! audit, the tallies of all workers are merged.
//!
//! A crawler may use a cached copy of an older robots.txt for some time. [`ProvisionalCounts`]
//! counts separately the requests that only the older robots.txt allows. If the log goes on beyond
//! that time, these requests finally count as allowed.

use crate::logs::{LogRecord, UnreadableReason};
use crate::record::{CountedAction, RequestCounts, printable_path};
use crate::report::{ClientIdentity, LineCounts};
use crate::sketch::{KeyUsage, TopKSketch};
use crate::state::history::DAY;
use crate::time::Timestamp;
use crate::verdict::{Action, Decision, Kind, Verdict};
use Kind::*;
use ahash::{AHashMap, AHashSet, RandomState};
use derive_more::AddAssign;
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use strum::VariantArray;

/// Unreadable lines that are shown.
pub const MAX_EXAMPLES: usize = 3;

/// The hosts of a log that are noted: the first by name.
pub const MAX_HOSTS: usize = 1_000;

/// A log with wrong times may have any number of days.
const MAX_DAYS: usize = 4_000;

/// The keys that each list may always have.
const MIN_LIST_KEYS: usize = 512;

/// The keys that all lists of all workers may have beyond [`MIN_LIST_KEYS`]; a long key counts as
/// several. A key takes about 200 bytes and its length.
const MAX_KEYS: usize = 2_000_000;

/// A key counts as one more for each of these bytes.
const SHORT_KEY_BYTES: usize = 200;

/// Longer keys are cut.
const MAX_KEY_BYTES: usize = 2_000;

/// The parameters of one query that are counted.
const MAX_PARAMETERS: usize = 8;

/// Longer names of parameters are cut.
const MAX_PARAMETER_BYTES: usize = 50;

/// A line that cannot be read. Sorts by input and line.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct UnreadableExample {
    /// Index of the input.
    pub input: usize,
    /// Its number in the input.
    pub line: u64,
    /// Why it cannot be read.
    pub reason: UnreadableReason,
    /// Its beginning.
    pub text: String,
}

/// How many keys the lists of all workers have beyond [`MIN_LIST_KEYS`], and how many URLs with
/// parameters they remember. A list is exact as long as it grows.
#[derive(Default)]
pub struct KeyBudget(AtomicUsize);

impl KeyBudget {
    /// Counts a key in a list, and returns it as the list has it: cut if it is long. A long key takes
    /// the place of several.
    pub fn add<'k>(&self, list: &mut TopKSketch, key: &'k [u8]) -> &'k [u8] {
        let before = list.len();
        let is_small = before < MIN_LIST_KEYS;
        let key = &key[..key.len().min(MAX_KEY_BYTES)];
        list.add(key, is_small || self.has_space());
        if !is_small && list.len() > before {
            self.0
                .fetch_add(1 + key.len() / SHORT_KEY_BYTES, Ordering::Relaxed);
        }
        key
    }

    fn has_space(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MAX_KEYS
    }
}

/// Identifies a rule of a site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey {
    /// The index of the site.
    pub site: usize,
    /// The index of the group in the document of the site.
    pub group: usize,
    /// The index of the rule in the group.
    pub rule: usize,
}

/// A request of a log with the decision about it.
pub struct JudgedRequest<'a> {
    /// The index of its site among those of the rules.
    pub site: usize,
    /// What the rules say.
    pub decision: &'a Decision,
    /// Until when the request does not count, if a time ends that.
    pub older_until: Option<Timestamp>,
    /// When it came.
    pub time: Timestamp,
    /// The status that was sent; 0 if the log does not have it.
    pub status: u16,
    /// The bytes that were sent.
    pub bytes: u64,
}

impl JudgedRequest<'_> {
    /// Whether the rules disallow it, even if it does not count. Ambiguous requests and requests
    /// for robots.txt are never disallowed.
    pub fn is_disallowed(&self) -> bool {
        let decision = self.decision;
        decision.verdict == Verdict::Disallowed
            && decision.kind != Ambiguous
            && !decision.robots_txt
    }

    /// Whether it counts as against the rules.
    pub fn breaks_rules(&self) -> bool {
        self.is_disallowed() && matches!(self.decision.kind, Violation | Trapped)
    }

    /// What enforcement would have done. What the server did does not matter.
    fn action_if_enforced(&self) -> CountedAction {
        use Action::*;

        if self.decision.robots_txt {
            return CountedAction::RobotsTxt;
        }
        match self.decision.would.unwrap_or(self.decision.action) {
            Block(_) => CountedAction::WouldBlock,
            Slow { .. } => CountedAction::WouldSlow,
            // A log does not have licence tokens.
            License { .. } | Pass | Pause { .. } | RobotsTxt | Tdmrep => CountedAction::Pass,
        }
    }
}

/// The times of the first and the last of some requests. The lines of a log are in any order.
#[derive(Default)]
pub struct TimeRange {
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl TimeRange {
    /// The range of one request.
    pub fn from_instant(time: Timestamp) -> TimeRange {
        TimeRange {
            first: Some(time),
            last: Some(time),
        }
    }

    /// Extends the range by another.
    pub fn add(&mut self, other: TimeRange) {
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }
}

/// Requests of a log by kind. Whether a request in doubt counts depends on the end of the log.
#[derive(Default)]
pub struct ProvisionalCounts {
    counted: RequestCounts,
    /// By the time until which they do not count.
    in_doubt: BTreeMap<Timestamp, RequestCounts>,
}

impl ProvisionalCounts {
    /// Counts a request.
    pub fn add(&mut self, request: &JudgedRequest<'_>) {
        let counts = match request.older_until {
            Some(until) => self.in_doubt.entry(until).or_default(),
            None => &mut self.counted,
        };
        counts.add(request.decision.kind, request.action_if_enforced(), 1);
        counts.add_bytes(request.bytes);
        // As crawlgate counts: statuses of robots.txt are no statuses of pages.
        if !request.decision.robots_txt {
            counts.add_status(request.status);
        }
    }

    fn merge(&mut self, other: ProvisionalCounts) {
        self.counted.add_all(&other.counted);
        for (until, counts) in other.in_doubt {
            self.in_doubt.entry(until).or_default().add_all(&counts);
        }
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.counted.requests()
            + self
                .in_doubt
                .values()
                .map(RequestCounts::requests)
                .sum::<u64>()
    }

    /// The sums for a log that ends at `end`: see [`RequestCounts::count_expired_stale_copies_as_allowed`].
    pub fn totals_at(&self, end: Timestamp) -> RequestCounts {
        let mut all = self.counted;
        for (until, counts) in &self.in_doubt {
            let mut counts = *counts;
            for kind in [StaleCopy, Unproven] {
                if counts.requests_of_kind(kind) > 0 {
                    counts.set_older_until(kind, *until);
                }
            }
            counts.count_expired_stale_copies_as_allowed(end);
            all.add_all(&counts);
        }
        all
    }
}

/// Requests that a rule disallowed.
#[derive(AddAssign, Default)]
pub struct RuleHits {
    /// All of them.
    pub disallowed: u64,
    /// Those that count as against the rules.
    pub violations: u64,
}

/// Requests that were answered with one status.
#[derive(Default)]
pub struct StatusTally {
    /// All of them.
    pub requests: u64,
    /// Their UTC days.
    pub days: TopKSketch,
    /// The first directories of the requested paths.
    pub sections: TopKSketch,
    /// The requested paths.
    pub paths: TopKSketch,
}

/// What a crawler requested of the URLs of sitemaps.
#[derive(Default)]
pub struct SitemapTally {
    /// Requests for URLs that a sitemap lists.
    pub inside: u64,
    /// Requests for other URLs.
    pub outside: u64,
    /// The other URLs: paths, or sections with the names of parameters.
    pub outside_urls: TopKSketch,
    /// The keys of the listed URLs that it requested.
    pub requested: AHashSet<u64>,
}

/// The requests under one crawler's name by clients of one identity.
#[derive(Default)]
pub struct RequestTally {
    /// Requests by kind.
    pub counts: ProvisionalCounts,
    /// The bytes that were sent for disallowed requests.
    pub disallowed_bytes: u64,
    /// The rules that disallowed requests.
    pub rules: AHashMap<RuleKey, RuleHits>,
    /// When requests against the rules came.
    pub violation_times: TimeRange,
    /// The requests with a query that is not empty.
    pub with_parameters: u64,
    /// The names of the parameters in queries.
    pub parameters: TopKSketch,
    /// The sections of the requested paths with the names of all parameters of the query.
    pub combinations: TopKSketch,
    /// The hashes of the requested URLs with their hosts, by the hash of the key of their combination.
    pub combined_urls: AHashMap<u64, AHashSet<u64>>,
    /// What its requests took.
    pub usage: KeyUsage,
    /// `smartphone` and `desktop`, by the user agent.
    pub devices: TopKSketch,
    /// The requested paths by status. Those under 0 have no known status, or were answered with
    /// robots.txt.
    pub statuses: BTreeMap<u16, StatusTally>,
    /// The URLs of its requests against the rules.
    pub urls_against_rules: TopKSketch,
    /// The addresses of clients that probably pretend to be the crawler.
    pub addresses: TopKSketch,
    /// Its requests compared with sitemaps; only for search crawlers.
    pub sitemap: SitemapTally,
}

/// What was counted of the requests under one crawler's name, or of a day, by identity.
#[derive(Default)]
pub struct ByIdentity<T>([T; ClientIdentity::VARIANTS.len()]);

impl<T> ByIdentity<T> {
    /// The counts of clients of this identity.
    pub fn get_mut(&mut self, identity: ClientIdentity) -> &mut T {
        &mut self.0[identity as usize]
    }

    /// Every identity with its counts.
    pub fn iter(&self) -> impl Iterator<Item = (ClientIdentity, &T)> {
        ClientIdentity::VARIANTS.iter().copied().zip(&self.0)
    }

    fn merge(&mut self, other: ByIdentity<T>, merge: fn(&mut T, T)) {
        for (own, theirs) in self.0.iter_mut().zip(other.0) {
            merge(own, theirs);
        }
    }
}

/// The counts of an audit.
#[derive(Default)]
pub struct AuditTally {
    pub lines: LineCounts,
    pub unreadable: BTreeMap<UnreadableReason, u64>,
    pub examples: Vec<UnreadableExample>,
    /// Whether any request has a user agent, by the index of the input.
    pub has_user_agents: BTreeMap<usize, bool>,
    pub visitors: u64,
    /// Visits by the id of the service that sent them.
    pub visits: BTreeMap<&'static str, u64>,
    /// The judged hosts, as many as are noted.
    pub hosts: BTreeSet<String>,
    /// The hosts that are not judged, as many as are noted.
    pub unjudged_hosts: BTreeSet<String>,
    /// Whether any request has a referrer: a log without them has no visits.
    pub has_referers: bool,
    /// The times of all requests for a judged host.
    pub span: TimeRange,
    /// The times of the requests for a judged host outside of the period.
    pub outside_span: TimeRange,
    /// By days since 1970.
    pub days: BTreeMap<i64, ByIdentity<ProvisionalCounts>>,
    /// By the crawler's label.
    pub rows: AHashMap<Box<str>, ByIdentity<RequestTally>>,
    pub urls: TopKSketch,
    /// Unknown bots by what they call themselves.
    pub unknown_bots: TopKSketch,
    /// Those of them that broke a rule.
    pub unknown_violators: TopKSketch,
}

/// The path of a target without parameters. With parameters, its section with their names, which
/// are the same for many paths: `/shop/...?color&size`.
pub fn without_values(target: &[u8], section_depth: usize) -> Vec<u8> {
    let path = printable_path(target);
    let names = joined_names(target);
    if names.is_empty() {
        return path.into_owned();
    }
    let section = path_section(&path, section_depth);
    let paths = match section.len() {
        // Pages in no directory have little in common.
        1 => &*path,
        end if end == path.len() => section,
        _ => &[section, b"..."].concat(),
    };
    [paths, &names].join(&b'?')
}

/// The different names of the parameters of a target: `color&size`.
pub fn joined_names(target: &[u8]) -> Vec<u8> {
    let query = memchr::memchr(b'?', target).map_or(&b""[..], |query| &target[query + 1..]);
    let names: BTreeSet<&[u8]> = parameter_names(query).collect();
    Vec::from_iter(names).join(&b'&')
}

impl RequestTally {
    /// Counts a request.
    pub fn add(&mut self, request: &JudgedRequest<'_>) {
        self.counts.add(request);
        if !request.is_disallowed() {
            return;
        }
        self.disallowed_bytes += request.bytes;
        let breaks_rules = request.breaks_rules();
        if breaks_rules {
            self.violation_times
                .add(TimeRange::from_instant(request.time));
        }
        if let Some(deciding) = request.decision.rule
            && let Some(rule) = deciding.rule
        {
            let key = RuleKey {
                site: request.site,
                group: deciding.group,
                rule,
            };
            *self.rules.entry(key).or_default() += RuleHits {
                disallowed: 1,
                violations: u64::from(breaks_rules),
            };
        }
    }

    /// Counts the day, the duration and the device of a request, its path, its section, and the names
    /// of its parameters. The path keeps its query if the response is a redirect or an error: a page
    /// that is addressed by a query cannot be found without it.
    pub fn add_url(
        &mut self,
        status: u16,
        record: &LogRecord<'_>,
        section_depth: usize,
        budget: &KeyBudget,
    ) {
        let usage = KeyUsage {
            bytes: record.bytes,
            last: Some(record.time),
            timed: u64::from(record.milliseconds.is_some()),
            milliseconds: record.milliseconds.unwrap_or_default().into(),
            slow: u64::from(record.milliseconds >= Some(1_000)),
        };
        self.usage.add(usage);
        let is_mobile =
            memmem::find(record.user_agent.as_deref().unwrap_or_default(), b"Mobile").is_some();
        budget.add(
            &mut self.devices,
            if is_mobile { b"smartphone" } else { b"desktop" },
        );
        let target = &*record.target;
        let path = printable_path(target);
        let section = path_section(&path, section_depth);
        let mut url = path.clone();
        if let Some(place) = memchr::memchr(b'?', target) {
            if status >= 300 && status != 304 {
                url.to_mut().extend_from_slice(&target[place..]);
            }
            let query = &target[place + 1..];
            self.with_parameters += u64::from(!query.is_empty());
            let names: BTreeSet<&[u8]> = parameter_names(query).collect();
            for name in &names {
                budget.add(&mut self.parameters, name);
            }
            if !names.is_empty() {
                let combination = without_values(target, section_depth);
                let combination = budget.add(&mut self.combinations, &combination);
                self.combinations.add_usage(combination, usage);
                if budget.has_space() {
                    let urls = self.combined_urls.entry(hash(combination)).or_default();
                    let is_new = urls.insert(hash((&record.host, target)));
                    budget.0.fetch_add(is_new.into(), Ordering::Relaxed);
                }
            }
        }
        let of_status = self.statuses.entry(status).or_default();
        of_status.requests += 1;
        for (list, key) in [
            (&mut of_status.days, record.time.format_day().as_bytes()),
            (&mut of_status.sections, section),
            (&mut of_status.paths, &*url),
        ] {
            let key = budget.add(list, key);
            list.add_usage(key, usage);
        }
    }

    /// Adds what another worker has counted.
    fn merge(&mut self, other: RequestTally) {
        self.counts.merge(other.counts);
        self.disallowed_bytes += other.disallowed_bytes;
        self.violation_times.add(other.violation_times);
        self.with_parameters += other.with_parameters;
        self.parameters.merge(&other.parameters);
        self.combinations.merge(&other.combinations);
        for (combination, urls) in other.combined_urls {
            self.combined_urls
                .entry(combination)
                .or_default()
                .extend(urls);
        }
        self.usage.add(other.usage);
        self.devices.merge(&other.devices);
        for (status, theirs) in other.statuses {
            let known = self.statuses.entry(status).or_default();
            known.requests += theirs.requests;
            known.days.merge(&theirs.days);
            known.sections.merge(&theirs.sections);
            known.paths.merge(&theirs.paths);
        }
        self.urls_against_rules.merge(&other.urls_against_rules);
        self.addresses.merge(&other.addresses);
        self.sitemap.inside += other.sitemap.inside;
        self.sitemap.outside += other.sitemap.outside;
        self.sitemap.outside_urls.merge(&other.sitemap.outside_urls);
        self.sitemap.requested.extend(other.sitemap.requested);
        for (rule, hits) in other.rules {
            *self.rules.entry(rule).or_default() += hits;
        }
    }
}

impl AuditTally {
    /// The counts of the UTC day of this time. `None` for a new day when there are too many.
    pub fn day_mut(&mut self, time: Timestamp) -> Option<&mut ByIdentity<ProvisionalCounts>> {
        let day = time.0.div_euclid(DAY);
        if self.days.len() >= MAX_DAYS && !self.days.contains_key(&day) {
            return None;
        }
        Some(self.days.entry(day).or_default())
    }

    /// Notes a host.
    pub fn add_host(&mut self, host: String, is_judged: bool) {
        let hosts = if is_judged {
            &mut self.hosts
        } else {
            &mut self.unjudged_hosts
        };
        hosts.insert(host);
        if hosts.len() > MAX_HOSTS {
            hosts.pop_last();
        }
    }

    /// Counts a line that cannot be read, and keeps its beginning if it is one of the first.
    pub fn add_unreadable(
        &mut self,
        input: usize,
        line: u64,
        reason: UnreadableReason,
        text: &[u8],
    ) {
        *self.unreadable.entry(reason).or_default() += 1;
        if let Some(last) = self.examples.get(MAX_EXAMPLES - 1)
            && (last.input, last.line) <= (input, line)
        {
            return;
        }
        self.examples.push(UnreadableExample {
            input,
            line,
            reason,
            text: crate::printable::printable(&text[..text.len().min(200)]),
        });
        self.examples.sort();
        self.examples.truncate(MAX_EXAMPLES);
    }

    /// Adds what another worker has counted.
    pub fn merge(&mut self, other: AuditTally) {
        self.lines += other.lines;
        for (reason, number) in other.unreadable {
            *self.unreadable.entry(reason).or_default() += number;
        }
        self.examples.extend(other.examples);
        self.examples.sort();
        self.examples.truncate(MAX_EXAMPLES);
        for (input, has_one) in other.has_user_agents {
            *self.has_user_agents.entry(input).or_default() |= has_one;
        }
        self.visitors += other.visitors;
        for (service, visits) in other.visits {
            *self.visits.entry(service).or_default() += visits;
        }
        for host in other.hosts {
            self.add_host(host, true);
        }
        for host in other.unjudged_hosts {
            self.add_host(host, false);
        }
        self.has_referers |= other.has_referers;
        self.span.add(other.span);
        self.outside_span.add(other.outside_span);
        for (day, counts) in other.days {
            self.days
                .entry(day)
                .or_default()
                .merge(counts, ProvisionalCounts::merge);
        }
        for (label, row) in other.rows {
            self.rows
                .entry(label)
                .or_default()
                .merge(row, RequestTally::merge);
        }
        self.urls.merge(&other.urls);
        self.unknown_bots.merge(&other.unknown_bots);
        self.unknown_violators.merge(&other.unknown_violators);
    }
}

/// The first directories of a path, `depth` at most: `/shop/` of `/shop/shoes/x` with 1. `/` for a
/// page that is in no directory.
pub fn path_section(path: &[u8], depth: usize) -> &[u8] {
    let end = memchr::memchr_iter(b'/', path)
        .take(depth + 1)
        .last()
        .map_or(path.len(), |slash| slash + 1);
    &path[..end]
}

/// A hash that is the same for all workers.
pub fn hash(value: impl Hash) -> u64 {
    RandomState::with_seed(0).hash_one(value)
}

/// The names of the first parameters of a query that have a name.
fn parameter_names(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    query
        .split(|byte| *byte == b'&')
        .take(MAX_PARAMETERS)
        .map(|parameter| {
            let end = memchr::memchr(b'=', parameter).unwrap_or(parameter.len());
            &parameter[..end.min(MAX_PARAMETER_BYTES)]
        })
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{
        KeyBudget, LogRecord, MAX_KEY_BYTES, MAX_KEYS, MIN_LIST_KEYS, RequestTally, hash,
        path_section, without_values,
    };
    use crate::sketch::TopKSketch;

    #[test]
    fn url_is_counted_by_section_parameter_and_status() {
        let mut tally = RequestTally::default();
        for target in [
            "/shop/shoes?color=red&size=4&color=blue&&flag",
            "/shop/?color=red",
            "/shop/?color=red",
            "/shop/?color=blue",
            "http://shop.example/shop//x",
            "/about?",
            "/",
            "//shop",
            "*",
        ] {
            let record = LogRecord {
                target: target.as_bytes().into(),
                bytes: 10,
                ..LogRecord::default()
            };
            tally.add_url(200, &record, 1, &KeyBudget::default());
        }
        let count = |sketch: &TopKSketch| -> Vec<(String, u64)> {
            let top = sketch.top(9).into_iter();
            top.map(|one| (String::from_utf8_lossy(&one.key).into_owned(), one.count))
                .collect()
        };
        let named = |name: &str, count| (name.to_owned(), count);
        let sections = [
            named("/shop/", 5),
            named("/", 2),
            named("*", 1),
            named("//", 1),
        ];
        assert_eq!(count(&tally.statuses[&200].sections), sections);
        assert_eq!(tally.combined_urls[&hash(&b"/shop/?color"[..])].len(), 2);
        let parameters = [named("color", 4), named("flag", 1), named("size", 1)];
        assert_eq!(count(&tally.parameters), parameters);
        let combinations = [
            named("/shop/?color", 3),
            named("/shop/...?color&flag&size", 1),
        ];
        assert_eq!(count(&tally.combinations), combinations);
        let usage = tally.statuses[&200].sections.usages.get(&b"/shop/"[..]);
        assert_eq!(usage.map(|usage| usage.bytes), Some(50));
        // The query of one is empty.
        assert_eq!(tally.with_parameters, 4);
        assert_eq!(tally.statuses[&200].requests, 9);
        let mut all = RequestTally::default();
        all.merge(tally);
        assert_eq!(all.with_parameters, 4);
        assert_eq!(count(&all.statuses[&200].sections), sections);
    }

    #[test]
    fn depth_of_sections_can_be_chosen() {
        for (target, depth, section, combined) in [
            ("/de/shop/x?a=1", 1, "/de/", "/de/...?a"),
            ("/de/shop/x?a=1", 2, "/de/shop/", "/de/shop/...?a"),
            ("/de/shop/?a=1", 2, "/de/shop/", "/de/shop/?a"),
            ("/de/x?a=1", 2, "/de/", "/de/...?a"),
            ("/x?a=1", 2, "/", "/x?a"),
        ] {
            let path = target.split('?').next().unwrap_or_default();
            assert_eq!(path_section(path.as_bytes(), depth), section.as_bytes());
            assert_eq!(
                without_values(target.as_bytes(), depth),
                combined.as_bytes()
            );
        }
    }

    #[test]
    fn parameters_of_a_url_are_bounded() {
        let mut tally = RequestTally::default();
        let query: String = (0..100).map(|number| format!("&p{number}")).collect();
        let target = format!("/a?{}{query}", "x".repeat(100));
        for _ in 0..9 {
            let record = LogRecord {
                target: target.as_bytes().into(),
                ..LogRecord::default()
            };
            tally.add_url(200, &record, 1, &KeyBudget::default());
        }
        assert_eq!(tally.parameters.len(), 8);
        let top = tally.parameters.top(9);
        assert!(top.iter().all(|one| one.key.len() <= 50), "{top:?}");
    }

    #[test]
    fn urls_of_a_combination_are_bounded_and_differ_by_host() {
        let mut tally = RequestTally::default();
        let budget = KeyBudget((MAX_KEYS - 3).into());
        let path = format!("/{}", "x".repeat(MAX_KEY_BYTES));
        for (host, value) in [("a", 1), ("b", 1), ("a", 1), ("a", 2), ("a", 3), ("a", 4)] {
            let target = format!("{path}?id={value}");
            let record = LogRecord {
                host: Some(host.as_bytes().into()),
                target: target.as_bytes().into(),
                bytes: 10,
                ..LogRecord::default()
            };
            tally.add_url(200, &record, 1, &budget);
        }
        let top = tally.combinations.top(1);
        assert_eq!(tally.combined_urls[&hash(&*top[0].key)].len(), 3);
        assert_eq!(tally.combinations.usages[&*top[0].key].bytes, 60);
        let paths = &tally.statuses[&200].paths;
        assert_eq!(paths.usages[&*paths.top(1)[0].key].bytes, 60);
    }

    #[test]
    fn lists_grow_until_the_budget_is_spent() {
        let budget = KeyBudget((MAX_KEYS - 10).into());
        let mut lists = [TopKSketch::default(), TopKSketch::default()];
        for list in &mut lists {
            for number in 0..2_000_u32 {
                budget.add(list, &number.to_le_bytes());
            }
        }
        let sizes = lists.each_ref().map(TopKSketch::len);
        assert_eq!(sizes, [MIN_LIST_KEYS + 10, MIN_LIST_KEYS]);
        // The counts of a full list are not exact.
        let [mut one, other] = lists;
        one.merge(&other);
        assert!(one.iter().any(|counted| counted.error > 0));
    }
}
