//! Since when a host is watched: a gap, in which somebody else may have served its robots.txt, ends the watch, and so
//! does a clock that somebody set. Who is watched for less than a crawler may keep a copy is never called a violator.

use crate::clock::Moment;
use crate::time::Timestamp;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A restart that is over within this time is no gap: nobody else has been put in our place.
const GAP: Duration = Duration::from_secs(60);

/// After a crash: so long after the next stamp was due. Who could not write for longer than that served what nobody
/// knows of, where not even the stamp could be taken away.
const GAP_AFTER_A_CRASH: Duration = Duration::from_secs(15);

/// How far the clock may be from the time that was lived through: corrections over the network are smaller, and slow.
pub const TOLERANCE: i64 = 5;

/// Notices that the clock was set, or that the machine slept.
#[derive(Debug)]
pub struct Watch {
    /// Seconds between the clock on the wall and the time lived through.
    apart: AtomicI64,
}

impl Watch {
    pub fn new(moment: Moment) -> Watch {
        Watch { apart: AtomicI64::new(apart(moment)) }
    }

    /// Whether the clock goes as it went.
    pub fn is_steady(&self, moment: Moment) -> bool {
        (apart(moment) - self.apart.load(Ordering::Relaxed)).abs() <= TOLERANCE
    }

    /// Goes by the clock as it is now; says by how many seconds it was set, if it did not go as before.
    pub fn settle(&self, moment: Moment) -> Option<i64> {
        let now = apart(moment);
        let set_by = now.saturating_sub(self.apart.swap(now, Ordering::Relaxed));
        (set_by.abs() > TOLERANCE).then_some(set_by)
    }
}

fn apart(moment: Moment) -> i64 {
    moment.now.0.saturating_sub(i64::try_from(moment.lived.as_secs()).unwrap_or(i64::MAX))
}

/// The starts that a watch outlasts, given what was written last: after an end in order, or after a crash and when the
/// next would have been written. A start before that is one by a clock that was set: nobody knows how much time passed.
pub fn believed(written: Timestamp, due: Option<Timestamp>) -> RangeInclusive<Timestamp> {
    let until = due.map_or(written.plus(GAP), |due| due.plus(GAP_AFTER_A_CRASH));
    Timestamp(written.0.saturating_sub(TOLERANCE))..=until
}
