//! What history by host costs with 5,000 host patterns, half of them wildcards: recording a change,
//! computing every host's history (once for each reload), and looking one up (once for each
//! crawler's request). `cargo bench --no-default-features --bench history`.

use crawlgate::crawlers::Registry;
use crawlgate::internals::policy::model::HostPattern;
use crawlgate::internals::policy::{PublicationHistories, RobotsVersionId};
use crawlgate::internals::publications::{
    HistoryHorizon, PublicationLog, PublishedRobots, PublishedSite, VersionStore,
};
use crawlgate::time::Timestamp;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

const HOSTS: usize = 5_000;
const SITES: usize = 50;
const CHANGES: usize = 64;
const DAY: Duration = Duration::from_secs(86_400);

fn body(number: usize) -> Vec<u8> {
    format!("User-agent: *\nDisallow: /closed-{number}/\n").into_bytes()
}

fn patterns() -> Vec<HostPattern> {
    let pattern = |number: usize| {
        let name = format!("shop-{}.example", number / 2);
        HostPattern {
            wildcard: number % 2 == 1,
            name,
            port: None,
        }
    };
    (0..HOSTS).map(pattern).collect()
}

/// Each change gives every site another version, and moves a hundred hosts to the next site.
fn record(log: &mut PublicationLog, patterns: &[HostPattern], names: &[String], change: usize) {
    let site_of = |host: usize| (host + host / 100 * usize::from(host % 50 < change % 50)) % SITES;
    let mut hosts: Vec<Vec<&HostPattern>> = vec![Vec::new(); SITES];
    for (host, pattern) in patterns.iter().enumerate() {
        hosts[site_of(host)].push(pattern);
    }
    let current: Vec<PublishedSite<'_>> = hosts
        .into_iter()
        .zip(names)
        .map(|(hosts, site)| PublishedSite {
            site,
            hosts,
            published: PublishedRobots::Version(RobotsVersionId::from_body(&body(change))),
            identities: 1,
            has_page_tags: false,
            declared: None,
        })
        .collect();
    log.record(&current, Timestamp(change as i64 * 600));
}

fn histories(criterion: &mut Criterion) {
    let (patterns, registry) = (patterns(), Registry::builtin());
    let names: Vec<String> = (0..SITES).map(|site| format!("site-{site}")).collect();
    let (mut log, mut versions) = (PublicationLog::default(), VersionStore::default());
    for change in 0..CHANGES {
        versions.insert(
            RobotsVersionId::from_body(&body(change)),
            body(change).into(),
        );
        record(&mut log, &patterns, &names, change);
    }
    let horizon = HistoryHorizon {
        max_cache_time: DAY,
        now: Timestamp(CHANGES as i64 * 600),
    };
    let mut group = criterion.benchmark_group("history");
    group.sample_size(20);
    group.bench_function("5,000 patterns: record a change", |bencher| {
        let change = |mut log: PublicationLog| record(&mut log, &patterns, &names, CHANGES);
        bencher.iter_batched(|| log.clone(), change, BatchSize::LargeInput);
    });
    group.bench_function(
        "5,000 patterns, 64 versions: every host's history",
        |bencher| {
            bencher.iter(|| black_box(log.build_histories(&[], &mut versions, registry, horizon)));
        },
    );
    let known =
        PublicationHistories::new(log.build_histories(&[], &mut versions, registry, horizon));
    group.bench_function("5,000 patterns: look a host up", |bencher| {
        bencher.iter(|| {
            black_box(
                known
                    .get(black_box(b"www.shop-1234.example"))
                    .superseded
                    .len(),
            )
        });
    });
}

criterion_group!(benches, histories);
criterion_main!(benches);
