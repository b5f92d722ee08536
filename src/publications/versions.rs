//! [`VersionStore`]: the bytes of every robots.txt that a crawler may still use, by version. The
//! rules of a version are parsed when they are first needed, and kept. [`OfOthers`]: what other
//! instances published.

use super::log::PublicationLog;
use crate::crawlers::Registry;
use crate::policy::{ParsedVersion, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A version with its bytes.
pub type VersionFile = (Version, Arc<[u8]>);

/// What other instances publish and published.
#[derive(Debug, Default)]
pub struct OfOthers {
    /// The log of each run.
    pub logs: Vec<PublicationLog>,
    /// The bytes of all versions in them, as far as they are known.
    pub files: Vec<VersionFile>,
}

/// Versions by their identity.
#[derive(Debug, Default)]
pub struct VersionStore {
    versions: BTreeMap<Version, Stored>,
}

#[derive(Debug)]
enum Stored {
    Bytes(Arc<[u8]>),
    Parsed(Arc<ParsedVersion>),
}

impl VersionStore {
    /// Keeps the bytes of a version. A version that is known stays as it is.
    pub fn insert(&mut self, version: Version, body: Arc<[u8]>) {
        self.versions.entry(version).or_insert(Stored::Bytes(body));
    }

    /// Whether the bytes of a version are known.
    pub fn contains(&self, version: Version) -> bool {
        self.versions.contains_key(&version)
    }

    /// All versions with their bytes.
    pub fn each(&self) -> impl Iterator<Item = VersionFile> {
        self.versions.iter().map(|(version, stored)| match stored {
            Stored::Bytes(bytes) => (*version, bytes.clone()),
            Stored::Parsed(parsed) => (*version, parsed.body.clone()),
        })
    }

    /// A version, ready for verdicts; `None` where its bytes are not known.
    pub fn parsed(&mut self, version: Version, registry: &Registry) -> Option<Arc<ParsedVersion>> {
        let stored = self.versions.get_mut(&version)?;
        let parsed = match stored {
            Stored::Parsed(parsed) => parsed.clone(),
            Stored::Bytes(body) => Arc::new(ParsedVersion::read(body.clone(), registry)),
        };
        *stored = Stored::Parsed(parsed.clone());
        Some(parsed)
    }

    /// Forgets all other versions.
    pub fn keep_only(&mut self, wanted: &BTreeSet<Version>) {
        self.versions.retain(|version, _| wanted.contains(version));
    }
}
