//! What is new waits while the next start would be misled: a version that nobody knows of then must not have been
//! served to anybody, or who obeys it is a violator. That is so for seconds at most: where nothing can be written and
//! no file taken away, the stamp that is there is soon too old to be believed. Meanwhile what was in force goes on, but
//! pauses begin and end at once.
//!
//! Knows what is in force and what is to be; that something is unwritten the state directory knows.

use super::reload::Sites;
use super::succession::identities;
use crate::policy::{Site, Snapshot};
use crate::time::Timestamp;

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
            return self.snapshot(now);
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
        self.with_history(entries, now)
    }

    /// Whether the same is published on the same hosts, and crawlers are told apart in the same way: everything else
    /// the next start need not know.
    fn publishes_as(&self, published: &Snapshot, now: Timestamp) -> bool {
        let hosts = |site: &Site| -> Vec<_> { site.policy.hosts.iter().map(|host| host.value.clone()).collect() };
        let mut known = 0;
        let same = self.entries().all(|entry| {
            let before = published.site_named(&entry.site.name).map(|index| &published.sites()[index]);
            known += 1;
            before.is_some_and(|before| {
                before.site.robots_txt.version == entry.site.robots_txt.version
                    && identities(self.registry, &before.site) == identities(self.registry, &entry.site)
                    && hosts(&before.site) == hosts(&entry.site)
                    && (before.withholds_robots_txt(now) || !self.as_paused(entry).withholds_robots_txt(now))
            })
        });
        same && known == published.sites().len()
    }

    /// While something waits: what is published was in force until now, and what is to take its place is not yet.
    pub(super) fn defer(&mut self, now: Timestamp) {
        if self.waiting.is_some() {
            self.remember(now);
        }
    }
}
