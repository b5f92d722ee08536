//! [`OriginRobotsTxt`]: crawlgate's copy of the robots.txt that the origin (the web server behind
//! crawlgate) serves itself. A policy can be merged with it. [`OriginRobotsAvailability`] tells the
//! compiler whether there is a copy, and [`OriginCopyState`] is its state in metrics and status.

use crate::numbers::plural;
use crate::printable::{clip, printable};
use crate::robots::RobotsFile;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{IntoStaticStr, VariantArray};

/// A copy of the origin's own robots.txt; empty where the origin has none.
#[derive(Clone, Debug)]
pub struct OriginRobotsTxt {
    /// The URL or path that it came from. Never published: it may be an address behind a firewall.
    pub location: String,
    /// The parsed file.
    pub file: RobotsFile,
    /// Its Last-Modified.
    pub last_modified: Option<Timestamp>,
    /// Authorities that the merged file must not contain.
    pub internal: Arc<InternalAuthorities>,
}

/// Authorities by which crawlgate reaches origins. Crawlers cannot use them, so no robots.txt
/// publishes them.
#[derive(Clone, Debug, Default)]
pub struct InternalAuthorities {
    /// The Host values that origins are sent in place of the requested host. In a published URL the
    /// site's own host replaces them.
    pub hosts: Vec<HostOverride>,
    /// Addresses of servers, each with its port.
    pub servers: Vec<String>,
}

/// A Host value that an origin is sent in place of the requested host.
#[derive(Clone, Debug)]
pub struct HostOverride {
    /// The value, with or without a port.
    pub host: String,
    /// The site hosts of that origin, as the settings list them; empty for every other host.
    pub origin_hosts: Vec<String>,
}

impl OriginRobotsTxt {
    /// Parses a copy, without Last-Modified and internal authorities.
    pub fn new(location: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> OriginRobotsTxt {
        OriginRobotsTxt {
            location: location.into(),
            file: RobotsFile::parse(bytes),
            last_modified: None,
            internal: Arc::default(),
        }
    }

    /// The location of a line: `https://origin/robots.txt:12`.
    pub fn line_location(&self, line: usize) -> String {
        format!("{}:{line}", self.location)
    }

    /// What the reader must know about misspelt lines: other crawlers than Google's may ignore them,
    /// with this `consequence`. `None` without such lines.
    pub(crate) fn misspelt_lines_caution(&self, consequence: &str) -> Option<String> {
        let mut lines = self.file.misspelt_lines();
        let first = lines.next()?;
        let count = 1 + lines.count();
        let which = if count == 1 { "" } else { "the first is " };
        Some(format!(
            "{0} has {1}: {which}line {2} ({3}). Google obeys misspelt lines. Other crawlers may \
             ignore them, so {consequence}. crawlgate check {0} shows more.",
            self.location,
            plural(count, "misspelt line"),
            first.number,
            clip(&printable(self.file.slice(&first.text)), 80)
        ))
    }

    /// The line with this number as it is written, if it is misspelt.
    pub(crate) fn misspelt_line(&self, number: usize) -> Option<String> {
        let line = self.file.lines().get(number.checked_sub(1)?)?;
        let written = self.file.slice(&line.key_value.as_ref()?.whole());
        line.is_misspelt()
            .then(|| String::from_utf8_lossy(written).into_owned())
    }
}

/// Whether a policy is compiled with a copy of the origin's robots.txt.
#[derive(Clone, Debug, Default)]
pub enum OriginRobotsAvailability {
    /// There is no copy: the policy is compiled alone.
    #[default]
    Missing,
    /// There is no copy yet: the policy is compiled alone, and robots.txt answers 503 meanwhile.
    Awaited {
        /// When robots.txt is served without the copy.
        until: Timestamp,
    },
    /// There is a copy.
    Available(Arc<OriginRobotsTxt>),
}

impl OriginRobotsAvailability {
    /// The copy, if there is one.
    pub fn file(&self) -> Option<&Arc<OriginRobotsTxt>> {
        match self {
            OriginRobotsAvailability::Available(file) => Some(file),
            OriginRobotsAvailability::Missing | OriginRobotsAvailability::Awaited { .. } => None,
        }
    }
}

/// The state of crawlgate's copy of an origin's robots.txt, in metrics and status.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OriginCopyState {
    /// There is no copy yet, and crawlgate waits for one.
    Awaited,
    /// The copy is what the origin serves.
    Current,
    /// The origin has no file.
    Absent,
    /// The last good copy is used, because the origin gives no usable answer.
    Kept,
    /// The origin serves another file, which crawlgate does not use because it would do harm.
    HeldBack,
    /// There was never a copy, and crawlgate no longer waits.
    Missing,
}

named!(OriginCopyState);
