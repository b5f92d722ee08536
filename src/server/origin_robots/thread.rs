//! The thread that has the origins asked, a few at a time, when they are due.

use super::fetch_job::Answer;
use super::{AT_ONCE, OriginRobots};
use crate::clock::Clock;
use crate::origin::robots::FetchResult;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long the start waits for copies that were never there, so that the first crawler finds a file.
const START_LIMIT: Duration = Duration::from_secs(2);

enum Message {
    Changed,
    Answered(Answer),
}

/// Runs in a thread of its own from now on. Waits a little for what was never there.
///
/// # Errors
/// No thread can be started.
pub fn start(robots: OriginRobots, clock: Clock) -> std::io::Result<()> {
    let (sender, messages) = sync_channel(AT_ONCE * 2);
    let changed = sender.clone();
    // One message that waits says as much as many.
    robots.live.on_change(move || drop(changed.try_send(Message::Changed)));
    let (first_round, is_over) = sync_channel(1);
    std::thread::Builder::new()
        .name("origin-robots".into())
        .spawn(move || run(robots, &clock, &sender, &messages, first_round))?;
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
        for errand in robots.due(clock.moment()) {
            let (site, policy) = (errand.site.clone(), errand.policy.source.text.clone());
            let answers = sender.clone();
            let thread = std::thread::Builder::new().name("origin-robots-fetch".into());
            let started = thread.spawn(move || drop(answers.send(Message::Answered(errand.run()))));
            if let Err(error) = started {
                let heard = FetchResult::Unreachable(format!("no thread can be started: {error}"));
                robots.answered(Answer { site, heard, policy }, clock.moment(), 1.0);
            }
        }
        if robots.sites.values().all(|watched| !watched.asked || watched.life.copy().is_some())
            && let Some(ready) = ready.take()
        {
            let _ = ready.try_send(());
        }
        if let Ok(Message::Answered(answer)) = messages.recv_timeout(robots.rest(clock.now().into())) {
            let jitter = (random.hash_one((&answer.site, began.elapsed())) >> 11) as f64 / (1u64 << 53) as f64;
            robots.answered(answer, clock.moment(), jitter);
        }
    }
}
