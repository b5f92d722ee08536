//! [`Publisher`] puts sites into force. It keeps the log of what each host published, and makes the
//! snapshot that requests are judged by.
//!
//! Some changes are announced to other instances ([`PublicationSubscriber`]) and committed to the state
//! directory before they take effect: a new robots.txt (or a 503 in its place), a host that moves
//! to another site, and a change of how crawlers are told apart. Otherwise, after a crash,
//! crawlgate would report crawlers that obeyed what they were served.
//!
//! If the announcement or the commit fails, the change is deferred ([`Publisher::deferred`] is
//! `Some`): the former robots.txt stays in force, and crawlgate tries again every second. Pauses of
//! pages do not wait. The reason ([`Deferral`]) decides how long this lasts:
//!
//! - `Uncommitted`: the state directory cannot be written. After some 20 seconds the change takes
//!   effect all the same, because the next start would see a gap anyway. A process that handed its
//!   state directory over waits until it gets it back.
//! - `Unannounced`: the store that the instances share cannot be reached. The change waits until it
//!   can. If no site changes its hosts, changes of modes, answers and tags take effect meanwhile
//!   (`held_back`).

use super::default_sites::name_in_log;
use super::held_back::HeldBack;
use super::log_facts::{log_facts, remembered_log, remembered_versions};
use super::pauses::Pauses;
use crate::crawlers::Registry;
use crate::facts::{self, Fact, changes};
use crate::policy::host_history::HostHistories;
use crate::policy::site::DeclaredPrevious;
use crate::policy::{Site, SiteEntry, Snapshot, Version};
use crate::publications::{
    Current, Declared, Horizon, OfOthers, PublicationLog, Published, VersionFile, VersionStore,
};
use crate::state::{Remembered, StateError, StateStore};
use crate::time::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A copy may be sent slowly while another version takes its place.
const SLOWEST_ANSWER: Duration = Duration::from_secs(3_600);

/// No crawler uses a copy for longer, and the log remembers no more.
const REMEMBERED: Duration = Duration::from_secs(31 * 86_400);

/// Follows what is published, as other instances in front of the same hosts do.
pub trait PublicationSubscriber: Send {
    /// Announces the log that is about to come into force, with its files.
    ///
    /// # Errors
    /// It cannot be announced. It must not take effect.
    fn announce(&self, _log: &PublicationLog, _files: &[VersionFile]) -> Result<(), AnnounceError> {
        Ok(())
    }

    /// Says that these sites come into force now, and the log with them. A new subscriber gets
    /// those in force. Must not wait for anything.
    fn published(&self, log: &PublicationLog, sites: &[SiteEntry]);
}

/// Why other instances cannot be told of a publication.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnounceError {
    /// This instance tells others no more.
    #[error("this instance has left the exchange")]
    Left,
    /// The store takes long.
    #[error("the store has not answered yet what it was asked before")]
    Busy,
    /// The store has not taken it, for this reason.
    #[error("{0}")]
    Store(String),
}

/// Why new sites are not in force yet.
#[derive(Clone, Debug)]
pub enum Deferral {
    /// It cannot be committed.
    Uncommitted(StateError),
    /// Other instances cannot be told.
    Unannounced(AnnounceError),
}

/// The publications, and the store that is told of them first.
pub struct Publisher {
    store: StateStore,
    /// The log that the store has.
    pub log: PublicationLog,
    /// The log with what follows from the end of the previous run, until the store has it too.
    corrected: Option<PublicationLog>,
    /// The bytes of versions that were published or may be published, by which other instances can
    /// judge.
    pub versions: VersionStore,
    /// Those of them that are known from other instances alone: the store does not have them.
    learned: BTreeSet<Version>,
    /// The sites in force, without the history of their hosts.
    entries: Vec<SiteEntry>,
    generation: u64,
    forget_at: Option<Timestamp>,
    next_switch: Option<Timestamp>,
    /// Why new sites are not in force yet.
    pub deferred: Option<Deferral>,
    held_back: HeldBack,
    subscribers: Vec<Box<dyn PublicationSubscriber>>,
    others: Vec<PublicationLog>,
}

impl Publisher {
    /// A publisher with the publications of an earlier process. If this process does not go on
    /// without a gap (`is_continued`), other tables of crawlers and other servers may have answered
    /// in between; if facts were lost, the log is incomplete. Both are in the corrected log, which
    /// replaces `log` with the first publication.
    pub fn new(store: StateStore, remembered: &Remembered, now: Timestamp) -> Publisher {
        let log = remembered_log(&remembered.facts);
        let mut corrected = log.clone();
        // After a gap other tables of crawlers may have been in force.
        if !remembered.is_continued {
            corrected.forget_identities();
            corrected.set_broken(now);
        }
        if remembered.has_lost_facts() {
            corrected.set_lost(now);
        }
        Publisher {
            store,
            log,
            corrected: Some(corrected),
            versions: remembered_versions(&remembered.facts),
            learned: BTreeSet::new(),
            entries: Vec::new(),
            generation: 0,
            forget_at: None,
            next_switch: None,
            deferred: None,
            held_back: HeldBack::default(),
            subscribers: Vec::new(),
            others: Vec::new(),
        }
    }

    /// From now on this subscriber follows what is published, beginning with the sites in force.
    pub fn subscribe(&mut self, subscriber: Box<dyn PublicationSubscriber>) {
        subscriber.published(&self.log, &self.entries);
        self.subscribers.push(subscriber);
    }

    /// For a clock that was set by so many seconds (negative: back, 0: other servers may have
    /// answered until now). Records both a broken history and the shift in the corrected log; the next
    /// publication stores it.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        let mut log = self.corrected.take().unwrap_or_else(|| self.log.clone());
        log.set_broken(now);
        log.apply_clock_step(by, now);
        self.corrected = Some(log);
    }

    /// Takes in what other instances published: their logs replace those known before, and the
    /// bytes of versions that are new here are kept as learned. Publishes nothing.
    pub fn learn(&mut self, others: OfOthers) {
        self.others = others.logs;
        for (version, bytes) in others.files {
            if !self.versions.contains(version) {
                self.learned.insert(version);
                self.versions.insert(version, bytes);
            }
        }
    }

    /// Whether something changes by the clock: a superseded version can be forgotten, or robots.txt
    /// begins or ceases to be answered 503.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.forget_at.is_some_and(|at| now > at) || self.next_switch.is_some_and(|at| now >= at)
    }

    /// Publishes these sites, and hands `others` (facts of the same change) to the store. What
    /// changes the log is announced and committed first; another change waits for nothing. Returns
    /// the snapshot that requests see from now on: of these sites, or, where the change is
    /// deferred, of those before with the present pauses of pages (see the module).
    pub fn publish(
        &mut self,
        sites: Vec<SiteEntry>,
        pauses: &Pauses,
        others: Vec<Fact>,
        now: Timestamp,
    ) -> Snapshot {
        let mut log = self.log.clone();
        let keeps = !self.store.health().is_in_memory();
        // Judged by the stored log: corrections alone do not have to wait.
        let is_publication = record(&mut log, &sites, keeps, now);
        if let Some(corrected) = &self.corrected {
            log = corrected.clone();
            record(&mut log, &sites, keeps, now);
        }
        let remembered = REMEMBERED.saturating_add(log.jumped());
        self.store.prune(Timestamp(
            now.0.saturating_sub_unsigned(remembered.as_secs()),
        ));
        let mut facts = changes(log_facts(&self.log), log_facts(&log), now);
        facts.extend(self.new_versions(&sites, now));
        facts.extend(others.iter().cloned());
        let committed = if is_publication {
            self.announce(&log, &sites)
                .and_then(|()| self.store.publish(facts).map_err(Deferral::Uncommitted))
        } else {
            // They wait for nothing.
            self.store.keep(facts);
            Ok(())
        };
        match committed {
            Ok(()) => {
                if self.deferred.take().is_some() {
                    tracing::warn!("the new policies are in force; nothing waits any more");
                }
                self.held_back.clear();
                self.log = log;
                self.corrected = None;
                for (version, bytes) in sites.iter().flat_map(known_versions) {
                    self.learned.remove(&version);
                    self.versions.insert(version, bytes);
                }
                // Before requests see it.
                for subscriber in &self.subscribers {
                    subscriber.published(&self.log, &sites);
                }
                self.generation += 1;
                self.snapshot(sites, now)
            }
            Err(error) => {
                self.store.put(others);
                self.wait(error, sites, pauses, now)
            }
        }
    }

    /// Defers these sites. Returns the snapshot in force meanwhile. If they could not be announced,
    /// it has the parts of the new sites that do not wait; if they could not be committed, the
    /// former sites; both with the present pauses of pages. It is a new generation only at the
    /// first attempt, or if it differs from that of the attempt before.
    fn wait(
        &mut self,
        why: Deferral,
        sites: Vec<SiteEntry>,
        pauses: &Pauses,
        now: Timestamp,
    ) -> Snapshot {
        let new = if matches!(why, Deferral::Unannounced(_)) {
            sites
        } else {
            Vec::new()
        };
        let has_waited = self.deferred.is_some();
        self.defer(why);
        let sites = self
            .held_back
            .meanwhile(&self.entries, &new, says_the_same, pauses, now);
        let is_same = sites.len() == self.entries.len()
            && sites.iter().zip(&self.entries).all(|(site, before)| {
                Arc::ptr_eq(&site.site, &before.site) && site.pauses == before.pauses
            });
        self.generation += u64::from(!has_waited || !is_same);
        self.snapshot(sites, now)
    }

    /// Announces to the other instances the log that is about to come into force, with the bytes of
    /// the sites' versions. Succeeds if there are no other instances.
    fn announce(&self, log: &PublicationLog, sites: &[SiteEntry]) -> Result<(), Deferral> {
        let versions: Vec<_> = sites.iter().flat_map(known_versions).collect();
        self.subscribers
            .iter()
            .try_for_each(|subscriber| subscriber.announce(log, &versions))
            .map_err(Deferral::Unannounced)
    }

    /// Records why new sites wait. Logs it at the first attempt only.
    fn defer(&mut self, why: Deferral) {
        if self.deferred.is_none() {
            match &why {
                Deferral::Uncommitted(_) if self.store.is_handed_over() => tracing::info!(
                    "the next process puts changed policies into force; this one keeps those that it has"
                ),
                Deferral::Uncommitted(error) => tracing::error!(
                    "{error}; the present policies stay in force until it can be written, for some 20 seconds at most"
                ),
                Deferral::Unannounced(error) => tracing::error!(
                    "the other instances cannot be told of a new robots.txt: {error}; the present robots.txt stays in force \
                     until the store takes it"
                ),
            }
        }
        self.deferred = Some(why);
    }

    /// The facts that store the bytes of the sites' versions. Leaves out versions that the store
    /// has; those learned from other instances it does not have.
    fn new_versions(&self, sites: &[SiteEntry], now: Timestamp) -> Vec<Fact> {
        let mut new = Vec::new();
        for (version, bytes) in sites.iter().flat_map(known_versions) {
            if !self.versions.contains(version) || self.learned.contains(&version) {
                let file = facts::Version { id: version, bytes };
                new.push(Fact::set(now, file));
            }
        }
        new
    }

    /// Makes these sites those in force: the snapshot of them with the histories of their hosts,
    /// from the log and from other instances. Also sets when each site's version came into force,
    /// forgets versions that nobody may use any more, and computes when the next change by the
    /// clock is due.
    fn snapshot(&mut self, mut entries: Vec<SiteEntry>, now: Timestamp) -> Snapshot {
        self.entries = entries.clone();
        let horizon = Horizon {
            longest: longest_cached(&entries),
            now,
        };
        self.forget_versions(&entries, horizon);
        let known = self.log.histories_beside(
            &self.others,
            &mut self.versions,
            Registry::builtin(),
            horizon,
        );
        for entry in &mut entries {
            entry.since = self
                .log
                .in_force_since(&name_in_log(&entry.site))
                .unwrap_or(entry.since);
        }
        let superseded = known.iter().flat_map(|(_, history)| {
            history
                .superseded
                .iter()
                .map(|held| held.superseded_at)
                .chain(history.unknown_until)
        });
        let first = superseded.min();
        self.forget_at =
            first.map(|first| first.plus(horizon.longest.saturating_add(self.log.jumped())));
        let snapshot =
            Snapshot::new(entries, self.generation).with_histories(HostHistories::new(known), now);
        self.next_switch = snapshot.next_switch_of_robots_txt();
        snapshot
    }

    /// Drops the bytes of versions that no crawler may use any more: those that are neither in
    /// force nor in this log or one of other instances since the horizon.
    fn forget_versions(&mut self, entries: &[SiteEntry], horizon: Horizon) {
        let since = self.log.cached_since(horizon.longest, horizon.now);
        let mut wanted: BTreeSet<Version> = self.log.versions_since(since);
        wanted.extend(entries.iter().map(|entry| entry.site.robots_txt.version));
        wanted.extend(
            self.others
                .iter()
                .flat_map(|other| other.versions_since(since)),
        );
        self.versions.keep_only(&wanted);
        self.learned.retain(|version| wanted.contains(version));
    }
}

/// Whether two versions of a site publish the same robots.txt, both or neither as 503, and tell
/// crawlers apart by the same names.
fn says_the_same(before: &SiteEntry, new: &SiteEntry) -> bool {
    before.site.robots_txt.version == new.site.robots_txt.version
        && before.robots_txt.is_unavailable() == new.robots_txt.is_unavailable()
        && identities(&before.site) == identities(&new.site)
}

/// The version of a site with its bytes, and, if the operator declares one, the version that the
/// site served before crawlgate.
fn known_versions(entry: &SiteEntry) -> impl Iterator<Item = VersionFile> {
    let file = &entry.site.robots_txt;
    let before = entry
        .site
        .previous
        .as_ref()
        .and_then(DeclaredPrevious::bytes);
    [(file.version, file.body.clone())]
        .into_iter()
        .chain(before.map(|bytes| (Version::of(bytes), bytes.clone())))
}

/// What the site declares of the time before crawlgate (`robots.previous`).
fn declared(site: &Site) -> Option<Declared> {
    site.previous.as_ref().map(|previous| match previous {
        DeclaredPrevious::File(bytes) => Declared::Version(Version::of(bytes)),
        DeclaredPrevious::Origin(bytes) => {
            Declared::Origin(bytes.as_ref().map(|bytes| Version::of(bytes)))
        }
    })
}

/// Records in the log what is to be published, and returns whether the log changes: by what a site
/// publishes, its hosts, how it tells crawlers apart, whether it changes pages, or what it
/// declares. With `keeps` false nothing outlasts the process: each start looks like the first one,
/// so what sites declare of the time before crawlgate is left out.
fn record(log: &mut PublicationLog, entries: &[SiteEntry], keeps: bool, now: Timestamp) -> bool {
    let names: Vec<String> = entries
        .iter()
        .map(|entry| name_in_log(&entry.site))
        .collect();
    let current = entries.iter().zip(&names).map(|(entry, name)| Current {
        site: name,
        hosts: entry
            .site
            .policy
            .hosts
            .iter()
            .map(|host| &host.value)
            .collect(),
        published: if entry.robots_txt.is_unavailable() {
            Published::Unavailable
        } else {
            Published::Version(entry.site.robots_txt.version)
        },
        identities: identities(&entry.site),
        tells: tells(entry, now),
        declared: declared(&entry.site).filter(|_| keeps),
    });
    log.record(&current.collect::<Vec<_>>(), now)
}

/// A digest (64 bits) of the names by which crawlers are told apart on a site: of the registry, of
/// the site's tokens, and of the crawlers that its policy describes. If it changes, what was served
/// to a crawler may have been recorded under another name.
fn identities(site: &Site) -> u64 {
    let mut digest = Sha256::new();
    for crawler in Registry::builtin().crawlers() {
        for text in crawler
            .markers
            .iter()
            .chain([&crawler.id])
            .chain(&crawler.shares_cache)
        {
            digest.update(text.as_bytes());
            digest.update([0]);
        }
    }
    for token in site.tokens.tokens() {
        digest.update(token.as_bytes());
        digest.update([1]);
    }
    for own in &site.policy.crawlers {
        for text in own.user_agent.iter().chain([&own.token]) {
            digest.update(text.value.as_bytes());
            digest.update([2]);
        }
    }
    digest
        .finalize()
        .iter()
        .take(8)
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Whether the policy has rules for tags or HTML, or takes the origin's tags away, or whether the
/// tags of every page changed within 30 days. A 304 would hide such a change from the crawler.
fn tells(entry: &SiteEntry, now: Timestamp) -> bool {
    let site = &entry.site;
    site.html.is_some()
        || site.tags.strips()
        || site.tags.identities().next().is_some()
        || entry
            .tag_ages
            .everywhere
            .is_some_and(|changed| now.since(changed) < SiteEntry::TAGS_NEW_FOR)
}

/// The longest time that a crawler may use a copy of any of these sites: the longer of the site's
/// grace and the longest cache of a known crawler, the cache in front (`behind_cache`), and an hour
/// for a slow answer. Without sites only the longest cache of a known crawler.
pub fn longest_cached(entries: &[SiteEntry]) -> Duration {
    let longest = Registry::builtin().longest_robots_cache();
    let each = entries.iter().map(|SiteEntry { site, .. }| {
        site.grace.max(longest) + site.behind_cache.unwrap_or_default() + SLOWEST_ANSWER
    });
    each.max().unwrap_or(longest)
}
