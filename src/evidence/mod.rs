//! Evidence: a log that a third party can check. There is one hash chain for each site and crawler, one for each site's
//! publications, and one for the log itself. Signed checkpoints cover the heads of all chains.
//!
//! - Pure: `canonical`, `entry`, `personal`, `merkle`, `note`, `checkpoint`, `keys`.
//! - The log: `log` is the handle that records go through. A thread (`writer`) takes what waits in the `queue` and writes it
//!   into `database`.
//! - A case is a part of the log as one file: `case` takes it from a log, `compose` puts logs together,
//!   `verify` checks it, `report` shows it.

#[cfg(feature = "proxy")]
mod authority;
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
pub(crate) mod report;
mod requests;
mod shared;
mod tar;
mod timestamp;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

#[cfg(feature = "proxy")]
pub use authority::stamp;
pub use canonical::Hash;
use canonical::{canonical, hex};
pub use case::{CaseSpan, ExportError, cover};
use checkpoint::{Checkpoint, Head, HeadProof};
pub use commands::{forget, rotate_key, status};
pub use compose::{read_joined, write_case};
use database::{Chain, EvidenceDatabase, Rows, Writing};
pub use database::{DatabaseError, ProofRecord, Record};
use documents::{CHAINS, Document, named_proof};
pub use entry::{ChainName, time_text};
use entry::{Entry, Link, hash_of};
use examine::examine;
use findings::named_twice;
pub use findings::{CaseFindings, Findings, ProofFinding, PublishedVersion, RequestFinding, ServedFile};
use judging::RobotsFiles;
use keys::Keys;
pub use log::Evidence;
pub use note::{NoteError, SigningKey, VerifyKey};
use opening::read_key;
pub use opening::{OpenError, OpenLog, open_existing};
pub use openssl::verify_stamps;
use parts::{Stray, split};
use personal::{NoRandom, Personal, PersonalLine, commitment, value_of};
use queue::Batch;
use shared::Shared;
use tar::{Files, NotAnArchive};
#[cfg(feature = "internals")]
pub use timestamp::read as read_stamp;
pub use verify::verify;
pub use writer::Bounds;
