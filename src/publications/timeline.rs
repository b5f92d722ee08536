//! [`PublicationLog::histories_beside`] computes from the log what each host published. At each
//! moment the site of the closest matching pattern counts for a host, and no other. All hosts with
//! the same closest pattern have the same past, so there is one history for each pattern. Patterns
//! that always belonged to the same sites share one.

use super::log::{Change, Publication, PublicationLog, Published, Tenure};
use super::versions::VersionStore;
use crate::crawlers::Registry;
use crate::policy::host_history::{HostHistory, Unavailability};
use crate::policy::model::HostPattern;
use crate::policy::{ParsedVersion, SupersededVersion, Version};
use crate::time::Timestamp;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Histories of several instances are computed at least twice in this time. What another one has in
/// force may be superseded at the end of it at the earliest, as far as this one knows.
const COMPUTED_WITHIN: Duration = Duration::from_secs(3_600);

/// A pattern, and the history of its hosts.
pub type OfHosts = (Option<HostPattern>, Arc<HostHistory>);

/// How far back histories go.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// The longest time for which any crawler may use a copy.
    pub longest: Duration,
    /// The moment for which histories are computed.
    pub now: Timestamp,
}

impl PublicationLog {
    /// The history of each pattern, where the instances of these other logs publish on the same
    /// hosts: a version counts as superseded when the last of all instances published another one.
    /// `None` stands for every other host. Versions whose bytes are not known count as unknown.
    /// Patterns with the same past share a history.
    pub fn histories_beside(
        &self,
        others: &[PublicationLog],
        versions: &mut VersionStore,
        registry: &Registry,
        horizon: Horizon,
    ) -> Vec<OfHosts> {
        let lookups: Vec<Lookup<'_>> = [self].into_iter().chain(others).map(Lookup::new).collect();
        let mut interned: HashMap<Vec<Vec<ChainLink<'_>>>, Arc<HostHistory>> = HashMap::new();
        let mut known = Vec::new();
        for pattern in patterns(&lookups) {
            let chains: Vec<Chain<'_>> = lookups
                .iter()
                .map(|lookup| lookup.chain(pattern.as_ref()))
                .collect();
            let keys = lookups
                .iter()
                .zip(&chains)
                .map(|(lookup, chain)| lookup.key(chain))
                .collect();
            let history = interned.entry(keys).or_insert_with(|| {
                let mut pieces = lookups
                    .iter()
                    .zip(&chains)
                    .map(|(lookup, chain)| lookup.pieces(chain));
                let own = pieces.next().unwrap_or_default();
                let others: Vec<Vec<Piece<'_>>> = pieces.collect();
                let mut parsed = |version| versions.parsed(version, registry);
                let mut history = self.history(&own, &others, horizon, &mut parsed);
                if !others.is_empty() {
                    add_elsewhere(&mut history, &own, &others, horizon, parsed);
                }
                Arc::new(history)
            });
            known.push((pattern, history.clone()));
        }
        known
    }

    /// The history, at `horizon.now`, of hosts of which `pieces` are what this instance published.
    /// Of the other instances (`others`) only the times of 503 are taken. Superseded versions that
    /// no crawler can have cached any more (`horizon.longest`) are left out; one without bytes or
    /// rules (`parsed` gives the rules of a version), or beyond the limit of 64, counts as unknown.
    /// The version that the operator declares for the time before crawlgate is among them.
    fn history(
        &self,
        pieces: &[Piece<'_>],
        others: &[Vec<Piece<'_>>],
        horizon: Horizon,
        mut parsed: impl FnMut(Version) -> Option<Arc<ParsedVersion>>,
    ) -> HostHistory {
        let now = horizon.now;
        let mut history = HostHistory {
            moved_at: self.gaps.lost_at,
            unknown_until: self.gaps.cut_at,
            ..HostHistory::new(now)
        };
        history.moved_at = history.moved_at.max(self.moved_at(pieces));
        history.jumps.clone_from(&self.jumps);
        history.unavailable = pieces
            .iter()
            .rev()
            .filter_map(Piece::unavailability)
            .collect();
        add_unavailability(&mut history, others, now);
        let current = pieces
            .last()
            .and_then(|last| last.version().filter(|_| last.until.is_none()));
        history.since = since(pieces, current, now);
        history.identity_epoch = identity_epoch(pieces, now);
        history.at_site_since = at_site_since(pieces).map_or(now, |change| change.at);
        history.is_told_by_its_date = is_told_by_its_date(pieces, current, history.since);
        let cached_since = history.cached_since(horizon.longest, now);
        let mut seen: HashSet<Version> = current.into_iter().collect();
        for (place, piece) in pieces.iter().enumerate().rev() {
            let superseded_at = superseded_at(pieces, place, now);
            if superseded_at < cached_since || piece.publication.published == Published::Unavailable
            {
                continue;
            }
            let is_known = match piece.version() {
                Some(version) if !seen.insert(version) => continue,
                Some(version) => {
                    let since = since(&pieces[..=place], Some(version), now);
                    supersede(&mut history, version, since, superseded_at, &mut parsed)
                }
                None => false,
            };
            if !is_known {
                history.unknown_until = history.unknown_until.max(Some(superseded_at));
            }
        }
        if let Some((version, until)) = self.declared_before(pieces) {
            history.is_declared = true;
            if until >= cached_since
                && seen.insert(version)
                && !supersede(&mut history, version, until, until, &mut parsed)
            {
                history.unknown_until = history.unknown_until.max(Some(until));
            }
        }
        history
    }

    /// The version that a host served before crawlgate did, by the word of the operator, and until
    /// when: the beginning of the first piece. `None` where the operator declares none, or the host
    /// has not been at one site without a gap ever since.
    fn declared_before(&self, pieces: &[Piece<'_>]) -> Option<(Version, Timestamp)> {
        let last = pieces.last().filter(|last| last.until.is_none())?;
        let first = pieces.first()?.since;
        let moved = at_site_since(pieces)?;
        let is_unbroken = self.gaps.lost_at.is_none()
            && self.gaps.broken_at.is_none_or(|broken| first.at >= broken);
        let version = self
            .declared
            .get(&last.publication.site)
            .filter(|_| is_unbroken && moved == first);
        version.map(|version| (*version, first.at))
    }

    /// Whether the site of a piece had something to tell about pages before it had this host.
    fn told_before(&self, piece: &Piece<'_>) -> bool {
        self.publications.iter().any(|known| {
            known.tells
                && known.site == piece.publication.site
                && known.span.since.number < piece.since.number
        })
    }

    /// The last moment at which the host left a site that had something to tell about pages, or
    /// came to a site that had told something before. `None` where that never happened.
    fn moved_at(&self, pieces: &[Piece<'_>]) -> Option<Timestamp> {
        let mut moved_at = None;
        let mut before: Option<&Piece<'_>> = None;
        for piece in pieces {
            // After a gap: it left the site of the piece before where that piece ended.
            let left = before.filter(|before| before.end() != piece.since.number);
            if let Some(until) = left
                .filter(|left| left.publication.tells)
                .and_then(|left| left.until)
            {
                moved_at = moved_at.max(Some(until.at));
            }
            // Without a gap: it moved if the sites differ. It came back if the site told something
            // earlier.
            let stayed = before.filter(|before| before.end() == piece.since.number);
            let is_same =
                stayed.is_some_and(|before| before.publication.site == piece.publication.site);
            if !is_same
                && (stayed.is_some_and(|before| before.publication.tells)
                    || self.told_before(piece))
            {
                moved_at = moved_at.max(Some(piece.since.at));
            }
            before = Some(piece);
        }
        let left = before
            .filter(|last| last.publication.tells)
            .and_then(|last| last.until);
        moved_at.max(left.map(|until| until.at))
    }
}

/// When another version took the place of the piece at `place`; `now` if none did. A span of the
/// same site in which robots.txt answered 503 supersedes nothing: a crawler may use its copy
/// through it (RFC 9309 section 2.3.1.4).
fn superseded_at(pieces: &[Piece<'_>], place: usize, now: Timestamp) -> Timestamp {
    let mut last = &pieces[place];
    for piece in &pieces[place + 1..] {
        let goes_on =
            piece.since.number == last.end() && piece.publication.site == last.publication.site;
        if !goes_on || piece.publication.published != Published::Unavailable {
            break;
        }
        last = piece;
    }
    last.until.map_or(now, |until| until.at)
}

/// Since when the site of the last piece publishes `current`; times of 503 in between do not count.
/// Where it publishes something else, the beginning of the last piece; without pieces `now`.
fn since(pieces: &[Piece<'_>], current: Option<Version>, now: Timestamp) -> Timestamp {
    let Some(last) = pieces.last() else {
        return now;
    };
    let mut since = last.since.at;
    for piece in pieces
        .iter()
        .rev()
        .take_while(|piece| piece.publication.site == last.publication.site)
    {
        match piece.version() {
            None if piece.publication.published == Published::Unavailable => {}
            version if version.is_some() && version == current => since = piece.since.at,
            _ => break,
        }
    }
    since
}

/// Since when the host is without a break at the site that has it at the end.
fn at_site_since(pieces: &[Piece<'_>]) -> Option<Change> {
    unbroken_since(pieces, |piece, last| piece.site == last.site)
}

/// Since when, without a break, crawlers are told apart as they are at the end; `now` without
/// pieces.
fn identity_epoch(pieces: &[Piece<'_>], now: Timestamp) -> Timestamp {
    unbroken_since(pieces, |piece, last| piece.identities == last.identities)
        .map_or(now, |change| change.at)
}

/// Since when publications that are like the last one follow each other without a break.
fn unbroken_since(
    pieces: &[Piece<'_>],
    is_alike: impl Fn(&Publication, &Publication) -> bool,
) -> Option<Change> {
    let last = pieces.last()?;
    let mut first = last;
    for piece in pieces.iter().rev().skip(1) {
        if !is_alike(piece.publication, last.publication) || piece.end() != first.since.number {
            break;
        }
        first = piece;
    }
    Some(first.since)
}

/// A stretch of time in which one publication counted for a host.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    publication: &'a Publication,
    since: Change,
    until: Option<Change>,
}

impl Piece<'_> {
    /// The number of the change that ended it; the largest number while it lasts.
    fn end(&self) -> u64 {
        self.until.map_or(u64::MAX, |until| until.number)
    }

    fn version(&self) -> Option<Version> {
        self.publication.published.version()
    }

    /// The piece as a time of 503; `None` if it was none, not even for a part of the time.
    fn unavailability(&self) -> Option<Unavailability> {
        let span = Unavailability {
            since: self.since.at,
            until: self.until.map(|until| until.at),
        };
        self.publication.published.was_unavailable().then_some(span)
    }
}

/// The tenures that may count for a host, the closest patterns first: those of one level are never
/// at the same time.
type Chain<'a> = Vec<&'a [&'a Tenure]>;

/// What a chain is compared by: level, site, first and last change.
type ChainLink<'a> = (usize, &'a str, u64, u64);

/// The tenures of one pattern; `None` stands for every other host.
type OfPattern<'a> = (Option<&'a HostPattern>, Vec<&'a Tenure>);

/// The log by name of the pattern, which is empty for every other host, and by site.
#[derive(Default)]
struct Lookup<'a> {
    tenures: HashMap<&'a str, Vec<OfPattern<'a>>>,
    publications: HashMap<&'a str, Vec<&'a Publication>>,
}

impl<'a> Lookup<'a> {
    fn new(log: &'a PublicationLog) -> Lookup<'a> {
        let mut lookup = Lookup::default();
        for tenure in &log.tenures {
            let pattern = tenure.pattern.as_ref();
            let named = lookup
                .tenures
                .entry(pattern.map_or("", |pattern| &pattern.name))
                .or_default();
            match named.iter_mut().find(|(known, _)| *known == pattern) {
                Some((_, tenures)) => tenures.push(tenure),
                None => named.push((pattern, vec![tenure])),
            }
        }
        for publication in &log.publications {
            lookup
                .publications
                .entry(&publication.site)
                .or_default()
                .push(publication);
        }
        lookup
    }

    /// The tenures of all patterns that may have the hosts of `pattern`, the closest pattern first:
    /// the name itself, wildcards above it from the longest to the shortest, and every other host.
    /// For each name the pattern with the port comes before the one for any port.
    fn chain(&self, pattern: Option<&HostPattern>) -> Chain<'_> {
        let mut chain = Chain::new();
        if let Some(pattern) = pattern {
            let mut name = pattern.name.as_str();
            self.add_named(&mut chain, name, pattern.wildcard, pattern.port);
            while let Some((_, parent)) = name.split_once('.') {
                self.add_named(&mut chain, parent, true, pattern.port);
                name = parent;
            }
        }
        let others = self.tenures.get("").and_then(|named| named.first());
        chain.extend(others.map(|(_, tenures)| tenures.as_slice()));
        chain
    }

    /// Adds the tenures of the pattern with this name: those with the port go before those for any
    /// port.
    fn add_named<'s>(
        &'s self,
        chain: &mut Chain<'s>,
        name: &str,
        wildcard: bool,
        port: Option<u16>,
    ) {
        let named = self.tenures.get(name).map_or(&[][..], Vec::as_slice);
        for wanted in port.map(Some).into_iter().chain([None]) {
            let found = named.iter().find(|(known, _)| {
                known.is_some_and(|known| known.wildcard == wildcard && known.port == wanted)
            });
            chain.extend(found.map(|(_, tenures)| tenures.as_slice()));
        }
    }

    /// What chains are compared by. Two chains with the same key have the same pieces, so that
    /// their patterns can share a history.
    fn key(&self, chain: &Chain<'a>) -> Vec<ChainLink<'a>> {
        let mut links = Vec::new();
        for (level, tenures) in chain.iter().enumerate() {
            for tenure in *tenures {
                let site = tenure.site.as_str();
                // What came before the first publication that is remembered makes no difference.
                let first = self.publications.get(site).and_then(|known| known.first());
                let first = first.map_or(0, |first| first.span.since.number);
                let since = tenure.span.since.number.max(first);
                links.push((level, site, since, tenure.span.end()));
            }
        }
        links
    }

    /// What counted for the hosts of a chain, the oldest first, without overlaps. A tenure of a
    /// wider pattern counts only where none of a closer one does.
    fn pieces(&self, chain: &Chain<'a>) -> Vec<Piece<'a>> {
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        for tenures in chain {
            let level = tenures.iter().flat_map(|tenure| {
                let known = self
                    .publications
                    .get(tenure.site.as_str())
                    .map_or(&[][..], Vec::as_slice);
                known
                    .iter()
                    .filter_map(|publication| overlap(tenure, publication))
            });
            let mut gaps: Vec<Piece<'a>> =
                level.flat_map(|piece| uncovered(piece, &pieces)).collect();
            pieces.append(&mut gaps);
            pieces.sort_by_key(|piece| piece.since.number);
        }
        pieces
    }
}

/// The patterns that are told apart. Where a policy names a port, a wider pattern may name another
/// one: then each name is looked up with each of the ports.
fn patterns(lookups: &[Lookup<'_>]) -> Vec<Option<HostPattern>> {
    let mut ports: BTreeSet<Option<u16>> = BTreeSet::from([None]);
    let mut names: BTreeSet<(bool, &str)> = BTreeSet::new();
    for lookup in lookups {
        let named = lookup.tenures.values().flatten();
        for pattern in named.filter_map(|(pattern, _)| *pattern) {
            ports.insert(pattern.port);
            names.insert((pattern.wildcard, &pattern.name));
        }
    }
    let mut patterns = Vec::new();
    for (wildcard, name) in names {
        for port in &ports {
            patterns.push(Some(HostPattern {
                wildcard,
                name: name.to_owned(),
                port: *port,
            }));
        }
    }
    patterns.push(None);
    patterns
}

/// The time in which a publication counted for the hosts of a tenure; `None` if there was none.
fn overlap<'a>(tenure: &Tenure, publication: &'a Publication) -> Option<Piece<'a>> {
    let since = [tenure.span.since, publication.span.since]
        .into_iter()
        .max_by_key(|change| change.number)?;
    let until = tenure
        .span
        .until
        .into_iter()
        .chain(publication.span.until)
        .min_by_key(|change| change.number);
    let piece = Piece {
        publication,
        since,
        until,
    };
    (since.number < piece.end()).then_some(piece)
}

/// The parts of a piece in which none of the others, which are sorted and do not overlap, counted.
fn uncovered<'a>(piece: Piece<'a>, covered: &[Piece<'a>]) -> Vec<Piece<'a>> {
    let mut parts = Vec::new();
    let mut since = Some(piece.since);
    let first = covered.partition_point(|other| other.end() <= piece.since.number);
    for other in &covered[first..] {
        let Some(begin) = since.filter(|_| other.since.number < piece.end()) else {
            break;
        };
        if begin.number < other.since.number {
            parts.push(Piece {
                since: begin,
                until: Some(other.since),
                ..piece
            });
        }
        since = other.until;
    }
    if let Some(begin) = since.filter(|begin| begin.number < piece.end()) {
        parts.push(Piece {
            since: begin,
            ..piece
        });
    }
    parts
}

/// Adds the times of 503 of other instances, and joins spans that overlap or touch. A crawler that
/// asks another instance while robots.txt answers 503 there may use its copy for longer, too.
fn add_unavailability(history: &mut HostHistory, others: &[Vec<Piece<'_>>], now: Timestamp) {
    let others = others.iter().flatten().filter_map(Piece::unavailability);
    let before = history.unavailable.len();
    history.unavailable.extend(others);
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

/// Whether the date of a copy tells whether it is the version in force since `since`: no other
/// version began in the same second, and none is unknown.
fn is_told_by_its_date(pieces: &[Piece<'_>], current: Option<Version>, since: Timestamp) -> bool {
    pieces
        .iter()
        .all(|piece| match piece.publication.published {
            Published::Version(version) => Some(version) == current || piece.since.at != since,
            Published::Unknown | Published::UnknownOrUnavailable => false,
            Published::Unavailable => true,
        })
}

/// Adds what other instances published on the hosts of a pattern to what this one did (`own`), and
/// fills `elsewhere`. A version counts as superseded when the last instance published another one;
/// one that is in force elsewhere, an hour from now. The identity epoch becomes that of all
/// instances, and the time at the site begins when the first instance had it.
fn add_elsewhere(
    history: &mut HostHistory,
    own: &[Piece<'_>],
    others: &[Vec<Piece<'_>>],
    horizon: Horizon,
    mut parsed: impl FnMut(Version) -> Option<Arc<ParsedVersion>>,
) {
    let now = horizon.now;
    let last = own.last().filter(|last| last.until.is_none());
    let current = last.and_then(Piece::version);
    let mut in_force = Vec::new();
    let mut unreported = Vec::new();
    history.identity_epoch = epoch_of_all(history.identity_epoch, own, others, now);
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
            unreported.extend(
                piece
                    .publication
                    .unreported_until
                    .map(|until| (version, until)),
            );
            if Some(version) != current
                && !supersede(history, version, piece.since.at, until, &mut parsed)
            {
                history.elsewhere.unknown_until = history.elsewhere.unknown_until.max(Some(until));
            }
        }
        if let (Some(last), Some(site)) =
            (last, pieces.last().filter(|piece| piece.until.is_none()))
            && site.publication.site == last.publication.site
        {
            let since = at_site_since(pieces).map_or(now, |change| change.at);
            history.at_site_since = history.at_site_since.min(since);
        }
    }
    history.unknown_until = history.unknown_until.max(history.elsewhere.unknown_until);
    history
        .superseded
        .sort_by_key(|held| std::cmp::Reverse(held.superseded_at));
    let place = |version: Version| {
        history
            .superseded
            .iter()
            .position(|held| held.parsed.version == version)
    };
    history.elsewhere.in_force = in_force
        .into_iter()
        .filter_map(place)
        .fold(0, |all, place| all | 1 << place);
    let unreported = unreported
        .into_iter()
        .filter(|(version, _)| Some(*version) == current || place(*version).is_some());
    history.elsewhere.unreported = unreported
        .map(|(version, until)| (place(version), until))
        .collect();
    // Instances begin to publish the same at different moments, and may publish different files in
    // one second.
    history.is_told_by_its_date = false;
}

/// Since when all instances tell crawlers apart as this one does now. `of_own` is that moment for
/// this instance. If others have done so for longer, and this one never did otherwise, theirs
/// counts. No earlier than the end of the last time that another did otherwise; one that still does
/// counts until an hour from now.
fn epoch_of_all(
    of_own: Timestamp,
    own: &[Piece<'_>],
    others: &[Vec<Piece<'_>>],
    now: Timestamp,
) -> Timestamp {
    let Some(identities) = own.last().map(|last| last.publication.identities) else {
        return of_own;
    };
    let is_other = |piece: &&Piece<'_>| piece.publication.identities != identities;
    let alike = others
        .iter()
        .filter(|pieces| {
            pieces.last().is_some_and(|last| {
                last.until.is_none() && last.publication.identities == identities
            })
        })
        .map(|pieces| identity_epoch(pieces, now));
    let since = alike.fold(of_own, Timestamp::min);
    let floor = own
        .iter()
        .find(is_other)
        .map_or(Timestamp(i64::MIN), |_| of_own);
    let differing = others.iter().flatten().filter(is_other);
    let ended = differing.map(|piece| {
        let until = piece
            .until
            .map_or(now.plus(COMPUTED_WITHIN), |until| until.at);
        until.max(piece.publication.unreported_until.unwrap_or(piece.since.at))
    });
    ended.fold(since.max(floor), Timestamp::max)
}

/// Adds a version that was in force before, or at another instance, from `since` to `superseded_at`
/// to the superseded ones; one that is there already only gets its time widened. `parsed` gives the
/// rules of a version. Returns false, and adds nothing, if it gives none or there are 64 already.
fn supersede(
    history: &mut HostHistory,
    version: Version,
    since: Timestamp,
    superseded_at: Timestamp,
    parsed: &mut impl FnMut(Version) -> Option<Arc<ParsedVersion>>,
) -> bool {
    if let Some(known) = history
        .superseded
        .iter_mut()
        .find(|held| held.parsed.version == version)
    {
        known.superseded_at = known.superseded_at.max(superseded_at);
        known.since = known.since.min(since);
        return true;
    }
    let has_room = history.superseded.len() < HostHistory::MAX_SUPERSEDED;
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
