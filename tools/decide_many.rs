//! Does one thing of the engine N times, for `benches/instructions`, which counts the instructions
//! of N and of 2 N and so what one costs: `decide_many KIND N`. Without arguments it prints the
//! kinds.

use crawlgate::crawlers::Registry;
use crawlgate::internals::policy::{SiteEntry, Snapshot};
use crawlgate::internals::verdict::{
    CachedVersions, DecisionScratch, Identity, RequestFacts, decide, load_site,
};
use crawlgate::time::Timestamp;
use crawlgate::yaml::SourceFile;
use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;

const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

const KINDS: [&str; 10] = [
    "decide-browser-10",
    "decide-browser-1000",
    "decide-crawler-10",
    "decide-crawler-1000",
    "decide-crawler-10000",
    "identify-browser",
    "identify-crawler",
    "identify-garbage",
    "tags-planning",
    "tags-emission",
];

/// A policy with this many rules: prefixes, some with wildcards, some anchored.
fn snapshot(rules: usize) -> Snapshot {
    let mut text =
        "robots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow:\n".to_owned();
    for rule in 0..rules {
        let _ = match rule % 5 {
            0 => writeln!(text, "        - '/section-{rule}/*/print'"),
            1 => writeln!(text, "        - '/*?ref={rule}'"),
            2 => writeln!(text, "        - '/page-{rule}.html$'"),
            _ => writeln!(text, "        - '/section-{rule}/private/'"),
        };
    }
    text.push_str(
        "indexing:\n  - { types: [application/pdf], tag: noindex }\n  - { paths: [/drafts/], tag: noindex }\n\
         enforcement: { mode: enforce }\n",
    );
    let (site, findings) = load_site(
        "site",
        &SourceFile {
            name: "site.yaml".into(),
            text: text.into(),
        },
        Registry::builtin(),
    );
    let site = site.unwrap_or_else(|| panic!("{findings:?}"));
    Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 0)
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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let (kind, times) = match arguments.as_slice() {
        [_, kind, times] if KINDS.contains(&kind.as_str()) => {
            (kind.as_str(), times.parse().unwrap_or(0))
        }
        [_] => {
            println!("{}", KINDS.join("\n"));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!(
                "decide_many KIND N, where KIND is one of: {}",
                KINDS.join(", ")
            );
            return ExitCode::from(2);
        }
    };
    let mut parts = kind.splitn(3, '-');
    let (task, who) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let rules = parts
        .next()
        .and_then(|rules| rules.parse().ok())
        .unwrap_or(10);
    let registry = Registry::builtin();
    let garbage = "x;(bot http://".repeat(600);
    let user_agent = match who {
        "browser" => BROWSER,
        "garbage" => garbage.as_str(),
        _ => BINGBOT,
    };
    match task {
        "identify" => (0..times).for_each(|_: u32| {
            black_box(registry.identify(black_box(user_agent.as_bytes())));
        }),
        "decide" => {
            let (snapshot, mut scratch) = (snapshot(rules), DecisionScratch::default());
            let facts = facts(user_agent, "/some/ordinary/article.html?id=7");
            for _ in 0..times {
                black_box(decide(
                    &snapshot,
                    registry,
                    black_box(&facts),
                    &CachedVersions::default(),
                    &mut scratch,
                ));
            }
        }
        _ => {
            let (snapshot, mut scratch) = (snapshot(rules), DecisionScratch::default());
            let plan = &snapshot.sites()[0].site.tags;
            let target = scratch.target.normalise(b"/drafts/a.pdf");
            let path_rules = plan.for_path(target, &mut scratch.decoded);
            for _ in 0..times {
                match who {
                    // Which rules are about a path, then which lines they make for a response.
                    "planning" => drop(black_box(
                        plan.for_path(black_box(target), &mut scratch.decoded),
                    )),
                    _ => drop(black_box(plan.tags(
                        black_box(&path_rules),
                        200,
                        Some(b"application/pdf"),
                    ))),
                }
            }
        }
    }
    ExitCode::SUCCESS
}
