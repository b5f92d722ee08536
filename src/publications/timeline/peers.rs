//! Adds to the history of a host what other instances of crawlgate published on the same host. When
//! several instances serve one site, a crawler may have fetched robots.txt from any instance.

use super::{
    HistoryHorizon, RECOMPUTED_WITHIN, TimelineSpan, add_superseded, identity_epoch, on_site_since,
    superseded_at,
};
use crate::policy::publication_history::PublicationHistory;
use crate::policy::{ParsedRobotsVersion, RobotsVersionId};
use crate::publications::PublishedRobots;
use crate::time::Timestamp;
use std::sync::Arc;

/// Adds the times of 503 of other instances, and joins spans that overlap or touch. A crawler that
/// gets 503 from another instance may use its copy for longer, too.
pub(super) fn add_unavailability(
    history: &mut PublicationHistory,
    peers: &[Vec<TimelineSpan<'_>>],
    now: Timestamp,
) {
    let peers = peers
        .iter()
        .flatten()
        .filter_map(TimelineSpan::unavailability);
    let before = history.unavailable.len();
    history.unavailable.extend(peers);
    if history.unavailable.len() == before {
        return;
    }
    let mut spans = std::mem::take(&mut history.unavailable);
    spans.sort_by_key(|span| (span.since, span.until.unwrap_or(now)));
    for span in spans {
        let last = history.unavailable.last_mut();
        let last = last.filter(|last| last.until.unwrap_or(now) >= span.since);
        let Some(last) = last else {
            history.unavailable.push(span);
            continue;
        };
        if span
            .until
            .is_none_or(|until| last.until.unwrap_or(now) < until)
        {
            last.until = span.until;
        }
    }
    history.unavailable.reverse();
}

/// Adds what other instances published on the hosts of a pattern to what this one published (`own`),
/// and fills `peers`. A version counts as superseded when the last instance published another
/// one; a version in force elsewhere counts as superseded an hour from now. The identity epoch
/// becomes that of all instances, and the time at the site begins when the first instance had it.
pub(super) fn add_peer_publications(
    history: &mut PublicationHistory,
    own: &[TimelineSpan<'_>],
    peers: &[Vec<TimelineSpan<'_>>],
    horizon: HistoryHorizon,
    mut parsed: impl FnMut(RobotsVersionId) -> Option<Arc<ParsedRobotsVersion>>,
) {
    let now = horizon.now;
    let last = own.last().filter(|last| last.until.is_none());
    let current = last.and_then(TimelineSpan::version);
    let mut in_force = Vec::new();
    let mut unreported = Vec::new();
    history.identity_epoch = common_identity_epoch(history.identity_epoch, own, peers, now);
    for spans in peers {
        for (place, span) in spans.iter().enumerate() {
            let until = superseded_at(spans, place, now.plus(RECOMPUTED_WITHIN))
                .max(span.publication.unreported_until.unwrap_or(span.since.at));
            if until < history.cached_since(horizon.max_cache_time, now)
                || span.publication.published == PublishedRobots::Unavailable
            {
                continue;
            }
            let Some(version) = span.version() else {
                history.peers.unknown_until = history.peers.unknown_until.max(Some(until));
                continue;
            };
            if span.until.is_none() {
                in_force.push(version);
            }
            unreported.extend(
                span.publication
                    .unreported_until
                    .map(|until| (version, until)),
            );
            if Some(version) != current
                && !add_superseded(history, version, span.since.at, until, &mut parsed)
            {
                history.peers.unknown_until = history.peers.unknown_until.max(Some(until));
            }
        }
        if let (Some(last), Some(site)) = (last, spans.last().filter(|span| span.until.is_none()))
            && site.publication.site == last.publication.site
        {
            let since = on_site_since(spans).map_or(now, |change| change.at);
            history.on_site_since = history.on_site_since.min(since);
        }
    }
    history.unknown_until = history.unknown_until.max(history.peers.unknown_until);
    history
        .superseded
        .sort_by_key(|old| std::cmp::Reverse(old.superseded_at));
    let place = |version: RobotsVersionId| {
        history
            .superseded
            .iter()
            .position(|old| old.parsed.version == version)
    };
    history.peers.in_force = in_force
        .into_iter()
        .filter_map(place)
        .fold(0, |all, place| all | 1 << place);
    let unreported = unreported
        .into_iter()
        .filter(|(version, _)| Some(*version) == current || place(*version).is_some());
    history.peers.unreported = unreported
        .map(|(version, until)| (place(version), until))
        .collect();
    // Instances begin to publish the same at different moments, and may publish different files in
    // one second.
    history.has_unique_date = false;
}

/// Since when all instances tell crawlers apart as this one does now. `own_epoch` is that time for
/// this instance. An earlier epoch of a peer counts if this instance never told them apart
/// otherwise. The result is no earlier than the end of the last time that a peer did otherwise; a
/// peer that still does so counts until an hour from now.
fn common_identity_epoch(
    own_epoch: Timestamp,
    own: &[TimelineSpan<'_>],
    peers: &[Vec<TimelineSpan<'_>>],
    now: Timestamp,
) -> Timestamp {
    let Some(identities) = own.last().map(|last| last.publication.identities) else {
        return own_epoch;
    };
    let differs = |span: &&TimelineSpan<'_>| span.publication.identities != identities;
    let alike = peers
        .iter()
        .filter(|spans| {
            spans.last().is_some_and(|last| {
                last.until.is_none() && last.publication.identities == identities
            })
        })
        .map(|spans| identity_epoch(spans, now));
    let since = alike.fold(own_epoch, Timestamp::min);
    let earliest = own
        .iter()
        .find(differs)
        .map_or(Timestamp(i64::MIN), |_| own_epoch);
    let differing = peers.iter().flatten().filter(differs);
    let ended = differing.map(|span| {
        let until = span
            .until
            .map_or(now.plus(RECOMPUTED_WITHIN), |until| until.at);
        until.max(span.publication.unreported_until.unwrap_or(span.since.at))
    });
    ended.fold(since.max(earliest), Timestamp::max)
}
