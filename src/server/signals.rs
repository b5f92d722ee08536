//! [`catch`] catches signals, and [`serve`] handles them in a thread of their own. Pingora does not handle SIGHUP, which
//! would end the process. A reload has a thread of its own, because reading policies must not delay a stop.

use super::stop::Stop;
use crate::threads::spawn;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Catches the signals from now on. Those that arrive before [`serve`] wait.
pub fn catch() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Acts on signals as long as the process lives. `hang_up` runs in a thread of its own, so that a slow one does not delay
/// a stop. All SIGHUPs that arrive while it runs cause one more run.
pub fn serve(mut signals: Signals, stop: Arc<Stop>, hang_up: impl Fn() + Send + 'static) -> io::Result<()> {
    let (wake, woken) = sync_channel(1);
    let reload = move || {
        while woken.recv().is_ok() {
            hang_up();
        }
    };
    spawn("reload", reload)?;
    let work = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    // If the channel is full, a run that covers this signal is waiting.
                    let _ = wake.try_send(());
                }
                SIGINT => stop.now("SIGINT"),
                SIGQUIT => stop.graceful("SIGQUIT"),
                _ => stop.graceful("SIGTERM"),
            }
        }
    };
    spawn("signals", work).map(drop)
}
