//! [`PublicationLog`]: which site had which hosts, and what each site published. These are two
//! lists, because a site may have thousands of hosts and publish many versions. A [`Tenure`] is the
//! time for which a host pattern belonged to a site. A [`Publication`] is the time for which a site
//! published the same robots.txt. `timeline` computes from both what a host published.
//!
//! A site publishes nothing, a version, or 503. [`PublicationLog::record`] alone moves it between
//! these states.

use crate::policy::Version;
use crate::policy::host_history::{ClockJump, HostHistory, Unavailability};
use crate::policy::model::HostPattern;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// Publications of one site that are told apart; the older ones become one whose version is
/// unknown.
const MAX_PUBLICATIONS: usize = 256;
/// Tenures that have ended and are remembered.
const MAX_TENURES: usize = 65_536;
/// Times that the clock was set forward which are told apart; the older ones count as one.
const MAX_JUMPS: usize = 64;
/// For how long the log remembers: crawlers are sent whole pages for 30 days where a host changed
/// its site, and no robots.txt is cached for longer.
const REMEMBERED: Duration = Duration::from_secs(31 * 86_400);

/// A change of what is published. Changes are ordered by their number: two of them may happen
/// within a second, and the clock may be set back between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place among all changes.
    pub number: u64,
    /// When it was made.
    pub at: Timestamp,
}

/// From one change until another; without an end it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The change that began it.
    pub since: Change,
    /// The change that ended it.
    pub until: Option<Change>,
}

impl Span {
    /// The number of the change that ended it; a span that lasts ends after all changes.
    pub fn end(&self) -> u64 {
        self.until.map_or(u64::MAX, |until| until.number)
    }

    /// Whether it ended by the change that began it: it counted for no moment.
    pub fn is_empty(&self) -> bool {
        self.end() <= self.since.number
    }

    /// The moments of the beginning and, if there is one, of the end, to be changed.
    fn moments(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        std::iter::once(&mut self.since.at).chain(self.until.iter_mut().map(|until| &mut until.at))
    }

    /// Whether it ended more than 31 days before `now`. One that lasts is not over.
    fn is_over(&self, now: Timestamp) -> bool {
        self.until
            .is_some_and(|until| now.since(until.at) > REMEMBERED)
    }
}

/// What a site publishes as robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// These bytes.
    Version(Version),
    /// Nothing: it answers 503.
    Unavailable,
    /// Something that is not remembered. It may have allowed anything.
    Unknown,
    /// Something that is not remembered, and for a part of the time 503.
    UnknownOrUnavailable,
}

impl Published {
    /// The version, if it is known.
    pub fn version(self) -> Option<Version> {
        if let Published::Version(version) = self {
            Some(version)
        } else {
            None
        }
    }

    /// Whether it was 503, for a part of the time at least.
    pub fn was_unavailable(self) -> bool {
        matches!(
            self,
            Published::Unavailable | Published::UnknownOrUnavailable
        )
    }
}

/// The time for which hosts of a pattern were a site's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The pattern; `None` stands for every other host.
    pub pattern: Option<HostPattern>,
    /// The site's name.
    pub site: String,
    /// The time.
    pub span: Span,
}

/// The time for which a site published the same and told crawlers apart in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The site's name.
    pub site: String,
    /// What it published.
    pub published: Published,
    /// How crawlers were told apart: a digest of the names that the registry and the policy know.
    pub identities: u64,
    /// Whether the site says something about pages in tags or metas.
    pub tells: bool,
    /// The time.
    pub span: Span,
    /// Until then it may have been served to any crawler without a record of it: by an instance
    /// that ended before it had told the others what it served.
    pub unreported_until: Option<Timestamp>,
}

/// A site as it is to be in force, for [`PublicationLog::record`].
#[derive(Debug)]
pub struct Current<'a> {
    /// Its name.
    pub site: &'a str,
    /// Its hosts; none for every other host.
    pub hosts: Vec<&'a HostPattern>,
    /// See [`Publication::published`].
    pub published: Published,
    /// See [`Publication::identities`].
    pub identities: u64,
    /// See [`Publication::tells`].
    pub tells: bool,
    /// What its hosts served before crawlgate, by the word of the operator.
    pub declared: Option<Declared>,
}

/// What hosts served before crawlgate, by the word of the operator.
#[derive(Clone, Copy, Debug)]
pub enum Declared {
    /// This version.
    Version(Version),
    /// The first version of the origin's own file that is known; `None` until there is one.
    Origin(Option<Version>),
}

/// Times of which a log does not know everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// When the last tenure ended that was forgotten for want of room: what its hosts published is
    /// unknown.
    pub cut_at: Option<Timestamp>,
    /// When the log was lost: what was told about pages before is unknown.
    pub lost_at: Option<Timestamp>,
    /// When a gap ended in which other servers may have answered for the hosts, or when the clock
    /// was set.
    pub broken_at: Option<Timestamp>,
}

impl Gaps {
    fn each(&mut self) -> [&mut Option<Timestamp>; 3] {
        [&mut self.cut_at, &mut self.lost_at, &mut self.broken_at]
    }
}

/// Everything that was published within the last month.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublicationLog {
    /// The number of the next change.
    next: u64,
    /// Which site had which hosts, the earliest first.
    pub tenures: Vec<Tenure>,
    /// What each site published, the earliest first.
    pub publications: Vec<Publication>,
    /// What the hosts of a site served before crawlgate, by the word of the operator.
    pub declared: BTreeMap<String, Version>,
    /// The times of which not everything is known.
    pub gaps: Gaps,
    /// When the clock was set forward, the latest first.
    pub jumps: Vec<ClockJump>,
}

impl PublicationLog {
    /// Records what is published from `now` on, in place of what was before; returns whether that
    /// is a change. Also sets moments later than `now` to `now`, and forgets what is too old or too
    /// much.
    pub fn record(&mut self, current: &[Current<'_>], now: Timestamp) -> bool {
        self.take_no_moment_to_come(now);
        let change = Change {
            number: self.next,
            at: now,
        };
        let changed = self.record_publications(current, change)
            | self.record_tenures(current, change)
            | self.record_declared(current);
        if changed {
            self.next += 1;
        }
        self.forget(now);
        changed
    }

    /// Whether nothing was ever recorded.
    pub fn is_empty(&self) -> bool {
        self.tenures.is_empty()
    }

    /// The log that an earlier process kept, sorted by its changes; the next change gets a number
    /// above all of theirs.
    pub fn remembered(
        mut tenures: Vec<Tenure>,
        mut publications: Vec<Publication>,
        declared: BTreeMap<String, Version>,
        gaps: Gaps,
        mut jumps: Vec<ClockJump>,
    ) -> PublicationLog {
        jumps.sort_by_key(|jump| std::cmp::Reverse(jump.at));
        tenures.sort_by_key(|tenure| tenure.span.since.number);
        publications.sort_by_key(|publication| publication.span.since.number);
        PublicationLog {
            next: next_number(&tenures, &publications),
            tenures,
            publications,
            declared,
            gaps,
            jumps,
        }
    }

    /// Records that other servers may have answered for the hosts until now, or that the clock was
    /// set. An earlier such moment is replaced.
    pub fn set_broken(&mut self, now: Timestamp) {
        self.gaps.broken_at = Some(now);
    }

    /// Records that the clock was set by so many seconds: forward, which adds a jump, or back
    /// (negative), which shortens jumps, the latest first, and removes those that become zero. Of
    /// more than 64 jumps the two oldest become one.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        let mut back = Duration::from_secs(by.min(0).unsigned_abs());
        for jump in &mut self.jumps {
            let undone = back.min(jump.by);
            jump.by -= undone;
            back -= undone;
        }
        self.jumps.retain(|jump| !jump.by.is_zero());
        if let Ok(by) = u64::try_from(by)
            && by > 0
        {
            self.jumps.insert(
                0,
                ClockJump {
                    at: now,
                    by: Duration::from_secs(by),
                },
            );
        }
        if self.jumps.len() > MAX_JUMPS
            && let Some(oldest) = self.jumps.pop()
            && let Some(jump) = self.jumps.last_mut()
        {
            jump.by = jump.by.saturating_add(oldest.by);
        }
    }

    /// How far the clock was set forward in all, as far as that is remembered.
    pub fn jumped(&self) -> Duration {
        self.jumps
            .iter()
            .fold(Duration::ZERO, |all, jump| all.saturating_add(jump.by))
    }

    /// Notes that an earlier log was lost.
    pub fn set_lost(&mut self, now: Timestamp) {
        self.gaps.lost_at = Some(now);
    }

    /// When what a site published last came into force there; times of 503 in between do not count.
    /// `None` where nothing but 503 is remembered of it.
    pub fn in_force_since(&self, site: &str) -> Option<Timestamp> {
        let mut since = None;
        let mut version = None;
        for publication in self
            .publications
            .iter()
            .rev()
            .filter(|publication| publication.site == site)
        {
            match publication.published {
                Published::Unavailable => continue,
                known if *version.get_or_insert(known) == known => {
                    since = Some(publication.span.since.at)
                }
                _ => break,
            }
        }
        since
    }

    /// The site that had a host last (`None`: every other host). Of the tenures whose pattern
    /// covers the host it is the one that lasts or ended last, then the one with the closest
    /// pattern, then the one that began last.
    pub fn last_site(&self, host: Option<&HostPattern>) -> Option<&str> {
        let candidates = self.tenures.iter().filter_map(|tenure| {
            let closeness = match (&tenure.pattern, host) {
                (None, _) => 0,
                (Some(wide), Some(host)) if covers(wide, host) => {
                    1 + 2 * wide.name.len() + usize::from(!wide.wildcard)
                }
                (Some(_), _) => return None,
            };
            Some((tenure, closeness))
        });
        // A site that has the host now goes before one that had it, however close its pattern was.
        let (last, _) = candidates.max_by_key(|(tenure, closeness)| {
            (tenure.span.end(), *closeness, tenure.span.since.number)
        })?;
        Some(&last.site)
    }

    /// Whether a site had a host (`None`: every other host) at any time that is remembered. A
    /// pattern for every other host does not count for a host that is named.
    pub fn had(&self, site: &str, host: Option<&HostPattern>) -> bool {
        let mut tenures = self.tenures.iter().filter(|tenure| tenure.site == site);
        tenures.any(|tenure| match (&tenure.pattern, host) {
            (Some(wide), Some(host)) => covers(wide, host),
            (wide, host) => wide.is_none() && host.is_none(),
        })
    }

    /// The sites that are remembered.
    pub fn sites(&self) -> BTreeSet<&str> {
        self.tenures
            .iter()
            .map(|tenure| tenure.site.as_str())
            .collect()
    }

    /// The versions that were published until this moment or later, or are now, and all that
    /// operators declare.
    pub fn versions_since(&self, moment: Timestamp) -> BTreeSet<Version> {
        let published = self
            .publications
            .iter()
            .filter(|publication| {
                publication
                    .span
                    .until
                    .is_none_or(|until| until.at >= moment)
            })
            .filter_map(|known| known.published.version());
        published.chain(self.declared.values().copied()).collect()
    }

    /// The earliest moment at which a crawler can have been served a copy that may still be used:
    /// see [`HostHistory::cached_since`], as if every 503 had been everywhere.
    pub fn cached_since(&self, longest: Duration, now: Timestamp) -> Timestamp {
        let unavailable = self
            .publications
            .iter()
            .rev()
            .filter(|known| known.published.was_unavailable());
        let unavailable = unavailable.map(
            |Publication {
                 span: Span { since, until },
                 ..
             }| Unavailability {
                since: since.at,
                until: until.map(|until| until.at),
            },
        );
        let jumps = self.jumps.clone();
        let mut history = HostHistory {
            unavailable: unavailable.collect(),
            jumps,
            ..HostHistory::new(now)
        };
        history
            .unavailable
            .sort_by_key(|span| std::cmp::Reverse(span.until.unwrap_or(now)));
        history.cached_since(longest, now)
    }

    /// Records that crawlers may have been told apart otherwise until now: the `identities` of all
    /// publications become 0.
    pub fn forget_identities(&mut self) {
        self.publications
            .iter_mut()
            .for_each(|publication| publication.identities = 0);
    }

    /// Ends the open publications of sites that publish something else now or are gone, and begins
    /// those that are new. Returns whether there were any.
    fn record_publications(&mut self, current: &[Current<'_>], change: Change) -> bool {
        let wanted: HashMap<&str, &Current<'_>> =
            current.iter().map(|site| (site.site, site)).collect();
        let mut going_on = HashSet::new();
        let mut changed = false;
        for open in self
            .publications
            .iter_mut()
            .filter(|open| open.span.until.is_none())
        {
            let same = wanted.get(open.site.as_str()).filter(|site| {
                (site.published, site.identities, site.tells)
                    == (open.published, open.identities, open.tells)
            });
            match same {
                Some(site) => drop(going_on.insert(site.site)),
                None => {
                    open.span.until = Some(change);
                    changed = true;
                }
            }
        }
        for site in current.iter().filter(|site| !going_on.contains(site.site)) {
            self.publications.push(Publication {
                site: site.site.to_owned(),
                published: site.published,
                identities: site.identities,
                tells: site.tells,
                span: Span {
                    since: change,
                    until: None,
                },
                unreported_until: None,
            });
            changed = true;
        }
        changed
    }

    /// Ends the open tenures of hosts that have another site now or none, and begins those that are
    /// new, in the order of their patterns. Returns whether there were any.
    fn record_tenures(&mut self, current: &[Current<'_>], change: Change) -> bool {
        let mut wanted: HashMap<Option<&HostPattern>, &str> = HashMap::new();
        for Current { site, hosts, .. } in current {
            // Of two sites with the same host the first has it, as requests see it.
            let others = hosts.is_empty().then_some(None);
            for host in hosts.iter().map(|host| Some(*host)).chain(others) {
                wanted.entry(host).or_insert(site);
            }
        }
        let mut changed = false;
        for open in self
            .tenures
            .iter_mut()
            .filter(|open| open.span.until.is_none())
        {
            match wanted.get(&open.pattern.as_ref()) {
                Some(site) if **site == open.site => drop(wanted.remove(&open.pattern.as_ref())),
                _ => {
                    open.span.until = Some(change);
                    changed = true;
                }
            }
        }
        let new = wanted.into_iter().map(|(pattern, site)| Tenure {
            pattern: pattern.cloned(),
            site: site.to_owned(),
            span: Span {
                since: change,
                until: None,
            },
        });
        let mut new: Vec<Tenure> = new.collect();
        new.sort_unstable_by(|one, other| one.pattern.cmp(&other.pattern));
        changed |= !new.is_empty();
        self.tenures.append(&mut new);
        changed
    }

    /// Replaces what operators declare; returns whether that is a change. The origin's file stays
    /// the one that was known first: a later one says nothing about the time before crawlgate. A
    /// site whose first version is not known yet is left out.
    fn record_declared(&mut self, current: &[Current<'_>]) -> bool {
        let declared = current.iter().filter_map(|site| {
            let version = match site.declared? {
                Declared::Version(version) => version,
                Declared::Origin(first) => self.declared.get(site.site).copied().or(first)?,
            };
            Some((site.site.to_owned(), version))
        });
        let declared = declared.collect();
        let changed = self.declared != declared;
        self.declared = declared;
        changed
    }

    /// Sets all moments later than `now` to `now`. They are of a clock that was ahead and has been
    /// set back since.
    fn take_no_moment_to_come(&mut self, now: Timestamp) {
        let tenures = self
            .tenures
            .iter_mut()
            .flat_map(|tenure| tenure.span.moments());
        let publications = self
            .publications
            .iter_mut()
            .flat_map(|publication| publication.span.moments());
        let gaps = self.gaps.each().into_iter().flatten();
        let jumps = self.jumps.iter_mut().map(|jump| &mut jump.at);
        tenures
            .chain(publications)
            .chain(gaps)
            .chain(jumps)
            .for_each(|moment| *moment = now.min(*moment));
    }

    /// Removes what ended more than 31 days ago (by time that passed, without jumps of the clock).
    /// Of more than 65,536 ended tenures the earliest go; `gaps.cut_at` then has the latest of
    /// their ends.
    fn forget(&mut self, now: Timestamp) {
        self.jumps.retain(|jump| now.since(jump.at) <= REMEMBERED);
        let now = Timestamp(now.0.saturating_sub_unsigned(self.jumped().as_secs()));
        self.publications
            .retain(|publication| !publication.span.is_over(now));
        self.tenures.retain(|tenure| !tenure.span.is_over(now));
        for gap in self.gaps.each() {
            gap.take_if(|at| now.since(*at) > REMEMBERED);
        }
        let ended = self
            .tenures
            .iter()
            .filter(|tenure| tenure.span.until.is_some())
            .count();
        let mut surplus = ended.saturating_sub(MAX_TENURES);
        let cut_at = &mut self.gaps.cut_at;
        self.tenures
            .retain(|tenure| match tenure.span.until.filter(|_| surplus > 0) {
                Some(until) => {
                    surplus -= 1;
                    *cut_at = (*cut_at).max(Some(until.at));
                    false
                }
                None => true,
            });
        self.merge_the_oldest();
    }

    /// Where a site has more than 256 publications, the two oldest become one whose version is
    /// unknown, until there are 256. Identities that differ become 0.
    fn merge_the_oldest(&mut self) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for known in &self.publications {
            *counts.entry(known.site.clone()).or_default() += 1;
        }
        for (site, count) in counts {
            for _ in MAX_PUBLICATIONS..count {
                let mut places = (0..self.publications.len())
                    .filter(|place| self.publications[*place].site == site);
                let Some(first) = places.next() else { break };
                let Some(second) = places.next() else { break };
                let oldest = self.publications.remove(first);
                let merged = &mut self.publications[second - 1];
                merged.span.since = oldest.span.since;
                let was_unavailable =
                    oldest.published.was_unavailable() || merged.published.was_unavailable();
                merged.published = if was_unavailable {
                    Published::UnknownOrUnavailable
                } else {
                    Published::Unknown
                };
                merged.tells |= oldest.tells;
                if merged.identities != oldest.identities {
                    merged.identities = 0;
                }
            }
        }
    }
}

/// The number of the change that follows all of these.
pub fn next_number(tenures: &[Tenure], publications: &[Publication]) -> u64 {
    let spans = tenures
        .iter()
        .map(|tenure| tenure.span)
        .chain(publications.iter().map(|known| known.span));
    let numbers = spans.flat_map(|span| {
        [
            Some(span.since.number),
            span.until.map(|until| until.number),
        ]
    });
    numbers
        .flatten()
        .max()
        .map_or(0, |last| last.saturating_add(1))
}

/// Whether every host of the pattern `narrow` is one of the pattern `wide`, ports aside. `*.name`
/// does not cover `name`.
pub fn covers(wide: &HostPattern, narrow: &HostPattern) -> bool {
    let is_below = wide.wildcard
        && narrow
            .name
            .strip_suffix(wide.name.as_str())
            .is_some_and(|rest| rest.ends_with('.'));
    is_below || wide.wildcard == narrow.wildcard && wide.name == narrow.name
}
