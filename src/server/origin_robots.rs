//! [`OriginRobots`]: the origins' own robots.txt files for the sites whose policies read them. It
//! decides for which site crawlgate fetches the file next, and puts the result into force or holds
//! it back. [`start`] makes it a job of the scheduler, with a few fetches at a time. No request
//! waits for a fetch.
//!
//! A site is followed while its policy reads the origin's file. A copy is in one of these states:
//! - used: a followed site uses it. If the site is removed, the copy becomes unused;
//! - unused: no site has its name. If such a site comes back, it uses the copy again. crawlgate
//!   keeps the copy for as long as crawlers may have it cached. Too many copies are removed;
//! - removed: no site can use it again.

mod fetching;
mod followed_site;

pub use fetching::{FetchJob, start};

use crate::clock::Moment;
use crate::facts::Fact;
use crate::origin::robots::{
    FetchResult, FetchState, FetchedCopy, StoredCopies, StoredCopy, Targets,
};
use crate::policy::origin::{InternalAuthorities, Origin, OriginCopyState, OriginFile, WantedHost};
use crate::policy::site::{SiteEntry, Snapshot};
use crate::settings::{OriginSettings, ServerAddress};
use crate::sites::{
    DefaultSite, KnownOrigins, OriginRobotsStatus, PATIENCE, Served, SiteManager, asked_by,
    awaited_since, is_no_policy,
};
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
/// The wall clock and the lived time are read in whole seconds, so they may seem to be this far
/// apart.
const ROUNDING: u64 = 1;
/// How many copies of removed sites are kept. Beyond that the oldest go.
const MAX_UNUSED: usize = 64;

/// The copies of all sites, and when each is fetched next.
pub struct OriginRobots {
    manager: Arc<SiteManager>,
    targets: Targets,
    internal: Arc<InternalAuthorities>,
    store: StateStore,
    /// For each default site, the place of its origin in the settings.
    default_sites: BTreeMap<String, usize>,
    followed: BTreeMap<String, FollowedSite>,
    /// Copies that no site uses: of the previous run, and of sites that were removed and may come
    /// back, for example when a volume is mounted again.
    unused: BTreeMap<String, StoredCopy>,
    /// By how many seconds the wall clock is ahead of the lived time.
    ahead: Option<i64>,
}

/// The sites whose policies read the origin's file, by name.
type SitesByName<'a> = BTreeMap<&'a str, &'a SiteEntry>;

/// The copy as the file that a site is compiled with. `internal` are the authorities of origins,
/// which must not appear in what is published.
fn origin_file(copy: &FetchedCopy, internal: &Arc<InternalAuthorities>) -> Arc<OriginFile> {
    let file = OriginFile::new(copy.url.clone(), copy.bytes.clone());
    Arc::new(
        file.modified(copy.last_modified.as_deref())
            .within(internal.clone()),
    )
}

/// The authorities by which crawlgate reaches origins: the addresses of servers (without Unix
/// sockets), and the Hosts that origins want. A host that clients may ask for is none of them.
fn internal_authorities(origins: &[OriginSettings]) -> Arc<InternalAuthorities> {
    let servers = origins
        .iter()
        .flat_map(|origin| &origin.servers)
        .map(|server| &server.address);
    let servers = servers
        .filter(|address| address.socket.is_none())
        .map(ServerAddress::host_and_port);
    let mut hosts = Vec::new();
    for origin in origins {
        let Some(host) = &origin.host else { continue };
        if !origins.iter().any(|other| other.hosts.contains(host)) {
            hosts.push(WantedHost {
                host: host.clone(),
                origin_hosts: origin.hosts.clone(),
            });
        }
    }
    Arc::new(InternalAuthorities {
        hosts,
        servers: servers.collect(),
    })
}

/// What is known of the sites from the stored copies, before the origins of these settings are
/// asked: the file of each site, or since when it is awaited; why files are held back; and the
/// default sites.
pub fn known(copies: &StoredCopies, settings: &[OriginSettings]) -> KnownOrigins {
    let internal = internal_authorities(settings);
    let mut origins = KnownOrigins::default();
    for (name, stored) in &copies.by_site {
        let fetch = &stored.fetch;
        if fetch.state(PATIENCE, fetch.wanted_since) == OriginCopyState::HeldBack {
            origins
                .held_back
                .insert(name.clone(), fetch.problem().unwrap_or_default());
        }
        let known = match fetch.copy() {
            Some(copy) => Origin::Read(origin_file(copy, &internal)),
            None => awaited_since(fetch.wanted_since),
        };
        origins.copies.insert(name.clone(), known);
        if let Some(hosts) = stored.default_site_hosts.clone() {
            origins.default_sites.push(DefaultSite {
                name: name.clone(),
                hosts,
            });
        }
    }
    origins
}

impl OriginRobots {
    /// Begins with the copies that the previous run left. Those of sites that cannot be read are
    /// removed from the store. The sites are in force already.
    pub fn new(
        manager: Arc<SiteManager>,
        origins: &[OriginSettings],
        copies: StoredCopies,
        store: StateStore,
        now: Timestamp,
    ) -> OriginRobots {
        store.put(
            copies
                .damaged
                .iter()
                .map(|site| StoredCopy::removal(site, now)),
        );
        let places = DefaultSite::origins(origins).map(|(place, _)| place);
        let default_sites = DefaultSite::of(origins)
            .into_iter()
            .map(|site| site.name)
            .zip(places)
            .collect();
        OriginRobots {
            manager,
            targets: Targets::new(origins),
            internal: internal_authorities(origins),
            store,
            default_sites,
            followed: BTreeMap::new(),
            unused: copies.by_site,
            ahead: None,
        }
    }

    /// Brings the followed sites up to date, and returns the fetches that are due, the longest due
    /// ones first, as long as fewer than `AT_ONCE` run. The caller runs them, and calls
    /// [`finish`](OriginRobots::finish) after each.
    pub fn begin_due(&mut self, moment: Moment) -> Vec<FetchJob> {
        let now = moment.now;
        self.follow_clock(moment);
        self.follow_sites(now);
        let free =
            AT_ONCE.saturating_sub(self.followed.values().filter(|site| site.is_asked).count());
        let snapshot = self.manager.snapshot();
        let mut due: Vec<(&String, &mut FollowedSite)> = self
            .followed
            .iter_mut()
            .filter(|(_, site)| !site.is_asked && site.fetch.due <= now)
            .collect();
        due.sort_by_key(|(_, site)| site.fetch.due);
        let mut jobs = Vec::new();
        for (name, site) in due.into_iter().take(free) {
            let Some(entry) = snapshot.entry_named(name) else {
                continue;
            };
            site.is_asked = true;
            let (etag, last_modified) = if site.is_unconditional {
                (None, None)
            } else {
                site.fetch.validators()
            };
            let host = asked_by(&entry.site.policy);
            let own = self
                .default_sites
                .get(name)
                .filter(|_| site.is_default_site);
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

    /// Takes the result of a fetch: puts a new file into force, or holds it back if it cannot be
    /// published, and stores the state. A result for a policy that has changed meanwhile does not
    /// count; the site is asked again. `jitter` is a number from 0 to 1 that spreads the next
    /// fetch.
    pub fn finish(&mut self, job: &FetchJob, result: FetchResult, moment: Moment, jitter: f64) {
        let now = moment.now;
        self.follow_clock(moment);
        let Some(site) = self.followed.get_mut(&job.site) else {
            return;
        };
        site.is_asked = false;
        // Another policy may be for another host. This result says nothing about that host.
        let snapshot = self.manager.snapshot();
        let policy = snapshot
            .entry_named(&job.site)
            .map(|entry| &entry.site.policy.source.text);
        if policy.is_none_or(|policy| *policy != job.policy.source.text) {
            site.fetch.due = now;
            return;
        }
        // An origin without a usable answer said nothing about the copy.
        site.is_unconditional &= matches!(result, FetchResult::Unreachable(_));
        // A page of HTML in place of a file is a failure. If there never was a file, it means that
        // there is none: a single-page app answers every request with its page.
        let has_file = site.fetch.copy().is_some_and(|copy| copy.exists);
        let result = if site.is_default_site || !has_file {
            result.read_by_crawlers()
        } else {
            result
        };
        if let Some(copy) = site.fetch.take_result(result, now, jitter) {
            let file = origin_file(&copy, &self.internal);
            match self.manager.origin_says(&job.site, file, now) {
                Ok(()) => site.fetch.accept(copy, now),
                Err(findings) => {
                    let why = crate::printable::join(findings, "; ");
                    // Findings about a line of the file name its URL.
                    let is_named = why.contains(&copy.url);
                    site.fetch.hold_back(if is_named {
                        why
                    } else {
                        format!("{}: {why}", copy.url)
                    });
                }
            }
        }
        self.store.put([site.to_stored().fact(&job.site, now)]);
        self.report_status(now);
    }

    /// How long the job may wait, unless a fetch ends or a policy changes: until the next fetch
    /// is due or a site has waited too long for a first copy, at most `LONGEST_WAIT`.
    pub fn idle_for(&self, now: Timestamp) -> Duration {
        if self.followed.values().filter(|site| site.is_asked).count() >= AT_ONCE {
            return LONGEST_WAIT;
        }
        let due = self
            .followed
            .values()
            .filter(|site| !site.is_asked)
            .map(|site| site.fetch.due)
            .min();
        // The state of a site changes when it stops waiting for a first copy, and that is reported.
        let awaited = self
            .followed
            .values()
            .filter(|site| site.fetch.copy().is_none());
        let patience = awaited
            .map(|site| site.fetch.wanted_since.plus(PATIENCE))
            .filter(|over| *over > now)
            .min();
        let next = due.into_iter().chain(patience).min();
        next.map_or(LONGEST_WAIT, |next| next.since(now))
            .min(LONGEST_WAIT)
    }

    /// Whether no site that has no copy is being asked: the first fetch of each of them has ended.
    fn first_round_is_over(&self) -> bool {
        self.followed
            .values()
            .all(|site| !site.is_asked || site.fetch.copy().is_some())
    }

    /// Moves all moments when the wall clock was set or the machine slept. Spans are measured in
    /// lived time, but moments are stored by the wall clock, for people and for the next start.
    fn follow_clock(&mut self, moment: Moment) {
        let ahead = moment.ahead();
        let by = ahead.saturating_sub(*self.ahead.get_or_insert(ahead));
        if by.unsigned_abs() <= ROUNDING {
            return;
        }
        self.ahead = Some(ahead);
        for site in self.followed.values_mut() {
            site.fetch.apply_clock_step(by, moment.now);
        }
        for copy in self.unused.values_mut() {
            copy.apply_clock_step(by, moment.now);
        }
        let followed = self
            .followed
            .iter()
            .map(|(name, site)| site.to_stored().fact(name, moment.now));
        let unused = self
            .unused
            .iter()
            .map(|(name, copy)| copy.fact(name, moment.now));
        self.store.put(followed.chain(unused));
        self.manager.apply_clock_step(by, moment.now);
    }

    /// Follows new sites, and stops following those that were removed or no longer read the
    /// origin's file.
    fn follow_sites(&mut self, now: Timestamp) {
        let snapshot = self.manager.snapshot();
        let sites = snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.reads_origin());
        let wanted: SitesByName<'_> = sites
            .map(|entry| (entry.site.name.as_str(), entry))
            .collect();
        // A site that takes over hosts takes over the copy that it was compiled with, from
        // whichever site.
        let followed = self.followed.values().map(|site| &site.fetch);
        let copies = followed.chain(self.unused.values().map(|copy| &copy.fetch));
        let copies: Vec<FetchState> = copies
            .filter(|fetch| fetch.copy().is_some())
            .cloned()
            .collect();
        let mut facts = self.drop_removed(&snapshot, &wanted, now);
        facts.extend(self.drop_unusable(&snapshot, &wanted, now));
        for (name, entry) in wanted {
            match self.followed.get_mut(name) {
                Some(site) if site.policy == entry.site.policy.source.text => {}
                Some(site) => facts.extend(
                    site.follow_policy(entry, &copies, now)
                        .then(|| fact_of(name, site, now)),
                ),
                None => facts.extend(self.follow(name, entry, &copies, now)),
            }
        }
        // At once, so that a copy that moves from one site to another is stored with one of them at
        // each moment.
        self.store.put(facts);
        self.report_status(now);
    }

    /// Stops following sites that were removed, that no longer read the origin's file, or that
    /// changed between default site and policy. The copy of a site whose name is gone becomes
    /// unused; the others are removed. Returns these removals for the store.
    fn drop_removed(
        &mut self,
        snapshot: &Snapshot,
        wanted: &SitesByName<'_>,
        now: Timestamp,
    ) -> Vec<Fact> {
        // A policy file with the name of a default site is another site.
        let gone = self.followed.iter().filter(|(name, site)| {
            wanted
                .get(name.as_str())
                .is_none_or(|entry| site.is_default_site != is_no_policy(&entry.site.policy))
        });
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        let mut facts = Vec::new();
        for name in gone {
            let Some(site) = self.followed.remove(&name) else {
                continue;
            };
            if snapshot.site_named(&name).is_none()
                && !site.is_default_site
                && site.fetch.copy().is_some()
            {
                self.unused.insert(name, site.to_stored());
            } else {
                facts.push(StoredCopy::removal(&name, now));
            }
        }
        facts
    }

    /// Removes unused copies that no site can use again: too old, too many, or of no use. Of the
    /// others it notes since when they are unused. Returns the changes for the store.
    fn drop_unusable(
        &mut self,
        snapshot: &Snapshot,
        wanted: &SitesByName<'_>,
        now: Timestamp,
    ) -> Vec<Fact> {
        let longest = self.manager.longest_cached();
        let mut facts = Vec::new();
        let mut waiting = Vec::new();
        self.unused.retain(|name, copy| {
            if wanted.contains_key(name.as_str()) {
                return true;
            }
            // A site that does not read the origin's file has no use for a copy, and no site has
            // one for a failure.
            let may_return = snapshot.site_named(name).is_none()
                && copy.default_site_hosts.is_none()
                && copy.fetch.copy().is_some();
            if !may_return
                || copy
                    .left_at
                    .is_some_and(|moment| now.since(moment) > longest)
            {
                facts.push(StoredCopy::removal(name, now));
                return false;
            }
            if copy.left_at.is_none() {
                copy.left_at = Some(now);
                facts.push(copy.fact(name, now));
            }
            waiting.push((copy.left_at, name.clone()));
            true
        });
        waiting.sort_unstable();
        for (_, name) in waiting.iter().rev().skip(MAX_UNUSED) {
            self.unused.remove(name);
            facts.push(StoredCopy::removal(name, now));
        }
        facts
    }

    /// Begins to follow a site, with the unused copy of its name if there is one, or with one of
    /// `copies`. Returns what has to be stored; `None` if the store has it already, or there is no
    /// copy.
    fn follow(
        &mut self,
        name: &str,
        entry: &SiteEntry,
        copies: &[FetchState],
        now: Timestamp,
    ) -> Option<Fact> {
        let unused = self.unused.remove(name);
        let is_back = unused.as_ref().is_some_and(|copy| copy.left_at.is_some());
        let site = FollowedSite::new(name, entry, unused.as_ref(), copies, now);
        // The same as what is stored is not stored again, and a failure only after the first fetch.
        let is_changed = site.is_unconditional || is_back;
        let is_stored = unused.is_some();
        let fact = (is_changed && (is_stored || site.fetch.copy().is_some()))
            .then(|| fact_of(name, &site, now));
        self.followed.insert(name.to_owned(), site);
        fact
    }

    /// Reports the state of each followed site to the site manager, and logs those that changed.
    fn report_status(&mut self, now: Timestamp) {
        let mut reports = BTreeMap::new();
        let snapshot = self.manager.snapshot();
        for (name, site) in &mut self.followed {
            let Some(entry) = snapshot.entry_named(name) else {
                continue;
            };
            let (served, unavailable_until) = Served::of(&entry.site, now);
            let state = site.fetch.state(PATIENCE, now);
            let problem = site.problem();
            reports.insert(
                name.clone(),
                OriginRobotsStatus {
                    state,
                    url: site.fetch.copy().map(|copy| copy.url.clone()),
                    last_success: site.fetch.last_success,
                    problem: problem.clone(),
                    unpublished_lines: entry.site.unpublished_lines.clone(),
                    is_unasked: site.fetch.is_unasked(),
                    served,
                    unavailable_until,
                    believed_at: site.fetch.believed_at(),
                },
            );
            let report = Some((state, served, problem));
            if site.reported != report {
                site.log(name, state, served);
                site.reported = report;
            }
        }
        self.manager.report_origins(reports);
    }
}

/// The fact for the store: the copy of a followed site, or its removal if the site has none.
fn fact_of(name: &str, site: &FollowedSite, now: Timestamp) -> Fact {
    match site.fetch.copy() {
        Some(_) => site.to_stored().fact(name, now),
        None => StoredCopy::removal(name, now),
    }
}
