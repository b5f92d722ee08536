//! [`Exchange::turn`], which runs several times a second: it checks that the shared store is still
//! the same, writes everything into a new store, reads the facts that other instances wrote, and
//! writes the new facts of this one.

use super::{Exchange, Memory, Now};
use crate::exchange::{
    Away, Batch, CLOCK_EVERY, Clocks, Entry, Identity, Position, SharedFact, Store, StoreError,
    codec, gone_key, own_log::file_key,
};
use crate::facts::{AnyFact, Fact, Observation};
use crate::policy::Version;
use std::time::Duration;

/// An instance that starts and finds another store than before waits so long for others to write
/// what they know again.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);
/// An instance that took no turn for so long slept: an instance that it does not know may have come
/// and gone meanwhile.
const SLEPT_AFTER: Duration = Duration::from_secs(60);

/// Whether what was served while an instance was down, or slept, is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    /// It is known, or nothing was served before.
    Kept,
    /// It is not known: observation begins anew.
    Lost,
    /// Other instances may yet write it.
    Undecided,
}

/// Facts of one entry.
pub(super) const FACTS_EACH: usize = 2_000;

impl Exchange {
    /// Takes one turn: reads what others told, and tells what is new. `clock` is read several
    /// times, because the store may take long. `asks`: records of violations wait here until others
    /// have told what happened until now, so others are to answer at once. If the turn fails, the
    /// instance is away, and the next turn tries again.
    pub fn turn(
        &mut self,
        store: &mut dyn Store,
        clock: &dyn Fn() -> Now,
        memory: &mut dyn Memory,
        asks: bool,
    ) {
        self.heard = self.read;
        self.asks = asks;
        let now = clock();
        self.begin(now);
        self.has_slept |= self
            .last_turn
            .is_some_and(|last| now.lived.saturating_sub(last) >= SLEPT_AFTER);
        let result = self.try_turn(store, clock, memory);
        let now = clock();
        self.last_turn = Some(now.lived);
        self.note(result, now);
        self.stand();
    }

    /// Records how a turn or an announcement ended: the store is there, or away with this error,
    /// since the first failure. If the store evicts facts, all are written again later.
    pub(super) fn note(&mut self, result: Result<(), StoreError>, now: Now) {
        match result {
            Ok(()) => self.away = None,
            Err(error) => {
                // The next turn asks which store it is.
                self.totals.failures += 1;
                self.must_write_all |= self.has_joined && matches!(error, StoreError::Evicts(_));
                self.away = Some(Away {
                    since: self.away.as_ref().map_or(now.second(), |away| away.since),
                    error: error.to_string(),
                    is_refused: !matches!(error, StoreError::Away(_)),
                });
            }
        }
    }

    /// The steps of a turn. Every 10 seconds, after a failure, and while outside it asks which
    /// store it is, and settles in a new one. Then it reads the log, writes what is due, and
    /// fetches files.
    ///
    /// # Errors
    /// The store failed, or is another one than before; then the instance is outside again.
    fn try_turn(
        &mut self,
        store: &mut dyn Store,
        clock: &dyn Fn() -> Now,
        memory: &mut dyn Memory,
    ) -> Result<(), StoreError> {
        let asked = clock().lived;
        let is_due = self
            .measured
            .is_none_or(|(_, at)| asked.saturating_sub(at) >= CLOCK_EVERY);
        if is_due || self.away.is_some() || self.settled.is_none() {
            let (identity, time) = store.identity(&self.founding)?;
            let now = clock();
            // The store read its clock about half way: an answer that was late does not make a
            // clock wrong.
            self.measured = Some((time, asked + now.lived.saturating_sub(asked) / 2));
            self.look_at_clocks(now);
            if self.settled.as_ref() != Some(&identity) || self.must_write_all {
                let continuity = self.continuity(store, &identity, now)?;
                if continuity == Continuity::Undecided {
                    return Ok(());
                }
                self.settle(store, identity, now, continuity, memory)?;
            }
        }
        let now = clock();
        self.look_at_clocks(now);
        if !self.follow(store, memory)? {
            self.settled = None;
            return Err(StoreError::Away(
                "the store is another one, or has lost facts".to_owned(),
            ));
        }
        self.has_slept = false;
        if self.is_due(now) {
            self.write(store, now)?;
        }
        self.hand_on_orders(memory);
        self.fetch_files(store)
    }

    /// Computes the store's present time and the difference to the own clock from the last
    /// measurement. A difference that changed by half a second or less stays, so that moments which
    /// were told before stay comparable. Does nothing before the first measurement.
    pub(super) fn look_at_clocks(&mut self, now: Now) {
        let Some((store, at)) = self.measured else {
            return;
        };
        let passed = i64::try_from(now.lived.saturating_sub(at).as_millis()).unwrap_or(i64::MAX);
        let store = store.saturating_add(passed);
        let clocks = Clocks {
            store,
            ahead: now.milliseconds.saturating_sub(store),
        };
        self.others_changed |= clocks.ahead.abs_diff(self.clocks.ahead) > 1_000;
        self.clocks = if clocks.ahead.abs_diff(self.clocks.ahead) > 500 {
            clocks
        } else {
            // Moments that were told with the difference of before stay comparable.
            Clocks {
                ahead: self.clocks.ahead,
                ..clocks
            }
        };
    }

    /// Whether it is known, in this store, what others served while this instance was down or
    /// slept. It is (`Kept`) if this run took its turns all the time, and at the start if the store
    /// is that of the run before. Another store has it if a member was there all that time: that
    /// member is settled in it, and joined before this instance's last report, which it wrote
    /// again. If none is there, this instance waits 5 seconds for one (`Undecided`), and then it is
    /// `Lost`. An instance that never settled in a store has lost it at once.
    fn continuity(
        &mut self,
        store: &mut dyn Store,
        identity: &Identity,
        now: Now,
    ) -> Result<Continuity, StoreError> {
        let known = self.before.identity.as_ref();
        let is_continued = if self.has_joined {
            !self.has_slept
        } else {
            known == Some(identity)
        };
        if is_continued {
            return Ok(Continuity::Kept);
        }
        if !self.has_joined && known.is_none() {
            return Ok(Continuity::Lost);
        }
        let members = store.read_members()?;
        let reported = members
            .iter()
            .find(|member| member.id == self.me.id)
            .map(|own| own.reported);
        // Whether an instance was there all that time.
        if members.iter().any(|member| {
            member.id != self.me.id
                && member.settled.as_ref() == Some(identity)
                && reported.is_some_and(|reported| member.joined <= reported)
        }) {
            return Ok(Continuity::Kept);
        }
        let since = match &self.undecided {
            Some((asked, since)) if asked == identity => *since,
            _ => now.lived,
        };
        self.undecided = Some((identity.clone(), since));
        let is_over = now.lived.saturating_sub(since) >= SETTLE_WITHIN;
        Ok(if is_over {
            Continuity::Lost
        } else {
            Continuity::Undecided
        })
    }

    /// Writes everything that is known into a store, and reads what is there. From then on this
    /// instance is a member. A run that starts after an orderly stop in the same store writes only
    /// its publications and files. With `Lost` observation begins anew (`Memory::begin`).
    fn settle(
        &mut self,
        store: &mut dyn Store,
        identity: Identity,
        now: Now,
        continuity: Continuity,
        memory: &mut dyn Memory,
    ) -> Result<(), StoreError> {
        let is_known = self.before.identity.as_ref() == Some(&identity);
        if continuity == Continuity::Lost {
            memory.begin(self.has_joined || self.before.has_observed);
        }
        if !self.has_joined {
            self.log
                .mark_unreported(self.before.unreported_since, now.second());
        }
        if !self.has_joined || continuity == Continuity::Lost {
            self.me.joined = self.clocks.now();
        }
        let is_light = !self.has_joined && is_known && self.before.has_left;
        self.totals.started_over += u64::from(self.has_joined);
        if self.has_joined || !is_known {
            self.moved = Some(self.clocks.now());
        }
        self.settled = None;
        // Places in the log of another store mean nothing in this one.
        self.read = Position::default();
        self.heard = Position::default();
        self.told_heard = Position::default();
        self.written.clear();
        self.confirmed = None;
        self.gather();
        let own = self.log.all(self.clocks);
        let files = self.log.all_files(self.clocks.now());
        self.write_parts(store, &identity, &files, |if_missing| Batch {
            if_missing,
            ..Batch::default()
        })?;
        if !is_light {
            let is_same = is_known && !self.has_joined;
            self.write_everything(store, &identity, is_same, memory)?;
        }
        let members_if_missing = self.members.all().cloned().collect();
        self.write_part(
            store,
            &identity,
            Batch {
                members_if_missing,
                ..Batch::default()
            },
        )?;
        let mut position = Position::default();
        // One more part, without facts: its entry says that this instance is settled.
        for (place, facts) in own.chunks(FACTS_EACH).chain([&[][..]]).enumerate() {
            let is_last = place == own.len().div_ceil(FACTS_EACH);
            let entry = Entry {
                member: self.member(self.told_heard, is_last.then(|| identity.clone())),
                facts: facts.to_vec(),
                sets: is_last && !is_light,
                asks: is_last,
            };
            let batch = Batch {
                facts: facts.to_vec(),
                entry: Some(entry),
                ..Batch::default()
            };
            position = self.write_part(store, &identity, batch)?;
        }
        self.mark_written(&own);
        self.settled = Some(identity);
        self.has_joined = true;
        self.must_write_all = false;
        self.undecided = None;
        self.has_slept = false;
        self.read = position;
        self.touch(now);
        self.take_sets(store, memory)
    }

    /// Writes what is known here of others, of operators and of crawlers, without replacing what is
    /// there. `is_same` says that the store is that of the run before; in another one the
    /// observations of this instance replace what is there.
    fn write_everything(
        &mut self,
        store: &mut dyn Store,
        identity: &Identity,
        is_same: bool,
        memory: &dyn Memory,
    ) -> Result<(), StoreError> {
        let mut all: Vec<SharedFact> = self.facts.iter().chain(self.orders.facts()).collect();
        let mut observed = Vec::new();
        for fact in memory.everything() {
            let shared = self.shared(&fact, self.at(fact.at));
            match fact.fact {
                AnyFact::Observation(_) => observed.extend(shared),
                _ => all.extend(shared),
            }
        }
        // What an older copy of a store says of this instance may be from before its observation
        // began anew.
        if is_same {
            all.extend(observed);
        } else {
            self.write_parts(store, identity, &observed, |facts| Batch {
                facts,
                ..Batch::default()
            })?;
        }
        self.write_parts(store, identity, &all, |if_missing| Batch {
            if_missing,
            ..Batch::default()
        })
    }

    /// Writes facts in parts of `FACTS_EACH`, each as the batch that `batch` makes of it.
    fn write_parts(
        &mut self,
        store: &mut dyn Store,
        identity: &Identity,
        facts: &[SharedFact],
        batch: impl Fn(Vec<SharedFact>) -> Batch,
    ) -> Result<(), StoreError> {
        facts.chunks(FACTS_EACH).try_for_each(|part| {
            self.write_part(store, identity, batch(part.to_vec()))
                .map(drop)
        })
    }

    /// Writes one batch. Returns the place of its entry in the log; the zero position for a batch
    /// without an entry.
    ///
    /// # Errors
    /// The store failed, or it is not the one with this identity.
    pub(super) fn write_part(
        &mut self,
        store: &mut dyn Store,
        identity: &Identity,
        batch: Batch,
    ) -> Result<Position, StoreError> {
        let written = store.write(identity, &batch)?;
        if written.identity != *identity || written.position.is_none() != batch.entry.is_none() {
            return Err(StoreError::Away(
                "the store changed while it was written".to_owned(),
            ));
        }
        self.totals.facts_written += (batch.facts.len() + batch.if_missing.len()) as u64;
        Ok(written.position.unwrap_or_default())
    }

    /// Reads the log from the last known place to its end, and the sets where entries were missed
    /// or another instance wrote into them. Returns false if the store is not the one that this
    /// instance is settled in, or its log ends before that place.
    fn follow(
        &mut self,
        store: &mut dyn Store,
        memory: &mut dyn Memory,
    ) -> Result<bool, StoreError> {
        loop {
            let read = store.read(self.read)?;
            if Some(&read.identity) != self.settled.as_ref() || read.last < self.read {
                return Ok(false);
            }
            let Some(entries) = read.entries else {
                // What is in the sets now is at least as new as what was missed; the log goes on
                // from its end.
                self.take_sets(store, memory)?;
                self.read = read.last;
                return Ok(true);
            };
            let is_end = entries
                .last()
                .is_none_or(|(position, _)| *position >= read.last);
            let mut reads_sets = false;
            for (position, entry) in entries {
                reads_sets |= entry.sets && entry.member.run != self.me.run;
                self.take_entry(position, entry, memory);
            }
            if reads_sets {
                self.take_sets(store, memory)?;
            }
            // The sets were not read in one step: what was written meanwhile is in the log.
            if is_end && !reads_sets {
                return Ok(true);
            }
        }
    }

    /// Takes in an entry of the log: the state of its member, its facts, and whether it asks for an
    /// answer. Of an own entry only the place counts.
    fn take_entry(&mut self, position: Position, entry: Entry, memory: &mut dyn Memory) {
        self.read = position;
        if entry.member.run == self.me.run {
            return;
        }
        self.must_answer |= entry.asks;
        self.others_changed |= self.members.heard_of(entry.member, position);
        entry
            .facts
            .into_iter()
            .for_each(|fact| self.take(fact, memory));
    }

    /// Reads all sets, and takes in all members and facts. Observations come first: a host has to
    /// be known with its site before what was served there.
    fn take_sets(
        &mut self,
        store: &mut dyn Store,
        memory: &mut dyn Memory,
    ) -> Result<(), StoreError> {
        let sets = store.read_sets()?;
        for member in sets.members {
            if member.id != self.me.id && member.run != self.me.run {
                self.members.heard_of(member, Position::default());
            }
        }
        self.others_changed = true;
        // A host is known with its site first, and then by what was served there.
        let (observed, rest): (Vec<SharedFact>, Vec<SharedFact>) = sets
            .facts
            .into_iter()
            .partition(|fact| codec::is_of::<Observation>(&fact.key));
        observed
            .into_iter()
            .chain(rest)
            .for_each(|fact| self.take(fact, memory));
        Ok(())
    }

    /// Takes in a fact: hands events and observations on to the memory, and keeps publications,
    /// tenures and who is gone. Facts of this run, and facts that cannot be read, are passed over.
    /// The file of a publication that is not known here is fetched later.
    fn take(&mut self, fact: SharedFact, memory: &mut dyn Memory) {
        self.totals.facts_read += 1;
        if let Some(event) = codec::read_event(&fact.key, self.clocks.nearest(fact.at)) {
            return self.take_event(event, fact, memory);
        }
        if fact.key.starts_with(&gone_key("")) {
            self.others_changed |= self.facts.add(fact);
            return;
        }
        let Some((writer, read)) = codec::read(&fact.key, &fact.value, self.clocks) else {
            return;
        };
        match read {
            AnyFact::Observation(_) => {
                let mut members = self.members.all();
                let by = members.find(|member| member.id == writer);
                // An instance that is gone may have missed what came after it, and one that is not
                // in this store what was lost.
                if by.is_some_and(|by| !self.is_over(by) && by.settled == self.settled) {
                    memory.apply(Fact::set(self.clocks.nearest(fact.at), read));
                }
            }
            AnyFact::Publication(_) | AnyFact::Tenure(_) if writer != self.me.run => {
                if let AnyFact::Publication(publication) = read
                    && let Some(version) = publication.published.version()
                    && !publication.span.is_empty()
                    && !self.log.has_file(version)
                {
                    self.wanted.insert(file_key(version));
                }
                self.others_changed |= self.facts.add(fact);
            }
            _ => {}
        }
    }

    /// Takes in an event of another instance. A mark that was released since is passed over. Pauses
    /// are only recorded: the end of the turn hands them on.
    fn take_event(&mut self, event: Fact, shared: SharedFact, memory: &mut dyn Memory) {
        let is_new = self.orders.add(&event, &shared);
        match &event.fact {
            AnyFact::Served(_) => memory.apply(Fact {
                at: self.clocks.to_own(shared.at),
                ..event
            }),
            AnyFact::Mark(mark) if self.orders.are_released(mark.address, shared.at) => {}
            AnyFact::Pause(_) => {
                if is_new {
                    self.paused_elsewhere.insert(event.key());
                }
            }
            _ => memory.apply(event),
        }
    }

    /// Hands the latest change of each site's pauses on to the memory. It does so at the end of a
    /// turn, because sets and log are in no order. Then hands on the releases that were made here,
    /// for marks that came in meanwhile.
    fn hand_on_orders(&mut self, memory: &mut dyn Memory) {
        let paused = std::mem::take(&mut self.paused_elsewhere);
        let released = std::mem::take(&mut self.released_here);
        for key in paused.iter().chain(&released) {
            let order = self.orders.latest(key, |at| self.clocks.nearest(at));
            order.into_iter().for_each(|order| memory.apply(order));
        }
    }

    /// Fetches up to 32 robots.txt files of other instances that are wanted. Those that the store
    /// does not have stay wanted.
    fn fetch_files(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.wanted.iter().take(32).cloned().collect();
        for fact in store.fetch(&keys)? {
            let read = codec::read(&fact.key, &fact.value, self.clocks);
            if let Some((_, AnyFact::Version(file))) = read
                && Version::of(&file.bytes) == file.id
            {
                self.wanted.remove(&fact.key);
                self.log.learn(file.id, file.bytes);
                self.others_changed = true;
            }
        }
        Ok(())
    }
}
