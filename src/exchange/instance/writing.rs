//! Writes the facts of one crawlgate instance (such as which crawler fetched which robots.txt) to
//! the store that several instances share. Each turn of the [`Exchange`] writes the facts that wait
//! in the outbox, a queue. [`Exchange::announce`] writes that a site will serve another robots.txt,
//! before the site serves it. [`Exchange::leave_store`] writes the facts that still wait. Then it
//! writes that this instance stops.

use super::turn::MAX_ENTRY_FACTS;
use super::{Exchange, ExchangeTime};
use crate::exchange::{
    ExchangeStore, FACT_RETENTION, HEARTBEAT_INTERVAL, LogPosition, MAX_STORE_OUTAGE, Member,
    MergedFacts, SharedFact, StoreBatch, StoreError, StoreIdentity, codec, gone_key,
    own_publications, whole_seconds,
};
use crate::facts::{AnyFact, Fact};
use crate::publications::{PublicationLog, VersionFile};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// The most facts that wait during an outage. With more, everything is written again after it.
const MAX_OUTGOING: usize = 262_144;
/// How often expired facts are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);

impl Exchange {
    /// Whether this turn must write: something waits, a peer or the caller asks, or the last entry
    /// is a second old.
    pub fn is_write_due(&self, now: ExchangeTime) -> bool {
        self.last_contact
            .is_none_or(|last| now.monotonic.saturating_sub(last) >= HEARTBEAT_INTERVAL)
            || self.asks_peers
            || self.must_answer
            || !self.outgoing.is_empty()
            || self.outbox.count() > 0
            || self.log.has_changes
    }

    /// Converts a moment of the own clock to seconds of the store's clock, at most the present.
    pub fn to_store_time(&self, own: Timestamp) -> i64 {
        self.clocks.to_store(own).min(self.clocks.now())
    }

    /// Encodes a fact of this instance, at a time of the store's clock. An order of an operator is
    /// also added to `orders`, with a time after the known order, and a release is applied here
    /// again at the end of the turn.
    pub fn encode_own_fact(&mut self, fact: &Fact, at: i64) -> SharedFact {
        if let AnyFact::HostObservation(_) = fact.fact {
            let clocks = self.clocks;
            return codec::encode_fact(&self.own.id, &fact.fact, clocks.now(), clocks);
        }
        let shared = codec::encode_event(fact, self.orders.order_time(fact, at));
        self.orders.add(fact, &shared);
        if let AnyFact::MarkRelease(_) = fact.fact {
            self.own_releases.insert(fact.key());
        }
        shared
    }

    /// Moves the facts of the outbox to `outgoing`. Returns the number of the next entry, which
    /// reports them. If a served version was dropped, publications in force in the last minute
    /// count as unreported. With too many facts all are dropped, and everything is written again
    /// later.
    pub fn drain_outbox(&mut self) -> u64 {
        let number = self.progress.next_entry.fetch_add(1, SeqCst);
        let waiting = self.outbox.drain();
        for fact in waiting.facts.values() {
            let mut at = self.to_store_time(fact.at);
            if let AnyFact::ServedVersion(_) = fact.fact {
                // It was served after the last report, even if the clock was set back since.
                at = at.max(self.own.reported.saturating_sub(2));
            }
            let shared = self.encode_own_fact(fact, at);
            self.outgoing.add(shared);
        }
        if waiting.has_lost {
            let now = self.clocks.to_own(self.clocks.now());
            self.log
                .record_unreported_publications(Some(Timestamp(now.0.saturating_sub(60))), now);
        }
        if self.outgoing.len() > MAX_OUTGOING {
            self.outgoing = MergedFacts::default();
            self.must_write_all = true;
        }
        number
    }

    /// Writes up to 2,000 waiting facts, with an entry that has them and the position up to which
    /// this instance has read. Only if no fact is left, the entry reports that everything until now
    /// is written. If the write fails, the facts wait again. Does nothing while outside.
    pub fn write_pending(
        &mut self,
        store: &mut dyn ExchangeStore,
        now: ExchangeTime,
    ) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            return Ok(());
        };
        let number = self.drain_outbox();
        let changes = self.log.take_changes(self.clocks);
        for fact in changes.facts {
            self.outgoing.add(fact);
        }
        let facts = self.outgoing.take_first(MAX_ENTRY_FACTS);
        let is_all = self.outgoing.is_empty();
        let (read_position, reported) = if is_all {
            (self.turn_position, self.clocks.now())
        } else {
            (self.reported_position, self.own.reported)
        };
        let before = std::mem::replace(&mut self.own.reported, reported);
        let member = self.own_member(read_position, Some(identity.clone()));
        let mut batch = StoreBatch::with_entry(member, facts, self.asks_peers);
        batch.forget = changes.forget;
        self.prune_expired_facts(&mut batch, now);
        match self.write_batch(store, &identity, batch.clone()) {
            Ok(position) => {
                self.reported_position = read_position;
                self.unconfirmed_entries.push_back((number, position));
                self.unconfirmed_entries.truncate(4_096);
                self.must_answer = false;
                self.record_contact(now);
                Ok(())
            }
            Err(error) => {
                self.own.reported = before;
                for fact in batch.facts {
                    self.outgoing.add(fact);
                }
                Err(error)
            }
        }
    }

    /// Records a successful contact with the store. This instance may then answer `/robots.txt` for
    /// another 24 hours (`MAX_STORE_OUTAGE`).
    pub fn record_contact(&mut self, now: ExchangeTime) {
        self.last_contact = Some(now.monotonic);
        self.last_contact_at = self.clocks.now();
        self.progress
            .robots_txt_until
            .store(now.to_timestamp().plus(MAX_STORE_OUTAGE).0, SeqCst);
    }

    /// Once an hour, removes expired facts here and adds their deletion to the batch: events older
    /// than 32 days, peers that are long gone and their publications, publications that a later run
    /// reported again, and files that no instance published.
    fn prune_expired_facts(&mut self, batch: &mut StoreBatch, now: ExchangeTime) {
        if self
            .pruned_at
            .is_some_and(|last| now.monotonic.saturating_sub(last) < PRUNE_INTERVAL)
        {
            return;
        }
        self.pruned_at = Some(now.monotonic);
        let before = self
            .clocks
            .now()
            .saturating_sub(whole_seconds(FACT_RETENTION));
        batch.served_before = Some(before);
        self.orders.prune(before);
        let over = self.members.expired_ids(before);
        let continued = self.members.continued_runs(self.before.run.as_deref());
        self.facts.retain(|key| {
            let run = key.split('\n').nth(1).unwrap_or_default();
            let goes =
                continued.contains(run) || over.iter().any(|id| run.starts_with(id.as_str()));
            if goes {
                batch.forget.push(key.to_owned());
            }
            !goes
        });
        let published = self.facts.iter().filter_map(|fact| {
            let (_, read) = codec::decode_fact(&fact.key, &fact.value, self.clocks)?;
            own_publications::published_version(&read)
        });
        batch
            .forget
            .extend(self.log.remove_unused_files(&published.collect()));
        self.members.remove(&over);
        batch.forget_members = over;
    }

    /// The member entry of this instance: it has read the log up to `read_position`, and `settled`
    /// is the store into which it has written everything.
    pub fn own_member(&self, read_position: LogPosition, settled: Option<StoreIdentity>) -> Member {
        Member {
            read_position,
            settled,
            clock_ahead_ms: self.clocks.ahead,
            ..self.own.clone()
        }
    }

    /// Announces publications that are about to take effect. They may be served only after this
    /// succeeded. Writes nothing if peers know them already. If another store answers than before,
    /// this instance is outside again.
    ///
    /// # Errors
    /// The store did not accept them, or this instance is not settled.
    pub fn announce(
        &mut self,
        store: &mut dyn ExchangeStore,
        now: ExchangeTime,
        log: &PublicationLog,
        files: &[VersionFile],
    ) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            let unsettled = "other instances may not have written to the store yet what they know";
            let away = self.away.as_ref().map(|away| &*away.error);
            return Err(StoreError::Away(away.unwrap_or(unsettled).to_owned()));
        };
        self.update_clocks(now);
        let new_files = self.log.encode_new_files(files, self.clocks.now());
        let facts = self.log.encode_openings(log, self.clocks);
        self.log.mark_attempted(&facts);
        if facts.is_empty() && new_files.is_empty() {
            return Ok(());
        }
        self.progress.next_entry.fetch_add(1, SeqCst);
        let member = self.own_member(self.reported_position, Some(identity.clone()));
        let mut batch = StoreBatch::with_entry(member, facts.clone(), false);
        batch.if_missing = new_files;
        match self.write_batch(store, &identity, batch) {
            Ok(position) if position > self.read_position => {
                self.drop_outgoing(&facts);
                self.log.mark_written(facts, log, files);
                self.record_contact(now);
                Ok(())
            }
            Ok(_) => {
                self.settled = None;
                Err(StoreError::Away(
                    "the store is another one than before".to_owned(),
                ))
            }
            Err(error) => {
                self.record_result(Err(error.clone()), now);
                Err(error)
            }
        }
    }

    /// Drops waiting facts with the keys of these ones, which are newer and in the store.
    pub fn drop_outgoing(&mut self, facts: &[SharedFact]) {
        let keys: BTreeSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
        self.outgoing.retain(|key| !keys.contains(key));
    }

    /// Writes all waiting facts, and then an entry with `has_left`. After that nothing may be
    /// served, and `/robots.txt` is answered with 503.
    ///
    /// # Errors
    /// The store did not accept it, or this instance is no member.
    pub fn leave_store(
        &mut self,
        store: &mut dyn ExchangeStore,
        now: ExchangeTime,
    ) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            return Err(StoreError::Away("this instance is no member".to_owned()));
        };
        self.update_clocks(now);
        self.write_pending(store, now)?;
        while !self.outgoing.is_empty() {
            self.write_pending(store, now)?;
        }
        let member = Member {
            has_left: true,
            ..self.own_member(self.turn_position, Some(identity.clone()))
        };
        let batch = StoreBatch::with_entry(member, Vec::new(), false);
        self.write_batch(store, &identity, batch)?;
        self.progress.robots_txt_until.store(i64::MIN, SeqCst);
        self.settled = None;
        Ok(())
    }

    /// Declares a peer gone for good. The next turn reports it. Returns false, and does nothing, if
    /// no peer has this id.
    pub fn forget_member(&mut self, id: &str) -> bool {
        if !self.members.iter().any(|member| member.id == id) {
            return false;
        }
        let gone = SharedFact {
            key: gone_key(id),
            at: self.clocks.now(),
            value: String::new(),
        };
        self.peers_changed |= self.facts.add(gone.clone());
        self.outgoing.add(gone);
        true
    }
}
