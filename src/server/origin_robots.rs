//! [`OriginRobots`]: the origins' own robots.txt files for the sites whose policies read them. It decides for which site
//! crawlgate fetches the file next, and puts the result into force or holds it back. [`start`] runs it in a thread of its
//! own, with a few fetches at a time. No request waits for a fetch.
//!
//! A site is followed while its policy reads the origin's file. crawlgate keeps the copy of a removed site for as long as
//! crawlers may have it cached, and uses the copy again if the site comes back.

mod fetch_job;
mod follow_sites;
mod followed_site;
mod status_report;
mod thread;

pub use fetch_job::{FetchJob, FinishedJob};
pub use thread::start;

use crate::clock::Moment;
use crate::origin::robots::{FetchResult, FetchedCopy, StoredCopies, StoredCopy, Targets};
use crate::policy::origin::{Origin, OriginCopyState, OriginFile};
use crate::settings::OriginSettings;
use crate::sites::{DefaultSite, KnownOrigins, PATIENCE, SiteManager, asked_by, awaited_since};
use crate::state::StateStore;
use crate::time::Timestamp;
use followed_site::FollowedSite;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The most fetches at the same time.
const AT_ONCE: usize = 8;
/// The longest sleep: the clock may be set meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The wall clock and the lived time are read in whole seconds, so they may seem to be this far apart.
const ROUNDING: u64 = 1;

/// The copies of all sites, and when each is fetched next.
pub struct OriginRobots {
    manager: Arc<SiteManager>,
    targets: Targets,
    store: StateStore,
    /// For each default site, the place of its origin in the settings.
    default_sites: BTreeMap<String, usize>,
    followed: BTreeMap<String, FollowedSite>,
    /// Copies that no site uses: of the previous run, and of sites that were removed and may come back, for example when
    /// a volume is mounted again.
    unused: BTreeMap<String, StoredCopy>,
    /// By how many seconds the wall clock is ahead of the lived time.
    ahead: Option<i64>,
}

fn origin_file(copy: &FetchedCopy) -> Arc<OriginFile> {
    Arc::new(OriginFile::new(copy.url.clone(), copy.bytes.clone()).modified(copy.last_modified.as_deref()))
}

/// What is known of sites from stored copies, before their origins are asked.
pub fn known(copies: &StoredCopies) -> KnownOrigins {
    let mut origins = KnownOrigins::default();
    for (name, StoredCopy { fetch, default_site_hosts, .. }) in &copies.by_site {
        if fetch.state(PATIENCE, fetch.wanted_since) == OriginCopyState::HeldBack {
            origins.held_back.insert(name.clone(), fetch.problem().unwrap_or_default());
        }
        let known = match fetch.copy() {
            Some(copy) => Origin::Read(origin_file(copy)),
            None => awaited_since(fetch.wanted_since),
        };
        origins.copies.insert(name.clone(), known);
        if let Some(hosts) = default_site_hosts.clone() {
            origins.default_sites.push(DefaultSite { name: name.clone(), hosts });
        }
    }
    origins
}

impl OriginRobots {
    /// Begins with the copies that the previous run left. The sites are in force already.
    pub fn new(
        manager: Arc<SiteManager>,
        origins: &[OriginSettings],
        copies: StoredCopies,
        store: StateStore,
        now: Timestamp,
    ) -> OriginRobots {
        store.put(copies.damaged.iter().map(|site| StoredCopy::removal(site, now)));
        let places = DefaultSite::origins(origins).map(|(place, _)| place);
        let default_sites = DefaultSite::of(origins).into_iter().map(|site| site.name).zip(places).collect();
        let (targets, followed) = (Targets::new(origins), BTreeMap::new());
        OriginRobots { manager, targets, store, default_sites, followed, unused: copies.by_site, ahead: None }
    }

    /// Begins the fetches that are due. [`finish`](OriginRobots::finish) must follow each of them.
    pub fn begin_due(&mut self, moment: Moment) -> Vec<FetchJob> {
        let now = moment.now;
        self.follow_clock(moment);
        self.follow_sites(now);
        let free = AT_ONCE.saturating_sub(self.followed.values().filter(|site| site.is_asked).count());
        let snapshot = self.manager.snapshot();
        let mut due: Vec<(&String, &mut FollowedSite)> =
            self.followed.iter_mut().filter(|(_, site)| !site.is_asked && site.fetch.due <= now).collect();
        due.sort_by_key(|(_, site)| site.fetch.due);
        let mut jobs = Vec::new();
        for (name, site) in due.into_iter().take(free) {
            let Some(entry) = snapshot.site_named(name).map(|place| &snapshot.sites()[place]) else { continue };
            site.is_asked = true;
            let (etag, last_modified) = if site.is_unconditional { (None, None) } else { site.fetch.validators() };
            let host = asked_by(&entry.site.policy);
            let own = self.default_sites.get(name).filter(|_| site.is_default_site);
            jobs.push(FetchJob {
                site: name.clone(),
                has_origins: !self.targets.is_empty(),
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
    pub fn finish(&mut self, job: FinishedJob, moment: Moment, jitter: f64) {
        let now = moment.now;
        self.follow_clock(moment);
        let Some(site) = self.followed.get_mut(&job.site) else { return };
        site.is_asked = false;
        // Another policy may be for another host. This result says nothing about that host.
        let snapshot = self.manager.snapshot();
        let policy = snapshot.site_named(&job.site).map(|place| &snapshot.sites()[place].site.policy.source.text);
        if policy.is_none_or(|policy| *policy != job.policy) {
            site.fetch.due = now;
            return;
        }
        // An origin without a usable answer said nothing about the copy.
        site.is_unconditional &= matches!(job.result, FetchResult::Unreachable(_));
        // A page of HTML in place of a file is a failure. If there never was a file, it means that there is none: a
        // single-page app answers every request with its page.
        let has_file = site.fetch.copy().is_some_and(|copy| copy.exists);
        let result = match site.is_default_site || !has_file {
            true => job.result.read_by_crawlers(),
            false => job.result,
        };
        if let Some(copy) = site.fetch.take_result(result, now, jitter) {
            let file = origin_file(&copy);
            match self.manager.origin_says(&job.site, file, now) {
                Ok(()) => site.fetch.accept(copy, now),
                Err(findings) => {
                    let why = findings.join("; ");
                    // Findings about a line of the file name its URL.
                    let is_named = why.contains(&copy.url);
                    site.fetch.hold_back(if is_named { why } else { format!("{}: {why}", copy.url) });
                }
            }
        }
        self.store.put([site.to_stored().fact(&job.site, now)]);
        self.report_status(now);
    }

    /// How long the thread may wait, unless a fetch ends or a policy changes.
    pub fn idle_for(&self, now: Timestamp) -> Duration {
        if self.followed.values().filter(|site| site.is_asked).count() >= AT_ONCE {
            return LONGEST_WAIT;
        }
        let due = self.followed.values().filter(|site| !site.is_asked).map(|site| site.fetch.due).min();
        // The state of a site changes when it stops waiting for a first copy, and that is reported.
        let awaited = self.followed.values().filter(|site| site.fetch.copy().is_none());
        let patience = awaited.map(|site| site.fetch.wanted_since.plus(PATIENCE)).filter(|over| *over > now).min();
        let next = due.into_iter().chain(patience).min();
        next.map_or(LONGEST_WAIT, |next| next.since(now)).min(LONGEST_WAIT)
    }

    /// Whether the first fetch of every site without a copy has ended.
    fn first_round_is_over(&self) -> bool {
        self.followed.values().all(|site| !site.is_asked || site.fetch.copy().is_some())
    }

    /// Moves all moments when the wall clock was set or the machine slept. Spans are measured in lived time, but moments
    /// are stored by the wall clock, for people and for the next start.
    fn follow_clock(&mut self, moment: Moment) {
        let ahead = moment.now.0.saturating_sub(i64::try_from(moment.lived.as_secs()).unwrap_or(i64::MAX));
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.unsigned_abs() <= ROUNDING {
            return;
        }
        self.ahead = Some(ahead);
        for site in self.followed.values_mut() {
            site.fetch.clock_was_set(by, moment.now);
        }
        for copy in self.unused.values_mut() {
            copy.clock_was_set(by, moment.now);
        }
        let followed = self.followed.iter().map(|(name, site)| site.to_stored().fact(name, moment.now));
        let unused = self.unused.iter().map(|(name, copy)| copy.fact(name, moment.now));
        self.store.put(followed.chain(unused));
        self.manager.clock_was_set(by, moment.now);
    }
}
