//! Who is called a violator, and who is not: timelines of what a crawler was given and what it did,
//! each told to the real binary by a clock that the test controls.

mod cast;
mod crawl_rate;
mod fetch_state;
mod model;
mod rules;
mod stage;
mod traps;
mod trouble;
mod validators;

use crate::proxy::support::{BINGBOT, Origin, Setup};
use cast::{APEX, OPEN, WITHOUT_A, WWW};
use stage::Event::*;
use stage::{NEVER, STALE, Stage, Timeline, UNPROVEN, VIOLATION, timeline};
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What happens, and what it is played for: whether the rules, the pace, the traps count against a
/// crawler then.
#[rustfmt::skip]
const TABLE: &[(&str, &str)] = &[
    ("changed under its feet",                       "rules pace traps"),
    ("lowered under its feet",                       "      pace      "),
    ("introduced under its feet",                    "      pace      "),
    ("removed under its feet",                       "      pace traps"),
    ("fetched the new one while holding the old",    "rules pace traps"),
    ("held past grace",                              "rules pace traps"),
    ("never fetched on a watched host",              "rules pace traps"),
    ("on a host just started",                       "rules pace traps"),
    ("announced before the world knew",              "rules           "),
    ("72-hour cachers",                              "rules pace traps"),
    ("one-week cachers",                             "rules pace traps"),
    ("shared caches",                                "rules pace traps"),
    ("apex and www are two hosts",                   "rules pace traps"),
    ("behind a cache",                               "rules pace traps"),
    ("forged visits",                                "rules pace traps"),
    ("65 versions in a day",                         "rules pace traps"),
    ("no violation in any version",                  "rules pace traps"),
    ("ambiguous in the copy that it holds",          "rules           "),
    ("a copy that closes the path by another rule",  "           traps"),
    // What counts as served.
    ("304 to an entity tag",                         "rules           "),
    ("304 to a date",                                "rules           "),
    ("two versions within a second",                 "rules           "),
    ("a date that the clock has yet to come to",     "rules           "),
    ("a host goes to another site",                  "rules           "),
    ("HEAD gives nobody a copy",                     "rules           "),
    ("nor does an answer that was broken off",       "rules           "),
    // When something fails or is switched.
    ("a restart",                                    "rules pace traps"),
    ("a restart that took long",                     "rules           "),
    ("kill -9",                                      "rules pace traps"),
    ("kill -9 while the policy changes",             "rules           "),
    ("kill -9 in a pause of robots.txt",             "rules           "),
    ("lost state",                                   "rules pace traps"),
    ("the clock is set back",                        "rules pace traps"),
    ("the clock is set forward",                     "rules pace traps"),
    ("the clock is set forward and back",            "rules           "),
    ("a pause of robots.txt",                        "rules pace traps"),
    ("a pause of robots.txt on a host just started", "rules           "),
    ("a pause of robots.txt behind a cache",         "rules           "),
    // Whose it is, and until when.
    ("verified, from many addresses",                "      pace traps"),
    ("unverified, from many addresses",              "      pace      "),
    ("robots.txt is free",                           "      pace traps"),
    ("waited as told",                               "      pace      "),
    ("the end of a mark",                            "           traps"),
    ("the end of a mark, and the clock is set back", "           traps"),
    ("the clock is set back in the time of a mark",  "           traps"),
    ("released",                                     "           traps"),
    ("people at the same address",                   "           traps"),
    ("another crawler at the same address",          "           traps"),
];

fn rules() -> Vec<Timeline> {
    [
        rules::timelines(),
        validators::timelines(),
        trouble::timelines(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Plays all of a column; those that fail are told together.
fn play_all(column: &str, timelines: &[Timeline]) {
    let wanted = TABLE
        .iter()
        .filter(|(_, columns)| columns.split(' ').any(|other| other == column));
    let wanted: BTreeSet<&str> = wanted.map(|(name, _)| *name).collect();
    let names: BTreeSet<&str> = timelines.iter().map(|timeline| timeline.name).collect();
    assert_eq!(
        names, wanted,
        "what is played for {column} is what the table says"
    );
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(timeline) = timelines.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(panic) = catch_unwind(|| drop(play(timeline))) {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.unwrap_or_else(|| format!("{} failed", timeline.name));
                failures
                    .lock()
                    .expect("nobody panics while noting")
                    .push(said);
            }
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("nobody panics while noting");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn play(timeline: &Timeline) -> Stage {
    let mut stage = Stage::set(timeline);
    for event in &timeline.events {
        stage.play(event, timeline.name);
    }
    stage
}

#[test]
fn every_timeline_of_rules_ends_as_the_design_says() {
    play_all("rules", &rules());
}

#[test]
fn every_timeline_of_pace_ends_as_the_design_says() {
    play_all("pace", &crawl_rate::timelines());
}

#[test]
fn every_timeline_of_traps_ends_as_the_design_says() {
    play_all("traps", &traps::timelines());
}

#[test]
fn a_clock_of_a_developer_is_refused_where_others_can_connect() {
    let setup = Setup::before(Origin::nowhere())
        .policy("shop", &OPEN.policy(APEX, ""))
        .with_clock();
    let (said, status) = setup
        .listen("0.0.0.0:0".parse().expect("an address"))
        .fail();
    assert_eq!(status.code(), Some(3));
    assert!(said.contains("0.0.0.0"), "{said}");
}

/// One violation, as each of those tells it that an owner looks at.
#[test]
fn log_metrics_answer_and_policy_tests_call_a_request_the_same() {
    let stage = play(&timeline(
        "alike",
        vec![
            Ask(BINGBOT, APEX, "/never/", UNPROVEN),
            Pass(25),
            Ask(BINGBOT, APEX, "/never/", NEVER),
            Fetch(BINGBOT, APEX),
            Ask(BINGBOT, APEX, "/never/", VIOLATION),
            Policy(WITHOUT_A),
            Ask(BINGBOT, APEX, "/a/", STALE),
        ],
    ));
    for kind in ["unproven", "never_fetched", "violation"] {
        let series = format!(
            "crawlgate_violations_total{{crawler=\"bingbot\",kind=\"{kind}\",site=\"shop\"}}"
        );
        stage.gate.wait_for_metric(&series, 1.0);
    }
    for (verdict, action, count) in [
        ("unproven", "block", 1.0),
        ("violation", "block", 2.0),
        ("stale_copy", "pass", 1.0),
    ] {
        stage.gate.wait_for_metric(
            &format!(
                "crawlgate_requests_total{{action=\"{action}\",crawler=\"bingbot\",kind=\"{verdict}\",site=\"shop\"}}"
            ),
            count,
        );
    }
    let tests = "tests:
  - { agent: bingbot, path: /never/, expect: { kind: unproven, action: block } }
  - { agent: bingbot, path: /never/, cached: none, expect: { kind: violation, never_fetched: yes, action: block } }
  - { agent: bingbot, path: /never/, cached: current, expect: { kind: violation, never_fetched: no, action: block } }
  - { agent: bingbot, path: /a/, cached: 'Disallow:', expect: { kind: stale_copy, action: pass } }
";
    stage.gate.write_policy(
        "shop",
        &WITHOUT_A.policy(&format!("{APEX}, {}", WWW), tests),
    );
    let checked = stage.gate.command(&["reload"]);
    assert!(checked.status.success(), "{checked:?}");
}
