//! The facts that crawlgate remembers (for example which robots.txt it served, and which clients
//! are marked for breaking the rules). Each kind of fact has a struct, and a table in the state
//! database `state.db`. The same columns are written to the store that several instances share, and
//! to the next process in an upgrade. A [`Fact`] has such a struct, a time, and whether the fact
//! was set or removed at that time. If several facts have the same key, the latest one counts.
//! [`FactSubscribers`] are notified of each [`Fact`].
//!
//! | fact | written by | indexed in | deleted |
//! |---|---|---|---|
//! | [`Publication`], [`HostTenure`], [`VersionBytes`], [`DeclaredVersion`], [`HistoryGap`], [`ClockJump`] | `sites`, before it takes effect | `PublicationLog`, `VersionStore` | 31 days after the end |
//! | [`ServedVersion`] | `ledger::Ledger` | `ledger::HostTable` | 31 days after the last time |
//! | [`HostObservation`], [`UncachedPath`] | `ledger::HostTable` | `ledger::HostTable` | when the host is removed |
//! | [`ClientMark`], [`MarkRelease`] | `ledger::MarkedClients` | `ledger::MarkedClients`, `exchange::OperatorCommands` | a mark at its end |
//! | [`PauseRecord`], [`TagChange`], [`LastGoodPolicy`] | `sites` | `StoredSitesState` | when `sites` removes it |
//! | [`OriginCopy`] | `origin` | `FetchState` | when the site is removed |
//! | [`ListProof`], [`NetworkList`], [`AddressProof`] | `ledger::NetworkListHealthTable`, `identity` | their tables | a proof at its end |
//! | [`ExchangeMembership`] | `exchange` | - | never |
//!
//! Two things are not facts: crawl rates, and which clients certainly have the present robots.txt.
//! A restart and an upgrade forget both.

mod columns;
mod json;
mod publications;
mod subscribers;

pub use crate::policy::publication_history::ClockJump;
pub use crate::publications::{HostTenure, Publication};
pub use columns::{
    CLOCK_TOLERANCE, ColumnSchema, ColumnType, ColumnValue, Expiry, FactSource, FactTable,
    SqlTableSchema, clamp_to_now,
};
pub use json::{find_table, value_from_json, value_to_json};
pub use subscribers::{FactSubscriber, FactSubscribers};

use crate::policy;
use crate::policy::model::PauseAudience;
use crate::publications::PublishedRobots;
use crate::time::{Timestamp, rfc3339};
use columns::{all_facts, field, read_as_written, read_clamped_to_now, table, tables};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What happened to a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum PauseEvent {
    /// An operator switched it on at run time.
    Switched,
    /// A policy that plans it was in force for the first time.
    #[strum(serialize = "first seen")]
    FirstSeen,
    /// An operator ended the planned pause.
    Ended,
}

/// Why a part of the history of hosts is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum GapReason {
    /// The state of an earlier run was lost.
    Lost,
    /// There were too many changes to remember.
    Cut,
    /// Other servers may have answered for the hosts, or the clock was set.
    Broken,
}

tables! {
    /// The bytes of a robots.txt. The time of its change is the last moment at which the version
    /// was needed.
    VersionBytes, versions, Never {
        key {
            /// The version.
            id: policy::RobotsVersionId,
        }
        values {
            /// The file.
            bytes: Arc<[u8]>,
        }
    }

    /// What the hosts of a site served before crawlgate, as the operator declares.
    DeclaredVersion, declared_versions, Never {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The version.
            version: policy::RobotsVersionId,
        }
    }

    /// A time for which the history of hosts is unknown.
    HistoryGap, history_gaps, Never {
        key {
            /// Why.
            reason: GapReason,
        }
        values {
            /// When it ended.
            at: Timestamp,
        }
    }

    /// A version that a crawler was served. The time of the change is when it was last served.
    ServedVersion, served, Unconfirmed {
        key {
            /// The host.
            host: String,
            /// The name of the crawler's robots.txt cache; empty for every crawler.
            crawler: String,
            /// What it received.
            received: PublishedRobots,
        }
        values {}
    }

    /// Since when a host is observed without a gap.
    HostObservation, observations, Never {
        key {
            /// The host.
            host: String,
        }
        values {
            /// The site that owned the host.
            site: String,
            /// Since when. In the future while a removed cache may still serve old copies.
            since: Timestamp as written,
            /// When a crawler last requested the host.
            seen: Timestamp,
            /// Whether a policy names the host.
            named: bool,
            /// For how many seconds a cache in front of crawlgate keeps answers; `None` without
            /// one.
            behind_cache: Option<u64>,
        }
    }

    /// A path through trusted proxies to a host that has no cache.
    UncachedPath, uncached_paths, Never {
        key {
            /// The host.
            host: String,
            /// The digest of the addresses of the proxies.
            proxies: String,
        }
        values {}
    }

    /// Since when a rule for tags or robots metas is in force.
    TagChange, tag_changes, Never {
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

    /// The mark of a client that requested a trap. Its times are by the present wall clock.
    #[derive(Serialize, Deserialize)]
    ClientMark, marked_clients, Until {
        key {
            /// The site whose trap it was.
            site: String,
            /// The claimed identity: the registry's id, the policy's token, or the name that an
            /// unknown bot gives itself.
            crawler: String,
            /// The address; for IPv6 the /64, because one machine has a whole /64.
            address: IpAddr,
        }
        values {
            /// When the client last requested a trap. The duration of the mark is `until - since`,
            /// also after the clock was set.
            #[serde(serialize_with = "rfc3339")]
            since: Timestamp as written,
            /// When the mark ends.
            #[serde(serialize_with = "rfc3339")]
            until: Timestamp as written,
        }
    }

    /// An operator released the marks of a network.
    MarkRelease, releases, Unconfirmed {
        key {
            /// The network.
            network: IpNet,
        }
        values {}
    }

    /// An event of a pause.
    PauseRecord, pauses, Never {
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
            audience: PauseAudience,
            /// Since when.
            since: Timestamp,
            /// When it ends; without meaning for a planned pause.
            until: Timestamp as written,
            /// Retry-After in seconds.
            retry_after: u32,
            /// Whether robots.txt is answered 503 as well.
            robots_txt: bool,
        }
    }

    /// A copy of an origin's own robots.txt.
    OriginCopy, origin_copies, Never {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The file; empty where there is no copy yet.
            bytes: Arc<[u8]>,
            /// The digest of the file, so that a damaged copy is fetched again.
            digest: String,
            /// The state of fetching, in the format of `origin`.
            state: String,
        }
    }

    /// When a list of networks last verified a visit, and when a visit last came from elsewhere.
    ListProof, list_proofs, Never {
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
    NetworkList, network_lists, Never {
        key {
            /// Where it is published.
            url: String,
        }
        values {
            /// The list as received.
            bytes: Arc<[u8]>,
            /// Its `ETag`; empty without one.
            etag: String,
            /// Its `Last-Modified`; empty without one.
            last_modified: String,
            /// When its server last confirmed the list.
            checked: Timestamp,
        }
    }

    /// The result of reverse DNS for an address: the names of its crawler, or none.
    AddressProof, address_proofs, Until {
        key {
            /// The address.
            address: IpAddr,
        }
        values {
            /// Its confirmed names, separated by spaces; empty if it has none.
            names: String,
            /// When DNS first gave this result.
            first: Timestamp,
            /// When DNS last gave this result.
            last: Timestamp,
            /// Until when the result is valid.
            until: Timestamp as written,
        }
    }

    /// The membership of this instance in the exchange of facts.
    ExchangeMembership, exchange_memberships, Never {
        key {
            /// Its id.
            id: String,
        }
        values {
            /// The id of the run.
            run: String,
            /// The run of the store into which everything was written; empty before that.
            store_run: String,
            /// The epoch of that store.
            store_epoch: String,
            /// Whether the run reported everything and left.
            has_left: bool,
        }
    }

    /// The last policy file of a site that was accepted.
    LastGoodPolicy, last_good_policies, Never {
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

table! {
    ClockJump, clock_jumps, Never {
        key { at: Timestamp, }
        values { by: Duration, }
    }
}

all_facts! {
    VersionBytes, versions;
    Publication, publications;
    HostTenure, host_tenures;
    DeclaredVersion, declared_versions;
    HistoryGap, history_gaps;
    ClockJump, clock_jumps;
    ServedVersion, served;
    HostObservation, observations;
    UncachedPath, uncached_paths;
    TagChange, tag_changes;
    ClientMark, marked_clients;
    MarkRelease, releases;
    PauseRecord, pauses;
    OriginCopy, origin_copies;
    ListProof, list_proofs;
    NetworkList, network_lists;
    AddressProof, address_proofs;
    ExchangeMembership, exchange_memberships;
    LastGoodPolicy, last_good_policies;
}

/// One change: a fact was set or removed at a time. Of two changes of a key the later one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact<F = AnyFact> {
    /// When it changed.
    pub at: Timestamp,
    /// Whether the fact was removed. Then only its key counts.
    pub is_removal: bool,
    /// What changed.
    pub fact: F,
}

impl Fact {
    /// The fact was set at `at`.
    pub fn set(at: Timestamp, fact: impl Into<AnyFact>) -> Fact {
        Fact {
            at,
            is_removal: false,
            fact: fact.into(),
        }
    }

    /// The fact with this key was removed at `at`. Its other values do not count.
    pub fn removed(at: Timestamp, fact: impl Into<AnyFact>) -> Fact {
        Fact {
            at,
            is_removal: true,
            fact: fact.into(),
        }
    }

    /// The table and the key. All changes of one fact have the same.
    pub fn key(&self) -> FactKey {
        fact_key(&self.fact)
    }

    /// About how many bytes of memory the fact takes: the content of a file, and 384 for the rest.
    pub fn size(&self) -> usize {
        let large = match &self.fact {
            AnyFact::VersionBytes(version) => version.bytes.len(),
            AnyFact::OriginCopy(copy) => copy.bytes.len(),
            AnyFact::NetworkList(list) => list.bytes.len(),
            AnyFact::LastGoodPolicy(policy) => policy.text.len(),
            _ => 0,
        };
        384 + large
    }
}

/// A table and the key of a fact in it.
pub type FactKey = (&'static str, Vec<ColumnValue>);

fn fact_key(fact: &AnyFact) -> FactKey {
    (fact.table().name, fact.key())
}

/// Compares two sets of facts by their keys. Returns, as changes at `now`, each fact of `after`
/// that is new or has other values, and then a removal of each fact that is in `before` alone.
pub fn diff_facts(
    before: impl IntoIterator<Item = AnyFact>,
    after: impl IntoIterator<Item = AnyFact>,
    now: Timestamp,
) -> Vec<Fact> {
    let mut known: BTreeMap<FactKey, AnyFact> = before
        .into_iter()
        .map(|fact| (fact_key(&fact), fact))
        .collect();
    let mut facts = Vec::new();
    for fact in after {
        if known.remove(&fact_key(&fact)).as_ref() != Some(&fact) {
            facts.push(Fact::set(now, fact));
        }
    }
    facts.extend(known.into_values().map(|gone| Fact::removed(now, gone)));
    facts
}

impl PauseRecord {
    /// The record of an event of a planned pause at `since`. `plan` is the digest of the plan, and
    /// empty for a pause that was switched on. The other fields have default values.
    pub fn for_pause_event(
        site: &str,
        plan_digest: &str,
        event: PauseEvent,
        since: Timestamp,
    ) -> PauseRecord {
        PauseRecord {
            site: site.to_owned(),
            event,
            plan: plan_digest.to_owned(),
            audience: PauseAudience::default(),
            since,
            until: since,
            retry_after: 0,
            robots_txt: false,
        }
    }
}
