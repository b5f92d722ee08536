//! What crawlgate remembers: one struct for each kind of fact. With its key, the facts of a kind
//! are a table of `state.db`; the same columns are written to the store that several instances
//! share, and to the next process in an upgrade. A [`Fact`] is one change: at some time a fact was
//! set or removed, and of two changes with one key the later one counts. Whoever learns of a fact
//! notifies [`Subscribers`]: the exchange with other instances, and the next process.
//!
//! | fact | put by | kept as an index in | over |
//! |---|---|---|---|
//! | [`Publication`], [`Tenure`], [`Version`], [`DeclaredVersion`], [`HistoryGap`], [`ClockJump`] | `sites`, before it takes effect | `PublicationLog`, `VersionStore` | 31 days after the end |
//! | [`Served`] | `ledger::Ledger` | `ledger::host::Host` | 31 days after the last time |
//! | [`Observation`], [`UncachedPath`] | `ledger::Observations` | `ledger::host::Host` | when the host is forgotten |
//! | [`Mark`], [`Release`] | `ledger::Traps` | `ledger::Traps`, `exchange::Orders` | a mark at its end |
//! | [`Pause`], [`TagChange`], [`LastGoodPolicy`] | `sites` | `SiteMemory` | when `sites` removes it |
//! | [`OriginCopy`] | `origin` | `FetchState` | when the site is gone |
//! | [`ListProof`], [`NetworkList`], [`AddressProof`] | `ledger::NetworkListHealth`, `identity` | their tables | a proof at its end |
//! | [`ExchangeMembership`] | `exchange` | - | never |
//!
//! Crawl rates and proven fetches are no facts: they go to the next process, and a restart forgets
//! them.

mod columns;
mod json;
mod publications;
mod subscribers;

pub use crate::policy::host_history::ClockJump;
pub use crate::publications::{Publication, Tenure};
pub use columns::{
    Column, ColumnInfo, Expiry, Source, TOLERANCE, Table, TableInfo, Value, taken_as_past,
};
pub use json::{from_json, table_named, to_json};
pub use subscribers::{Subscriber, Subscribers};

use crate::policy;
use crate::policy::model::Audience;
use crate::publications::Published;
use crate::time::{Timestamp, rfc3339};
use columns::{all_facts, as_written, field, past, table, tables};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What is remembered of a pause.
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

/// Why a part of the history of hosts is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum GapReason {
    /// The state of an earlier run was lost.
    Lost,
    /// There were more changes than are remembered.
    Cut,
    /// Other servers may have answered for the hosts, or the clock was set.
    Broken,
}

tables! {
    /// The bytes of a robots.txt. The time of its change is the last moment at which the version
    /// was needed.
    Version, versions, Never, of clients: false {
        key {
            /// The version.
            id: policy::Version,
        }
        values {
            /// The file.
            bytes: Arc<[u8]>,
        }
    }

    /// What the hosts of a site served before crawlgate, by the word of the operator.
    DeclaredVersion, declared_versions, Never, of clients: false {
        key {
            /// The site.
            site: String,
        }
        values {
            /// The version.
            version: policy::Version,
        }
    }

    /// A time of which the history of hosts is not known.
    HistoryGap, history_gaps, Never, of clients: false {
        key {
            /// Why.
            reason: GapReason,
        }
        values {
            /// When it ended.
            at: Timestamp,
        }
    }

    /// What a crawler was served. The time of its change is the last time at which it was served.
    Served, served, Unconfirmed, of clients: true {
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
    Observation, observations, Never, of clients: true {
        key {
            /// The host.
            host: String,
        }
        values {
            /// The site that owned the host.
            site: String,
            /// Since when. It lies ahead where a cache that is gone may still hand out what it has.
            since: Timestamp as written,
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
    UncachedPath, uncached_paths, Never, of clients: false {
        key {
            /// The host.
            host: String,
            /// The digest of the addresses of the proxies.
            proxies: String,
        }
        values {}
    }

    /// Since when a rule for tags or metas is in force.
    TagChange, tag_changes, Never, of clients: false {
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

    /// The mark of a client that requested a trap, by the wall clock as it is now.
    #[derive(Serialize, Deserialize)]
    Mark, marked_clients, Until, of clients: true {
        key {
            /// The site whose trap it was.
            site: String,
            /// The claimed identity: the registry's id, the policy's token, or what a bot that no
            /// list knows calls itself.
            crawler: String,
            /// The address; of IPv6 the /64, since that is what one machine has.
            address: IpAddr,
        }
        values {
            /// When the client last requested a trap. With the end it says how long the mark lasts,
            /// whatever the clock says.
            #[serde(serialize_with = "rfc3339")]
            since: Timestamp as written,
            /// When the mark ends.
            #[serde(serialize_with = "rfc3339")]
            until: Timestamp as written,
        }
    }

    /// An operator released the marks of a network.
    Release, releases, Unconfirmed, of clients: false {
        key {
            /// The network.
            network: IpNet,
        }
        values {}
    }

    /// What is remembered of a pause.
    Pause, pauses, Never, of clients: false {
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
            until: Timestamp as written,
            /// Retry-After in seconds.
            retry_after: u32,
            /// Whether robots.txt is answered 503 as well.
            robots_txt: bool,
        }
    }

    /// A copy of an origin's own robots.txt.
    OriginCopy, origin_copies, Never, of clients: false {
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
    ListProof, list_proofs, Never, of clients: false {
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
    NetworkList, network_lists, Never, of clients: false {
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
    AddressProof, address_proofs, Until, of clients: true {
        key {
            /// The address.
            address: IpAddr,
        }
        values {
            /// Its confirmed names, with blanks between them; empty where it has none.
            names: String,
            /// When DNS said so first.
            first: Timestamp,
            /// When DNS said so last.
            last: Timestamp,
            /// Until when that counts.
            until: Timestamp as written,
        }
    }

    /// The membership of this instance among those that exchange facts.
    ExchangeMembership, exchange_memberships, Never, of clients: false {
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
    LastGoodPolicy, last_good_policies, Never, of clients: false {
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
    ClockJump, clock_jumps, Never, of clients: false {
        key { at: Timestamp, }
        values { by: Duration, }
    }
}

all_facts! {
    Version, versions;
    Publication, publications;
    Tenure, host_tenures;
    DeclaredVersion, declared_versions;
    HistoryGap, history_gaps;
    ClockJump, clock_jumps;
    Served, served;
    Observation, observations;
    UncachedPath, uncached_paths;
    TagChange, tag_changes;
    Mark, marked_clients;
    Release, releases;
    Pause, pauses;
    OriginCopy, origin_copies;
    ListProof, list_proofs;
    NetworkList, network_lists;
    AddressProof, address_proofs;
    ExchangeMembership, exchange_memberships;
    LastGoodPolicy, last_good_policies;
}

/// One change, with its time. The latest change of a key wins, and a removal is a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact<F = AnyFact> {
    /// When it changed.
    pub at: Timestamp,
    /// Whether it is a removal: then only the key counts.
    pub is_removal: bool,
    /// What changed.
    pub fact: F,
}

impl Fact {
    /// Since `at` the fact has these values.
    pub fn set(at: Timestamp, fact: impl Into<AnyFact>) -> Fact {
        Fact {
            at,
            is_removal: false,
            fact: fact.into(),
        }
    }

    /// Since `at` there is no fact with this key. The other values do not count.
    pub fn removed(at: Timestamp, fact: impl Into<AnyFact>) -> Fact {
        Fact {
            at,
            is_removal: true,
            fact: fact.into(),
        }
    }

    /// Its table and its key: changes of one fact have the same.
    pub fn key(&self) -> Key {
        key_of(&self.fact)
    }

    /// About how many bytes of memory the fact takes: the content of a file, and 384 for the rest.
    pub fn size(&self) -> usize {
        let large = match &self.fact {
            AnyFact::Version(version) => version.bytes.len(),
            AnyFact::OriginCopy(copy) => copy.bytes.len(),
            AnyFact::NetworkList(list) => list.bytes.len(),
            AnyFact::LastGoodPolicy(policy) => policy.text.len(),
            _ => 0,
        };
        384 + large
    }
}

/// A table and the key of a fact in it.
pub type Key = (&'static str, Vec<Value>);

fn key_of(fact: &AnyFact) -> Key {
    (fact.table().name, fact.key())
}

/// Compares two sets of facts by their keys. Returns, as changes at `now`, each fact of `after` that
/// is new or has other values, and then a removal of each fact that is in `before` alone.
pub fn changes(
    before: impl IntoIterator<Item = AnyFact>,
    after: impl IntoIterator<Item = AnyFact>,
    now: Timestamp,
) -> Vec<Fact> {
    let mut known: BTreeMap<Key, AnyFact> = before
        .into_iter()
        .map(|fact| (key_of(&fact), fact))
        .collect();
    let mut facts = Vec::new();
    for fact in after {
        if known.remove(&key_of(&fact)).as_ref() != Some(&fact) {
            facts.push(Fact::set(now, fact));
        }
    }
    facts.extend(known.into_values().map(|gone| Fact::removed(now, gone)));
    facts
}

impl Pause {
    /// What became of a planned pause at `since`. The digest of the plan is empty for a pause that
    /// was switched on. The other fields have no meaning.
    pub fn of_plan(site: &str, plan: &str, event: PauseEvent, since: Timestamp) -> Pause {
        Pause {
            site: site.to_owned(),
            event,
            plan: plan.to_owned(),
            audience: Audience::default(),
            since,
            until: since,
            retry_after: 0,
            robots_txt: false,
        }
    }
}
