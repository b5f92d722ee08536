//! [`Exchange::turn`]: one step in the exchange of facts (such as which crawler fetched which
//! robots.txt) between this crawlgate instance and the others. Turns run several times a second.
//! Each turn checks that the shared store is still the same, reads the new facts of the other
//! instances, and writes the new facts of this instance. If the store is a new one, the turn first
//! writes all facts of this instance.

use super::{Exchange, ExchangeTime, LocalFacts};
use crate::exchange::{
    CLOCK_INTERVAL, ExchangeStore, LogEntry, LogPosition, MAX_NAME, SharedFact, StoreBatch,
    StoreError, StoreIdentity, StoreOutage, codec, gone_key, own_publications::file_key,
};
use crate::facts::{AnyFact, Fact, HostObservation};
use crate::policy::RobotsVersionId;
use ObservationContinuity::{Kept, Lost, Undecided};
use std::time::Duration;

/// How long an instance that finds another store waits for peers to write their facts there.
const SETTLE_WITHIN: Duration = Duration::from_secs(5);
/// An instance that ran no turn for this long slept. Meanwhile an unknown instance may have come
/// and gone.
const SLEPT_AFTER: Duration = Duration::from_secs(60);

/// Whether it is known what peers served while this instance was down or slept.
#[derive(PartialEq, Eq)]
pub enum ObservationContinuity {
    /// It is known, or nothing was served before.
    Kept,
    /// It is unknown: observation begins anew.
    Lost,
    /// Peers may still write it.
    Undecided,
}

/// The most facts in one entry.
pub const MAX_ENTRY_FACTS: usize = 2_000;

impl Exchange {
    /// Runs one turn: reads the new facts of peers and writes the own ones. Reads `clock` several
    /// times, because the store may take long. `asks` says that records of violations wait here for
    /// reports of peers, which then write at once. A failure is recorded as an outage, and the next
    /// turn tries again.
    pub fn turn(
        &mut self,
        store: &mut dyn ExchangeStore,
        clock: &dyn Fn() -> ExchangeTime,
        local: &mut dyn LocalFacts,
        asks: bool,
    ) {
        self.turn_position = self.read_position;
        self.asks_peers = asks;
        let now = clock();
        self.record_start(now);
        self.has_slept |= self
            .last_turn
            .is_some_and(|last| now.monotonic.saturating_sub(last) >= SLEPT_AFTER);
        let result = self.try_turn(store, clock, local);
        let now = clock();
        self.last_turn = Some(now.monotonic);
        self.record_result(result, now);
        self.update_member_states();
    }

    /// Records the result of a turn or an announcement: a failure begins or continues an outage. If
    /// the store evicts facts, all are written again later.
    pub fn record_result(&mut self, result: Result<(), StoreError>, now: ExchangeTime) {
        match result {
            Ok(()) => self.away = None,
            Err(error) => {
                self.totals.failures += 1;
                self.must_write_all |= self.has_joined && matches!(error, StoreError::Evicts(_));
                self.away = Some(StoreOutage {
                    since: self
                        .away
                        .as_ref()
                        .map_or(now.to_timestamp(), |away| away.since),
                    error: error.to_string(),
                });
            }
        }
    }

    /// The steps of a turn. Every 10 seconds, after a failure and while outside it reads the
    /// identity of the store, and joins a new one. Then it reads the log, writes what is due, and
    /// fetches files.
    ///
    /// # Errors
    /// The store failed, or is another one than before; then the instance is outside again.
    fn try_turn(
        &mut self,
        store: &mut dyn ExchangeStore,
        clock: &dyn Fn() -> ExchangeTime,
        local: &mut dyn LocalFacts,
    ) -> Result<(), StoreError> {
        let asked = clock().monotonic;
        let is_due = self
            .measured_clock
            .is_none_or(|(_, at)| asked.saturating_sub(at) >= CLOCK_INTERVAL);
        if is_due || self.away.is_some() || self.settled.is_none() {
            let (identity, time) = store.identity(&self.founding_epoch)?;
            let now = clock();
            // The store read its clock about half way through the call, so a slow answer does not
            // make the clock seem wrong.
            self.measured_clock = Some((time, asked + now.monotonic.saturating_sub(asked) / 2));
            self.update_clocks(now);
            if self.settled.as_ref() != Some(&identity) || self.must_write_all {
                let continuity = self.check_continuity(store, &identity, now)?;
                if continuity == Undecided {
                    return Ok(());
                }
                self.join_store(store, identity, now, continuity, local)?;
            }
        }
        let now = clock();
        self.update_clocks(now);
        if !self.read_log(store, local)? {
            self.settled = None;
            return Err(StoreError::Away(
                "the store is another one, or has lost facts".to_owned(),
            ));
        }
        self.has_slept = false;
        if self.is_write_due(now) {
            self.write_pending(store, now)?;
        }
        self.apply_orders(local);
        self.fetch_files(store)
    }

    /// Computes the store's present time and its difference to the own clock from the last
    /// measurement. Does nothing before the first measurement.
    pub fn update_clocks(&mut self, now: ExchangeTime) {
        let Some((store, at)) = self.measured_clock else {
            return;
        };
        let passed =
            i64::try_from(now.monotonic.saturating_sub(at).as_millis()).unwrap_or(i64::MAX);
        let store = store.saturating_add(passed);
        let ahead = now.milliseconds.saturating_sub(store);
        let step = ahead.abs_diff(self.clocks.ahead);
        self.peers_changed |= step > 1_000;
        self.clocks.store = store;
        // After a smaller step, times that were written with the former difference stay comparable.
        if step > 500 {
            self.clocks.ahead = ahead;
        }
    }

    /// Whether this store has what peers served while this instance was down or slept. It does
    /// (`Kept`) if this run never slept, and at the start if it is the store of the previous run.
    /// Of another store it does if a peer was running all that time: one that is settled there and
    /// joined before the last report of this instance. Without such a peer the result is
    /// `Undecided` for 5 seconds, and then `Lost`. It is `Lost` at once if this instance never
    /// settled anywhere.
    fn check_continuity(
        &mut self,
        store: &mut dyn ExchangeStore,
        identity: &StoreIdentity,
        now: ExchangeTime,
    ) -> Result<ObservationContinuity, StoreError> {
        let known = self.before.identity.as_ref();
        let is_continued = if self.has_joined {
            !self.has_slept
        } else {
            known == Some(identity)
        };
        if is_continued {
            return Ok(Kept);
        }
        if !self.has_joined && known.is_none() {
            return Ok(Lost);
        }
        let members = store.read_members()?;
        let own = members.iter().find(|member| member.id == self.own.id);
        // A peer was running all that time.
        if let Some(own) = own
            && members.iter().any(|member| {
                member.id != own.id
                    && member.settled.as_ref() == Some(identity)
                    && member.joined <= own.reported
            })
        {
            return Ok(Kept);
        }
        let since = match &self.waiting_for_peers {
            Some((asked, since)) if asked == identity => *since,
            _ => now.monotonic,
        };
        self.waiting_for_peers = Some((identity.clone(), since));
        let is_over = now.monotonic.saturating_sub(since) >= SETTLE_WITHIN;
        Ok(if is_over { Lost } else { Undecided })
    }

    /// Writes all known facts into a store, and reads what it has. From then on this instance is a
    /// member. A run that starts after an orderly stop in the same store writes only its
    /// publications and files. With `Lost` observation begins anew.
    fn join_store(
        &mut self,
        store: &mut dyn ExchangeStore,
        identity: StoreIdentity,
        now: ExchangeTime,
        continuity: ObservationContinuity,
        local: &mut dyn LocalFacts,
    ) -> Result<(), StoreError> {
        let is_known = self.before.identity.as_ref() == Some(&identity);
        if continuity == Lost {
            local.restart_observation(self.has_joined || self.before.has_observed);
        }
        if !self.has_joined {
            self.log
                .record_unreported_publications(self.before.unreported_since, now.to_timestamp());
        }
        if !self.has_joined || continuity == Lost {
            self.own.joined = self.clocks.now();
        }
        let is_light = !self.has_joined && is_known && self.before.has_left;
        self.totals.started_over += u64::from(self.has_joined);
        if self.has_joined || !is_known {
            self.moved_at = Some(self.clocks.now());
        }
        self.settled = None;
        // Positions in the log of another store have no meaning in this one.
        self.read_position = LogPosition::default();
        self.turn_position = LogPosition::default();
        self.reported_position = LogPosition::default();
        self.unconfirmed_entries.clear();
        self.confirmed_entry = None;
        self.drain_outbox();
        let own = self.log.encode_all(self.clocks);
        let files = self.log.encode_all_files(self.clocks.now());
        self.write_batches(store, &identity, &files, false)?;
        if !is_light {
            let is_same = is_known && !self.has_joined;
            self.write_all_facts(store, &identity, is_same, local)?;
        }
        let peers = StoreBatch {
            members_if_missing: self.members.iter().cloned().collect(),
            ..StoreBatch::default()
        };
        self.write_batch(store, &identity, peers)?;
        let mut position = LogPosition::default();
        // The last part has no facts: its entry reports that this instance is settled.
        for (place, facts) in own.chunks(MAX_ENTRY_FACTS).chain([&[][..]]).enumerate() {
            let is_last = place == own.len().div_ceil(MAX_ENTRY_FACTS);
            let member = self.own_member(self.reported_position, is_last.then(|| identity.clone()));
            let mut batch = StoreBatch::with_entry(member, facts.to_vec(), is_last);
            if let Some(entry) = &mut batch.entry {
                entry.sets = is_last && !is_light;
            }
            position = self.write_batch(store, &identity, batch)?;
        }
        self.drop_outgoing(&own);
        self.settled = Some(identity);
        self.has_joined = true;
        self.must_write_all = false;
        self.waiting_for_peers = None;
        self.has_slept = false;
        self.read_position = position;
        self.record_contact(now);
        self.apply_sets(store, local)
    }

    /// Writes the known facts of peers, operators and crawlers, without replacing stored ones.
    /// `is_same` says that the store is that of the previous run. In another store the observations
    /// of this instance replace stored ones.
    fn write_all_facts(
        &mut self,
        store: &mut dyn ExchangeStore,
        identity: &StoreIdentity,
        is_same: bool,
        local: &dyn LocalFacts,
    ) -> Result<(), StoreError> {
        let mut all: Vec<SharedFact> = self
            .facts
            .iter()
            .cloned()
            .chain(self.orders.facts())
            .collect();
        let mut observed = Vec::new();
        for fact in local.all_facts() {
            let shared = self.encode_own_fact(&fact, self.to_store_time(fact.at));
            match fact.fact {
                AnyFact::HostObservation(_) => observed.push(shared),
                _ => all.push(shared),
            }
        }
        // A restored copy of a store may have observations of this instance from before they began
        // anew.
        if is_same {
            all.extend(observed);
        } else {
            self.write_batches(store, identity, &observed, true)?;
        }
        self.write_batches(store, identity, &all, false)
    }

    /// Writes facts in batches of `MAX_ENTRY_FACTS`. `replaces` says whether they replace stored
    /// ones.
    fn write_batches(
        &mut self,
        store: &mut dyn ExchangeStore,
        identity: &StoreIdentity,
        facts: &[SharedFact],
        replaces: bool,
    ) -> Result<(), StoreError> {
        for part in facts.chunks(MAX_ENTRY_FACTS) {
            let mut batch = StoreBatch::default();
            if replaces {
                batch.facts = part.to_vec();
            } else {
                batch.if_missing = part.to_vec();
            }
            self.write_batch(store, identity, batch)?;
        }
        Ok(())
    }

    /// Writes one batch. Returns the position of its entry in the log, or the zero position for a
    /// batch without an entry.
    ///
    /// # Errors
    /// The store failed, or it is not the one with this identity.
    pub fn write_batch(
        &mut self,
        store: &mut dyn ExchangeStore,
        identity: &StoreIdentity,
        batch: StoreBatch,
    ) -> Result<LogPosition, StoreError> {
        let position = store
            .write(identity, &batch)?
            .ok_or_else(|| StoreError::Away("the store changed while it was written".to_owned()))?;
        self.totals.facts_written += (batch.facts.len() + batch.if_missing.len()) as u64;
        Ok(position)
    }

    /// Reads the log from the last known position to its end. Also reads the sets, if entries were
    /// missed or a peer wrote into the sets. Returns false if this is not the store that this
    /// instance is settled in, or its log ends before that position.
    fn read_log(
        &mut self,
        store: &mut dyn ExchangeStore,
        local: &mut dyn LocalFacts,
    ) -> Result<bool, StoreError> {
        loop {
            let read = store.read(self.read_position)?;
            if Some(&read.identity) != self.settled.as_ref() || read.last < self.read_position {
                return Ok(false);
            }
            let Some(entries) = read.entries else {
                // The sets have everything that was missed. Continue at the end of the log.
                self.apply_sets(store, local)?;
                self.read_position = read.last;
                return Ok(true);
            };
            let is_end = entries
                .last()
                .is_none_or(|(position, _)| *position >= read.last);
            let mut reads_sets = false;
            for (position, entry) in entries {
                reads_sets |= entry.sets && entry.member.run != self.own.run;
                self.apply_entry(position, entry, local);
            }
            if reads_sets {
                self.apply_sets(store, local)?;
            }
            // Facts that were written while the sets were read are in the log.
            if is_end && !reads_sets {
                return Ok(true);
            }
        }
    }

    /// Applies an entry of the log: the state of its member, its facts, and whether it asks for an
    /// answer. Of an own entry only the position counts.
    fn apply_entry(&mut self, position: LogPosition, entry: LogEntry, local: &mut dyn LocalFacts) {
        self.read_position = position;
        if entry.member.run == self.own.run {
            return;
        }
        self.must_answer |= entry.asks;
        self.peers_changed |= self.members.update(entry.member, position);
        for fact in entry.facts {
            self.apply_fact(fact, local);
        }
    }

    /// Reads the sets, and applies all members and facts. Observations come first, because a host
    /// must be known with its site before the versions that were served there.
    fn apply_sets(
        &mut self,
        store: &mut dyn ExchangeStore,
        local: &mut dyn LocalFacts,
    ) -> Result<(), StoreError> {
        let sets = store.read_sets()?;
        for member in sets.members {
            if member.id != self.own.id && member.run != self.own.run {
                self.members.update(member, LogPosition::default());
            }
        }
        self.peers_changed = true;
        let (observed, rest): (Vec<SharedFact>, Vec<SharedFact>) = sets
            .facts
            .into_iter()
            .partition(|fact| codec::is_key_of::<HostObservation>(&fact.key));
        for fact in observed.into_iter().chain(rest) {
            self.apply_fact(fact, local);
        }
        Ok(())
    }

    /// Applies a fact: passes events and observations to `local`, and keeps publications, tenures
    /// and declarations that an instance is gone. Ignores facts of this run, facts that cannot be
    /// decoded, and those with a key longer than `MAX_NAME`. An unknown file of a publication is
    /// fetched later.
    fn apply_fact(&mut self, fact: SharedFact, local: &mut dyn LocalFacts) {
        use AnyFact::*;
        self.totals.facts_read += 1;
        if fact.key.len() > MAX_NAME {
            return;
        }
        if let Some(event) = codec::decode_event(&fact.key, self.clocks.to_own_exact(fact.at)) {
            return self.apply_event(event, fact, local);
        }
        if fact.key.starts_with(&gone_key("")) {
            self.peers_changed |= self.facts.add(fact);
            return;
        }
        let Some((writer, read)) = codec::decode_fact(&fact.key, &fact.value, self.clocks) else {
            return;
        };
        match read {
            HostObservation(_) => {
                let mut members = self.members.iter();
                let by = members.find(|member| member.id == writer);
                // A peer that is gone may have missed later facts, and one that is not settled in
                // this store may have missed lost ones.
                if by.is_some_and(|by| !self.has_ended(by) && by.settled == self.settled) {
                    local.apply(Fact::set(self.clocks.to_own_exact(fact.at), read));
                }
            }
            Publication(_) | HostTenure(_) if writer != self.own.run => {
                if let Publication(publication) = read
                    && let Some(version) = publication.published.version()
                    && !publication.span.is_empty()
                    && !self.log.files.contains_key(&version)
                {
                    self.wanted_files.insert(file_key(version));
                }
                self.peers_changed |= self.facts.add(fact);
            }
            _ => {}
        }
    }

    /// Applies an event of a peer. Ignores a mark that was released since. Pauses are only
    /// recorded, and applied at the end of the turn.
    fn apply_event(&mut self, event: Fact, shared: SharedFact, local: &mut dyn LocalFacts) {
        use AnyFact::*;
        let is_new = self.orders.add(&event, &shared);
        match &event.fact {
            ServedVersion(_) => local.apply(Fact {
                at: self.clocks.to_own(shared.at),
                ..event
            }),
            ClientMark(mark) if self.orders.is_released(mark.address, shared.at) => {}
            PauseRecord(_) if !is_new => {}
            PauseRecord(_) => {
                self.peer_pauses.insert(event.key());
            }
            _ => local.apply(event),
        }
    }

    /// Passes the latest pause of each site to `local`, at the end of a turn because sets and log
    /// have no order. Then applies own releases again, for marks that this turn read.
    fn apply_orders(&mut self, local: &mut dyn LocalFacts) {
        let paused = std::mem::take(&mut self.peer_pauses);
        let released = std::mem::take(&mut self.own_releases);
        for key in paused.iter().chain(&released) {
            let order = self
                .orders
                .latest_order(key, |at| self.clocks.to_own_exact(at));
            order.into_iter().for_each(|order| local.apply(order));
        }
    }

    /// Fetches up to 32 wanted robots.txt files of peers. Files that the store does not have stay
    /// wanted.
    fn fetch_files(&mut self, store: &mut dyn ExchangeStore) -> Result<(), StoreError> {
        if self.wanted_files.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.wanted_files.iter().take(32).cloned().collect();
        for fact in store.fetch(&keys)? {
            let read = codec::decode_fact(&fact.key, &fact.value, self.clocks);
            if let Some((_, AnyFact::VersionBytes(file))) = read
                && RobotsVersionId::from_body(&file.bytes) == file.id
            {
                self.wanted_files.remove(&fact.key);
                self.log.files.insert(file.id, file.bytes);
                self.peers_changed = true;
            }
        }
        Ok(())
    }
}
