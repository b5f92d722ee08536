//! [`Counts`]: requests by kind and by what was done, with the bytes that were sent and the
//! responses of the origin. [`ByIdentity`]: counts under the name of one crawler, by what is proven
//! of the name. Each number has the name of a column of the history.

use super::{CountedAction, RecordedKind};
use crate::verdict::{Kind, KnownIdentity};
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};

/// What is counted beside the kinds. The kinds come after `RobotsTxt` in lists of columns.
#[derive(Clone, Copy, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Total {
    Requests,
    RobotsTxt,
    Refused,
    WouldRefuse,
    Paused,
    /// Of the bodies that were sent.
    Bytes,
    /// Until the origin sent the head of its response.
    OriginMilliseconds,
    #[strum(serialize = "status_2xx")]
    Successful,
    /// Without 304.
    #[strum(serialize = "status_3xx")]
    Redirected,
    #[strum(serialize = "status_304")]
    NotModified,
    #[strum(serialize = "status_4xx")]
    ClientError,
    #[strum(serialize = "status_5xx")]
    ServerError,
}

/// Totals before the kinds.
const FIRST: usize = 2;

impl Total {
    /// The responses with this status. `None` for a status that is no final one.
    pub(super) fn from_status(status: u16) -> Option<Total> {
        match status {
            200..=299 => Some(Total::Successful),
            304 => Some(Total::NotModified),
            300..=399 => Some(Total::Redirected),
            400..=499 => Some(Total::ClientError),
            500..=599 => Some(Total::ServerError),
            _ => None,
        }
    }
}

/// Requests, by kind and by action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    totals: [u64; Total::VARIANTS.len()],
    kinds: [u64; RecordedKind::COUNT],
}

impl Counts {
    /// Adds requests of one kind with one action. They count in all requests, under their kind, and
    /// as refused, would be refused or paused if the action is such. Requests that were answered
    /// with robots.txt count under no kind: no crawler breaks a rule with them.
    pub fn add(&mut self, kind: impl Into<RecordedKind>, action: CountedAction, requests: u64) {
        let total = match action {
            CountedAction::RobotsTxt => Some(Total::RobotsTxt),
            CountedAction::Block | CountedAction::Slow | CountedAction::License => {
                Some(Total::Refused)
            }
            CountedAction::WouldBlock | CountedAction::WouldSlow | CountedAction::WouldLicense => {
                Some(Total::WouldRefuse)
            }
            CountedAction::Pause | CountedAction::WouldPause => Some(Total::Paused),
            CountedAction::Pass
            | CountedAction::TdmRep
            | CountedAction::Refuse
            | CountedAction::Challenge
            | CountedAction::Redirect => None,
        };
        self.add_total(Total::Requests, requests);
        if let Some(total) = total {
            self.add_total(total, requests);
        }
        if action != CountedAction::RobotsTxt {
            let count = &mut self.kinds[kind.into().place()];
            *count = count.saturating_add(requests);
        }
    }

    pub(super) fn add_total(&mut self, total: Total, number: u64) {
        let count = &mut self.totals[total as usize];
        *count = count.saturating_add(number);
    }

    /// Adds bytes of bodies that were sent.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.add_total(Total::Bytes, bytes);
    }

    /// Adds all of other counts.
    pub fn add_all(&mut self, other: &Counts) {
        for ((_, mine), (_, theirs)) in self.columns_mut().zip(other.columns()) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// What was counted since these were earlier counts of the same.
    pub(super) fn since(mut self, earlier: &Counts) -> Counts {
        for ((_, mine), (_, before)) in self.columns_mut().zip(earlier.columns()) {
            *mine = mine.saturating_sub(before);
        }
        self
    }

    /// Subtracts requests that would be refused, down to zero. The count of all requests stays.
    pub fn subtract_would_refuse(&mut self, requests: u64) {
        let count = &mut self.totals[Total::WouldRefuse as usize];
        *count = count.saturating_sub(requests);
    }

    /// Requests of a kind, without those that were answered with robots.txt.
    pub fn of_kind(&self, kind: impl Into<RecordedKind>) -> u64 {
        self.kinds[kind.into().place()]
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.totals[Total::Requests as usize]
    }

    /// Requests that were answered with robots.txt.
    pub fn robots_txt(&self) -> u64 {
        self.totals[Total::RobotsTxt as usize]
    }

    /// Requests that were blocked, slowed down or asked for a licence.
    pub fn refused(&self) -> u64 {
        self.totals[Total::Refused as usize]
    }

    /// Requests that `mode: enforce` would have refused.
    pub fn would_refuse(&self) -> u64 {
        self.totals[Total::WouldRefuse as usize]
    }

    /// Bytes of the bodies that were sent.
    pub fn bytes(&self) -> u64 {
        self.totals[Total::Bytes as usize]
    }

    /// Requests that were judged: all but those for robots.txt.
    pub fn judged(&self) -> u64 {
        self.requests().saturating_sub(self.robots_txt())
    }

    /// Requests that certainly broke the rules: violations, too fast, into a trap.
    pub fn broke(&self) -> u64 {
        self.sum([Kind::Violation, Kind::TooFast, Kind::Trapped])
    }

    /// Requests that obeyed the rules. Others say nothing of that: of tools, exempt crawlers and
    /// impostors, and for hosts without a policy.
    pub fn kept(&self) -> u64 {
        self.of_kind(Kind::Allowed)
    }

    /// Disallowed requests that do not count, neither as obeyed nor as broken: the crawler may use
    /// an older robots.txt, or it is not known which one, or RFC 9309 and the origin may read the
    /// path in different ways. Until when an older one may be used is not stored with the counts.
    pub fn uncounted(&self) -> u64 {
        self.sum([Kind::Unproven, Kind::StaleCopy, Kind::Ambiguous])
    }

    fn sum<const N: usize>(&self, kinds: [Kind; N]) -> u64 {
        kinds.iter().map(|kind| self.of_kind(*kind)).sum()
    }

    /// The percentage of requests that obeyed the rules, among those that obeyed or broke them.
    /// `None` if there are none, or if more disallowed requests are uncounted than broke the rules:
    /// the percentage would speak of the few others.
    pub fn compliance(&self) -> Option<f64> {
        let known = self.kept() + self.broke();
        (known > 0 && self.broke() >= self.uncounted())
            .then(|| 100.0 * self.kept() as f64 / known as f64)
    }

    /// Every number with the name of its column, in the order of the columns.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (first, rest) = self.totals.split_at(FIRST);
        let numbers = first.iter().chain(&self.kinds).chain(rest);
        column_names().zip(numbers.copied())
    }

    /// As [`Counts::columns`], to be changed.
    pub fn columns_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
        let (first, rest) = self.totals.split_at_mut(FIRST);
        let numbers = first.iter_mut().chain(&mut self.kinds).chain(rest);
        column_names().zip(numbers)
    }
}

fn column_names() -> impl Iterator<Item = &'static str> {
    let totals = Total::VARIANTS.iter().map(<&str>::from);
    let kinds = RecordedKind::all().map(RecordedKind::name);
    totals
        .clone()
        .take(FIRST)
        .chain(kinds)
        .chain(totals.skip(FIRST))
}

/// The columns that are not zero.
impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns().filter(|(_, count)| *count > 0))
    }
}

/// Columns that this crawlgate does not know are left out.
impl<'de> serde::Deserialize<'de> for Counts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Counts, D::Error> {
        let read = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut counts = Counts::default();
        for (column, count) in counts.columns_mut() {
            *count = read.get(column).copied().unwrap_or_default();
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
    /// Adds counts to those of an identity.
    pub fn add(&mut self, identity: KnownIdentity, counts: &Counts) {
        self.of_identity_mut(identity).add_all(counts);
    }

    /// Adds all of another.
    pub fn add_all(&mut self, other: &ByIdentity) {
        for (identity, counts) in other.iter() {
            self.add(identity, counts);
        }
    }

    /// Subtracts from each identity the requests that would be refused of `other`, down to zero. The
    /// counts of all requests stay. Returns how many `other` has, over all identities.
    pub fn subtract_would_refuse(&mut self, other: &ByIdentity) -> u64 {
        for (identity, theirs) in other.iter() {
            let mine = self.of_identity_mut(identity);
            mine.subtract_would_refuse(theirs.would_refuse());
        }
        other.all().would_refuse()
    }

    fn of_identity_mut(&mut self, identity: KnownIdentity) -> &mut Counts {
        match identity {
            KnownIdentity::Verified => &mut self.verified,
            KnownIdentity::Unverified => &mut self.unverified,
            KnownIdentity::Impostor => &mut self.impostor,
        }
    }

    /// Each identity with its counts, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = (KnownIdentity, &Counts)> {
        let counts = [&self.verified, &self.unverified, &self.impostor];
        KnownIdentity::VARIANTS.iter().copied().zip(counts)
    }

    /// All counts together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        for (_, counts) in self.iter() {
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

#[cfg(test)]
mod tests {
    use super::{CountedAction, Counts, Kind, RecordedKind, Total};

    #[test]
    fn share_is_known_where_half_of_the_disallowed_requests_count() {
        for (uncounted, broke, share) in [
            (&[][..], 0, Some(100.0)),
            (&[(Kind::Unproven, 68)], 0, None),
            (&[(Kind::StaleCopy, 1)], 0, None),
            (&[(Kind::Unproven, 2), (Kind::StaleCopy, 3)], 4, None),
            (&[(Kind::Unproven, 2), (Kind::StaleCopy, 3)], 5, Some(80.0)),
        ] {
            let mut counts = Counts::default();
            counts.add(Kind::Allowed, CountedAction::Pass, 20);
            counts.add(Kind::Violation, CountedAction::WouldBlock, broke);
            for (kind, requests) in uncounted {
                counts.add(*kind, CountedAction::WouldBlock, *requests);
            }
            assert_eq!(counts.compliance(), share, "{uncounted:?}, {broke}");
        }
        assert_eq!(Counts::default().compliance(), None);
    }

    #[test]
    fn columns_are_read_as_they_were_written() {
        let mut counts = Counts::default();
        counts.add(Kind::Violation, CountedAction::Slow, 3);
        counts.add(RecordedKind::Off, CountedAction::RobotsTxt, 2);
        counts.add(RecordedKind::Off, CountedAction::WouldPause, 1);
        counts.add_bytes(99);
        counts.add_total(Total::NotModified, 1);
        let written = serde_json::to_value(counts).expect("written");
        let expected = serde_json::json!({
            "requests": 6, "robots_txt": 2, "violation": 3, "off": 1, "refused": 3, "paused": 1,
            "bytes": 99, "status_304": 1,
        });
        assert_eq!(written, expected);
        let mut later = written;
        later["unheard_of"] = 7.into();
        let read: Counts = serde_json::from_value(later).expect("read");
        assert_eq!(read, counts);
    }
}
