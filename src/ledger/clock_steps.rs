//! Notices that the clock was set, or that the machine slept: [`ClockSteps`]. The times of what was served mean little
//! then, and observation begins anew.

use crate::clock::Moment;
use std::sync::atomic::{AtomicI64, Ordering};

/// How far the clock may be from the time that was lived through: corrections over the network are smaller, and slow.
pub const TOLERANCE: i64 = 5;

/// Notices that the clock was set, or that the machine slept.
#[derive(Debug)]
pub struct ClockSteps {
    /// Seconds between the clock on the wall and the time lived through.
    apart: AtomicI64,
}

impl ClockSteps {
    pub fn new(moment: Moment) -> ClockSteps {
        ClockSteps { apart: AtomicI64::new(apart(moment)) }
    }

    /// By how many seconds the clock was set, if it does not go as it went.
    pub fn set_by(&self, moment: Moment) -> Option<i64> {
        let set_by = apart(moment).saturating_sub(self.apart.load(Ordering::Relaxed));
        (set_by.abs() > TOLERANCE).then_some(set_by)
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
