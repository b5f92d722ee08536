//! [`Exchange`]: one instance among several. Each [`Exchange::turn`] reads what others told and tells what is new. Knows no
//! thread and no clock; [`Memory`] is what the instance knows of crawlers.
//!
//! States: *outside* until it is settled in a store, that is until everything it knows is written there; *settled* from then
//! on. Another store, or one that lost facts, moves it back to *outside*, and the next turn settles it again.

use super::fact::{Fact, Merged};
use super::member::{Member, Standing};
use super::members::Members;
use super::outbox::{Outbox, Waiting};
use super::own_log::OwnLog;
use super::position::{Identity, Position};
use super::records::{self, Clocks, ServedVersion};
use super::store::{Batch, Entry, Sets, Store, StoreError};
use super::{
    Away, CLOCK_ACCUSES_NOT, CLOCK_EVERY, CONFIRM_WITHIN, ExchangeStatus, GONE_AFTER, HEARTBEAT, Hindrance, KEPT,
    SCHEMA, Totals,
};
use crate::history::PublicationLog;
use crate::policy::Version;
use crate::state::Observation;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Facts of one entry.
const FACTS_EACH: usize = 2_000;
/// Facts that wait while the store is away. With more, everything is written again once it is back.
const MOST_WAITING: usize = 262_144;
/// How often histories are computed anew though nothing changed: what others have in force goes on.
const COMPUTE_EVERY: Duration = Duration::from_secs(1_800);
/// How often what is over is deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

/// What an instance knows of crawlers, for the exchange.
pub trait Memory {
    /// Everything that was served, with the last time, and every host that is observed.
    fn everything(&self) -> (Vec<(ServedVersion, Timestamp)>, Vec<Observation>);
    /// Another instance served this.
    fn served_elsewhere(&mut self, served: ServedVersion, at: Timestamp);
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
    /// Files that were not known before.
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
    members: Members,
    standings: BTreeMap<String, Standing>,
    wanted: BTreeSet<String>,
    files: Vec<(Version, Arc<[u8]>)>,
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
            members: Members::default(),
            standings: BTreeMap::new(),
            wanted: BTreeSet::new(),
            files: Vec::new(),
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
            last_write: None,
            pruned: None,
            written: VecDeque::new(),
            confirmed: None,
            away: None,
            totals: Totals::default(),
        }
    }

    /// Reads what others told and tells what is new. `asks`: somebody waits to hear that others know what happened until now.
    pub fn turn(&mut self, store: &mut dyn Store, clock: &dyn Fn() -> Now, memory: &mut dyn Memory, asks: bool) {
        self.heard = self.read;
        self.asks = asks;
        let result = self.try_turn(store, clock, memory);
        self.note(result, clock());
        self.stand();
    }

    fn note(&mut self, result: Result<(), StoreError>, now: Now) {
        match result {
            Ok(()) => self.away = None,
            Err(error) => {
                // The next turn asks which store it is.
                self.totals.failures += 1;
                let since = self.away.as_ref().map_or(now.second(), |away| away.since);
                self.away = Some(Away { since, error: error.to_string() });
            }
        }
    }

    fn try_turn(
        &mut self,
        store: &mut dyn Store,
        clock: &dyn Fn() -> Now,
        memory: &mut dyn Memory,
    ) -> Result<(), StoreError> {
        let asked = clock().lived;
        let is_due = self.measured.is_none_or(|(_, at)| asked.saturating_sub(at) >= CLOCK_EVERY);
        if is_due || self.away.is_some() || self.settled.is_none() {
            let (identity, time) = store.identity(&self.founding)?;
            let now = clock();
            // The store read its clock about half way: an answer that was late does not make a clock wrong.
            self.measured = Some((time.milliseconds, asked + now.lived.saturating_sub(asked) / 2));
            self.look_at_clocks(now);
            if self.settled.as_ref() != Some(&identity) || self.must_write_all {
                self.settle(store, identity, now, memory)?;
            }
        }
        let now = clock();
        self.look_at_clocks(now);
        if !self.follow(store, memory)? {
            self.settled = None;
            return Err(StoreError::Away("the store is another one, or has lost facts".to_owned()));
        }
        if self.is_due(now) {
            self.write(store, now)?;
        }
        self.fetch_files(store)
    }

    fn look_at_clocks(&mut self, now: Now) {
        let Some((store, at)) = self.measured else { return };
        let passed = i64::try_from(now.lived.saturating_sub(at).as_millis()).unwrap_or(i64::MAX);
        let store = store.saturating_add(passed);
        let clocks = Clocks { store, ahead: now.milliseconds.saturating_sub(store) };
        self.others_changed |= clocks.ahead.abs_diff(self.clocks.ahead) > 1_000;
        self.clocks = if clocks.ahead.abs_diff(self.clocks.ahead) > 500 {
            clocks
        } else {
            // Moments that were told with the difference of before stay comparable.
            Clocks { ahead: self.clocks.ahead, ..clocks }
        };
    }

    /// Writes everything that is known into a store, and reads what is there. From then on this instance is a member.
    fn settle(
        &mut self,
        store: &mut dyn Store,
        identity: Identity,
        now: Now,
        memory: &mut dyn Memory,
    ) -> Result<(), StoreError> {
        let is_known = self.before.identity.as_ref() == Some(&identity);
        if !self.has_joined {
            if !is_known && self.before.has_observed {
                memory.begin_anew();
            }
            self.joined = self.clocks.now();
            self.log.was_unreported(self.before.unreported_since, now.second());
        }
        let is_light = !self.has_joined && is_known && self.before.has_left;
        self.totals.started_over += u64::from(self.has_joined);
        self.settled = None;
        // Places in the log of another store mean nothing in this one.
        (self.read, self.heard, self.told_heard) = Default::default();
        self.written.clear();
        self.confirmed = None;
        self.gauge.next_entry.fetch_add(1, Ordering::SeqCst);
        let waiting = self.outbox.take();
        self.gather(waiting);
        let own = self.log.all(self.clocks);
        let mut rest = self.log.all_files(self.clocks.now());
        if !is_light {
            rest.extend(self.facts.iter());
            let (served, observed) = memory.everything();
            rest.extend(served.iter().map(|(served, at)| records::served(served, self.at(*at))));
            let (id, clocks) = (&self.me.id, self.clocks);
            rest.extend(observed.iter().map(|host| records::observation(id, host, clocks.now(), clocks)));
        }
        for facts in rest.chunks(FACTS_EACH) {
            self.write_part(store, &identity, Batch { if_missing: facts.to_vec(), ..Batch::default() })?;
        }
        let others: Vec<Member> = self.members.all().cloned().collect();
        self.write_part(store, &identity, Batch { members_if_missing: others, ..Batch::default() })?;
        let mut position = Position::default();
        for (place, facts) in own.chunks(FACTS_EACH).chain([&[][..]]).enumerate() {
            let is_last = place == own.len().div_ceil(FACTS_EACH);
            let member = self.member(self.told_heard, is_last.then(|| identity.clone()));
            let entry = Entry { member, facts: facts.to_vec(), sets: is_last && !is_light, asks: is_last };
            let batch = Batch { facts: facts.to_vec(), entry: Some(entry), ..Batch::default() };
            position = self.write_part(store, &identity, batch)?;
        }
        (self.settled, self.has_joined, self.must_write_all) = (Some(identity), true, false);
        self.read = position;
        self.touch(now);
        let sets = store.read_sets()?;
        self.take_sets(sets, memory);
        Ok(())
    }

    fn write_part(&mut self, store: &mut dyn Store, identity: &Identity, batch: Batch) -> Result<Position, StoreError> {
        let written = store.write(identity, &batch)?;
        if written.identity != *identity || written.position.is_none() != batch.entry.is_none() {
            return Err(StoreError::Away("the store changed while it was written".to_owned()));
        }
        self.totals.facts_written += (batch.facts.len() + batch.if_missing.len()) as u64;
        Ok(written.position.unwrap_or_default())
    }

    /// Reads the log; says whether it is that of the store that this instance is settled in.
    fn follow(&mut self, store: &mut dyn Store, memory: &mut dyn Memory) -> Result<bool, StoreError> {
        loop {
            let read = store.read(self.read)?;
            if Some(&read.identity) != self.settled.as_ref() || read.last < self.read {
                return Ok(false);
            }
            let Some(entries) = read.entries else {
                // What is in the sets now is at least as new as what was missed; the log goes on from its end.
                let sets = store.read_sets()?;
                self.take_sets(sets, memory);
                self.read = read.last;
                return Ok(true);
            };
            let is_end = entries.len() < 1_000;
            let mut reads_sets = false;
            for (position, entry) in entries {
                reads_sets |= entry.sets && entry.member.run != self.me.run;
                self.take_entry(position, entry, memory);
            }
            if reads_sets {
                let sets = store.read_sets()?;
                self.take_sets(sets, memory);
            }
            if is_end {
                return Ok(true);
            }
        }
    }

    fn take_entry(&mut self, position: Position, entry: Entry, memory: &mut dyn Memory) {
        self.read = position;
        if entry.member.run == self.me.run {
            return;
        }
        self.must_answer |= entry.asks;
        self.others_changed |= self.members.heard_of(entry.member, position);
        entry.facts.into_iter().for_each(|fact| self.take(fact, memory));
    }

    fn take_sets(&mut self, sets: Sets, memory: &mut dyn Memory) {
        let (id, run) = (self.me.id.clone(), self.me.run.clone());
        let others = sets.members.into_iter().filter(|member| member.id != id && member.run != run);
        for member in others {
            self.others_changed |= self.members.heard_of(member, Position::default());
        }
        self.others_changed = true;
        // A host is known with its site first, and then by what was served there.
        let (observed, rest): (Vec<Fact>, Vec<Fact>) =
            sets.facts.into_iter().partition(|fact| fact.key.starts_with("o\n"));
        observed.into_iter().chain(rest).for_each(|fact| self.take(fact, memory));
    }

    fn take(&mut self, fact: Fact, memory: &mut dyn Memory) {
        self.totals.facts_read += 1;
        if let Some(served) = records::served_of(&fact.key) {
            return memory.served_elsewhere(served, self.clocks.to_own(fact.at));
        }
        if let Some(observed) = records::observation_of(&fact.key, &fact.value, self.clocks) {
            let is_of = |known: &&Member| fact.key.ends_with(&known.id);
            // An instance that is gone may have missed what came after it.
            let is_there = self.members.all().find(is_of).is_some_and(|member| !self.is_over(member));
            if is_there {
                memory.observed_elsewhere(observed);
            }
            return;
        }
        if records::gone_of(&fact.key).is_some() {
            self.others_changed |= self.facts.add(fact);
            return;
        }
        let Some((run, read)) = records::of_log(&fact.key, &fact.value, self.clocks) else { return };
        if run == self.me.run {
            return;
        }
        if let records::OfLog::Publication(publication) = read
            && let crate::history::Published::Version(version) = publication.published
            && !self.log.has_file(version)
        {
            self.wanted.insert(records::file_key(version));
        }
        self.others_changed |= self.facts.add(fact);
    }

    fn is_over(&self, member: &Member) -> bool {
        matches!(self.standing(member), Standing::Left | Standing::Gone)
    }

    fn fetch_files(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.wanted.iter().take(64).cloned().collect();
        for fact in store.fetch(&keys)? {
            if let Some((version, bytes)) = records::file_of(&fact) {
                self.wanted.remove(&fact.key);
                self.log.learn(version, bytes.clone());
                self.files.push((version, bytes));
                self.others_changed = true;
            }
        }
        Ok(())
    }

    fn is_due(&self, now: Now) -> bool {
        let is_heartbeat = self.last_write.is_none_or(|last| now.lived.saturating_sub(last) >= HEARTBEAT);
        is_heartbeat
            || self.asks
            || self.must_answer
            || !self.outgoing.is_empty()
            || !self.outbox.is_empty()
            || self.log.has_news()
    }

    fn at(&self, own: Timestamp) -> i64 {
        self.clocks.to_store(own).min(self.clocks.now())
    }

    fn gather(&mut self, waiting: Waiting) {
        // It was served since the last turn that told it, whatever a clock says that was set meanwhile.
        for (served, at) in &waiting.served {
            let at = self.at(*at).max(self.reported.saturating_sub(2));
            self.outgoing.add(records::served(served, at));
        }
        for observed in waiting.observed.values() {
            let (id, clocks) = (&self.me.id, self.clocks);
            self.outgoing.add(records::observation(id, observed, clocks.now(), clocks));
        }
        if waiting.has_lost {
            let now = self.clocks.to_own(self.clocks.now());
            self.log.was_unreported(Some(Timestamp(now.0.saturating_sub(60))), now);
        }
        if self.outgoing.len() > MOST_WAITING {
            self.outgoing = Merged::default();
            self.must_write_all = true;
        }
    }

    fn write(&mut self, store: &mut dyn Store, now: Now) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else { return Ok(()) };
        let number = self.gauge.next_entry.fetch_add(1, Ordering::SeqCst);
        let waiting = self.outbox.take();
        self.gather(waiting);
        let changes = self.log.changes(self.clocks);
        changes.facts.into_iter().for_each(|fact| {
            self.outgoing.add(fact);
        });
        let facts = self.outgoing.take(FACTS_EACH);
        let is_all = self.outgoing.is_empty();
        let (heard, reported) = match is_all {
            true => (self.heard, self.clocks.now()),
            false => (self.told_heard, self.reported),
        };
        let before = std::mem::replace(&mut self.reported, reported);
        let entry = Entry {
            member: self.member(heard, Some(identity.clone())),
            facts: facts.clone(),
            sets: false,
            asks: self.asks,
        };
        let mut batch = Batch { facts, forget: changes.forget, entry: Some(entry), ..Batch::default() };
        self.prune(&mut batch, now);
        match self.write_part(store, &identity, batch.clone()) {
            Ok(position) => {
                self.told_heard = heard;
                self.written.push_back((number, position));
                self.written.truncate(4_096);
                self.must_answer = false;
                self.touch(now);
                Ok(())
            }
            Err(error) => {
                self.reported = before;
                batch.facts.into_iter().for_each(|fact| {
                    self.outgoing.add(fact);
                });
                Err(error)
            }
        }
    }

    fn touch(&mut self, now: Now) {
        (self.last_contact, self.last_write) = (Some(now.lived), Some(now.lived));
        let silent = i64::try_from(super::SILENT_AFTER.as_secs()).unwrap_or(i64::MAX);
        self.gauge.speaks_until.store(now.second().0.saturating_add(silent), Ordering::SeqCst);
    }

    /// Deletes what is over, once an hour.
    fn prune(&mut self, batch: &mut Batch, now: Now) {
        if self.pruned.is_some_and(|last| now.lived.saturating_sub(last) < PRUNE_EVERY) {
            return;
        }
        self.pruned = Some(now.lived);
        let kept = i64::try_from(KEPT.as_secs()).unwrap_or(i64::MAX);
        let before = self.clocks.now().saturating_sub(kept);
        batch.served_before = Some(before);
        let (facts, over) = (&mut self.facts, self.members.over(before));
        let continued = self.members.continued(self.before.run.as_deref());
        facts.retain(|key, _, _| {
            let run = key.split('\n').nth(1).unwrap_or_default();
            let goes = continued.contains(run) || over.iter().any(|id| run.starts_with(id.as_str()));
            if goes {
                batch.forget.push(key.to_owned());
            }
            !goes
        });
        self.members.forget(&over);
        batch.forget_members = over;
    }

    fn member(&self, heard: Position, settled: Option<Identity>) -> Member {
        Member {
            id: self.me.id.clone(),
            run: self.me.run.clone(),
            continues: self.before.run.clone(),
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.me.host.clone(),
            joined: self.joined,
            reported: self.reported,
            heard,
            settled,
            policies: self.policies.clone(),
            crawlers: self.me.crawlers.clone(),
            clock_ahead_ms: self.clocks.ahead,
            has_left: false,
        }
    }

    /// Tells others what is about to come into force. Only when this succeeded may it be served.
    ///
    /// # Errors
    /// The store has not taken it: the text says why.
    pub fn announce(
        &mut self,
        store: &mut dyn Store,
        now: Now,
        log: &PublicationLog,
        files: &[(Version, Arc<[u8]>)],
    ) -> Result<(), String> {
        let Some(identity) = self.settled.clone() else {
            let why = self.away.as_ref().map_or("it was not reached yet", |away| &away.error);
            return Err(format!("the store of the exchange does not answer: {why}"));
        };
        self.look_at_clocks(now);
        let new_files = self.log.new_files(files, self.clocks.now());
        let facts = self.log.openings(log, self.clocks);
        self.log.try_to_tell(&facts);
        if facts.is_empty() && new_files.is_empty() {
            return Ok(());
        }
        self.gauge.next_entry.fetch_add(1, Ordering::SeqCst);
        let member = self.member(self.told_heard, Some(identity.clone()));
        let entry = Entry { member, facts: facts.clone(), sets: false, asks: false };
        let batch = Batch { facts: facts.clone(), if_missing: new_files, entry: Some(entry), ..Batch::default() };
        match self.write_part(store, &identity, batch) {
            Ok(position) if position > self.read => {
                self.log.were_told(facts, log, files);
                self.touch(now);
                Ok(())
            }
            Ok(_) => {
                self.settled = None;
                Err("the store of the exchange is another one than before".to_owned())
            }
            Err(error) => {
                self.note(Err(error.clone()), now);
                Err(error.to_string())
            }
        }
    }

    /// What is in force now: others are told what ended by it.
    pub fn published(&mut self, log: &PublicationLog) {
        self.log.is(log);
    }

    /// A digest of the policies in force.
    pub fn set_policies(&mut self, digest: String) {
        self.policies = digest;
    }

    /// Tells everything and leaves. Nothing may be served any more.
    ///
    /// # Errors
    /// The store has not taken it.
    pub fn leave(&mut self, store: &mut dyn Store, now: Now) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            return Err(StoreError::Away("this instance is no member".to_owned()));
        };
        self.look_at_clocks(now);
        self.write(store, now)?;
        while !self.outgoing.is_empty() {
            self.write(store, now)?;
        }
        let member = Member { has_left: true, ..self.member(self.heard, Some(identity.clone())) };
        let entry = Entry { member, facts: Vec::new(), sets: false, asks: false };
        self.write_part(store, &identity, Batch { entry: Some(entry), ..Batch::default() })?;
        self.gauge.speaks_until.store(i64::MIN, Ordering::SeqCst);
        self.settled = None;
        Ok(())
    }

    /// An operator says that an instance is gone for good.
    ///
    /// # Errors
    /// No other instance has this id.
    pub fn forget(&mut self, id: &str) -> Result<(), String> {
        if !self.members.all().any(|member| member.id == id) {
            return Err(format!("no other instance has the id `{id}`; `crawlgate instances` lists them"));
        }
        let gone = records::gone(id, self.clocks.now());
        self.others_changed |= self.facts.add(gone.clone());
        self.outgoing.add(gone);
        Ok(())
    }

    fn standing(&self, member: &Member) -> Standing {
        let (now, gone_after) = (self.clocks.now(), i64::try_from(GONE_AFTER.as_secs()).unwrap_or(i64::MAX));
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

    /// What other instances publish and published, if that changed since it was last asked for or was asked for long ago: the
    /// log of each run, and the files that are new.
    pub fn others(&mut self, now: Now) -> Option<OfOthers> {
        let is_due = self.computed.is_some_and(|last| now.lived.saturating_sub(last) >= COMPUTE_EVERY);
        let goes_on = is_due && self.members.all().next().is_some();
        if !std::mem::take(&mut self.others_changed) && !goes_on {
            return None;
        }
        self.computed = Some(now.lived);
        let continued = self.members.continued(self.before.run.as_deref());
        let logs = self.members.logs(&self.facts, &continued, self.clocks, |member| self.standing(member));
        Some(OfOthers { logs, files: std::mem::take(&mut self.files) })
    }

    /// The store that this instance is settled in.
    pub fn settled(&self) -> Option<&Identity> {
        self.settled.as_ref()
    }

    /// How the exchange stands.
    pub fn status(&self, now: Now) -> ExchangeStatus {
        // While the store is away nothing is heard of the others, and time goes on.
        let silence = self.last_contact.filter(|_| self.away.is_some()).map(|last| now.lived.saturating_sub(last));
        let silence = silence.map_or(0.0, |silence| silence.as_secs_f64());
        let mut members = vec![super::MemberStatus {
            member: self.member(self.told_heard, self.settled.clone()),
            standing: if self.away.is_none() { Standing::Present } else { Standing::Silent },
            lag: self.last_contact.map_or(0.0, |last| now.lived.saturating_sub(last).as_secs_f64()),
            same_policies: true,
            same_crawlers: true,
        }];
        members.extend(self.members.all().map(|member| super::MemberStatus {
            standing: self.standing(member),
            lag: self.clocks.now().saturating_sub(member.reported).max(0) as f64 + silence,
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
