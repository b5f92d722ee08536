//! [`Exchange`]: one instance among several, and how the others stand. Each [`Exchange::turn`] (`turn`) reads what others
//! told (`listen`) and tells what is new (`tell`). Knows no thread and no clock; [`Memory`] is what the instance knows of
//! crawlers.
//!
//! States: *outside* until it is settled in a store, that is until everything it knows is written there; *settled* from then
//! on. Another store, or one that lost facts, moves it back to *outside*, and the next turn settles it again.

mod listen;
mod tell;
mod turn;

use super::event::Event;
use super::fact::Merged;
use super::member::{Member, Standing};
use super::members::Members;
use super::orders::Orders;
use super::outbox::Outbox;
use super::own_log::OwnLog;
use super::position::{Identity, Position};
use super::records::{self, Clocks};
use super::{Away, CLOCK_ACCUSES_NOT, CONFIRM_WITHIN, ExchangeStatus, GONE_AFTER, Hindrance, Totals};
use crate::history::PublicationLog;
use crate::policy::Version;
use crate::state::Observation;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

/// How often histories are computed anew though nothing changed: what others have in force goes on.
const COMPUTE_EVERY: Duration = Duration::from_secs(1_800);

/// What an instance knows of crawlers, for the exchange.
pub trait Memory {
    /// Everything that happened and is still remembered, with the last time, and every host that is observed.
    fn everything(&self) -> (Vec<(Event, Timestamp)>, Vec<Observation>);
    /// Something happened at another instance. Of the pauses of a site it is the latest word.
    fn heard(&mut self, event: Event, at: Timestamp);
    /// Another instance observes a host.
    fn observed_elsewhere(&mut self, observed: Observation);
    /// What was served lately is not known.
    fn begin_anew(&mut self);
}

/// A moment by the own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// What other instances publish and published.
#[derive(Debug, Default)]
pub struct OfOthers {
    /// The log of each run.
    pub logs: Vec<PublicationLog>,
    /// The bytes of all versions in them, as far as they are known: whoever judges by these logs may have forgotten them.
    pub files: Vec<(Version, Arc<[u8]>)>,
}

/// Who this instance is.
#[derive(Clone, Debug)]
pub struct Me {
    /// See [`Member::id`].
    pub id: String,
    /// See [`Member::run`]: the id, a point, and a number of its own.
    pub run: String,
    /// See [`Member::host`].
    pub host: String,
    /// See [`Member::crawlers`].
    pub crawlers: String,
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

/// What requests read, without a lock.
#[derive(Debug, Default)]
pub struct Gauge {
    /// The number of the next entry: what happens before it is gathered is in it.
    pub next_entry: AtomicU64,
    /// Until when this instance may answer `/robots.txt`, in seconds by its own clock.
    pub speaks_until: AtomicI64,
}

/// One instance.
pub struct Exchange {
    me: Me,
    before: Before,
    outbox: Arc<Outbox>,
    gauge: Arc<Gauge>,
    log: OwnLog,
    policies: String,
    founding: String,
    /// The store that this instance is settled in.
    settled: Option<Identity>,
    has_joined: bool,
    joined: i64,
    outgoing: Merged,
    must_write_all: bool,
    /// Publications and tenures of others, and who is gone.
    facts: Merged,
    /// What operators said.
    orders: Orders,
    /// Sites on whose pauses another instance had the latest word.
    paused_elsewhere: BTreeSet<String>,
    /// Releases that were said here, until marks that came in meanwhile are released, too.
    released_here: Vec<(Event, i64)>,
    members: Members,
    standings: BTreeMap<String, Standing>,
    wanted: BTreeSet<String>,
    others_changed: bool,
    computed: Option<Duration>,
    read: Position,
    /// What was read when the last turn ended, and of that what was told.
    heard: Position,
    told_heard: Position,
    reported: i64,
    must_answer: bool,
    asks: bool,
    measured: Option<(i64, Duration)>,
    clocks: Clocks,
    last_contact: Option<Duration>,
    /// The same moment by the store's clock.
    last_contact_at: i64,
    last_write: Option<Duration>,
    pruned: Option<Duration>,
    /// Entries with their places, until every member has heard them.
    written: VecDeque<(u64, Position)>,
    confirmed: Option<u64>,
    away: Option<Away>,
    totals: Totals,
}

impl Exchange {
    /// An instance that is outside. `log` is what it publishes and published, `files` the bytes of that.
    pub fn new(
        me: Me,
        before: Before,
        (outbox, gauge): (Arc<Outbox>, Arc<Gauge>),
        log: PublicationLog,
        files: Vec<(Version, Arc<[u8]>)>,
    ) -> Exchange {
        let founding = me.run.clone();
        let log = OwnLog::new(me.run.clone(), log, files);
        Exchange {
            me,
            before,
            outbox,
            gauge,
            log,
            policies: String::new(),
            founding,
            settled: None,
            has_joined: false,
            joined: 0,
            outgoing: Merged::default(),
            must_write_all: false,
            facts: Merged::default(),
            orders: Orders::default(),
            paused_elsewhere: BTreeSet::new(),
            released_here: Vec::new(),
            members: Members::default(),
            standings: BTreeMap::new(),
            wanted: BTreeSet::new(),
            others_changed: false,
            computed: None,
            read: Position::default(),
            heard: Position::default(),
            told_heard: Position::default(),
            reported: 0,
            must_answer: false,
            asks: false,
            measured: None,
            clocks: Clocks::default(),
            last_contact: None,
            last_contact_at: 0,
            last_write: None,
            pruned: None,
            written: VecDeque::new(),
            confirmed: None,
            away: None,
            totals: Totals::default(),
        }
    }

    fn is_over(&self, member: &Member) -> bool {
        matches!(self.standing(member), Standing::Left | Standing::Gone)
    }

    fn standing(&self, member: &Member) -> Standing {
        self.standing_at(member, self.clocks.now())
    }

    fn standing_at(&self, member: &Member, now: i64) -> Standing {
        let gone_after = i64::try_from(GONE_AFTER.as_secs()).unwrap_or(i64::MAX);
        let key = records::gone(&member.id, 0).key;
        let forgotten = self.facts.starting_with(&key).next().filter(|(known, ..)| *known == key);
        let silent_after = i64::try_from(CONFIRM_WITHIN.as_secs()).unwrap_or(i64::MAX);
        match now.saturating_sub(member.reported) {
            _ if member.has_left => Standing::Left,
            _ if forgotten.is_some_and(|(_, at, _)| at >= member.reported) => Standing::Gone,
            silent if silent > gone_after => Standing::Gone,
            silent if silent > silent_after => Standing::Silent,
            _ => Standing::Present,
        }
    }

    /// How members stand now, and what they have all heard.
    fn stand(&mut self) {
        let standings = self.members.all().map(|member| (member.id.clone(), self.standing(member))).collect();
        let is_over = |standings: &BTreeMap<String, Standing>| -> Vec<String> {
            let over = standings.iter().filter(|(_, standing)| matches!(standing, Standing::Left | Standing::Gone));
            over.map(|(id, _)| id.clone()).collect()
        };
        self.others_changed |= is_over(&self.standings) != is_over(&standings);
        self.standings = standings;
        let Some(settled) = &self.settled else { return };
        while let Some((number, position)) = self.written.front().copied() {
            let is_there = |id: &String| matches!(self.standings.get(id), Some(Standing::Present | Standing::Silent));
            let have_heard = self.members.have_heard(position, settled, is_there);
            if position > self.read || !have_heard {
                break;
            }
            self.confirmed = Some(number);
            self.written.pop_front();
        }
    }

    /// The last entry that every member has heard: what each of them served before it was written is known here. `None`
    /// where no crawler is to be accused.
    pub fn confirmed(&self, now: Now) -> Option<u64> {
        let may_accuse =
            !matches!(self.hindrance(now), Some(Hindrance::StoreAway | Hindrance::StartingOver | Hindrance::Clock));
        self.confirmed.filter(|_| may_accuse)
    }

    /// Why no crawler is to be accused.
    pub fn hindrance(&self, now: Now) -> Option<Hindrance> {
        let is_fresh = self.last_contact.is_some_and(|last| now.lived.saturating_sub(last) <= CONFIRM_WITHIN);
        let Some(settled) = self.settled.as_ref().filter(|_| is_fresh) else { return Some(Hindrance::StoreAway) };
        let most = i64::try_from(CLOCK_ACCUSES_NOT.as_millis()).unwrap_or(i64::MAX);
        let there = self.members.all().filter(|member| !self.is_over(member));
        if self.clocks.ahead.abs() > most {
            return Some(Hindrance::Clock);
        }
        let mut is_silent = false;
        for member in there {
            if member.settled.as_ref() != Some(settled) {
                return Some(Hindrance::StartingOver);
            }
            is_silent |= self.standing(member) == Standing::Silent;
        }
        is_silent.then_some(Hindrance::MemberSilent)
    }

    /// What other instances publish and published, if that changed since it was last asked for or was asked for long ago.
    pub fn others(&mut self, now: Now) -> Option<OfOthers> {
        let is_due = self.computed.is_some_and(|last| now.lived.saturating_sub(last) >= COMPUTE_EVERY);
        let goes_on = is_due && self.members.all().next().is_some();
        if !std::mem::take(&mut self.others_changed) && !goes_on {
            return None;
        }
        self.computed = Some(now.lived);
        let continued = self.members.continued(self.before.run.as_deref());
        let logs = self.members.logs(&self.facts, &continued, self.clocks, |member| self.standing(member));
        let versions: BTreeSet<Version> =
            logs.iter().flat_map(|log: &PublicationLog| log.versions_since(Timestamp(i64::MIN))).collect();
        let files = versions.into_iter().filter_map(|version| self.log.file(version)).collect();
        Some(OfOthers { logs, files })
    }

    /// The store that this instance is settled in.
    pub fn settled(&self) -> Option<&Identity> {
        self.settled.as_ref()
    }

    /// How the exchange stands.
    pub fn status(&self, now: Now) -> ExchangeStatus {
        // While the store is away nothing is heard of the others: they stand as they did, and time goes on.
        let silence = self.last_contact.filter(|_| self.away.is_some()).map(|last| now.lived.saturating_sub(last));
        let silence = silence.map_or(0.0, |silence| silence.as_secs_f64());
        let heard_until = if self.away.is_some() { self.last_contact_at } else { self.clocks.now() };
        let mut members = vec![super::MemberStatus {
            member: self.member(self.told_heard, self.settled.clone()),
            standing: if self.away.is_none() { Standing::Present } else { Standing::Silent },
            lag: self.last_contact.map_or(0.0, |last| now.lived.saturating_sub(last).as_secs_f64()),
            same_policies: true,
            same_crawlers: true,
        }];
        members.extend(self.members.all().map(|member| super::MemberStatus {
            standing: self.standing_at(member, heard_until),
            lag: heard_until.saturating_sub(member.reported).max(0) as f64 + silence,
            same_policies: member.policies == self.policies,
            same_crawlers: member.crawlers == self.me.crawlers,
            member: member.clone(),
        }));
        ExchangeStatus {
            id: self.me.id.clone(),
            members,
            away: self.away.clone(),
            clock_ahead_ms: self.measured.map(|_| self.clocks.ahead),
            accuses_not: self.hindrance(now),
            announcement_waits_since: None,
            facts_waiting: self.outgoing.len() + self.outbox.len(),
            records_waiting: 0,
            totals: self.totals,
        }
    }
}
