//! [`ClockStepDetector`] detects that the clock was set or that the machine slept, by comparing the
//! wall clock with the monotonic clock. Afterwards the recorded times are unreliable, so crawlgate
//! begins anew to observe which robots.txt crawlers are served.
//!
//! After a detection, the clock counts as unsettled until [`ClockStepDetector::mark_settled`] is
//! called. Until that call, the times of requests to hosts are not recorded.

use crate::clock::Moment;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// How far the clock may be from the monotonic time: corrections over the network are
/// smaller, and slow.
pub const MAX_CLOCK_DRIFT: u64 = 5;

/// The difference of wall clock and monotonic time, as it was last settled.
pub struct ClockStepDetector {
    /// Seconds between the clock on the wall and the monotonic time.
    offset: AtomicI64,
    /// Whether a request saw that the clock was set, and [`ClockStepDetector::mark_settled`] was
    /// not called since.
    is_unsettled: AtomicBool,
}

impl ClockStepDetector {
    /// A settled clock, which goes as it does at this moment.
    pub fn new(moment: Moment) -> ClockStepDetector {
        ClockStepDetector {
            offset: moment.wall_clock_offset().into(),
            is_unsettled: false.into(),
        }
    }

    /// By how many seconds the clock was set since it was last settled: forward is positive. `None`
    /// for corrections up to `MAX_CLOCK_DRIFT`. If the clock was set, it counts as unsettled from
    /// now on.
    pub fn detect_step(&self, moment: Moment) -> Option<i64> {
        let set_by = moment
            .wall_clock_offset()
            .saturating_sub(self.offset.load(Relaxed));
        let is_set = set_by.unsigned_abs() > MAX_CLOCK_DRIFT;
        if is_set {
            self.is_unsettled.store(true, Relaxed);
        }
        is_set.then_some(set_by)
    }

    /// Whether no request saw since `ClockStepDetector::mark_settled` that the clock was set.
    pub fn is_settled(&self) -> bool {
        !self.is_unsettled.load(Relaxed)
    }

    /// Goes by the clock as it is now. Returns by how many seconds it was set since it was last
    /// settled (forward is positive); `None` for corrections up to `MAX_CLOCK_DRIFT`.
    pub fn accept_step(&self, moment: Moment) -> Option<i64> {
        let now = moment.wall_clock_offset();
        let set_by = now.saturating_sub(self.offset.swap(now, Relaxed));
        (set_by.unsigned_abs() > MAX_CLOCK_DRIFT).then_some(set_by)
    }

    /// Notes that everything goes by the clock as it is now.
    pub fn mark_settled(&self) {
        self.is_unsettled.store(false, Relaxed);
    }
}
