//! [`VersionStore`]: the bytes of every robots.txt that a crawler may still have in its cache. A
//! file is parsed when its rules are first needed, and the parsed rules are kept.
//! [`PeerPublicationLogs`] has what other instances of crawlgate published.

use super::log::PublicationLog;
use crate::crawlers::Registry;
use crate::policy::{ParsedRobotsVersion, RobotsVersionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A version with its bytes.
pub type VersionFile = (RobotsVersionId, Arc<[u8]>);

/// What other instances published.
pub struct PeerPublicationLogs {
    /// The log of each run.
    pub logs: Vec<PublicationLog>,
    /// The bytes of all versions in them, as far as they are known.
    pub files: Vec<VersionFile>,
}

/// The known versions by their ids.
#[derive(Default)]
pub struct VersionStore {
    versions: BTreeMap<RobotsVersionId, LazilyParsedVersion>,
}

struct LazilyParsedVersion {
    body: Arc<[u8]>,
    /// Parsed when it is first needed.
    parsed: Option<Arc<ParsedRobotsVersion>>,
}

impl VersionStore {
    /// Keeps the bytes of a version. A version that is known stays as it is.
    pub fn insert(&mut self, version: RobotsVersionId, body: Arc<[u8]>) {
        self.versions
            .entry(version)
            .or_insert(LazilyParsedVersion { body, parsed: None });
    }

    /// Whether the bytes of a version are known.
    pub fn contains(&self, version: RobotsVersionId) -> bool {
        self.versions.contains_key(&version)
    }

    /// All versions with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = VersionFile> {
        let versions = self.versions.iter();
        versions.map(|(version, stored)| (*version, stored.body.clone()))
    }

    /// A version with its parsed rules; `None` if its bytes are not known.
    pub fn get_parsed(
        &mut self,
        version: RobotsVersionId,
        registry: &Registry,
    ) -> Option<Arc<ParsedRobotsVersion>> {
        let stored = self.versions.get_mut(&version)?;
        let parsed = stored.parsed.get_or_insert_with(|| {
            Arc::new(ParsedRobotsVersion::parse(stored.body.clone(), registry))
        });
        Some(parsed.clone())
    }

    /// Removes all versions that are not `wanted`.
    pub fn retain_only(&mut self, wanted: &BTreeSet<RobotsVersionId>) {
        self.versions.retain(|version, _| wanted.contains(version));
    }
}
