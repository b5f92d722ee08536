//! What befalls a life: pauses, stops, crashes, a state that is lost, clocks that are set; and what
//! crawlgate can know then.

use super::*;

impl FetchState {
    pub fn pause_or_resume(&mut self) {
        let command: &[&str] = if self.paused {
            &["resume"]
        } else {
            &["pause", "--all", "--robots-txt"]
        };
        self.note(command.join(" "));
        // A pause may have ended by itself.
        let done = self.gate.command(command).status.success();
        assert!(done || self.paused);
        match self.paused {
            true => self.no_503_any_more(),
            false => self.unavailable.push((self.now(), f64::INFINITY)),
        }
        self.paused = !self.paused;
    }

    fn no_503_any_more(&mut self) {
        let now = self.now();
        self.unavailable
            .iter_mut()
            .for_each(|(_, until)| *until = until.min(now));
    }

    pub fn restart(&mut self) {
        let (crash, lose_state) = (self.random.percent(50), self.random.percent(10));
        let down = if self.random.percent(80) {
            self.random.between(1, 50)
        } else {
            self.random.between(90, 5 * HOUR)
        };
        let rules = self
            .random
            .percent(30)
            .then(|| some_rules(&mut self.random));
        let policy = rules
            .as_ref()
            .map(|rules| rules.policy(&HOSTS.join(", "), ""));
        let state = if lose_state {
            ", the state is lost"
        } else {
            ""
        };
        let says = rules.as_ref().map(said);
        self.note(format!(
            "{}, {down} s{state}, policy: {says:?}",
            if crash { "kill -9" } else { "a stop" }
        ));
        self.gate
            .restart(if crash { "KILL" } else { "TERM" }, |gate| {
                gate.write_clock(down, 0);
                if let Some(policy) = policy {
                    gate.write_policy("shop", &policy);
                }
                if lose_state {
                    std::fs::remove_dir_all(gate.path("state")).expect("the state is removed");
                }
            });
        self.passed += down;
        self.accused = 0;
        let now = self.now();
        if let Some(says) = says {
            self.comes_into_force(says);
        }
        if crash {
            self.serve_everyone_since(down as f64);
        }
        if lose_state {
            (self.known_since, self.told_apart_since, self.paused) = (now, now, false);
            self.no_503_any_more();
        }
        // After a crash it depends on what was written when.
        if crash || lose_state || down > 55 {
            self.watched_since = [now; 2];
        }
        if down > 60 {
            // Another server stood in, and allowed everything.
            for copies in self.copies.iter_mut().flatten() {
                let at = now - down as f64 / 2.0;
                copies.push(Copy {
                    said: Said::default(),
                    at,
                    served: at,
                    validators: None,
                });
            }
        }
    }

    /// Nobody knows what was served in the last second before so many others, or in these.
    pub fn serve_everyone_since(&mut self, seconds: f64) {
        let now = self.now();
        let lately = self
            .before
            .iter()
            .filter(|(_, until)| now - until <= seconds + 2.0 * MARGIN);
        let lately: Vec<Said> = lately
            .map(|(said, _)| said.clone())
            .chain([self.in_force.clone()])
            .collect();
        for host in 0..2 {
            let held = lately.iter().map(|said| SupersededVersion {
                said: said.clone(),
                host,
                cache: None,
                at: now,
            });
            self.held.extend(held);
        }
    }

    /// As time servers do it: nobody notices.
    pub fn nudge_clock(&mut self) {
        let seconds = if self.nudged { 3 } else { -3 };
        self.note(format!("the clock is set by {seconds} s"));
        self.gate.set_clock(seconds);
        self.nudged = !self.nudged;
    }

    pub fn set_clock(&mut self) {
        let noticed = |life: &FetchState| life.gate.log.text().matches("set_by=").count();
        let seconds = self.random.between(-40 * HOUR, 40 * HOUR);
        if seconds.abs() < MINUTE {
            return;
        }
        self.note(format!("the clock is set by {seconds} s"));
        let before = noticed(self);
        self.gate.set_clock(seconds);
        eventually("it is noticed", || (noticed(self) > before).then_some(()));
        let now = self.now();
        self.watched_since = [now; 2];
        self.set += seconds.unsigned_abs() as f64;
    }
}
