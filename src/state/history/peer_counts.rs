//! [`PeriodCounts`]: the requests that one instance of crawlgate counted in one hour, day or week.
//! Instances in front of the same sites exchange these counts as [`PeerPeriodCounts`], so that each
//! dashboard can show the sums.

use crate::record::RequestCounts;
use crate::time::Timestamp;
use crate::verdict::IdentityStatus;
use std::collections::BTreeMap;

/// The most rows of one period. Rows with fewer requests are added up over all sites.
pub const MAX_PEER_ROWS: usize = 1_000;

/// Site, crawler, identity and counts. Visitors have no identity.
pub type PeriodCountsRow = (String, String, Option<IdentityStatus>, RequestCounts);

/// Site, service and visits.
pub type VisitsRow = (String, String, u64);

/// The counts of one instance in one period.
#[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PeriodCounts {
    /// An empty site stands for several.
    pub rows: Vec<PeriodCountsRow>,
    /// The visits of the whole days that the period has: an hour has those of its day until then.
    /// An empty site stands for several.
    #[serde(default)]
    pub visits: Vec<VisitsRow>,
}

/// The counts of a peer in one period.
pub struct PeerPeriodCounts {
    /// The id of the peer.
    pub instance: String,
    /// The beginning of the period.
    pub start: Timestamp,
    /// Its counts.
    pub counted: PeriodCounts,
}

impl PeriodCounts {
    /// Keeps the `MAX_PEER_ROWS` rows with the most requests, and those with the most visits. The
    /// others are added up for each crawler and identity, and for each service, with an empty site.
    pub fn from_rows(mut rows: Vec<PeriodCountsRow>, mut visits: Vec<VisitsRow>) -> PeriodCounts {
        rows.sort_by_key(|(.., counts)| std::cmp::Reverse(counts.requests()));
        let rest = rows.split_off(rows.len().min(MAX_PEER_ROWS));
        let mut of_several: BTreeMap<(String, Option<IdentityStatus>), RequestCounts> =
            BTreeMap::new();
        for (_, crawler, identity, counts) in rest {
            of_several
                .entry((crawler, identity))
                .or_default()
                .add_all(&counts);
        }
        rows.extend(
            of_several
                .into_iter()
                .map(|((crawler, identity), counts)| (String::new(), crawler, identity, counts)),
        );
        visits.sort_by_key(|(.., visits)| std::cmp::Reverse(*visits));
        let rest = visits.split_off(visits.len().min(MAX_PEER_ROWS));
        let mut by_service: BTreeMap<String, u64> = BTreeMap::new();
        for (_, service, of_site) in rest {
            *by_service.entry(service).or_default() += of_site;
        }
        visits.extend(
            by_service
                .into_iter()
                .map(|(service, of_sites)| (String::new(), service, of_sites)),
        );
        PeriodCounts { rows, visits }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.visits.is_empty()
    }
}
