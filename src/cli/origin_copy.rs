//! The origin's own robots.txt for commands that ask the engine without a server: a file that is named, or the copies that
//! a running crawlgate keeps. What is assumed where neither is given is said.

use super::{Failure, say};
use crate::live::{KnownOrigins, OriginKnown, WithoutPolicy};
use crate::policy::Site;
use crate::policy::origin::{Origin, OriginFile};
use crate::server::known_origins;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the origin's robots.txt is to be taken from.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OriginFrom {
    /// The origin's own robots.txt, for policies that merge it
    #[arg(long, value_name = "FILE", conflicts_with = "state")]
    origin_robots: Option<PathBuf>,
    /// The state directory of a crawlgate, whose copies of origins' robots.txt are used
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// What was found there.
#[derive(Debug, Default)]
pub struct OriginCopies {
    file: Option<Arc<OriginFile>>,
    kept: KnownOrigins,
    given: bool,
}

impl OriginFrom {
    /// Reads it.
    pub fn read(&self) -> Result<OriginCopies, Failure> {
        let file = match &self.origin_robots {
            None => None,
            Some(path) => {
                let bytes = fs::read(path)
                    .map_err(|error| Failure::CouldNot(format!("cannot read {}: {error}", path.display())))?;
                Some(Arc::new(OriginFile::new(path.display().to_string(), bytes)))
            }
        };
        if let Some(state) = self.state.as_deref().filter(|state| !state.is_dir()) {
            return Err(Failure::CouldNot(format!("{} is no directory", state.display())));
        }
        let kept = self.state.as_deref().map(|state| known_origins(Some(state))).unwrap_or_default();
        Ok(OriginCopies { given: file.is_some() || self.state.is_some(), file, kept })
    }
}

impl OriginCopies {
    /// What a site is to be compiled with.
    pub fn of(&self, site: &str) -> Origin {
        match (&self.file, self.kept.copies.get(site)) {
            (Some(file), _) | (None, Some(OriginKnown::Copy(file))) => Origin::Read(file.clone()),
            (None, _) => Origin::Unknown,
        }
    }

    /// The sites without a policy of which something is known.
    pub fn sites_without_policy(&self) -> Vec<WithoutPolicy> {
        match &self.file {
            Some(_) => vec![WithoutPolicy::for_every_host()],
            None => {
                self.kept.without_policy.iter().filter(|site| self.of(&site.name).file().is_some()).cloned().collect()
            }
        }
    }

    /// What a site's answers are based on, where its policy asks for the origin's file.
    pub fn assumption(&self, site: &Site) -> Option<String> {
        if !site.policy.reads_origin() {
            return None;
        }
        Some(match (&site.origin, self.given) {
            (Some(origin), _) => format!("as in {}", origin.location),
            (None, true) => "no copy is kept of it: without its rules".into(),
            (None, false) => "not known here: without its rules (give --origin-robots FILE or --state DIR)".into(),
        })
    }

    /// Says on standard error what is assumed about the origins of sites.
    pub fn say_assumptions<'a>(&self, sites: impl Iterator<Item = &'a Site>) {
        for site in sites.filter(|site| site.origin.is_none()) {
            if let Some(assumption) = self.assumption(site) {
                say(&format!("note: {}: the origin's own robots.txt: {assumption}", site.name));
            }
        }
    }
}
