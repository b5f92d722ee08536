//! What counts as served: whole answers to GET and 304s, each only where it says to the crawler
//! which copy is good.

use super::cast::*;
use super::stage::Event::*;
use super::stage::*;
use crate::proxy::support::BINGBOT;

pub fn timelines() -> Vec<Timeline> {
    let day = || Pass(25);
    vec![
        timeline(
            "304 to an entity tag",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Pass(20),
                Confirm(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "304 to a date",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Pass(20),
                Revalidate(BINGBOT, APEX, 304),
                Policy(WITHOUT_A),
                Pass(23),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Revalidate(BINGBOT, APEX, 200),
                Revalidate(BINGBOT, APEX, 304),
                Pass(2),
                Ask(BINGBOT, APEX, "/a/", VIOLATION),
            ],
        ),
        timeline(
            "two versions within a second",
            vec![
                day(),
                TwiceInASecond(BINGBOT, APEX, [OPEN, WITHOUT_A]),
                // Its date is that of both: whoever goes by the first must not hear that it is
                // good.
                Revalidate(BINGBOT, APEX, 200),
                RevalidateTag(BINGBOT, APEX, 304),
                Ask(BINGBOT, APEX, "/a/", STALE),
                Pass(25),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "a date that the clock has yet to come to",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                SetClock(-3 * HOUR),
                Noticed,
                Policy(WITHOUT_A),
                // Its copy is the newer one by its date, and is not what is in force.
                Revalidate(BINGBOT, APEX, 200),
            ],
        ),
        timeline(
            "a host goes to another site",
            vec![
                day(),
                Fetch(BINGBOT, APEX),
                Fetch(BINGBOT, WWW),
                // Its copy is of another site's file: by its date nobody can tell, but by its
                // bytes. (Time passes, or two files would have one date, and nobody could tell at
                // all.)
                Wait(5),
                Moves(WWW, OPEN),
                Revalidate(BINGBOT, WWW, 200),
                RevalidateTag(BINGBOT, WWW, 304),
                Wait(5),
                Moves(WWW, WITHOUT_A),
                Revalidate(BINGBOT, WWW, 200),
                Wait(5),
                Moves(WWW, WITHOUT_A_AND_B),
                RevalidateTag(BINGBOT, WWW, 200),
                Revalidate(BINGBOT, WWW, 304),
                Revalidate(BINGBOT, APEX, 304),
                Ask(BINGBOT, APEX, "/never/", VIOLATION),
                Ask(BINGBOT, WWW, "/never/", UNPROVEN),
            ],
        ),
        timeline(
            "HEAD gives nobody a copy",
            vec![
                day(),
                Head(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", NEVER),
            ],
        ),
        timeline(
            "nor does an answer that was broken off",
            vec![
                Policy(LONG),
                day(),
                HangUp(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", NEVER),
                Policy(LONG),
                Fetch(BINGBOT, APEX),
                Policy(WITHOUT_A),
                Ask(BINGBOT, APEX, "/a/", STALE),
            ],
        ),
    ]
}
