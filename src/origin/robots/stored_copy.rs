//! [`StoredCopy`]: crawlgate's copy of an origin's robots.txt, as it is kept in the state database.
//! It includes the time of the next fetch and the result of the last fetch. After a restart,
//! [`StoredCopies`] has the copies that the previous process stored.

use super::fetch_state::FetchState;
use crate::facts::{Fact, OriginCopy};
use crate::hash::Hash;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The stored copy of a site's origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCopy {
    /// The copy and the state of fetching.
    #[serde(flatten)]
    pub fetch: FetchState,
    /// For a default site: its hosts, which no policy file names. Empty for every host.
    pub default_site_hosts: Option<Vec<String>>,
}

/// Why a stored copy is not used.
#[derive(Debug, thiserror::Error)]
pub enum StoredCopyError {
    /// The bytes have changed since they were stored.
    #[error("its bytes do not have the digest that was stored")]
    Digest,
    /// The state of fetching cannot be decoded.
    #[error("its state cannot be read: {0}")]
    State(#[from] serde_json::Error),
}

impl StoredCopy {
    /// This copy as a fact of the state store.
    pub fn to_fact(&self, site: &str, now: Timestamp) -> Fact {
        let bytes = self
            .fetch
            .copy()
            .map(|copy| copy.bytes.clone())
            .unwrap_or_default();
        // A state that cannot be encoded would later count as damaged, and the origin would be asked
        // again.
        let state = serde_json::to_string(self).unwrap_or_default();
        Fact::set(
            now,
            OriginCopy {
                site: site.to_owned(),
                digest: Hash::digest(&[&bytes]).to_string(),
                bytes,
                state,
            },
        )
    }

    /// The fact that removes the copy of a site.
    pub fn removal_fact(site: &str, now: Timestamp) -> Fact {
        let nothing = OriginCopy {
            site: site.to_owned(),
            bytes: Arc::default(),
            digest: String::new(),
            state: String::new(),
        };
        Fact::removed(now, nothing)
    }

    /// Decodes a stored copy. Moments later than `now` become `now`.
    ///
    /// # Errors
    /// The copy is damaged.
    pub fn from_record(record: &OriginCopy, now: Timestamp) -> Result<StoredCopy, StoredCopyError> {
        if Hash::digest(&[&record.bytes]).to_string() != record.digest {
            return Err(StoredCopyError::Digest);
        }
        let mut stored: StoredCopy = serde_json::from_str(&record.state)?;
        stored.fetch.restore_bytes(record.bytes.clone());
        stored.fetch.clamp_to(now);
        Ok(stored)
    }
}

/// The copies that the previous run left.
#[derive(Default)]
pub struct StoredCopies {
    /// By site.
    pub by_site: BTreeMap<String, StoredCopy>,
    /// Sites with a damaged copy. It is not used, and the origin is asked again.
    pub damaged: Vec<String>,
}

impl StoredCopies {
    /// Decodes the records of the state store. Logs damaged copies as warnings.
    pub fn from_records(records: &[(Timestamp, OriginCopy)], now: Timestamp) -> StoredCopies {
        let mut copies = StoredCopies::default();
        for (_, record) in records {
            let site = record.site.clone();
            match StoredCopy::from_record(record, now) {
                Ok(stored) => drop(copies.by_site.insert(site, stored)),
                Err(reason) => {
                    tracing::warn!(
                        %site,
                        %reason,
                        "the stored copy of the origin's robots.txt is damaged; crawlgate does not use it and fetches the file again"
                    );
                    copies.damaged.push(site);
                }
            }
        }
        copies
    }
}
