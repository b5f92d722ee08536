//! [`spawn`] starts a thread with a name, and returns an error if the system can start no more.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread with a name.
///
/// # Errors
/// The system starts no more threads.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(work)
}
