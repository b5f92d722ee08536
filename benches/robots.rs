//! What reading and asking a robots.txt costs, beside three other crates, and what a rule set costs
//! alone, in time and in memory. `cargo bench --no-default-features --bench robots`.
//!
//! The crates differ in what they do: robotstxt, the port of Google's library, keeps nothing of a
//! file and reads it for each question. texting_robots reads it for one agent, and robotxt too;
//! both then answer any number of questions. Ours reads it for all agents and prepares the rules of
//! a group when first asked.

use crawlgate::internals::robots::{RuleSet, TargetScratch};
use crawlgate::robots::{Dialect, DialectRules, PathPattern, RobotsFile, Rule};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hands on to the system's allocator and counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the ones that are asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        IN_USE.fetch_add(size, Ordering::Relaxed);
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const AGENT: &str = "GPTBot";
const SIZES: [usize; 3] = [10, 1_000, 10_000];

/// Path patterns: three fifths prefixes, a fifth with wildcards, a fifth anchored.
fn mixed(rules: usize) -> Vec<String> {
    let pattern = |rule: usize| match rule % 5 {
        0 => format!("/*?ref={rule}"),
        1 => format!("/page-{rule}.html$"),
        _ => format!("/section-{rule}/private/"),
    };
    (0..rules).map(pattern).collect()
}

/// All begin alike, none can be told apart by it.
fn wildcards_only(rules: usize) -> Vec<String> {
    (0..rules)
        .map(|rule| format!("/*/part-{rule}/*.pdf$"))
        .collect()
}

/// All pieces stand in the target again and again, and the last of each nowhere.
fn adversarial(rules: usize) -> Vec<String> {
    (0..rules)
        .map(|rule| format!("/*aaaa*aa{}a*b$", "aa".repeat(rule % 8)))
        .collect()
}

fn file(patterns: &[String]) -> String {
    patterns
        .iter()
        .fold("User-agent: *\n".to_owned(), |mut text, pattern| {
            let _ = writeln!(text, "Disallow: {pattern}");
            text
        })
}

/// A URL that no mixed rule matches, and one that a rule near the end of the file matches.
fn urls(rules: usize) -> [(&'static str, String, bool); 2] {
    let late = (0..rules)
        .rev()
        .find(|rule| rule % 5 == 3)
        .expect("ten rules or more");
    [
        (
            "no rule",
            "https://shop.example/some/ordinary/article.html?id=7".to_owned(),
            true,
        ),
        (
            "a late rule",
            format!("https://shop.example/section-{late}/private/minutes.html"),
            false,
        ),
    ]
}

fn ours(text: &str) -> DialectRules {
    DialectRules::new(&RobotsFile::parse(text.as_bytes()), Dialect::Rfc9309, &[])
}

/// Only the port's parser; what it finds is thrown away.
struct Ignored(usize);

impl robotstxt::RobotsParseHandler for Ignored {
    fn handle_robots_start(&mut self) {}
    fn handle_robots_end(&mut self) {}
    fn handle_user_agent(&mut self, _: u32, _: &str) {}
    fn handle_allow(&mut self, _: u32, _: &str) {}
    fn handle_disallow(&mut self, line: u32, _: &str) {
        self.0 += line as usize;
    }
    fn handle_sitemap(&mut self, _: u32, _: &str) {}
    fn handle_unknown_action(&mut self, _: u32, _: &str, _: &str) {}
}

fn parsing(criterion: &mut Criterion) {
    let text = file(&mixed(1_000));
    let mut group = criterion.benchmark_group("parse 1000 rules");
    group.bench_function("crawlgate", |bencher| {
        bencher.iter(|| ours(black_box(&text)))
    });
    group.bench_function("robotstxt (kept nowhere)", |bencher| {
        bencher.iter(|| {
            let mut ignored = Ignored(0);
            robotstxt::parse_robotstxt(black_box(&text), &mut ignored);
            ignored.0
        });
    });
    group.sample_size(20);
    group.bench_function("texting_robots", |bencher| {
        bencher.iter(|| {
            texting_robots::Robot::new(AGENT, black_box(text.as_bytes())).expect("a good file")
        })
    });
    group.bench_function("robotxt", |bencher| {
        bencher.iter(|| robotxt::Robots::parse(black_box(text.as_bytes()), AGENT))
    });
    group.finish();
}

fn prepared(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("match, prepared");
    for size in SIZES {
        let text = file(&mixed(size));
        let reading = ours(&text);
        let texting = texting_robots::Robot::new(AGENT, text.as_bytes()).expect("a good file");
        let robotxt = robotxt::Robots::parse(text.as_bytes(), AGENT);
        for (name, url, allowed) in urls(size) {
            let id = |reader: &str| BenchmarkId::new(format!("{reader}, {name}"), size);
            // All must mean the same, or the times mean nothing.
            assert_eq!(
                reading.verdict(AGENT.as_bytes(), url.as_bytes()).allowed,
                allowed
            );
            assert_eq!(texting.allowed(&url), allowed);
            assert_eq!(
                robotxt.is_url_allowed(&url.parse().expect("a URL")),
                allowed
            );
            group.bench_function(id("crawlgate"), |bencher| {
                bencher.iter(|| reading.verdict(AGENT.as_bytes(), black_box(url.as_bytes())))
            });
            group.bench_function(id("texting_robots"), |bencher| {
                bencher.iter(|| texting.allowed(black_box(&url)))
            });
            let parsed = url.parse().expect("a URL");
            group.bench_function(id("robotxt"), |bencher| {
                bencher.iter(|| robotxt.is_url_allowed(black_box(&parsed)))
            });
        }
    }
    group.finish();
}

fn one_question(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse and match");
    group.sample_size(10);
    for size in SIZES {
        let text = file(&mixed(size));
        for (name, url, allowed) in urls(size) {
            let id = |reader: &str| BenchmarkId::new(format!("{reader}, {name}"), size);
            group.bench_function(id("crawlgate"), |bencher| {
                bencher.iter(|| ours(black_box(&text)).verdict(AGENT.as_bytes(), url.as_bytes()))
            });
            let google = |text: &str| {
                robotstxt::DefaultMatcher::default().one_agent_allowed_by_robots(text, AGENT, &url)
            };
            assert_eq!(google(&text), allowed);
            group.bench_function(id("robotstxt"), |bencher| {
                bencher.iter(|| google(black_box(&text)))
            });
            group.bench_function(id("texting_robots"), |bencher| {
                bencher.iter(|| {
                    let robot = texting_robots::Robot::new(AGENT, black_box(text.as_bytes()))
                        .expect("a good file");
                    robot.allowed(&url)
                });
            });
            let parsed = url.parse().expect("a URL");
            group.bench_function(id("robotxt"), |bencher| {
                bencher.iter(|| {
                    robotxt::Robots::parse(black_box(text.as_bytes()), AGENT)
                        .is_url_allowed(&parsed)
                });
            });
        }
    }
    group.finish();
}

fn rule_set(patterns: &[String]) -> RuleSet {
    RuleSet::new(
        patterns
            .iter()
            .map(|pattern| Rule {
                allow: false,
                pattern: PathPattern::new(pattern),
            })
            .collect(),
    )
}

/// Patterns, and a target for them.
type Set = (&'static str, fn(usize) -> Vec<String>, String);

fn sets() -> [Set; 3] {
    [
        (
            "mixed",
            mixed,
            "/some/ordinary/article.html?id=7".to_owned(),
        ),
        (
            "wildcards only",
            wildcards_only,
            "/some/ordinary/part-of/article.html?id=7".to_owned(),
        ),
        (
            "adversarial",
            adversarial,
            format!("/{}", "a".repeat(2_000)),
        ),
    ]
}

fn finding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("RuleSet::find");
    for (name, patterns, target) in sets() {
        let mut scratch = TargetScratch::default();
        let target = scratch.normalise(target.as_bytes()).sent;
        for size in SIZES {
            let set = rule_set(&patterns(size));
            assert_eq!(set.find(target), None);
            group.bench_function(BenchmarkId::new(name, size), |bencher| {
                bencher.iter(|| set.find(black_box(target)))
            });
        }
    }
    group.finish();
}

/// Not a time: printed once.
fn memory(_: &mut Criterion) {
    for (name, patterns, _) in sets() {
        for size in [1_000, 10_000] {
            let patterns = patterns(size);
            let text: usize = patterns.iter().map(String::len).sum();
            let before = IN_USE.load(Ordering::Relaxed);
            let set = rule_set(&patterns);
            let bytes = IN_USE.load(Ordering::Relaxed) - before;
            println!(
                "memory of a rule set, {name}, {size} rules: {} bytes a rule, of which {} are its text",
                bytes / size,
                text / size
            );
            drop(set);
        }
    }
}

criterion_group!(benches, memory, parsing, prepared, one_question, finding);
criterion_main!(benches);
