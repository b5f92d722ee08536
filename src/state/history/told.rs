//! [`Counted`] are the requests that one instance counted in one hour, day or week. Instances in
//! front of one site exchange these counts ([`Told`]).

use crate::record::Counts;
use crate::time::Timestamp;
use crate::verdict::KnownIdentity;
use std::collections::BTreeMap;

/// Rows that are told of a period. Those with fewer requests are added up over all sites.
pub const MOST_ROWS: usize = 1_000;

/// Site, crawler, identity and counts. Visitors have no identity.
pub type CountedRow = (String, String, Option<KnownIdentity>, Counts);

/// What one instance counted in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Until when it counted, in seconds since 1970.
    pub at: i64,
    /// An empty site stands for several.
    pub(super) rows: Vec<CountedRow>,
}

/// What an instance told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its id.
    pub instance: String,
    /// The beginning of the period.
    pub start: Timestamp,
    /// What it counted.
    pub counted: Counted,
}

impl Counted {
    /// Keeps the `MOST_ROWS` rows (site, crawler, identity, counts) with the most requests. The
    /// others are added up for each crawler and identity, with an empty site. `at` is when they
    /// were counted.
    pub(super) fn of(mut rows: Vec<CountedRow>, at: Timestamp) -> Counted {
        rows.sort_by_key(|(.., counts)| std::cmp::Reverse(counts.requests()));
        let rest = rows.split_off(rows.len().min(MOST_ROWS));
        let mut of_several: BTreeMap<(String, Option<KnownIdentity>), Counts> = BTreeMap::new();
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
        Counted { at: at.0, rows }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
