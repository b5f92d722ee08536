//! The evidence log: what a site published, and what crawlers did there, in a form that a third
//! party can check. The log has one hash chain for each site and crawler, one for each site's
//! publications, and one for the log itself. Signed checkpoints cover the last entries (heads) of
//! all chains. A case is an excerpt of the log as one file, for a third party.
//!
//! - Formats, without files or clock: `canonical`, `entry`, `merkle`, `note`, `checkpoint`, `keys`.
//! - Writing: `sink` records requests, and `publications` what sites publish, through the handle in
//!   `log`. A thread (`writer`) takes the
//!   records that wait in the `queue` and writes them into `database`.
//! - Cases: `case` exports a case from logs, `verify` checks it, and `report` makes its page for
//!   people.

mod authority;
mod canonical;
mod case;
mod checkpoint;
mod commands;
mod database;
mod entry;
mod examine;
mod findings;
mod keys;
mod log;
mod manifest;
mod merkle;
mod note;
mod opening;
mod parts;
mod proofs;
mod publications;
mod queue;
pub(crate) mod report;
mod requests;
mod sink;
mod span;
mod tar;
mod timestamp;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use crate::hash::{Hash, hex};
pub use authority::stamp;
use canonical::canonical;
pub use case::{Joined, cover, read_joined, write_case};
use checkpoint::{Checkpoint, Head, HeadProof};
pub use commands::{LogStatus, forget, rotate_key, status};
use database::{Chain, EvidenceDatabase, Writing};
pub use database::{DatabaseError, Record};
use entry::{
    CHAINS, Document, Entry, Link, Personal, PersonalLine, commitment, hash_of, named_proof,
    value_of,
};
pub use entry::{ChainName, time_text};
use examine::examine;
use findings::named_twice;
pub use findings::{
    CaseFindings, Findings, ProofFinding, PublishedVersion, RequestFinding, ServedFile,
};
use keys::Keys;
pub use log::Evidence;
pub use note::{NoteError, SigningKey, VerifyKey};
use opening::read_key;
pub use opening::{OpenError, OpenLog, open_existing};
use parts::{NotACase, read_logs};
use queue::{Batch, Shared};
pub use span::CaseSpan;
use tar::{Files, text_of};
#[cfg(feature = "internals")]
pub use timestamp::read as read_stamp;
pub use verify::verify;
