//! [`Exchange`]: the part of this instance that exchanges facts with other instances through a
//! shared store. Each [`Exchange::turn`] reads the facts that others wrote, and writes the new
//! facts of this instance (`tell.rs`). [`Memory`] is the interface to what the instance itself
//! knows of crawlers.
//!
//! States:
//! - *outside*: the store may lack something that this instance knows. A turn writes everything and
//!   moves the instance to *settled*. An instance that finds another store than the previous run,
//!   or than before it slept, first waits some seconds for others to settle there.
//! - *settled*: each turn writes only new facts. Another store, or one that lost facts, moves the
//!   instance back to *outside*.

mod tell;
mod turn;

use super::members::Members;
use super::orders::Orders;
use super::own_log::OwnLog;
use super::{
    Away, CLOCK_ACCUSES_NOT, CONFIRM_WITHIN, Clocks, ExchangeStatus, GONE_AFTER, Gauge, Hindrance,
    Identity, Member, MemberStatus, Merged, Outbox, Position, SCHEMA, Standing, Totals, gone_key,
    seconds,
};
use crate::facts::{Fact, Key};
use crate::policy::Version;
use crate::publications::{OfOthers, PublicationLog, VersionFile};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often histories are computed anew though nothing changed: what others have in force goes on.
const COMPUTE_EVERY: Duration = Duration::from_secs(1_800);

/// What an instance knows of crawlers, for the exchange.
pub trait Memory {
    /// Everything that happened and is still remembered, and every host that is observed.
    fn everything(&self) -> Vec<Fact>;
    /// Takes in a fact of another instance. Of a site's pauses, only the latest change is handed on.
    fn apply(&mut self, fact: Fact);
    /// Called when it is not known what others served until now: observation begins. `is_anew` says
    /// that something was observed before.
    fn begin(&mut self, is_anew: bool);
}

/// A moment by the own clock.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Milliseconds since 1970.
    pub milliseconds: i64,
    /// How much was lived through.
    pub lived: Duration,
}

impl Now {
    fn second(self) -> Timestamp {
        Timestamp(self.milliseconds.div_euclid(1_000))
    }
}

/// What the run before left.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Its id. `None` where nothing of it is known.
    pub run: Option<String>,
    /// The store that it was settled in.
    pub identity: Option<Identity>,
    /// Whether it told everything and left.
    pub has_left: bool,
    /// Whether it, or one before the exchange, served and observed anything.
    pub has_observed: bool,
    /// Since when what it served is not known here either.
    pub unreported_since: Option<Timestamp>,
}

/// One instance.
#[derive(Default)]
pub struct Exchange {
    /// This instance as a member, but for what each entry says anew.
    pub me: Member,
    before: Before,
    outbox: Arc<Outbox>,
    gauge: Arc<Gauge>,
    log: OwnLog,
    founding: String,
    /// The store that this instance is settled in.
    settled: Option<Identity>,
    /// When this run took its first turn.
    began: Option<Timestamp>,
    last_turn: Option<Duration>,
    /// Whether it took no turn for long before it last tried to reach the store.
    has_slept: bool,
    /// Whether this run was ever a member.
    pub has_joined: bool,
    /// When this run settled in a store that was another one than before, by the store's clock.
    moved: Option<i64>,
    /// A store that is another one than before, and since when this instance waits for others to
    /// settle in it.
    undecided: Option<(Identity, Duration)>,
    outgoing: Merged,
    must_write_all: bool,
    /// Publications and tenures of others, and who is gone.
    facts: Merged,
    /// What operators did.
    orders: Orders,
    /// Pauses of which another instance had the latest word.
    paused_elsewhere: BTreeSet<Key>,
    /// Releases that were made here, until marks that came in meanwhile are released, too.
    released_here: BTreeSet<Key>,
    members: Members,
    standings: BTreeMap<String, Standing>,
    wanted: BTreeSet<String>,
    others_changed: bool,
    computed: Option<Duration>,
    read: Position,
    /// What was read when the last turn ended, and of that what was told.
    heard: Position,
    told_heard: Position,
    must_answer: bool,
    asks: bool,
    measured: Option<(i64, Duration)>,
    clocks: Clocks,
    last_contact: Option<Duration>,
    /// The moment of the last contact, by the store's clock.
    last_contact_at: i64,
    last_write: Option<Duration>,
    pruned: Option<Duration>,
    /// Entries with their places, until every member has heard them.
    written: VecDeque<(u64, Position)>,
    confirmed: Option<u64>,
    away: Option<Away>,
    /// Counters since the start of the process. What became of records counts whoever has them.
    pub totals: Totals,
}

impl Exchange {
    /// An instance that is outside. `me` says its id, its run (the id, a point, and a number of its
    /// own), its host and its crawlers; the other fields are filled in. `before` is what the run
    /// before left. `log` is what it publishes and published, `files` the bytes of that.
    pub fn new(
        me: Member,
        before: Before,
        outbox: Arc<Outbox>,
        gauge: Arc<Gauge>,
        log: PublicationLog,
        files: Vec<VersionFile>,
    ) -> Exchange {
        Exchange {
            log: OwnLog::new(me.run.clone(), log, files),
            founding: me.run.clone(),
            me: Member {
                continues: before.run.clone(),
                schema: SCHEMA,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..me
            },
            before,
            outbox,
            gauge,
            ..Exchange::default()
        }
    }

    /// Records when this run began, unless that is recorded already. Called before the first turn.
    pub fn begin(&mut self, now: Now) {
        self.began.get_or_insert(now.second());
    }

    fn is_over(&self, member: &Member) -> bool {
        matches!(self.standing(member), Standing::Left | Standing::Gone)
    }

    /// The standing of a member now, by the store's clock.
    fn standing(&self, member: &Member) -> Standing {
        self.standing_at(member, self.clocks.now())
    }

    /// The standing of a member at a moment of the store's clock, in seconds: `Left` if it said so;
    /// `Gone` if an operator forgot it after its last report, or it was silent for 25 hours;
    /// `Silent` after 5 seconds. If this run moved to another store, a member that is not settled
    /// there counts as having reported until the move.
    fn standing_at(&self, member: &Member, now: i64) -> Standing {
        let key = gone_key(&member.id);
        let forgotten = self
            .facts
            .starting_with(&key)
            .next()
            .filter(|(known, ..)| *known == key);
        // What it reported meanwhile may be lost with the store, so that it may have served until
        // this instance came here.
        let reported = match self.moved {
            Some(moved) if member.settled != self.settled => member.reported.max(moved),
            _ => member.reported,
        };
        match now.saturating_sub(reported) {
            _ if member.has_left => Standing::Left,
            _ if forgotten.is_some_and(|(_, at, _)| at >= member.reported) => Standing::Gone,
            silent if silent > seconds(GONE_AFTER) => Standing::Gone,
            silent if silent > seconds(CONFIRM_WITHIN) => Standing::Silent,
            _ => Standing::Present,
        }
    }

    /// Computes the standing of each member, and then the last own entry that every member which is
    /// there (present or silent) has heard. Does the latter only while this instance is settled.
    fn stand(&mut self) {
        let standings = self
            .members
            .all()
            .map(|member| (member.id.clone(), self.standing(member)))
            .collect();
        self.others_changed |= over(&self.standings) != over(&standings);
        self.standings = standings;
        let Some(settled) = &self.settled else { return };
        while let Some((number, position)) = self.written.front().copied() {
            let have_heard = self.members.have_heard(position, settled, |id| {
                matches!(
                    self.standings.get(id),
                    Some(Standing::Present | Standing::Silent)
                )
            });
            if position > self.read || !have_heard {
                break;
            }
            self.confirmed = Some(number);
            self.written.pop_front();
        }
    }

    /// The number of the last own entry that every member has heard: what each of them served
    /// before that entry was written is known here. `None` where no crawler is to be accused
    /// because of the store or the clock.
    pub fn confirmed(&self, now: Now) -> Option<u64> {
        let may_accuse = !matches!(
            self.hindrance(now),
            Some(Hindrance::StoreAway | Hindrance::StartingOver | Hindrance::Clock)
        );
        self.confirmed.filter(|_| may_accuse)
    }

    /// Why no crawler is to be accused, the first of: this instance waits whether others settle in
    /// a new store; the store did not answer for 5 seconds, or this instance is not settled in it;
    /// the clock; a member that is not settled in this store; a silent member. `None` if crawlers
    /// may be accused.
    pub fn hindrance(&self, now: Now) -> Option<Hindrance> {
        let is_fresh = self
            .last_contact
            .is_some_and(|last| now.lived.saturating_sub(last) <= CONFIRM_WITHIN);
        if self.undecided.is_some() && self.away.is_none() {
            return Some(Hindrance::StartingOver);
        }
        let Some(settled) = self.settled.as_ref().filter(|_| is_fresh) else {
            return Some(Hindrance::StoreAway);
        };
        if u128::from(self.clocks.ahead.unsigned_abs()) > CLOCK_ACCUSES_NOT.as_millis() {
            return Some(Hindrance::Clock);
        }
        let mut is_silent = false;
        for member in self.members.all().filter(|member| !self.is_over(member)) {
            if member.settled.as_ref() != Some(settled) {
                return Some(Hindrance::StartingOver);
            }
            is_silent |= self.standing(member) == Standing::Silent;
        }
        is_silent.then_some(Hindrance::MemberSilent)
    }

    /// What other instances publish and published, with the files that are known. `None` if that
    /// did not change since it was last asked for. Half an hour later it is computed again in any
    /// case, if there are other members.
    pub fn others(&mut self, now: Now) -> Option<OfOthers> {
        let is_due = self
            .computed
            .is_some_and(|last| now.lived.saturating_sub(last) >= COMPUTE_EVERY);
        let goes_on = is_due && self.members.all().next().is_some();
        if !std::mem::take(&mut self.others_changed) && !goes_on {
            return None;
        }
        self.computed = Some(now.lived);
        let continued = self.members.continued(self.before.run.as_deref());
        let logs = self
            .members
            .logs(&self.facts, &continued, self.clocks, |member| {
                self.standing(member)
            });
        let versions: BTreeSet<Version> = logs
            .iter()
            .flat_map(|log: &PublicationLog| log.versions_since(Timestamp(i64::MIN)))
            .collect();
        let files = versions
            .into_iter()
            .filter_map(|version| self.log.file(version))
            .collect();
        Some(OfOthers { logs, files })
    }

    /// The store that this instance is settled in.
    pub fn settled(&self) -> Option<&Identity> {
        self.settled.as_ref()
    }

    /// Since when `/robots.txt` is answered with 503 because the store was not reached for a day,
    /// or was never reached in this run. `None` while it is answered.
    fn withholds_robots_txt_since(&self, now: Now) -> Option<Timestamp> {
        let until = Timestamp(self.gauge.speaks_until.load(Ordering::SeqCst));
        if until > now.second() {
            return None;
        }
        if self.has_joined {
            Some(until)
        } else {
            self.began
        }
    }

    /// The status of the exchange, with this instance as the first member. While the store is away,
    /// the others stand as at the last contact. What the thread adds to the status is not in it.
    pub fn status(&self, now: Now) -> ExchangeStatus {
        // While the store is away nothing is heard of the others: they stand as they did, and time
        // goes on.
        let silence = self
            .last_contact
            .filter(|_| self.away.is_some())
            .map(|last| now.lived.saturating_sub(last));
        let silence = silence.map_or(0.0, |silence| silence.as_secs_f64());
        let heard_until = if self.away.is_some() {
            self.last_contact_at
        } else {
            self.clocks.now()
        };
        let mut members = vec![MemberStatus {
            member: self.member(self.told_heard, self.settled.clone()),
            standing: Standing::Present,
            lag: self
                .last_contact
                .map_or(0.0, |last| now.lived.saturating_sub(last).as_secs_f64()),
            same_policies: true,
            same_crawlers: true,
        }];
        members.extend(self.members.all().map(|member| MemberStatus {
            standing: self.standing_at(member, heard_until),
            lag: heard_until.saturating_sub(member.reported).max(0) as f64 + silence,
            same_policies: member.policies == self.me.policies,
            same_crawlers: member.crawlers == self.me.crawlers,
            member: member.clone(),
        }));
        ExchangeStatus {
            id: self.me.id.clone(),
            members,
            away: self.away.clone(),
            withholds_robots_txt_since: self.withholds_robots_txt_since(now),
            clock_ahead_ms: self.measured.map(|_| self.clocks.ahead),
            accuses_not: self.hindrance(now),
            facts_waiting: self.outgoing.len() + self.outbox.len(),
            totals: self.totals,
            ..ExchangeStatus::default()
        }
    }
}

/// The members that have left or are gone.
fn over(standings: &BTreeMap<String, Standing>) -> BTreeSet<&String> {
    let mut over: BTreeSet<&String> = standings.keys().collect();
    over.retain(|id| matches!(standings[*id], Standing::Left | Standing::Gone));
    over
}
