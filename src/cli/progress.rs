//! [`Progress`]: a line on standard error that shows how far a long command has got. It is shown
//! only on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The shortest time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(200);

/// The line of a command that has begun.
pub struct Progress {
    is_shown: bool,
    began: Instant,
    last: Option<Instant>,
}

impl Progress {
    /// Begins without a line.
    pub fn new() -> Progress {
        Progress {
            is_shown: io::stderr().is_terminal(),
            began: Instant::now(),
            last: None,
        }
    }

    /// Changes the line, unless it changed less than 200 ms ago; on no terminal never. `text` gets
    /// the seconds since the beginning.
    pub fn tell(&mut self, text: impl FnOnce(f64) -> String) {
        if self.is_shown && self.last.is_none_or(|last| last.elapsed() > PAUSE) {
            self.last = Some(Instant::now());
            self.say(text);
        }
    }

    /// Changes the line in any case.
    pub fn say(&self, text: impl FnOnce(f64) -> String) {
        if self.is_shown {
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{}",
                text(self.began.elapsed().as_secs_f64().max(0.001))
            );
        }
    }
}
