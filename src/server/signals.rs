//! Signals, in a thread of their own: SIGHUP would end the process otherwise (Pingora leaves it alone), and reading
//! policies must not hold up a worker.

use super::stop::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;

/// Takes the signals over from now on.
pub(super) fn catch() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Acts on them as long as the process lives.
pub(super) fn serve(mut signals: Signals, stop: Arc<Stop>, hang_up: impl Fn() + Send + 'static) -> io::Result<()> {
    let work = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => hang_up(),
                SIGINT => stop.now(),
                _ => stop.graceful(),
            }
        }
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(work).map(drop)
}
