//! What is remembered through a restart: last good copies, since when versions are in force, pauses. Written whole to a
//! new file that then takes the old one's name, so that a crash leaves the one or the other.

use super::pauses::Remembered;
use crate::time::Timestamp;
use crate::yaml::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything but the last good copies, which are files of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Per site: the version in force and since when.
    pub since: BTreeMap<String, (String, Timestamp)>,
    /// Per site: when a version was last superseded by another.
    pub superseded: BTreeMap<String, Timestamp>,
    /// Per site: since when each rule of its tag plan is in force, by the rule's identity.
    pub tag_rules: BTreeMap<String, BTreeMap<u64, Timestamp>>,
    /// Per site: when a rule of its tag plan was last taken away.
    pub tag_rule_removed: BTreeMap<String, Timestamp>,
    /// Pauses.
    pub pauses: Remembered,
}

/// The state directory.
#[derive(Debug)]
pub struct State {
    directory: Option<PathBuf>,
    written: Option<Vec<u8>>,
    /// The copies that are kept as they should be.
    kept: BTreeMap<String, Arc<str>>,
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
        let mut state =
            State { directory, written: None, kept: BTreeMap::new(), set_aside: None, failing: BTreeMap::new() };
        let Some(directory) = &state.directory else { return Ok((state, Memory::default())) };
        let failed =
            |error: std::io::Error| format!("the state directory {} cannot be used: {error}", directory.display());
        fs::create_dir_all(directory.join("last-good")).map_err(failed)?;
        tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        let file = directory.join("state.json");
        let memory = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Memory::default(),
            Err(error) => return Err(failed(error)),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(memory) => memory,
                Err(error) => {
                    let aside = directory.join("state.json.unreadable");
                    let _ = fs::rename(&file, &aside);
                    let warning =
                        format!("{}: cannot be understood ({error}); set aside as {}", file.display(), aside.display());
                    tracing::warn!("{warning}");
                    state.set_aside = Some(warning);
                    Memory::default()
                }
            },
        };
        Ok((state, memory))
    }

    /// What is wrong with the state, for a person.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.set_aside.iter().chain(self.failing.values()).map(String::as_str)
    }

    /// Remembers, if anything changed. A failure is a warning, and is tried again: the proxy runs on.
    pub fn remember(&mut self, memory: &Memory) {
        let Some(directory) = &self.directory else { return };
        let Ok(bytes) = serde_json::to_vec_pretty(memory) else { return };
        if self.written.as_ref() != Some(&bytes) && self.write(&directory.join("state.json"), &bytes) {
            self.written = Some(bytes);
        }
    }

    /// Keeps a policy that was accepted, unless it is kept already.
    pub fn keep(&mut self, site: &str, source: &Source) {
        let Some(file) = self.copy_of(site) else { return };
        if self.kept.get(site).is_some_and(|kept| *kept == source.text) {
            return;
        }
        let is_there = fs::read(&file).is_ok_and(|bytes| bytes == source.text.as_bytes());
        if is_there || self.write(&file, source.text.as_bytes()) {
            self.kept.insert(site.to_owned(), source.text.clone());
        }
    }

    fn write(&mut self, file: &Path, bytes: &[u8]) -> bool {
        match write_whole(file, bytes) {
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
        if let Some(file) = self.copy_of(site) {
            self.failing.remove(&file);
            let _ = fs::remove_file(file);
        }
    }

    fn copy_of(&self, site: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join("last-good").join(format!("{site}.yaml")))
    }
}

fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}
