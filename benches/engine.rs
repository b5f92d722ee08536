//! What the engine costs: judging, identification, tags, compiling. `cargo bench
//! --no-default-features`.

use crawlgate::crawlers::Registry;
use crawlgate::internals::policy::model::OriginTagsMode;
use crawlgate::internals::policy::site::{TagHeaderEdit, combine_with_origin};
use crawlgate::internals::policy::{Site, SiteEntry, Snapshot};
use crawlgate::internals::robots::TargetScratch;
use crawlgate::internals::verdict::{
    CachedVersions, DecisionScratch, Identity, RequestFacts, decide, load_site,
};
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

/// A policy with this many rules: prefixes, some with wildcards, some anchored.
fn policy(rules: usize) -> String {
    let mut text = "purposes: { training: disallow }\nrobots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow:\n".to_owned();
    for rule in 0..rules {
        let _ = match rule % 5 {
            0 => writeln!(text, "        - '/section-{rule}/*/print'"),
            1 => writeln!(text, "        - '/*?ref={rule}'"),
            2 => writeln!(text, "        - '/page-{rule}.html$'"),
            _ => writeln!(text, "        - '/section-{rule}/private/'"),
        };
    }
    text.push_str("indexing:\n  - { types: [application/pdf], tag: noindex }\n  - { paths: [/drafts/], tag: noindex }\nenforcement: { mode: enforce }\n");
    text
}

fn site(text: &str) -> Arc<Site> {
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

fn snapshot(text: &str) -> Snapshot {
    Snapshot::new(vec![SiteEntry::new(site(text), Timestamp(0))], 0)
}

fn facts<'a>(user_agent: &'a str, target: &'a str) -> RequestFacts<'a> {
    RequestFacts {
        host: b"www.shop.example",
        target: target.as_bytes(),
        method: b"GET",
        user_agent: user_agent.as_bytes(),
        client: None,
        identity: Identity::Unverified,
        now: Timestamp(0),
    }
}

fn judging(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    for rules in [10, 1_000, 10_000] {
        let snapshot = snapshot(&policy(rules));
        for (name, user_agent, target) in [
            (
                "crawler, no rule",
                BINGBOT,
                "/some/ordinary/article.html?id=7",
            ),
            (
                "crawler, a rule",
                BINGBOT,
                "/section-8/private/minutes.html",
            ),
            ("browser", BROWSER, "/some/ordinary/article.html?id=7"),
        ] {
            let mut scratch = DecisionScratch::default();
            group.bench_function(BenchmarkId::new(name, rules), |bencher| {
                bencher.iter(|| {
                    decide(
                        &snapshot,
                        Registry::builtin(),
                        black_box(&facts(user_agent, target)),
                        &CachedVersions::default(),
                        &mut scratch,
                    )
                });
            });
        }
    }
    group.finish();
}

fn identification(criterion: &mut Criterion) {
    let garbage = "x;(bot http://".repeat(600);
    let mut group = criterion.benchmark_group("identify");
    for (name, user_agent) in [
        ("browser", BROWSER),
        ("crawler", BINGBOT),
        ("8 KiB of garbage", garbage.as_str()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| Registry::builtin().identify(black_box(user_agent.as_bytes())))
        });
    }
    group.finish();
}

fn tagging(criterion: &mut Criterion) {
    let snapshot = snapshot(&policy(10));
    let decision = decide(
        &snapshot,
        Registry::builtin(),
        &facts(BROWSER, "/drafts/a.pdf"),
        &CachedVersions::default(),
        &mut DecisionScratch::default(),
    )
    .expect("a site has the host");
    let plan = &snapshot.sites()[0].site.tags;
    let mut group = criterion.benchmark_group("tags");
    group.bench_function("a page without", |bencher| {
        bencher.iter(|| plan.tags(black_box(&decision.path_rules), 404, None))
    });
    group.bench_function("two rules united", |bencher| {
        bencher.iter(|| {
            plan.tags(
                black_box(&decision.path_rules),
                200,
                Some(b"application/pdf"),
            )
        })
    });
    group.finish();
    planning(criterion);
}

const TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// From the path of a request to lines in the header of its answer, with 1,000 rules of which two
/// match, one by its path and one by the type.
fn planning(criterion: &mut Criterion) {
    let mut text =
        "robots: { origin: replace }\nindexing:\n  - { types: [application/pdf], tag: noindex }\n"
            .to_owned();
    for rule in 0..999 {
        let _ = match rule % 4 {
            0 => writeln!(
                text,
                "  - {{ paths: ['/section-{rule}/*/print'], tag: noindex }}"
            ),
            1 => writeln!(text, "  - {{ paths: ['/*?ref={rule}'], tag: nofollow }}"),
            2 => writeln!(
                text,
                "  - {{ paths: ['/page-{rule}.html$'], status: 200, tag: noarchive }}"
            ),
            _ => {
                writeln!(
                    text,
                    "  - {{ paths: ['/section-{rule}/private/'], not: {{ status: 404 }}, tag: nosnippet }}"
                )
            }
        };
    }
    let site = site(&text);
    let mut group = criterion.benchmark_group("tags of 1,000 rules");
    let (mut target, mut decoded) = (TargetScratch::default(), Vec::with_capacity(256));
    for (name, path, media) in [
        (
            "no rule",
            "/some/ordinary/article.html?id=7",
            "text/html; charset=utf-8",
        ),
        ("by type", "/some/ordinary/report.pdf", "application/pdf"),
        (
            "by path and type",
            "/section-7/private/minutes.pdf",
            "application/pdf",
        ),
    ] {
        group.bench_function(name, |bencher| {
            let mut headers = HeaderMap::with_capacity(16);
            for field in [
                "server",
                "date",
                "etag",
                "content-type",
                "content-length",
                "cache-control",
                "vary",
                "age",
            ] {
                headers.insert(field, HeaderValue::from_static("x"));
            }
            // What judging a request normalises anyway.
            let target = target.normalise(path.as_bytes());
            bencher.iter(|| {
                let rules = site.tags.for_path(black_box(target), &mut decoded);
                let lines = site
                    .tags
                    .tags(&rules, 200, Some(black_box(media.as_bytes())));
                for line in lines.iter().flat_map(|lines| &lines.lines) {
                    let value =
                        HeaderValue::from_bytes(line.as_bytes()).expect("a line is a value");
                    headers.append(TAG, value);
                }
                // The next round begins without it; this is not a part of what is measured in the
                // proxy.
                headers.remove(TAG)
            });
        });
    }
    for (name, line) in [
        ("united with an origin's line", "noindex"),
        ("with an origin's long line", LONG_LINE),
    ] {
        let rules = site.tags.for_path(
            target.normalise(b"/section-7/private/minutes.pdf"),
            &mut decoded,
        );
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let ours = site.tags.tags(&rules, 200, Some(b"application/pdf"));
                let theirs = std::iter::once(black_box(line.as_bytes()));
                matches!(
                    combine_with_origin(ours.as_deref(), theirs, OriginTagsMode::Merge),
                    TagHeaderEdit::Replace(_)
                )
            });
        });
    }
    group.finish();
}

/// What a popular plugin sends with every page, and a line for a bot.
const LONG_LINE: &str = "follow, index, max-snippet:-1, max-video-preview:-1, max-image-preview:large, googlebot: nofollow, noarchive";

fn compiling(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(20);
    for rules in [10, 1_000] {
        let text = policy(rules);
        group.bench_function(BenchmarkId::from_parameter(rules), |bencher| {
            bencher.iter(|| snapshot(black_box(&text)))
        });
    }
    group.finish();
}

/// What a start or a reload of many sites costs on one core: each file read, compiled, linted, its
/// tests passed, and all of them indexed by host.
fn compiling_many(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load sites");
    group.sample_size(10);
    for (sites, rules) in [(1, 10), (1, 1_000), (100, 10), (100, 1_000), (1_000, 1_000)] {
        let texts: Vec<String> = (0..sites)
            .map(|site| format!("hosts: [site-{site}.example]\n{}", policy(rules)))
            .collect();
        group.bench_function(
            BenchmarkId::new(format!("{rules} rules each"), sites),
            |bencher| {
                bencher.iter(|| {
                    let sites = texts
                        .iter()
                        .map(|text| SiteEntry::new(site(black_box(text)), Timestamp(0)));
                    Snapshot::new(sites.collect(), 0)
                });
            },
        );
    }
    group.finish();
}

criterion_group!(
    benches,
    judging,
    identification,
    tagging,
    compiling,
    compiling_many
);
criterion_main!(benches);
