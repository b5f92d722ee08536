//! What is new waits while the next start would be misled: a version that nobody knows of then must not have been
//! served to anybody, or who obeys it is a violator. That is so for seconds at most: where nothing can be written and
//! no file taken away, the stamp that is there is soon too old to be believed. Meanwhile what was in force goes on, but
//! pauses begin and end at once.
//!
//! Knows what is in force and what is to be; that something is unwritten the state directory knows.

use super::reload::Sites;
use super::takeover::{hosts_of, versions};
use crate::policy::compiled::Held;
use crate::policy::{Snapshot, Version};
use crate::time::Timestamp;
use std::collections::BTreeSet;

/// For a person.
pub(super) const WAITING: &str = "what is new waits, and what was in force stays: the state directory cannot be \
                                  written, and a crash now would leave the next start believing what is not so; it \
                                  comes into force once that is over, after some 20 seconds at the latest";

impl Sites {
    /// The sites as requests are to see them, given how they see them now.
    pub(super) fn publishable(&mut self, published: &Snapshot, now: Timestamp) -> Snapshot {
        if !self.state.witnesses().mislead(now) || self.publishes_as(published, now) {
            if self.waiting.take().is_some() {
                tracing::warn!("what waited for the state directory is in force");
            }
            return self.snapshot();
        }
        if self.waiting.is_none() {
            tracing::error!("{WAITING}");
            self.waiting = Some(now);
        }
        let entries = published.sites().iter().map(|before| {
            let mut entry = self.as_paused(before);
            if !before.withholds_robots_txt(now) {
                entry.pauses.iter_mut().for_each(|pause| pause.robots_txt_until = None);
            }
            entry
        });
        let entries = entries.collect();
        self.snapshot_of(entries)
    }

    /// Whether the same is published on the same hosts, and crawlers are told apart in the same way: everything else
    /// the next start need not know.
    fn publishes_as(&self, published: &Snapshot, now: Timestamp) -> bool {
        let mut known = 0;
        let same = self.entries().all(|entry| {
            let before = published.site_named(&entry.site.name).map(|index| &published.sites()[index]);
            known += 1;
            before.is_some_and(|before| {
                before.site.robots_txt.version == entry.site.robots_txt.version
                    && before.identity_epoch == entry.identity_epoch
                    && hosts_of(&before.site) == hosts_of(&entry.site)
                    && (before.withholds_robots_txt(now) || !self.as_paused(entry).withholds_robots_txt(now))
            })
        });
        same && known == published.sites().len()
    }

    /// While something waits: what is published was in force until now, and what is to take its place is not yet.
    pub(super) fn put_off(&mut self, published: &Snapshot, now: Timestamp) {
        let Some(since) = self.waiting else { return };
        let in_force: BTreeSet<Version> = published.sites().iter().map(|entry| entry.site.robots_txt.version).collect();
        let later = |moment: &mut Timestamp| {
            if *moment >= since {
                *moment = now;
            }
        };
        let held_longer = |all: &mut Vec<Held>| {
            let superseded = all.iter_mut().filter(|held| in_force.contains(&held.former.version));
            superseded.for_each(|held| later(&mut held.superseded_at));
            all.sort_by_key(|held| std::cmp::Reverse(held.superseded_at));
        };
        for name in self.names() {
            let Some(entry) = self.entry_mut(&name) else { continue };
            let before = published.site_named(&name).map(|index| &published.sites()[index].site.robots_txt.version);
            if before != Some(&entry.site.robots_txt.version) {
                later(&mut entry.since);
            }
            later(&mut entry.identity_epoch);
            held_longer(&mut entry.held);
        }
        self.memory.names.values_mut().for_each(|(_, told_apart)| later(told_apart));
        for left in &mut self.memory.left {
            later(&mut left.at);
            held_longer(&mut left.held);
            left.versions = versions(&left.held);
        }
        self.remember(now);
    }
}
