//! [`ProgressLine`] shows the progress of a long command, such as `audit`, in one line on standard
//! error. It prints nothing if standard error is not a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// A line that is overwritten.
pub struct ProgressLine {
    is_shown: bool,
    began: Instant,
    last: Option<Instant>,
}

impl ProgressLine {
    pub fn new() -> ProgressLine {
        ProgressLine {
            is_shown: io::stderr().is_terminal(),
            began: Instant::now(),
            last: None,
        }
    }

    /// Overwrites the line, unless that was done less than 200 ms ago. `text` gets the seconds since
    /// the beginning.
    pub fn update(&mut self, text: impl FnOnce(f64) -> String) {
        if self.is_shown && self.last.is_none_or(|last| last.elapsed() > MIN_INTERVAL) {
            self.last = Some(Instant::now());
            self.write(text);
        }
    }

    /// Overwrites the line.
    pub fn write(&self, text: impl FnOnce(f64) -> String) {
        if self.is_shown {
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{}",
                text(self.began.elapsed().as_secs_f64().max(0.001))
            );
        }
    }
}
