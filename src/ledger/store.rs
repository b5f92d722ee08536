//! The table on disk. Written at most once a second and only when something changed; a stamp beside it says when
//! crawlgate was last alive, and whether it ended in order. While the table cannot be written, or what was in force
//! cannot, there is no stamp: what is served meanwhile the next start does not know of.

use super::network_list_health::NetworkListHealth;
use super::visits::{Bounds, Host, MAX_VERSIONS, Served, Visits, key, split};
use super::watch::believed;
use crate::durable::{Part, Witnesses, set_aside, write_anew};
use crate::policy::Version;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the stamp is renewed while nothing else is written, in seconds.
const STAMP: i64 = 5;
/// Writing may take this part of the time: a table that takes long to write is written less often.
const SHARE: u32 = 10;
/// More than the largest table takes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Deserialize)]
struct WrittenTable {
    hosts: Vec<WrittenHost>,
}

#[derive(Serialize, Deserialize)]
struct WrittenHost {
    site: String,
    host: String,
    since: Timestamp,
    seen: Timestamp,
    named: bool,
    /// In seconds.
    #[serde(default)]
    behind_cache: Option<u64>,
    everyone: WrittenServed,
    crawlers: BTreeMap<String, WrittenServed>,
}

#[derive(Default, Serialize, Deserialize)]
struct WrittenServed {
    versions: Vec<(String, Timestamp)>,
    lost: Option<Timestamp>,
}

/// When crawlgate was last known to be alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub at: Timestamp,
    /// Whether it ended in order, and everything was written.
    pub clean: bool,
    /// When the next one was to be written.
    #[serde(default)]
    pub due: Option<Timestamp>,
}

impl Stamp {
    /// Whether somebody else may have served what was asked for since, or crawlgate itself without writing it down.
    pub fn is_gap(&self, started: Timestamp) -> bool {
        !self.believed().contains(&started)
    }

    /// The starts for which there is no gap.
    fn believed(&self) -> RangeInclusive<Timestamp> {
        believed(self.at, (!self.clean).then(|| self.due.unwrap_or(self.at)))
    }
}

/// How much of a hurry there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    WhenDue,
    AtOnce,
    /// At once, and crawlgate ends in order.
    ForTheLastTime,
}

/// The files.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    witnesses: Arc<Witnesses>,
    stamped: Option<Stamp>,
    /// Not before then is anything written.
    next: Option<Instant>,
    /// By file.
    problems: BTreeMap<PathBuf, String>,
}

impl Store {
    /// Reads what is there. What cannot be read is said, set aside and forgotten: then nothing was watched.
    pub fn open(state: &Path, witnesses: Arc<Witnesses>, bounds: Bounds) -> (Store, Visits, Option<Stamp>) {
        let directory = state.join("ledger");
        let mut store = Store { directory, witnesses, stamped: None, next: None, problems: BTreeMap::new() };
        if let Err(error) = fs::create_dir_all(&store.directory) {
            store.failed(&store.directory.clone(), &error);
        }
        let visits = Visits::new(bounds);
        let read = store.read(&visits);
        let stamp: Option<Stamp> =
            fs::read(store.stamp_file()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        store.witnesses.await_first(Part::Visits, stamp.as_ref().map(Stamp::believed));
        match read {
            Ok(()) => (store, visits, stamp),
            Err(error) => {
                let file = store.table_file();
                store.set_aside(&file, &error);
                (store, Visits::new(bounds), None)
            }
        }
    }

    fn read(&self, visits: &Visits) -> Result<(), String> {
        let mut bytes = Vec::new();
        match fs::File::open(self.table_file()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.to_string()),
            Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?,
        };
        let table: WrittenTable = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        for written in table.hosts {
            let Some(key) = key(&written.site, written.host.as_bytes()) else { continue };
            let mut host =
                Host::new(written.since, written.seen, written.named, written.behind_cache.map(Duration::from_secs));
            host.everyone = written.everyone.read()?;
            for (name, served) in written.crawlers {
                *host.crawler_mut(&name) = served.read()?;
            }
            visits.change(&key, || host, |_| {});
        }
        visits.take_changed();
        Ok(())
    }

    /// Writes what changed.
    pub fn write(&mut self, visits: &Visits, now: Timestamp, writing: Writing) {
        let (began, last) = (Instant::now(), writing == Writing::ForTheLastTime);
        if writing == Writing::WhenDue && self.next.is_some_and(|next| began < next) {
            return;
        }
        let changed = visits.take_changed();
        if changed {
            let written = self.write_file(&self.table_file(), &table(visits));
            self.next = Some(began + began.elapsed() * SHARE);
            if !written {
                visits.set_changed();
                self.witnesses.note(Part::Visits, false);
                return;
            }
        }
        self.witnesses.note(Part::Visits, true);
        // Without it the next start takes the time since the last stamp for a gap, so it says nothing that is not so:
        // all that was served before it is written.
        let due = self
            .stamped
            .as_ref()
            .filter(|_| self.witnesses.has_stamp())
            .is_none_or(|stamped| now.0.saturating_sub(stamped.at.0).abs() >= STAMP);
        if !(changed || last || due) {
            return;
        }
        let pause = self.next.map_or(0, |next| next.saturating_duration_since(began).as_secs() + 1);
        let next = now.plus(Duration::from_secs(pause.max(STAMP.unsigned_abs())));
        let stamp = Stamp { at: now, clean: last, due: Some(next) };
        let Ok(bytes) = serde_json::to_vec(&stamp) else { return };
        let witnesses = self.witnesses.clone();
        if witnesses.put_stamp(stamp.believed(), |file| self.write_file(file, &bytes)) {
            self.stamped = Some(stamp);
        } else {
            // What is done from now on the next start does not know of, or not that the end is one in order.
            self.stamped = None;
        }
    }

    /// What is remembered of the lists of networks. What cannot be read is said, set aside and forgotten.
    pub fn read_proofs(&mut self, now: Timestamp) -> NetworkListHealth {
        let file = self.proofs_file();
        let read = match fs::File::open(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return NetworkListHealth::default(),
            Err(error) => Err(error.to_string()),
            Ok(open) => {
                let mut bytes = Vec::new();
                let read = open.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string());
                read.and_then(|_| NetworkListHealth::read(&bytes, now).map_err(|error| error.to_string()))
            }
        };
        read.unwrap_or_else(|error| {
            self.set_aside(&file, &error);
            NetworkListHealth::default()
        })
    }

    /// Writes them when they changed: a verified visit is noted once a minute at most.
    pub fn write_proofs(&mut self, proofs: &NetworkListHealth) {
        if let Some(bytes) = proofs.take_changed()
            && !self.write_file(&self.proofs_file(), &bytes)
        {
            proofs.set_changed();
        }
    }

    fn set_aside(&mut self, file: &Path, error: &str) {
        let aside = set_aside(file);
        let problem = format!("{}: cannot be read ({error}); set aside as {}", file.display(), aside.display());
        tracing::warn!("{problem}");
        self.problems.insert(file.to_owned(), problem);
    }

    /// What is wrong with the files, for a person.
    pub fn problem(&self) -> Option<String> {
        let problems: Vec<&str> = self.problems.values().map(String::as_str).collect();
        (!problems.is_empty()).then(|| problems.join("; "))
    }

    fn write_file(&mut self, file: &Path, bytes: &[u8]) -> bool {
        match write_anew(file, bytes) {
            Ok(()) => {
                self.problems.remove(file);
                // That the directory could not be made.
                self.problems.remove(&self.directory);
                true
            }
            Err(error) => {
                self.failed(file, &error);
                false
            }
        }
    }

    fn failed(&mut self, file: &Path, error: &std::io::Error) {
        let problem = format!("{}: cannot be written: {error}", file.display());
        if self.problems.insert(file.to_owned(), problem.clone()).as_ref() != Some(&problem) {
            tracing::warn!("{problem}");
        }
    }

    fn table_file(&self) -> PathBuf {
        self.directory.join("visits.json")
    }

    fn proofs_file(&self) -> PathBuf {
        self.directory.join("verified.json")
    }

    fn stamp_file(&self) -> PathBuf {
        self.directory.join("alive.json")
    }
}

impl WrittenServed {
    fn of(served: &Served) -> WrittenServed {
        let versions = served.versions.iter().map(|visit| (visit.version.to_string(), visit.at)).collect();
        WrittenServed { versions, lost: served.lost }
    }

    fn read(self) -> Result<Served, String> {
        let mut served = Served { lost: self.lost, ..Served::default() };
        for (version, at) in self.versions.into_iter().take(MAX_VERSIONS) {
            served.add(Version::parse(&version).ok_or("a version is none")?, at);
        }
        Ok(served)
    }
}

/// A [`WrittenTable`], host by host: the table as values and as text at once would take several times its memory.
fn table(visits: &Visits) -> Vec<u8> {
    let mut bytes = b"{\"hosts\":[".to_vec();
    let empty = bytes.len();
    visits.each(|key, host| {
        let Some((site, name)) = split(key) else { return };
        let written = WrittenHost {
            site: String::from_utf8_lossy(site).into_owned(),
            host: String::from_utf8_lossy(name).into_owned(),
            since: host.since(),
            seen: host.seen(),
            named: host.named(),
            behind_cache: host.cached().map(|cached| cached.as_secs()),
            everyone: WrittenServed::of(&host.everyone),
            crawlers: host.crawlers().map(|(name, served)| (name.to_owned(), WrittenServed::of(served))).collect(),
        };
        if bytes.len() > empty {
            bytes.push(b',');
        }
        // Text and numbers: there is nothing in it that has no spelling in JSON.
        let _ = serde_json::to_writer(&mut bytes, &written);
    });
    bytes.extend_from_slice(b"]}");
    bytes
}
