//! [`Repeated`]: a thread that repeats its work, after a pause that the work itself chooses.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that repeats its work. It ends when this is dropped.
pub struct Repeated {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Repeated {
    /// `work` says how long to wait until it is done again.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(name: &str, mut work: impl FnMut() -> Duration + Send + 'static) -> io::Result<Repeated> {
        let (alive, ended) = channel();
        let run = move || while ended.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {};
        Ok(Repeated { alive, thread: std::thread::Builder::new().name(name.into()).spawn(run)? })
    }

    /// Waits for the end of the thread.
    pub fn close(self) {
        drop(self.alive);
        // A thread that panicked has said so.
        let _ = self.thread.join();
    }
}
