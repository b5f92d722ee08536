//! [`OriginFile`]: crawlgate's copy of the robots.txt of the origin (the web server behind
//! crawlgate), which a policy can be merged with. [`Origin`] tells a compilation whether there is a
//! copy, or whether it is awaited. [`OriginCopyState`] is the state of the copy, for metrics and
//! the status.

use crate::robots::File;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{IntoStaticStr, VariantArray};

/// A copy of the origin's own robots.txt. It is empty where the origin has none.
#[derive(Clone, Debug)]
pub struct OriginFile {
    /// Where it came from: a URL or a path. Never published: it may be an address behind a
    /// firewall.
    pub location: String,
    /// The file.
    pub file: File,
    /// When the origin says that it was changed last.
    pub last_modified: Option<Timestamp>,
    /// The authorities by which crawlgate reaches origins.
    pub internal: Arc<InternalAuthorities>,
}

/// Authorities by which crawlgate reaches origins, and crawlers do not: no robots.txt publishes
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InternalAuthorities {
    /// Hosts that origins want as their Host. In a URL that a site publishes, its own host takes
    /// the place of the one that its origin wants.
    pub hosts: Vec<WantedHost>,
    /// Servers, each with its port.
    pub servers: Vec<String>,
}

/// The Host that an origin wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedHost {
    /// The host, with or without a port.
    pub host: String,
    /// The hosts of that origin, as the settings have them; empty for all that no other origin has.
    pub origin_hosts: Vec<String>,
}

impl OriginFile {
    /// Parses a copy. `location` is the URL or path that it came from. It has no Last-Modified and
    /// no internal authorities yet.
    pub fn new(location: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> OriginFile {
        OriginFile {
            location: location.into(),
            file: File::parse(bytes),
            last_modified: None,
            internal: Arc::default(),
        }
    }

    /// The copy with the value of Last-Modified; `None` and a value that is no HTTP date take it
    /// away.
    pub fn modified(self, last_modified: Option<&str>) -> OriginFile {
        OriginFile {
            last_modified: last_modified.and_then(Timestamp::from_http_date),
            ..self
        }
    }

    /// The copy with the authorities that are not to be published.
    pub fn within(self, internal: Arc<InternalAuthorities>) -> OriginFile {
        OriginFile { internal, ..self }
    }

    /// Where a line stands: `https://origin/robots.txt:12`.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.location)
    }
}

/// The knowledge of the origin's robots.txt when a policy is compiled.
#[derive(Clone, Debug, Default)]
pub enum Origin {
    /// There is no copy: the policy stands alone.
    #[default]
    Unknown,
    /// There is no copy yet: the policy stands alone, and until this moment its robots.txt is not
    /// served.
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

/// The state of the copy of an origin's robots.txt. Metrics and the status show it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OriginCopyState {
    /// There is no copy yet, and crawlgate waits for one.
    Awaited,
    /// The copy is what the origin has.
    Current,
    /// The origin has no file.
    Absent,
    /// The last good copy is in use, because the origin gives no usable answer.
    Kept,
    /// The origin has another file. crawlgate does not use it because it would do harm.
    HeldBack,
    /// There was never a copy, and crawlgate no longer waits.
    Missing,
}

named!(OriginCopyState);

impl OriginCopyState {
    /// Every state.
    #[cfg(any(test, feature = "internals"))]
    pub const ALL: &[OriginCopyState] = OriginCopyState::VARIANTS;
}
