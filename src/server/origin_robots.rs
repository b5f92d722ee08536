//! The origins' own robots.txt files, brought to the sites whose policies read them. [`OriginRobots`] decides which site is
//! fetched for next and puts the result into force or holds it back; [`start`] runs it in a thread of its own, with a few
//! fetches at a time. No request waits for any of it.
//!
//! A site is followed while its policy reads the origin's file. The copy of a site that is gone is kept for as long as
//! crawlers may have it cached, and taken up again if the site comes back.

mod fetch_job;
mod status_report;
mod thread;

pub use fetch_job::{FetchJob, FinishedJob};
pub use thread::start;

use crate::clock::Moment;
use crate::durable::set_aside;
use crate::origin::robots::{Copy, FetchResult, FetchState, Kept, State, Store, Targets, Torn};
use crate::policy::origin::OriginFile;
use crate::policy::site::{SiteEntry, Snapshot};
use crate::settings::OriginSettings;
use crate::sites::{
    DEFAULT_SITE, DefaultSite, KnownOrigins, OriginKnown, PATIENCE, Served, SiteManager, asked_by, is_no_policy,
};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Fetches at the same time.
const AT_ONCE: usize = 8;
/// The longest sleep: the clock may be set meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How many copies of sites that are gone are kept; beyond that the oldest are removed.
const MAX_LEFT: usize = 64;
/// The wall clock and the lived time are read in whole seconds, so they may seem to be this far apart.
const ROUNDING: u64 = 1;

/// The copies of all sites, and when each is fetched next.
pub struct OriginRobots {
    live: Arc<SiteManager>,
    targets: Targets,
    store: Store,
    /// The origin of the settings that each site without a policy is for.
    default_sites: BTreeMap<String, usize>,
    sites: BTreeMap<String, FollowedSite>,
    /// Stored copies that no site has taken up: of the last run, and of sites that are gone and may come back, such as
    /// while a volume is not mounted.
    kept: BTreeMap<String, Kept>,
    /// By how many seconds the wall clock is ahead of the lived time.
    ahead: Option<i64>,
}

/// A site whose policy reads the origin's file.
struct FollowedSite {
    fetch: FetchState,
    /// The policy of the last fetch: another policy may accept a file that this one held back.
    policy: Arc<str>,
    /// Whether the site has no policy of its own.
    no_policy: bool,
    /// Its hosts as patterns.
    hosts: Vec<String>,
    /// Whether the next fetch must not be conditional, because the copy may be of another host.
    is_unconditional: bool,
    /// Whether a fetch is running.
    is_asked: bool,
    /// What was logged last.
    reported: Option<(State, Served, Option<String>)>,
}

impl FollowedSite {
    fn kept(&self) -> Kept {
        let default_sites = self.no_policy.then(|| self.hosts.clone());
        Kept { fetch: self.fetch.clone(), default_sites, left_at: None }
    }

    /// Asks as soon as possible, after the policy changed. The site may be for another host now, and use that host's
    /// copy or none. Returns whether the copy changed.
    fn follow_policy(&mut self, entry: &SiteEntry, copies: &[FetchState], now: Timestamp) -> bool {
        self.policy = entry.site.policy.source.text.clone();
        self.is_unconditional = true;
        let fetch = fetch_state_of(Some(&self.fetch), copies, entry, now);
        let is_changed = fetch != self.fetch;
        self.fetch = fetch;
        self.fetch.ask_now(now);
        is_changed
    }
}

/// Whether a copy is the file that a site was compiled with: `None` where the octets differ, else whether the URL is the
/// same too. Two hosts may have equal files, so the same URL fits better.
fn fits(copy: &Copy, file: &OriginFile) -> Option<bool> {
    (copy.bytes == *file.file.bytes()).then_some(copy.url == file.location)
}

/// The state for the copy that a site was compiled with: its own if that is of this copy, else that of another site, else
/// the copy alone. A site that uses a copy must never have a state without one, or the next failure would be stored in
/// place of the copy. The other way round, a state with a copy is another host's if the site uses none.
fn fetch_state_of(own: Option<&FetchState>, others: &[FetchState], entry: &SiteEntry, now: Timestamp) -> FetchState {
    let Some(file) = &entry.site.origin else {
        // The site may have waited for longer than this process runs.
        let over = entry.site.robots_txt.awaits_origin_until;
        let since = over.map_or(now, |over| Timestamp(over.0.saturating_sub(PATIENCE.as_secs() as i64)).min(now));
        return own.filter(|fetch| fetch.copy().is_none()).cloned().unwrap_or_else(|| FetchState::new(since));
    };
    let of = |fetch: &&FetchState, is_exact| fetch.copy().and_then(|copy| fits(copy, file)) == Some(is_exact);
    let each = || own.into_iter().chain(others);
    let fetch = each().find(|fetch| of(fetch, true)).or_else(|| each().find(|fetch| of(fetch, false)));
    fetch.cloned().unwrap_or_else(|| FetchState::going_on(file.location.clone(), file.file.bytes().clone(), now))
}

/// The copies of a state directory, for the sites that are compiled at the start.
pub fn known(state: Option<&Path>, now: Timestamp) -> KnownOrigins {
    let known = |fetch: &FetchState| match fetch.copy() {
        Some(copy) => OriginKnown::Copy(Arc::new(OriginFile::new(copy.url.clone(), copy.bytes.clone()))),
        None => OriginKnown::AwaitedSince(fetch.wanted_since()),
    };
    let mut origins = KnownOrigins::default();
    let torn = |file: &Path, reason: &Torn| {
        tracing::warn!(file = %file.display(), %reason, "a copy of an origin's robots.txt cannot be understood: it is fetched again");
    };
    for (name, kept) in Store::new(state).load(now, torn) {
        if kept.fetch.state(PATIENCE, kept.fetch.wanted_since()) == State::HeldBack {
            origins.held_back.insert(name.clone(), kept.fetch.problem().unwrap_or_default());
        }
        origins.copies.insert(name.clone(), known(&kept.fetch));
        match kept.default_sites {
            Some(hosts) => origins.default_sites.push(DefaultSite { name, hosts }),
            // A former version wrote it when there was one default site only.
            None if name == DEFAULT_SITE => origins.default_sites.push(DefaultSite::for_every_host()),
            None => {}
        }
    }
    origins
}

impl OriginRobots {
    /// For the sites that are in force.
    pub fn new(
        live: Arc<SiteManager>,
        origins: &[OriginSettings],
        state: Option<&Path>,
        now: Timestamp,
    ) -> OriginRobots {
        let mut store = Store::new(state);
        // `known` has logged the others.
        let kept = store.load(now, |file, reason| {
            if let Torn::Damaged(_) = reason {
                set_aside(file);
            }
        });
        let default_sites = DefaultSite::of(origins).into_iter().map(|without| without.name).zip(0..).collect();
        let (targets, sites) = (Targets::new(origins), BTreeMap::new());
        OriginRobots { live, targets, store, default_sites, sites, kept, ahead: None }
    }

    /// The fetches that are due. [`finished`](OriginRobots::finished) must follow each of them.
    pub fn due(&mut self, moment: Moment) -> Vec<FetchJob> {
        let now = moment.now;
        self.follow_clock(moment);
        self.follow_sites(now);
        let free = AT_ONCE.saturating_sub(self.sites.values().filter(|site| site.is_asked).count());
        let snapshot = self.live.snapshot();
        let mut due: Vec<(&String, &mut FollowedSite)> =
            self.sites.iter_mut().filter(|(_, site)| !site.is_asked && site.fetch.due() <= now).collect();
        due.sort_by_key(|(_, site)| site.fetch.due());
        let mut jobs = Vec::new();
        for (name, site) in due.into_iter().take(free) {
            let Some(entry) = snapshot.site_named(name).map(|place| &snapshot.sites()[place]) else { continue };
            site.is_asked = true;
            let (etag, last_modified) = if site.is_unconditional { (None, None) } else { site.fetch.validators() };
            let host = asked_by(&entry.site.policy);
            let own = self.default_sites.get(name).filter(|_| site.no_policy);
            jobs.push(FetchJob {
                site: name.clone(),
                target: match own {
                    Some(&place) => self.targets.target_of(place, host.as_deref()),
                    None => self.targets.target(host.as_deref()),
                },
                etag: etag.map(str::to_owned),
                last_modified: last_modified.map(str::to_owned),
                policy: entry.site.policy.clone(),
            });
        }
        jobs
    }

    /// Takes the result of a fetch. `jitter` is a number from 0 to 1.
    pub fn finished(&mut self, job: FinishedJob, moment: Moment, jitter: f64) {
        let now = moment.now;
        self.follow_clock(moment);
        let Some(site) = self.sites.get_mut(&job.site) else { return };
        site.is_asked = false;
        // Another policy may be for another host, which this result says nothing about.
        let snapshot = self.live.snapshot();
        let policy = snapshot.site_named(&job.site).map(|place| &snapshot.sites()[place].site.policy.source.text);
        if policy.is_none_or(|policy| *policy != job.policy) {
            site.fetch.ask_now(now);
            return;
        }
        // An origin that could not be reached said nothing about the copy.
        site.is_unconditional &= matches!(job.result, FetchResult::Unreachable(_));
        // A page in place of a file is garbage. Where there never was a file, the page is what single-page apps answer
        // to every request.
        let has_file = site.fetch.copy().is_some_and(|copy| copy.exists);
        let result = match site.no_policy || !has_file {
            true => job.result.as_crawlers_read_it(),
            false => job.result,
        };
        if let Some(copy) = site.fetch.answered(result, now, jitter) {
            let file = Arc::new(OriginFile::new(copy.url.clone(), copy.bytes.clone()));
            match self.live.origin_says(&job.site, file, now) {
                Ok(()) => site.fetch.accept(copy, now),
                Err(findings) => {
                    let why = findings.join("; ");
                    // Findings about a line of the file name its URL.
                    let is_named = why.contains(&copy.url);
                    site.fetch.hold_back(if is_named { why } else { format!("{}: {why}", copy.url) });
                }
            }
        }
        self.store.keep(&job.site, &site.kept());
        self.report_status(now);
    }

    /// How long there is nothing to do, unless a fetch ends or a policy changes.
    pub fn rest(&self, now: Timestamp) -> Duration {
        if self.sites.values().filter(|site| site.is_asked).count() >= AT_ONCE {
            return LONGEST_WAIT;
        }
        let due = self.sites.values().filter(|site| !site.is_asked).map(|site| site.fetch.due()).min();
        // When a site has waited in vain for a first copy, its state changes, which is reported.
        let awaited = self.sites.values().filter(|site| site.fetch.copy().is_none());
        let patience = awaited.map(|site| site.fetch.wanted_since().plus(PATIENCE)).filter(|over| *over > now).min();
        let next = due.into_iter().chain(patience).min();
        next.map_or(LONGEST_WAIT, |next| next.since(now)).min(LONGEST_WAIT)
    }

    /// Whether every site that has no copy has been fetched for once.
    fn first_round_is_over(&self) -> bool {
        self.sites.values().all(|site| !site.is_asked || site.fetch.copy().is_some())
    }

    /// Spans are measured in lived time, but moments are stored by the wall clock, for people and for the next start. If
    /// that clock was set, or the machine slept, the moments are moved.
    fn follow_clock(&mut self, moment: Moment) {
        let ahead = moment.now.0.saturating_sub(i64::try_from(moment.lived.as_secs()).unwrap_or(i64::MAX));
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.unsigned_abs() <= ROUNDING {
            return;
        }
        self.ahead = Some(ahead);
        for (name, site) in &mut self.sites {
            site.fetch.clock_was_set(by, moment.now);
            self.store.keep(name, &site.kept());
        }
        for (name, kept) in &mut self.kept {
            kept.clock_was_set(by, moment.now);
            self.store.keep(name, kept);
        }
        self.live.clock_was_set(by, moment.now);
    }

    /// Follows sites that are new and stops following those that are gone or no longer read the origin's file.
    fn follow_sites(&mut self, now: Timestamp) {
        let snapshot = self.live.snapshot();
        let sites = snapshot.sites().iter().filter(|entry| entry.site.policy.reads_origin());
        let wanted: BTreeMap<&str, &SiteEntry> = sites.map(|entry| (entry.site.name.as_str(), entry)).collect();
        // A site that takes over hosts takes over the copy that it was compiled with, from whichever site.
        let followed = self.sites.values().map(|site| &site.fetch);
        let copies = followed.chain(self.kept.values().map(|kept| &kept.fetch));
        let copies: Vec<FetchState> = copies.filter(|fetch| fetch.copy().is_some()).cloned().collect();
        let mut dropped = self.drop_gone(&snapshot, &wanted);
        dropped.extend(self.drop_expired(&snapshot, &wanted, now));
        dropped.retain(|name| !wanted.contains_key(name.as_str()) || !self.kept.contains_key(name));
        dropped.iter().for_each(|name| drop(self.kept.remove(name)));
        for (name, entry) in wanted {
            match self.sites.get_mut(name) {
                Some(site) if site.policy == entry.site.policy.source.text => {}
                Some(site) => {
                    if site.follow_policy(entry, &copies, now) {
                        match site.fetch.copy() {
                            Some(_) => self.store.keep(name, &site.kept()),
                            None => self.store.forget(name),
                        }
                    }
                }
                None => {
                    let was_dropped = dropped.iter().any(|dropped| dropped == name);
                    self.follow(name, entry, &copies, was_dropped, now);
                    dropped.retain(|dropped| dropped != name);
                }
            }
        }
        // Only now: another site may have taken over one of these copies, and has stored it.
        dropped.iter().for_each(|name| self.store.forget(name));
        self.report_status(now);
    }

    /// Stops following sites that are gone. Copies that may be taken up again are kept; returns the names of the others.
    fn drop_gone(&mut self, snapshot: &Snapshot, wanted: &BTreeMap<&str, &SiteEntry>) -> Vec<String> {
        let is_gone = |name: &str, site: &FollowedSite| match wanted.get(name) {
            // A policy file with the name of a site without a policy is another site.
            Some(entry) => site.no_policy != is_no_policy(&entry.site.policy),
            None => true,
        };
        let gone = self.sites.iter().filter(|(name, site)| is_gone(name, site)).map(|(name, _)| name.clone());
        let mut dropped = Vec::new();
        for name in gone.collect::<Vec<_>>() {
            let Some(site) = self.sites.remove(&name) else { continue };
            if snapshot.site_named(&name).is_none() && !site.no_policy && site.fetch.copy().is_some() {
                self.kept.insert(name, site.kept());
            } else {
                dropped.push(name);
            }
        }
        dropped
    }

    /// The names of kept copies that no site can take up any more: too old, too many, or of no use.
    fn drop_expired(
        &mut self,
        snapshot: &Snapshot,
        wanted: &BTreeMap<&str, &SiteEntry>,
        now: Timestamp,
    ) -> Vec<String> {
        let longest = self.live.longest_held();
        let mut dropped = Vec::new();
        for (name, kept) in &mut self.kept {
            if wanted.contains_key(name.as_str()) {
                continue;
            }
            // A site that is there and does not read the origin's file has no use for a copy, and no site for a failure.
            let may_return =
                snapshot.site_named(name).is_none() && kept.default_sites.is_none() && kept.fetch.copy().is_some();
            if !may_return || kept.left_at.is_some_and(|moment| now.since(moment) > longest) {
                dropped.push(name.clone());
            } else if kept.left_at.is_none() {
                kept.left_at = Some(now);
                self.store.keep(name, kept);
            }
        }
        let mut waiting: Vec<(Timestamp, &String)> =
            self.kept.iter().filter_map(|(name, kept)| Some((kept.left_at?, name))).collect();
        waiting.sort_unstable();
        dropped.extend(waiting.iter().rev().skip(MAX_LEFT).map(|(_, name)| (*name).clone()));
        dropped
    }

    /// Begins to follow a site.
    fn follow(&mut self, name: &str, entry: &SiteEntry, copies: &[FetchState], was_dropped: bool, now: Timestamp) {
        // A kept copy that the site was not compiled with is of another host, of a site that once had this name.
        let kept = self.kept.remove(name);
        let is_back = kept.as_ref().is_some_and(|kept| kept.left_at.is_some());
        let kept = kept.map(|kept| kept.fetch);
        let mut fetch = fetch_state_of(kept.as_ref(), copies, entry, now);
        let is_unconditional = kept.as_ref() != Some(&fetch);
        let is_of_another = kept.is_some() && is_unconditional;
        if is_back {
            fetch.is_back();
        }
        fetch.ask_now(now);
        let policy = &entry.site.policy;
        let no_policy = is_no_policy(policy);
        let hosts: Vec<String> = policy.hosts.iter().map(|host| host.value.to_string()).collect();
        if let Some(host) = asked_by(policy).filter(|_| no_policy)
            && (hosts.len() > 1 || hosts.iter().any(|host| host.starts_with('*')))
        {
            tracing::warn!(
                site = name,
                hosts = %hosts.join(", "),
                %host,
                "there is no policy: these hosts go by one robots.txt, the one of `host`; where they have others, write an origin or a policy for each"
            );
        }
        let policy = policy.source.text.clone();
        let site = FollowedSite { fetch, policy, no_policy, hosts, is_unconditional, is_asked: false, reported: None };
        match site.fetch.copy() {
            Some(_) if is_unconditional || is_back => self.store.keep(name, &site.kept()),
            None if is_of_another || was_dropped => self.store.forget(name),
            Some(_) | None => {}
        }
        self.sites.insert(name.to_owned(), site);
    }
}
