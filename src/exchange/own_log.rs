//! [`OwnLog`]: what this run publishes, and what of that others were told. A publication is told before it comes into force,
//! its end after. Must not know the store.

use super::fact::Fact;
use super::records::{self, Clocks, OfLog};
use crate::history::{Change, Publication, PublicationLog, Published, Tenure};
use crate::policy::Version;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A record of the log.
#[derive(Clone, PartialEq)]
enum Known {
    Publication(Publication),
    Tenure(Tenure),
}

impl Known {
    fn fact(&self, key: &str, clocks: Clocks) -> Fact {
        let value = match self {
            Known::Publication(publication) => records::publication_value(publication, clocks),
            Known::Tenure(tenure) => records::tenure_value(tenure, clocks),
        };
        Fact { key: key.to_owned(), at: clocks.now(), value }
    }

    fn version(&self) -> Option<Version> {
        match self {
            Known::Publication(Publication { published: Published::Version(version), .. }) => Some(*version),
            Known::Publication(_) | Known::Tenure(_) => None,
        }
    }

    fn is_open(&self) -> bool {
        self.span().until.is_none()
    }

    fn span(&self) -> crate::history::Span {
        match self {
            Known::Publication(publication) => publication.span,
            Known::Tenure(tenure) => tenure.span,
        }
    }

    fn end(&mut self, at: Timestamp) {
        let span = match self {
            Known::Publication(publication) => &mut publication.span,
            Known::Tenure(tenure) => &mut tenure.span,
        };
        span.until = Some(Change { number: span.since.number.saturating_add(1), at });
    }
}

/// What this run publishes, beside what others were told of it.
pub struct OwnLog {
    run: String,
    log: PublicationLog,
    files: BTreeMap<Version, Arc<[u8]>>,
    told: BTreeMap<String, Known>,
    /// What others may have been told, though it never came into force.
    tried: BTreeMap<String, Known>,
    /// Until when which publications may have been served without a word of it.
    unreported: BTreeMap<String, Timestamp>,
    has_news: bool,
}

/// What others are to be told.
#[derive(Debug, Default)]
pub struct Changes {
    /// New or changed.
    pub facts: Vec<Fact>,
    /// Keys of what is over.
    pub forget: Vec<String>,
}

impl OwnLog {
    /// Of which nothing was told yet.
    pub fn new(run: String, log: PublicationLog, files: Vec<(Version, Arc<[u8]>)>) -> OwnLog {
        OwnLog {
            run,
            log,
            files: files.into_iter().collect(),
            told: BTreeMap::new(),
            tried: BTreeMap::new(),
            unreported: BTreeMap::new(),
            has_news: true,
        }
    }

    /// Until now, what was in force at a moment or later may have been served to any crawler without a word of it.
    pub fn was_unreported(&mut self, since: Option<Timestamp>, now: Timestamp) {
        let Some(since) = since else { return };
        let lately = |known: &&Publication| known.span.until.is_none_or(|until| until.at >= since);
        for publication in self.log.publications().iter().filter(lately) {
            self.unreported.insert(records::publication_key(&self.run, publication), now);
        }
        self.has_news = true;
    }

    /// Whether others are to be told something.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// This is in force now.
    pub fn is(&mut self, log: &PublicationLog) {
        self.log = log.clone();
        self.has_news = true;
    }

    /// Whether the bytes of a version are known.
    pub fn has_file(&self, version: Version) -> bool {
        self.files.contains_key(&version)
    }

    /// The bytes of another instance's version are known.
    pub fn learn(&mut self, version: Version, bytes: Arc<[u8]>) {
        // They are told again where a store starts over.
        self.files.insert(version, bytes);
    }

    /// Forgets the bytes of versions that neither this run nor others published lately; says under which keys they were told.
    pub fn forget_files(&mut self, others: &BTreeSet<Version>) -> Vec<String> {
        let tried = self.tried.values().filter_map(Known::version);
        let mut wanted = self.log.versions_since(Timestamp(i64::MIN));
        wanted.extend(self.told.values().filter_map(Known::version).chain(tried).chain(others.iter().copied()));
        let over: Vec<Version> = self.files.keys().filter(|version| !wanted.contains(version)).copied().collect();
        over.iter().for_each(|version| drop(self.files.remove(version)));
        over.into_iter().map(records::file_key).collect()
    }

    fn known(&self, log: &PublicationLog) -> BTreeMap<String, Known> {
        let publications = log.publications().iter().map(|publication| {
            let key = records::publication_key(&self.run, publication);
            let unreported_until = self.unreported.get(&key).copied();
            (key, Known::Publication(Publication { unreported_until, ..publication.clone() }))
        });
        let tenures = log.tenures().iter();
        let tenures = tenures.map(|tenure| (records::tenure_key(&self.run, tenure), Known::Tenure(tenure.clone())));
        publications.chain(tenures).collect()
    }

    /// Everything, as it is told to a store that knows nothing.
    pub fn all(&mut self, clocks: Clocks) -> Vec<Fact> {
        self.told = self.known(&self.log);
        self.tried.retain(|key, _| !self.told.contains_key(key));
        self.told.iter().map(|(key, known)| known.fact(key, clocks)).collect()
    }

    /// All files.
    pub fn all_files(&self, at: i64) -> Vec<Fact> {
        self.files.iter().map(|(version, bytes)| records::file(*version, bytes, at)).collect()
    }

    /// The files among these that others do not know.
    pub fn new_files(&self, files: &[(Version, Arc<[u8]>)], at: i64) -> Vec<Fact> {
        let new = files.iter().filter(|(version, _)| !self.files.contains_key(version));
        new.map(|(version, bytes)| records::file(*version, bytes, at)).collect()
    }

    /// What is about to come into force: the records of a log that others were not told.
    pub fn openings(&self, log: &PublicationLog, clocks: Clocks) -> Vec<Fact> {
        let open = self.known(log).into_iter().filter(|(_, known)| known.is_open());
        let new = open.filter(|(key, known)| self.told.get(key) != Some(known));
        new.map(|(key, known)| known.fact(&key, clocks)).collect()
    }

    /// Others may hear of these from now on.
    pub fn try_to_tell(&mut self, facts: &[Fact]) {
        for fact in facts {
            if let Some((_, known)) = records::of_log(&fact.key, &fact.value, Clocks::default()) {
                let known = match known {
                    OfLog::Publication(publication) => Known::Publication(publication),
                    OfLog::Tenure(tenure) => Known::Tenure(tenure),
                };
                self.tried.insert(fact.key.clone(), known);
            }
        }
        self.has_news = true;
    }

    /// Others were told these records of a log, and these files.
    pub fn were_told(&mut self, facts: Vec<Fact>, log: &PublicationLog, files: &[(Version, Arc<[u8]>)]) {
        let mut known = self.known(log);
        for fact in facts {
            if let Some(known) = known.remove(&fact.key) {
                self.tried.remove(&fact.key);
                self.told.insert(fact.key, known);
            }
        }
        self.files.extend(files.iter().cloned());
    }

    /// What others are to be told of what is in force: what ended, what never came into force, and what is over.
    pub fn changes(&mut self, clocks: Clocks) -> Changes {
        if !std::mem::take(&mut self.has_news) {
            return Changes::default();
        }
        let mut changes = Changes::default();
        let now = self.known(&self.log);
        for (key, known) in &now {
            self.tried.remove(key);
            if self.told.get(key) != Some(known) {
                changes.facts.push(known.fact(key, clocks));
            }
        }
        let before = std::mem::take(&mut self.told).into_iter().chain(std::mem::take(&mut self.tried));
        for (key, mut known) in before.filter(|(key, _)| !now.contains_key(key)) {
            if known.is_open() {
                // It was about to come into force, and did not.
                known.end(clocks.to_own(clocks.now()));
                changes.facts.push(known.fact(&key, clocks));
            } else {
                self.unreported.remove(&key);
                changes.forget.push(key);
            }
        }
        self.told = now;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Current;

    #[test]
    fn files_that_nobody_published_lately_are_forgotten() {
        let files: Vec<(Version, Arc<[u8]>)> = ["one", "two", "three"]
            .map(|text| Arc::from(text.as_bytes()))
            .map(|bytes: Arc<[u8]>| (Version::of(&bytes), bytes))
            .into();
        let [one, two, three] = [0, 1, 2].map(|place: usize| files[place].0);
        let mut log = PublicationLog::default();
        let current = Current {
            site: "shop",
            hosts: Vec::new(),
            published: Published::Version(one),
            identities: 1,
            tells: false,
            declared: None,
        };
        log.record(&[current], Timestamp(1));
        let mut own = OwnLog::new("a.1".into(), log, files);
        let others = BTreeSet::from([two]);
        assert_eq!(own.forget_files(&others), [records::file_key(three)]);
        assert_eq!(own.forget_files(&others), [""; 0]);
        assert!(own.has_file(one) && own.has_file(two) && !own.has_file(three));
        assert_eq!(own.forget_files(&BTreeSet::new()), [records::file_key(two)]);
    }
}
