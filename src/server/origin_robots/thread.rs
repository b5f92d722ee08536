//! [`start`] runs [`OriginRobots`] in a thread. The thread starts the fetches that are due, each in a thread of its own,
//! and waits until one ends, a policy changes or another fetch is due.

use super::fetch_job::FinishedJob;
use super::{AT_ONCE, OriginRobots};
use crate::clock::Clock;
use crate::origin::robots::FetchResult;
use crate::threads::spawn;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long the start waits for the first round of fetches, so that the first crawler gets a file and no 503.
const START_LIMIT: Duration = Duration::from_secs(2);

enum Message {
    Changed,
    Finished(FinishedJob),
}

/// Starts the thread. Waits for the first fetches of sites that have no copy, for [`START_LIMIT`] at most.
///
/// # Errors
/// No thread can be started.
pub fn start(robots: OriginRobots, clock: Clock) -> std::io::Result<()> {
    let (sender, messages) = sync_channel(AT_ONCE * 2);
    let changed = sender.clone();
    // If the channel is full, a message that waits says the same.
    robots.manager.on_change(move || drop(changed.try_send(Message::Changed)));
    let (first_round, is_over) = sync_channel(1);
    spawn("origin-robots", move || run(robots, &clock, &sender, &messages, first_round))?;
    let _ = is_over.recv_timeout(START_LIMIT);
    Ok(())
}

fn run(
    mut robots: OriginRobots,
    clock: &Clock,
    sender: &SyncSender<Message>,
    messages: &Receiver<Message>,
    ready: SyncSender<()>,
) {
    let (random, began) = (RandomState::new(), Instant::now());
    let mut ready = Some(ready);
    loop {
        for job in robots.begin_due(clock.moment()) {
            let (site, policy) = (job.site.clone(), job.policy.source.text.clone());
            let finished = sender.clone();
            let fetch = move || drop(finished.send(Message::Finished(job.run())));
            if let Err(error) = spawn("origin-robots-fetch", fetch) {
                let result = FetchResult::Unreachable(format!("no thread can be started: {error}").into());
                robots.finish(FinishedJob { site, result, policy }, clock.moment(), 1.0);
            }
        }
        if robots.first_round_is_over()
            && let Some(ready) = ready.take()
        {
            let _ = ready.try_send(());
        }
        if let Ok(Message::Finished(job)) = messages.recv_timeout(robots.idle_for(clock.now().into())) {
            let jitter = (random.hash_one((&job.site, began.elapsed())) >> 11) as f64 / (1u64 << 53) as f64;
            robots.finish(job, clock.moment(), jitter);
        }
    }
}
