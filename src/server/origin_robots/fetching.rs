//! [`start_fetching`] fetches the origins' own robots.txt files in the background, as a job of the
//! scheduler. The job starts a thread for each fetch that is due ([`FetchJob`]). The job runs again
//! when a fetch ends or a policy changes. [`OriginRobotsTracker`] keeps the fetched copies.

use super::OriginRobotsTracker;
use crate::clock::Clock;
use crate::locks::lock;
use crate::origin::robots::{FetchResult, OriginTarget, RobotsRequest, fetch_from_origin};
use crate::policy::Policy;
use crate::policy::model::HostPattern;
use crate::publications::pattern_covers;
use crate::scheduler::{JobWaker, Scheduler};
use crate::threads::spawn;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the start waits for the first round of fetches, so that the first crawler gets a file
/// and no 503.
const START_LIMIT: Duration = Duration::from_secs(2);

/// One fetch of a robots.txt.
pub struct FetchJob {
    pub site: String,
    pub target: Option<OriginTarget>,
    /// Whether the settings have an origin. A decision service may have none; then the policy is
    /// served alone.
    pub has_origins: bool,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// The policy in force when the fetch begins.
    pub policy: Arc<Policy>,
}

impl FetchJob {
    /// Fetches the file. Blocks for 20 seconds at most. Without an origin for the site the result is
    /// `Unreachable`; it is `NoFile` if the settings have no origin at all.
    pub fn run(&self) -> FetchResult {
        match &self.target {
            None if !self.has_origins => FetchResult::NoFile {
                url: "/robots.txt".into(),
                reason:
                    "the decision service has no origin. Name it with --origin, or write \"robots: { origin: replace }\""
                        .into(),
            },
            None => FetchResult::Unreachable("no origin in the settings serves this site".into()),
            Some(target) => fetch_from_origin(&RobotsRequest {
                target,
                path: "/robots.txt",
                etag: self.etag.as_deref(),
                last_modified: self.last_modified.as_deref(),
                is_own_host: &|host| is_own_host(&self.policy, target, host),
            }),
        }
    }
}

/// Whether the host of a redirect, with or without a port, belongs to the site: the host of the
/// request, or one of the policy's hosts and patterns.
fn is_own_host(policy: &Policy, target: &OriginTarget, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let asked = HostPattern {
        wildcard: false,
        name: name.to_ascii_lowercase(),
        port: None,
    };
    host.eq_ignore_ascii_case(&target.host)
        || policy
            .hosts
            .iter()
            .any(|known| pattern_covers(&known.value, &asked))
}

/// Adds the job to the scheduler. Waits for the first fetches of sites that have no copy, for
/// [`START_LIMIT`] at most.
pub fn start_fetching(robots: OriginRobotsTracker, clock: Clock, scheduler: &Scheduler) {
    let manager = robots.manager.clone();
    let fetches = Arc::new(FetchScheduler {
        robots: Mutex::new(robots),
        clock,
        random: RandomState::new(),
        began: Instant::now(),
    });
    let (first_round, is_over) = sync_channel(1);
    let job = scheduler.add("origin-robots", move |job| {
        fetches.start_due_fetches(job);
        let robots = lock(&fetches.robots);
        if robots.is_first_round_done() {
            // Later rounds have no receiver.
            let _ = first_round.try_send(());
        }
        Some(robots.time_to_next_fetch(fetches.clock.now().into()))
    });
    manager.on_change(move || job.wake());
    let _ = is_over.recv_timeout(START_LIMIT);
}

/// The state that the job and its fetches share.
struct FetchScheduler {
    robots: Mutex<OriginRobotsTracker>,
    clock: Clock,
    random: RandomState,
    began: Instant,
}

impl FetchScheduler {
    /// Starts the due fetches, each in a thread of its own. A fetch without a thread counts as failed.
    fn start_due_fetches(self: &Arc<FetchScheduler>, job: &JobWaker) {
        let due = lock(&self.robots).take_due_fetches(self.clock.moment());
        for fetch in due.into_iter().map(Arc::new) {
            let fetches = self.clone();
            let job = job.clone();
            let started = fetch.clone();
            let thread = spawn("origin-robots-fetch", move || {
                fetches.finish_fetch(&started, started.run());
                job.wake();
            });
            if let Err(error) = thread {
                let error = format!("no thread can be started: {error}");
                self.finish_fetch(&fetch, FetchResult::Unreachable(error.into()));
            }
        }
    }

    fn finish_fetch(&self, fetch: &FetchJob, result: FetchResult) {
        let random = self.random.hash_one((&fetch.site, self.began.elapsed()));
        let jitter = (random >> 11) as f64 / (1u64 << 53) as f64;
        lock(&self.robots).finish_fetch(fetch, result, self.clock.moment(), jitter);
    }
}
