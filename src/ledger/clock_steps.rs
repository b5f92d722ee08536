//! [`ClockSteps`] notices that the clock was set, or that the machine slept: it compares the wall
//! clock with the elapsed time. The times of what was served are then unreliable, and observation
//! begins anew.
//!
//! A request that sees a step makes the clock unsettled; [`ClockSteps::note_settled`] makes it
//! settled again.

use crate::clock::Moment;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// How far the clock may be from the time that was lived through: corrections over the network are
/// smaller, and slow.
pub const TOLERANCE: i64 = 5;

/// The difference of wall clock and time lived through, as it was last settled.
#[derive(Debug)]
pub struct ClockSteps {
    /// Seconds between the clock on the wall and the time lived through.
    apart: AtomicI64,
    /// Whether a request saw that the clock was set, and [`ClockSteps::note_settled`] was not
    /// called since.
    is_unsettled: AtomicBool,
}

impl ClockSteps {
    /// A settled clock, which goes as it does at this moment.
    pub fn new(moment: Moment) -> ClockSteps {
        ClockSteps {
            apart: AtomicI64::new(moment.ahead()),
            is_unsettled: AtomicBool::new(false),
        }
    }

    /// By how many seconds the clock was set since it was last settled: forward is positive. `None`
    /// for corrections up to `TOLERANCE`. If the clock was set, it counts as unsettled from now on.
    pub fn set_by(&self, moment: Moment) -> Option<i64> {
        let set_by = moment.ahead().saturating_sub(self.apart.load(Relaxed));
        let is_set = set_by.abs() > TOLERANCE;
        if is_set {
            self.is_unsettled.store(true, Relaxed);
        }
        is_set.then_some(set_by)
    }

    /// Whether no request saw since `ClockSteps::note_settled` that the clock was set.
    pub fn is_settled(&self) -> bool {
        !self.is_unsettled.load(Relaxed)
    }

    /// Goes by the clock as it is now. Returns by how many seconds it was set since it was last
    /// settled (forward is positive); `None` for corrections up to `TOLERANCE`.
    pub fn settle(&self, moment: Moment) -> Option<i64> {
        let now = moment.ahead();
        let set_by = now.saturating_sub(self.apart.swap(now, Relaxed));
        (set_by.abs() > TOLERANCE).then_some(set_by)
    }

    /// Notes that everything goes by the clock as it is now.
    pub fn note_settled(&self) {
        self.is_unsettled.store(false, Relaxed);
    }
}
