//! A copy of an origin's robots.txt: [`FetchedCopy`]. Must not know how it was fetched or what becomes of it.

use crate::robots::{File, Key};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A good copy. A copy without bytes stands for an origin that has no robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchedCopy {
    /// The first 500 KiB, whole lines.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
    /// Its URL, after redirects.
    pub url: String,
    /// The `ETag` of the answer.
    pub etag: Option<String>,
    /// The `Last-Modified` of the answer.
    pub last_modified: Option<String>,
    /// When it was fetched.
    pub fetched: Timestamp,
    /// Whether the origin has a file.
    pub exists: bool,
    /// Why there is none, for a person.
    pub reason: Option<String>,
}

impl FetchedCopy {
    /// For an origin that has no file.
    pub fn without_file(url: String, reason: String, fetched: Timestamp) -> FetchedCopy {
        let (bytes, reason) = (Arc::default(), Some(reason));
        FetchedCopy { bytes, url, etag: None, last_modified: None, fetched, exists: false, reason }
    }

    /// Whether there is more in it than comments: rules, sitemaps, a licence.
    pub fn has_records(&self) -> bool {
        File::parse(self.bytes.clone()).lines().iter().any(|line| line.record.is_some())
    }

    /// Whether it has a group of rules.
    pub fn has_rules(&self) -> bool {
        has_rules(&File::parse(self.bytes.clone()))
    }
}

/// Whether a file has a group of rules.
pub fn has_rules(file: &File) -> bool {
    file.lines().iter().any(|line| line.record.as_ref().is_some_and(|record| record.key == Key::UserAgent))
}
