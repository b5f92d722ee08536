//! The origin's own robots.txt, for commands that work without a running crawlgate. The options
//! [`OriginFrom`] name a file, or a state directory with stored copies; [`OriginCopies`] holds the
//! files that were read. Without these options the commands print what they assume about the file.

use super::{Failure, Result, cannot, now, say};
use crate::files::{MAX_BYTES, read_argument};
use crate::origin::robots::{StoredCopies, cut, defect};
use crate::policy::Site;
use crate::policy::origin::{Origin, OriginFile};
use crate::printable::printable_path;
use crate::robots::File;
use crate::sites::{DefaultSite, KnownOrigins, Served};
use crate::state::StateStore;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The command that shows what a file that is held back would do.
const TRY: &str = "`crawlgate check --origin-robots FILE` shows the result";

/// Where the origin's robots.txt comes from.
#[derive(Default, clap::Args)]
pub struct OriginFrom {
    /// The origin's own robots.txt, for policies that merge it
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    origin_robots: Option<PathBuf>,
    /// A state directory; its copies of the origins' robots.txt are used
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// The robots.txt files that the options name.
#[derive(Default)]
pub struct OriginCopies {
    file: Option<Arc<OriginFile>>,
    /// From the state directory.
    known: KnownOrigins,
    given: bool,
}

impl OriginFrom {
    /// Reads the file, or the copies in the state directory; without flags nothing is known. Fails
    /// for a file that crawlgate would not take from an origin.
    pub fn read(&self) -> Result<OriginCopies> {
        let file = self.origin_robots.as_deref().map(origin_file).transpose()?;
        let stored = match &self.state {
            None => StoredCopies::default(),
            Some(state) if !state.is_dir() => {
                return Err(Failure::CouldNot(format!(
                    "{} is not a directory",
                    state.display()
                )));
            }
            Some(state) => {
                StoredCopies::read(&StateStore::read(state, now())?.origin_copies, now())
            }
        };
        let known = crate::server::known_origins(&stored, &[]);
        Ok(OriginCopies {
            given: file.is_some() || self.state.is_some(),
            file,
            known,
        })
    }
}

/// Reads a file as that of an origin.
fn origin_file(path: &Path) -> Result<Arc<OriginFile>> {
    let name = printable_path(path);
    let mut bytes = read_argument(path, MAX_BYTES).map_err(cannot("read", path))?;
    if let Some(cut) = cut(&mut bytes) {
        say(&format!("note: {name}: {cut}"));
    }
    if let Some(defect) = defect(&File::parse(bytes.as_slice()), false) {
        let refused = format!(
            "{name}: {defect}; of an origin crawlgate takes no such file, and keeps its copy"
        );
        return Err(Failure::CouldNot(refused));
    }
    Ok(Arc::new(OriginFile::new(name, bytes)))
}

impl OriginCopies {
    /// The origin's file that a site is compiled with: the file of the flag for every site, else
    /// the stored copy of this site, else the default (nothing known).
    pub fn of(&self, site: &str) -> Origin {
        match (&self.file, self.known.copies.get(site)) {
            (Some(file), _) => Origin::Read(file.clone()),
            (None, known) => known.cloned().unwrap_or_default(),
        }
    }

    /// The default sites for a directory without policies: one for every host with the file of the
    /// flag, else those of which the state directory knows something.
    pub fn sites_without_policy(&self) -> Vec<DefaultSite> {
        match &self.file {
            Some(_) => vec![DefaultSite::for_every_host()],
            None => self.known.default_sites.clone(),
        }
    }

    /// In words, what the answers for a site assume about the origin's file, and whether the
    /// origin's current file is held back. `None` if the policy does not read the file.
    pub fn assumption(&self, site: &Site) -> Option<String> {
        if !site.policy.reads_origin() {
            return None;
        }
        let assumption = match (&site.origin, Served::of(site, now()).1) {
            (Some(origin), _) => format!("as in {}", origin.location),
            (None, Some(until)) => {
                format!(
                    "there is no copy: its rules are missing, and robots.txt answers 503 until {until}"
                )
            }
            (None, None) if self.given => "there is no copy: its rules are missing".into(),
            (None, None) => {
                "unknown: its rules are missing (give --origin-robots FILE or --state DIR)".into()
            }
        };
        Some(match self.held_back(site) {
            Some(why) => {
                format!("{assumption}; the origin's current file is held back: {why}; {TRY}")
            }
            None => assumption,
        })
    }

    /// Why the server held the origin's current file back, by the state directory. `None` with a
    /// file of the flag.
    fn held_back(&self, site: &Site) -> Option<&String> {
        self.known
            .held_back
            .get(&site.name)
            .filter(|_| self.file.is_none())
    }

    /// Prints on standard error what is assumed about the origins of those sites that have no copy,
    /// or whose origin's current file is held back.
    pub fn say_assumptions<'a>(&self, sites: impl IntoIterator<Item = &'a Site>) {
        for site in sites {
            if site.origin.is_some() && self.held_back(site).is_none() {
                continue;
            }
            if let Some(assumption) = self.assumption(site) {
                say(&format!(
                    "note: {}: the origin's own robots.txt: {assumption}",
                    site.name
                ));
            }
        }
    }
}
