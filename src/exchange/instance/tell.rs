//! The part of [`Exchange`] that writes to the shared store. Each turn writes the facts that wait
//! in the outbox. [`Exchange::announce`] writes a publication before it comes into force, and
//! [`Exchange::leave`] notes that this instance stops.

use super::turn::FACTS_EACH;
use super::{Exchange, Now};
use crate::exchange::{
    Batch, Entry, HEARTBEAT, Identity, KEPT, Member, Merged, Position, SILENT_AFTER, SharedFact,
    Store, StoreError, codec, gone_key, own_log, seconds,
};
use crate::facts::{AnyFact, Fact};
use crate::publications::{PublicationLog, VersionFile};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Facts that wait while the store is away. With more, everything is written again once it is back.
const MOST_WAITING: usize = 262_144;
/// How often what is over is deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);

impl Exchange {
    /// Whether this turn is to write: something waits, another instance or the caller asks, or the
    /// last entry is a second old.
    pub(super) fn is_due(&self, now: Now) -> bool {
        self.last_write
            .is_none_or(|last| now.lived.saturating_sub(last) >= HEARTBEAT)
            || self.asks
            || self.must_answer
            || !self.outgoing.is_empty()
            || !self.outbox.is_empty()
            || self.log.has_news
    }

    /// A moment of the own clock as seconds of the store's clock, at most the store's present.
    pub(super) fn at(&self, own: Timestamp) -> i64 {
        self.clocks.to_store(own).min(self.clocks.now())
    }

    /// A fact of this instance as others get it, at a time of the store's clock. What an operator did
    /// is also added to the own orders, at a time after what is known of it; a release is applied
    /// here once more at the end of the turn. `None` where the fact cannot be shared.
    pub(super) fn shared(&mut self, fact: &Fact, at: i64) -> Option<SharedFact> {
        if let AnyFact::Observation(_) = fact.fact {
            let now = self.clocks.now();
            return Some(codec::write(&self.me.id, &fact.fact, now, self.clocks));
        }
        let shared = codec::write_event(fact, self.orders.time_of(fact, at))?;
        self.orders.add(fact, &shared);
        if let AnyFact::Release(_) = fact.fact {
            self.released_here.insert(fact.key());
        }
        Some(shared)
    }

    /// Moves what waits in the outbox to the facts that go out. Returns the number of the next
    /// entry, which will have it. If a served version was lost, all that was in force in the last
    /// minute counts as unreported. With too many facts all are dropped, and everything is written
    /// again later.
    pub(super) fn gather(&mut self) -> u64 {
        let number = self.gauge.next_entry.fetch_add(1, SeqCst);
        let waiting = self.outbox.take();
        for fact in waiting.facts.values() {
            let mut at = self.at(fact.at);
            if let AnyFact::Served(_) = fact.fact {
                // It was served since the last turn that told it, whatever a clock says that was
                // set meanwhile.
                at = at.max(self.me.reported.saturating_sub(2));
            }
            if let Some(shared) = self.shared(fact, at) {
                self.outgoing.add(shared);
            }
        }
        if waiting.has_lost {
            let now = self.clocks.to_own(self.clocks.now());
            self.log
                .mark_unreported(Some(Timestamp(now.0.saturating_sub(60))), now);
        }
        if self.outgoing.len() > MOST_WAITING {
            self.outgoing = Merged::default();
            self.must_write_all = true;
        }
        number
    }

    /// Writes up to 2,000 of the facts that wait, with an entry that tells them and how far this
    /// instance has read. Only if no fact is left, the entry says that all is reported until now.
    /// If the write fails, the facts wait again. Does nothing while this instance is outside.
    pub(super) fn write(&mut self, store: &mut dyn Store, now: Now) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            return Ok(());
        };
        let number = self.gather();
        let changes = self.log.changes(self.clocks);
        for fact in changes.facts {
            self.outgoing.add(fact);
        }
        let facts = self.outgoing.take(FACTS_EACH);
        let is_all = self.outgoing.is_empty();
        let (heard, reported) = if is_all {
            (self.heard, self.clocks.now())
        } else {
            (self.told_heard, self.me.reported)
        };
        let before = std::mem::replace(&mut self.me.reported, reported);
        let entry = Entry {
            member: self.member(heard, Some(identity.clone())),
            facts: facts.clone(),
            asks: self.asks,
            ..Entry::default()
        };
        let mut batch = Batch {
            facts,
            forget: changes.forget,
            entry: Some(entry),
            ..Batch::default()
        };
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
                self.me.reported = before;
                for fact in batch.facts {
                    self.outgoing.add(fact);
                }
                Err(error)
            }
        }
    }

    /// Records a successful contact with the store: this instance may answer `/robots.txt` for
    /// another 24 hours (`SILENT_AFTER`).
    pub(super) fn touch(&mut self, now: Now) {
        self.last_contact = Some(now.lived);
        self.last_write = Some(now.lived);
        self.last_contact_at = self.clocks.now();
        self.gauge
            .speaks_until
            .store(now.second().plus(SILENT_AFTER).0, SeqCst);
    }

    /// Once an hour, adds to the batch what is to be deleted from the store, and forgets it here:
    /// events older than 32 days, members that are long gone and their publications, publications
    /// that a later run told again, and files that nobody published.
    fn prune(&mut self, batch: &mut Batch, now: Now) {
        if self
            .pruned
            .is_some_and(|last| now.lived.saturating_sub(last) < PRUNE_EVERY)
        {
            return;
        }
        self.pruned = Some(now.lived);
        let before = self.clocks.now().saturating_sub(seconds(KEPT));
        batch.served_before = Some(before);
        self.orders.prune(before);
        let over = self.members.over(before);
        let continued = self.members.continued(self.before.run.as_deref());
        self.facts.retain(|key, _, _| {
            let run = key.split('\n').nth(1).unwrap_or_default();
            let goes =
                continued.contains(run) || over.iter().any(|id| run.starts_with(id.as_str()));
            if goes {
                batch.forget.push(key.to_owned());
            }
            !goes
        });
        let published = self.facts.starting_with("");
        let published = published.filter_map(|(key, _, value)| {
            own_log::version_of(&codec::read(key, value, self.clocks)?.1)
        });
        batch
            .forget
            .extend(self.log.forget_files(&published.collect()));
        self.members.forget(&over);
        batch.forget_members = over;
    }

    /// This instance as it stands in an entry: it has read up to `heard`, and `settled` is the
    /// store that it has written everything into.
    pub(super) fn member(&self, heard: Position, settled: Option<Identity>) -> Member {
        Member {
            heard,
            settled,
            clock_ahead_ms: self.clocks.ahead,
            ..self.me.clone()
        }
    }

    /// Tells others what is about to come into force. Only when this succeeded may it be served.
    /// Succeeds without writing if others know it all. If another store answers than before, this
    /// instance is outside again.
    ///
    /// # Errors
    /// The store has not taken it, or this instance is not settled: the text says why.
    pub fn announce(
        &mut self,
        store: &mut dyn Store,
        now: Now,
        log: &PublicationLog,
        files: &[VersionFile],
    ) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            let unsettled = "other instances may have yet to write what they know into the store";
            let away = self.away.as_ref().map(|away| &*away.error);
            return Err(StoreError::Away(away.unwrap_or(unsettled).to_owned()));
        };
        self.look_at_clocks(now);
        let new_files = self.log.new_files(files, self.clocks.now());
        let facts = self.log.openings(log, self.clocks);
        self.log.try_to_tell(&facts);
        if facts.is_empty() && new_files.is_empty() {
            return Ok(());
        }
        self.gauge.next_entry.fetch_add(1, SeqCst);
        let entry = Entry {
            member: self.member(self.told_heard, Some(identity.clone())),
            facts: facts.clone(),
            ..Entry::default()
        };
        let batch = Batch {
            facts: facts.clone(),
            if_missing: new_files,
            entry: Some(entry),
            ..Batch::default()
        };
        match self.write_part(store, &identity, batch) {
            Ok(position) if position > self.read => {
                self.mark_written(&facts);
                self.log.mark_told(facts, log, files);
                self.touch(now);
                Ok(())
            }
            Ok(_) => {
                self.settled = None;
                let other = "the store is another one than before".to_owned();
                Err(StoreError::Away(other))
            }
            Err(error) => {
                self.note(Err(error.clone()), now);
                Err(error)
            }
        }
    }

    /// Records that these facts are in the store: drops the facts with the same keys that wait,
    /// because these are older.
    pub(super) fn mark_written(&mut self, facts: &[SharedFact]) {
        let keys: BTreeSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
        self.outgoing.retain(|key, _, _| !keys.contains(key));
    }

    /// Records the log that is in force now. The next turn tells others what ended by it.
    pub fn published(&mut self, log: &PublicationLog) {
        self.log.update(log);
    }

    /// Writes everything that waits, and then an entry that says that this instance has left. After
    /// it nothing may be served any more, and `/robots.txt` is answered 503.
    ///
    /// # Errors
    /// The store has not taken it, or this instance is no member.
    pub fn leave(&mut self, store: &mut dyn Store, now: Now) -> Result<(), StoreError> {
        let Some(identity) = self.settled.clone() else {
            return Err(StoreError::Away("this instance is no member".to_owned()));
        };
        self.look_at_clocks(now);
        self.write(store, now)?;
        while !self.outgoing.is_empty() {
            self.write(store, now)?;
        }
        let member = Member {
            has_left: true,
            ..self.member(self.heard, Some(identity.clone()))
        };
        let entry = Entry {
            member,
            ..Entry::default()
        };
        let batch = Batch {
            entry: Some(entry),
            ..Batch::default()
        };
        self.write_part(store, &identity, batch)?;
        self.gauge.speaks_until.store(i64::MIN, SeqCst);
        self.settled = None;
        Ok(())
    }

    /// Records that an instance is gone for good, as an operator says. Others are told by the next
    /// turn. Returns false, and records nothing, if no other instance has this id.
    pub fn forget(&mut self, id: &str) -> bool {
        if !self.members.all().any(|member| member.id == id) {
            return false;
        }
        let gone = SharedFact {
            key: gone_key(id),
            at: self.clocks.now(),
            value: String::new(),
        };
        self.others_changed |= self.facts.add(gone.clone());
        self.outgoing.add(gone);
        true
    }
}
