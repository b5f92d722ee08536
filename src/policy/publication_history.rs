//! [`PublicationHistory`]: the robots.txt versions that a host published earlier, and when.
//! Requests are judged by these versions, too, because a crawler may still have one of them cached.
//! The module `publications` computes the histories whenever sites change. [`PublicationHistories`]
//! finds the history of a host.

use super::model::HostPattern;
use super::site::{HostIndex, SiteEntry, SupersededVersion};
use crate::time::Timestamp;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A span of time in which robots.txt answered 503.
#[derive(Clone, Debug)]
pub struct UnavailableSpan {
    /// The beginning.
    pub since: Timestamp,
    /// The end; `None` while it lasts.
    pub until: Option<Timestamp>,
}

/// The system clock was set forward, or the machine woke from sleep. Earlier times of the clock are
/// less long ago than they seem, by the length of the jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// The time of the clock after the jump.
    pub at: Timestamp,
    /// Its length.
    pub by: Duration,
}

/// The publications of peers: other instances in front of the same host. Empty with one instance.
#[derive(Clone, Debug, Default)]
pub struct PeerPublications {
    /// The superseded versions that are still in force on a peer: a bit each, by their index. A
    /// crawler may have received one of them a moment ago.
    pub in_force: u64,
    /// Versions that a peer may have served without reporting it, each with the end of that time. A
    /// version is an index of `superseded`; `None` is the version in force here.
    pub unreported: Vec<(Option<usize>, Timestamp)>,
    /// When a peer last superseded a version whose rules are not known here.
    pub unknown_until: Option<Timestamp>,
}

/// What a host published in the past. Hosts with the same closest pattern share a history.
#[derive(Clone, Debug, Default)]
pub struct PublicationHistory {
    /// The versions published before the one in force: each once, the last superseded first, at
    /// most [`PublicationHistory::MAX_SUPERSEDED`].
    pub superseded: Vec<SupersededVersion>,
    /// When the last version with rules that are no longer known was superseded. It may have
    /// allowed anything.
    pub unknown_until: Option<Timestamp>,
    /// When robots.txt answered 503: the latest span first, without overlaps.
    pub unavailable: Vec<UnavailableSpan>,
    /// When the clock was set forward, the latest first.
    pub jumps: Vec<ClockJump>,
    /// Since when the version in force is published (Last-Modified).
    pub since: Timestamp,
    /// Since when the host belongs to its current site.
    pub on_site_since: Timestamp,
    /// Whether no other version has the same Last-Modified, so that the date identifies the version
    /// that a crawler has.
    pub has_unique_date: bool,
    /// Since when crawlers are told apart as they are now (docs/internals/glossary.md).
    pub identity_epoch: Timestamp,
    /// Whether the policy declares what the host served before crawlgate, so that all versions are
    /// known.
    pub is_declared: bool,
    /// When the host last moved to another site, if the tags of its pages may have changed by that.
    pub moved_at: Option<Timestamp>,
    /// The publications of peers.
    pub peers: PeerPublications,
}

impl PublicationHistory {
    /// The most superseded versions of a host: sets of them are the bits of a `u64`.
    pub const MAX_SUPERSEDED: usize = 64;

    /// The history of a host that published nothing before `since`.
    pub fn new(since: Timestamp) -> PublicationHistory {
        PublicationHistory {
            since,
            on_site_since: since,
            has_unique_date: true,
            identity_epoch: since,
            ..PublicationHistory::default()
        }
    }

    /// The history of an unknown host.
    pub fn empty() -> &'static PublicationHistory {
        &EMPTY_HISTORY
    }

    /// The earliest time at which a crawler can have received a copy that it may still use, if a
    /// copy may be used for `window`. While robots.txt answers 503, a crawler may go on using its
    /// copy (RFC 9309 section 2.4), so a span of 503 within the window moves the result back to a
    /// window before that span. A clock jump within the window moves it back by the jump.
    pub fn cached_since(&self, window: Duration, now: Timestamp) -> Timestamp {
        let before = |moment: Timestamp| {
            self.jumps.iter().filter(|jump| jump.at <= moment).fold(
                minus(moment, window),
                |since, jump| {
                    if jump.at >= since {
                        minus(since, jump.by)
                    } else {
                        since
                    }
                },
            )
        };
        self.unavailable
            .iter()
            .fold(before(now), |cached_since, span| {
                if span.until.unwrap_or(now) >= cached_since {
                    cached_since.min(before(span.since))
                } else {
                    cached_since
                }
            })
    }

    /// Until when a copy that was received at `served` may be used, as known at `now`: the reverse
    /// of [`cached_since`](PublicationHistory::cached_since). A later 503, or one that continues, moves it
    /// later.
    pub fn cached_until(&self, window: Duration, served: Timestamp, now: Timestamp) -> Timestamp {
        let after = |moment: Timestamp| {
            self.jumps
                .iter()
                .rev()
                .filter(|jump| jump.at > moment)
                .fold(moment.plus(window), |until, jump| {
                    if minus(jump.at, jump.by) <= until {
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

    /// Whether `moved_at` is within the last 30 days ([`SiteEntry::NEW_TAGS_PERIOD`]), so that
    /// crawlers must receive whole pages.
    pub fn has_moved_recently(&self, now: Timestamp) -> bool {
        self.moved_at
            .is_some_and(|moment| now.since(moment) < SiteEntry::NEW_TAGS_PERIOD)
    }
}

pub(crate) fn minus(moment: Timestamp, by: Duration) -> Timestamp {
    Timestamp(moment.0.saturating_sub_unsigned(by.as_secs()))
}

/// The histories of all hosts, one for each host pattern. Equal histories are shared.
#[derive(Clone, Debug, Default)]
pub struct PublicationHistories {
    index: HostIndex,
    histories: Vec<(Option<HostPattern>, Arc<PublicationHistory>)>,
}

static EMPTY_HISTORY: LazyLock<PublicationHistory> =
    LazyLock::new(|| PublicationHistory::new(Timestamp(0)));

impl PublicationHistories {
    /// Indexes histories by their patterns; `None` stands for every other host.
    pub fn new(
        histories: Vec<(Option<HostPattern>, Arc<PublicationHistory>)>,
    ) -> PublicationHistories {
        PublicationHistories {
            index: HostIndex::new(histories.iter().map(|(pattern, _)| pattern)),
            histories,
        }
    }

    /// The history for a `Host` field value; [`PublicationHistory::empty`] where no pattern matches.
    pub fn get(&self, host: &[u8]) -> &PublicationHistory {
        self.find(host)
            .map_or(PublicationHistory::empty(), |(_, history)| history)
    }

    /// The history for a `Host` field value, and the index of its pattern in
    /// [`PublicationHistories::iter`]. `None` where no pattern matches.
    pub fn find(&self, host: &[u8]) -> Option<(usize, &PublicationHistory)> {
        let place = self.index.find(host)?;
        Some((place, &self.histories.get(place)?.1))
    }

    /// Each pattern with its history; `None` stands for every other host.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&HostPattern>, &Arc<PublicationHistory>)> {
        self.histories
            .iter()
            .map(|(pattern, history)| (pattern.as_ref(), history))
    }
}
