//! What happens to instances and the store in a random life, and what operators say in it.

use super::super::life::Disk;
use super::super::simulated::Inner;
use super::{COUNT, HOUR, Life, SECOND};

impl Life {
    pub(super) fn span(&mut self) -> i64 {
        let (most, unit) = *self.dice.pick(&[
            (10, SECOND),
            (60, SECOND),
            (60, 60 * SECOND),
            (30, HOUR * SECOND),
        ]);
        (1 + self.dice.below(most)) * unit
    }

    pub(super) fn trouble(&mut self) {
        let span = self.span();
        let number = usize::try_from(self.dice.below(COUNT as i64)).expect("small");
        let what = self.dice.below(12);
        self.trouble_with(what, number, span);
    }

    fn trouble_with(&mut self, what: i64, number: usize, span: i64) {
        let now = self.now;
        self.say(|| format!("trouble {what} with {number} for {:.1}", span as f64 / 1e3));
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
            2 => self.kill(number, span),
            3 => {
                let is_cut_off = self.cut_off.get(&number).is_some_and(|until| *until > now);
                if !self.is_stopped(number)
                    && let Some(instance) = self.instances.remove(&number)
                {
                    let disk = instance.end(&self.store, is_cut_off, now);
                    self.disks
                        .insert(number, (disk, now + span.min(30 * 60 * SECOND)));
                }
            }
            4 => drop(self.stopped.insert(number, now + span)),
            5 => drop(self.cut_off.insert(number, now + span)),
            6 => self.store.change(|inner| {
                inner.is_away = !inner.is_away;
                inner.loses_answers = 0;
            }),
            7 => self
                .store
                .change(|inner| inner.loses_answers = if inner.loses_answers == 0 { 3 } else { 0 }),
            8 => self.store.change(Inner::flush),
            9 => self.store.change(Inner::fail_over),
            10 => self.store.change(Inner::restart_from_backup),
            _ => self.store.change(|inner| {
                inner.restart();
                inner.back_up();
            }),
        }
    }

    /// It is killed. It comes back with its state, or as another one, while its own is gone for
    /// good.
    pub(super) fn kill(&mut self, number: usize, span: i64) {
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
            Disk::default()
        } else {
            instance.disk
        };
        self.disks.insert(number, (disk, at));
    }

    /// One instance is down or sleeps. Meanwhile others, of which some are new, publish and serve,
    /// and are lost together with what the store had. Crawlers go by what they got from any of
    /// them.
    pub(super) fn losses(&mut self) {
        let (number, from) = (
            usize::try_from(self.dice.below(COUNT as i64)).expect("small"),
            self.dice.below(3),
        );
        let others = [(number + 1) % COUNT, (number + 2) % COUNT];
        if self.dice.one_in(2) {
            self.store.change(Inner::back_up);
        }
        let is_away = self.dice.one_in(3);
        self.store.change(|inner| inner.is_away = is_away);
        let span = *self.dice.pick(&[90, 600, HOUR, 8 * HOUR]) * SECOND;
        for other in others {
            if !self.dice.one_in(3) {
                self.replace(other);
            }
        }
        self.pass(SECOND);
        self.trouble_with(2 + from, number, span);
        for _ in 0..3 {
            self.race();
            (0..3).for_each(|_| self.fetch());
            let pause = *self.dice.pick(&[1, 10, 120, HOUR]);
            self.later(pause * SECOND);
            self.obey();
        }
        if self.dice.one_in(2) {
            self.pass(20 * SECOND);
        }
        others.into_iter().for_each(|other| self.replace(other));
        self.store.change(if self.dice.one_in(3) {
            Inner::restart_from_backup
        } else {
            Inner::flush
        });
        self.store.change(|inner| inner.is_away = false);
        if self.instances.is_empty() && self.disks.is_empty() {
            self.disks.insert(number, (Disk::default(), self.now));
        }
        for _ in 0..12 {
            (0..6).for_each(|_| self.obey());
            let pause = *self.dice.pick(&[2, 7, 60, HOUR]);
            self.later(pause * SECOND);
        }
    }

    /// It leaves in order, or is lost, with its disk. Another one comes some seconds later, or
    /// none.
    fn replace(&mut self, number: usize) {
        self.disks.remove(&number);
        let is_stopped = self.is_stopped(number);
        self.stopped.remove(&number);
        if let Some(instance) = self.instances.remove(&number) {
            let leaves = !is_stopped && !self.dice.one_in(3);
            self.say(|| format!("{number} is replaced, leaves: {leaves}"));
            if leaves {
                instance.end(&self.store, false, self.now);
            }
        }
        if !self.dice.one_in(4) {
            let at = self.now + self.dice.below(20) * SECOND;
            self.disks.insert(number, (Disk::default(), at));
        }
    }

    /// A client requests a trap, or an operator releases marks, pauses the site, or ends that.
    pub(super) fn order(&mut self) {
        let (now, kind, last) = (
            self.now,
            self.dice.below(6),
            u8::try_from(self.dice.below(8)).expect("small"),
        );
        let Some(instance) = self
            .any()
            .and_then(|number| self.instances.get_mut(&number))
        else {
            return;
        };
        let at = instance.second(now);
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
        self.pass(5 * SECOND);
    }
}
