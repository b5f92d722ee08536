//! The failures in the random tests of the exchange of facts between crawlgate instances (such as
//! which crawler fetched which robots.txt). Instances are killed, stopped or cut off from the store
//! that they share. The store is lost, or restored from a backup. Meanwhile operators give orders,
//! and robots.txt changes.

use super::super::life::InstanceDisk;
use super::super::simulated::ServerState;
use super::{COUNT, HOUR, RandomLife, SECOND};

impl RandomLife {
    pub(super) fn random_span(&mut self) -> i64 {
        let (most, unit) = *self.dice.pick(&[
            (10, SECOND),
            (60, SECOND),
            (60, 60 * SECOND),
            (30, HOUR * SECOND),
        ]);
        (1 + self.dice.below(most)) * unit
    }

    pub(super) fn random_trouble(&mut self) {
        let span = self.random_span();
        let number = usize::try_from(self.dice.below(COUNT as i64)).expect("small");
        let what = self.dice.below(12);
        self.cause_trouble(what, number, span);
    }

    fn cause_trouble(&mut self, what: i64, number: usize, span: i64) {
        let now = self.now;
        self.log(|| format!("trouble {what} with {number} for {:.1}", span as f64 / 1e3));
        match what {
            // The file of an origin changes by itself, as one instance fetches it.
            0 => {
                let version = usize::try_from(self.dice.below(8)).expect("small");
                self.rolled_out.push((number, now, version));
            }
            1 => {
                self.target = usize::try_from(self.dice.below(8)).expect("small");
                let delay = self.dice.below(20) * SECOND;
                let target = self.target;
                self.rolled_out = (0..COUNT)
                    .map(|number| (number, now + number as i64 * delay, target))
                    .collect();
            }
            2 => self.kill_instance(number, span),
            3 => {
                let is_cut_off = self.cut_off.get(&number).is_some_and(|until| *until > now);
                if !self.is_stopped(number)
                    && let Some(instance) = self.instances.remove(&number)
                {
                    let disk = instance.stop(&self.store, is_cut_off, now);
                    self.disks
                        .insert(number, (disk, now + span.min(30 * 60 * SECOND)));
                }
            }
            4 => drop(self.stopped.insert(number, now + span)),
            5 => drop(self.cut_off.insert(number, now + span)),
            6 => self.store.with_state(|inner| {
                inner.is_away = !inner.is_away;
                inner.loses_answers = 0;
            }),
            7 => self.store.with_state(|inner| {
                inner.loses_answers = if inner.loses_answers == 0 { 3 } else { 0 }
            }),
            8 => self.store.with_state(ServerState::flush),
            9 => self.store.with_state(ServerState::fail_over),
            10 => self.store.with_state(ServerState::restart_from_backup),
            _ => self.store.with_state(|inner| {
                inner.restart();
                inner.back_up();
            }),
        }
    }

    /// It is killed. It comes back with its state, or as another one, while its own is gone for
    /// good.
    pub(super) fn kill_instance(&mut self, number: usize, span: i64) {
        let Some(instance) = self.instances.remove(&number) else {
            return;
        };
        self.stopped.remove(&number);
        if self.instances.len() == 2 && self.dice.one_in(4) {
            // It is gone for good, without goodbye.
            return;
        }
        let at = self.now + span.min(2 * HOUR * SECOND);
        let disk = if self.dice.one_in(3) {
            InstanceDisk::default()
        } else {
            instance.disk
        };
        self.disks.insert(number, (disk, at));
    }

    /// One instance is down or sleeps. Meanwhile others, of which some are new, publish and serve,
    /// and are lost together with what the store had. Crawlers go by what they got from any of
    /// them.
    pub(super) fn lose_instances_and_store(&mut self) {
        let (number, from) = (
            usize::try_from(self.dice.below(COUNT as i64)).expect("small"),
            self.dice.below(3),
        );
        let others = [(number + 1) % COUNT, (number + 2) % COUNT];
        if self.dice.one_in(2) {
            self.store.with_state(ServerState::back_up);
        }
        let is_away = self.dice.one_in(3);
        self.store.with_state(|inner| inner.is_away = is_away);
        let span = *self.dice.pick(&[90, 600, HOUR, 8 * HOUR]) * SECOND;
        for other in others {
            if !self.dice.one_in(3) {
                self.replace_instance(other);
            }
        }
        self.pass_time(SECOND);
        self.cause_trouble(2 + from, number, span);
        for _ in 0..3 {
            self.race_publication();
            (0..3).for_each(|_| self.fetch_robots_txt());
            let pause = *self.dice.pick(&[1, 10, 120, HOUR]);
            self.skip_time(pause * SECOND);
            self.request_allowed_page();
        }
        if self.dice.one_in(2) {
            self.pass_time(20 * SECOND);
        }
        others
            .into_iter()
            .for_each(|other| self.replace_instance(other));
        self.store.with_state(if self.dice.one_in(3) {
            ServerState::restart_from_backup
        } else {
            ServerState::flush
        });
        self.store.with_state(|inner| inner.is_away = false);
        if self.instances.is_empty() && self.disks.is_empty() {
            self.disks
                .insert(number, (InstanceDisk::default(), self.now));
        }
        for _ in 0..12 {
            (0..6).for_each(|_| self.request_allowed_page());
            let pause = *self.dice.pick(&[2, 7, 60, HOUR]);
            self.skip_time(pause * SECOND);
        }
    }

    /// It leaves in order, or is lost, with its disk. Another one comes some seconds later, or
    /// none.
    fn replace_instance(&mut self, number: usize) {
        self.disks.remove(&number);
        let is_stopped = self.is_stopped(number);
        self.stopped.remove(&number);
        if let Some(instance) = self.instances.remove(&number) {
            let leaves = !is_stopped && !self.dice.one_in(3);
            self.log(|| format!("{number} is replaced, leaves: {leaves}"));
            if leaves {
                instance.stop(&self.store, false, self.now);
            }
        }
        if !self.dice.one_in(4) {
            let at = self.now + self.dice.below(20) * SECOND;
            self.disks.insert(number, (InstanceDisk::default(), at));
        }
    }

    /// A client requests a trap, or an operator releases marks, pauses the site, or ends that.
    pub(super) fn random_order(&mut self) {
        let (now, kind, last) = (
            self.now,
            self.dice.below(6),
            u8::try_from(self.dice.below(8)).expect("small"),
        );
        let Some(instance) = self
            .any_running_instance()
            .and_then(|number| self.instances.get_mut(&number))
        else {
            return;
        };
        let at = instance.own_time(now);
        match kind {
            0..=2 => instance.orders.mark([192, 0, 2, last].into(), at),
            3 => instance.orders.release(
                format!("192.0.2.{}/30", last & 4)
                    .parse()
                    .expect("a network"),
                at,
            ),
            _ => instance.orders.pause(kind == 4, at),
        }
        // Clocks are converted in whole seconds: what follows at once may come in either order.
        self.pass_time(5 * SECOND);
    }
}
