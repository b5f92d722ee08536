//! [`start`] makes [`OriginRobots`] a job of the scheduler. The job starts the fetches that are due,
//! each in a thread of its own; it is woken when one ends or a policy changes. [`FetchJob`] is one
//! fetch of a robots.txt from one origin.

use super::OriginRobots;
use crate::clock::Clock;
use crate::locks::lock;
use crate::origin::robots::{FetchResult, RobotsRequest, Target, ask};
use crate::policy::Policy;
use crate::scheduler::{Scheduler, Waker};
use crate::threads::spawn;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the start waits for the first round of fetches, so that the first crawler gets a file
/// and no 503.
const START_LIMIT: Duration = Duration::from_secs(2);

/// A fetch that is to run.
pub struct FetchJob {
    pub(super) site: String,
    pub(super) target: Option<Target>,
    /// Whether the settings have an origin. A decision service may have none; the policy is served
    /// alone then.
    pub(super) has_origins: bool,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// The policy in force when the fetch begins.
    pub(super) policy: Arc<Policy>,
}

impl FetchJob {
    /// Fetches the file. Blocks for 20 seconds at most. Without an origin for the site nothing is
    /// fetched: that is `Unreachable`, or `Nothing` if the settings have no origin at all.
    pub fn run(&self) -> FetchResult {
        match &self.target {
            None if !self.has_origins => FetchResult::Nothing {
                url: "/robots.txt".into(),
                reason:
                    "the decision service has no origin: name it with --origin, or write `robots: { origin: replace }`"
                        .into(),
            },
            None => FetchResult::Unreachable("no origin of the settings is for this site".into()),
            Some(target) => ask(&RobotsRequest {
                target,
                etag: self.etag.as_deref(),
                last_modified: self.last_modified.as_deref(),
                is_own: &|host| is_own(&self.policy, target, host),
            }),
        }
    }
}

/// Whether a host that a redirect names, with or without a port, is one of the site's own: the host
/// of the request, or one of the policy's hosts and patterns. A site for every host has no others.
fn is_own(policy: &Policy, target: &Target, host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, _)| name)
        .to_ascii_lowercase();
    host.eq_ignore_ascii_case(&target.host)
        || policy.hosts.iter().map(|host| &host.value).any(|pattern| {
            let before = name.strip_suffix(&pattern.name);
            before.is_some_and(|before| {
                if pattern.wildcard {
                    before.ends_with('.')
                } else {
                    before.is_empty()
                }
            })
        })
}

/// Adds the job to the scheduler. Waits for the first fetches of sites that have no copy, for
/// [`START_LIMIT`] at most.
pub fn start(robots: OriginRobots, clock: Clock, scheduler: &Scheduler) {
    let manager = robots.manager.clone();
    let fetching = Arc::new(Fetching {
        robots: Mutex::new(robots),
        clock,
        random: RandomState::new(),
        began: Instant::now(),
    });
    let (first_round, is_over) = sync_channel(1);
    let job = scheduler.add("origin-robots", move |job| {
        fetching.begin_due(job);
        let robots = lock(&fetching.robots);
        if robots.first_round_is_over() {
            // Nobody waits for the second one.
            let _ = first_round.try_send(());
        }
        Some(robots.idle_for(fetching.clock.now().into()))
    });
    manager.on_change(move || job.wake());
    let _ = is_over.recv_timeout(START_LIMIT);
}

/// What the job and its fetches share.
struct Fetching {
    robots: Mutex<OriginRobots>,
    clock: Clock,
    random: RandomState,
    began: Instant,
}

impl Fetching {
    /// Starts the fetches that are due. Each has a thread of its own, and one that cannot be
    /// started counts as failed.
    fn begin_due(self: &Arc<Fetching>, job: &Waker) {
        let due = lock(&self.robots).begin_due(self.clock.moment());
        for fetch in due.into_iter().map(Arc::new) {
            let fetching = self.clone();
            let job = job.clone();
            let started = fetch.clone();
            let thread = spawn("origin-robots-fetch", move || {
                fetching.finish(&started, started.run());
                job.wake();
            });
            if let Err(error) = thread {
                let error = format!("no thread can be started: {error}");
                self.finish(&fetch, FetchResult::Unreachable(error.into()));
            }
        }
    }

    fn finish(&self, fetch: &FetchJob, result: FetchResult) {
        let random = self.random.hash_one((&fetch.site, self.began.elapsed()));
        let jitter = (random >> 11) as f64 / (1u64 << 53) as f64;
        lock(&self.robots).finish(fetch, result, self.clock.moment(), jitter);
    }
}
