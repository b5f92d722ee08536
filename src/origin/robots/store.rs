//! Copies on disk: one file a site in the state directory, a line of JSON and then the octets, whose length and digest
//! the line says: a rule less is a file like any other, and nobody would see it.

use super::FetchState;
use crate::durable::write_whole;
use crate::robots::MAX_BYTES;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The first line is short, with what is wrong in it; more is no file of ours.
const MAX_FILE: u64 = MAX_BYTES as u64 + 256 * 1024;

/// What is kept of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its copy.
    #[serde(flatten)]
    pub fetch: FetchState,
    /// The hosts of a site without a policy, which stand in no file; none for every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_sites: Option<Vec<String>>,
    /// Since when there is no such site, while it may come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Timestamp>,
}

impl Kept {
    /// See [`FetchState::clock_was_set`].
    pub fn clock_was_set(&mut self, by: i64, now: Timestamp) {
        self.fetch.clock_was_set(by, now);
        self.left_at = self.left_at.map(|moment| Timestamp(moment.0.saturating_add(by)).min(now));
    }
}

/// The octets as they were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Octets {
    length: usize,
    /// In hexadecimal.
    sha256: String,
}

impl Octets {
    fn of(bytes: &[u8]) -> Octets {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Octets { length: bytes.len(), sha256 }
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Line<K> {
    #[serde(flatten)]
    kept: K,
    /// Not in files of former versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    octets: Option<Octets>,
}

/// The copies of a state directory; nothing is kept without one.
#[derive(Debug, Default)]
pub struct Store {
    directory: Option<PathBuf>,
    /// Sites whose copy cannot be written: said once.
    failing: BTreeSet<String>,
    /// Sites whose copy is there and could not be read: it may be good, and there is no other.
    unread: BTreeSet<String>,
}

/// Why a copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Torn {
    /// It may be good.
    #[error("{0}")]
    Unread(#[from] io::Error),
    /// It is not what was written.
    #[error("{0}")]
    Damaged(&'static str),
}

impl Store {
    /// Of this state directory.
    pub fn new(state: Option<&Path>) -> Store {
        let directory = state.map(|state| state.join("origin-robots"));
        Store { directory, failing: BTreeSet::new(), unread: BTreeSet::new() }
    }

    /// Every site's; moments to come are taken for now. What cannot be understood is as good as not there, for it is
    /// fetched again: `torn` is told of it.
    pub fn load(&mut self, now: Timestamp, torn: impl Fn(&Path, &Torn)) -> BTreeMap<String, Kept> {
        let entries = self.directory.as_ref().and_then(|directory| fs::read_dir(directory).ok());
        let paths: Vec<PathBuf> = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
        let mut copies = BTreeMap::new();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "copy")) {
            let Some(site) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            match read(path) {
                Ok(mut kept) => {
                    kept.fetch.until(now);
                    kept.left_at = kept.left_at.map(|moment| moment.min(now));
                    copies.insert(site.to_owned(), kept);
                }
                Err(why) => {
                    if let Torn::Unread(_) = why {
                        self.unread.insert(site.to_owned());
                    }
                    torn(path, &why);
                }
            }
        }
        copies
    }

    /// Keeps a site's. A failure is a warning: what is served does not depend on it.
    pub fn keep(&mut self, site: &str, kept: &Kept) {
        let Some(file) = self.file(site) else { return };
        // No copy is no reason to give up one that may be good.
        if kept.fetch.copy().is_none() && self.unread.contains(site) {
            return;
        }
        match write(&file, kept) {
            Ok(()) => {
                self.unread.remove(site);
                self.failing.remove(site);
            }
            Err(error) => {
                if self.failing.insert(site.to_owned()) {
                    tracing::warn!(%site, %error, file = %file.display(), "the copy of the origin's robots.txt cannot be kept");
                }
            }
        }
    }

    /// Forgets a site that is gone.
    pub fn forget(&mut self, site: &str) {
        self.unread.remove(site);
        self.failing.remove(site);
        if let Some(file) = self.file(site) {
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self, site: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{site}.copy")))
    }
}

fn read(file: &Path) -> Result<Kept, Torn> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    let end = memchr::memchr(b'\n', &bytes).ok_or(Torn::Damaged("its first line does not end"))?;
    let line = serde_json::from_slice(&bytes[..end]);
    let Line::<Kept> { mut kept, octets } =
        line.map_err(|_| Torn::Damaged("its first line is not what was written"))?;
    let rest = bytes.split_off(end + 1);
    // Octets of no copy: what the line said of it is lost.
    let is_ownerless = kept.fetch.copy().is_none() && !rest.is_empty();
    if is_ownerless || octets.is_some_and(|octets| octets != Octets::of(&rest)) {
        return Err(Torn::Damaged("it is not what was written"));
    }
    kept.fetch.restore(rest);
    Ok(kept)
}

fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let bytes = kept.fetch.copy().map_or(b"".as_slice(), |copy| &copy.bytes);
    write_whole(file, |out| {
        serde_json::to_writer(&mut *out, &Line { kept, octets: Some(Octets::of(bytes)) })?;
        out.write_all(b"\n")?;
        out.write_all(bytes)
    })
}
