//! [`RequestCounts`] counts requests by kind (such as violation), by action (such as blocked) and
//! by the status of the response. It also has the bytes sent. A disallowed request may be excused
//! until a known time, for example because the crawler may still use an older robots.txt.
//! [`RequestCounts`] keeps the latest of these times, too. [`CountsByIdentity`] has separate counts
//! for verified clients, unverified clients and impostors under one crawler's name. Each number is
//! a column in the tables of `state.db`.

use super::{CountedAction, RecordedKind};
use crate::time::Timestamp;
use crate::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
use CountColumn::*;
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};

/// The columns besides the kinds. In lists of columns the kinds come after `RobotsTxt`.
#[derive(Clone, Copy, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(super) enum CountColumn {
    Requests,
    RobotsTxt,
    Refused,
    /// Those of them that broke the rules.
    RefusedAgainstRules,
    WouldRefuse,
    /// Those of them that broke the rules.
    WouldRefuseAgainstRules,
    /// Requests that were answered with a demand for a licence.
    LicenseDemanded,
    /// Requests that enforcement would answer with one.
    WouldDemandLicense,
    Paused,
    /// Bytes of the bodies that were sent.
    Bytes,
    /// The time until the origin sent the head of its response.
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
    /// Pages with a published reservation that crawlers for AI training got.
    Reserved,
    /// Requests of the kind `unproven`, because a cache may have answered the crawler.
    PerhapsCached,
    /// Requests of the kind `unproven`, because it is not known what peers served.
    PeersUnknown,
    /// Not a number of requests: until when those of the kind `stale_copy` do not count, in seconds
    /// since 1970. The latest of them.
    StaleUntil,
    /// The same for the kind `unproven`.
    UnprovenUntil,
}

/// The kinds of requests that broke a rule.
pub const RULE_BREAKING_KINDS: [Kind; 3] = [Kind::Violation, Kind::TooFast, Kind::Trapped];

/// Refused requests, and those of them that broke the rules.
const REFUSED: [CountColumn; 2] = [Refused, RefusedAgainstRules];
/// The same of requests that enforcement would refuse.
const WOULD_REFUSE: [CountColumn; 2] = [WouldRefuse, WouldRefuseAgainstRules];

/// How many columns come before the kinds.
const COLUMNS_BEFORE_KINDS: usize = 2;

impl CountColumn {
    /// The columns of statuses, as metrics name them.
    pub(super) const STATUSES: [(&'static str, CountColumn); 5] = [
        ("2xx", Successful),
        ("3xx", Redirected),
        ("304", NotModified),
        ("4xx", ClientError),
        ("5xx", ServerError),
    ];

    /// The column of responses with this status. `None` for a status that is not final.
    pub(super) fn status_column(status: u16) -> Option<CountColumn> {
        match status {
            200..=299 => Some(Successful),
            304 => Some(NotModified),
            300..=399 => Some(Redirected),
            400..=499 => Some(ClientError),
            500..=599 => Some(ServerError),
            _ => None,
        }
    }

    /// The column with the end of a kind, if the kind has one.
    pub(super) fn latest_end_column(kind: Kind) -> Option<CountColumn> {
        match kind {
            Kind::StaleCopy => Some(StaleUntil),
            Kind::Unproven => Some(UnprovenUntil),
            _ => None,
        }
    }

    /// The column for the reason why an `unproven` request does not count. `None` if the only
    /// reason is an older robots.txt.
    pub(super) fn doubt_column(
        basis: CachedVersionsBasis,
        older_until: Option<Timestamp>,
    ) -> Option<CountColumn> {
        match (basis, older_until) {
            (CachedVersionsBasis::PerhapsCached, _) => Some(PerhapsCached),
            (_, None) => Some(PeersUnknown),
            (_, Some(_)) => None,
        }
    }
}

/// Requests, by kind and by action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    totals: [u64; CountColumn::VARIANTS.len()],
    kinds: [u64; RecordedKind::COUNT],
}

impl RequestCounts {
    /// Adds requests of one kind with one action to the columns for all requests, for the kind and
    /// for the action. Requests that were answered with robots.txt count under no kind: no crawler
    /// breaks a rule with them.
    pub fn add(&mut self, kind: impl Into<RecordedKind>, action: CountedAction, requests: u64) {
        use CountedAction::*;

        let kind = kind.into();
        let breaks_rules = RULE_BREAKING_KINDS.map(RecordedKind::Of).contains(&kind);
        // The second column is for requests that broke the rules.
        let columns: &[CountColumn] = match action {
            RobotsTxt => &[CountColumn::RobotsTxt],
            Block | Slow => &REFUSED,
            WouldBlock | WouldSlow => &WOULD_REFUSE,
            License => &[LicenseDemanded],
            WouldLicense => &[WouldDemandLicense],
            Pause | WouldPause => &[Paused],
            Pass | Tdmrep | Refuse | Challenge | Redirect => &[],
        };
        self.add_total(Requests, requests);
        for column in columns.iter().take(1 + usize::from(breaks_rules)) {
            self.add_total(*column, requests);
        }
        if action != RobotsTxt {
            let count = &mut self.kinds[kind.index()];
            *count = count.saturating_add(requests);
        }
    }

    pub(super) fn add_total(&mut self, total: CountColumn, number: u64) {
        let count = &mut self.totals[total as usize];
        *count = count.saturating_add(number);
    }

    /// Adds bytes of bodies that were sent.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.add_total(Bytes, bytes);
    }

    /// Adds a response with this status. One that is not final is left out.
    pub fn add_status(&mut self, status: u16) {
        if let Some(column) = CountColumn::status_column(status) {
            self.add_total(column, 1);
        }
    }

    /// Adds other counts. Of two ends of doubt the later one stays.
    pub fn add_all(&mut self, other: &RequestCounts) {
        for ((column, mine), (_, theirs)) in self.columns_mut().zip(other.columns()) {
            *mine = if RequestCounts::is_moment(column) {
                (*mine).max(theirs)
            } else {
                mine.saturating_add(theirs)
            };
        }
    }

    /// Subtracts other counts, each down to zero. The ends of doubt stay.
    pub fn subtract(&mut self, other: &RequestCounts) {
        for ((column, mine), (_, theirs)) in self.columns_mut().zip(other.columns()) {
            if !RequestCounts::is_moment(column) {
                *mine = mine.saturating_sub(theirs);
            }
        }
    }

    /// Whether a column is a moment: a sum has the latest one. All other columns are numbers.
    pub fn is_moment(column: &str) -> bool {
        let ends = [StaleUntil, UnprovenUntil];
        ends.map(<&str>::from).contains(&column)
    }

    /// Sets until when the requests of a kind do not count, unless a later end is known. Only
    /// `stale_copy` and `unproven` have an end.
    pub fn set_older_until(&mut self, kind: Kind, until: Timestamp) {
        if let Some(end) = CountColumn::latest_end_column(kind) {
            let known = &mut self.totals[end as usize];
            *known = (*known).max(unix_seconds(until));
        }
    }

    /// Moves stale copies to the allowed requests, if their end is not after `now`. Without a known
    /// end they stay.
    pub fn count_expired_stale_copies_as_allowed(&mut self, now: Timestamp) {
        let until = self.older_until(Kind::StaleCopy);
        if until.is_some_and(|until| until <= now) {
            let stale = std::mem::take(&mut self.kinds[Kind::StaleCopy as usize]);
            let allowed = &mut self.kinds[Kind::Allowed as usize];
            *allowed = allowed.saturating_add(stale);
            self.totals[StaleUntil as usize] = 0;
        }
    }

    /// Subtracts the other's requests that would be refused, down to zero. The count of all requests
    /// stays.
    pub fn subtract_would_refuse(&mut self, other: &RequestCounts) {
        for column in WOULD_REFUSE {
            let count = &mut self.totals[column as usize];
            *count = count.saturating_sub(other.totals[column as usize]);
        }
    }

    /// Requests of a kind, without those that were answered with robots.txt.
    pub fn requests_of_kind(&self, kind: impl Into<RecordedKind>) -> u64 {
        self.kinds[kind.into().index()]
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.totals[Requests as usize]
    }

    /// Requests that were answered with robots.txt.
    pub fn robots_txt(&self) -> u64 {
        self.totals[RobotsTxt as usize]
    }

    /// Requests that were blocked or slowed down.
    pub fn refused(&self) -> u64 {
        self.totals[Refused as usize]
    }

    /// Requests against the rules that were blocked or slowed down.
    pub fn refused_against_rules(&self) -> u64 {
        self.totals[RefusedAgainstRules as usize]
    }

    /// Requests that `mode: enforce` would have refused.
    pub fn would_refuse(&self) -> u64 {
        self.totals[WouldRefuse as usize]
    }

    /// Requests against the rules that `mode: enforce` would have refused.
    pub fn would_refuse_against_rules(&self) -> u64 {
        self.totals[WouldRefuseAgainstRules as usize]
    }

    /// Requests that were answered with a demand for a licence.
    pub fn license_demanded(&self) -> u64 {
        self.totals[LicenseDemanded as usize]
    }

    /// Requests that crawlgate answered itself: with robots.txt, a block, a demand for a licence, or
    /// a pause.
    pub fn answered_by_crawlgate(&self) -> u64 {
        let own = [RobotsTxt, Refused, LicenseDemanded, Paused];
        let numbers = own.iter().map(|column| self.totals[*column as usize]);
        numbers.fold(0, u64::saturating_add)
    }

    /// Requests without a licence that the policy asks for: those that were answered with the
    /// demand, and those that `mode: enforce` would have answered with it.
    pub fn without_license(&self) -> u64 {
        self.license_demanded()
            .saturating_add(self.totals[WouldDemandLicense as usize])
    }

    /// Bytes of the bodies that were sent.
    pub fn bytes(&self) -> u64 {
        self.totals[Bytes as usize]
    }

    /// Pages with a published reservation that crawlers for AI training got.
    pub fn reserved_pages(&self) -> u64 {
        self.totals[Reserved as usize]
    }

    /// Whether most responses are unknown: beside another proxy, crawlgate does not see the responses
    /// to requests that pass. Clients abort some, so only sums of many requests tell.
    pub fn has_unknown_responses(&self) -> bool {
        let seen: u64 = self.statuses().iter().sum();
        let passed = self.requests().saturating_sub(self.answered_by_crawlgate());
        passed > 2 * seen
    }

    /// Responses with the status 2xx, 3xx (without 304), 304, 4xx and 5xx, in this order.
    pub fn statuses(&self) -> [u64; 5] {
        CountColumn::STATUSES.map(|(_, column)| self.totals[column as usize])
    }

    /// Pages that were read: responses with the status 2xx or 304.
    pub fn pages_read(&self) -> u64 {
        let [successful, _, not_modified, ..] = self.statuses();
        successful.saturating_add(not_modified)
    }

    /// Requests that broke the rules: violations, too fast, traps.
    pub fn rule_breaking_requests(&self) -> u64 {
        self.sum(RULE_BREAKING_KINDS)
    }

    /// Requests that obeyed the rules: the kind `allowed`. The other kinds are neither obeying nor
    /// breaking, or break the rules.
    pub fn rule_obeying_requests(&self) -> u64 {
        self.requests_of_kind(Kind::Allowed)
    }

    /// Disallowed requests that count neither as obeying nor as breaking: the crawler may use an
    /// older robots.txt, or it is not known which one, or RFC 9309 and the origin may read the path
    /// in different ways.
    pub fn uncounted(&self) -> u64 {
        self.sum([Kind::Unproven, Kind::StaleCopy, Kind::Ambiguous])
    }

    /// Unproven requests of crawlers that a cache in front of crawlgate may have answered. This
    /// doubt has no end.
    pub fn perhaps_cached(&self) -> u64 {
        self.totals[PerhapsCached as usize]
    }

    /// Unproven requests that the peers did not confirm. This doubt has no end.
    pub fn peers_unknown(&self) -> u64 {
        self.totals[PeersUnknown as usize]
    }

    /// Until when crawlers may use an older robots.txt: the latest end of the requests of the kind
    /// `stale_copy` or `unproven`. `None` if no end is known.
    pub fn older_until(&self, kind: Kind) -> Option<Timestamp> {
        let until = self.totals[CountColumn::latest_end_column(kind)? as usize];
        let until = Timestamp(i64::try_from(until).unwrap_or(i64::MAX));
        (until.0 > 0).then_some(until)
    }

    fn sum<const N: usize>(&self, kinds: [Kind; N]) -> u64 {
        let numbers = kinds.iter().map(|kind| self.requests_of_kind(*kind));
        numbers.fold(0, u64::saturating_add)
    }

    /// The percentage of requests that obeyed the rules, among those that obeyed or broke them.
    /// `None` if there are none, or if more disallowed requests are uncounted or exempt than broke
    /// the rules, because the percentage would leave out most of them.
    pub fn compliance(&self) -> Option<f64> {
        let known = self.rule_obeying_requests() + self.rule_breaking_requests();
        let not_counted = self.uncounted() + self.requests_of_kind(Kind::Exempt);
        (known > 0 && self.rule_breaking_requests() >= not_counted)
            .then(|| 100.0 * self.rule_obeying_requests() as f64 / known as f64)
    }

    /// Every number with the name of its column, in the order of the columns.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (first, rest) = self.totals.split_at(COLUMNS_BEFORE_KINDS);
        let numbers = first.iter().chain(&self.kinds).chain(rest);
        column_names().zip(numbers.copied())
    }

    /// Like [`RequestCounts::columns`], mutable.
    pub fn columns_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
        let (first, rest) = self.totals.split_at_mut(COLUMNS_BEFORE_KINDS);
        let numbers = first.iter_mut().chain(&mut self.kinds).chain(rest);
        column_names().zip(numbers)
    }
}

/// A moment as the value of a column; 0 before 1970.
pub(super) fn unix_seconds(moment: Timestamp) -> u64 {
    u64::try_from(moment.0).unwrap_or_default()
}

fn column_names() -> impl Iterator<Item = &'static str> {
    let totals = CountColumn::VARIANTS.iter().map(<&str>::from);
    let kinds = RecordedKind::iter_all().map(RecordedKind::name);
    totals
        .clone()
        .take(COLUMNS_BEFORE_KINDS)
        .chain(kinds)
        .chain(totals.skip(COLUMNS_BEFORE_KINDS))
}

/// The columns that are not zero.
impl serde::Serialize for RequestCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.columns().filter(|(_, count)| *count > 0))
    }
}

/// Columns that this crawlgate does not know are left out. Another version may lack the columns of
/// refused requests that broke the rules. They become what the other columns prove at least, and
/// never more than these allow.
impl<'de> serde::Deserialize<'de> for RequestCounts {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<RequestCounts, D::Error> {
        let read = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut counts = RequestCounts::default();
        for (column, count) in counts.columns_mut() {
            *count = read.get(column).copied().unwrap_or_default();
        }
        let mut broke = counts.rule_breaking_requests();
        let others = counts.sum([
            Kind::Unproven,
            Kind::Ambiguous,
            Kind::NotBound,
            Kind::Unverified,
        ]);
        for [all, part] in [REFUSED, WOULD_REFUSE] {
            let all = counts.totals[all as usize];
            let part = &mut counts.totals[part as usize];
            *part = (*part).max(all.saturating_sub(others)).min(all).min(broke);
            broke -= *part;
        }
        Ok(counts)
    }
}

/// Requests that claim to be one crawler, by identity. Each is counted once.
#[derive(Default, serde::Serialize)]
pub struct CountsByIdentity {
    /// Requests of the crawler itself.
    pub verified: RequestCounts,
    /// Requests whose identity is not proven.
    pub unverified: RequestCounts,
    /// Requests of clients that are proven not to be the crawler.
    pub impostor: RequestCounts,
}

impl CountsByIdentity {
    /// Adds counts to those of an identity.
    pub fn add(&mut self, identity: IdentityStatus, counts: &RequestCounts) {
        self.identity_mut(identity).add_all(counts);
    }

    /// Adds all of another.
    pub fn add_all(&mut self, other: &CountsByIdentity) {
        for (identity, counts) in other.iter() {
            self.add(identity, counts);
        }
    }

    /// [`RequestCounts::count_expired_stale_copies_as_allowed`] for each identity.
    pub fn count_expired_stale_copies_as_allowed(&mut self, now: Timestamp) {
        for counts in [&mut self.verified, &mut self.unverified, &mut self.impostor] {
            counts.count_expired_stale_copies_as_allowed(now);
        }
    }

    /// [`RequestCounts::subtract`] for each identity.
    pub fn subtract(&mut self, other: &CountsByIdentity) {
        for (identity, theirs) in other.iter() {
            self.identity_mut(identity).subtract(theirs);
        }
    }

    fn identity_mut(&mut self, identity: IdentityStatus) -> &mut RequestCounts {
        match identity {
            IdentityStatus::Verified => &mut self.verified,
            IdentityStatus::Unverified => &mut self.unverified,
            IdentityStatus::Impostor => &mut self.impostor,
        }
    }

    /// Each identity with its counts.
    pub fn iter(&self) -> impl Iterator<Item = (IdentityStatus, &RequestCounts)> {
        let counts = [&self.verified, &self.unverified, &self.impostor];
        IdentityStatus::VARIANTS.iter().copied().zip(counts)
    }

    /// The sum over all identities.
    pub fn total(&self) -> RequestCounts {
        let mut all = RequestCounts::default();
        for (_, counts) in self.iter() {
            all.add_all(counts);
        }
        all
    }

    /// Counts of the requests that may be the crawler's: all but those of impostors.
    pub fn without_impostors(&self) -> RequestCounts {
        let mut own = self.verified;
        own.add_all(&self.unverified);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::{CountColumn, CountedAction, Kind, RecordedKind, RequestCounts, Timestamp};

    #[test]
    fn compliance_needs_half_of_the_disallowed_requests() {
        for (uncounted, broke, share) in [
            (&[][..], 0, Some(100.0)),
            (&[(Kind::Unproven, 68)], 0, None),
            (&[(Kind::StaleCopy, 1)], 0, None),
            (&[(Kind::Exempt, 1)], 0, None),
            (&[(Kind::Unproven, 2), (Kind::StaleCopy, 3)], 4, None),
            (&[(Kind::Unproven, 2), (Kind::StaleCopy, 3)], 5, Some(80.0)),
        ] {
            let mut counts = RequestCounts::default();
            counts.add(Kind::Allowed, CountedAction::Pass, 20);
            counts.add(Kind::Violation, CountedAction::WouldBlock, broke);
            for (kind, requests) in uncounted {
                counts.add(*kind, CountedAction::WouldBlock, *requests);
            }
            assert_eq!(counts.compliance(), share, "{uncounted:?}, {broke}");
        }
        assert_eq!(RequestCounts::default().compliance(), None);
    }

    #[test]
    fn written_columns_are_read_back() {
        let mut counts = RequestCounts::default();
        counts.add(Kind::Violation, CountedAction::Slow, 3);
        counts.add(RecordedKind::Off, CountedAction::RobotsTxt, 2);
        counts.add(RecordedKind::Off, CountedAction::WouldPause, 1);
        counts.add_bytes(99);
        counts.add_total(CountColumn::NotModified, 1);
        counts.add_total(CountColumn::PerhapsCached, 4);
        counts.add_total(CountColumn::PeersUnknown, 5);
        counts.set_older_until(Kind::StaleCopy, Timestamp(700));
        let written = serde_json::to_value(counts).expect("written");
        let expected = serde_json::json!({
            "requests": 6, "robots_txt": 2, "violation": 3, "off": 1, "refused": 3, "paused": 1,
            "refused_against_rules": 3, "bytes": 99, "status_304": 1, "perhaps_cached": 4, "peers_unknown": 5,
            "stale_until": 700,
        });
        assert_eq!(written, expected);
        let mut later = written;
        later["unheard_of"] = 7.into();
        let read: RequestCounts = serde_json::from_value(later).expect("read");
        assert_eq!(read, counts);
    }

    #[test]
    fn read_refusals_against_rules_fit_the_other_columns() {
        for (read, expected) in [
            // Another version does not have the columns.
            (r#"{"violation": 10, "refused": 10}"#, [10, 0]),
            (
                r#"{"violation": 9, "refused": 4, "would_refuse": 5}"#,
                [4, 5],
            ),
            // Here their absence means 0.
            (
                r#"{"violation": 10, "paused": 10, "unproven": 7, "would_refuse": 7}"#,
                [0, 0],
            ),
            (
                r#"{"violation": 10, "unverified": 40, "refused": 40}"#,
                [0, 0],
            ),
            // These contradict each other.
            (r#"{"violation": 5, "refused_against_rules": 5}"#, [0, 0]),
            (
                r#"{"violation": 3, "refused": 2, "refused_against_rules": 9,
                    "would_refuse": 2, "would_refuse_against_rules": 2}"#,
                [2, 1],
            ),
            (
                r#"{"violation": 18446744073709551615, "too_fast": 5, "refused": 7,
                    "license_demanded": 18446744073709551615, "would_demand_license": 1}"#,
                [7, 0],
            ),
        ] {
            let counts: RequestCounts = serde_json::from_str(read).expect(read);
            let found = [
                counts.refused_against_rules(),
                counts.would_refuse_against_rules(),
            ];
            assert_eq!(found, expected, "{read}");
            let violations = counts.requests_of_kind(Kind::Violation);
            assert!(counts.rule_breaking_requests() >= violations, "{read}");
            assert!(counts.without_license() >= counts.license_demanded());
        }
    }

    /// Requests in doubt that end at a moment.
    fn doubted_counts(kind: Kind, requests: u64, until: i64) -> RequestCounts {
        let mut counts = RequestCounts::default();
        counts.add(kind, CountedAction::Pass, requests);
        counts.set_older_until(kind, Timestamp(until));
        counts
    }

    #[test]
    fn sum_has_the_latest_end_of_doubt() {
        let mut sum = RequestCounts::default();
        assert_eq!(sum.older_until(Kind::Unproven), None);
        for until in [500, 900, 700] {
            sum.add_all(&doubted_counts(Kind::Unproven, 2, until));
        }
        assert_eq!(sum, doubted_counts(Kind::Unproven, 6, 900));
        sum.set_older_until(Kind::Unproven, Timestamp(600));
        assert_eq!(sum.older_until(Kind::Unproven), Some(Timestamp(900)));
        sum.subtract(&doubted_counts(Kind::Unproven, 4, 900));
        assert_eq!(sum, doubted_counts(Kind::Unproven, 2, 900));
        sum.subtract(&doubted_counts(Kind::Unproven, 4, 900));
        assert_eq!(sum, doubted_counts(Kind::Unproven, 0, 900));
    }

    #[test]
    fn stale_copies_count_as_allowed_after_their_end() {
        let mut counts = doubted_counts(Kind::StaleCopy, 3, 700);
        counts.add(Kind::Allowed, CountedAction::Pass, 2);
        counts.add(Kind::Unproven, CountedAction::Pass, 1);
        counts.count_expired_stale_copies_as_allowed(Timestamp(699));
        assert_eq!(
            (
                counts.requests_of_kind(Kind::StaleCopy),
                counts.rule_obeying_requests()
            ),
            (3, 2)
        );
        counts.count_expired_stale_copies_as_allowed(Timestamp(700));
        assert_eq!(
            (
                counts.requests_of_kind(Kind::StaleCopy),
                counts.rule_obeying_requests()
            ),
            (0, 5)
        );
        assert_eq!((counts.uncounted(), counts.requests()), (1, 6));
        let mut settled = doubted_counts(Kind::StaleCopy, 3, 700);
        settled.count_expired_stale_copies_as_allowed(Timestamp(700));
        assert_eq!(
            (
                settled.rule_obeying_requests(),
                settled.older_until(Kind::StaleCopy)
            ),
            (3, None)
        );
        let mut endless = RequestCounts::default();
        endless.add(Kind::StaleCopy, CountedAction::Pass, 3);
        endless.count_expired_stale_copies_as_allowed(Timestamp(i64::MAX));
        assert_eq!(endless.requests_of_kind(Kind::StaleCopy), 3);
    }
}
