//! The overview of a full history: 50 sites and 300 crawlers, as many days as are kept of so many, and the page.

use crawlgate::admin::dashboard::{Overview, Period, report_page};
use crawlgate::clock::Moment;
use crawlgate::crawlers::Registry;
use crawlgate::state::StateStore;
use crawlgate::state::history::{Counts, HistoryBatch, HistoryReader};
use crawlgate::time::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const SITES: usize = 50;
const CRAWLERS: usize = 300;
const DAYS: i64 = 35;
const NOW: Timestamp = Timestamp(1_795_305_600);

fn filled(directory: &std::path::Path) -> HistoryReader {
    let now = Arc::new(|| Moment { now: NOW, lived: Duration::ZERO });
    let (store, _) = StateStore::open(Some(directory), now).expect("a store");
    store.begin(Vec::new()).expect("begun");
    let mut counts = Counts::default();
    counts.add("allowed", "pass", 90);
    counts.add("violation", "would_block", 7);
    counts.add("allowed", "robots_txt", 3);
    for day in (0..DAYS).rev() {
        let mut batch = HistoryBatch::default();
        for site in 0..SITES {
            for crawler in 0..CRAWLERS {
                let (site, crawler) = (format!("site-{site}"), format!("crawler-{crawler}"));
                batch.requests(Timestamp(NOW.0 - day * 86_400), (&site, &crawler), &counts);
            }
        }
        store.put_history(batch, NOW);
        store.commit(Vec::new()).expect("committed");
    }
    store.close().expect("closed");
    HistoryReader::open(directory).expect("a history")
}

fn overview(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let history = filled(directory.path());
    let period = Period::days(30, NOW);
    let registry = Registry::builtin();
    criterion.bench_function("overview of 30 days, 50 sites, 300 crawlers", |bencher| {
        bencher.iter(|| {
            let overview = Overview::read(&history, period, registry).expect("an overview");
            black_box(report_page(&overview).expect("a page"))
        });
    });
}

criterion_group!(benches, overview);
criterion_main!(benches);
