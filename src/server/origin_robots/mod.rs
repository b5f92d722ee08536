//! [`OriginRobotsTracker`]: crawlgate's copies of the origins' own robots.txt files, for the sites
//! whose policies use these files. It decides which file is fetched next. A fetched file comes into
//! force, or is held back if it cannot be used. [`start_fetching`] fetches the files in the
//! background, a few at a time. No request waits for a fetch.
//!
//! A site is called followed while its policy uses the origin's file. crawlgate keeps the copies of
//! followed sites only.

mod fetching;
mod followed_site;

pub use fetching::{FetchJob, start_fetching};

use crate::clock::Moment;
use crate::facts::Fact;
use crate::origin::robots::{
    FetchResult, FetchState, FetchedCopy, OriginTargets, StoredCopies, StoredCopy,
};
use crate::policy::origin::{
    HostOverride, InternalAuthorities, OriginCopyState, OriginRobotsAvailability, OriginRobotsTxt,
};
use crate::policy::site::SiteEntry;
use crate::settings::{OriginServerAddress, OriginSettings};
use crate::sites::{
    DefaultSite, InitialOriginRobots, MAX_ORIGIN_WAIT, OriginRobotsStatus, ServedRobotsKind,
    SiteManager, awaited_origin, is_default_site_policy, origin_request_host,
};
use crate::state::StateStore;
use crate::time::Timestamp;
use followed_site::FollowedSite;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The most fetches at the same time.
const MAX_FETCHES: usize = 8;
/// The longest sleep: the clock may be set meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The wall clock and the monotonic time are read in whole seconds, so their difference may change by
/// as much without a step.
const ROUNDING: u64 = 1;

/// The copies of all sites, and when each is fetched next.
pub struct OriginRobotsTracker {
    manager: Arc<SiteManager>,
    targets: OriginTargets,
    internal: Arc<InternalAuthorities>,
    store: StateStore,
    /// For each default site, the index of its origin in the settings.
    default_sites: BTreeMap<String, usize>,
    followed: BTreeMap<String, FollowedSite>,
    /// The copies of the previous run, until the sites of this run are followed.
    previous: BTreeMap<String, StoredCopy>,
    /// By how many seconds the wall clock is ahead of the monotonic time.
    wall_clock_offset: Option<i64>,
}

/// The sites whose policies read the origin's file, by name.
type SitesByName<'a> = BTreeMap<&'a str, &'a SiteEntry>;

/// The file that a site is compiled with. `internal` are the authorities of origins, which must not
/// be published.
fn origin_file(copy: &FetchedCopy, internal: &Arc<InternalAuthorities>) -> Arc<OriginRobotsTxt> {
    let last_modified = copy.last_modified.as_deref();
    Arc::new(OriginRobotsTxt {
        last_modified: last_modified.and_then(Timestamp::from_http_date),
        internal: internal.clone(),
        ..OriginRobotsTxt::new(copy.url.clone(), copy.bytes.clone())
    })
}

/// The authorities by which crawlgate reaches origins: the addresses of servers (without Unix
/// sockets), and the own Hosts of origins, unless clients may request these.
fn internal_authorities(origins: &[OriginSettings]) -> Arc<InternalAuthorities> {
    let servers = origins
        .iter()
        .flat_map(|origin| &origin.servers)
        .map(|server| &server.address);
    let servers = servers
        .filter(|address| address.socket.is_none())
        .map(OriginServerAddress::host_and_port);
    let mut hosts = Vec::new();
    for origin in origins {
        let Some(host) = &origin.host else { continue };
        if !origins.iter().any(|other| other.hosts.contains(host)) {
            hosts.push(HostOverride {
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

/// The stored copies as the sites need them at the start: the file of each site, or since when it is
/// awaited; why files are held back; and the default sites.
pub fn known_origins(copies: &StoredCopies, settings: &[OriginSettings]) -> InitialOriginRobots {
    let internal = internal_authorities(settings);
    let mut origins = InitialOriginRobots::default();
    for (name, stored) in &copies.by_site {
        let fetch = &stored.fetch;
        if fetch.state(MAX_ORIGIN_WAIT, fetch.wanted_since) == OriginCopyState::HeldBack {
            origins
                .held_back
                .insert(name.clone(), fetch.problem().unwrap_or_default());
        }
        let known = match fetch.copy() {
            Some(copy) => OriginRobotsAvailability::Available(origin_file(copy, &internal)),
            None => awaited_origin(fetch.wanted_since),
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

impl OriginRobotsTracker {
    /// Starts with the copies of the previous run. Damaged copies are removed from the store. The
    /// sites must be in force already.
    pub fn new(
        manager: Arc<SiteManager>,
        origins: &[OriginSettings],
        copies: StoredCopies,
        store: StateStore,
        now: Timestamp,
    ) -> OriginRobotsTracker {
        store.put(
            copies
                .damaged
                .iter()
                .map(|site| StoredCopy::removal_fact(site, now)),
        );
        let places = DefaultSite::robots_origins(origins).map(|(place, _)| place);
        let default_sites = DefaultSite::from_settings(origins)
            .into_iter()
            .map(|site| site.name)
            .zip(places)
            .collect();
        OriginRobotsTracker {
            manager,
            targets: OriginTargets::new(origins),
            internal: internal_authorities(origins),
            store,
            default_sites,
            followed: BTreeMap::new(),
            previous: copies.by_site,
            wall_clock_offset: None,
        }
    }

    /// Updates the followed sites, and returns the due fetches, the longest due ones first, as long
    /// as fewer than `MAX_FETCHES` run. The caller runs them, and calls
    /// [`finish_fetch`](OriginRobotsTracker::finish_fetch) after each.
    pub fn take_due_fetches(&mut self, moment: Moment) -> Vec<FetchJob> {
        let now = moment.now;
        self.follow_clock(moment);
        self.update_followed_sites(now);
        let free = MAX_FETCHES.saturating_sub(
            self.followed
                .values()
                .filter(|site| site.is_fetching)
                .count(),
        );
        let snapshot = self.manager.snapshot();
        let mut due: Vec<(&String, &mut FollowedSite)> = self
            .followed
            .iter_mut()
            .filter(|(_, site)| !site.is_fetching && site.fetch.due <= now)
            .collect();
        due.sort_by_key(|(_, site)| site.fetch.due);
        let mut jobs = Vec::new();
        for (name, site) in due.into_iter().take(free) {
            let Some(entry) = snapshot.entry_by_name(name) else {
                continue;
            };
            site.is_fetching = true;
            let (etag, last_modified) = if site.is_unconditional {
                (None, None)
            } else {
                site.fetch.validators()
            };
            let host = origin_request_host(&entry.site.policy);
            let own = self
                .default_sites
                .get(name)
                .filter(|_| site.is_default_site);
            jobs.push(FetchJob {
                site: name.clone(),
                has_origins: !self.targets.is_empty(),
                target: match own {
                    Some(&place) => self.targets.for_origin(place, host.as_deref()),
                    None => self.targets.for_host(host.as_deref()),
                },
                etag: etag.map(str::to_owned),
                last_modified: last_modified.map(str::to_owned),
                policy: entry.site.policy.clone(),
            });
        }
        jobs
    }

    /// Applies the result of a fetch: puts a new file into force, or holds it back if it cannot be
    /// published, and stores the state. If the policy has changed meanwhile, the result is dropped,
    /// and the file is fetched again. `jitter` is a number from 0 to 1 that spreads the next fetch.
    pub fn finish_fetch(
        &mut self,
        job: &FetchJob,
        result: FetchResult,
        moment: Moment,
        jitter: f64,
    ) {
        let now = moment.now;
        self.follow_clock(moment);
        let Some(site) = self.followed.get_mut(&job.site) else {
            return;
        };
        site.is_fetching = false;
        // The new policy may be for another host.
        let snapshot = self.manager.snapshot();
        let policy = snapshot
            .entry_by_name(&job.site)
            .map(|entry| &entry.site.policy.source.text);
        if policy.is_none_or(|policy| *policy != job.policy.source.text) {
            site.fetch.due = now;
            return;
        }
        // Without a usable answer the copy is still unconfirmed.
        site.is_unconditional &= matches!(result, FetchResult::Unreachable(_));
        // A page of HTML in place of a known file is a failure. Otherwise there is no file: a
        // single-page app answers every request with its page.
        let has_file = site.fetch.copy().is_some_and(|copy| copy.exists);
        let result = if site.is_default_site || !has_file {
            result.into_crawler_reading()
        } else {
            result
        };
        if let Some(copy) = site.fetch.apply_result(result, now, jitter) {
            let file = origin_file(&copy, &self.internal);
            match self.manager.set_origin_copy(&job.site, file, now) {
                Ok(()) => site.fetch.accept(copy, now),
                Err(findings) => {
                    let why = crate::printable::join(findings, "; ");
                    // Findings about a line of the file name its URL.
                    let is_named = why.contains(&copy.url);
                    site.fetch.record_held_back(if is_named {
                        why
                    } else {
                        format!("{}: {why}", copy.url)
                    });
                }
            }
        }
        self.store.put([site.to_stored().to_fact(&job.site, now)]);
        self.report_status(now);
    }

    /// The time until the next fetch is due, or until a site has waited too long for a first copy, at
    /// most `MAX_WAIT`.
    pub fn time_to_next_fetch(&self, now: Timestamp) -> Duration {
        if self
            .followed
            .values()
            .filter(|site| site.is_fetching)
            .count()
            >= MAX_FETCHES
        {
            return MAX_WAIT;
        }
        let due = self
            .followed
            .values()
            .filter(|site| !site.is_fetching)
            .map(|site| site.fetch.due)
            .min();
        // A site that stops waiting for a first copy changes its reported state.
        let awaited = self
            .followed
            .values()
            .filter(|site| site.fetch.copy().is_none());
        let patience = awaited
            .map(|site| site.fetch.wanted_since.plus(MAX_ORIGIN_WAIT))
            .filter(|over| *over > now)
            .min();
        let next = due.into_iter().chain(patience).min();
        next.map_or(MAX_WAIT, |next| next.since(now)).min(MAX_WAIT)
    }

    /// Whether the first fetch of each site without a copy has ended.
    fn is_first_round_done(&self) -> bool {
        self.followed
            .values()
            .all(|site| !site.is_fetching || site.fetch.copy().is_some())
    }

    /// Moves all moments if the wall clock was set or the machine slept: they are stored by the wall
    /// clock, for people and for the next start.
    fn follow_clock(&mut self, moment: Moment) {
        let wall_clock_offset = moment.wall_clock_offset();
        let by = wall_clock_offset
            .saturating_sub(*self.wall_clock_offset.get_or_insert(wall_clock_offset));
        if by.unsigned_abs() <= ROUNDING {
            return;
        }
        self.wall_clock_offset = Some(wall_clock_offset);
        for site in self.followed.values_mut() {
            site.fetch.apply_clock_step(by, moment.now);
        }
        let followed = self
            .followed
            .iter()
            .map(|(name, site)| site.to_stored().to_fact(name, moment.now));
        self.store.put(followed);
        self.manager.apply_clock_step(by, moment.now);
    }

    /// Follows new sites, and stops following sites that were removed or no longer read the origin's
    /// file.
    fn update_followed_sites(&mut self, now: Timestamp) {
        let snapshot = self.manager.snapshot();
        let sites = snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.reads_origin());
        let wanted: SitesByName<'_> = sites
            .map(|entry| (entry.site.name.as_str(), entry))
            .collect();
        // A site that takes over hosts also takes over the copy that it was compiled with.
        let followed = self.followed.values().map(|site| &site.fetch);
        let copies = followed.chain(self.previous.values().map(|copy| &copy.fetch));
        let copies: Vec<FetchState> = copies
            .filter(|fetch| fetch.copy().is_some())
            .cloned()
            .collect();
        let mut facts = self.drop_removed(&wanted, now);
        for (name, entry) in wanted {
            match self.followed.get_mut(name) {
                Some(site) if site.policy == entry.site.policy.source.text => {}
                Some(site) => facts.extend(
                    site.set_policy(entry, &copies, now)
                        .then(|| copy_fact(name, site, now)),
                ),
                None => facts.extend(self.follow_site(name, entry, &copies, now)),
            }
        }
        let removed = std::mem::take(&mut self.previous).into_keys();
        facts.extend(removed.map(|name| StoredCopy::removal_fact(&name, now)));
        // In one batch, so that a copy that moves between sites is stored with one of them at every
        // moment.
        self.store.put(facts);
        self.report_status(now);
    }

    /// Stops following sites that were removed, that no longer read the origin's file, or that
    /// changed between default site and policy. Returns the removals of their copies for the store.
    fn drop_removed(&mut self, wanted: &SitesByName<'_>, now: Timestamp) -> Vec<Fact> {
        // A policy file with the name of a default site is another site.
        let gone = self.followed.iter().filter(|(name, site)| {
            wanted.get(name.as_str()).is_none_or(|entry| {
                site.is_default_site != is_default_site_policy(&entry.site.policy)
            })
        });
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        let mut facts = Vec::new();
        for name in gone {
            self.followed.remove(&name);
            facts.push(StoredCopy::removal_fact(&name, now));
        }
        facts
    }

    /// Begins to follow a site, with its copy of the previous run, or with one of `copies`. Returns
    /// the fact to store; `None` if it is stored already, or there is no copy.
    fn follow_site(
        &mut self,
        name: &str,
        entry: &SiteEntry,
        copies: &[FetchState],
        now: Timestamp,
    ) -> Option<Fact> {
        let stored = self.previous.remove(name).map(|copy| copy.fetch);
        let site = FollowedSite::new(entry, stored.as_ref(), copies, now);
        // A failure is stored only after the first fetch.
        let is_storable = stored.is_some() || site.fetch.copy().is_some();
        let fact = (site.is_unconditional && is_storable).then(|| copy_fact(name, &site, now));
        self.followed.insert(name.to_owned(), site);
        fact
    }

    /// Reports the state of each followed site to the site manager, and logs those that changed.
    fn report_status(&mut self, now: Timestamp) {
        let mut reports = BTreeMap::new();
        // Of a server that is down one line is enough, however many sites it has.
        let mut known: Vec<_> = self
            .followed
            .values()
            .map(|site| site.reported.clone())
            .collect();
        let snapshot = self.manager.snapshot();
        for (name, site) in &mut self.followed {
            let Some(entry) = snapshot.entry_by_name(name) else {
                continue;
            };
            let (served, unavailable_until) = ServedRobotsKind::at(&entry.site, now);
            let state = site.fetch.state(MAX_ORIGIN_WAIT, now);
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
                if !site.fetch.is_server_down() || !known.contains(&report) {
                    site.log_state(name, state, served);
                    known.push(report.clone());
                }
                site.reported = report;
            }
        }
        self.manager.set_origin_reports(reports);
    }
}

/// The fact for the store: the copy of a followed site, or its removal if the site has none.
fn copy_fact(name: &str, site: &FollowedSite, now: Timestamp) -> Fact {
    match site.fetch.copy() {
        Some(_) => site.to_stored().to_fact(name, now),
        None => StoredCopy::removal_fact(name, now),
    }
}
