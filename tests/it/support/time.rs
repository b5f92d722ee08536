//! A clock that the test controls: hours pass in no time (`crawlgate run --clock`).

use super::{Gate, Setup, eventually, read};
use std::fs;

impl Setup {
    /// With a clock that [`Gate::live_through`] and [`Gate::set_clock`] move.
    pub fn with_clock(self) -> Setup {
        let file = self.directory.path().join("clock");
        fs::write(&file, "lived 0s set 0s").expect("a clock");
        self.argument("--clock").argument(file.display())
    }
}

impl Gate {
    /// Lets seconds pass.
    pub fn live_through(&mut self, seconds: i64) {
        self.move_clock(seconds, 0);
    }

    /// Sets the clock forward, or back, as somebody with the rights to might.
    pub fn set_clock(&mut self, seconds: i64) {
        self.move_clock(0, seconds);
    }

    /// The same while nobody serves.
    pub fn write_clock(&self, lived: i64, set: i64) -> (i64, i64) {
        let text = read(&self.path("clock"));
        let numbers: Vec<i64> = text
            .split_whitespace()
            .filter_map(|word| word.strip_suffix('s').and_then(|number| number.parse().ok()))
            .collect();
        let (lived, set) = (numbers[0] + lived, numbers[1] + set);
        let new = self.path("new-clock");
        fs::write(&new, format!("lived {lived}s set {set}s")).expect("a clock");
        fs::rename(new, self.path("clock")).expect("the clock in its place");
        (lived, set)
    }

    fn move_clock(&mut self, lived: i64, set: i64) {
        let said = |gate: &Gate| gate.log.text().matches("developer's clock was moved").count();
        let before = said(self);
        self.write_clock(lived, set);
        eventually("the clock is moved", || (said(self) > before).then_some(()));
    }
}
