//! [`OwnLog`]: what this process has published (which robots.txt on which host, and when), and
//! which of it other instances know. They are told of a publication before it takes effect, and of
//! its end afterwards.
//!
//! Each record of a publication is in one of these states:
//! - new: it was not written to the shared store yet.
//! - tried: a write was begun and did not succeed yet. Others may know of the publication although
//!   it may never take effect.
//! - told: a write succeeded.

use super::codec::{key_of, read, write, write_file};
use super::{Clocks, SharedFact};
use crate::facts::AnyFact;
use crate::policy::Version;
use crate::publications::{Change, Publication, PublicationLog, Span, VersionFile};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What this run publishes, beside what others were told of it.
#[derive(Default)]
pub struct OwnLog {
    run: String,
    log: PublicationLog,
    files: BTreeMap<Version, Arc<[u8]>>,
    told: BTreeMap<String, AnyFact>,
    /// What others may have been told, though it never came into force.
    tried: BTreeMap<String, AnyFact>,
    /// Until when which publications may have been served without a word of it.
    unreported: BTreeMap<String, Timestamp>,
    /// Whether others are to be told something.
    pub has_news: bool,
    /// The time of what was told last.
    told_at: i64,
}

/// What others are to be told.
#[derive(Debug, Default)]
pub struct Changes {
    /// New or changed.
    pub facts: Vec<SharedFact>,
    /// Keys of what is over.
    pub forget: Vec<String>,
}

impl OwnLog {
    /// A log of which others were told nothing yet.
    pub fn new(run: String, log: PublicationLog, files: Vec<VersionFile>) -> OwnLog {
        OwnLog {
            run,
            log,
            files: files.into_iter().collect(),
            has_news: true,
            told_at: i64::MIN,
            ..OwnLog::default()
        }
    }

    /// The time (in seconds of the store) of what is told now: later than that of all that was told
    /// before, if need be in the future. A publication may begin and end within a second, the clock
    /// may be set back in between, and of two facts with one key the later one counts.
    fn next_time(&mut self, clocks: Clocks) -> i64 {
        self.told_at = clocks.now().max(self.told_at.saturating_add(1));
        self.told_at
    }

    /// Records that the publications which were in force at `since` or later may have been served
    /// to any crawler, until now, without others being told. Does nothing without `since`.
    pub fn mark_unreported(&mut self, since: Option<Timestamp>, now: Timestamp) {
        let Some(since) = since else { return };
        for publication in &self.log.publications {
            if publication.span.until.is_none_or(|until| until.at >= since) {
                let key = key_of(&self.run, &publication.clone().into());
                self.unreported.insert(key, now);
            }
        }
        self.has_news = true;
    }

    /// Replaces the log by the one that is in force now.
    pub fn update(&mut self, log: &PublicationLog) {
        self.log = log.clone();
        self.has_news = true;
    }

    /// Whether the bytes of a version are known.
    pub fn has_file(&self, version: Version) -> bool {
        self.files.contains_key(&version)
    }

    /// A version with its bytes, if they are known.
    pub fn file(&self, version: Version) -> Option<VersionFile> {
        Some((version, self.files.get(&version)?.clone()))
    }

    /// Keeps the bytes of another instance's version. They are told again where a store starts
    /// over.
    pub fn learn(&mut self, version: Version, bytes: Arc<[u8]>) {
        // They are told again where a store starts over.
        self.files.insert(version, bytes);
    }

    /// Forgets the bytes of versions that neither this run nor others (`others`) publish or
    /// published lately. Returns the keys of these files in the store, to be deleted there.
    pub fn forget_files(&mut self, others: &BTreeSet<Version>) -> Vec<String> {
        let known = self.told.values().chain(self.tried.values());
        let mut wanted = self.log.versions_since(Timestamp(i64::MIN));
        wanted.extend(known.filter_map(version_of).chain(others.iter().copied()));
        let over = self
            .files
            .keys()
            .filter(|version| !wanted.contains(version))
            .copied()
            .map(file_key)
            .collect();
        self.files.retain(|version, _| wanted.contains(version));
        over
    }

    /// The records of a log by their keys in the store, with until when each may have been served
    /// unreported.
    fn known(&self, log: &PublicationLog) -> BTreeMap<String, AnyFact> {
        let mut known = BTreeMap::new();
        for publication in &log.publications {
            let key = key_of(&self.run, &publication.clone().into());
            let publication = Publication {
                unreported_until: self.unreported.get(&key).copied(),
                ..publication.clone()
            };
            known.insert(key, publication.into());
        }
        for tenure in &log.tenures {
            let tenure = AnyFact::from(tenure.clone());
            known.insert(key_of(&self.run, &tenure), tenure);
        }
        known
    }

    /// Everything, as it is told to a store that knows nothing. From now on it counts as told.
    pub fn all(&mut self, clocks: Clocks) -> Vec<SharedFact> {
        self.told = self.known(&self.log);
        self.tried.retain(|key, _| !self.told.contains_key(key));
        let at = self.next_time(clocks);
        self.told
            .values()
            .map(|known| write(&self.run, known, at, clocks))
            .collect()
    }

    /// All known files as facts, those of other instances too.
    pub fn all_files(&self, at: i64) -> Vec<SharedFact> {
        self.files
            .iter()
            .map(|(version, bytes)| write_file((*version, bytes.clone()), at))
            .collect()
    }

    /// The files among these that are not known here, as facts: others do not know them either.
    pub fn new_files(&self, files: &[VersionFile], at: i64) -> Vec<SharedFact> {
        let new = files
            .iter()
            .filter(|(version, _)| !self.files.contains_key(version));
        new.map(|(version, bytes)| write_file((*version, bytes.clone()), at))
            .collect()
    }

    /// What is about to come into force: the open records of a log that others were not told, as
    /// facts. They count as told only by `OwnLog::mark_told`.
    pub fn openings(&mut self, log: &PublicationLog, clocks: Clocks) -> Vec<SharedFact> {
        let at = self.next_time(clocks);
        self.known(log)
            .into_iter()
            .filter(|(key, known)| is_open(known) && self.told.get(key) != Some(known))
            .map(|(_, known)| write(&self.run, &known, at, clocks))
            .collect()
    }

    /// Records that others may know these facts from now on, even if the write fails.
    pub fn try_to_tell(&mut self, facts: &[SharedFact]) {
        for fact in facts {
            if let Some((_, known)) = read(&fact.key, &fact.value, Clocks::default()) {
                self.tried.insert(fact.key.clone(), known);
            }
        }
        self.has_news = true;
    }

    /// Records that others were told the records of this log that these facts tell, and these
    /// files.
    pub fn mark_told(
        &mut self,
        facts: Vec<SharedFact>,
        log: &PublicationLog,
        files: &[VersionFile],
    ) {
        let mut known = self.known(log);
        for fact in facts {
            if let Some(known) = known.remove(&fact.key) {
                self.tried.remove(&fact.key);
                self.told.insert(fact.key, known);
            }
        }
        self.files.extend(files.iter().cloned());
    }

    /// What others are to be told of the log in force: records that are new or have ended, ones
    /// that were announced and never came into force, and the keys of those that are over. Counts
    /// as told. Empty if there are no news.
    pub fn changes(&mut self, clocks: Clocks) -> Changes {
        if !std::mem::take(&mut self.has_news) {
            return Changes::default();
        }
        let mut changes = Changes::default();
        let at = self.next_time(clocks);
        let now = self.known(&self.log);
        for (key, known) in &now {
            self.tried.remove(key);
            if self.told.get(key) != Some(known) {
                changes.facts.push(write(&self.run, known, at, clocks));
            }
        }
        let before = std::mem::take(&mut self.told)
            .into_iter()
            .chain(std::mem::take(&mut self.tried));
        for (key, mut known) in before.filter(|(key, _)| !now.contains_key(key)) {
            if is_open(&known) {
                // It was about to come into force, and did not. Others may not even have its file.
                never_was(&mut known, clocks.to_own(clocks.now()));
                changes.facts.push(write(&self.run, &known, at, clocks));
            } else {
                self.unreported.remove(&key);
                changes.forget.push(key);
            }
        }
        self.told = now;
        changes
    }
}

/// The key of the file of a version.
pub fn file_key(version: Version) -> String {
    write_file((version, Arc::default()), 0).key
}

/// The version that was published, if it is known.
pub fn version_of(fact: &AnyFact) -> Option<Version> {
    match fact {
        AnyFact::Publication(publication) => publication.published.version(),
        _ => None,
    }
}

/// When a publication or a tenure was in force.
fn span_of(fact: &mut AnyFact) -> Option<&mut Span> {
    match fact {
        AnyFact::Publication(publication) => Some(&mut publication.span),
        AnyFact::Tenure(tenure) => Some(&mut tenure.span),
        _ => None,
    }
}

/// Whether a publication or a tenure has no end yet.
fn is_open(fact: &AnyFact) -> bool {
    match fact {
        AnyFact::Publication(publication) => publication.span.until.is_none(),
        AnyFact::Tenure(tenure) => tenure.span.until.is_none(),
        _ => false,
    }
}

/// Records that a publication or a tenure never was in force: it ends by the change that it began
/// with, so that it counts for no moment.
fn never_was(fact: &mut AnyFact, at: Timestamp) {
    if let Some(span) = span_of(fact) {
        span.until = Some(Change {
            number: span.since.number,
            at,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Standing;
    use super::super::fact::Merged;
    use super::super::members::Members;
    use super::*;
    use crate::crawlers::Registry;
    use crate::publications::{Current, Horizon, Published, VersionStore};
    use std::time::Duration;

    fn files() -> Vec<VersionFile> {
        let files = ["one", "two", "three"].map(|text| Arc::from(text.as_bytes()));
        files
            .map(|bytes: Arc<[u8]>| (Version::of(&bytes), bytes))
            .into()
    }

    /// The log of a site that publishes this from a moment on.
    fn publishing(log: &PublicationLog, version: Version, at: i64) -> PublicationLog {
        let mut log = log.clone();
        let current = Current {
            site: "shop",
            hosts: Vec::new(),
            published: Published::Version(version),
            identities: 1,
            tells: false,
            declared: None,
        };
        log.record(&[current], Timestamp(at));
        log
    }

    fn add(told: &mut Merged, facts: impl IntoIterator<Item = SharedFact>) {
        for fact in facts {
            told.add(fact);
        }
    }

    /// What others know of the rules that were in force, by what they were told, with the files
    /// that they have.
    fn unknown_until(told: &Merged, files: &[VersionFile]) -> Option<Timestamp> {
        let mut versions = VersionStore::default();
        files
            .iter()
            .for_each(|(version, bytes)| versions.insert(*version, bytes.clone()));
        let (clocks, here) = (
            Clocks {
                store: 9_000,
                ahead: 0,
            },
            publishing(&PublicationLog::default(), files[0].0, 1),
        );
        let logs = Members::default().logs(told, &BTreeSet::new(), clocks, |_| Standing::Present);
        assert_eq!(logs.len(), 1);
        let horizon = Horizon {
            longest: Duration::from_secs(86_400),
            now: Timestamp(9),
        };
        let histories = here.histories_beside(&logs, &mut versions, Registry::builtin(), horizon);
        histories
            .iter()
            .filter_map(|(_, history)| history.unknown_until)
            .max()
    }

    #[test]
    fn what_never_came_into_force_is_no_gap_in_what_others_know() {
        let files = files();
        let log = publishing(&PublicationLog::default(), files[0].0, 1);
        let clocks = Clocks {
            store: 5_000,
            ahead: 0,
        };
        let mut own = OwnLog::new("a.1".into(), log.clone(), files[..1].to_vec());
        let mut told = Merged::default();
        add(&mut told, own.changes(clocks).facts);
        // The store is away when it is to be told, and then it is withdrawn: nobody has its file.
        let tried = own.openings(&publishing(&log, files[1].0, 5), clocks);
        assert_eq!(tried.len(), 1);
        own.try_to_tell(&tried);
        let withdrawn = own.changes(clocks).facts;
        assert_eq!(withdrawn.len(), 1);
        add(&mut told, withdrawn);
        assert_eq!(unknown_until(&told, &files[..1]), None);
    }

    #[test]
    fn of_what_is_told_within_a_second_the_later_counts() {
        let files = files();
        let log = publishing(&PublicationLog::default(), files[0].0, 1);
        let clocks = Clocks {
            store: 5_000,
            ahead: 0,
        };
        // One of the two versions has the greater id.
        for (first, second) in [(1, 2), (2, 1)] {
            let mut own = OwnLog::new("a.1".into(), log.clone(), files[..1].to_vec());
            let mut all = own.changes(clocks).facts;
            let tried = own.openings(&publishing(&log, files[first].0, 5), clocks);
            own.try_to_tell(&tried);
            all.extend(tried);
            all.extend(own.changes(clocks).facts);
            // A clock that was corrected makes no difference.
            let clocks = Clocks {
                store: 3_000,
                ahead: 0,
            };
            let next = publishing(&log, files[second].0, 5);
            let opened = own.openings(&next, clocks);
            own.mark_told(opened.clone(), &next, &files);
            own.update(&next);
            all.extend(opened.clone());
            let closed = own.changes(clocks).facts;
            assert_eq!((opened.len(), closed.len()), (1, 1));
            all.extend(closed);
            let (mut told, mut backwards) = (Merged::default(), Merged::default());
            add(&mut told, all.iter().cloned());
            add(&mut backwards, all.iter().rev().cloned());
            assert_eq!(told, backwards);
            let open: Vec<&str> = told
                .starting_with("publications\n")
                .filter(|(.., value)| value.ends_with(",null,null,null]"))
                .map(|(.., value)| value)
                .collect();
            assert_eq!(open.len(), 1);
            assert!(open[0].contains(&files[second].0.to_string()), "{open:?}");
        }
    }

    #[test]
    fn files_that_nobody_published_lately_are_forgotten() {
        let files = files();
        let [one, two, three] = [0, 1, 2].map(|place: usize| files[place].0);
        let log = publishing(&PublicationLog::default(), one, 1);
        let mut own = OwnLog::new("a.1".into(), log, files);
        let others = BTreeSet::from([two]);
        assert_eq!(own.forget_files(&others), [file_key(three)]);
        assert_eq!(own.forget_files(&others), [""; 0]);
        assert!(own.has_file(one) && own.has_file(two) && !own.has_file(three));
        assert_eq!(own.forget_files(&BTreeSet::new()), [file_key(two)]);
    }
}
