//! Copies on disk: one file a site in the state directory, a line of JSON and then the octets.

use super::Life;
use crate::durable::write_whole;
use crate::robots::MAX_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The first line is short; more is no file of ours.
const MAX_FILE: u64 = MAX_BYTES as u64 + 64 * 1024;

/// What is kept of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its copy.
    #[serde(flatten)]
    pub life: Life,
    /// The hosts of a site without a policy, which stand in no file; none for every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_policy: Option<Vec<String>>,
}

/// The copies of a state directory; nothing is kept without one.
#[derive(Debug, Default)]
pub struct Store {
    directory: Option<PathBuf>,
    /// Sites whose copy cannot be written: said once.
    failing: BTreeSet<String>,
}

impl Store {
    /// Of this state directory.
    pub fn new(state: Option<&Path>) -> Store {
        Store { directory: state.map(|state| state.join("origin-robots")), failing: BTreeSet::new() }
    }

    /// Every site's. What cannot be understood is as good as not there, for it is fetched again: `torn` is told of it.
    pub fn load(&self, torn: impl Fn(&Path)) -> BTreeMap<String, Kept> {
        let entries = self.directory.as_ref().and_then(|directory| fs::read_dir(directory).ok());
        let files = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        files
            .filter(|path| path.extension().is_some_and(|extension| extension == "copy"))
            .filter_map(|path| {
                let kept = read(&path);
                if kept.is_none() {
                    torn(&path);
                }
                Some((path.file_stem()?.to_str()?.to_owned(), kept?))
            })
            .collect()
    }

    /// Keeps a site's. A failure is a warning: what is served does not depend on it.
    pub fn keep(&mut self, site: &str, kept: &Kept) {
        let Some(file) = self.file(site) else { return };
        match write(&file, kept) {
            Ok(()) => {
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
        self.failing.remove(site);
        if let Some(file) = self.file(site) {
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self, site: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{site}.copy")))
    }
}

fn read(file: &Path) -> Option<Kept> {
    let mut bytes = Vec::new();
    fs::File::open(file).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    let end = memchr::memchr(b'\n', &bytes)?;
    let mut kept: Kept = serde_json::from_slice(&bytes[..end]).ok()?;
    kept.life.restore(bytes.split_off(end + 1));
    Some(kept)
}

fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    write_whole(file, |out| {
        serde_json::to_writer(&mut *out, kept)?;
        out.write_all(b"\n")?;
        out.write_all(kept.life.copy().map_or(b"".as_slice(), |copy| &copy.bytes))
    })
}
