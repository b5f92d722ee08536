//! [`CountTable`] counts the requests since crawlgate started, by site, crawler, identity (such as
//! verified), kind (such as violation) and action (such as blocked). The metrics export each
//! combination as a time series. The increases are regularly added to the history for the
//! dashboard. At most [`MAX_SERIES`] time series are made. Requests that would need another one
//! count under the crawler name [`OVERFLOW`].

use super::counts::{CountColumn, unix_seconds};
use super::{CountedAction, RecordedKind, RequestCounts, ViolationKind};
use crate::bounded::PrehashedKeys;
use crate::locks::{lock, read, write};
use crate::printable::truncate;
use crate::time::Timestamp;
use crate::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
use ahash::RandomState;
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use strum::VariantArray;

/// The most series of all counters with a crawler together. They take some MiB, and a scrape takes
/// some tens of milliseconds. Beyond the cap crawlgate counts under [`OVERFLOW`], which adds few
/// series. Bytes and statuses are not limited: they add at most six series for each crawler and
/// identity.
pub const MAX_SERIES: usize = 20_000;
/// The crawler label of requests that are counted beyond the cap.
pub const OVERFLOW: &str = "overflow";
/// The most bytes of a label: a policy may have tokens of 100 characters.
const MAX_LABEL: usize = 64;

/// A label as it is counted: at most 64 bytes, in whole characters.
pub fn truncate_label(label: &str) -> &str {
    truncate(label, MAX_LABEL)
}

/// A request as it is counted.
#[derive(Clone, Copy)]
pub struct CountedRequest<'a> {
    /// The name of the site.
    pub site: &'a str,
    /// The label of the crawler.
    pub crawler: &'a str,
    /// `None` for visitors.
    pub identity: Option<IdentityStatus>,
    /// Its kind.
    pub kind: RecordedKind,
    /// How well it is known which robots.txt the crawler may use.
    pub basis: CachedVersionsBasis,
    /// Until when the request does not count; `None` if it counts, or if that has no end.
    pub older_until: Option<Timestamp>,
    /// What crawlgate did.
    pub action: CountedAction,
    /// Its kind among the violations, if it is one.
    pub violation: Option<ViolationKind>,
    /// The status that was sent; 0 if none was.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub bytes: u64,
    /// The time until the origin sent the head of its response.
    pub origin_milliseconds: u64,
    /// Whether it got a page with a reservation: see
    /// [`RequestRecord::has_reserved_page`](super::RequestRecord::has_reserved_page).
    pub has_reserved_page: bool,
}

/// Requests by site, crawler, identity, kind and action.
pub struct CountTable {
    /// By the hash of site and crawler.
    rows: RwLock<HashMap<u64, Arc<SiteCrawlerRow>, PrehashedKeys>>,
    hasher: RandomState,
    /// The number of series of all counters that share the cap.
    series: Arc<AtomicUsize>,
}

/// The requests to one site under the name of one crawler.
struct SiteCrawlerRow {
    site: Box<str>,
    crawler: Box<str>,
    /// By identity; the last is for visitors.
    cells: [OnceLock<Box<IdentityCells>>; IdentityStatus::VARIANTS.len() + 1],
}

type ActionCounters = [AtomicU64; CountedAction::VARIANTS.len()];

/// The requests to one site under the name of one crawler with one identity.
#[derive(Default)]
pub struct IdentityCells {
    /// By kind. Allocated on first use, because most rows have few kinds.
    requests: [OnceLock<Box<ActionCounters>>; RecordedKind::COUNT],
    violations: [AtomicU64; ViolationKind::COUNT],
    /// The columns besides kinds and actions.
    totals: [AtomicU64; CountColumn::VARIANTS.len()],
    /// Whether a request was counted since `take_new_counts`.
    has_new_counts: AtomicBool,
    /// The counts at the last `take_new_counts`.
    taken: Mutex<RequestCounts>,
}

impl CountTable {
    /// An empty table. `series` is shared by all counters that are limited together.
    pub fn new(series: &Arc<AtomicUsize>) -> CountTable {
        CountTable {
            rows: RwLock::default(),
            hasher: RandomState::new(),
            series: series.clone(),
        }
    }

    /// Counts a request. Its labels are cut to 64 bytes. Counts it under [`OVERFLOW`] if it makes a
    /// series and [`MAX_SERIES`] exist already.
    pub fn count(&self, request: &CountedRequest<'_>) {
        let site = truncate_label(request.site);
        let crawler = truncate_label(request.crawler);
        let hash = self.hasher.hash_one((site, crawler));
        // Counted while the lock is held, here and below, so that the row is not removed meanwhile.
        if let Some(row) = read(&self.rows).get(&hash)
            && let Some(cells) = row.known_cells(request)
        {
            return cells.add(request);
        }
        let mut rows = write(&self.rows);
        let is_full = self.series.load(Relaxed) >= MAX_SERIES;
        let makes_series = rows
            .get(&hash)
            .is_none_or(|row| row.known_cells(request).is_none());
        let (hash, crawler) = if is_full && makes_series {
            (self.hasher.hash_one((site, OVERFLOW)), OVERFLOW)
        } else {
            (hash, crawler)
        };
        let row = rows
            .entry(hash)
            .or_insert_with(|| Arc::new(SiteCrawlerRow::new(site, crawler)));
        let cells = row.cells[SiteCrawlerRow::identity_index(request)].get_or_init(Box::default);
        self.series
            .fetch_add(cells.count_new_series(request), Relaxed);
        cells.add(request);
    }

    /// Calls `visit` with the site, the crawler, the identity and the counts of each row.
    pub fn for_each(
        &self,
        mut visit: impl FnMut(&str, &str, Option<IdentityStatus>, &IdentityCells),
    ) {
        // Cloned, so that no request waits for `visit`.
        let rows: Vec<Arc<SiteCrawlerRow>> = read(&self.rows).values().cloned().collect();
        for row in &rows {
            let identities = IdentityStatus::VARIANTS.iter().copied().map(Some);
            for (identity, cells) in identities.chain([None]).zip(&row.cells) {
                if let Some(cells) = cells.get() {
                    visit(&row.site, &row.crawler, identity, cells);
                }
            }
        }
    }

    /// Removes the rows of sites that are not kept.
    pub fn remove_sites(&self, keep: &dyn Fn(&str) -> bool) {
        if read(&self.rows).values().all(|row| keep(&row.site)) {
            return;
        }
        write(&self.rows).retain(|_, row| {
            let is_kept = keep(&row.site);
            if !is_kept {
                self.series.fetch_sub(row.count_series(), Relaxed);
            }
            is_kept
        });
    }
}

impl SiteCrawlerRow {
    fn new(site: &str, crawler: &str) -> SiteCrawlerRow {
        SiteCrawlerRow {
            site: site.into(),
            crawler: crawler.into(),
            cells: Default::default(),
        }
    }

    fn identity_index(request: &CountedRequest<'_>) -> usize {
        request
            .identity
            .map_or(IdentityStatus::VARIANTS.len(), |identity| identity as usize)
    }

    /// The cells for a request, if the request makes no new series.
    fn known_cells(&self, request: &CountedRequest<'_>) -> Option<&IdentityCells> {
        let cells = self.cells[SiteCrawlerRow::identity_index(request)].get()?;
        (cells.count_new_series(request) == 0).then_some(cells)
    }

    /// The number of its series.
    fn count_series(&self) -> usize {
        let cells = self.cells.iter().filter_map(OnceLock::get);
        cells
            .map(|cells| cells.requests().count() + cells.violations().count())
            .sum()
    }
}

impl IdentityCells {
    /// How many new series a request makes: one for each of its counters that is zero.
    fn count_new_series(&self, request: &CountedRequest<'_>) -> usize {
        let is_zero = |counter: &AtomicU64| counter.load(Relaxed) == 0;
        let by_action = self.requests[request.kind.index()].get();
        let is_first = by_action.is_none_or(|counters| is_zero(&counters[request.action as usize]));
        let violation = request.violation.map(ViolationKind::index);
        let is_first_violation = violation.is_some_and(|place| is_zero(&self.violations[place]));
        usize::from(is_first) + usize::from(is_first_violation)
    }

    fn add(&self, request: &CountedRequest<'_>) {
        let by_action = self.requests[request.kind.index()].get_or_init(Box::default);
        by_action[request.action as usize].fetch_add(1, Relaxed);
        if let Some(violation) = request.violation {
            self.violations[violation.index()].fetch_add(1, Relaxed);
        }
        let add = |total: CountColumn, number: u64| {
            if number > 0 {
                self.totals[total as usize].fetch_add(number, Relaxed);
            }
        };
        add(CountColumn::Bytes, request.bytes);
        add(CountColumn::OriginMilliseconds, request.origin_milliseconds);
        if request.action.is_forwarded() {
            add(CountColumn::Reserved, request.has_reserved_page.into());
            if let Some(total) = CountColumn::status_column(request.status) {
                add(total, 1);
            }
        }
        if request.kind == RecordedKind::Of(Kind::Unproven)
            && let Some(total) = CountColumn::doubt_column(request.basis, request.older_until)
        {
            add(total, 1);
        }
        if let RecordedKind::Of(kind) = request.kind
            && let Some(until) = request.older_until
            && let Some(end) = CountColumn::latest_end_column(kind)
        {
            self.totals[end as usize].fetch_max(unix_seconds(until), Relaxed);
        }
        self.has_new_counts.store(true, Release);
    }

    /// The requests of each kind and action that has some.
    pub fn requests(&self) -> impl Iterator<Item = (RecordedKind, CountedAction, u64)> {
        let kinds = RecordedKind::iter_all().zip(&self.requests);
        let counters = kinds.flat_map(|(kind, counters)| {
            let counters = counters.get().into_iter().flat_map(|counters| &**counters);
            let actions = CountedAction::VARIANTS.iter().zip(counters);
            actions.map(move |(action, counter)| (kind, *action, counter.load(Relaxed)))
        });
        counters.filter(|(.., requests)| *requests > 0)
    }

    /// The violations of each kind that has some.
    pub fn violations(&self) -> impl Iterator<Item = (ViolationKind, u64)> {
        let counters = ViolationKind::iter_all().zip(&self.violations);
        counters
            .map(|(kind, counter)| (kind, counter.load(Relaxed)))
            .filter(|(_, violations)| *violations > 0)
    }

    /// Bytes of the bodies that were sent.
    pub fn bytes(&self) -> u64 {
        self.totals[CountColumn::Bytes as usize].load(Relaxed)
    }

    /// The responses of the origin by status, such as `2xx`, of each that has some.
    pub fn responses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let columns = CountColumn::STATUSES.into_iter();
        columns
            .map(|(status, column)| (status, self.totals[column as usize].load(Relaxed)))
            .filter(|(_, responses)| *responses > 0)
    }

    /// What was counted since the last call; `None` if nothing was. For the history alone.
    pub fn take_new_counts(&self) -> Option<RequestCounts> {
        // The lock keeps two callers apart.
        let mut taken = lock(&self.taken);
        if !self.has_new_counts.swap(false, AcqRel) {
            return None;
        }
        let mut counts = RequestCounts::default();
        for (kind, action, requests) in self.requests() {
            counts.add(kind, action, requests);
        }
        for (total, counter) in CountColumn::VARIANTS.iter().zip(&self.totals) {
            let number = match total {
                // It must not appear in a later hour.
                CountColumn::StaleUntil | CountColumn::UnprovenUntil => counter.swap(0, Relaxed),
                _ => counter.load(Relaxed),
            };
            counts.add_total(*total, number);
        }
        let earlier = std::mem::replace(&mut *taken, counts);
        counts.subtract(&earlier);
        Some(counts).filter(|new| *new != RequestCounts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::{CountTable, CountedAction, CountedRequest, MAX_SERIES, OVERFLOW, RequestCounts};
    use crate::record::ViolationKind;
    use crate::time::Timestamp;
    use crate::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn request<'a>(crawler: &'a str, action: CountedAction) -> CountedRequest<'a> {
        CountedRequest {
            site: "shop",
            crawler,
            identity: Some(IdentityStatus::Unverified),
            kind: Kind::Violation.into(),
            basis: CachedVersionsBasis::Observed,
            older_until: None,
            action,
            violation: None,
            status: 304,
            bytes: 10,
            origin_milliseconds: 5,
            has_reserved_page: false,
        }
    }

    /// The new counts of each crawler.
    fn new_counts(table: &CountTable) -> BTreeMap<String, RequestCounts> {
        let mut taken = BTreeMap::new();
        table.for_each(|_, crawler, _, cells| {
            if let Some(counts) = cells.take_new_counts() {
                taken.insert(crawler.to_owned(), counts);
            }
        });
        taken
    }

    fn to_json(counts: &RequestCounts) -> serde_json::Value {
        serde_json::to_value(counts).expect("written")
    }

    #[test]
    fn history_takes_new_counts_once() {
        let table = CountTable::new(&Arc::default());
        table.count(&request("gptbot", CountedAction::WouldBlock));
        table.count(&request("gptbot", CountedAction::Block));
        let expected = serde_json::json!({
            "requests": 2, "violation": 2, "refused": 1, "refused_against_rules": 1, "would_refuse": 1,
            "would_refuse_against_rules": 1, "bytes": 20, "origin_milliseconds": 10, "status_304": 1,
        });
        assert_eq!(to_json(&new_counts(&table)["gptbot"]), expected);
        assert!(new_counts(&table).is_empty());
        table.count(&request("gptbot", CountedAction::Block));
        let expected = serde_json::json!({
            "requests": 1, "violation": 1, "refused": 1, "refused_against_rules": 1, "bytes": 10,
            "origin_milliseconds": 5,
        });
        assert_eq!(to_json(&new_counts(&table)["gptbot"]), expected);
    }

    /// A request in doubt.
    fn doubted_request(
        kind: Kind,
        basis: CachedVersionsBasis,
        until: Option<i64>,
    ) -> CountedRequest<'static> {
        CountedRequest {
            kind: kind.into(),
            basis,
            older_until: until.map(Timestamp),
            status: 0,
            bytes: 0,
            origin_milliseconds: 0,
            ..request("gptbot", CountedAction::Pass)
        }
    }

    #[test]
    fn doubted_requests_are_counted_by_reason_and_end() {
        use CachedVersionsBasis::{Observed, PerhapsCached, Unknown};
        let table = CountTable::new(&Arc::default());
        for request in [
            doubted_request(Kind::Unproven, PerhapsCached, None),
            doubted_request(Kind::Unproven, PerhapsCached, Some(500)),
            doubted_request(Kind::Unproven, Unknown, Some(900)),
            doubted_request(Kind::Unproven, Unknown, None),
            doubted_request(Kind::StaleCopy, Observed, Some(700)),
            doubted_request(Kind::Allowed, PerhapsCached, None),
        ] {
            table.count(&request);
        }
        let expected = serde_json::json!({
            "requests": 6, "allowed": 1, "stale_copy": 1, "unproven": 4, "perhaps_cached": 2,
            "peers_unknown": 1, "stale_until": 700, "unproven_until": 900,
        });
        assert_eq!(to_json(&new_counts(&table)["gptbot"]), expected);
        table.count(&doubted_request(Kind::Allowed, Observed, None));
        let expected = serde_json::json!({"requests": 1, "allowed": 1});
        assert_eq!(
            to_json(&new_counts(&table)["gptbot"]),
            expected,
            "nothing is inherited"
        );
        table.count(&doubted_request(Kind::StaleCopy, Observed, Some(700)));
        let expected = serde_json::json!({"requests": 1, "stale_copy": 1, "stale_until": 700});
        assert_eq!(to_json(&new_counts(&table)["gptbot"]), expected);
    }

    #[test]
    fn bytes_and_responses_are_counted_by_status() {
        let table = CountTable::new(&Arc::default());
        for (status, action) in [
            (200, CountedAction::Pass),
            (206, CountedAction::WouldBlock),
            (301, CountedAction::Pass),
            (304, CountedAction::Pass),
            (404, CountedAction::Pass),
            (503, CountedAction::Pass),
            (403, CountedAction::Block),
            (0, CountedAction::Pass),
        ] {
            table.count(&CountedRequest {
                status,
                has_reserved_page: true,
                ..request("gptbot", action)
            });
        }
        let mut counted = Vec::new();
        table.for_each(|_, _, _, cells| {
            counted.push(cells.bytes().to_string());
            let responses = cells.responses();
            counted.extend(responses.map(|(status, number)| format!("{status} {number}")));
        });
        assert_eq!(counted, ["80", "2xx 2", "3xx 1", "304 1", "4xx 1", "5xx 1"]);
        // All that were forwarded.
        assert_eq!(new_counts(&table)["gptbot"].reserved_pages(), 7);
    }

    #[test]
    fn series_beyond_the_cap_is_counted_as_overflow() {
        let series = Arc::new(AtomicUsize::new(MAX_SERIES - 1));
        let table = CountTable::new(&series);
        table.count(&request("gptbot", CountedAction::Block));
        table.count(&request("gptbot", CountedAction::Block));
        table.count(&request("gptbot", CountedAction::Pass));
        table.count(&request("bingbot", CountedAction::Block));
        let taken = new_counts(&table);
        assert_eq!(taken.len(), 2);
        assert_eq!(taken["gptbot"].requests(), 2);
        assert_eq!(taken[OVERFLOW].requests(), 2);
        assert_eq!(series.load(Relaxed), MAX_SERIES + 2);
    }

    #[test]
    fn removed_sites_free_their_series() {
        let series = Arc::default();
        let table = CountTable::new(&series);
        let violation = CountedRequest {
            violation: Some(ViolationKind::NeverFetched),
            ..request("gptbot", CountedAction::Block)
        };
        table.count(&violation);
        table.count(&violation);
        assert_eq!(series.load(Relaxed), 2);
        table.remove_sites(&|site| site != "shop");
        assert_eq!(series.load(Relaxed), 0);
        assert!(new_counts(&table).is_empty());
    }
}
