//! Rules, and the copies of them that crawlers hold: which versions count against whom, on which
//! host, for how long.

use super::cast::*;
use super::stage::Event::*;
use super::stage::*;
use crate::proxy::support::{BINGBOT, BROWSER};

pub fn timelines() -> Vec<Timeline> {
    let day = || Pass(25);
    vec![
        timeline(
            "changed under its feet",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", ALLOWED),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "fetched the new one while holding the old",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Policy(WITHOUT_A_AND_B),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/b/", STALE),
                Pass(23),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
                Ask(BINGBOT, APEX, "/b/", VIOLATION),
            ],
        ),
        timeline(
            "held past grace",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "never fetched on a watched host",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/never/", NEVER),
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "on a host just started",
            vec![
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                // It may go by what another server gave it yesterday, whatever it fetched since.
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(23),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "announced before the world knew",
            vec![
                Ask(BINGBOT, APEX, "/", ALLOWED),
                Silence(60),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                day(),
                Ask(BINGBOT, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "72-hour cachers",
            vec![
                Pass(60),
                Ask(THREE_DAYS, APEX, "/never/", UNPROVEN),
                Pass(13),
                Ask(THREE_DAYS, APEX, "/never/", NEVER),
                Fetch(THREE_DAYS, APEX),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(71),
                Ask(THREE_DAYS, APEX, "/a/", STALE),
                Ask(BINGBOT, APEX, "/a/", NEVER),
                Pass(2),
                Ask(THREE_DAYS, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "one-week cachers",
            vec![
                Pass(7 * 24 - 1),
                Ask(A_WEEK, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(A_WEEK, APEX, "/never/", NEVER),
                Fetch(A_WEEK, APEX),
                Policy(WITHOUT_A),
                Pass(6 * 24),
                Fetch(A_WEEK, APEX),
                Pass(23),
                Ask(A_WEEK, APEX, "/a/", STALE),
                Ask(THREE_DAYS, APEX, "/a/", NEVER),
                Pass(2),
                Ask(A_WEEK, APEX, "/a/", VIOLATION),
            ],
        ),
        timeline(
            "shared caches",
            vec![
                day(),
                Fetch(GOOGLE_IMAGES, APEX),
                Policy(WITHOUT_A),
                Ask(GOOGLEBOT, APEX, "/a/", STALE),
                Ask(GOOGLEBOT, APEX, "/never/", VIOLATION),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "apex and www are two hosts",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Ask(BINGBOT, WWW, "/a/", NEVER),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "behind a cache",
            vec![
                // Nobody knows who fetched what.
                Pass(25),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Policy(WITHOUT_A),
                Pass(25),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
            ],
        )
        .with("  behind_cache: 2h\n"),
        timeline(
            "forged visits",
            vec![
                // Somebody else with its name: on a new host, and while it holds an older copy.
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                From("203.0.113.66"),
                Fetch(BINGBOT, APEX),
                Fetch(BINGBOT, APEX),
                Confirm(BINGBOT, APEX),
                From("203.0.113.1"),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "65 versions in a day",
            (1..=66)
                .flat_map(|number| [Policy(OPEN.numbered(number)), Fetch(BINGBOT, APEX)])
                .fold(vec![day()], |mut events, event| {
                    events.push(event);
                    events
                })
                .into_iter()
                .chain([
                    Policy(WITHOUT_A_AND_B),
                    // What it was served first is not known any more, and may have allowed
                    // anything.
                    Ask(BINGBOT, APEX, "/never/", STALE),
                    Ask(BYSTANDER, APEX, "/never/", NEVER),
                    Pass(20),
                    Fetch(BINGBOT, APEX),
                    Pass(5),
                    Ask(BINGBOT, APEX, "/never/", VIOLATION),
                ])
                .collect(),
        ),
        timeline(
            "no violation in any version",
            vec![
                day(),
                Ask(BINGBOT, APEX, "/x/../never/", AMBIGUOUS),
                Ask(NOT_BOUND, APEX, "/never/", "not_bound"),
                Ask(BROWSER, APEX, "/never/", PERSON),
                Ask(BINGBOT, APEX, "/robots.txt", ALLOWED),
            ],
        ),
        timeline(
            "ambiguous in the copy that it holds",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(OPEN.closing(&["/x/"])),
                // No rule of its copy decides the URL as sent: by RFC 9309 it may ask for it.
                Ask(BINGBOT, APEX, "/x/../never/", AMBIGUOUS),
                Pass(25),
                Ask(BINGBOT, APEX, "/x/../never/", NEVER),
            ],
        ),
    ]
}
