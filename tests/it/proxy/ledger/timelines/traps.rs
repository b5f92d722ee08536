//! Traps: for whom they spring, who is marked, and for how long.

use super::cast::*;
use super::stage::Event::*;
use super::stage::*;
use crate::proxy::support::{BINGBOT, BROWSER};

const FORGER: &str = "203.0.113.66";
const OWN: &str = "203.0.113.1";

pub fn timelines() -> Vec<Timeline> {
    let trapped = marks()
        .into_iter()
        .map(|timeline| timeline.beginning(TRAPPED));
    [copies(), trouble()]
        .into_iter()
        .flatten()
        .chain(trapped)
        .collect()
}

/// A trap that is new: everything was open before.
fn copies() -> Vec<Timeline> {
    let day = || Pass(25);
    vec![
        timeline(
            "changed under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
            ],
        ),
        timeline(
            "a copy that closes the path by another rule",
            vec![
                Policy(OPEN.closing(&["/tra"])),
                day(),
                Pass(1),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                // Against the rules; of the trap it could not know.
                Ask(BINGBOT, APEX, TRAP, VIOLATION),
                Marked(0),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "fetched the new one while holding the old",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Marked(0),
                Pass(25),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Marked(1),
            ],
        ),
        timeline(
            "held past grace",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Pass(23),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Pass(2),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
            ],
        ),
        timeline(
            "72-hour cachers",
            vec![
                Pass(73),
                Fetch(THREE_DAYS, APEX),
                Policy(TRAPPED),
                Pass(71),
                Ask(THREE_DAYS, APEX, TRAP, STALE),
                Pass(2),
                Ask(THREE_DAYS, APEX, TRAP, IN_TRAP),
            ],
        ),
        timeline(
            "one-week cachers",
            vec![
                Pass(7 * 24 + 1),
                Fetch(A_WEEK, APEX),
                Policy(TRAPPED),
                Pass(7 * 24 - 1),
                Ask(A_WEEK, APEX, TRAP, STALE),
                Pass(2),
                Ask(A_WEEK, APEX, TRAP, IN_TRAP),
            ],
        ),
        timeline(
            "shared caches",
            vec![
                day(),
                Fetch(GOOGLE_IMAGES, APEX),
                Policy(TRAPPED),
                Ask(GOOGLEBOT, APEX, TRAP, STALE),
                Marked(0),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
            ],
        ),
        timeline(
            "apex and www are two hosts",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Ask(BINGBOT, WWW, TRAP, IN_TRAP),
                // And one site: the mark is for all of it.
                Ask(BINGBOT, APEX, "/", IN_TRAP),
            ],
        ),
        timeline(
            "behind a cache",
            vec![
                Pass(27),
                Policy(TRAPPED),
                Pass(25),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Pass(2),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
            ],
        )
        .with("  behind_cache: 2h\n"),
        timeline(
            "65 versions in a day",
            (1..=66)
                .flat_map(|number| [Policy(TRAPPED.numbered(number)), Fetch(BINGBOT, APEX)])
                .fold(vec![day()], |mut events, event| {
                    events.push(event);
                    events
                })
                .into_iter()
                .chain([Ask(BINGBOT, APEX, TRAP, STALE), Marked(0)])
                .collect(),
        ),
    ]
}

/// The same when something fails or is switched.
fn trouble() -> Vec<Timeline> {
    let through = |what: super::stage::Event| {
        vec![
            Pass(25),
            From(OWN),
            Fetch(BINGBOT, APEX),
            Policy(TRAPPED),
            From(FORGER),
            Ask(GOOGLEBOT, APEX, TRAP, IN_TRAP),
            what,
            Ask(GOOGLEBOT, APEX, "/", IN_TRAP),
            From(OWN),
            Ask(BINGBOT, APEX, TRAP, STALE),
            Marked(1),
        ]
    };
    let set = |seconds: i64| {
        vec![
            Pass(25),
            Fetch(BINGBOT, APEX),
            Policy(TRAPPED),
            SetClock(seconds),
            Ask(BINGBOT, APEX, TRAP, STALE),
            Marked(0),
        ]
    };
    vec![
        timeline("a restart", through(Restart("TERM", 20))),
        timeline("kill -9", through(Restart("KILL", 5))),
        timeline(
            "lost state",
            vec![
                Pass(25),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Ask(GOOGLEBOT, APEX, TRAP, IN_TRAP),
                LoseState,
                Ask(GOOGLEBOT, APEX, "/", ALLOWED),
                // It may go by its copy, of which nobody knows any more.
                Ask(BINGBOT, APEX, TRAP, UNPROVEN),
                Marked(0),
            ],
        ),
        timeline("the clock is set back", set(-3 * HOUR)),
        timeline("the clock is set forward", set(30 * HOUR)),
        timeline(
            "a pause of robots.txt",
            vec![
                Pass(25),
                Fetch(BINGBOT, APEX),
                Policy(TRAPPED),
                Pass(20),
                Pause,
                Fetch(BINGBOT, APEX),
                Resume,
                Pass(10),
                Ask(BINGBOT, APEX, TRAP, STALE),
                Marked(0),
            ],
        ),
    ]
}

/// The trap has been there all along.
fn marks() -> Vec<Timeline> {
    let day = || Pass(25);
    vec![
        timeline(
            "never fetched on a watched host",
            vec![
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Marked(1),
            ],
        ),
        timeline(
            "on a host just started",
            vec![
                Ask(BINGBOT, APEX, TRAP, UNPROVEN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
            ],
        ),
        timeline(
            "forged visits",
            vec![
                day(),
                From(FORGER),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                From(OWN),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "removed under its feet",
            vec![
                day(),
                Ask(GOOGLEBOT, APEX, TRAP, IN_TRAP),
                Fetch(BINGBOT, APEX),
                Policy(OPEN),
                Ask(BINGBOT, APEX, TRAP, ALLOWED),
                // There is no trap any more that it could be marked for.
                Ask(GOOGLEBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "the end of a mark",
            vec![
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
                // Only whoever does it again is marked anew.
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Wait(HOUR),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "the end of a mark, and the clock is set back",
            vec![
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Wait(2 * HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                SetClock(-HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Noticed,
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
                Restart("TERM", 5),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                SetClock(-30 * MINUTE),
                Restart("TERM", 5),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
            ],
        ),
        timeline(
            "the clock is set back in the time of a mark",
            vec![
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Wait(HOUR),
                SetClock(-50 * MINUTE),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Marked(1),
                Wait(HOUR),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Marked(0),
            ],
        ),
        timeline(
            "released",
            vec![
                day(),
                From(FORGER),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(BINGBOT, APEX, "/", IN_TRAP),
                Release(FORGER),
                Marked(0),
                Ask(BINGBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "people at the same address",
            vec![
                day(),
                From(FORGER),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(BROWSER, APEX, "/", PERSON),
                Ask(BROWSER, APEX, TRAP, PERSON),
                Ask(BROWSER, APEX, "/", PERSON),
                Marked(1),
            ],
        ),
        timeline(
            "another crawler at the same address",
            vec![
                day(),
                From(FORGER),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Ask(GOOGLEBOT, APEX, "/", ALLOWED),
            ],
        ),
        timeline(
            "robots.txt is free",
            vec![
                day(),
                Ask(BINGBOT, APEX, TRAP, IN_TRAP),
                Fetch(BINGBOT, APEX),
                RevalidateTag(BINGBOT, APEX, 304),
            ],
        ),
        timeline(
            "verified, from many addresses",
            vec![
                day(),
                From("198.51.100.1"),
                Ask(PARTNER, APEX, TRAP, IN_TRAP),
                Marked(0),
                Ask(PARTNER, APEX, "/", ALLOWED),
            ],
        )
        .with(PARTNERS),
        timeline(
            "no violation in any version",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/x/../trap/", AMBIGUOUS),
                Ask(NOT_BOUND, APEX, TRAP, "not_bound"),
                Ask(BROWSER, APEX, TRAP, PERSON),
                Marked(0),
            ],
        ),
    ]
}
