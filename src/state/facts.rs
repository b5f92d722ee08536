//! The records that `state.db` stores: one struct and one table for each kind of record.
//! [`AnyRecord`] is a record of any kind. A [`Fact`] is one change: at some time a record was set
//! or removed. [`StoredFacts`] holds all records that were read. [`changes`] compares two sets of
//! records and returns the difference as facts.

use super::columns::{
    AsWritten, Column, Record, definition_of, read_table, records, upsert_of, value, words,
};
use crate::policy;
use crate::policy::model::Audience;
use crate::publications::Published;
use crate::time::Timestamp;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Result as SqlResult, Row};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An id that cannot be read stands for a version that is not known.
impl FromSql for Published {
    /// Reads `503`, `forgotten, 503`, or the id of a version. Any other text, such as `forgotten`,
    /// is read as `Published::Unknown`.
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Published> {
        Ok(match value.as_str()? {
            "503" => Published::Unavailable,
            "forgotten, 503" => Published::UnknownOrUnavailable,
            id => policy::Version::parse(id).map_or(Published::Unknown, Published::Version),
        })
    }
}

impl ToSql for Published {
    fn to_sql(&self) -> SqlResult<ToSqlOutput<'_>> {
        match self {
            Published::Version(version) => Ok(version.to_string().into()),
            Published::Unavailable => "503".to_sql(),
            Published::Unknown => "forgotten".to_sql(),
            Published::UnknownOrUnavailable => "forgotten, 503".to_sql(),
        }
    }
}

impl Column for Published {
    const TYPE: &'static str = "TEXT NOT NULL";
}

/// What is remembered of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseEvent {
    /// An operator switched it on at run time.
    Switched,
    /// A policy that plans it was in force for the first time.
    FirstSeen,
    /// An operator ended the planned pause.
    Ended,
}

words! { PauseEvent { Switched = "switched", FirstSeen = "first seen", Ended = "ended" } }

/// Why a part of the history of hosts is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// The state of an earlier run was lost.
    Lost,
    /// There were more changes than are remembered.
    Cut,
    /// Other servers may have answered for the hosts, or the clock was set.
    Broken,
}

words! { Audience { Everyone = "everyone", Crawlers = "crawlers" } }
words! { GapReason { Lost = "lost", Cut = "cut", Broken = "broken" } }

records! {
    /// The bytes of a robots.txt. The time of its change is the last moment at which the version
    /// was needed.
    Version, versions {
        key {
            /// The version's id.
            id: String,
        }
        values {
            /// The file.
            bytes: Arc<[u8]>,
        }
    }

    /// What a site published as robots.txt, and for how long.
    Publication, publications {
        key {
            /// The site.
            site: String,
            /// The place of its first change among all changes.
            number: u64,
        }
        values {
            /// What crawlers received.
            answered: Published,
            /// The digest of how crawlers were told apart.
            identities: String,
            /// Whether the site said something about pages in tags or metas.
            tells: bool,
            /// Since when.
            since: Timestamp,
            /// Until when; `None` while it is in force.
            until: Option<Timestamp>,
            /// The place of the change that ended it.
            ended_by: Option<u64>,
        }
    }

    /// The time for which some hosts were a site's.
    HostTenure, host_tenures {
        key {
            /// The host or host pattern; empty for every other host.
            hosts: String,
            /// The place of its first change among all changes.
            number: u64,
        }
        values {
            /// The site.
            site: String,
            /// Since when.
            since: Timestamp,
            /// Until when; `None` while it lasts.
            until: Option<Timestamp>,
            /// The place of the change that ended it.
            ended_by: Option<u64>,
        }
    }

    /// What the hosts of a site served before crawlgate, by the word of the operator.
    DeclaredVersion, declared_versions {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The version's id.
            version: String,
        }
    }

    /// A time of which the history of hosts is not known.
    HistoryGap, history_gaps {
        key {
            /// Why.
            reason: GapReason,
        }
        values {
            /// When it ended.
            at: Timestamp,
        }
    }

    /// The clock was set forward.
    ClockJump, clock_jumps {
        key {
            /// The time of the clock after it.
            at: Timestamp,
        }
        values {
            /// By how many seconds.
            by: u64,
        }
    }

    /// What a crawler was served. The time of its change is the last time at which it was served.
    Served, served {
        key {
            /// The host.
            host: String,
            /// The crawler group; empty for every crawler.
            crawler: String,
            /// What it received.
            received: Published,
        }
        values {}
    }

    /// Since when a host is observed without a gap.
    Observation, observations {
        key {
            /// The host.
            host: String,
        }
        values {
            /// The site that owned the host.
            site: String,
            /// Since when. It lies ahead where a cache that is gone may still hand out what it has.
            since: AsWritten,
            /// When a crawler last asked for the host.
            seen: Timestamp,
            /// Whether a policy names the host.
            named: bool,
            /// For how many seconds a cache in front of crawlgate keeps answers; `None` without
            /// one.
            behind_cache: Option<u64>,
        }
    }

    /// A path through trusted proxies to a host on which there is no cache.
    UncachedPath, uncached_paths {
        key {
            /// The host.
            host: String,
            /// The digest of the addresses of the proxies.
            proxies: String,
        }
        values {}
    }

    /// Since when a rule for tags or metas is in force.
    TagChange, tag_changes {
        key {
            /// The site.
            site: String,
            /// The identity of the rule; empty for a change on every page.
            rule: String,
        }
        values {
            /// Since when.
            since: Timestamp,
        }
    }

    /// A client that requested a trap.
    MarkedClient, marked_clients {
        key {
            /// The site of the trap.
            site: String,
            /// The claimed identity.
            crawler: String,
            /// The address; of IPv6 the /64.
            address: String,
        }
        values {
            /// When it last requested a trap. With the end it says how long the mark lasts,
            /// whatever the clock says.
            since: AsWritten,
            /// When the mark ends.
            until: AsWritten,
        }
    }

    /// What is remembered of a pause.
    Pause, pauses {
        key {
            /// The site.
            site: String,
            /// What happened.
            event: PauseEvent,
            /// The digest of the planned pause; empty for a pause that was switched on.
            plan: String,
        }
        values {
            /// Which clients are stopped.
            audience: Audience,
            /// Since when.
            since: Timestamp,
            /// When it ends; without meaning for a planned pause.
            until: AsWritten,
            /// Retry-After in seconds.
            retry_after: u32,
            /// Whether robots.txt is answered 503 as well.
            robots_txt: bool,
        }
    }

    /// A copy of an origin's own robots.txt.
    OriginCopy, origin_copies {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The file; empty where there is no copy yet.
            bytes: Arc<[u8]>,
            /// The digest of the file, so that a damaged copy is fetched again.
            digest: String,
            /// The state of fetching, in the form of the room that fetches.
            state: String,
        }
    }

    /// When a list of networks last verified a visit, and when a visit last came from elsewhere.
    ListProof, list_proofs {
        key {
            /// The site.
            site: String,
            /// The crawler's id or token.
            crawler: String,
        }
        values {
            /// The digest of the networks.
            list: String,
            /// When a visit was last verified by the list.
            verified: Option<Timestamp>,
            /// When a visit last came from elsewhere.
            accused: Option<Timestamp>,
        }
    }

    /// A published list of networks, as it was last fetched.
    NetworkList, network_lists {
        key {
            /// Where it is published.
            url: String,
        }
        values {
            /// The list as it came.
            bytes: Arc<[u8]>,
            /// Its `ETag`; empty without one.
            etag: String,
            /// Its `Last-Modified`; empty without one.
            last_modified: String,
            /// When its server last said that the list is so.
            checked: Timestamp,
        }
    }

    /// What reverse DNS said of an address: which crawler it belongs to, or that it belongs to
    /// none.
    AddressProof, address_proofs {
        key {
            /// The address.
            address: String,
        }
        values {
            /// Its confirmed names, with blanks between them; empty where it has none.
            names: String,
            /// When DNS said so first.
            first: Timestamp,
            /// When DNS said so last.
            last: Timestamp,
            /// Until when that counts.
            until: AsWritten,
        }
    }

    /// The membership of this instance among those that exchange facts.
    ExchangeMembership, exchange_memberships {
        key {
            /// Its id.
            id: String,
        }
        values {
            /// The id of the run.
            run: String,
            /// The run of the store into which everything was written; empty where it was not yet.
            store_run: String,
            /// The epoch of that store.
            store_epoch: String,
            /// Whether the run told everything and left.
            has_left: bool,
        }
    }

    /// The last policy file of a site that was accepted.
    LastGoodPolicy, last_good_policies {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The file.
            text: String,
        }
    }
}

/// One change, with its time. The latest change of a key wins, and a removal is a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When it changed.
    pub at: Timestamp,
    /// Whether it is a removal: then only the key of the record counts.
    pub is_removal: bool,
    /// What changed.
    pub record: AnyRecord,
}

impl Fact {
    /// The fact that the record has these values since `at`.
    pub fn set(at: Timestamp, record: impl Into<AnyRecord>) -> Fact {
        Fact {
            at,
            is_removal: false,
            record: record.into(),
        }
    }

    /// The fact that there is no record with this key since `at`. The other values do not count.
    pub fn removed(at: Timestamp, record: impl Into<AnyRecord>) -> Fact {
        Fact {
            at,
            is_removal: true,
            record: record.into(),
        }
    }

    /// About how many bytes of memory the fact takes: the content of a file, and 384 for the rest.
    pub(super) fn size(&self) -> usize {
        let large = match &self.record {
            AnyRecord::Version(version) => version.bytes.len(),
            AnyRecord::OriginCopy(copy) => copy.bytes.len(),
            AnyRecord::NetworkList(list) => list.bytes.len(),
            AnyRecord::LastGoodPolicy(policy) => policy.text.len(),
            _ => 0,
        };
        384 + large
    }
}

/// A table and the key of a record in it.
pub type Key = (&'static str, Vec<KeyPart>);

/// A column of a key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPart {
    Integer(i64),
    Text(String),
}

/// The key of a record. Records are the same one where table and key are equal.
pub fn key_of(record: &AnyRecord) -> Key {
    let (key, _) = record.key_and_values();
    let parts = key.into_iter().map(|value| match value {
        Value::Integer(number) => KeyPart::Integer(number),
        Value::Text(text) => KeyPart::Text(text),
        // No key has such a column.
        Value::Null | Value::Real(_) | Value::Blob(_) => KeyPart::Text(String::new()),
    });
    (record.table(), parts.collect())
}

/// Compares two sets of records by their keys. Returns, as facts at `now`, each record of `after`
/// that is new or has other values, and then a removal of each record that is in `before` alone.
pub fn changes(
    before: impl IntoIterator<Item = AnyRecord>,
    after: impl IntoIterator<Item = AnyRecord>,
    now: Timestamp,
) -> Vec<Fact> {
    let mut known: BTreeMap<Key, AnyRecord> = before
        .into_iter()
        .map(|record| (key_of(&record), record))
        .collect();
    let mut facts = Vec::new();
    for record in after {
        if known.remove(&key_of(&record)).as_ref() != Some(&record) {
            facts.push(Fact::set(now, record));
        }
    }
    facts.extend(known.into_values().map(|gone| Fact::removed(now, gone)));
    facts
}
