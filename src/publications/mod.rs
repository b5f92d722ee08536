//! The publications: which robots.txt was in force on which host, and when. A robots.txt belongs to
//! a host, whichever policy file it was made from. [`PublicationLog`] notes which site had which
//! hosts and what each site published, and computes from both the
//! [`HostHistory`](crate::policy::HostHistory) of every pattern. [`VersionStore`] keeps the bytes
//! of versions and parses them when they are needed.
//!
//! This module reads no clock: `now` is an argument.

mod log;
mod timeline;
mod versions;

pub use log::{
    Change, Current, Declared, Gaps, Publication, PublicationLog, Published, Span, Tenure, covers,
    next_number,
};
pub use timeline::Horizon;
pub use versions::{OfOthers, VersionFile, VersionStore};

#[cfg(test)]
mod tests;
