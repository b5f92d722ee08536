//! [`HostHistory`]: which robots.txt files a host published before now, and when. Requests are
//! judged by it, because a crawler may still use a cached copy of an earlier file. The module
//! `publications` computes it for each new snapshot (all compiled sites at a moment).
//! [`HostHistories`] finds the history of a host with one look-up and without allocating.

use super::model::HostPattern;
use super::site::{HostIndex, SiteEntry, SupersededVersion};
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// A span in which robots.txt answered 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailability {
    /// The begin.
    pub since: Timestamp,
    /// The end; `None` while it lasts.
    pub until: Option<Timestamp>,
}

/// A moment at which the clock was set forward, or the machine woke from sleep. Times of the clock
/// before it are too long ago by that much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// The time of the clock after it.
    pub at: Timestamp,
    /// The length of the jump.
    pub by: Duration,
}

/// The publications of other instances in front of the same hosts. Empty with one instance.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// The superseded versions that are in force on other instances: a bit each, by their place. A
    /// crawler may have been served one of them a moment ago.
    pub in_force: u64,
    /// Versions that an instance had in force and may have served to any crawler without telling,
    /// each with the end of that time. A version is given by its place, `None` for the one that is
    /// in force here.
    pub unreported: Vec<(Option<usize>, Timestamp)>,
    /// When the last version was superseded on another instance whose rules are not known here.
    pub unknown_until: Option<Timestamp>,
}

/// The past of every host whose closest pattern is the same.
#[derive(Clone, Debug)]
pub struct HostHistory {
    /// Versions that were published before the one in force: each once, the one that was superseded
    /// last first, at most [`HostHistory::MAX_SUPERSEDED`].
    pub superseded: Vec<SupersededVersion>,
    /// When the last version was superseded whose rules are not known any more. A crawler that may
    /// have cached it may have been allowed anything.
    pub unknown_until: Option<Timestamp>,
    /// When robots.txt answered 503, the latest span first. Spans do not overlap.
    pub unavailable: Vec<Unavailability>,
    /// When the clock was set forward, the latest first.
    pub jumps: Vec<ClockJump>,
    /// Since when this site publishes the version in force here: Last-Modified.
    pub since: Timestamp,
    /// Since when the host belongs to its present site.
    pub at_site_since: Timestamp,
    /// Whether no other version has the same Last-Modified, so that a date alone tells which one a
    /// crawler has.
    pub is_told_by_its_date: bool,
    /// The identity epoch: since when crawlers are told apart as they are now.
    pub identity_epoch: Timestamp,
    /// Whether the operator declares what the host served before crawlgate, so that all versions
    /// are known.
    pub is_declared: bool,
    /// When the host last changed its site while there was something to tell about pages.
    pub moved_at: Option<Timestamp>,
    /// The publications of other instances.
    pub elsewhere: Elsewhere,
}

impl HostHistory {
    /// Superseded versions that are known of a host: one bit of a `u64` for each.
    pub const MAX_SUPERSEDED: usize = 64;

    /// A host that has published nothing before this moment.
    pub const fn new(since: Timestamp) -> HostHistory {
        HostHistory {
            superseded: Vec::new(),
            unknown_until: None,
            unavailable: Vec::new(),
            jumps: Vec::new(),
            since,
            at_site_since: since,
            is_told_by_its_date: true,
            identity_epoch: since,
            is_declared: false,
            moved_at: None,
            elsewhere: Elsewhere {
                in_force: 0,
                unreported: Vec::new(),
                unknown_until: None,
            },
        }
    }

    /// The history of a host of which nothing is known.
    pub fn none() -> &'static HostHistory {
        &NO_HISTORY
    }

    /// The earliest moment at which a crawler can have been served a copy that it may still use,
    /// where it may use one for `window`. A crawler that asks while robots.txt answers 503 may use
    /// its copy for another window (RFC 9309 section 2.4), so each such span within the window
    /// moves the moment back to a window before the span. A window is time that passed: where the
    /// clock was set forward within it, it reaches back that much further.
    pub fn cached_since(&self, window: Duration, now: Timestamp) -> Timestamp {
        let before = |moment: Timestamp| {
            let jumps = self.jumps.iter().filter(|jump| jump.at <= moment);
            jumps.fold(back(moment, window), |since, jump| {
                if jump.at >= since {
                    back(since, jump.by)
                } else {
                    since
                }
            })
        };
        self.unavailable
            .iter()
            .fold(before(now), |cached_since, span| {
                match span.until.unwrap_or(now) {
                    until if until >= cached_since => cached_since.min(before(span.since)),
                    _ => cached_since,
                }
            })
    }

    /// The last moment at which a copy that was served at `served` may still be used, by what is
    /// known at `now`: the reverse of [`cached_since`](HostHistory::cached_since). A 503 that goes
    /// on, or comes later, makes it later.
    pub fn cached_until(&self, window: Duration, served: Timestamp, now: Timestamp) -> Timestamp {
        let after = |moment: Timestamp| {
            let jumps = self.jumps.iter().rev().filter(|jump| jump.at > moment);
            jumps.fold(moment.plus(window), |until, jump| {
                let is_within = back(jump.at, jump.by) <= until;
                if is_within {
                    until.plus(jump.by).min(jump.at.plus(window))
                } else {
                    until
                }
            })
        };
        self.unavailable
            .iter()
            .rev()
            .fold(after(served), |until, span| {
                if span.since <= until {
                    until.max(after(span.until.unwrap_or(now)))
                } else {
                    until
                }
            })
    }

    /// Whether the host changed its site within the last 30 days (`SiteEntry::TAGS_NEW_FOR`), so
    /// that crawlers must see its pages whole. False where it never changed it.
    pub fn has_moved_lately(&self, now: Timestamp) -> bool {
        self.moved_at
            .is_some_and(|moment| now.since(moment) < SiteEntry::TAGS_NEW_FOR)
    }
}

fn back(moment: Timestamp, by: Duration) -> Timestamp {
    Timestamp(moment.0.saturating_sub_unsigned(by.as_secs()))
}

/// The histories of all hosts: one for each pattern, shared where they are equal.
#[derive(Clone, Debug, Default)]
pub struct HostHistories {
    index: HostIndex,
    known: Vec<(Option<HostPattern>, Arc<HostHistory>)>,
}

/// The history of a host of which nothing is known.
static NO_HISTORY: HostHistory = HostHistory::new(Timestamp(0));

impl HostHistories {
    /// From patterns; `None` stands for every other host.
    pub fn new(known: Vec<(Option<HostPattern>, Arc<HostHistory>)>) -> HostHistories {
        HostHistories {
            index: HostIndex::new(known.iter().map(|(pattern, _)| pattern)),
            known,
        }
    }

    /// The history of the host of a `Host` field value. Where no pattern has the host, the history
    /// of `HostHistory::none`.
    pub fn of(&self, host: &[u8]) -> &HostHistory {
        self.find(host).map_or(&NO_HISTORY, |(_, history)| history)
    }

    /// The history of the host of a `Host` field value, with the place of the closest pattern in
    /// [`HostHistories::each`]. `None` where no pattern has the host.
    pub fn find(&self, host: &[u8]) -> Option<(usize, &HostHistory)> {
        // The engine by itself keeps no history: it pays nothing for it.
        let place = if self.known.is_empty() {
            None
        } else {
            self.index.find(host)
        }?;
        self.known
            .get(place)
            .map(|(_, history)| (place, &**history))
    }

    /// The history of each pattern; `None` stands for every other host.
    pub fn each(&self) -> impl Iterator<Item = (Option<&HostPattern>, &Arc<HostHistory>)> {
        self.known
            .iter()
            .map(|(pattern, history)| (pattern.as_ref(), history))
    }
}
