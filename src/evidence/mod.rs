//! Evidence: a log that a third party can check. There is one hash chain for each site and crawler, one for each site's
//! publications, and one for the log itself. Signed checkpoints cover the heads of all chains.
//!
//! - Pure: `canonical`, `entry`, `personal`, `merkle`, `note`, `checkpoint`, `keys`.
//! - The log: `log` is the handle that records go through. A thread (`writer`) takes what waits in the `queue` and writes it
//!   into `database`.
//! - A case is a part of the log as one file: `case` takes it from a log, `compose` puts logs together,
//!   `verify` checks it, `report` shows it.
//!
//! The room must not know requests or policies: the rooms above say what happened.

#[cfg(feature = "proxy")]
mod authority;
mod beginnings;
mod canonical;
mod case;
mod checkpoint;
mod commands;
mod compose;
mod database;
mod documents;
mod entry;
mod examine;
mod findings;
mod judging;
mod keys;
mod log;
mod manifest;
mod merkle;
mod note;
mod opening;
mod openssl;
mod parts;
mod personal;
mod proofs;
mod queue;
mod report;
mod requests;
mod shared;
mod tar;
mod timestamp;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

#[cfg(feature = "proxy")]
pub use authority::{StampError, stamp};
pub use canonical::Hash;
pub use case::{CaseSpan, ExportError, cover};
pub use commands::{ChainStatus, LogStatus, RotateError, forget, rotate_key, status};
pub use compose::{ComposeError, read_joined, write_case};
pub use database::{DatabaseError, ProofRecord, Record};
pub use entry::{ChainName, time_text};
pub use findings::{CaseFindings, Findings, ProofFinding, PublishedVersion, RequestFinding, ServedCopy};
pub use log::Evidence;
pub use note::{NoteError, SigningKey, VerifyKey};
pub use opening::{OpenError, OpenLog, open_existing};
pub use openssl::{StampCheckError, verify_stamps};
pub use timestamp::{Stamp, read as read_stamp};
pub use verify::verify;
pub use writer::Bounds;
