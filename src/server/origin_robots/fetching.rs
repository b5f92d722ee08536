//! [`start`] runs [`OriginRobots`] in a thread. The thread starts the fetches that are due, each in
//! a thread of its own, and waits until one ends, a policy changes or another fetch is due.
//! [`FetchJob`] is one fetch of a robots.txt from one origin.

use super::{AT_ONCE, OriginRobots};
use crate::clock::Clock;
use crate::origin::robots::{FetchResult, RobotsRequest, Target, ask};
use crate::policy::Policy;
use crate::threads::spawn;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

enum Message {
    Changed,
    Finished(Arc<FetchJob>, FetchResult),
}

/// Starts the thread. Waits for the first fetches of sites that have no copy, for [`START_LIMIT`]
/// at most.
///
/// # Errors
/// No thread can be started.
pub fn start(robots: OriginRobots, clock: Clock) -> std::io::Result<()> {
    let (sender, messages) = sync_channel(AT_ONCE * 2);
    let changed = sender.clone();
    // If the channel is full, a message that waits says the same.
    robots
        .manager
        .on_change(move || drop(changed.try_send(Message::Changed)));
    let (first_round, is_over) = sync_channel(1);
    spawn("origin-robots", move || {
        run(robots, &clock, &sender, &messages, first_round)
    })?;
    let _ = is_over.recv_timeout(START_LIMIT);
    Ok(())
}

/// The loop of the thread, which never ends. Each fetch has a thread of its own, and one that
/// cannot be started counts as failed. Sends once to `ready` when the first round of fetches is
/// over.
fn run(
    mut robots: OriginRobots,
    clock: &Clock,
    sender: &SyncSender<Message>,
    messages: &Receiver<Message>,
    ready: SyncSender<()>,
) {
    let random = RandomState::new();
    let began = Instant::now();
    let mut ready = Some(ready);
    loop {
        for job in robots.begin_due(clock.moment()) {
            let job = Arc::new(job);
            let asked = job.clone();
            let finished = sender.clone();
            let started = spawn("origin-robots-fetch", move || {
                let result = asked.run();
                drop(finished.send(Message::Finished(asked, result)));
            });
            if let Err(error) = started {
                let result =
                    FetchResult::Unreachable(format!("no thread can be started: {error}").into());
                robots.finish(&job, result, clock.moment(), 1.0);
            }
        }
        if robots.first_round_is_over()
            && let Some(ready) = ready.take()
        {
            let _ = ready.try_send(());
        }
        if let Ok(Message::Finished(job, result)) =
            messages.recv_timeout(robots.idle_for(clock.now().into()))
        {
            let jitter =
                (random.hash_one((&job.site, began.elapsed())) >> 11) as f64 / (1u64 << 53) as f64;
            robots.finish(&job, result, clock.moment(), jitter);
        }
    }
}
