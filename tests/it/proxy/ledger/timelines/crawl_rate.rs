//! Pace: which delay counts against whom, from which address, for how long. Delays are of minutes
//! and hours, so that the time that the test itself takes is none.

use super::cast::*;
use super::stage::Event::*;
use super::stage::*;
use crate::proxy::support::{BINGBOT, BROWSER};

const ONE_HOUR: Rules = OPEN.delay("1h");
const TWO_HOURS: Rules = OPEN.delay("2h");
const FORGER: &str = "203.0.113.66";
const OWN: &str = "203.0.113.1";

/// Its first request, and one an hour later: in time where it may hold a delay of an hour, too fast
/// where it must know of two.
fn an_hour_apart(agent: &'static str, kind: &'static str) -> [super::stage::Event; 3] {
    [
        Ask(agent, APEX, "/", ALLOWED),
        Wait(HOUR),
        Ask(agent, APEX, "/", kind),
    ]
}

fn told(parts: Vec<Vec<super::stage::Event>>) -> Vec<super::stage::Event> {
    parts.into_iter().flatten().collect()
}

pub fn timelines() -> Vec<Timeline> {
    let day = || Pass(25);
    let all = [during(), by_whom(), in_trouble()].into_iter().flatten();
    all.chain([
        timeline(
            "robots.txt is free",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Wait(50 * MINUTE),
                Fetch(BINGBOT, APEX),
                Fetch(BINGBOT, APEX),
                Head(BINGBOT, APEX),
                Confirm(BINGBOT, APEX),
                Wait(10 * MINUTE),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        )
        .beginning(ONE_HOUR),
        timeline(
            "waited as told",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Wait(30),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                // What came too soon does not count.
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                WaitAsTold,
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                WaitAsTold,
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        )
        .beginning(OPEN.delay("100s")),
    ])
    .collect()
}

/// A delay that changes while crawlers hold copies.
fn during() -> Vec<Timeline> {
    let day = || Pass(25);
    let all = vec![
        timeline(
            "changed under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Policy(TWO_HOURS),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Wait(HOUR / 2),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                Wait(HOUR / 2),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "lowered under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Policy(OPEN.delay("40m")),
                Fetch(BINGBOT, APEX),
                Wait(40 * MINUTE),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Wait(20 * MINUTE),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                Wait(20 * MINUTE),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                // And one that goes by the old one is slower than it must be.
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "introduced under its feet",
            vec![
                day(),
                Policy(OPEN),
                Fetch(BYSTANDER, APEX),
                Pass(25),
                Fetch(BINGBOT, APEX),
                Policy(ONE_HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Pass(25),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
            ],
        ),
        timeline(
            "removed under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                Policy(OPEN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Fetch(BINGBOT, APEX),
                Policy(ONE_HOUR),
                // It holds the version without one.
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "fetched the new one while holding the old",
            told(vec![
                vec![
                    day(),
                    Fetch(BINGBOT, APEX),
                    Policy(TWO_HOURS),
                    Fetch(BINGBOT, APEX),
                ],
                an_hour_apart(BINGBOT, ALLOWED).into(),
                vec![Pass(25)],
                an_hour_apart(BINGBOT, TOO_FAST).into(),
                vec![WaitAsTold, Ask(BINGBOT, APEX, "/", ALLOWED)],
            ]),
        ),
        timeline(
            "held past grace",
            told(vec![
                vec![day(), Fetch(BINGBOT, APEX), Policy(TWO_HOURS), Pass(22)],
                an_hour_apart(BINGBOT, ALLOWED).into(),
                vec![Pass(3)],
                an_hour_apart(BINGBOT, TOO_FAST).into(),
            ]),
        ),
        timeline(
            "72-hour cachers",
            told(vec![
                vec![
                    Pass(73),
                    Fetch(THREE_DAYS, APEX),
                    Policy(TWO_HOURS),
                    Pass(70),
                ],
                an_hour_apart(THREE_DAYS, ALLOWED).into(),
                vec![Pass(3)],
                an_hour_apart(THREE_DAYS, TOO_FAST).into(),
            ]),
        )
        .with("  agents: { DuckAssistBot: { mode: enforce } }\n"),
        timeline(
            "one-week cachers",
            told(vec![
                vec![
                    Pass(7 * 24 + 1),
                    Fetch(A_WEEK, APEX),
                    Policy(TWO_HOURS),
                    Pass(7 * 24 - 2),
                ],
                an_hour_apart(A_WEEK, ALLOWED).into(),
                vec![Pass(3)],
                an_hour_apart(A_WEEK, TOO_FAST).into(),
            ]),
        ),
        timeline(
            "65 versions in a day",
            (1..=66)
                .flat_map(|number| [Policy(ONE_HOUR.numbered(number)), Fetch(BINGBOT, APEX)])
                .fold(vec![day()], |mut events, event| {
                    events.push(event);
                    events
                })
                .into_iter()
                .chain([
                    // What it was served first is not known any more, and may have had no delay.
                    Ask(BINGBOT, APEX, "/", ALLOWED),
                    Ask(BINGBOT, APEX, "/", ALLOWED),
                ])
                .collect(),
        ),
    ];
    all.into_iter()
        .map(|timeline| timeline.beginning(ONE_HOUR))
        .collect()
}

/// Whose pace it is, and where.
fn by_whom() -> Vec<Timeline> {
    let day = || Pass(25);
    let all = vec![
        timeline(
            "never fetched on a watched host",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
            ],
        ),
        timeline(
            "on a host just started",
            vec![
                Ask(BINGBOT, APEX, "/", ALLOWED),
                // It may never have heard of a delay.
                Ask(BINGBOT, APEX, "/", ALLOWED),
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
            ],
        ),
        timeline(
            "shared caches",
            told(vec![
                vec![day(), Fetch(GOOGLE_IMAGES, APEX), Policy(TWO_HOURS)],
                an_hour_apart(GOOGLEBOT, ALLOWED).into(),
                // Each has a pace of its own.
                vec![Ask(GOOGLE_IMAGES, APEX, "/", ALLOWED)],
                an_hour_apart(BINGBOT, TOO_FAST).into(),
            ]),
        )
        .with("  agents: { Googlebot: { mode: enforce }, Googlebot-Image: { mode: enforce } }\n"),
        timeline(
            "apex and www are two hosts",
            vec![
                day(),
                // Each has a robots.txt of its own.
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, WWW, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                Ask(BINGBOT, WWW, "/", TOO_FAST),
            ],
        ),
        timeline(
            "behind a cache",
            told(vec![
                vec![Pass(27), Policy(TWO_HOURS), Pass(24)],
                an_hour_apart(BINGBOT, ALLOWED).into(),
                vec![Pass(2)],
                an_hour_apart(BINGBOT, TOO_FAST).into(),
            ]),
        )
        .with("  behind_cache: 2h\n"),
        timeline(
            "forged visits",
            vec![
                day(),
                From(FORGER),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                From(OWN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Wait(50 * MINUTE),
                From(FORGER),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                Fetch(BINGBOT, APEX),
                Wait(10 * MINUTE),
                From(OWN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "verified, from many addresses",
            vec![
                day(),
                From("198.51.100.1"),
                Ask(PARTNER, APEX, "/", ALLOWED),
                From("198.51.100.2"),
                Ask(PARTNER, APEX, "/", TOO_FAST),
                Wait(HOUR),
                Ask(PARTNER, APEX, "/", ALLOWED),
                From("198.51.100.1"),
                Ask(PARTNER, APEX, "/", TOO_FAST),
            ],
        )
        .with(PARTNERS),
        timeline(
            "unverified, from many addresses",
            vec![
                day(),
                From("2001:db8:1:2::1"),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                From("2001:db8:1:2:ffff::1"),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                From("2001:db8:1:3::1"),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                From(OWN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "no violation in any version",
            vec![
                day(),
                Ask(BROWSER, APEX, "/", PERSON),
                Ask(BROWSER, APEX, "/", PERSON),
                Ask(GOOGLEBOT, APEX, "/", ALLOWED),
                Ask(GOOGLEBOT, APEX, "/", ALLOWED),
                Ask(NOT_BOUND, APEX, "/", "not_bound"),
                Ask(NOT_BOUND, APEX, "/", "not_bound"),
            ],
        ),
    ];
    all.into_iter()
        .map(|timeline| timeline.beginning(ONE_HOUR))
        .collect()
}

/// Restarts and crashes forget a pace, and not who holds what.
fn in_trouble() -> Vec<Timeline> {
    let day = || Pass(25);
    let through = |what: super::stage::Event| {
        let before = vec![
            day(),
            Fetch(BINGBOT, APEX),
            Ask(BINGBOT, APEX, "/", ALLOWED),
            Ask(BINGBOT, APEX, "/", TOO_FAST),
            Policy(TWO_HOURS),
            what,
        ];
        told(vec![
            before,
            an_hour_apart(BINGBOT, ALLOWED).into(),
            vec![Ask(BINGBOT, APEX, "/", TOO_FAST)],
        ])
    };
    let all = vec![
        timeline("a restart", through(Restart("TERM", 20))),
        timeline("kill -9", through(Restart("KILL", 5))),
        timeline(
            "lost state",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(TWO_HOURS),
                LoseState,
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "the clock is set back",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                // As little as time servers correct.
                SetClock(-4),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                SetClock(-3 * HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "the clock is set forward",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                SetClock(4),
                Ask(BINGBOT, APEX, "/", TOO_FAST),
                SetClock(30 * HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "a pause of robots.txt",
            told(vec![
                vec![
                    day(),
                    Fetch(BINGBOT, APEX),
                    Policy(TWO_HOURS),
                    Pass(20),
                    Pause,
                    Fetch(BINGBOT, APEX),
                    Resume,
                ],
                vec![Pass(10)],
                an_hour_apart(BINGBOT, ALLOWED).into(),
            ]),
        ),
    ];
    all.into_iter()
        .map(|timeline| timeline.beginning(ONE_HOUR))
        .collect()
}
