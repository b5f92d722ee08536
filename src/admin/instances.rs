//! Shows operators the state of the store (Redis or Valkey) that several crawlgate instances share,
//! and the state of the other instances. [`StoreMonitor`] reads these states, and returns a
//! [`StoreStatus`]. [`StoreStatus::problems`] makes a message for each problem.

use super::problem::{Problem, ProblemKind};
use crate::peers::{
    CLOCK_WARNING_OFFSET, ExchangeStatus, MAX_CLOCK_OFFSET, MAX_STORE_OUTAGE, MEMBER_GONE_AFTER,
    MemberState, MemberStatus, NoAccusationReason, Peers, StoreOutage,
};
use crate::telemetry::StoreMetrics;
use crate::time::Timestamp;
use MemberState::{Gone, Left, Present, Silent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use NoAccusationReason::*;

/// The state of the store and its instances.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// The URL of the store, without user and password.
    pub url: String,
    /// What this instance knows of its peers.
    #[serde(flatten)]
    pub exchange: ExchangeStatus,
}

/// Reads the state of the store and of the other instances.
pub struct StoreMonitor {
    /// The URL of the store, without user and password.
    pub url: String,
    /// The other instances.
    pub peers: Arc<dyn Peers>,
    /// The metrics of the store.
    pub metrics: StoreMetrics,
}

impl StoreMonitor {
    /// The state of the store and its instances.
    pub fn status(&self) -> StoreStatus {
        StoreStatus {
            url: self.url.clone(),
            exchange: self.peers.status(),
        }
    }
}

impl StoreStatus {
    /// The problems that need attention: of the store, the clock, or another instance.
    pub fn problems(&self) -> Vec<Problem> {
        let exchange = &self.exchange;
        let mut problems = Vec::new();
        if let Some(away) = &exchange.away {
            let message = store_away_message(away, exchange.withholds_robots_txt_since);
            problems.push(Problem::new(ProblemKind::Store, message));
        }
        let clock = exchange.clock_ahead_ms.and_then(clock_offset_message);
        // Without the store, the state of other instances is out of date.
        let others = exchange
            .members
            .iter()
            .filter(|_| exchange.away.is_none())
            .filter_map(member_message);
        for message in clock.into_iter().chain(others) {
            problems.push(Problem::new(ProblemKind::Instances, message));
        }
        problems
    }

    pub(super) fn set_gauges(&self, store: &StoreMetrics) {
        let mut present = 0;
        let mut silent = 0;
        let mut differing = 0;
        for member in &self.exchange.members {
            match member.standing {
                Present => {
                    present += 1;
                    differing += i64::from(!member.same_policies);
                }
                Silent => silent += 1,
                Left | Gone => {}
            }
        }
        store.up.set(self.exchange.away.is_none().into());
        store.differing.set(differing);
        store
            .clock_ahead
            .set(self.exchange.clock_ahead_ms.unwrap_or(0) as f64 / 1_000.0);
        store
            .accuses
            .set(self.exchange.accuses_not.is_none().into());
        for (label, count) in [("present", present), ("silent", silent)] {
            store.instances.with_label_values(&[label]).set(count);
        }
    }
}

/// The message about an unreachable store. `withheld` is since when robots.txt is answered with 503
/// for it, if it is.
fn store_away_message(away: &StoreOutage, withheld: Option<Timestamp>) -> String {
    let StoreOutage { since, error, .. } = away;
    let robots_txt = match withheld {
        Some(since) => format!(
            "Since {since}, /robots.txt is answered with 503 and crawlers may fetch nothing: other instances may have \
             published other rules and do not know what was served here. Restore the connection to the store"
        ),
        None => format!(
            "The current robots.txt stays in force, and changes of it wait. {} hours after the last contact with the \
             store, /robots.txt is answered with 503",
            MAX_STORE_OUTAGE.as_secs() / 3_600
        ),
    };
    format!(
        "{error} (since {since}). crawlgate goes on with what it knows, and counts no violations. {robots_txt}. If \
         the store is gone for good, start crawlgate without \"store\""
    )
}

/// The message about a clock that is ahead of the store's (negative: behind). `None` up to `CLOCK_WARNING_OFFSET`.
fn clock_offset_message(ahead_ms: i64) -> Option<String> {
    let off = ahead_ms.unsigned_abs();
    if u128::from(off) <= CLOCK_WARNING_OFFSET.as_millis() {
        return None;
    }
    let meanwhile = if u128::from(off) > MAX_CLOCK_OFFSET.as_millis() {
        "crawlgate counts no violations until that is fixed"
    } else {
        "crawlgate corrects for that, but counts no violations above 5 s"
    };
    Some(format!(
        "the clock of this machine is {:.1} s {} the clock of the store; {meanwhile}. Set both by NTP",
        off as f64 / 1_000.0,
        if ahead_ms > 0 { "ahead of" } else { "behind" }
    ))
}

/// The message about an instance that is silent, has other policies, or identifies crawlers by other
/// names.
fn member_message(found: &MemberStatus) -> Option<String> {
    let MemberStatus {
        member,
        standing,
        lag,
        same_policies,
        same_crawlers,
    } = found;
    let name = format!("instance {} on {}", member.id, member.host);
    match standing {
        Silent => Some(format!(
            "{name} has not reported for {lag:.0} s. crawlgate counts no violations until it reports, or for {} \
             hours. If it will not come back, run \"crawlgate instances forget {}\"",
            MEMBER_GONE_AFTER.as_secs() / 3_600,
            member.id
        )),
        Present if !same_policies => Some(format!(
            "{name} has other policies than this instance, so crawlers get different robots.txt files. Copy the same \
             policies to both"
        )),
        Present if !same_crawlers => Some(format!(
            "{name} (crawlgate {}) has other names for crawlers than this instance. What one crawler was served \
             counts for all. Run the same version with the same policies on both",
            member.version
        )),
        Present | Left | Gone => None,
    }
}

/// Why no request is called a violation, in words.
pub fn hindrance_words(hindrance: NoAccusationReason) -> &'static str {
    match hindrance {
        StoreAway => "the store is not in use",
        StartingOver => "the store lost data, and not every instance has written its own again",
        Clock => "the clocks of this machine and the store differ too much",
        MemberSilent => "an instance has not reported",
    }
}

/// The state of an instance in words. While the store is away, this instance is "without the store",
/// and another one has its last known state ("was present").
pub fn member_state_words(found: &MemberStatus, exchange: &ExchangeStatus) -> String {
    let word = match found.standing {
        Present => "present",
        Silent => "silent",
        Left => "left",
        Gone => "gone",
    };
    match &exchange.away {
        None => word.to_owned(),
        Some(_) if found.member.id == exchange.id => "without the store".to_owned(),
        Some(_) => format!("was {word}"),
    }
}

/// How long ago an instance last reported.
pub fn last_report_words(found: &MemberStatus) -> String {
    // An instance joins before its first report.
    if found.member.joined == 0 {
        "never reported".to_owned()
    } else {
        format!("reported {:.1} s ago", found.lag)
    }
}
