//! [`OwnPublications`]: the publications of this instance since its start (which robots.txt a site
//! served, and from when to when). It also keeps track of which publications are already in the
//! store that several crawlgate instances share. The start of a publication is written to the store
//! before the publication takes effect. The end of a publication is written after the publication
//! has ended.
//!
//! Each record of a publication is in one of these states:
//! - new: it was not written yet.
//! - attempted: a write was begun and has not succeeded. Other instances may know of the
//!   publication, although it may never take effect.
//! - written: a write succeeded.

use super::codec::{decode_fact, encode_fact, encode_file, writer_key};
use super::{SharedFact, StoreClockOffset};
use crate::facts::AnyFact;
use crate::policy::RobotsVersionId;
use crate::publications::{ChangePoint, Publication, PublicationLog, VersionFile};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The publications of this run, and which records of them are in the store, by key.
#[derive(Default)]
pub struct OwnPublications {
    run: String,
    log: PublicationLog,
    /// The bytes of own versions and those of peers, to write them again if the store loses them.
    pub files: BTreeMap<RobotsVersionId, Arc<[u8]>>,
    written: BTreeMap<String, AnyFact>,
    /// Records that peers may know although they never took effect.
    attempted: BTreeMap<String, AnyFact>,
    /// Until when a publication may have been served without a report, by key.
    unreported: BTreeMap<String, Timestamp>,
    /// Whether there may be something to write.
    pub has_changes: bool,
    /// The time of the last written record, in seconds of the store's clock.
    last_fact_time: i64,
}

/// What is to be written to the store.
#[derive(Default)]
pub struct PublicationChanges {
    /// New or changed records.
    pub facts: Vec<SharedFact>,
    /// Keys of records to delete.
    pub forget: Vec<String>,
}

impl OwnPublications {
    /// A log of which nothing is written yet.
    pub fn new(run: String, log: PublicationLog, files: Vec<VersionFile>) -> OwnPublications {
        OwnPublications {
            run,
            log,
            files: files.into_iter().collect(),
            has_changes: true,
            last_fact_time: i64::MIN,
            ..OwnPublications::default()
        }
    }

    /// The time for records that are written now, in seconds of the store's clock. It is later than
    /// all earlier ones, if necessary in the future: a publication may begin and end within a
    /// second, or the clock may be set back, and of two facts with one key the later one counts.
    fn next_fact_time(&mut self, clocks: StoreClockOffset) -> i64 {
        self.last_fact_time = clocks.now().max(self.last_fact_time.saturating_add(1));
        self.last_fact_time
    }

    /// Records that publications in force at `since` or later may have been served to any crawler
    /// until `now` without a report. Does nothing if `since` is `None`.
    pub fn record_unreported_publications(&mut self, since: Option<Timestamp>, now: Timestamp) {
        let Some(since) = since else { return };
        for publication in &self.log.publications {
            if publication.span.until.is_none_or(|until| until.at >= since) {
                let key = writer_key(&self.run, &publication.clone().into());
                self.unreported.insert(key, now);
            }
        }
        self.has_changes = true;
    }

    /// Replaces the log by the one that is in force now.
    pub fn set_log(&mut self, log: &PublicationLog) {
        self.log = log.clone();
        self.has_changes = true;
    }

    /// Removes the bytes of versions that neither this run nor peers (`peer_versions`) published
    /// lately. Returns the keys of these files in the store, to be deleted there.
    pub fn remove_unused_files(
        &mut self,
        peer_versions: &BTreeSet<RobotsVersionId>,
    ) -> Vec<String> {
        let known = self.written.values().chain(self.attempted.values());
        let mut wanted = self.log.versions_since(Timestamp(i64::MIN));
        wanted.extend(known.filter_map(published_version));
        wanted.extend(peer_versions);
        let mut over = Vec::new();
        self.files.retain(|version, _| {
            let is_wanted = wanted.contains(version);
            if !is_wanted {
                over.push(file_key(*version));
            }
            is_wanted
        });
        over
    }

    /// The records of a log by their keys in the store. Publications that may have been served
    /// without a report have `unreported_until`.
    fn records(&self, log: &PublicationLog) -> BTreeMap<String, AnyFact> {
        let mut known = BTreeMap::new();
        for publication in &log.publications {
            let key = writer_key(&self.run, &publication.clone().into());
            let publication = Publication {
                unreported_until: self.unreported.get(&key).copied(),
                ..publication.clone()
            };
            known.insert(key, publication.into());
        }
        for tenure in &log.tenures {
            let tenure = AnyFact::from(tenure.clone());
            known.insert(writer_key(&self.run, &tenure), tenure);
        }
        known
    }

    /// Returns all records for a store that has none. From now on they count as written.
    pub fn encode_all(&mut self, clocks: StoreClockOffset) -> Vec<SharedFact> {
        self.written = self.records(&self.log);
        self.attempted
            .retain(|key, _| !self.written.contains_key(key));
        let at = self.next_fact_time(clocks);
        self.written
            .values()
            .map(|known| encode_fact(&self.run, known, at, clocks))
            .collect()
    }

    /// Returns all known files as facts, also those of peers.
    pub fn encode_all_files(&self, at: i64) -> Vec<SharedFact> {
        self.files
            .iter()
            .map(|(version, bytes)| encode_file(*version, bytes.clone(), at))
            .collect()
    }

    /// Returns the files among these that are not known here as facts. Peers do not have them
    /// either.
    pub fn encode_new_files(&self, files: &[VersionFile], at: i64) -> Vec<SharedFact> {
        files
            .iter()
            .filter(|(version, _)| !self.files.contains_key(version))
            .map(|(version, bytes)| encode_file(*version, bytes.clone(), at))
            .collect()
    }

    /// Returns the open records of a log that are not written yet, as facts: those that are about
    /// to take effect. `OwnPublications::mark_written` records that they were written.
    pub fn encode_openings(
        &mut self,
        log: &PublicationLog,
        clocks: StoreClockOffset,
    ) -> Vec<SharedFact> {
        let at = self.next_fact_time(clocks);
        self.records(log)
            .into_iter()
            .filter(|(key, known)| is_open(known) && self.written.get(key) != Some(known))
            .map(|(_, known)| encode_fact(&self.run, &known, at, clocks))
            .collect()
    }

    /// Records that peers may know these facts from now on, even if the write fails.
    pub fn mark_attempted(&mut self, facts: &[SharedFact]) {
        for fact in facts {
            if let Some((_, known)) =
                decode_fact(&fact.key, &fact.value, StoreClockOffset::default())
            {
                self.attempted.insert(fact.key.clone(), known);
            }
        }
        self.has_changes = true;
    }

    /// Records that these facts of a log, and these files, were written.
    pub fn mark_written(
        &mut self,
        facts: Vec<SharedFact>,
        log: &PublicationLog,
        files: &[VersionFile],
    ) {
        let mut known = self.records(log);
        for fact in facts {
            if let Some(known) = known.remove(&fact.key) {
                self.attempted.remove(&fact.key);
                self.written.insert(fact.key, known);
            }
        }
        self.files.extend(files.iter().cloned());
    }

    /// Returns what is to be written: records that are new or have ended, announced records that
    /// never took effect, and the keys of expired ones. They count as written.
    pub fn take_changes(&mut self, clocks: StoreClockOffset) -> PublicationChanges {
        if !std::mem::take(&mut self.has_changes) {
            return PublicationChanges::default();
        }
        let mut changes = PublicationChanges::default();
        let at = self.next_fact_time(clocks);
        let now = self.records(&self.log);
        for (key, known) in &now {
            self.attempted.remove(key);
            if self.written.get(key) != Some(known) {
                changes
                    .facts
                    .push(encode_fact(&self.run, known, at, clocks));
            }
        }
        let before = std::mem::take(&mut self.written)
            .into_iter()
            .chain(std::mem::take(&mut self.attempted));
        for (key, mut known) in before.filter(|(key, _)| !now.contains_key(key)) {
            if is_open(&known) {
                // It was announced and did not take effect. Peers may not even have its file.
                cancel_record(&mut known, clocks.to_own(clocks.now()));
                changes
                    .facts
                    .push(encode_fact(&self.run, &known, at, clocks));
            } else {
                self.unreported.remove(&key);
                changes.forget.push(key);
            }
        }
        self.written = now;
        changes
    }
}

/// The key of a version's file in the store.
pub fn file_key(version: RobotsVersionId) -> String {
    encode_file(version, Arc::default(), 0).key
}

/// The version of a publication, if it is known.
pub fn published_version(fact: &AnyFact) -> Option<RobotsVersionId> {
    match fact {
        AnyFact::Publication(publication) => publication.published.version(),
        _ => None,
    }
}

/// Whether a publication or a tenure has no end yet.
fn is_open(fact: &AnyFact) -> bool {
    match fact {
        AnyFact::Publication(publication) => publication.span.until.is_none(),
        AnyFact::HostTenure(tenure) => tenure.span.until.is_none(),
        _ => false,
    }
}

/// Cancels a publication or a tenure: it ends with the change that it began with, so that it counts
/// for no moment.
fn cancel_record(fact: &mut AnyFact, at: Timestamp) {
    let span = match fact {
        AnyFact::Publication(publication) => &mut publication.span,
        AnyFact::HostTenure(tenure) => &mut tenure.span,
        _ => return,
    };
    span.until = Some(ChangePoint {
        number: span.since.number,
        at,
    });
}

#[cfg(test)]
mod tests {
    use super::super::MemberState;
    use super::super::fact::MergedFacts;
    use super::super::members::ExchangeMembers;
    use super::*;
    use crate::crawlers::Registry;
    use crate::publications::{HistoryHorizon, PublishedRobots, PublishedSite, VersionStore};
    use std::time::Duration;

    fn files() -> Vec<VersionFile> {
        let files = ["one", "two", "three"].map(|text| Arc::from(text.as_bytes()));
        files
            .map(|bytes: Arc<[u8]>| (RobotsVersionId::from_body(&bytes), bytes))
            .into()
    }

    /// A log in which the site publishes `version` since `at`.
    fn publishing(log: &PublicationLog, version: RobotsVersionId, at: i64) -> PublicationLog {
        let mut log = log.clone();
        let current = PublishedSite {
            site: "shop",
            hosts: Vec::new(),
            published: PublishedRobots::Version(version),
            identities: 1,
            has_page_tags: false,
            declared: None,
        };
        log.record(&[current], Timestamp(at));
        log
    }

    fn add_facts(shared: &mut MergedFacts, facts: impl IntoIterator<Item = SharedFact>) {
        for fact in facts {
            shared.add(fact);
        }
    }

    /// Until when the rules of a peer are unknown to an instance that has these facts and files.
    fn unknown_until(shared: &MergedFacts, files: &[VersionFile]) -> Option<Timestamp> {
        let mut versions = VersionStore::default();
        files
            .iter()
            .for_each(|(version, bytes)| versions.insert(*version, bytes.clone()));
        let clocks = StoreClockOffset {
            store: 9_000,
            ahead: 0,
        };
        let here = publishing(&PublicationLog::default(), files[0].0, 1);
        let logs =
            ExchangeMembers::default()
                .publication_logs(shared, &BTreeSet::new(), clocks, |_| MemberState::Present);
        assert_eq!(logs.len(), 1);
        let horizon = HistoryHorizon {
            max_cache_time: Duration::from_secs(86_400),
            now: Timestamp(9),
        };
        let histories = here.build_histories(&logs, &mut versions, Registry::builtin(), horizon);
        histories
            .iter()
            .filter_map(|(_, history)| history.unknown_until)
            .max()
    }

    #[test]
    fn withdrawn_publication_leaves_no_gap_for_peers() {
        let files = files();
        let log = publishing(&PublicationLog::default(), files[0].0, 1);
        let clocks = StoreClockOffset {
            store: 5_000,
            ahead: 0,
        };
        let mut own = OwnPublications::new("a.1".into(), log.clone(), files[..1].to_vec());
        let mut shared = MergedFacts::default();
        add_facts(&mut shared, own.take_changes(clocks).facts);
        // The store is away when it is to be written, and then it is withdrawn: no peer has its
        // file.
        let attempted = own.encode_openings(&publishing(&log, files[1].0, 5), clocks);
        assert_eq!(attempted.len(), 1);
        own.mark_attempted(&attempted);
        let withdrawn = own.take_changes(clocks).facts;
        assert_eq!(withdrawn.len(), 1);
        add_facts(&mut shared, withdrawn);
        assert_eq!(unknown_until(&shared, &files[..1]), None);
    }

    #[test]
    fn later_record_within_a_second_counts() {
        let files = files();
        let log = publishing(&PublicationLog::default(), files[0].0, 1);
        let clocks = StoreClockOffset {
            store: 5_000,
            ahead: 0,
        };
        // One of the two versions has the greater id.
        for (first, second) in [(1, 2), (2, 1)] {
            let mut own = OwnPublications::new("a.1".into(), log.clone(), files[..1].to_vec());
            let mut all = own.take_changes(clocks).facts;
            let attempted = own.encode_openings(&publishing(&log, files[first].0, 5), clocks);
            own.mark_attempted(&attempted);
            all.extend(attempted);
            all.extend(own.take_changes(clocks).facts);
            // A clock that was corrected makes no difference.
            let clocks = StoreClockOffset {
                store: 3_000,
                ahead: 0,
            };
            let next = publishing(&log, files[second].0, 5);
            let opened = own.encode_openings(&next, clocks);
            own.mark_written(opened.clone(), &next, &files);
            own.set_log(&next);
            all.extend(opened.clone());
            let closed = own.take_changes(clocks).facts;
            assert_eq!((opened.len(), closed.len()), (1, 1));
            all.extend(closed);
            let (mut shared, mut backwards) = (MergedFacts::default(), MergedFacts::default());
            add_facts(&mut shared, all.iter().cloned());
            add_facts(&mut backwards, all.iter().rev().cloned());
            assert_eq!(shared, backwards);
            let open: Vec<&str> = shared
                .iter()
                .filter(|fact| fact.key.starts_with("publications\n"))
                .map(|fact| fact.value.as_str())
                .filter(|value| value.ends_with(",null,null,null]"))
                .collect();
            assert_eq!(open.len(), 1);
            assert!(open[0].contains(&files[second].0.to_string()), "{open:?}");
        }
    }

    #[test]
    fn unpublished_files_are_removed() {
        let files = files();
        let [one, two, three] = [0, 1, 2].map(|place: usize| files[place].0);
        let log = publishing(&PublicationLog::default(), one, 1);
        let mut own = OwnPublications::new("a.1".into(), log, files);
        let peer_versions = BTreeSet::from([two]);
        assert_eq!(own.remove_unused_files(&peer_versions), [file_key(three)]);
        assert_eq!(own.remove_unused_files(&peer_versions), [""; 0]);
        assert!(own.files.len() == 2 && !own.files.contains_key(&three));
        assert_eq!(own.remove_unused_files(&BTreeSet::new()), [file_key(two)]);
    }
}
