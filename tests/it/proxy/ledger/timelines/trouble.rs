//! Rules when something fails or is switched: restarts, crashes, a state that is lost, clocks that
//! are set, pauses.

use super::cast::*;
use super::stage::Event::*;
use super::stage::*;
use crate::proxy::support::BINGBOT;

pub fn timelines() -> Vec<Timeline> {
    let day = || Pass(25);
    vec![
        timeline(
            "a restart",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Restart("TERM", 20),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/a/", NEVER),
                RestartWith("TERM", 20, WITHOUT_A_AND_B),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Fetch(BINGBOT, APEX),
                Ask(BYSTANDER, APEX, "/b/", NEVER),
            ],
        ),
        timeline(
            "a restart that took long",
            vec![
                // Somebody else may have served.
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Restart("TERM", 5 * MINUTE),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(23),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "kill -9",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(1),
                Restart("KILL", 5),
                Ask(BINGBOT, APEX, "/a/", STALE),
                // What was served in the last second is not known: it may have been to this one.
                Ask(BYSTANDER, APEX, "/a/", VIOLATION),
                Policy(WITHOUT_A_AND_B),
                Ask(BYSTANDER, APEX, "/b/", STALE),
                Ask(BYSTANDER, APEX, "/never/", VIOLATION),
            ],
        ),
        timeline(
            "kill -9 while the policy changes",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                RestartWith("KILL", 5, WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "kill -9 in a pause of robots.txt",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(20),
                Written,
                Pause,
                Fetch(BINGBOT, APEX),
                // That it heard 503 is not on disk.
                Crash(5),
                Resume,
                Pass(6),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BINGBOT, WWW, "/a/", VIOLATION),
                Pass(19),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "lost state",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Fetch(BINGBOT, APEX),
                LoseState,
                // It may go by its first copy, of which nobody knows any more.
                Ask(BINGBOT, APEX, "/a/", UNPROVEN),
                Fetch(BINGBOT, APEX),
                Ask(BINGBOT, APEX, "/a/", UNPROVEN),
                day(),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "the clock is set back",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                SetClock(-3 * HOUR),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Noticed,
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "the clock is set forward",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                SetClock(30 * HOUR),
                // Its copy is a minute old, whatever the clock says.
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Noticed,
                Ask(BINGBOT, APEX, "/a/", STALE),
                // So it is after other changes and after a restart.
                Policy(WITHOUT_A_AND_B),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Restart("TERM", 20),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(2),
                Ask(BYSTANDER, APEX, "/never/", NEVER),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "the clock is set forward and back",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                SetClock(30 * HOUR),
                Noticed,
                SetClock(-30 * HOUR),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
        timeline(
            "a pause of robots.txt",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(20),
                Pause,
                Fetch(BINGBOT, APEX),
                Resume,
                Pass(10),
                // RFC 9309 section 2.4: a copy may be used for longer where robots.txt is
                // unreachable.
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(15),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "a pause of robots.txt on a host just started",
            vec![
                Pass(20),
                Pause,
                Fetch(BINGBOT, APEX),
                Resume,
                Pass(10),
                // So may the copy from before crawlgate.
                Ask(BINGBOT, APEX, "/never/", UNPROVEN),
                Ask(BYSTANDER, APEX, "/never/", UNPROVEN),
                Pass(15),
                Ask(BINGBOT, APEX, "/never/", NEVER),
            ],
        ),
        timeline(
            "a pause of robots.txt behind a cache",
            vec![
                Pass(27),
                Fetch(BYSTANDER, APEX),
                Policy(WITHOUT_A),
                Pass(20),
                Pause,
                Fetch(BINGBOT, APEX),
                Resume,
                Pass(10),
                // The copy that it got out of the cache, too; and out of the cache others heard the
                // same.
                Ask(BINGBOT, APEX, "/a/", STALE),
                Ask(BYSTANDER, APEX, "/a/", STALE),
                Pass(17),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
            ],
        )
        .with("  behind_cache: 2h\n"),
    ]
}
