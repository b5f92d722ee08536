//! [`add`] adds the publications of other instances to the history of a pattern, and [`add_unavailability`] adds the times of
//! their 503s.

use super::{Horizon, Piece, Published, at_site_since, identity_epoch, superseded_at};
use crate::policy::host_history::{HostHistory, Unavailability};
use crate::policy::{ParsedVersion, SupersededVersion, Version};
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Histories of several instances are computed at least twice in this time. What another one has in force may be superseded
/// at the end of it at the earliest, as far as this one knows.
const COMPUTED_WITHIN: Duration = Duration::from_secs(3_600);

/// A crawler that asks another instance while robots.txt answers 503 there may use its copy for longer, too.
pub fn add_unavailability(history: &mut HostHistory, others: &[Vec<Piece<'_>>], now: Timestamp) {
    let others = others.iter().flatten().filter_map(Piece::unavailability);
    let before = history.unavailable.len();
    history.unavailable.extend(others);
    if history.unavailable.len() == before {
        return;
    }
    let mut spans = std::mem::take(&mut history.unavailable);
    let end = |span: &Unavailability| span.until.unwrap_or(now);
    spans.sort_by_key(|span| (span.since, end(span)));
    for span in spans {
        match history.unavailable.last_mut().filter(|last| end(last) >= span.since) {
            Some(last) if end(last) < end(&span) || span.until.is_none() => last.until = span.until,
            Some(_) => {}
            None => history.unavailable.push(span),
        }
    }
    history.unavailable.reverse();
}

/// Adds the versions of other instances. A version counts as superseded when the last instance published another one.
pub fn add(
    history: &mut HostHistory,
    own: &[Piece<'_>],
    others: &[Vec<Piece<'_>>],
    horizon: Horizon,
    mut parsed: impl FnMut(Version) -> Option<Arc<ParsedVersion>>,
) {
    let now = horizon.now;
    let last = own.last().filter(|last| last.until.is_none());
    let current = last.and_then(Piece::version);
    let (mut in_force, mut unreported) = (Vec::new(), Vec::new());
    history.identity_epoch = epoch(history.identity_epoch, own, others, now);
    for pieces in others {
        for (place, piece) in pieces.iter().enumerate() {
            let until = superseded_at(pieces, place, now.plus(COMPUTED_WITHIN))
                .max(piece.publication.unreported_until.unwrap_or(piece.since.at));
            if until < history.cached_since(horizon.longest, now)
                || piece.publication.published == Published::Unavailable
            {
                continue;
            }
            let Some(version) = piece.version() else {
                history.elsewhere.unknown_until = history.elsewhere.unknown_until.max(Some(until));
                continue;
            };
            if piece.until.is_none() {
                in_force.push(version);
            }
            unreported.extend(piece.publication.unreported_until.map(|until| (version, until)));
            if Some(version) != current && !supersede(history, version, (piece.since.at, until), &mut parsed) {
                history.elsewhere.unknown_until = history.elsewhere.unknown_until.max(Some(until));
            }
        }
        if let (Some(last), Some(site)) = (last, pieces.last().filter(|piece| piece.until.is_none()))
            && site.publication.site == last.publication.site
        {
            let since = at_site_since(pieces).map_or(now, |change| change.at);
            history.at_site_since = history.at_site_since.min(since);
        }
    }
    history.unknown_until = history.unknown_until.max(history.elsewhere.unknown_until);
    history.superseded.sort_by_key(|held| std::cmp::Reverse(held.superseded_at));
    let place = |version: Version| history.superseded.iter().position(|held| held.parsed.version == version);
    history.elsewhere.in_force = in_force.into_iter().filter_map(place).fold(0, |all, place| all | 1 << place);
    let unreported =
        unreported.into_iter().filter(|(version, _)| Some(*version) == current || place(*version).is_some());
    history.elsewhere.unreported = unreported.map(|(version, until)| (place(version), until)).collect();
    // Instances begin to publish the same at different moments, and may publish different files in one second.
    history.is_told_by_its_date = false;
}

/// Since when all instances tell crawlers apart as this one does now. One that has just begun goes by the others.
fn epoch(of_own: Timestamp, own: &[Piece<'_>], others: &[Vec<Piece<'_>>], now: Timestamp) -> Timestamp {
    let Some(identities) = own.last().map(|last| last.publication.identities) else { return of_own };
    let is_other = |piece: &&Piece<'_>| piece.publication.identities != identities;
    let is_alike = |pieces: &&Vec<Piece<'_>>| {
        pieces.last().is_some_and(|last| last.until.is_none() && last.publication.identities == identities)
    };
    let alike = others.iter().filter(is_alike).map(|pieces| identity_epoch(pieces, now));
    let since = alike.fold(of_own, Timestamp::min);
    let floor = own.iter().find(is_other).map_or(Timestamp(i64::MIN), |_| of_own);
    let differing = others.iter().flatten().filter(is_other);
    let ended = differing.map(|piece| {
        let until = piece.until.map_or(now.plus(COMPUTED_WITHIN), |until| until.at);
        until.max(piece.publication.unreported_until.unwrap_or(piece.since.at))
    });
    ended.fold(since.max(floor), Timestamp::max)
}

/// Notes that a version was in force elsewhere; says whether its rules are known.
fn supersede(
    history: &mut HostHistory,
    version: Version,
    (since, superseded_at): (Timestamp, Timestamp),
    parsed: &mut impl FnMut(Version) -> Option<Arc<ParsedVersion>>,
) -> bool {
    if let Some(known) = history.superseded.iter_mut().find(|held| held.parsed.version == version) {
        known.superseded_at = known.superseded_at.max(superseded_at);
        known.since = known.since.min(since);
        return true;
    }
    let has_room = history.superseded.len() < HostHistory::MAX_SUPERSEDED;
    let Some(parsed) = parsed(version).filter(|_| has_room) else { return false };
    history.superseded.push(SupersededVersion { parsed, since, superseded_at });
    true
}
