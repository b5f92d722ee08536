//! [`HistoryBatch`]: what waits to be written to the history, which the dashboard shows. It holds
//!
//! - requests of each crawler ([`Counts`]), by kind (such as `allowed` or `violation`) and by what
//!   crawlgate did,
//! - requests of each crawler, by what was proven of its name,
//! - requests that break the rules, one [`Sample`] each,
//! - requests of bots that no list knows, by the name that each bot gives itself.
//!
//! Nothing is judged by the history.

use super::Step;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Names of the columns that count requests, in their order: all requests, kinds of requests, and
/// what was done.
pub(super) const COLUMNS: [&str; 18] = [
    "requests",
    "robots_txt",
    "allowed",
    "stale_copy",
    "violation",
    "unproven",
    "ambiguous",
    "not_bound",
    "too_fast",
    "impostor",
    "trapped",
    "unverified",
    "exempt",
    "not_a_crawler",
    "off",
    "refused",
    "would_refuse",
    "paused",
];
/// Counts that wait to be written.
const MAX_COUNTS: usize = 200_000;
/// Samples that wait to be written.
const MAX_SAMPLES: usize = 10_000;
/// Names of unlisted bots that wait to be written.
const MAX_NAMES: usize = 5_000;

/// Requests of a crawler, by kind and by action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub(super) [u64; COLUMNS.len()]);

impl Counts {
    /// Adds requests of one kind with one action, as metrics name them. They count in all requests,
    /// in the column of their kind, and in `refused`, `would_refuse` or `paused` if the action is
    /// such. Requests with the action `robots_txt` count under no kind. An unknown kind has no
    /// column.
    pub fn add(&mut self, kind: &str, action: &str, requests: u64) {
        let columns = match action {
            // They are of no kind: no crawler breaks a rule with them.
            "robots_txt" => ["", "robots_txt"],
            "block" | "slow" | "license" => [kind, "refused"],
            "would_block" | "would_slow" | "would_license" => [kind, "would_refuse"],
            "pause" | "would_pause" => [kind, "paused"],
            _ => [kind, ""],
        };
        for column in columns {
            self.change(column, |count| count.saturating_add(requests));
        }
        self.0[0] += requests;
    }

    /// Replaces the count of a column by what `change` makes of it. Does nothing if there is no
    /// such column.
    fn change(&mut self, column: &str, change: impl FnOnce(u64) -> u64) {
        if let Some(place) = COLUMNS.iter().position(|known| *known == column) {
            self.0[place] = change(self.0[place]);
        }
    }

    /// Adds all of other counts.
    pub fn add_all(&mut self, other: &Counts) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Subtracts requests from one column, down to zero. The count of all requests stays. Does
    /// nothing if there is no such column.
    pub fn take_out(&mut self, column: &str, requests: u64) {
        self.change(column, |count| count.saturating_sub(requests));
    }

    /// The count of a kind or action, by the name of its column. Zero for any other name.
    pub fn get(&self, column: &str) -> u64 {
        COLUMNS
            .iter()
            .position(|known| *known == column)
            .map_or(0, |place| self.0[place])
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.0[0]
    }

    /// Requests that were judged: all but those for robots.txt.
    pub fn judged(&self) -> u64 {
        self.requests().saturating_sub(self.get("robots_txt"))
    }

    /// Requests that certainly broke the rules: violations, too fast, into a trap.
    pub fn broke(&self) -> u64 {
        self.get("violation") + self.get("too_fast") + self.get("trapped")
    }

    /// Requests that obeyed the rules. Others say nothing of that: of tools, exempt crawlers and
    /// impostors, and for hosts without a policy.
    pub fn kept(&self) -> u64 {
        self.get("allowed")
    }

    /// Disallowed requests that do not count, neither as obeyed nor as broken: the crawler may use
    /// an older robots.txt, or it is not known which one, or RFC 9309 and the origin may read the
    /// path in different ways. Until when an older one may be used is not stored with the counts.
    pub fn uncounted(&self) -> u64 {
        self.get("unproven") + self.get("stale_copy") + self.get("ambiguous")
    }

    /// The percentage of requests that obeyed the rules, among those that obeyed or broke them.
    /// `None` if there are none, or if more disallowed requests are uncounted than broke the rules:
    /// the percentage would speak of the few others.
    pub fn compliance(&self) -> Option<f64> {
        let known = self.kept() + self.broke();
        (known > 0 && self.broke() >= self.uncounted())
            .then(|| 100.0 * self.kept() as f64 / known as f64)
    }

    /// Each column that is not zero, by name, in the order of the columns.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COLUMNS
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }
}

/// The columns that are not zero.
impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.each())
    }
}

/// Columns that this crawlgate does not know are left out.
impl<'de> serde::Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
        let read = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut counts = Counts::default();
        for (column, read) in read {
            counts.change(&column, |count| count.saturating_add(read));
        }
        Ok(counts)
    }
}

/// Requests under the name of one crawler, by identity. Each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ByIdentity {
    /// Requests of the crawler itself.
    pub verified: Counts,
    /// Requests of which nothing is proven.
    pub unverified: Counts,
    /// Requests of clients that are proven not to be the crawler.
    pub impostor: Counts,
}

impl ByIdentity {
    /// Adds counts to those of an identity. Any other name than `verified` or `impostor` counts as
    /// unverified.
    pub fn add(&mut self, identity: &str, counts: &Counts) {
        match identity {
            "verified" => self.verified.add_all(counts),
            "impostor" => self.impostor.add_all(counts),
            _ => self.unverified.add_all(counts),
        }
    }

    /// Adds all of another.
    pub fn add_all(&mut self, other: &ByIdentity) {
        for (identity, counts) in other.each() {
            self.add(identity, counts);
        }
    }

    /// Subtracts from one column of each identity what `other` has there, down to zero. The counts
    /// of all requests stay. Returns how much `other` has in this column, over all identities.
    pub fn take_out(&mut self, column: &str, other: &ByIdentity) -> u64 {
        let mine = [&mut self.verified, &mut self.unverified, &mut self.impostor];
        for (mine, (_, theirs)) in mine.into_iter().zip(other.each()) {
            mine.take_out(column, theirs.get(column));
        }
        other.all().get(column)
    }

    /// Each identity with its counts: verified, unverified, impostor.
    pub fn each(&self) -> [(&'static str, &Counts); 3] {
        [
            ("verified", &self.verified),
            ("unverified", &self.unverified),
            ("impostor", &self.impostor),
        ]
    }

    /// All counts together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        for (_, counts) in self.each() {
            all.add_all(counts);
        }
        all
    }

    /// Counts of the requests that may be the crawler's: all but those of impostors.
    pub fn own(&self) -> Counts {
        let mut own = self.verified;
        own.add_all(&self.unverified);
        own
    }
}

/// One request against the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct Sample {
    pub at: Timestamp,
    pub site: String,
    pub crawler: String,
    pub kind: String,
    /// The line of robots.txt that decided; empty without one.
    pub rule: String,
    /// Where the policy says so.
    pub source: String,
    /// The address, as far as it may be kept.
    pub client: String,
    pub identity: String,
    pub method: String,
    pub host: String,
    pub target: String,
    pub user_agent: String,
    /// What was done, and under observation what would have been.
    pub action: String,
    pub status: u16,
    /// The version of robots.txt in force.
    pub version: String,
}

/// What waits to be written. Adding more than there is room for drops it: the history is for
/// looking at.
#[derive(Debug, Default)]
pub struct HistoryBatch {
    /// By the beginning of the hour, site, crawler and identity.
    pub(super) counts: BTreeMap<(Timestamp, String, String, String), Counts>,
    /// By the beginning of the day, crawler and outcome.
    pub(super) identity: BTreeMap<(Timestamp, String, String), u64>,
    /// By the beginning of the day and what the bot calls itself.
    pub(super) unlisted: BTreeMap<(Timestamp, String), u64>,
    pub(super) samples: Vec<Sample>,
}

/// The value of a key, to be changed; made if the key is new. `None` if the key is new and the map
/// has `bound` keys already.
fn bounded<K: Ord, C: Default>(map: &mut BTreeMap<K, C>, bound: usize, key: K) -> Option<&mut C> {
    (map.len() < bound || map.contains_key(&key)).then(|| map.entry(key).or_default())
}

impl HistoryBatch {
    /// Adds the counts of a crawler on a site, with an identity, in the hour that `now` is in.
    /// Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn requests(
        &mut self,
        now: Timestamp,
        site: &str,
        crawler: &str,
        identity: &str,
        counts: &Counts,
    ) {
        let key = (
            Step::Hour.begin(now),
            site.to_owned(),
            crawler.to_owned(),
            identity.to_owned(),
        );
        if let Some(known) = bounded(&mut self.counts, MAX_COUNTS, key) {
            known.add_all(counts);
        }
    }

    /// Adds requests of a crawler with an outcome of identification (what was proven of its name),
    /// in the day that `now` is in. Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn identity(&mut self, now: Timestamp, crawler: &str, outcome: &str, requests: u64) {
        let key = (Step::Day.begin(now), crawler.to_owned(), outcome.to_owned());
        if let Some(known) = bounded(&mut self.identity, MAX_COUNTS, key) {
            *known += requests;
        }
    }

    /// Adds requests of unknown bots that call themselves `name`, in the day that `now` is in.
    /// Dropped if they need a new row and `MAX_NAMES` rows wait.
    pub fn unlisted(&mut self, now: Timestamp, name: &str, requests: u64) {
        let key = (Step::Day.begin(now), name.to_owned());
        if let Some(known) = bounded(&mut self.unlisted, MAX_NAMES, key) {
            *known += requests;
        }
    }

    /// Adds a request that breaks the rules. Dropped if `MAX_SAMPLES` wait.
    pub fn sample(&mut self, sample: Sample) {
        if self.samples.len() < MAX_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Adds what another batch holds, after what is here, as far as there is room.
    pub fn append(&mut self, other: HistoryBatch) {
        for ((hour, site, crawler, identity), counts) in other.counts {
            self.requests(hour, &site, &crawler, &identity, &counts);
        }
        for ((day, crawler, outcome), count) in other.identity {
            self.identity(day, &crawler, &outcome, count);
        }
        for ((day, name), count) in other.unlisted {
            self.unlisted(day, &name, count);
        }
        for sample in other.samples {
            self.sample(sample);
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
            && self.identity.is_empty()
            && self.unlisted.is_empty()
            && self.samples.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn share_is_known_where_half_of_the_disallowed_requests_count() {
        for (uncounted, broke, share) in [
            (&[][..], 0, Some(100.0)),
            (&[("unproven", 68)], 0, None),
            (&[("stale_copy", 1)], 0, None),
            (&[("unproven", 2), ("stale_copy", 3)], 4, None),
            (&[("unproven", 2), ("stale_copy", 3)], 5, Some(80.0)),
        ] {
            let mut counts = Counts::default();
            counts.add("allowed", "pass", 20);
            counts.add("violation", "would_block", broke);
            uncounted
                .iter()
                .for_each(|(kind, requests)| counts.add(kind, "would_block", *requests));
            assert_eq!(counts.compliance(), share, "{uncounted:?}, {broke}");
        }
        assert_eq!(Counts::default().compliance(), None);
    }
}
