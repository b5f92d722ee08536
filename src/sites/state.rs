//! What is remembered through a restart: last good copies, the versions that were in force and when, pauses. While the
//! versions cannot be written the [witnesses](Witnesses) are told: what is served meanwhile the next start does not
//! know of, and has to know that it does not.

use super::pauses::Remembered;
use crate::durable::{Part, Witnesses, set_aside, write_anew};
use crate::history::PublicationLog;
use crate::policy::Version;
use crate::robots::MAX_BYTES;
use crate::time::Timestamp;
use crate::yaml::Source;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Everything but the last good copies, which are files of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// What was published on which host, and when.
    pub log: PublicationLog,
    /// Per site: since when each rule of its tag plan is in force, by the rule's identity.
    pub tag_rules: BTreeMap<String, BTreeMap<u64, Timestamp>>,
    /// Per site: when what is said last changed on every page, as when a rule of its tag plan is taken away.
    pub tag_rule_removed: BTreeMap<String, Timestamp>,
    /// Pauses.
    pub pauses: Remembered,
    /// The sites whose robots.txt is answered 503: written before it is.
    pub withheld: BTreeSet<String>,
}

impl Memory {
    /// Forgets what is known of a site by its name.
    pub fn forget(&mut self, site: &str) {
        self.tag_rules.remove(site);
        self.tag_rule_removed.remove(site);
    }
}

const MARK_SAYS: &str = "All that was in force and was served is known here. crawlgate takes this file away while it \
                         cannot write that, and puts it back when it could.\n";
/// Trying again may take this part of the time.
const SHARE: u32 = 10;

/// The state directory.
#[derive(Debug)]
pub struct State {
    directory: Option<PathBuf>,
    written: Option<Vec<u8>>,
    /// Whether `state.json` is not what it should be.
    behind: bool,
    /// The copies that are kept as they should be.
    kept: BTreeMap<String, Arc<str>>,
    /// The copies that are yet to be.
    unkept: BTreeMap<String, Arc<str>>,
    /// The versions that have files, and whether it is known that a file is whole.
    versions: BTreeMap<Version, bool>,
    /// The versions whose bytes are yet to be written: those that were superseded meanwhile, too.
    unwritten: BTreeMap<Version, Arc<[u8]>>,
    /// They tell the next start whether everything is written.
    witnesses: Arc<Witnesses>,
    /// Whether the mark was not there at the start.
    incomplete: bool,
    /// Not before then is anything tried again.
    next_try: Option<Instant>,
    /// What was wrong with the state at the start.
    set_aside: Option<String>,
    /// What cannot be written, by file, and why.
    failing: BTreeMap<PathBuf, String>,
}

impl State {
    /// Opens the directory, making it if need be, and reads what is remembered. A file that cannot be understood is set
    /// aside: it is never a reason not to start.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn open(directory: Option<PathBuf>) -> Result<(State, Memory), String> {
        let mut state = State {
            witnesses: Arc::new(Witnesses::of(directory.as_deref())),
            directory,
            written: None,
            behind: false,
            kept: BTreeMap::new(),
            unkept: BTreeMap::new(),
            versions: BTreeMap::new(),
            unwritten: BTreeMap::new(),
            incomplete: false,
            next_try: None,
            set_aside: None,
            failing: BTreeMap::new(),
        };
        let Some(directory) = &state.directory else { return Ok((state, Memory::default())) };
        let failed =
            |error: std::io::Error| format!("the state directory {} cannot be used: {error}", directory.display());
        fs::create_dir_all(directory.join("last-good")).map_err(failed)?;
        fs::create_dir_all(directory.join("versions")).map_err(failed)?;
        tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        state.incomplete = !state.witnesses.has_mark();
        let file = directory.join("state.json");
        let memory = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                state.incomplete = true;
                Memory::default()
            }
            Err(error) => return Err(failed(error)),
            Ok(bytes) => match serde_json::from_slice::<Memory>(&bytes) {
                Ok(mut memory) => {
                    if state.incomplete {
                        tracing::warn!(
                            "{}: not everything could be written when crawlgate was last there: what was served then is \
                             not known, and all hosts are watched anew",
                            directory.display()
                        );
                        // Crawlers may have been told apart otherwise meanwhile.
                        memory.log.forget_identities();
                    }
                    memory
                }
                Err(error) => {
                    let aside = set_aside(&file);
                    let warning =
                        format!("{}: cannot be understood ({error}); set aside as {}", file.display(), aside.display());
                    tracing::warn!("{warning}");
                    state.set_aside = Some(warning);
                    state.incomplete = true;
                    Memory::default()
                }
            },
        };
        let versions = fs::read_dir(directory.join("versions")).map_err(failed)?.flatten().filter_map(named);
        state.versions = versions.map(|version| (version, false)).collect();
        if state.incomplete {
            state.witnesses.remove_mark();
        }
        Ok((state, memory))
    }

    /// Whether versions may have been in force before the start that nobody knows of.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Whether something was remembered that cannot be understood.
    pub fn has_lost_track(&self) -> bool {
        self.set_aside.is_some()
    }

    /// What is wrong with the state, for a person.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.set_aside.iter().chain(self.failing.values()).map(String::as_str)
    }

    /// Remembers, if anything changed. A failure is a warning, and is tried again: the proxy runs on.
    pub fn remember(&mut self, memory: &Memory) {
        let Some(directory) = &self.directory else { return };
        let Ok(bytes) = serde_json::to_vec_pretty(memory) else { return };
        let file = directory.join("state.json");
        if self.written.as_ref() == Some(&bytes) {
            // It is again what was written last.
            self.failing.remove(&file);
            self.behind = false;
        } else if self.write(&file, &bytes) {
            self.written = Some(bytes);
            self.behind = false;
        } else {
            self.behind = true;
        }
        self.note();
    }

    /// Keeps a policy that was accepted, unless it is kept already.
    pub fn keep(&mut self, site: &str, text: &Arc<str>) {
        let Some(file) = self.copy_of(site) else { return };
        if self.kept.get(site) == Some(text) {
            return;
        }
        let is_there = fs::read(&file).is_ok_and(|bytes| bytes == text.as_bytes());
        if is_there || self.write(&file, text.as_bytes()) {
            self.failing.remove(&file);
            self.kept.insert(site.to_owned(), text.clone());
            self.unkept.remove(site);
        } else {
            self.unkept.insert(site.to_owned(), text.clone());
        }
    }

    /// Keeps the bytes of a robots.txt: before they are served, so that no crash leaves a version that nobody can judge
    /// by.
    pub fn keep_version(&mut self, version: Version, body: &Arc<[u8]>) {
        let Some(file) = self.version_file(version) else { return };
        let is_whole = match self.versions.get(&version) {
            Some(true) => return,
            // A file of that name may be torn.
            Some(false) => self.version(version).is_some(),
            None => false,
        };
        if is_whole || self.write(&file, body) {
            self.versions.insert(version, true);
            self.unwritten.remove(&version);
        } else {
            self.unwritten.insert(version, body.clone());
        }
        self.note();
    }

    /// Whether there is something to be tried again, or the mark to be put back.
    pub fn is_behind(&self) -> bool {
        self.directory.is_some()
            && (self.behind || !self.witnesses.has_mark() || !self.unwritten.is_empty() || !self.unkept.is_empty())
    }

    /// Tries again what could not be written. Once all of it is, the mark is put back.
    pub fn write_again(&mut self, memory: &Memory) {
        let began = Instant::now();
        if !self.is_behind() || self.next_try.is_some_and(|next| began < next) {
            return;
        }
        for (version, body) in self.unwritten.clone() {
            self.keep_version(version, &body);
        }
        if self.behind {
            self.remember(memory);
        }
        for (site, text) in self.unkept.clone() {
            self.keep(&site, &text);
        }
        self.note();
        let witnesses = self.witnesses.clone();
        witnesses.put_mark(|mark| self.write(mark, MARK_SAYS.as_bytes()));
        self.next_try = Some(began + began.elapsed() * SHARE);
    }

    /// Tells the witnesses how it stands. What they could not do is tried each time.
    fn note(&self) {
        self.witnesses.note(Part::Versions, !self.behind && self.unwritten.is_empty());
    }

    /// What tells the next start whether everything is written.
    pub fn witnesses(&self) -> &Arc<Witnesses> {
        &self.witnesses
    }

    /// The bytes of a version that was in force once; what is not the version that it says it is, is none.
    pub fn version(&self, version: Version) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        let file = fs::File::open(self.version_file(version)?).ok()?;
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut body).ok()?;
        (Version::of(&body) == version).then_some(body)
    }

    /// Removes the bytes of versions that nobody may hold any more.
    pub fn keep_only_versions(&mut self, wanted: &BTreeSet<Version>) {
        let known = self.versions.keys().chain(self.unwritten.keys());
        let gone: BTreeSet<Version> = known.filter(|version| !wanted.contains(version)).copied().collect();
        for version in gone {
            self.versions.remove(&version);
            self.unwritten.remove(&version);
            if let Some(file) = self.version_file(version) {
                self.failing.remove(&file);
                let _ = fs::remove_file(file);
            }
        }
        self.note();
    }

    fn version_file(&self, version: Version) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join("versions").join(format!("{version}.txt")))
    }

    fn write(&mut self, file: &Path, bytes: &[u8]) -> bool {
        match write_anew(file, bytes) {
            Ok(()) => {
                self.failing.remove(file);
                true
            }
            Err(error) => {
                let warning = format!("{}: cannot be written: {error}", file.display());
                if self.failing.insert(file.to_owned(), warning.clone()).as_ref() != Some(&warning) {
                    tracing::warn!("{warning}");
                }
                false
            }
        }
    }

    /// The last policy of a site that was accepted.
    pub fn last_good(&self, site: &str) -> Option<Source> {
        super::files::read(&self.copy_of(site)?).ok()
    }

    /// Forgets a site that is gone.
    pub fn forget(&mut self, site: &str) {
        self.kept.remove(site);
        self.unkept.remove(site);
        if let Some(file) = self.copy_of(site) {
            self.failing.remove(&file);
            let _ = fs::remove_file(file);
        }
    }

    fn copy_of(&self, site: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join("last-good").join(format!("{site}.yaml")))
    }
}

/// The version that a file is named after.
fn named(entry: fs::DirEntry) -> Option<Version> {
    Version::parse(entry.file_name().to_str()?.strip_suffix(".txt")?)
}
