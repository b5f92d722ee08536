//! What a request costs that is counted by site, crawler, path and referring service, in tables that
//! are warm with 50 sites and 300 crawlers: each request is of another site and crawler.
//! `cargo bench --bench traffic`.

use crawlgate::internals::record::{
    CountedAction, CountedRequest, PathRequest, RecordedKind, is_visit,
};
use crawlgate::internals::referrals::ReferringServices;
use crawlgate::internals::telemetry::Metrics;
use crawlgate::internals::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
use crawlgate::time::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

const SITES: usize = 50;
const CRAWLERS: usize = 300;
const NOW: Timestamp = Timestamp(1_795_305_600);

/// The counters of a crawlgate, and the names of the sites and crawlers that they have.
struct WarmCounters {
    metrics: Arc<Metrics>,
    services: &'static ReferringServices,
    sites: Vec<String>,
    crawlers: Vec<String>,
    /// The number of the request.
    next: Cell<usize>,
}

impl WarmCounters {
    fn new() -> WarmCounters {
        let counters = WarmCounters {
            metrics: Metrics::new(),
            services: ReferringServices::builtin(),
            sites: (0..SITES).map(|site| format!("site-{site}")).collect(),
            crawlers: (0..CRAWLERS).map(|one| format!("crawler-{one}")).collect(),
            next: Cell::new(0),
        };
        for site in &counters.sites {
            for crawler in &counters.crawlers {
                counters.count(&crawler_request(site, crawler));
            }
            counters.count(&visitor_request(site));
        }
        counters
    }

    /// A site and a crawler, others each time. 7 has no divisor in common with either number.
    fn next_labels(&self) -> (&str, &str) {
        let number = self.next.get();
        self.next.set(number.wrapping_add(7));
        (
            &self.sites[number % SITES],
            &self.crawlers[number % CRAWLERS],
        )
    }

    fn count(&self, request: &CountedRequest<'_>) {
        self.metrics.counts.count(black_box(request));
    }

    fn count_path(&self, site: &str, crawler: &str, target: &str) {
        self.metrics.paths.count(black_box(&PathRequest {
            site,
            crawler,
            identity: IdentityStatus::Unverified,
            target: target.as_bytes(),
            time: NOW,
        }));
    }

    fn count_visit(&self, site: &str, referer: Option<&str>) {
        let referer = referer.map(str::as_bytes);
        let sent_by = self
            .services
            .referring(b"shop.example", black_box(referer), b"/a/page");
        if let Some(service) = sent_by
            && is_visit(b"GET", 200, b"/a/page")
        {
            self.metrics.visits.count([site, &service.id]);
        }
    }
}

fn crawler_request<'a>(site: &'a str, crawler: &'a str) -> CountedRequest<'a> {
    CountedRequest {
        site,
        crawler,
        identity: Some(IdentityStatus::Unverified),
        kind: RecordedKind::Of(Kind::Allowed),
        basis: CachedVersionsBasis::default(),
        older_until: None,
        action: CountedAction::Pass,
        violation: None,
        has_reserved_page: false,
        status: 200,
        bytes: 5_120,
        origin_milliseconds: 12,
    }
}

fn visitor_request(site: &str) -> CountedRequest<'_> {
    CountedRequest {
        identity: None,
        kind: RecordedKind::Of(Kind::NotACrawler),
        ..crawler_request(site, "none")
    }
}

/// Without bytes, status and time of the origin: what was counted before there was traffic.
fn without_traffic(request: CountedRequest<'_>) -> CountedRequest<'_> {
    CountedRequest {
        status: 0,
        bytes: 0,
        origin_milliseconds: 0,
        ..request
    }
}

fn crawlers(criterion: &mut Criterion) {
    let counters = WarmCounters::new();
    let mut group = criterion.benchmark_group("traffic of a crawler");
    group.bench_function("kind and action alone", |bencher| {
        bencher.iter(|| {
            let (site, crawler) = counters.next_labels();
            counters.count(&without_traffic(crawler_request(site, crawler)));
        });
    });
    group.bench_function("with bytes and status", |bencher| {
        bencher.iter(|| {
            let (site, crawler) = counters.next_labels();
            counters.count(&crawler_request(site, crawler));
        });
    });
    let paths: Vec<String> = (0..200)
        .map(|number| format!("/pages/{number}?q=1"))
        .collect();
    group.bench_function("known path of 128 crawlers", |bencher| {
        bencher.iter(|| {
            let number = counters.next.get();
            counters.next.set(number.wrapping_add(1));
            // The bound of all paths is 128 times that of a crawler.
            let crawler = &counters.crawlers[number % 128];
            counters.count_path("site-0", crawler, &paths[number / 128 % paths.len()]);
        });
    });
    group.bench_function("new path", |bencher| {
        let mut target = String::new();
        bencher.iter(|| {
            use std::fmt::Write;
            let number = counters.next.get();
            counters.next.set(number.wrapping_add(1));
            target.clear();
            let _ = write!(target, "/new/{number}");
            counters.count_path("site-0", &counters.crawlers[number % 128], &target);
        });
    });
    group.bench_function("bytes, status and known path", |bencher| {
        bencher.iter(|| {
            let (site, crawler) = counters.next_labels();
            counters.count(&crawler_request(site, crawler));
            let number = counters.next.get() / 7;
            let crawler = &counters.crawlers[number % 128];
            counters.count_path("site-0", crawler, &paths[number / 128 % paths.len()]);
        });
    });
}

fn visitors(criterion: &mut Criterion) {
    let counters = WarmCounters::new();
    let mut group = criterion.benchmark_group("traffic of a visitor");
    group.bench_function("kind and action alone", |bencher| {
        bencher.iter(|| counters.count(&without_traffic(visitor_request("site-7"))));
    });
    group.bench_function("with bytes and status", |bencher| {
        bencher.iter(|| counters.count(&visitor_request("site-7")));
    });
    for (name, referer) in [
        ("no referrer", None),
        (
            "referrer: the site",
            Some("https://shop.example/another/page"),
        ),
        ("referrer: another site", Some("https://news.example.org/a")),
        ("referrer: a service", Some("https://www.google.com/")),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| counters.count_visit("site-7", referer));
        });
    }
}

criterion_group!(benches, crawlers, visitors);
criterion_main!(benches);
