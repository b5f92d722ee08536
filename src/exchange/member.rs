//! [`Member`]: an instance as it stands in the store. An instance becomes a member before it serves its first robots.txt.
//! It leaves with a goodbye, by the word of an operator, or by silence.

use super::{Identity, Position};

/// An instance, as it writes itself into the store with each batch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Member {
    /// The id of the instance, from its `state.db`: 16 hexadecimal digits.
    pub id: String,
    /// The id of this run of its process: the instance's id, a point and 8 hexadecimal digits. Publications are keyed by it.
    pub run: String,
    /// The run before, whose publications this run tells again as its own. `None` where it knows nothing of one.
    pub continues: Option<String>,
    /// The form of facts that it reads: see [`super::SCHEMA`].
    pub schema: u32,
    /// The version of crawlgate.
    pub version: String,
    /// The name of its machine, for people.
    pub host: String,
    /// When this run became a member, in seconds of the store's clock.
    pub joined: i64,
    /// Up to which moment it has reported what it served, in seconds of the store's clock.
    pub reported: i64,
    /// Up to which entry of the log it had read, before it gathered what it reports: everything that it served before
    /// that entry was written is in the store.
    pub heard: Position,
    /// The store into which it has written everything that it knows. Another one than the present: it has yet to.
    pub settled: Option<Identity>,
    /// A digest of the policies in force: 16 hexadecimal digits.
    pub policies: String,
    /// A digest of the names by which it tells crawlers apart.
    pub crawlers: String,
    /// Milliseconds by which its clock is ahead of the store's.
    pub clock_ahead_ms: i64,
    /// Whether it has left in order: everything is reported, and it serves no robots.txt any more.
    pub has_left: bool,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It reports.
    Present,
    /// It has not reported for more than 5 seconds: no crawler is accused, until it does or counts as gone.
    Silent,
    /// It said goodbye.
    Left,
    /// It was silent for 25 hours, or an operator forgot it.
    Gone,
}
