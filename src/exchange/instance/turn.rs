//! A turn of an instance: which store it is, settling in it, and reading and telling.

use super::{Exchange, Memory, Now};
use crate::exchange::member::Member;
use crate::exchange::position::{Identity, Position};
use crate::exchange::records::{self, Clocks};
use crate::exchange::store::{Batch, Entry, Store, StoreError};
use crate::exchange::{Away, CLOCK_EVERY};
use std::sync::atomic::Ordering;

/// Facts of one entry.
pub(super) const FACTS_EACH: usize = 2_000;

impl Exchange {
    /// Reads what others told and tells what is new. `asks`: somebody waits to hear that others know what happened until now.
    pub fn turn(&mut self, store: &mut dyn Store, clock: &dyn Fn() -> Now, memory: &mut dyn Memory, asks: bool) {
        self.heard = self.read;
        self.asks = asks;
        let result = self.try_turn(store, clock, memory);
        self.note(result, clock());
        self.stand();
    }

    pub(super) fn note(&mut self, result: Result<(), StoreError>, now: Now) {
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

    pub(super) fn try_turn(
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
        self.hand_on_orders(memory);
        self.fetch_files(store)
    }

    pub(super) fn look_at_clocks(&mut self, now: Now) {
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
    pub(super) fn settle(
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
            rest.extend(self.orders.facts());
            let (events, observed) = memory.everything();
            for (event, at) in events {
                rest.extend(self.told(&event, self.at(at)));
            }
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
        self.were_written(&own);
        (self.settled, self.has_joined, self.must_write_all) = (Some(identity), true, false);
        self.read = position;
        self.touch(now);
        let sets = store.read_sets()?;
        self.take_sets(sets, memory);
        Ok(())
    }

    pub(super) fn write_part(
        &mut self,
        store: &mut dyn Store,
        identity: &Identity,
        batch: Batch,
    ) -> Result<Position, StoreError> {
        let written = store.write(identity, &batch)?;
        if written.identity != *identity || written.position.is_none() != batch.entry.is_none() {
            return Err(StoreError::Away("the store changed while it was written".to_owned()));
        }
        self.totals.facts_written += (batch.facts.len() + batch.if_missing.len()) as u64;
        Ok(written.position.unwrap_or_default())
    }
}
