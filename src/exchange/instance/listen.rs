//! What other instances tell this one: the log, the sets and files.

use super::{Exchange, Memory};
use crate::exchange::event::Event;
use crate::exchange::fact::Fact;
use crate::exchange::member::Member;
use crate::exchange::position::Position;
use crate::exchange::records;
use crate::exchange::store::{Entry, Sets, Store, StoreError};
use crate::history::Published;

impl Exchange {
    /// Reads the log; says whether it is that of the store that this instance is settled in.
    pub(super) fn follow(&mut self, store: &mut dyn Store, memory: &mut dyn Memory) -> Result<bool, StoreError> {
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
            // The sets were not read in one step: what was written meanwhile is in the log.
            if is_end && !reads_sets {
                return Ok(true);
            }
        }
    }

    pub(super) fn take_entry(&mut self, position: Position, entry: Entry, memory: &mut dyn Memory) {
        self.read = position;
        if entry.member.run == self.me.run {
            return;
        }
        self.must_answer |= entry.asks;
        self.others_changed |= self.members.heard_of(entry.member, position);
        entry.facts.into_iter().for_each(|fact| self.take(fact, memory));
    }

    pub(super) fn take_sets(&mut self, sets: Sets, memory: &mut dyn Memory) {
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

    pub(super) fn take(&mut self, fact: Fact, memory: &mut dyn Memory) {
        self.totals.facts_read += 1;
        if let Some(event) = Event::of(&fact.key) {
            return self.take_event(event, fact.at, memory);
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
            && let Published::Version(version) = publication.published
            && !publication.span.is_empty()
            && !self.log.has_file(version)
        {
            self.wanted.insert(records::file_key(version));
        }
        self.others_changed |= self.facts.add(fact);
    }

    fn take_event(&mut self, event: Event, at: i64, memory: &mut dyn Memory) {
        match &event {
            Event::Served(_) => memory.heard(event, self.clocks.to_own(at)),
            Event::Marked(client) if self.orders.are_released(client.address, at) => {}
            Event::Paused(paused) => {
                if self.orders.add(&event, at) {
                    self.paused_elsewhere.insert(paused.site.clone());
                }
            }
            Event::Marked(_) | Event::Released(_) | Event::Fetched(_) => {
                self.orders.add(&event, at);
                memory.heard(event, self.clocks.nearest(at));
            }
        }
    }

    /// Hands on the latest word on the pauses of sites, only now because sets and log are in no order; and what was
    /// released here while marks came in.
    pub(super) fn hand_on_orders(&mut self, memory: &mut dyn Memory) {
        for site in std::mem::take(&mut self.paused_elsewhere) {
            if let Some((at, paused)) = self.orders.of(&site) {
                memory.heard(Event::Paused(paused), self.clocks.nearest(at));
            }
        }
        for (released, at) in self.released_here.drain(..) {
            memory.heard(released, self.clocks.nearest(at));
        }
    }

    pub(super) fn fetch_files(&mut self, store: &mut dyn Store) -> Result<(), StoreError> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = self.wanted.iter().take(64).cloned().collect();
        for fact in store.fetch(&keys)? {
            if let Some((version, bytes)) = records::file_of(&fact) {
                self.wanted.remove(&fact.key);
                self.log.learn(version, bytes);
                self.others_changed = true;
            }
        }
        Ok(())
    }
}
