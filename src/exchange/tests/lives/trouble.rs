//! What happens to instances and the store in a random life, and what operators say in it.

use super::super::life::Disk;
use super::super::simulated::Inner;
use super::{COUNT, HOUR, Life, SECOND};

impl Life {
    pub(super) fn span(&mut self) -> i64 {
        let (most, unit) = *self.dice.pick(&[(10, SECOND), (60, SECOND), (60, 60 * SECOND), (30, HOUR * SECOND)]);
        (1 + self.dice.below(most)) * unit
    }

    pub(super) fn trouble(&mut self) {
        let (now, span) = (self.now, self.span());
        let number = usize::try_from(self.dice.below(COUNT as i64)).expect("small");
        let what = self.dice.below(12);
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
                self.rolled_out = (0..COUNT).map(|number| (number, now + number as i64 * delay, target)).collect();
            }
            2 => self.kill(number, span),
            3 => {
                let is_cut_off = self.cut_off.get(&number).is_some_and(|until| *until > now);
                if !self.is_stopped(number)
                    && let Some(instance) = self.instances.remove(&number)
                {
                    let disk = instance.end(&self.store, is_cut_off, now);
                    self.disks.insert(number, (disk, now + span.min(30 * 60 * SECOND)));
                }
            }
            4 => drop(self.stopped.insert(number, now + span)),
            5 => drop(self.cut_off.insert(number, now + span)),
            6 => self.store.change(|inner| {
                inner.is_away = !inner.is_away;
                inner.loses_answers = 0;
            }),
            7 => self.store.change(|inner| inner.loses_answers = if inner.loses_answers == 0 { 3 } else { 0 }),
            8 => self.store.change(Inner::flush),
            9 => self.store.change(Inner::fail_over),
            10 => self.store.change(Inner::restart_from_backup),
            _ => self.store.change(|inner| {
                inner.restart();
                inner.back_up();
            }),
        }
    }

    /// It is killed. It comes back with its state, or as another one, while its own is gone for good.
    pub(super) fn kill(&mut self, number: usize, span: i64) {
        let Some(instance) = self.instances.remove(&number) else { return };
        self.stopped.remove(&number);
        if self.instances.len() == 2 && self.dice.one_in(4) {
            // It is gone for good, without goodbye.
            return;
        }
        let at = self.now + span.min(2 * HOUR * SECOND);
        let disk = if self.dice.one_in(3) { Disk::default() } else { instance.disk };
        self.disks.insert(number, (disk, at));
    }

    /// A client requests a trap, or an operator releases marks, pauses the site, or ends that.
    pub(super) fn order(&mut self) {
        let (now, kind, last) = (self.now, self.dice.below(6), u8::try_from(self.dice.below(8)).expect("small"));
        let Some(instance) = self.any().and_then(|number| self.instances.get_mut(&number)) else { return };
        let at = instance.second(now);
        match kind {
            0..=2 => instance.orders.mark([192, 0, 2, last].into(), at),
            3 => instance.orders.release(format!("192.0.2.{}/30", last & 4).parse().expect("a network"), at),
            _ => instance.orders.pause(kind == 4, at),
        }
        // Clocks are converted in whole seconds: what follows at once may come in either order.
        self.pass(5 * SECOND);
    }
}
