//! Signals, in a thread of their own: SIGHUP would end the process otherwise (Pingora leaves it alone), and reading
//! policies must not hold up a worker.

use super::stop::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Takes the signals over from now on.
pub(super) fn catch() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Acts on them as long as the process lives. `hang_up` runs in a thread of its own, so that a long one does not hold
/// up a stop; signals that come meanwhile are one.
pub(super) fn serve(mut signals: Signals, stop: Arc<Stop>, hang_up: impl Fn() + Send + 'static) -> io::Result<()> {
    let (wake, woken) = sync_channel(1);
    let reload = move || {
        while woken.recv().is_ok() {
            hang_up();
        }
    };
    std::thread::Builder::new().name("reload".to_string()).spawn(reload)?;
    let work = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    // Full: one is waiting already, and will see what this one is about.
                    let _ = wake.try_send(());
                }
                SIGINT => stop.now(),
                _ => stop.graceful(),
            }
        }
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(work).map(drop)
}
