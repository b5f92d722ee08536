//! What the ledger adds to a request: what a crawler may hold, looked up on hosts that many
//! crawlers visit; and what a person's request pays for it. `cargo bench --bench ledger`.

use crawlgate::crawlers::Registry;
use crawlgate::internals::clock::Clock;
use crawlgate::internals::ledger::Ledger;
use crawlgate::internals::policy::{
    ParsedRobotsVersion, PublicationHistories, PublicationHistory, Site, SiteEntry, Snapshot,
    SupersededVersion,
};
use crawlgate::internals::verdict::{
    CachedVersions, DecisionScratch, Identity, RecentBehaviour, RequestFacts, RequestToJudge,
    SiteClaim, decide_for, load_site,
};
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

fn site(version: usize) -> Arc<Site> {
    let text = format!(
        "robots: {{ origin: replace, groups: [{{ agents: '*', disallow: [/closed/, /v{version}/] }}] }}\n"
    );
    let (site, findings) = load_site(
        "site",
        &SourceFile {
            name: "site.yaml".into(),
            text: text.into(),
        },
        Registry::builtin(),
    );
    site.unwrap_or_else(|| panic!("{findings:?}"))
}

fn requests(criterion: &mut Criterion) {
    let (registry, clock) = (Registry::builtin(), Clock::default());
    let now = clock.moment().now;
    // Two versions before the one in force; 500 hosts, 20 crawlers on each, each of which fetched
    // all three.
    let versions: Vec<Arc<Site>> = (0..3).map(site).collect();
    let long_ago = Timestamp(now.0 - 30 * 86_400);
    let held = |version: usize| SupersededVersion {
        parsed: Arc::new(ParsedRobotsVersion::parse(
            versions[version].robots_txt.body.clone(),
            registry,
        )),
        since: long_ago,
        superseded_at: now,
    };
    let entry = SiteEntry::new(versions[0].clone(), long_ago);
    let history = PublicationHistory {
        superseded: vec![held(1), held(2)],
        ..PublicationHistory::new(long_ago)
    };
    let histories = PublicationHistories::new(vec![(None, Arc::new(history))]);
    let snapshot = Snapshot::new(vec![entry.clone()], 0).with_histories(histories, now);
    let ledger = Ledger::in_memory(Vec::new(), &snapshot, clock.moment());
    let known: Vec<_> = registry
        .crawlers()
        .iter()
        .filter_map(|crawler| crawler.user_agent.as_deref())
        .take(20)
        .collect();
    for host in 0..500 {
        for agent in known.iter().copied().chain([BINGBOT]) {
            for version in &versions {
                let served = SiteEntry {
                    site: version.clone(),
                    ..entry.clone()
                };
                let claim = registry.identify(agent.as_bytes());
                ledger.record_served(
                    registry,
                    &served,
                    format!("host-{host}.example").as_bytes(),
                    claim,
                    now,
                );
            }
        }
    }
    let mut group = criterion.benchmark_group("ledger");
    for (name, user_agent, target) in [
        (
            "crawler, allowed",
            BINGBOT,
            "/some/ordinary/article.html?id=7",
        ),
        ("crawler, disallowed", BINGBOT, "/closed/minutes.html"),
        ("browser", BROWSER, "/some/ordinary/article.html?id=7"),
    ] {
        let facts = RequestFacts {
            host: b"host-77.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: user_agent.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now,
        };
        let moment = clock.moment();
        let mut scratch = DecisionScratch::default();
        group.bench_function(format!("{name}, without"), |bencher| {
            // As if nobody knew who was served what: the same versions have to be judged.
            bencher.iter(|| {
                let facts = black_box(&facts);
                let claimant =
                    SiteClaim::find(&snapshot, registry, facts).expect("a site has the host");
                let case = RequestToJudge {
                    registry,
                    facts: *facts,
                    claimant,
                    cached_versions: CachedVersions::for_any_crawler(claimant, now),
                };
                decide_for(&case, RecentBehaviour::default(), &mut scratch)
            });
        });
        let mut scratch = DecisionScratch::default();
        group.bench_function(format!("{name}, with"), |bencher| {
            bencher.iter(|| {
                let facts = black_box(&facts);
                let claimant =
                    SiteClaim::find(&snapshot, registry, facts).expect("a site has the host");
                let (cached_versions, visit) =
                    ledger.cached_versions(registry, claimant, facts.host, moment, false);
                ledger.record_request(claimant.entry, facts.host, visit, moment.now);
                let case = RequestToJudge {
                    registry,
                    facts: *facts,
                    claimant,
                    cached_versions,
                };
                decide_for(&case, RecentBehaviour::default(), &mut scratch)
            });
        });
        let claimant = SiteClaim::find(&snapshot, registry, &facts).expect("a site has the host");
        group.bench_function(format!("{name}, the ledger alone"), |bencher| {
            bencher.iter(|| {
                let (cached_versions, visit) = ledger.cached_versions(
                    registry,
                    claimant,
                    black_box(b"host-77.example"),
                    moment,
                    false,
                );
                ledger.record_request(claimant.entry, b"host-77.example", visit, moment.now);
                cached_versions
            });
        });
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
