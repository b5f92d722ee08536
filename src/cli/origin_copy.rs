//! Reads the origin's own robots.txt for commands that work without a running crawlgate. The user
//! names, by a flag ([`OriginFlags`]), a robots.txt file, or a state directory in which crawlgate
//! keeps copies of origins' files. [`OriginCopies`] are the files that were read. Without a flag, a
//! command prints what it assumes about the origin's robots.txt.

use super::control::ConfigFlag;
use super::{Result, file_failure, now};
use crate::files::{MAX_FILE_BYTES, read_argument};
use crate::origin::robots::{StoredCopies, find_defect, truncate_body};
use crate::policy::Site;
use crate::policy::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::printable::{join_first, printable_path};
use crate::robots::{MAX_ROBOTS_BYTES, RobotsFile};
use crate::settings::Settings;
use crate::sites::policy_directory::list_policies;
use crate::sites::{DefaultSite, InitialOriginRobots, ServedRobotsKind};
use crate::state::StateStore;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to see the effect of a file that is held back.
const CHECK_HINT: &str = "\"crawlgate check --origin-robots FILE\" shows what it would change";

/// What is left of a larger robots.txt, so that its rules can be compiled: crawlgate adds lines of its
/// own.
pub const MAX_COMPILED_BYTES: usize = MAX_ROBOTS_BYTES - 1_024;

/// The source of the origin's robots.txt.
#[derive(Default, clap::Args)]
pub struct OriginFlags {
    /// The origin's own robots.txt, for policies that use it
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    pub origin_robots: Option<PathBuf>,
    /// Use the origins' robots.txt and the lists of crawler networks in this state directory
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// The robots.txt files of origins.
#[derive(Default)]
pub struct OriginCopies {
    file: Option<Arc<OriginRobotsTxt>>,
    /// From the state directory.
    known: InitialOriginRobots,
    is_given: bool,
}

/// The flags of a command that reads policies.
#[derive(clap::Args)]
pub struct PolicyFlags {
    /// The policy directory [default: policies, or as in --config]
    #[arg(long, value_name = "DIR")]
    policies: Option<PathBuf>,
    #[command(flatten)]
    origin: OriginFlags,
    #[command(flatten)]
    config: ConfigFlag,
}

impl PolicyFlags {
    /// The policy directory, and the origins' files.
    pub fn read(&self) -> Result<(PathBuf, OriginCopies)> {
        let settings = self.config.settings()?;
        let origins = self.origin.read_or_settings(settings.as_ref())?;
        let policies = self
            .policies
            .clone()
            .unwrap_or_else(|| settings.unwrap_or_default().policies);
        Ok((policies, origins))
    }
}

impl OriginFlags {
    /// Reads the file, or the copies in the state directory. Fails for a file that crawlgate would
    /// not accept from an origin.
    pub fn read(&self) -> Result<OriginCopies> {
        self.read_with_state(self.state.as_deref())
    }

    /// [`OriginFlags::read`]. Without a flag, the copies in the state directory of the settings, if
    /// this user may read it. Before the first start, the copy that `init` made of a single site's.
    pub fn read_or_settings(&self, settings: Option<&Settings>) -> Result<OriginCopies> {
        let has_flag = self.origin_robots.is_some() || self.state.is_some();
        let Some(settings) = settings.filter(|_| !has_flag) else {
            return self.read();
        };
        let state = settings.state.as_deref().filter(|state| state.is_dir());
        let mut origins = self.read_with_state(state).or_else(|_| self.read())?;
        if list_policies(&settings.policies).is_ok_and(|policies| policies.len() == 1) {
            origins.assume(read_origin_file(&settings.policies.join("before.txt")).ok());
        }
        Ok(origins)
    }

    fn read_with_state(&self, state: Option<&Path>) -> Result<OriginCopies> {
        let file = self
            .origin_robots
            .as_deref()
            .map(read_origin_file)
            .transpose()?;
        let stored = match state {
            None => StoredCopies::default(),
            Some(state) if !state.is_dir() => {
                fail!(Runtime, "{} is not a directory", state.display());
            }
            Some(state) => {
                StoredCopies::from_records(&StateStore::read(state, now())?.origin_copies, now())
            }
        };
        let known = crate::server::known_origins(&stored, &[]);
        Ok(OriginCopies {
            is_given: file.is_some() || state.is_some(),
            file,
            known,
        })
    }
}

/// Cuts a robots.txt that is larger than crawlers read to `max` bytes, with a warning.
pub fn truncate_file(name: &str, bytes: &mut Vec<u8>, max: usize) {
    if let Some(cut) = truncate_body(bytes, max) {
        print_message!("warning: {name}: {cut}");
    }
}

/// Reads a file as the robots.txt of an origin.
fn read_origin_file(path: &Path) -> Result<Arc<OriginRobotsTxt>> {
    let name = printable_path(path);
    let mut bytes = read_argument(path, MAX_FILE_BYTES).map_err(file_failure("open", path))?;
    truncate_file(&name, &mut bytes, MAX_ROBOTS_BYTES);
    if let Some(defect) = find_defect(&RobotsFile::parse(bytes.as_slice()), false) {
        fail!(
            Runtime,
            "{name}: {defect}; crawlgate would reject such a file from the origin, and keep its last copy"
        );
    }
    Ok(Arc::new(OriginRobotsTxt::new(name, bytes)))
}

impl OriginCopies {
    /// The origin's file for a site: the file of the flag, else the stored copy of this site.
    pub fn for_site(&self, site: &str) -> OriginRobotsAvailability {
        match (&self.file, self.known.copies.get(site)) {
            (Some(file), _) => OriginRobotsAvailability::Available(file.clone()),
            (None, known) => known.cloned().unwrap_or_default(),
        }
    }

    /// The default sites for a directory without policies: one for every host with the file of the
    /// flag, else the sites in the state directory.
    pub fn sites_without_policy(&self) -> Vec<DefaultSite> {
        match &self.file {
            Some(_) => vec![DefaultSite::catch_all()],
            None => self.known.default_sites.clone(),
        }
    }

    /// What the command assumes about the origin's file of a site, and whether the current file is
    /// held back, in words. `None` if the policy does not use the file.
    pub fn assumption(&self, site: &Site) -> Option<String> {
        if !site.policy.reads_origin() {
            return None;
        }
        let assumption = match (&site.origin, ServedRobotsKind::at(site, now()).1) {
            (Some(origin), _) => format!("as in {}", origin.location),
            (None, Some(until)) => {
                format!(
                    "there is no copy, so its rules are missing here; robots.txt answers 503 until {until}"
                )
            }
            (None, None) if self.is_given => {
                "there is no copy, so its rules are missing here".into()
            }
            (None, None) => {
                "not known here, so its rules are missing. Add --origin-robots FILE, or --config once crawlgate has run"
                    .into()
            }
        };
        Some(match self.held_back_reason(site) {
            Some(why) => {
                format!("{assumption}; the origin's current file is held back: {why}; {CHECK_HINT}")
            }
            None => assumption,
        })
    }

    /// Why the server held the origin's current file back. `None` with a file of the flag.
    fn held_back_reason(&self, site: &Site) -> Option<&String> {
        self.known
            .held_back
            .get(&site.name)
            .filter(|_| self.file.is_none())
    }

    /// Without a flag, takes this file as the robots.txt of every origin.
    pub fn assume(&mut self, file: Option<Arc<OriginRobotsTxt>>) {
        if !self.is_given {
            self.file = file;
        }
    }

    /// Prints the assumption about each site that has no copy, or whose current file is held back;
    /// after [`OriginCopies::assume`] about each site. Sites with the same assumption share a line.
    pub fn print_assumptions<'a>(&self, sites: impl IntoIterator<Item = &'a Site>) {
        let mut names = BTreeMap::<_, BTreeSet<_>>::new();
        for site in sites {
            let is_assumed = self.file.is_some() && !self.is_given;
            let is_printed =
                site.origin.is_none() || is_assumed || self.held_back_reason(site).is_some();
            if is_printed && let Some(assumption) = self.assumption(site) {
                names.entry(assumption).or_default().insert(&site.name);
            }
        }
        for (assumption, names) in names {
            print_message!(
                "note: robots.txt of the origin of {}: {assumption}",
                join_first(names, 5)
            );
        }
    }
}
