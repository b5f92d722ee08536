//! The simulated crawlers in the random tests of the exchange of facts between crawlgate instances
//! (such as which crawler fetched which robots.txt). Obedient crawlers request only what a
//! robots.txt in their cache allows. One crawler breaks the rules, so that a test can check that
//! crawlgate catches it.

use super::RandomLife;
use super::{GRACE, SECOND};
use crate::verdict::Kind;

impl RandomLife {
    pub(super) fn fetch_robots_txt(&mut self) {
        let Some(number) = self.any_running_instance() else {
            return;
        };
        let crawler = usize::from(self.dice.one_in(2));
        self.fetch_from(crawler, number);
    }

    pub(super) fn fetch_from(&mut self, crawler: usize, number: usize) {
        let now = self.now;
        let Some(instance) = self.instances.get_mut(&number) else {
            return;
        };
        if instance.serves_robots_txt(now) {
            let version = instance.serve_robots_txt(crawler, now);
            self.copies[crawler].0.push((version, now));
            self.log(|| format!("crawler {crawler} gets {version} from {number}"));
        }
    }

    /// An obedient crawler asks for what one of its copies allows.
    pub(super) fn request_allowed_page(&mut self) {
        let (crawler, now) = (usize::from(self.dice.one_in(2)), self.now);
        let Some(number) = self.any_running_instance() else {
            return;
        };
        let copies = &mut self.copies[crawler].0;
        copies.retain(|(_, at)| now - at <= GRACE - SECOND);
        if copies.is_empty() {
            return;
        }
        let (version, _) = *self.dice.pick(copies);
        self.request_by_version(version, crawler, number);
    }

    pub(super) fn request_by_version(&mut self, version: usize, crawler: usize, number: usize) {
        let now = self.now;
        let path = usize::try_from(self.dice.below(3)).expect("small");
        if version >> path & 1 == 1 {
            return;
        }
        let Some(instance) = self.instances.get_mut(&number) else {
            return;
        };
        let kind = instance.request_page(crawler, &format!("/p{path}/"), false, now);
        self.tally.requests += 1;
        self.tally.waited += u64::from(kind.is_none());
        self.tally.stale += u64::from(kind == Some(Kind::StaleCopy));
        self.log(|| {
            format!("crawler {crawler} asks {number} for /p{path}/ by {version}: {kind:?}")
        });
    }

    /// A version comes into force, a crawler gets it, and asks another instance before that one has
    /// heard of it.
    pub(super) fn race_publication(&mut self) {
        let (Some(first), Some(second)) =
            (self.any_running_instance(), self.any_running_instance())
        else {
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
            .for_each(|(request, word)| self.check_outcome(first, &request, word));
        self.fetch_from(crawler, first);
        if is_in_force && self.copies[crawler].0.last() == Some(&(version, now)) {
            (0..3).for_each(|_| self.request_by_version(version, crawler, second));
        }
    }

    pub(super) fn request_disallowed(&mut self) -> Option<Kind> {
        let (now, number) = (self.now, self.any_running_instance()?);
        self.instances
            .get_mut(&number)?
            .request_page(2, "/never/", true, now)
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
                instance.request_page(2, "/", false, now);
            }
        }
    }
}
