//! [`PublicationLog`]: a log of the robots.txt files that crawlgate published in the last month. It
//! consists of two lists: which site had which hosts ([`HostTenure`]), and what each site published
//! ([`Publication`]). Because the lists are separate, a site with thousands of hosts needs only one
//! entry for each robots.txt that it publishes. `timeline` computes from both lists what one host
//! published.
//!
//! At each moment a site publishes a version of robots.txt, the status 503 in its place, or
//! nothing. [`PublicationLog::record`] adds each change to the log.

use super::records::{
    ChangePoint, ChangeSpan, DeclaredPreviousRobots, HostTenure, LogGaps, Publication,
    PublishedRobots, PublishedSite, RETENTION,
};
use crate::policy::RobotsVersionId;
use crate::policy::model::HostPattern;
use crate::policy::publication_history::{ClockJump, PublicationHistory, UnavailableSpan, minus};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The most publications of one site. Older ones are merged into one whose version is unknown.
const MAX_PUBLICATIONS: usize = 256;
/// The most tenures that have ended.
const MAX_TENURES: usize = 65_536;
/// The most jumps of the clock. Older ones are merged.
const MAX_JUMPS: usize = 64;

/// Everything that was published within the last month.
#[derive(Clone, Default)]
pub struct PublicationLog {
    /// The number of the next change.
    next_number: u64,
    /// Which site had which hosts, the earliest first.
    pub tenures: Vec<HostTenure>,
    /// What each site published, the earliest first.
    pub publications: Vec<Publication>,
    /// The version that the operator declares for the time before crawlgate, by site.
    pub declared: BTreeMap<String, RobotsVersionId>,
    /// The times that are not completely known.
    pub gaps: LogGaps,
    /// When the clock was set forward, the latest first.
    pub jumps: Vec<ClockJump>,
}

impl PublicationLog {
    /// Records what the sites publish from `now` on; returns whether that is a change. Also sets
    /// times later than `now` to `now`, and removes records that are too old or too many.
    pub fn record(&mut self, current: &[PublishedSite<'_>], now: Timestamp) -> bool {
        self.clamp_to(now);
        let change = ChangePoint {
            number: self.next_number,
            at: now,
        };
        let changed = self.record_publications(current, change)
            | self.record_tenures(current, change)
            | self.record_declared(current);
        if changed {
            self.next_number += 1;
        }
        self.prune(now);
        changed
    }

    /// Whether nothing was ever recorded.
    pub fn is_empty(&self) -> bool {
        self.tenures.is_empty()
    }

    /// The log that an earlier process stored. The next change gets a number above all of its
    /// changes.
    pub fn from_stored(
        mut tenures: Vec<HostTenure>,
        mut publications: Vec<Publication>,
        declared: BTreeMap<String, RobotsVersionId>,
        gaps: LogGaps,
        mut jumps: Vec<ClockJump>,
    ) -> PublicationLog {
        jumps.sort_by_key(|jump| std::cmp::Reverse(jump.at));
        tenures.sort_by_key(|tenure| tenure.span.since.number);
        publications.sort_by_key(|publication| publication.span.since.number);
        PublicationLog {
            next_number: next_change_number(&tenures, &publications),
            tenures,
            publications,
            declared,
            gaps,
            jumps,
        }
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
    pub fn total_jump(&self) -> Duration {
        self.jumps
            .iter()
            .fold(Duration::ZERO, |all, jump| all.saturating_add(jump.by))
    }

    /// Since when the site publishes its latest robots.txt, ignoring times of 503. `None` if the
    /// log has nothing but 503.
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
                PublishedRobots::Unavailable => continue,
                known if *version.get_or_insert(known) == known => {
                    since = Some(publication.span.since.at)
                }
                _ => break,
            }
        }
        since
    }

    /// The site that has or last had a host (`None`: every other host). Of the tenures whose
    /// pattern covers the host it is the open one or the one that ended last, then the one with the
    /// closest pattern, then the one that began last.
    pub fn last_owner(&self, host: Option<&HostPattern>) -> Option<&str> {
        let candidates = self.tenures.iter().filter_map(|tenure| {
            let closeness = match (&tenure.pattern, host) {
                (None, _) => 0,
                (Some(wide), Some(host)) if pattern_covers(wide, host) => {
                    1 + 2 * wide.name.len() + usize::from(!wide.wildcard)
                }
                (Some(_), _) => return None,
            };
            Some((tenure, closeness))
        });
        // A site that has the host now wins over one that had it, however close its pattern was.
        let (last, _) = candidates.max_by_key(|(tenure, closeness)| {
            (tenure.span.end(), *closeness, tenure.span.since.number)
        })?;
        Some(&last.site)
    }

    /// Whether a site had a host (`None`: every other host) at any recorded time. The pattern for
    /// every other host does not count for a named host.
    pub fn had_host(&self, site: &str, host: Option<&HostPattern>) -> bool {
        let mut tenures = self.tenures.iter().filter(|tenure| tenure.site == site);
        tenures.any(|tenure| match (&tenure.pattern, host) {
            (Some(wide), Some(host)) => pattern_covers(wide, host),
            (wide, host) => wide.is_none() && host.is_none(),
        })
    }

    /// The names of all sites in the log.
    pub fn site_names(&self) -> BTreeSet<&str> {
        self.tenures
            .iter()
            .map(|tenure| tenure.site.as_str())
            .collect()
    }

    /// The versions that were published at this moment or later, and all that operators declare.
    pub fn versions_since(&self, moment: Timestamp) -> BTreeSet<RobotsVersionId> {
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
    /// see [`PublicationHistory::cached_since`], as if every 503 had been everywhere.
    pub fn cached_since(&self, max_cache_time: Duration, now: Timestamp) -> Timestamp {
        let mut history = PublicationHistory {
            jumps: self.jumps.clone(),
            ..PublicationHistory::new(now)
        };
        for publication in self.publications.iter().rev() {
            if publication.published.was_unavailable() {
                let ChangeSpan { since, until } = publication.span;
                history.unavailable.push(UnavailableSpan {
                    since: since.at,
                    until: until.map(|until| until.at),
                });
            }
        }
        history
            .unavailable
            .sort_by_key(|span| std::cmp::Reverse(span.until.unwrap_or(now)));
        history.cached_since(max_cache_time, now)
    }

    /// Sets the `identities` of all publications to 0: other names may have told crawlers apart
    /// until now.
    pub fn reset_identities(&mut self) {
        self.publications
            .iter_mut()
            .for_each(|publication| publication.identities = 0);
    }

    /// Ends the open publications of sites that are gone or publish something else now, and begins
    /// new ones. Returns whether anything changed.
    fn record_publications(&mut self, current: &[PublishedSite<'_>], change: ChangePoint) -> bool {
        let mut wanted: HashMap<&str, &PublishedSite<'_>> =
            current.iter().map(|site| (site.site, site)).collect();
        let mut changed = false;
        for open in self
            .publications
            .iter_mut()
            .filter(|open| open.span.until.is_none())
        {
            let same = wanted.get(open.site.as_str()).filter(|site| {
                (site.published, site.identities, site.has_page_tags)
                    == (open.published, open.identities, open.has_page_tags)
            });
            match same {
                Some(_) => drop(wanted.remove(open.site.as_str())),
                None => {
                    open.span.until = Some(change);
                    changed = true;
                }
            }
        }
        for site in current.iter().filter(|site| wanted.contains_key(site.site)) {
            self.publications.push(Publication {
                site: site.site.to_owned(),
                published: site.published,
                identities: site.identities,
                has_page_tags: site.has_page_tags,
                span: ChangeSpan {
                    since: change,
                    until: None,
                },
                unreported_until: None,
            });
            changed = true;
        }
        changed
    }

    /// Ends the open tenures of hosts that have another site now or none, and begins new ones in
    /// the order of their patterns. Returns whether anything changed.
    fn record_tenures(&mut self, current: &[PublishedSite<'_>], change: ChangePoint) -> bool {
        let mut wanted: HashMap<Option<&HostPattern>, &str> = HashMap::new();
        for PublishedSite { site, hosts, .. } in current {
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
        let new = wanted.into_iter().map(|(pattern, site)| HostTenure {
            pattern: pattern.cloned(),
            site: site.to_owned(),
            span: ChangeSpan {
                since: change,
                until: None,
            },
        });
        let mut new: Vec<HostTenure> = new.collect();
        new.sort_unstable_by(|one, other| one.pattern.cmp(&other.pattern));
        changed |= !new.is_empty();
        self.tenures.append(&mut new);
        changed
    }

    /// Replaces what operators declare; returns whether that is a change. The origin's file stays
    /// the one that was known first: a later one says nothing about the time before crawlgate. A
    /// site whose first version is not known yet is left out.
    fn record_declared(&mut self, current: &[PublishedSite<'_>]) -> bool {
        let declared = current.iter().filter_map(|site| {
            let version = match site.declared? {
                DeclaredPreviousRobots::Version(version) => version,
                DeclaredPreviousRobots::Origin(first) => {
                    self.declared.get(site.site).copied().or(first)?
                }
            };
            Some((site.site.to_owned(), version))
        });
        let declared = declared.collect();
        let changed = self.declared != declared;
        self.declared = declared;
        changed
    }

    /// Sets all times later than `now` to `now`. They come from a clock that was ahead and has been
    /// set back since.
    fn clamp_to(&mut self, now: Timestamp) {
        let tenures = self
            .tenures
            .iter_mut()
            .flat_map(|tenure| tenure.span.moments_mut());
        let publications = self
            .publications
            .iter_mut()
            .flat_map(|publication| publication.span.moments_mut());
        let gaps = self.gaps.moments_mut().into_iter().flatten();
        let jumps = self.jumps.iter_mut().map(|jump| &mut jump.at);
        tenures
            .chain(publications)
            .chain(gaps)
            .chain(jumps)
            .for_each(|moment| *moment = now.min(*moment));
    }

    /// Removes records that ended more than 31 days ago, not counting jumps of the clock. Of more
    /// than 65,536 ended tenures it removes the earliest; `gaps.cut_at` is then the latest of their
    /// ends.
    fn prune(&mut self, now: Timestamp) {
        self.jumps.retain(|jump| now.since(jump.at) <= RETENTION);
        let now = minus(now, self.total_jump());
        self.publications
            .retain(|publication| !publication.span.is_expired(now));
        self.tenures.retain(|tenure| !tenure.span.is_expired(now));
        for gap in self.gaps.moments_mut() {
            gap.take_if(|at| now.since(*at) > RETENTION);
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
        self.merge_oldest();
    }

    /// Merges the oldest publications of a site with more than 256 into one whose version is
    /// unknown. Identities that differ become 0.
    fn merge_oldest(&mut self) {
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
                    PublishedRobots::UnknownOrUnavailable
                } else {
                    PublishedRobots::Unknown
                };
                merged.has_page_tags |= oldest.has_page_tags;
                if merged.identities != oldest.identities {
                    merged.identities = 0;
                }
            }
        }
    }
}

/// The number for the next change after all of these.
pub fn next_change_number(tenures: &[HostTenure], publications: &[Publication]) -> u64 {
    let spans = tenures
        .iter()
        .map(|tenure| tenure.span)
        .chain(publications.iter().map(|known| known.span));
    let numbers = spans.map(|span| span.until.unwrap_or(span.since).number);
    numbers.max().map_or(0, |last| last.saturating_add(1))
}

/// Whether every host of the pattern `narrow` is one of the pattern `wide`, ports aside. `*.name`
/// does not cover `name`.
pub fn pattern_covers(wide: &HostPattern, narrow: &HostPattern) -> bool {
    let is_below = wide.wildcard
        && narrow
            .name
            .strip_suffix(wide.name.as_str())
            .is_some_and(|rest| rest.ends_with('.'));
    is_below || wide.wildcard == narrow.wildcard && wide.name == narrow.name
}
