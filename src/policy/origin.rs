//! The origin's own robots.txt, as far as a policy is concerned: a file from somewhere, or none yet.
//!
//! Must not know how it is fetched or kept: it is an argument of compiling.

use crate::robots::File;
use crate::time::Timestamp;
use std::sync::Arc;

/// A copy of it. A site that has none is an empty file.
#[derive(Clone, Debug)]
pub struct OriginFile {
    /// Where it came from, for those who ask: a URL or a path. Never published: it may be an address behind a firewall.
    pub location: String,
    /// The file.
    pub file: File,
}

impl OriginFile {
    /// Reads a copy.
    pub fn new(location: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> OriginFile {
        OriginFile { location: location.into(), file: File::parse(bytes) }
    }

    /// Where a line stands: `https://origin/robots.txt:12`.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.location)
    }
}

/// What is known of the origin's robots.txt when a policy is compiled.
#[derive(Clone, Debug, Default)]
pub enum Origin {
    /// Nothing: the policy stands alone.
    #[default]
    Unknown,
    /// Nothing yet: the policy stands alone, and until this moment its robots.txt is not served.
    Awaited {
        /// When waiting is over.
        until: Timestamp,
    },
    /// A copy.
    Read(Arc<OriginFile>),
}

impl Origin {
    /// The copy, if there is one.
    pub fn file(&self) -> Option<&Arc<OriginFile>> {
        match self {
            Origin::Read(file) => Some(file),
            Origin::Unknown | Origin::Awaited { .. } => None,
        }
    }
}
