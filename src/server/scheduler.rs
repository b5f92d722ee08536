//! What goes by the clock, kept going: a thread that sleeps until the next switch of a policy.

use crate::admin::Operations;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The longest sleep: clocks are set, and policies change.
const LONGEST: Duration = Duration::from_secs(5);
/// The shortest, so that a switch that cannot be made is not tried without end.
const SHORTEST: Duration = Duration::from_millis(50);

/// Keeps the thread; dropped, it ends.
pub struct Switches(#[allow(dead_code, reason = "its end is what the thread waits for")] Sender<()>);

/// Starts it.
///
/// # Errors
/// The thread cannot be started.
pub fn start(operations: Arc<Operations>) -> std::io::Result<Switches> {
    let (alive, ended) = channel();
    std::thread::Builder::new().name("switches".into()).spawn(move || run(&operations, &ended))?;
    Ok(Switches(alive))
}

fn run(operations: &Operations, ended: &Receiver<()>) {
    let mut sleep = Duration::ZERO;
    while ended.recv_timeout(sleep) == Err(RecvTimeoutError::Timeout) {
        sleep = operations.keep_time().map_or(LONGEST, |next| next.clamp(SHORTEST, LONGEST));
    }
}
