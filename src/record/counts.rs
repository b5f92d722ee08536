//! [`Counts`]: requests by kind and by what was done, with the bytes that were sent and the
//! responses of the origin, and until when requests in doubt do not count. [`ByIdentity`]: counts
//! under the name of one crawler, by what is proven of the name. Each number has the name of a
//! column of the history.

use super::{CountedAction, RecordedKind};
use crate::time::Timestamp;
use crate::verdict::{HistoryBasis, Kind, KnownIdentity};
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
    /// Of the kind `unproven`, because a cache may have answered the crawler.
    PerhapsCached,
    /// Of the kind `unproven`, because it is not known what other instances served.
    PeersUnknown,
    /// No number of requests: the latest end of those of the kind `stale_copy`, in seconds since
    /// 1970.
    StaleUntil,
    /// The same of the kind `unproven`.
    UnprovenUntil,
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

    /// The end of requests of a kind, if the kind has one.
    pub(super) fn end_of(kind: Kind) -> Option<Total> {
        match kind {
            Kind::StaleCopy => Some(Total::StaleUntil),
            Kind::Unproven => Some(Total::UnprovenUntil),
            _ => None,
        }
    }

    /// Why a request of the kind `unproven` with this basis and end does not count, if that is more
    /// than an older robots.txt.
    pub(super) fn from_doubt(basis: HistoryBasis, older_until: Option<Timestamp>) -> Option<Total> {
        match (basis, older_until) {
            (HistoryBasis::PerhapsCached, _) => Some(Total::PerhapsCached),
            (_, None) => Some(Total::PeersUnknown),
            (_, Some(_)) => None,
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

    /// Adds all of other counts. The later end of the requests in doubt stays.
    pub fn add_all(&mut self, other: &Counts) {
        for ((column, mine), (_, theirs)) in self.columns_mut().zip(other.columns()) {
            *mine = if Counts::is_moment(column) {
                (*mine).max(theirs)
            } else {
                mine.saturating_add(theirs)
            };
        }
    }

    /// Subtracts other counts, each down to zero. The end of the requests in doubt stays.
    pub fn subtract(&mut self, other: &Counts) {
        for ((column, mine), (_, theirs)) in self.columns_mut().zip(other.columns()) {
            if !Counts::is_moment(column) {
                *mine = mine.saturating_sub(theirs);
            }
        }
    }

    /// Whether a column is a moment, of which a sum has the latest. The others are numbers.
    pub fn is_moment(column: &str) -> bool {
        let ends = [Total::StaleUntil, Total::UnprovenUntil];
        ends.map(<&str>::from).contains(&column)
    }

    /// Sets the end of the requests of a kind that do not count, unless a later one is known. Only
    /// `stale_copy` and `unproven` have one.
    pub fn set_older_until(&mut self, kind: Kind, until: Timestamp) {
        if let Some(end) = Total::end_of(kind) {
            let known = &mut self.totals[end as usize];
            *known = (*known).max(seconds(until));
        }
    }

    /// Counts requests that followed an older robots.txt as obedient, if crawlers may no longer use
    /// that at `now`. Without a known end they stay.
    pub fn settle(&mut self, now: Timestamp) {
        let until = self.older_until(Kind::StaleCopy);
        if until.is_some_and(|until| until <= now) {
            let stale = std::mem::take(&mut self.kinds[Kind::StaleCopy as usize]);
            let allowed = &mut self.kinds[Kind::Allowed as usize];
            *allowed = allowed.saturating_add(stale);
            self.totals[Total::StaleUntil as usize] = 0;
        }
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
    /// path in different ways.
    pub fn uncounted(&self) -> u64 {
        self.sum([Kind::Unproven, Kind::StaleCopy, Kind::Ambiguous])
    }

    /// Unproven requests of crawlers that a cache in front of crawlgate may have answered. No time
    /// ends that.
    pub fn perhaps_cached(&self) -> u64 {
        self.totals[Total::PerhapsCached as usize]
    }

    /// Unproven requests that other instances could not confirm. No time ends that for them.
    pub fn peers_unknown(&self) -> u64 {
        self.totals[Total::PeersUnknown as usize]
    }

    /// Until when crawlers may use an older robots.txt: the latest end of the requests of the kind
    /// `stale_copy` or `unproven`. `None` if no end is known.
    pub fn older_until(&self, kind: Kind) -> Option<Timestamp> {
        let until = self.totals[Total::end_of(kind)? as usize];
        let until = Timestamp(i64::try_from(until).unwrap_or(i64::MAX));
        (until.0 > 0).then_some(until)
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

/// A moment as a column holds it; 0 before 1970.
pub(super) fn seconds(moment: Timestamp) -> u64 {
    u64::try_from(moment.0).unwrap_or_default()
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

    /// As [`Counts::settle`], for each identity.
    pub fn settle(&mut self, now: Timestamp) {
        for counts in [&mut self.verified, &mut self.unverified, &mut self.impostor] {
            counts.settle(now);
        }
    }

    /// As [`Counts::subtract`], for each identity.
    pub fn subtract(&mut self, other: &ByIdentity) {
        for (identity, theirs) in other.iter() {
            self.of_identity_mut(identity).subtract(theirs);
        }
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
    use super::{CountedAction, Counts, Kind, RecordedKind, Timestamp, Total};

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
        counts.add_total(Total::PerhapsCached, 4);
        counts.add_total(Total::PeersUnknown, 5);
        counts.set_older_until(Kind::StaleCopy, Timestamp(700));
        let written = serde_json::to_value(counts).expect("written");
        let expected = serde_json::json!({
            "requests": 6, "robots_txt": 2, "violation": 3, "off": 1, "refused": 3, "paused": 1,
            "bytes": 99, "status_304": 1, "perhaps_cached": 4, "peers_unknown": 5,
            "stale_until": 700,
        });
        assert_eq!(written, expected);
        let mut later = written;
        later["unheard_of"] = 7.into();
        let read: Counts = serde_json::from_value(later).expect("read");
        assert_eq!(read, counts);
    }

    /// Requests in doubt that end at a moment.
    fn in_doubt(kind: Kind, requests: u64, until: i64) -> Counts {
        let mut counts = Counts::default();
        counts.add(kind, CountedAction::Pass, requests);
        counts.set_older_until(kind, Timestamp(until));
        counts
    }

    #[test]
    fn sum_has_the_latest_end_of_the_requests_in_doubt() {
        let mut sum = Counts::default();
        assert_eq!(sum.older_until(Kind::Unproven), None);
        for until in [500, 900, 700] {
            sum.add_all(&in_doubt(Kind::Unproven, 2, until));
        }
        assert_eq!(sum, in_doubt(Kind::Unproven, 6, 900));
        sum.set_older_until(Kind::Unproven, Timestamp(600));
        assert_eq!(sum.older_until(Kind::Unproven), Some(Timestamp(900)));
        sum.subtract(&in_doubt(Kind::Unproven, 4, 900));
        assert_eq!(sum, in_doubt(Kind::Unproven, 2, 900));
        sum.subtract(&in_doubt(Kind::Unproven, 4, 900));
        assert_eq!(sum, in_doubt(Kind::Unproven, 0, 900));
    }

    #[test]
    fn obeying_an_older_copy_is_obedience_after_its_end() {
        let mut counts = in_doubt(Kind::StaleCopy, 3, 700);
        counts.add(Kind::Allowed, CountedAction::Pass, 2);
        counts.add(Kind::Unproven, CountedAction::Pass, 1);
        counts.settle(Timestamp(699));
        assert_eq!((counts.of_kind(Kind::StaleCopy), counts.kept()), (3, 2));
        counts.settle(Timestamp(700));
        assert_eq!((counts.of_kind(Kind::StaleCopy), counts.kept()), (0, 5));
        assert_eq!((counts.uncounted(), counts.requests()), (1, 6));
        let mut settled = in_doubt(Kind::StaleCopy, 3, 700);
        settled.settle(Timestamp(700));
        assert_eq!(
            (settled.kept(), settled.older_until(Kind::StaleCopy)),
            (3, None)
        );
        let mut endless = Counts::default();
        endless.add(Kind::StaleCopy, CountedAction::Pass, 3);
        endless.settle(Timestamp(i64::MAX));
        assert_eq!(endless.of_kind(Kind::StaleCopy), 3);
    }
}
