//! [`Publisher`] puts sites into force. It keeps the log of what each host published as robots.txt,
//! and makes the snapshot (all compiled sites at one moment) by which requests are judged.
//!
//! Three kinds of change do not take effect at once: a new robots.txt (or a 503 in its place), a
//! host that moves to another site, and a change of how crawlers are told apart. Such a change is
//! first announced to other instances of crawlgate ([`PublicationSubscriber`]) and committed to the
//! state directory. Otherwise crawlgate would not know after a crash what crawlers were served, and
//! would report crawlers that obeyed.
//!
//! If the announcement or the commit fails, the change is deferred ([`Publisher::deferred`] is
//! `Some`): the former robots.txt stays in force, and crawlgate tries again every second. A pause
//! of pages only, from the command line, is not deferred; one that a new policy plans waits with it. How long a change waits depends on the reason
//! ([`Deferral`]):
//!
//! - `Uncommitted`: the state directory cannot be written. After some 20 seconds the change takes
//!   effect all the same: the next start will notice anyway that a part of the history is missing.
//!   In an upgrade, a process that passed its state directory to the next process waits until the
//!   directory comes back.
//! - `Unannounced`: the store that the instances share cannot be reached. The change waits until
//!   the store can be reached. Meanwhile sites with the same robots.txt and hosts change
//!   (`interim_sites`).

use super::default_sites::log_name;
use super::interim_sites::interim_entries;
use super::log_facts::{log_from_facts, log_to_facts, versions_from_facts};
use super::pauses::Pauses;
use super::same_robots::identity_digest;
use crate::crawlers::Registry;
use crate::facts::{self, Fact, diff_facts};
use crate::policy::publication_history::PublicationHistories;
use crate::policy::site::PreviousRobotsTxt;
use crate::policy::{RobotsVersionId, Site, SiteEntry, Snapshot};
use crate::publications::{
    DeclaredPreviousRobots, HistoryHorizon, PeerPublicationLogs, PublicationLog, PublishedRobots,
    PublishedSite, VersionFile, VersionStore,
};
use crate::state::{RestoredState, StateError, StateStore};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use Deferral::*;

/// The longest time for which a slow client may still receive a superseded version.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(3_600);

/// How long the store keeps publications: no crawler uses a copy for longer.
const LOG_RETENTION: Duration = Duration::from_secs(31 * 86_400);

/// Gets every publication, like the exchange with other instances and the evidence log.
pub trait PublicationSubscriber: Send {
    /// Announces the log that is about to come into force, with its files.
    ///
    /// # Errors
    /// The log cannot be announced, and must not take effect.
    fn announce(&self, _log: &PublicationLog, _files: &[VersionFile]) -> Result<(), AnnounceError> {
        Ok(())
    }

    /// Called when these sites and this log come into force; for a new subscriber at once. It must
    /// not wait for anything.
    fn published(&self, log: &PublicationLog, sites: &[SiteEntry]);
}

/// Why a publication cannot be announced to other instances.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AnnounceError {
    /// This instance has left the exchange.
    #[error("this instance has left the store")]
    Left,
    /// The store has not answered an earlier command.
    #[error("the store has not answered the previous command yet")]
    Busy,
    /// The store failed, for this reason.
    #[error("{0}")]
    Store(String),
}

/// Why new sites are not in force yet.
#[derive(Clone)]
pub enum Deferral {
    /// It cannot be committed.
    Uncommitted(StateError),
    /// It cannot be announced to other instances.
    Unannounced(AnnounceError),
}

/// Publishes sites, and keeps the log of publications.
pub struct Publisher {
    store: StateStore,
    /// The log as it is stored.
    pub log: PublicationLog,
    /// The log with corrections (gaps, jumps of the clock) that are not stored yet.
    corrected_log: Option<PublicationLog>,
    /// The bytes of versions that were published here or by other instances.
    pub versions: VersionStore,
    /// The versions that only other instances published. They are not stored.
    peer_versions: BTreeSet<RobotsVersionId>,
    /// The sites in force.
    entries: Vec<SiteEntry>,
    generation: u64,
    next_expiry: Option<Timestamp>,
    next_switch: Option<Timestamp>,
    /// Why new sites are not in force yet.
    pub deferred: Option<Deferral>,
    subscribers: Vec<Box<dyn PublicationSubscriber>>,
    peer_logs: Vec<PublicationLog>,
}

impl Publisher {
    /// A publisher with the log of an earlier process. After a gap (not `is_continued`) another
    /// registry may have been in use, and other servers may have answered. If facts were lost, the
    /// log is incomplete. Both go into the corrected log, which replaces `log` with the first
    /// publication.
    pub fn new(store: StateStore, restored: &RestoredState, now: Timestamp) -> Publisher {
        let log = log_from_facts(&restored.facts);
        let mut corrected_log = log.clone();
        // After a gap another registry may have been in use.
        if !restored.is_continued {
            corrected_log.reset_identities();
            corrected_log.gaps.broken_at = Some(now);
        }
        if restored.has_lost_facts() {
            corrected_log.gaps.lost_at = Some(now);
        }
        Publisher {
            store,
            log,
            corrected_log: Some(corrected_log),
            versions: versions_from_facts(&restored.facts),
            peer_versions: BTreeSet::new(),
            entries: Vec::new(),
            generation: 0,
            next_expiry: None,
            next_switch: None,
            deferred: None,
            subscribers: Vec::new(),
            peer_logs: Vec::new(),
        }
    }

    /// Adds a subscriber. It gets the sites in force at once.
    pub fn subscribe(&mut self, subscriber: Box<dyn PublicationSubscriber>) {
        subscriber.published(&self.log, &self.entries);
        self.subscribers.push(subscriber);
    }

    /// Call after the clock was set by so many seconds (negative: back, 0: other servers may have
    /// answered until now). Records a gap and the step in the corrected log; the next publication
    /// stores it.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        let mut log = self
            .corrected_log
            .take()
            .unwrap_or_else(|| self.log.clone());
        log.gaps.broken_at = Some(now);
        log.apply_clock_step(by, now);
        self.corrected_log = Some(log);
    }

    /// Replaces the logs of other instances, and keeps the bytes of new versions. Publishes nothing.
    pub fn set_peer_logs(&mut self, peers: PeerPublicationLogs) {
        self.peer_logs = peers.logs;
        for (version, bytes) in peers.files {
            if !self.versions.contains(version) {
                self.peer_versions.insert(version);
                self.versions.insert(version, bytes);
            }
        }
    }

    /// Whether a change by the clock is due: a superseded version expires, or robots.txt begins or
    /// ceases to be answered 503.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_expiry.is_some_and(|at| now > at) || self.next_switch.is_some_and(|at| now >= at)
    }

    /// Publishes these sites, and stores `other_facts` of the same change. A change of the log is
    /// announced and committed first; any other change waits for nothing. Returns the snapshot that
    /// requests see from now on: of these sites or, if the change is deferred, of the former ones
    /// with the present pauses of pages (see the module).
    pub fn publish(
        &mut self,
        sites: Vec<SiteEntry>,
        pauses: &Pauses,
        other_facts: Vec<Fact>,
        now: Timestamp,
    ) -> Snapshot {
        let mut log = self.log.clone();
        let is_stored = !self.store.health().is_in_memory();
        // Compared with the stored log: corrections alone do not have to wait.
        let is_publication = record_publications(&mut log, &sites, is_stored, now);
        if let Some(corrected_log) = &self.corrected_log {
            log = corrected_log.clone();
            record_publications(&mut log, &sites, is_stored, now);
        }
        let restored = LOG_RETENTION.saturating_add(log.total_jump());
        self.store
            .prune(Timestamp(now.0.saturating_sub_unsigned(restored.as_secs())));
        let mut facts = diff_facts(log_to_facts(&self.log), log_to_facts(&log), now);
        facts.extend(self.version_facts(&sites, now));
        facts.extend(other_facts.iter().cloned());
        let committed = if is_publication {
            self.announce(&log, &sites)
                .and_then(|()| self.store.publish(facts).map_err(Uncommitted))
        } else {
            // These facts wait for nothing.
            self.store.commit_or_queue(facts);
            Ok(())
        };
        match committed {
            Ok(()) => {
                if self.deferred.take().is_some() {
                    tracing::info!("the new policies are in force");
                }
                self.log = log;
                self.corrected_log = None;
                for (version, bytes) in sites.iter().flat_map(site_versions) {
                    self.peer_versions.remove(&version);
                    self.versions.insert(version, bytes);
                }
                // Before requests see it.
                for subscriber in &self.subscribers {
                    subscriber.published(&self.log, &sites);
                }
                self.generation += 1;
                self.build_snapshot(sites, now)
            }
            Err(error) => {
                self.store.put(other_facts);
                self.defer_sites(error, sites, pauses, now)
            }
        }
    }

    /// Defers these sites, and returns the snapshot in force meanwhile: of the former sites with
    /// the present pauses of pages. If the new sites could not be announced, those of them with the
    /// same robots.txt and hosts are in it. The generation increases at the first attempt, and when
    /// the sites change.
    fn defer_sites(
        &mut self,
        why: Deferral,
        sites: Vec<SiteEntry>,
        pauses: &Pauses,
        now: Timestamp,
    ) -> Snapshot {
        let new = if matches!(why, Unannounced(_)) {
            sites
        } else {
            Vec::new()
        };
        let has_waited = self.deferred.is_some();
        self.record_deferral(why);
        let sites = interim_entries(&self.entries, &new, pauses, now);
        let is_same = sites.len() == self.entries.len()
            && sites.iter().zip(&self.entries).all(|(site, before)| {
                Arc::ptr_eq(&site.site, &before.site) && site.pauses == before.pauses
            });
        self.generation += u64::from(!has_waited || !is_same);
        self.build_snapshot(sites, now)
    }

    /// Announces the log that is about to come into force to all subscribers, with the bytes of the
    /// sites' versions.
    fn announce(&self, log: &PublicationLog, sites: &[SiteEntry]) -> Result<(), Deferral> {
        let versions: Vec<_> = sites.iter().flat_map(site_versions).collect();
        self.subscribers
            .iter()
            .try_for_each(|subscriber| subscriber.announce(log, &versions))
            .map_err(Unannounced)
    }

    /// Records why new sites are deferred. Logs it at the first attempt only.
    fn record_deferral(&mut self, why: Deferral) {
        if self.deferred.is_none() {
            match &why {
                Uncommitted(_) if self.store.is_handed_over() => tracing::info!(
                    "the new process brings changed policies into force; this one keeps the current ones"
                ),
                Uncommitted(error) => tracing::error!(
                    "{error}; changed policies wait until it can be written, for about 20 seconds at most"
                ),
                Unannounced(error) => tracing::error!(
                    "cannot announce a new robots.txt to the other instances: {error}; it waits until \
                     the store accepts it"
                ),
            }
        }
        self.deferred = Some(why);
    }

    /// The facts that store the bytes of the sites' versions. Leaves out versions that are stored
    /// already.
    fn version_facts(&self, sites: &[SiteEntry], now: Timestamp) -> Vec<Fact> {
        let mut new = Vec::new();
        for (version, bytes) in sites.iter().flat_map(site_versions) {
            if !self.versions.contains(version) || self.peer_versions.contains(&version) {
                new.push(Fact::set(now, facts::VersionBytes { id: version, bytes }));
            }
        }
        new
    }

    /// Builds the snapshot of these sites with the histories of their hosts, from this log and those
    /// of other instances. Sets since when each version is in force, removes unused versions, and
    /// computes when the next change by the clock is due.
    fn build_snapshot(&mut self, mut entries: Vec<SiteEntry>, now: Timestamp) -> Snapshot {
        self.entries = entries.clone();
        let horizon = HistoryHorizon {
            max_cache_time: max_cache_time(&entries),
            now,
        };
        self.remove_unused_versions(&entries, horizon);
        let known = self.log.build_histories(
            &self.peer_logs,
            &mut self.versions,
            Registry::builtin(),
            horizon,
        );
        for entry in &mut entries {
            entry.since = self
                .log
                .in_force_since(&log_name(&entry.site))
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
        self.next_expiry = first
            .map(|first| first.plus(horizon.max_cache_time.saturating_add(self.log.total_jump())));
        let snapshot = Snapshot::new(entries, self.generation)
            .with_histories(PublicationHistories::new(known), now);
        self.next_switch = snapshot.next_robots_txt_switch();
        snapshot
    }

    /// Removes the bytes of versions that are neither in force nor in any log since the horizon.
    fn remove_unused_versions(&mut self, entries: &[SiteEntry], horizon: HistoryHorizon) {
        let since = self.log.cached_since(horizon.max_cache_time, horizon.now);
        let mut wanted: BTreeSet<RobotsVersionId> = self.log.versions_since(since);
        wanted.extend(entries.iter().map(|entry| entry.site.robots_txt.version));
        wanted.extend(
            self.peer_logs
                .iter()
                .flat_map(|other| other.versions_since(since)),
        );
        self.versions.retain_only(&wanted);
        self.peer_versions
            .retain(|version| wanted.contains(version));
    }
}

/// The version of a site, and the declared version before crawlgate, with their bytes.
fn site_versions(entry: &SiteEntry) -> impl Iterator<Item = VersionFile> {
    let file = &entry.site.robots_txt;
    let before = entry
        .site
        .previous
        .as_ref()
        .and_then(PreviousRobotsTxt::bytes);
    [(file.version, file.body.clone())]
        .into_iter()
        .chain(before.map(|bytes| (RobotsVersionId::from_body(bytes), bytes.clone())))
}

/// What the policy declares about the time before crawlgate (`robots.previous`).
fn declared_robots(site: &Site) -> Option<DeclaredPreviousRobots> {
    site.previous.as_ref().map(|previous| match previous {
        PreviousRobotsTxt::File(bytes) => {
            DeclaredPreviousRobots::Version(RobotsVersionId::from_body(bytes))
        }
        PreviousRobotsTxt::Origin(bytes) => DeclaredPreviousRobots::Origin(
            bytes
                .as_ref()
                .map(|bytes| RobotsVersionId::from_body(bytes)),
        ),
    })
}

/// Records in the log what these sites publish, and returns whether the log changed. Without
/// `is_stored` nothing outlasts the process and every start looks like the first one, so
/// declarations about the time before crawlgate are left out.
fn record_publications(
    log: &mut PublicationLog,
    entries: &[SiteEntry],
    is_stored: bool,
    now: Timestamp,
) -> bool {
    let names: Vec<String> = entries.iter().map(|entry| log_name(&entry.site)).collect();
    let current = entries
        .iter()
        .zip(&names)
        .map(|(entry, name)| PublishedSite {
            site: name,
            hosts: entry
                .site
                .policy
                .hosts
                .iter()
                .map(|host| &host.value)
                .collect(),
            published: if entry.robots_txt.is_unavailable() {
                PublishedRobots::Unavailable
            } else {
                PublishedRobots::Version(entry.site.robots_txt.version)
            },
            identities: identity_digest(&entry.site),
            has_page_tags: has_page_tags(entry, now),
            declared: declared_robots(&entry.site).filter(|_| is_stored),
        });
    log.record(&current.collect::<Vec<_>>(), now)
}

/// Whether the policy has rules for tags or HTML, or removes the origin's tags, or the tags of every
/// page changed within 30 days. A 304 would hide such a change from the crawler.
fn has_page_tags(entry: &SiteEntry, now: Timestamp) -> bool {
    let site = &entry.site;
    site.html.is_some()
        || site.strips_origin_tags()
        || site.tags.rule_ids().next().is_some()
        || entry
            .tag_change_times
            .everywhere
            .is_some_and(|changed| now.since(changed) < SiteEntry::NEW_TAGS_PERIOD)
}

/// How long a crawler may use a copy of any of these sites, at most: the longer of the site's grace
/// and the longest cache of a known crawler, plus the cache in front (`behind_cache`), plus an hour
/// for a slow client.
pub fn max_cache_time(entries: &[SiteEntry]) -> Duration {
    let longest = Registry::builtin().max_robots_cache();
    let times = entries.iter().map(|SiteEntry { site, .. }| {
        site.grace.max(longest) + site.behind_cache.unwrap_or_default() + MAX_RESPONSE_TIME
    });
    times.max().unwrap_or(longest)
}
