//! What crawlers do in a random life: obedient ones go by a copy that they were served, and one
//! violates.

use super::Life;
use super::{GRACE, SECOND};
use crate::verdict::Kind;

impl Life {
    pub(super) fn fetch(&mut self) {
        let Some(number) = self.any() else { return };
        let crawler = usize::from(self.dice.one_in(2));
        self.fetch_from(crawler, number);
    }

    pub(super) fn fetch_from(&mut self, crawler: usize, number: usize) {
        let now = self.now;
        let Some(instance) = self.instances.get_mut(&number) else {
            return;
        };
        if instance.speaks(now) {
            let version = instance.serve(crawler, now);
            self.copies[crawler].0.push((version, now));
            self.say(|| format!("crawler {crawler} gets {version} from {number}"));
        }
    }

    /// An obedient crawler asks for what one of its copies allows.
    pub(super) fn obey(&mut self) {
        let (crawler, now) = (usize::from(self.dice.one_in(2)), self.now);
        let Some(number) = self.any() else { return };
        let copies = &mut self.copies[crawler].0;
        copies.retain(|(_, at)| now - at <= GRACE - SECOND);
        if copies.is_empty() {
            return;
        }
        let (version, _) = *self.dice.pick(copies);
        self.obey_by(version, crawler, number);
    }

    pub(super) fn obey_by(&mut self, version: usize, crawler: usize, number: usize) {
        let now = self.now;
        let path = usize::try_from(self.dice.below(3)).expect("small");
        if version >> path & 1 == 1 {
            return;
        }
        let Some(instance) = self.instances.get_mut(&number) else {
            return;
        };
        let kind = instance.ask(crawler, &format!("/p{path}/"), false, now);
        self.tally.requests += 1;
        self.tally.waited += u64::from(kind.is_none());
        self.tally.stale += u64::from(kind == Some(Kind::StaleCopy));
        self.say(|| {
            format!("crawler {crawler} asks {number} for /p{path}/ by {version}: {kind:?}")
        });
    }

    /// A version comes into force, a crawler gets it, and asks another instance before that one has
    /// heard of it.
    pub(super) fn race(&mut self) {
        let (Some(first), Some(second)) = (self.any(), self.any()) else {
            return;
        };
        let (crawler, now) = (usize::from(self.dice.one_in(2)), self.now);
        let version = usize::try_from(self.dice.below(8)).expect("small");
        let is_cut_off = self.cut_off.get(&first).is_some_and(|until| *until > now);
        let Some(instance) = self.instances.get_mut(&first) else {
            return;
        };
        instance.wanted = version;
        let over = instance.turn(&self.store, is_cut_off, now);
        let is_in_force = instance.version == version;
        over.into_iter()
            .for_each(|(request, word)| self.recorded(first, &request, word));
        self.fetch_from(crawler, first);
        if is_in_force && self.copies[crawler].0.last() == Some(&(version, now)) {
            (0..3).for_each(|_| self.obey_by(version, crawler, second));
        }
    }

    pub(super) fn violate(&mut self) -> Option<Kind> {
        let (now, number) = (self.now, self.any()?);
        self.instances
            .get_mut(&number)?
            .ask(2, "/never/", true, now)
    }

    /// Keeps the host in use.
    pub(super) fn visit_all(&mut self) {
        let (now, all) = (self.now, self.instances.keys().copied().collect::<Vec<_>>());
        for number in all
            .into_iter()
            .filter(|number| !self.is_stopped(*number))
            .collect::<Vec<_>>()
        {
            if let Some(instance) = self.instances.get_mut(&number) {
                instance.ask(2, "/", false, now);
            }
        }
    }
}
