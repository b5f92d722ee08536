//! [`ExchangeStore`]: the trait for the shared store (Redis or Valkey) through which several
//! crawlgate instances exchange facts: which robots.txt they published and served, and which
//! clients they marked. Its methods block, and are never called concurrently. `shared_store`
//! implements it.
//!
//! The keys in Redis or Valkey, all with one prefix:
//!
//! | key | type | content |
//! |---|---|---|
//! | `epoch` | string | [`StoreIdentity::epoch`]: made once with `SET NX`, never written again |
//! | `served` | sorted set | facts without a value: the key of the fact, with [`SharedFact::at`] as score, by `ZADD GT` |
//! | `clients` | sorted set | the same for marks of clients, of which the latest [`MAX_CLIENT_FACTS`] are kept |
//! | `facts` | hash | facts with a value: the key of the fact, and `AT VALUE` (the number, a space, the value) |
//! | `members` | hash | the id of an instance, and its [`Member`] as JSON |
//! | `log` | stream | [`LogEntry`] as JSON in the field `e`, by `XADD` with `MAXLEN ~ 20000` |
//! | `counts:STEP:START` | hash | the id of an instance, and its counts of an hour, day or week, for dashboards |
//!
//! Facts that no longer apply are deleted by [`StoreBatch::forget`] and
//! [`StoreBatch::served_before`]. Each key of the table expires after 40 days unless an instance
//! renews it.

use super::{LogPosition, Member, SharedFact, StoreIdentity};
use crate::finding::Finding;
use crate::locks::lock;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The most marks of clients in the store. Beyond it the oldest are deleted, and an instance that
/// starts later does not learn of them.
pub const MAX_CLIENT_FACTS: usize = 65_536;

/// An entry of the log: the new facts of an instance, and its state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The instance as it stood when it wrote this.
    pub member: Member,
    /// The new facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<SharedFact>,
    /// Whether the instance wrote facts into the sets that are not in the log. Peers then read the
    /// sets again.
    #[serde(default)]
    pub sets: bool,
    /// Whether a record waits for peers to read this entry. They then write their next one at once.
    #[serde(default)]
    pub asks: bool,
}

/// What one pipeline writes, in this order.
#[derive(Clone, Default)]
pub struct StoreBatch {
    /// Facts that replace stored ones. Without a value: `ZADD GT` into `served` or `clients`. With
    /// one: `HSET` into `facts`.
    pub facts: Vec<SharedFact>,
    /// Facts that must not replace stored ones: `ZADD GT`, or `HSETNX`. These are robots.txt files,
    /// which never differ for a key, and facts of peers, after the store lost its facts.
    pub if_missing: Vec<SharedFact>,
    /// Keys of facts with a value to delete: `HDEL`.
    pub forget: Vec<String>,
    /// Deletes facts without a value from before this time: `ZREMRANGEBYSCORE` of both sets.
    pub served_before: Option<i64>,
    /// Ids of members to delete: `HDEL` from `members`.
    pub forget_members: Vec<String>,
    /// Members that must not replace stored ones (`HSETNX` into `members`), after the store lost
    /// its facts.
    pub members_if_missing: Vec<Member>,
    /// The entry that is appended to the log, last of all. Its [`LogEntry::member`] is written to
    /// `members` (`HSET`) before. `None` for a part of what is written into another store.
    pub entry: Option<LogEntry>,
}

impl StoreBatch {
    /// Facts, and the entry of `member` that has them. `asks` as in [`LogEntry::asks`].
    pub fn with_entry(member: Member, facts: Vec<SharedFact>, asks: bool) -> StoreBatch {
        let entry = LogEntry {
            member,
            facts: facts.clone(),
            asks,
            ..LogEntry::default()
        };
        StoreBatch {
            facts,
            entry: Some(entry),
            ..StoreBatch::default()
        }
    }
}

/// The result of reading the log.
#[derive(Debug)]
pub struct LogReadResult {
    /// The store that was read.
    pub identity: StoreIdentity,
    /// The last position of the log, whether it was read or not (`last-generated-id`).
    pub last: LogPosition,
    /// The entries after the requested position, in order; at most 1,000. `None` if the entry at
    /// that position is not in the log, so that the sets must be read.
    pub entries: Option<Vec<(LogPosition, LogEntry)>>,
}

/// The content of the sets and hashes.
pub struct StoreContents {
    /// All facts, with and without a value, except robots.txt files (the table `versions`).
    pub facts: Vec<SharedFact>,
    /// All members.
    pub members: Vec<Member>,
}

/// Why a call of the store failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached, or did not answer in time. Whether a batch was written is
    /// unknown; writing it again does no harm.
    #[error("{0}")]
    Away(String),
    /// The store answered, but an operator must change something: it is too old, rejects the
    /// password, or has keys of another program.
    #[error("{0}")]
    Unusable(Finding),
    /// The store deletes facts when its memory is full. Everything must be written again once it
    /// can be used.
    #[error("{0}")]
    Evicts(String),
    /// A newer crawlgate wrote something that this one cannot parse.
    #[error("{0}")]
    Newer(String),
}

/// A shared deadline for all calls of a store. There is none until a stop sets one.
#[derive(Clone, Default)]
pub struct StoreDeadline(Arc<Mutex<Option<Instant>>>);

impl StoreDeadline {
    /// Sets the deadline, also for a running call.
    pub fn set(&self, end: Option<Instant>) {
        *lock(&self.0) = end;
    }

    /// Returns the deadline, if there is one.
    pub fn get(&self) -> Option<Instant> {
        *lock(&self.0)
    }
}

/// The shared store. Each call returns within some seconds, or fails with [`StoreError::Away`].
pub trait ExchangeStore: Send {
    /// Returns the identity of the store and its time in milliseconds since 1970, read in one step.
    /// If the store has no epoch, `founding` becomes it (`SET NX`, then `GET`), so that of several
    /// instances one founds an empty store. Called first of all, after each error, and every 10
    /// seconds. Fails if the store evicts keys ([`StoreError::Evicts`]).
    ///
    /// # Errors
    /// See [`StoreError`].
    fn identity(&mut self, founding: &str) -> Result<(StoreIdentity, i64), StoreError>;

    /// Writes a batch in one transaction, the log last, so that a reader of the entry finds the
    /// facts in the sets. The identity is read over the same connection before. If it is not
    /// `expected`, nothing is written, and the result is `None`. Otherwise it is the position of the
    /// entry, zero for a batch without one.
    ///
    /// # Errors
    /// After [`StoreError::Away`] the batch may have been written.
    fn write(
        &mut self,
        expected: &StoreIdentity,
        batch: &StoreBatch,
    ) -> Result<Option<LogPosition>, StoreError>;

    /// Reads the log after a position, and the identity in the same transaction. If the entry at
    /// `after` is gone, the reader has missed entries, and the result has none.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read(&mut self, after: LogPosition) -> Result<LogReadResult, StoreError>;

    /// Reads all facts and members. Facts that are written meanwhile may be missing, so the reader
    /// continues with the log from a position before the call.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read_sets(&mut self) -> Result<StoreContents, StoreError>;

    /// Reads all members.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read_members(&mut self) -> Result<Vec<Member>, StoreError>;

    /// Reads facts with a value by their keys, as far as they exist. For robots.txt files.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError>;
}
