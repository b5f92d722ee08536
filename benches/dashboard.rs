//! The overview of a full history, and the page: 50 sites and 300 crawlers with as many days as are
//! kept of so many, and 400 days of 5 sites. What the page of violations reads of all samples that
//! are kept.

use crawlgate::internals::clock::Moment;
use crawlgate::internals::record::{CountedAction, RecordField, RecordRow, RequestCounts};
use crawlgate::internals::report::{Report, ReportPeriod, render_html};
use crawlgate::internals::state::StateStore;
use crawlgate::internals::state::history::{
    RequestHistoryBatch, RequestHistoryReader, SampleFilter,
};
use crawlgate::internals::verdict::{IdentityStatus, Kind};
use crawlgate::time::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

const CRAWLERS: usize = 300;
const NOW: Timestamp = Timestamp(1_795_305_600);

/// More than are kept in 35 days.
const SAMPLES_A_DAY: usize = 3_000;

fn sample(at: Timestamp, number: usize, sites: usize) -> RecordRow {
    let fields = [
        (RecordField::Site, &*format!("site-{}", number % sites)),
        (
            RecordField::Crawler,
            &format!("crawler-{}", number % CRAWLERS),
        ),
        (RecordField::Kind, Kind::Violation.name()),
        (RecordField::Rule, &format!("Disallow: /{}/", number % 7)),
        (RecordField::RuleSource, "policies/shop.yaml:7:20"),
        (RecordField::Client, "192.0.2.0/24"),
        (RecordField::Identity, IdentityStatus::Unverified.name()),
        (RecordField::Method, "GET"),
        (RecordField::Host, "shop.example"),
        (RecordField::Target, &format!("/{}/{number}", number % 7)),
        (
            RecordField::UserAgent,
            "Mozilla/5.0 (compatible; Examplebot/1.0; +https://bot.example/)",
        ),
        (RecordField::Action, "pass"),
        (RecordField::Would, "block"),
        (RecordField::Version, "3f2a9c11"),
    ];
    RecordRow::from_texts(at, &fields)
}

fn filled(directory: &std::path::Path, sites: usize, days: i64) -> RequestHistoryReader {
    let now = Arc::new(|| Moment {
        now: NOW,
        monotonic: Duration::ZERO,
    });
    let (store, _) = StateStore::open(Some(directory), now).expect("a store");
    store.begin(Vec::new()).expect("begun");
    let mut counts = RequestCounts::default();
    counts.add(Kind::Allowed, CountedAction::Pass, 90);
    counts.add(Kind::Violation, CountedAction::WouldBlock, 7);
    counts.add(Kind::Allowed, CountedAction::RobotsTxt, 3);
    for day in (0..days).rev() {
        let mut batch = RequestHistoryBatch::default();
        for site in 0..sites {
            for crawler in 0..CRAWLERS {
                let (site, crawler) = (format!("site-{site}"), format!("crawler-{crawler}"));
                batch.add_requests(
                    Timestamp(NOW.0 - day * 86_400),
                    &site,
                    &crawler,
                    Some(IdentityStatus::Unverified),
                    &counts,
                );
            }
        }
        (0..SAMPLES_A_DAY).for_each(|number| {
            batch.add_sample(sample(Timestamp(NOW.0 - day * 86_400), number, sites))
        });
        store.put_history(batch, NOW);
        store.commit(Vec::new()).expect("committed");
    }
    store.close().expect("closed");
    RequestHistoryReader::open(directory).expect("a history")
}

fn overview(criterion: &mut Criterion) {
    for (sites, days, shown) in [(50, 35, [30, 400]), (5, 400, [30, 400])] {
        let directory = tempfile::tempdir().expect("a directory");
        let history = filled(directory.path(), sites, days);
        for period in shown {
            let name =
                format!("overview of {period} days, {sites} sites, 300 crawlers, {days} days kept");
            let period = ReportPeriod::last_days(period, NOW);
            criterion.bench_function(&name, |bencher| {
                bencher.iter(|| {
                    let report = Report::from_history(&history, period, "", "").expect("a report");
                    black_box(render_html(&report).expect("a page"))
                });
            });
        }
        let from = ReportPeriod::last_days(400, NOW).from;
        criterion.bench_function(
            &format!("violations of {days} days, {sites} sites, 300 crawlers"),
            |bencher| {
                bencher.iter(|| {
                    let all = SampleFilter::default();
                    black_box(history.sample_groups(&all, from, 200).expect("groups"));
                    black_box(history.samples(&all, from, 200).expect("samples"))
                });
            },
        );
    }
}

criterion_group!(benches, overview);
criterion_main!(benches);
