//! The thread that puts planned changes of policies into force, such as the beginning or the end of a pause: [`Scheduler`].
//! It sleeps until the next change is due. Must not know what changes.

use crate::admin::Operations;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The longest sleep. The clock may be set and policies may change meanwhile.
const LONGEST: Duration = Duration::from_secs(5);
/// The shortest sleep, so that a change that fails is not retried without a pause.
const SHORTEST: Duration = Duration::from_millis(50);

/// The running thread. It ends when this is dropped.
pub struct Scheduler(#[allow(dead_code, reason = "its end is what the thread waits for")] Sender<()>);

/// Starts the thread.
///
/// # Errors
/// The thread cannot be started.
pub fn start(operations: Arc<Operations>) -> std::io::Result<Scheduler> {
    let (alive, ended) = channel();
    std::thread::Builder::new().name("scheduler".into()).spawn(move || run(&operations, &ended))?;
    Ok(Scheduler(alive))
}

fn run(operations: &Operations, ended: &Receiver<()>) {
    let mut sleep = Duration::ZERO;
    while ended.recv_timeout(sleep) == Err(RecvTimeoutError::Timeout) {
        sleep = operations.keep_time().map_or(LONGEST, |next| next.clamp(SHORTEST, LONGEST));
    }
}
