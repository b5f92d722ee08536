//! [`StoredCopy`]: the copy of one site's robots.txt and the state of its fetching, as a fact of the state store that
//! outlasts a restart. [`StoredCopies`] are those of the previous run.

use super::FetchState;
use crate::evidence::Hash;
use crate::state::{Fact, OriginCopy, taken_as_past};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The stored copy of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCopy {
    /// The copy and the state of fetching.
    #[serde(flatten)]
    pub fetch: FetchState,
    /// For a default site: its hosts, which no policy file names. Empty for every host.
    pub default_site_hosts: Option<Vec<String>>,
    /// When the site was removed. It may come back.
    pub left_at: Option<Timestamp>,
}

/// Why a stored copy is not used.
#[derive(Debug, thiserror::Error)]
pub enum DamagedCopy {
    /// The bytes are not those that were stored.
    #[error("its bytes do not have the digest that was stored")]
    Digest,
    /// The state of fetching cannot be decoded.
    #[error("its state cannot be read: {0}")]
    State(#[from] serde_json::Error),
    /// There are bytes, and the state says that there is no copy.
    #[error("its state does not belong to its bytes")]
    OfNoCopy,
}

impl StoredCopy {
    /// This copy as a fact of the state store.
    pub fn fact(&self, site: &str, now: Timestamp) -> Fact {
        let bytes = self.fetch.copy().map(|copy| copy.bytes.clone()).unwrap_or_default();
        // A state that could not be encoded would be read as damaged, and the origin would be asked again.
        let state = serde_json::to_string(self).unwrap_or_default();
        Fact::set(now, OriginCopy { site: site.to_owned(), digest: digest(&bytes), bytes, state })
    }

    /// The fact that removes the copy of a site.
    pub fn removal(site: &str, now: Timestamp) -> Fact {
        let nothing =
            OriginCopy { site: site.to_owned(), bytes: Arc::default(), digest: String::new(), state: String::new() };
        Fact::removed(now, nothing)
    }

    /// Reads a stored copy. Moments that lie ahead are taken as now.
    ///
    /// # Errors
    /// The copy is damaged.
    pub fn read(record: &OriginCopy, now: Timestamp) -> Result<StoredCopy, DamagedCopy> {
        if digest(&record.bytes) != record.digest {
            return Err(DamagedCopy::Digest);
        }
        let mut stored: StoredCopy = serde_json::from_str(&record.state)?;
        if !stored.fetch.restore(record.bytes.clone()) {
            return Err(DamagedCopy::OfNoCopy);
        }
        stored.fetch.take_as_past(now);
        stored.left_at = stored.left_at.map(|moment| taken_as_past(moment, now));
        Ok(stored)
    }

    /// See [`FetchState::clock_was_set`].
    pub fn clock_was_set(&mut self, by: i64, now: Timestamp) {
        self.fetch.clock_was_set(by, now);
        self.left_at = self.left_at.map(|moment| taken_as_past(Timestamp(moment.0.saturating_add(by)), now));
    }
}

/// SHA-256, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    Hash::of(&[bytes]).to_string()
}

/// The copies that the previous run left.
#[derive(Clone, Debug, Default)]
pub struct StoredCopies {
    /// By site.
    pub by_site: BTreeMap<String, StoredCopy>,
    /// Sites whose copy is damaged. It is not used, and the origin is asked again.
    pub damaged: Vec<String>,
}

impl StoredCopies {
    /// Reads the records of the state store. Logs a warning for each damaged copy.
    pub fn read(records: &[(Timestamp, OriginCopy)], now: Timestamp) -> StoredCopies {
        let mut copies = StoredCopies::default();
        for (_, record) in records {
            let site = record.site.clone();
            match StoredCopy::read(record, now) {
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
