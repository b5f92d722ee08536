//! Fills the counters in memory and `state.db` with 50 sites, 300 crawlers and 400 days, day by day,
//! as a running crawlgate does, and prints resident memory and the size of the file on the way.
//! `cargo bench --bench traffic_year`; `CRAWLGATE_DAYS` is another number of days.

use crawlgate::internals::clock::Moment;
use crawlgate::internals::record::{
    CountedAction, CountedRequest, PathRequest, RecordedKind, RequestCounts,
};
use crawlgate::internals::referrals::ReferringServices;
use crawlgate::internals::state::StateStore;
use crawlgate::internals::state::history::{DailyCountKind, RequestHistoryBatch};
use crawlgate::internals::telemetry::Metrics;
use crawlgate::internals::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
use crawlgate::time::Timestamp;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SITES: usize = 50;
const CRAWLERS: usize = 300;
const DAYS: i64 = 400;
/// The paths of a crawler on a site. All of them are more than are kept.
const PATHS: usize = 6;
const DAY: i64 = 86_400;
const BEGIN: i64 = 1_760_745_600;

fn main() {
    // Tests of all targets start it, too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let days = std::env::var("CRAWLGATE_DAYS").ok();
    let days = days.map_or(DAYS, |days| days.parse().expect("a number of days"));
    let directory = tempfile::tempdir().expect("a directory");
    let time = Arc::new(AtomicI64::new(BEGIN));
    let clock = time.clone();
    let now = Arc::new(move || Moment {
        now: Timestamp(clock.load(Relaxed)),
        monotonic: Duration::from_secs((clock.load(Relaxed) - BEGIN).unsigned_abs()),
    });
    let (store, _) = StateStore::open(Some(directory.path()), now).expect("a store");
    store.begin(Vec::new()).expect("begun");
    let metrics = Metrics::new();
    print_sizes(0, directory.path());
    let began = Instant::now();
    for day in 1..=days {
        time.store(BEGIN + day * DAY, Relaxed);
        let now = Timestamp(BEGIN + day * DAY);
        count_day(&metrics, now);
        store.put_history(batch_of_day(&metrics, now), now);
        store.commit(Vec::new()).expect("committed");
        if day % 50 == 0 || day == days {
            print_sizes(day, directory.path());
        }
    }
    store.close().expect("closed");
    print_sizes(days, directory.path());
    println!(
        "{:?} a day",
        began.elapsed() / u32::try_from(days).expect("few days")
    );
}

/// A request of each crawler on each site, and more paths than are kept. The counts of all days are
/// in the same counters.
fn count_day(metrics: &Metrics, now: Timestamp) {
    for site in 0..SITES {
        let site = format!("site-{site}");
        for crawler in 0..CRAWLERS {
            let crawler = format!("crawler-{crawler}");
            metrics.counts.count(&CountedRequest {
                site: &site,
                crawler: &crawler,
                identity: Some(IdentityStatus::Unverified),
                kind: RecordedKind::Of(Kind::Allowed),
                basis: CachedVersionsBasis::default(),
                older_until: None,
                action: CountedAction::Pass,
                violation: None,
                status: 200,
                bytes: 5_120,
                origin_milliseconds: 12,
                has_reserved_page: false,
            });
            for path in 0..PATHS {
                metrics.paths.count(&PathRequest {
                    site: &site,
                    crawler: &crawler,
                    identity: IdentityStatus::Unverified,
                    target: format!("/{site}/a/path/as/long/as/they/are/{path}").as_bytes(),
                    time: now,
                });
            }
        }
        for service in ReferringServices::builtin().all() {
            metrics.visits.count([&site, &service.id]);
        }
    }
}

/// What was counted since the last call, as it waits to be stored.
fn batch_of_day(metrics: &Metrics, now: Timestamp) -> RequestHistoryBatch {
    let mut batch = RequestHistoryBatch::default();
    metrics.counts.for_each(|site, crawler, identity, cells| {
        let counts: Option<RequestCounts> = cells.take_new_counts();
        if let Some(counts) = counts {
            batch.add_requests(now, site, crawler, identity, &counts);
        }
    });
    metrics.visits.for_each_new(|[site, service], visits| {
        batch.add_daily(DailyCountKind::Visits, now, [site, service], visits);
    });
    for paths in metrics.paths.take_changed(now) {
        batch.set_paths(paths);
    }
    batch
}

fn print_sizes(day: i64, directory: &Path) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let files = fs::read_dir(directory).expect("the directory");
    let bytes: u64 = files
        .filter_map(|file| Some(file.ok()?.metadata().ok()?.len()))
        .sum();
    println!(
        "day {day}: {} resident, {:.1} MiB on disk",
        resident.unwrap_or_default().trim(),
        bytes as f64 / f64::from(1 << 20)
    );
}
