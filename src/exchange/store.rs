//! [`Store`]: the trait for the shared store (Redis or Valkey) through which instances exchange
//! facts. Calls block, and come one at a time.
//!
//! The keys in Redis or Valkey, all below one prefix:
//!
//! | key | type | holds |
//! |---|---|---|
//! | `epoch` | string | [`Identity::epoch`]: made once with `SET NX`, never written again |
//! | `served` | sorted set | facts without a value: the key of the fact, with [`SharedFact::at`] as score, by `ZADD GT` |
//! | `clients` | sorted set | the same for facts that clients make (`codec::is_of::<Mark>`): the [`MOST_OF_CLIENTS`] latest |
//! | `facts` | hash | facts with a value: the key of the fact, and `AT VALUE` (the number, a blank, the value) |
//! | `members` | hash | the id of an instance, and its [`Member`] as JSON |
//! | `log` | stream | [`Entry`] as JSON in the field `e`, by `XADD` with `MAXLEN ~ 20000` |
//! | `counts:STEP:START` | hash | the id of an instance, and its counts of an hour, day or week: for dashboards |
//!
//! Facts that no longer apply are deleted by [`Batch::forget`] and [`Batch::served_before`]. Each
//! of these keys expires after 40 days unless an instance renews it.

use super::{Identity, Member, Position, SharedFact};
use crate::finding::Finding;
use crate::locks::lock;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Facts that clients make, in the store at most. The oldest go: an instance that starts later does
/// not hear of them.
pub const MOST_OF_CLIENTS: usize = 65_536;

/// An entry of the log: what an instance tells, and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The instance as it stood when it wrote this.
    pub member: Member,
    /// What is new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<SharedFact>,
    /// Whether the instance wrote more into the sets than what is in the log: others read the sets
    /// again.
    #[serde(default)]
    pub sets: bool,
    /// Whether somebody waits to hear that this entry was read: then members write their next one
    /// at once.
    #[serde(default)]
    pub asks: bool,
}

/// What one pipeline writes, in this order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Facts that replace what stands there. Without a value: `ZADD GT` into `served` or `clients`.
    /// With one: `HSET` into `facts`.
    pub facts: Vec<SharedFact>,
    /// Facts that must not replace anything: `ZADD GT`, or `HSETNX`. Files of robots.txt, which are
    /// large and never differ for a key; and what others wrote, when a store starts over.
    pub if_missing: Vec<SharedFact>,
    /// Keys of facts with a value that are over: `HDEL`.
    pub forget: Vec<String>,
    /// Facts without a value from before this time are over: `ZREMRANGEBYSCORE` of both.
    pub served_before: Option<i64>,
    /// Ids of members that are over: `HDEL` from `members`.
    pub forget_members: Vec<String>,
    /// Entries of members that must not replace anything (`HSETNX` into `members`), when a store
    /// starts over.
    pub members_if_missing: Vec<Member>,
    /// The entry that goes into the log, last of all. Its [`Entry::member`] goes into `members`
    /// (`HSET`) before. `None` for a part of what is written when a store starts over.
    pub entry: Option<Entry>,
}

/// The result of writing a [`Batch`].
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    /// The store that took it.
    pub identity: Identity,
    /// The place of the entry, where there was one.
    pub position: Option<Position>,
}

/// What stands in the log.
#[derive(Debug)]
pub struct LogRead {
    /// The store that was read.
    pub identity: Identity,
    /// The last place of the log, whether it was read or not (`last-generated-id`).
    pub last: Position,
    /// The entries after the position that was asked for, in order; at most 1,000. `None` where the
    /// entry at that position is not in the log any more (or never was): the sets must be read. An
    /// entry that cannot be understood counts as one: see [`StoreError::Newer`].
    pub entries: Option<Vec<(Position, Entry)>>,
}

/// Everything that stands in the sets.
#[derive(Debug, Default)]
pub struct Sets {
    /// All facts, of both kinds, except for files of robots.txt (of the table `versions`).
    pub facts: Vec<SharedFact>,
    /// All members.
    pub members: Vec<Member>,
}

/// Why the store did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or did not answer in time. Whether a batch was written is not known;
    /// writing it again does no harm.
    #[error("{0}")]
    Away(String),
    /// It answered, and cannot be used as it is: it is too old, refuses the password, or the prefix
    /// holds something else. The text says what the operator can do.
    #[error("{0}")]
    Unusable(Finding),
    /// It answered, and deletes what was written once its memory is full: everything is to be
    /// written again when it can be used.
    #[error("{0}")]
    Evicts(String),
    /// A later crawlgate wrote something that this one cannot read.
    #[error("{0}")]
    Newer(String),
}

/// Until when answers of a store are waited for, whoever waits. There is no end until one is set,
/// by a stop.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<Mutex<Option<Instant>>>);

impl Deadline {
    /// Sets the end, also for the call that waits now.
    pub fn set(&self, end: Option<Instant>) {
        *lock(&self.0) = end;
    }

    /// The end, if there is one.
    pub fn get(&self) -> Option<Instant> {
        *lock(&self.0)
    }
}

/// The place where instances meet. Each question of a call is answered within some seconds, or the
/// store is away.
pub trait Store: Send {
    /// Which store it is, and its time in milliseconds since 1970 (`TIME`), read in one step. Where
    /// there is no epoch, `founding` becomes it (`SET NX`, then `GET`): of several instances that
    /// find an empty store at once one founds it. Called before everything else, after each error,
    /// and every 10 seconds; each time the store is refused if it evicts ([`StoreError::Evicts`]).
    ///
    /// # Errors
    /// See [`StoreError`].
    fn identity(&mut self, founding: &str) -> Result<(Identity, i64), StoreError>;

    /// Writes a batch as one pipeline, the log last: a reader of the entry finds the facts in the
    /// sets. The identity is read in the same connection *before* the writes; where it is not
    /// `expected`, nothing is written, and the identity that was found is returned without a
    /// position. (A connection to one server does not change its `run_id`. The pipeline is `MULTI`,
    /// `GET epoch`, the writes, `EXEC`; where the epoch in the answer is another one, that one is
    /// returned, and no position.)
    ///
    /// # Errors
    /// [`StoreError::Away`]: a part of it may have been written.
    fn write(&mut self, expected: &Identity, batch: &Batch) -> Result<Written, StoreError>;

    /// Reads the log after a position. The identity is that of the same connection, with the epoch
    /// read in the same `MULTI`. The entry at `after` itself must still be there (`XRANGE after
    /// after`), or the reader has missed entries.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read(&mut self, after: Position) -> Result<LogRead, StoreError>;

    /// Reads all sets: `HGETALL` and the like, or in parts with `HSCAN` and `ZSCAN`. Facts that are
    /// written meanwhile may be missing: the reader goes on with the log from a position before.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read_sets(&mut self) -> Result<Sets, StoreError>;

    /// All members (`HGETALL`).
    ///
    /// # Errors
    /// See [`StoreError`].
    fn read_members(&mut self) -> Result<Vec<Member>, StoreError>;

    /// Facts of the hash `facts` by their keys (`HMGET`), as far as they are there. For files of
    /// robots.txt.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError>;
}
