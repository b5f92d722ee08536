//! The evidence log: what a site published, and what crawlers did there, in a form that a third
//! party can check. The entries form hash chains, in which each entry has the hash of the entry
//! before it. There are chains for each crawler on a site, for the robots.txt files of each site,
//! and for the log itself. A checkpoint is a signed summary of all chains. A case is an excerpt of
//! the log as one file, for a third party.
//!
//! - Formats, without files or clock: `canonical`, `entry`, `merkle`, `note`, `checkpoint`, `keys`.
//! - Writing: `sink` makes entries about requests, and `publications` about what sites publish. The
//!   entries go through the `EvidenceRecorder` of `log` into the `queue`, and a thread (`writer`)
//!   writes them from there into the `database`.
//! - Cases: `case` exports a case from logs, `verify` checks it, and `report` makes its page for
//!   people, which begins with the sentences of `summary`. `scripts` check a case without
//!   crawlgate.

mod authority;
mod canonical;
mod case;
mod case_layout;
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
mod proofs;
mod publications;
mod queue;
pub(crate) mod report;
mod requests;
mod scope;
mod sink;
mod summary;
mod tar;
mod timestamp;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use crate::hash::{Hash, hex};
pub use authority::fetch_timestamps;
use canonical::canonical_json;
pub use case::{ExportedLog, build_case, ensure_checkpoints, read_exported_logs};
use case_layout::{ArchiveError, read_logs};
use checkpoint::{ChainHead, Checkpoint, HeadProof};
pub use commands::{LogStatus, delete_personal_values, log_status, rotate_key};
pub use database::{DatabaseError, NewEntry};
use database::{EvidenceDatabase, StoredChain, WriteTransaction};
use entry::{
    CHAIN_FILES, DocumentRef, EntryRef, EvidenceEntry, PersonalValueLine, PersonalValues,
    commitment, line_hash, named_proof, personal_value,
};
pub use entry::{ChainName, format_time};
use examine::examine_logs;
pub use findings::{
    CaseFindings, CheckpointTimestamp, LogFindings, ProofFinding, PublishedVersion, RequestFinding,
    ServedRobotsTxt,
};
use findings::{MAX_NAMED, RESERVED_PAGE, duplicate_log};
use keys::LogKeys;
pub use log::EvidenceRecorder;
pub use note::{NoteKeyError, SigningKey, VerifyKey};
use opening::read_signing_key;
pub use opening::{OpenError, OpenEvidenceLog, open_existing};
use queue::{EntryBatch, EvidenceWriterShared};
pub use scope::CaseScope;
use tar::{CaseFiles, file_text};
#[cfg(feature = "internals")]
pub use timestamp::parse_timestamp_response;
pub use verify::verify_case;
