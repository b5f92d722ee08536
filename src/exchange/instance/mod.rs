//! [`Exchange`] exchanges the facts of this crawlgate instance (such as which crawler fetched which
//! robots.txt) with its peers (the other instances), through a shared Redis or Valkey store. It has
//! no threads and no locks. Instead, a caller runs [`Exchange::turn`] again and again. A turn reads
//! the new facts of peers, and writes the new facts of this instance. Through the trait
//! [`LocalFacts`], a turn reads and changes what this instance knows.
//!
//! This instance is in one of two states:
//! - *outside*: the store may lack facts of this instance. The next turn writes all of them, and
//!   moves the instance to *settled*. After a restart with another store, or after the machine
//!   slept, the instance may have missed what its peers served. In this case it first waits some
//!   seconds for a peer that was running all the time.
//! - *settled*: each turn writes only new facts. If the store is replaced or loses facts, the
//!   instance moves back to *outside*.

mod turn;
mod writing;

use super::members::ExchangeMembers;
use super::operator_commands::OperatorCommands;
use super::own_publications::OwnPublications;
use super::{
    CONFIRM_TIMEOUT, ExchangeProgress, ExchangeStatus, ExchangeTotals, FACT_SCHEMA, FactOutbox,
    LogPosition, MAX_CLOCK_OFFSET, MEMBER_GONE_AFTER, Member, MemberState, MemberStatus,
    MergedFacts, NoAccusationReason, StoreClockOffset, StoreIdentity, StoreOutage, gone_key,
    whole_seconds,
};
use crate::facts::{Fact, FactKey};
use crate::policy::RobotsVersionId;
use crate::publications::{PeerPublicationLogs, PublicationLog, VersionFile};
use crate::time::Timestamp;
use MemberState::{Gone, Left, Present, Silent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// How often publications of peers are computed again without a change, because those in force
/// continue.
const COMPUTE_INTERVAL: Duration = Duration::from_secs(1_800);

/// The facts of this instance, as the exchange reads and changes them.
pub trait LocalFacts {
    /// Returns all remembered facts that peers should know, and every observed host.
    fn all_facts(&self) -> Vec<Fact>;
    /// Applies a fact of a peer. Of a site's pauses only the latest change is passed on.
    fn apply(&mut self, fact: Fact);
    /// Restarts observation, because it is unknown what peers served until now. `is_anew` says that
    /// something was observed before.
    fn restart_observation(&mut self, is_anew: bool);
}

/// A moment of the own clock.
#[derive(Clone, Copy)]
pub struct ExchangeTime {
    /// Milliseconds since 1970.
    pub milliseconds: i64,
    /// The monotonic time.
    pub monotonic: Duration,
}

impl ExchangeTime {
    fn to_timestamp(self) -> Timestamp {
        Timestamp(self.milliseconds.div_euclid(1_000))
    }
}

/// What the previous run stored about its membership.
#[derive(Default)]
pub struct PreviousMembership {
    /// Its id. `None` if nothing of it is known.
    pub run: Option<String>,
    /// The store that it was settled in.
    pub identity: Option<StoreIdentity>,
    /// Whether it reported everything and left.
    pub has_left: bool,
    /// Whether any earlier run, also without an exchange, served and observed anything.
    pub has_observed: bool,
    /// Since when it is unknown here what it served.
    pub unreported_since: Option<Timestamp>,
}

/// The exchange of one instance.
#[derive(Default)]
pub struct Exchange {
    /// The member entry of this instance. `Exchange::own_member` adds what changes with each write.
    pub own: Member,
    before: PreviousMembership,
    outbox: Arc<FactOutbox>,
    progress: Arc<ExchangeProgress>,
    /// What this run published.
    pub log: OwnPublications,
    founding_epoch: String,
    /// The store that this instance is settled in.
    pub settled: Option<StoreIdentity>,
    /// When this run began its first turn.
    started_at: Option<Timestamp>,
    last_turn: Option<Duration>,
    /// Whether the last turn was long ago when the store was last tried.
    has_slept: bool,
    /// Whether this run ever was a member.
    pub has_joined: bool,
    /// When this run settled in another store than before, by the store's clock.
    moved_at: Option<i64>,
    /// A new store in which this instance waits for peers to settle, and since when.
    waiting_for_peers: Option<(StoreIdentity, Duration)>,
    outgoing: MergedFacts,
    must_write_all: bool,
    /// Publications and tenures of peers, and declarations that an instance is gone.
    facts: MergedFacts,
    /// Pauses and releases at any instance.
    orders: OperatorCommands,
    /// Pauses of which a peer gave the latest order, until the end of the turn.
    peer_pauses: BTreeSet<FactKey>,
    /// Releases that were made here, to be applied again after this turn read marks of peers.
    own_releases: BTreeSet<FactKey>,
    members: ExchangeMembers,
    member_states: BTreeMap<String, MemberState>,
    wanted_files: BTreeSet<String>,
    peers_changed: bool,
    computed_at: Option<Duration>,
    read_position: LogPosition,
    /// The log position at the end of the last turn, and the one that was last reported to peers.
    turn_position: LogPosition,
    reported_position: LogPosition,
    must_answer: bool,
    asks_peers: bool,
    measured_clock: Option<(i64, Duration)>,
    clocks: StoreClockOffset,
    last_contact: Option<Duration>,
    /// The time of the last contact, by the store's clock.
    last_contact_at: i64,
    pruned_at: Option<Duration>,
    /// Own entries with their positions, until every peer has read them.
    unconfirmed_entries: VecDeque<(u64, LogPosition)>,
    confirmed_entry: Option<u64>,
    away: Option<StoreOutage>,
    /// Counters since the start of the process. The thread adds the outcomes of waiting records.
    pub totals: ExchangeTotals,
}

impl Exchange {
    /// Creates an exchange that is outside. Of `own`, the id, the run (the id, a point and a random
    /// number), the host and the crawlers are used. `log` is what this instance publishes and
    /// published, and `files` has the bytes of it.
    pub fn new(
        own: Member,
        before: PreviousMembership,
        outbox: Arc<FactOutbox>,
        progress: Arc<ExchangeProgress>,
        log: PublicationLog,
        files: Vec<VersionFile>,
    ) -> Exchange {
        Exchange {
            log: OwnPublications::new(own.run.clone(), log, files),
            founding_epoch: own.run.clone(),
            own: Member {
                continues: before.run.clone(),
                schema: FACT_SCHEMA,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..own
            },
            before,
            outbox,
            progress,
            ..Exchange::default()
        }
    }

    /// Records when this run began, unless that is recorded already.
    pub fn record_start(&mut self, now: ExchangeTime) {
        self.started_at.get_or_insert(now.to_timestamp());
    }

    fn has_ended(&self, member: &Member) -> bool {
        matches!(self.member_state(member), Left | Gone)
    }

    /// The present state of a peer, by the store's clock.
    fn member_state(&self, member: &Member) -> MemberState {
        self.member_state_at(member, self.clocks.now())
    }

    /// The state of a peer at a moment of the store's clock, in seconds: `Left` if it left in
    /// order; `Gone` if an operator declared that after its last report, or it was silent for 25
    /// hours; `Silent` after 5 seconds. If this run moved to another store, a peer that is not
    /// settled there counts as having reported until the move.
    fn member_state_at(&self, member: &Member, now: i64) -> MemberState {
        let forgotten = self.facts.time(&gone_key(&member.id));
        // Its later reports may be lost with the former store, so it may have served until this
        // instance moved.
        let reported = match self.moved_at {
            Some(moved) if member.settled != self.settled => member.reported.max(moved),
            _ => member.reported,
        };
        match now.saturating_sub(reported) {
            _ if member.has_left => Left,
            _ if forgotten >= Some(member.reported) => Gone,
            silent if silent > whole_seconds(MEMBER_GONE_AFTER) => Gone,
            silent if silent > whole_seconds(CONFIRM_TIMEOUT) => Silent,
            _ => Present,
        }
    }

    /// Computes the state of each peer. While settled, also computes the last own entry that every
    /// present or silent peer has read.
    fn update_member_states(&mut self) {
        let member_states = self
            .members
            .iter()
            .map(|member| (member.id.clone(), self.member_state(member)))
            .collect();
        self.peers_changed |= ended_members(&self.member_states) != ended_members(&member_states);
        self.member_states = member_states;
        let Some(settled) = &self.settled else { return };
        while let Some((number, position)) = self.unconfirmed_entries.front().copied() {
            let have_read = self.members.have_read(position, settled, |id| {
                matches!(self.member_states.get(id), Some(Present | Silent))
            });
            if position > self.read_position || !have_read {
                break;
            }
            self.confirmed_entry = Some(number);
            self.unconfirmed_entries.pop_front();
        }
    }

    /// The number of the last own entry that every peer has read. What each of them served before
    /// that entry was written is known here. `None` if no crawler may be accused because of the
    /// store or the clock.
    pub fn last_confirmed_entry(&self, now: ExchangeTime) -> Option<u64> {
        let may_accuse = matches!(
            self.no_accusation_reason(now),
            None | Some(NoAccusationReason::MemberSilent)
        );
        self.confirmed_entry.filter(|_| may_accuse)
    }

    /// Why no crawler may be accused. The first of: this instance waits for peers in a new store;
    /// the store did not answer for 5 seconds, or this instance is not settled in it; the clock; a
    /// peer that is not settled in this store; a silent peer. `None` if crawlers may be accused.
    pub fn no_accusation_reason(&self, now: ExchangeTime) -> Option<NoAccusationReason> {
        use NoAccusationReason::*;

        let is_fresh = self
            .last_contact
            .is_some_and(|last| now.monotonic.saturating_sub(last) <= CONFIRM_TIMEOUT);
        if self.waiting_for_peers.is_some() && self.away.is_none() {
            return Some(StartingOver);
        }
        let Some(settled) = self.settled.as_ref().filter(|_| is_fresh) else {
            return Some(StoreAway);
        };
        if u128::from(self.clocks.ahead.unsigned_abs()) > MAX_CLOCK_OFFSET.as_millis() {
            return Some(Clock);
        }
        let mut is_silent = false;
        for member in self.members.iter().filter(|member| !self.has_ended(member)) {
            if member.settled.as_ref() != Some(settled) {
                return Some(StartingOver);
            }
            is_silent |= self.member_state(member) == Silent;
        }
        is_silent.then_some(MemberSilent)
    }

    /// Computes what peers publish and published, with the files that are known. `None` if nothing
    /// changed since the last call and that was less than half an hour ago.
    pub fn take_peer_publications(&mut self, now: ExchangeTime) -> Option<PeerPublicationLogs> {
        let is_due = self
            .computed_at
            .is_some_and(|last| now.monotonic.saturating_sub(last) >= COMPUTE_INTERVAL);
        let goes_on = is_due && self.members.iter().next().is_some();
        if !std::mem::take(&mut self.peers_changed) && !goes_on {
            return None;
        }
        self.computed_at = Some(now.monotonic);
        let continued = self.members.continued_runs(self.before.run.as_deref());
        let logs = self
            .members
            .publication_logs(&self.facts, &continued, self.clocks, |member| {
                self.member_state(member)
            });
        let versions: BTreeSet<RobotsVersionId> = logs
            .iter()
            .flat_map(|log: &PublicationLog| log.versions_since(Timestamp(i64::MIN)))
            .collect();
        let files = versions
            .into_iter()
            .filter_map(|version| Some((version, self.log.files.get(&version)?.clone())))
            .collect();
        Some(PeerPublicationLogs { logs, files })
    }

    /// Since when `/robots.txt` is answered with 503, because the store was not reached for a day,
    /// or never in this run. `None` while it is answered.
    fn withholds_robots_txt_since(&self, now: ExchangeTime) -> Option<Timestamp> {
        let until = Timestamp(self.progress.robots_txt_until.load(SeqCst));
        if until > now.to_timestamp() {
            return None;
        }
        if self.has_joined {
            Some(until)
        } else {
            self.started_at
        }
    }

    /// The status of the exchange, with this instance as the first member. While the store is away,
    /// peers keep their state of the last contact. The thread adds the fields that it knows.
    pub fn status(&self, now: ExchangeTime) -> ExchangeStatus {
        // While the store is away, peers keep their state, and their lag grows.
        let own_lag = self
            .last_contact
            .map_or(0.0, |last| now.monotonic.saturating_sub(last).as_secs_f64());
        let (known_until, silence) = if self.away.is_some() {
            (self.last_contact_at, own_lag)
        } else {
            (self.clocks.now(), 0.0)
        };
        let mut members = vec![MemberStatus {
            member: self.own_member(self.reported_position, self.settled.clone()),
            standing: Present,
            lag: own_lag,
            same_policies: true,
            same_crawlers: true,
        }];
        members.extend(self.members.iter().map(|member| MemberStatus {
            standing: self.member_state_at(member, known_until),
            lag: known_until.saturating_sub(member.reported).max(0) as f64 + silence,
            same_policies: member.policies == self.own.policies,
            same_crawlers: member.crawlers == self.own.crawlers,
            member: member.clone(),
        }));
        ExchangeStatus {
            id: self.own.id.clone(),
            members,
            away: self.away.clone(),
            withholds_robots_txt_since: self.withholds_robots_txt_since(now),
            clock_ahead_ms: self.measured_clock.map(|_| self.clocks.ahead),
            accuses_not: self.no_accusation_reason(now),
            facts_waiting: self.outgoing.len() + self.outbox.count(),
            totals: self.totals,
            ..ExchangeStatus::default()
        }
    }
}

/// The ids of peers that have left or are gone.
fn ended_members(member_states: &BTreeMap<String, MemberState>) -> BTreeSet<&String> {
    let mut over: BTreeSet<&String> = member_states.keys().collect();
    over.retain(|id| matches!(member_states[*id], Left | Gone));
    over
}
