//! Computes from the publication log which robots.txt each host published at each time
//! ([`PublicationLog::build_histories`]). Several sites may have patterns that match a host: only
//! the site with the most specific pattern counts. All hosts with the same most specific pattern
//! have the same history. So a history is computed for each pattern, not for each host. Patterns
//! that always belonged to the same sites share their history.
//!
//! `index` finds the entries of the log that count for a pattern. `peers` adds what other instances
//! of crawlgate published.

mod index;
mod peers;

use super::{ChangePoint, Publication, PublicationLog, PublishedRobots, VersionStore};
use crate::crawlers::Registry;
use crate::policy::model::HostPattern;
use crate::policy::publication_history::{PublicationHistory, UnavailableSpan};
use crate::policy::{ParsedRobotsVersion, RobotsVersionId, SupersededVersion};
use crate::time::Timestamp;
use index::{LogIndex, TenureKey, TenureLevels, distinct_patterns};
use peers::{add_peer_publications, add_unavailability};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Histories of several instances are computed at least twice in this time. A version in force at a
/// peer counts as superseded at the end of it.
const RECOMPUTED_WITHIN: Duration = Duration::from_secs(3_600);

/// A pattern, and the history of its hosts.
pub type PatternHistory = (Option<HostPattern>, Arc<PublicationHistory>);

/// How far back histories go.
#[derive(Clone, Copy)]
pub struct HistoryHorizon {
    /// The longest time for which any crawler may use a copy.
    pub max_cache_time: Duration,
    /// The moment for which histories are computed.
    pub now: Timestamp,
}

impl PublicationLog {
    /// The history of each pattern; `None` stands for every other host. `peers` are the logs of
    /// other instances on the same hosts: a version counts as superseded when the last instance
    /// published another one. Versions whose bytes are not known count as unknown. Patterns with
    /// the same past share a history.
    pub fn build_histories(
        &self,
        peers: &[PublicationLog],
        versions: &mut VersionStore,
        registry: &Registry,
        horizon: HistoryHorizon,
    ) -> Vec<PatternHistory> {
        let indexes: Vec<LogIndex<'_>> =
            [self].into_iter().chain(peers).map(LogIndex::new).collect();
        let mut interned: HashMap<Vec<Vec<TenureKey<'_>>>, Arc<PublicationHistory>> =
            HashMap::new();
        let mut known = Vec::new();
        for pattern in distinct_patterns(&indexes) {
            let levels: Vec<TenureLevels<'_>> = indexes
                .iter()
                .map(|index| index.tenure_levels(pattern.as_ref()))
                .collect();
            let keys = indexes
                .iter()
                .zip(&levels)
                .map(|(index, levels)| index.levels_key(levels))
                .collect();
            let history = interned.entry(keys).or_insert_with(|| {
                let mut spans = indexes
                    .iter()
                    .zip(&levels)
                    .map(|(index, levels)| index.spans(levels));
                let own = spans.next().unwrap_or_default();
                let peers: Vec<Vec<TimelineSpan<'_>>> = spans.collect();
                let mut parsed = |version| versions.get_parsed(version, registry);
                let mut history = self.build_history(&own, &peers, horizon, &mut parsed);
                if !peers.is_empty() {
                    add_peer_publications(&mut history, &own, &peers, horizon, parsed);
                }
                Arc::new(history)
            });
            known.push((pattern, history.clone()));
        }
        known
    }

    /// The history at `horizon.now` of hosts on which this instance published `spans`. Of the peers
    /// it adds only the times of 503. It leaves out superseded versions that no crawler can have
    /// cached any more (`horizon.max_cache_time`). A version without parsed rules (`parsed` returns
    /// `None`), or beyond the limit of 64, counts as unknown. Includes the version that the operator
    /// declares for the time before crawlgate.
    fn build_history(
        &self,
        spans: &[TimelineSpan<'_>],
        peers: &[Vec<TimelineSpan<'_>>],
        horizon: HistoryHorizon,
        mut parsed: impl FnMut(RobotsVersionId) -> Option<Arc<ParsedRobotsVersion>>,
    ) -> PublicationHistory {
        let now = horizon.now;
        let mut history = PublicationHistory {
            moved_at: self.gaps.lost_at,
            unknown_until: self.gaps.cut_at,
            ..PublicationHistory::new(now)
        };
        history.moved_at = history.moved_at.max(self.moved_at(spans));
        history.jumps.clone_from(&self.jumps);
        history.unavailable = spans
            .iter()
            .rev()
            .filter_map(TimelineSpan::unavailability)
            .collect();
        add_unavailability(&mut history, peers, now);
        let current = spans
            .last()
            .and_then(|last| last.version().filter(|_| last.until.is_none()));
        history.since = version_since(spans, current, now);
        history.identity_epoch = identity_epoch(spans, now);
        history.on_site_since = on_site_since(spans).map_or(now, |change| change.at);
        history.has_unique_date = has_unique_date(spans, current, history.since);
        let cached_since = history.cached_since(horizon.max_cache_time, now);
        let mut seen: HashSet<RobotsVersionId> = current.into_iter().collect();
        for (index, span) in spans.iter().enumerate().rev() {
            let superseded_at = superseded_at(spans, index, now);
            if superseded_at < cached_since
                || span.publication.published == PublishedRobots::Unavailable
            {
                continue;
            }
            let is_known = match span.version() {
                Some(version) if !seen.insert(version) => continue,
                Some(version) => {
                    let since = version_since(&spans[..=index], Some(version), now);
                    add_superseded(&mut history, version, since, superseded_at, &mut parsed)
                }
                None => false,
            };
            if !is_known {
                history.unknown_until = history.unknown_until.max(Some(superseded_at));
            }
        }
        if let Some((version, until)) = self.declared_version(spans) {
            // In a gap crawlers may have been served yet another file.
            history.is_declared = self.gaps.broken_at.is_none_or(|broken| until >= broken);
            if until >= cached_since
                && seen.insert(version)
                && !add_superseded(&mut history, version, until, until, &mut parsed)
            {
                history.unknown_until = history.unknown_until.max(Some(until));
            }
        }
        history
    }

    /// The version that the operator declares for the time before crawlgate, and until when it was
    /// served: the beginning of the first span. A gap since then does not take back that it was
    /// served. `None` without a declaration, if the log was lost, or if the host has not been at one
    /// site since.
    fn declared_version(&self, spans: &[TimelineSpan<'_>]) -> Option<(RobotsVersionId, Timestamp)> {
        let last = spans.last().filter(|last| last.until.is_none())?;
        let first = spans.first()?.since;
        let moved = on_site_since(spans)?;
        let version = self
            .declared
            .get(&last.publication.site)
            .filter(|_| self.gaps.lost_at.is_none() && moved == first);
        version.map(|version| (*version, first.at))
    }

    /// Whether the site of a span had tags for pages before it had this host.
    fn had_page_tags_before(&self, span: &TimelineSpan<'_>) -> bool {
        self.publications.iter().any(|known| {
            known.has_page_tags
                && known.site == span.publication.site
                && known.span.since.number < span.since.number
        })
    }

    /// When the host last left a site that had tags for pages, or came to a site that had such tags
    /// before.
    fn moved_at(&self, spans: &[TimelineSpan<'_>]) -> Option<Timestamp> {
        let mut moved_at = None;
        for (index, span) in spans.iter().enumerate() {
            let next = spans.get(index + 1);
            if span.publication.has_page_tags && !next.is_some_and(|next| next.continues(span)) {
                moved_at = moved_at.max(span.until.map(|until| until.at));
            }
            let before = index.checked_sub(1).map(|before| &spans[before]);
            if !before.is_some_and(|before| span.continues(before))
                && self.had_page_tags_before(span)
            {
                moved_at = moved_at.max(Some(span.since.at));
            }
        }
        moved_at
    }
}

/// When another version superseded the span at `index`; `now` if none did. A span of the same site
/// in which robots.txt answered 503 supersedes nothing: a crawler may use its copy through it (RFC
/// 9309 section 2.3.1.4).
fn superseded_at(spans: &[TimelineSpan<'_>], index: usize, now: Timestamp) -> Timestamp {
    let mut last = &spans[index];
    for span in &spans[index + 1..] {
        if !span.continues(last) || span.publication.published != PublishedRobots::Unavailable {
            break;
        }
        last = span;
    }
    last.until.map_or(now, |until| until.at)
}

/// Since when the site of the last span publishes `current`, ignoring times of 503. The beginning of
/// the last span if it published something else; `now` without spans.
fn version_since(
    spans: &[TimelineSpan<'_>],
    current: Option<RobotsVersionId>,
    now: Timestamp,
) -> Timestamp {
    let Some(last) = spans.last() else {
        return now;
    };
    let mut since = last.since.at;
    for span in spans
        .iter()
        .rev()
        .take_while(|span| span.publication.site == last.publication.site)
    {
        match span.version() {
            None if span.publication.published == PublishedRobots::Unavailable => {}
            version if version.is_some() && version == current => since = span.since.at,
            _ => break,
        }
    }
    since
}

/// Since when the host is at the site of the last span without a break.
fn on_site_since(spans: &[TimelineSpan<'_>]) -> Option<ChangePoint> {
    alike_since(spans, |span, last| span.site == last.site)
}

/// Since when crawlers are told apart as in the last span without a break; `now` without spans.
fn identity_epoch(spans: &[TimelineSpan<'_>], now: Timestamp) -> Timestamp {
    alike_since(spans, |span, last| span.identities == last.identities)
        .map_or(now, |change| change.at)
}

/// The beginning of the last unbroken series of spans that are like the last one.
fn alike_since(
    spans: &[TimelineSpan<'_>],
    is_alike: impl Fn(&Publication, &Publication) -> bool,
) -> Option<ChangePoint> {
    let last = spans.last()?;
    let mut first = last;
    for span in spans.iter().rev().skip(1) {
        if !is_alike(span.publication, last.publication) || span.end() != first.since.number {
            break;
        }
        first = span;
    }
    Some(first.since)
}

/// A time in which one publication counted for a host.
struct TimelineSpan<'a> {
    publication: &'a Publication,
    since: ChangePoint,
    until: Option<ChangePoint>,
}

impl TimelineSpan<'_> {
    /// The number of the change that ended it; the largest number while it is open.
    fn end(&self) -> u64 {
        self.until.map_or(u64::MAX, |until| until.number)
    }

    /// Whether it follows a span of the same site without a gap.
    fn continues(&self, before: &TimelineSpan<'_>) -> bool {
        self.since.number == before.end() && self.publication.site == before.publication.site
    }

    fn version(&self) -> Option<RobotsVersionId> {
        self.publication.published.version()
    }

    /// The span as a time of 503; `None` if robots.txt never answered 503 in it.
    fn unavailability(&self) -> Option<UnavailableSpan> {
        let span = UnavailableSpan {
            since: self.since.at,
            until: self.until.map(|until| until.at),
        };
        self.publication.published.was_unavailable().then_some(span)
    }
}

/// Whether the date of a copy shows that it is the version in force since `since`: no other version
/// began in the same second, and none is unknown.
fn has_unique_date(
    spans: &[TimelineSpan<'_>],
    current: Option<RobotsVersionId>,
    since: Timestamp,
) -> bool {
    use PublishedRobots::*;
    spans.iter().all(|span| match span.publication.published {
        Version(version) => Some(version) == current || span.since.at != since,
        Unknown | UnknownOrUnavailable => false,
        Unavailable => true,
    })
}

/// Adds a version that was in force from `since` to `superseded_at` to the superseded ones, or
/// widens the time of a known one. `parsed` returns the rules of a version. Returns false, and adds
/// nothing, without rules or if there are 64 already.
fn add_superseded(
    history: &mut PublicationHistory,
    version: RobotsVersionId,
    since: Timestamp,
    superseded_at: Timestamp,
    parsed: &mut impl FnMut(RobotsVersionId) -> Option<Arc<ParsedRobotsVersion>>,
) -> bool {
    if let Some(known) = history
        .superseded
        .iter_mut()
        .find(|old| old.parsed.version == version)
    {
        known.superseded_at = known.superseded_at.max(superseded_at);
        known.since = known.since.min(since);
        return true;
    }
    let has_room = history.superseded.len() < PublicationHistory::MAX_SUPERSEDED;
    let Some(parsed) = parsed(version).filter(|_| has_room) else {
        return false;
    };
    history.superseded.push(SupersededVersion {
        parsed,
        since,
        superseded_at,
    });
    true
}
