//! The history of robots.txt: which file was in force on which host, and when. crawlgate needs this
//! history because a crawler may still obey an older robots.txt from its cache. [`PublicationLog`]
//! records which site had which hosts and what each site published. From these records it computes
//! the [`PublicationHistory`](crate::policy::PublicationHistory) of every host pattern.
//! [`VersionStore`] keeps the bytes of each robots.txt, and parses them when a request needs the
//! rules.
//!
//! This module reads no clock: `now` is an argument.

mod log;
mod records;
mod timeline;
mod versions;

pub use log::{PublicationLog, next_change_number, pattern_covers};
pub use records::*;
pub use timeline::HistoryHorizon;
pub use versions::{PeerPublicationLogs, VersionFile, VersionStore};

#[cfg(test)]
mod tests;
