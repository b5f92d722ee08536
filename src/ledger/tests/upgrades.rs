//! Tests of the ledger (which robots.txt crawlers were served) in an upgrade, in which a new
//! process takes over while the previous one still answers requests ([`DrainingProcess`]). Neither
//! process may accuse an obedient crawler.

use super::*;
use crate::facts::{AnyFact, Fact, FactSubscriber};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A process that has handed over, with what it has told the next one.
pub struct DrainingProcess {
    ledger: Ledger,
    store: StateStore,
    entry: SiteEntry,
    history: PublicationHistory,
    told: Receiver<Fact>,
}

/// Passes on what happens.
struct FactSender(Sender<Fact>);

impl FactSubscriber for FactSender {
    fn notify(&self, fact: &Fact) {
        let _ = self.0.send(fact.clone());
    }
}

impl LedgerWorld {
    /// The steps 2 and 3 of an upgrade. The next process may begin with another version.
    pub fn upgrade(&mut self, version: Option<usize>) {
        let (tell, told) = channel();
        self.ledger.hand_over(Arc::new(FactSender(tell)));
        let (entry, history, moment) = (self.entry.clone(), self.history.clone(), self.moment());
        self.ledger.flush(&self.snapshot(), moment);
        if let Some(version) = version {
            self.publish(version);
        }
        let (next, store) = self.disk.hand_over(&self.snapshot(), moment);
        let ledger = std::mem::replace(&mut self.ledger, next);
        self.before = Some(DrainingProcess {
            ledger,
            store,
            entry,
            history,
            told,
        });
    }

    /// The next process dies after it has served a crawler, or before.
    pub fn fail_to_upgrade(&mut self, version: usize, served: Option<usize>) {
        self.upgrade(Some(version));
        if let Some(crawler) = served {
            self.fetch(crawler, 0);
        }
        let Some(DrainingProcess {
            ledger,
            store,
            entry,
            history,
            ..
        }) = self.before.take()
        else {
            return;
        };
        (self.entry, self.history, self.ledger, self.disk.store) = (entry, history, ledger, store);
        self.ledger.reclaim();
        self.disk.store.reclaim().expect("opened again");
        // It was told to go, so it may have served whatever the process before knows of it.
        self.disk.store.mark_incomplete();
        self.ledger.restart_observations(self.wall_time());
    }

    /// The next process hears what the one before has served.
    pub fn pass_facts_on(&self) {
        let told = self.before.iter().flat_map(|before| before.told.try_iter());
        for Fact { at, fact, .. } in told {
            if let AnyFact::ServedVersion(served) = fact {
                self.ledger
                    .record_predecessor_served(&self.snapshot(), &served, at);
            }
        }
    }

    /// The process before serves a crawler, if it still answers; which version.
    pub fn fetch_from_predecessor(&self, crawler: usize) -> Option<usize> {
        let before = self.before.as_ref()?;
        let claim = Registry::builtin().identify(user_agent(crawler).as_bytes());
        before.ledger.record_served(
            Registry::builtin(),
            &before.entry,
            HOSTS[0].as_bytes(),
            claim,
            self.wall_time(),
        );
        SITES
            .iter()
            .position(|site| Arc::ptr_eq(site, &before.entry.site))
    }

    /// It ends. If it dies, what it told last is lost.
    pub fn end_predecessor(&mut self, in_order: bool) {
        if in_order {
            self.pass_facts_on();
        }
        if let Some(before) = self.before.take() {
            before.store.transfer_lock();
            self.ledger
                .record_predecessor_end(&self.snapshot(), in_order, self.wall_time());
        }
    }

    /// Whatever crawlers have by now, of the process before or of the next one.
    pub fn predecessor_accuses_no_crawler(&self) -> bool {
        let Some(before) = &self.before else {
            return true;
        };
        let snapshot = snapshot_with_history(
            Snapshot::new(vec![before.entry.clone()], 0),
            &before.history,
        );
        let facts = |crawler: usize| RequestFacts {
            host: HOSTS[0].as_bytes(),
            target: b"/always/",
            method: b"GET",
            user_agent: user_agent(crawler).as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: self.wall_time(),
        };
        [0, 3].into_iter().all(|crawler| {
            let (facts, registry) = (facts(crawler), Registry::builtin());
            let claimant =
                SiteClaim::find(&snapshot, registry, &facts).expect("a site has the host");
            let (cached_versions, _) =
                before
                    .ledger
                    .cached_versions(registry, claimant, facts.host, self.moment(), false);
            let case = RequestToJudge {
                registry,
                facts,
                claimant,
                cached_versions,
            };
            decide_for(
                &case,
                RecentBehaviour::default(),
                &mut DecisionScratch::default(),
            )
            .kind
                != Kind::Violation
        })
    }
}

impl LedgerDisk {
    /// Another process opens the directory. Its ledger, and the store of the process before.
    fn hand_over(&mut self, snapshot: &Snapshot, moment: Moment) -> (Ledger, StateStore) {
        self.set_time(moment);
        let lock = self
            .store
            .hand_over()
            .expect("everything is written")
            .expect("a lock");
        let (shown, directory) = (
            self.shown.clone(),
            self.directory.as_deref().expect("a state directory"),
        );
        let now = Arc::new(move || *shown.lock().expect("shown"));
        let (store, remembered) = StateStore::take_over(directory, lock, now).expect("taken over");
        let (ledger, facts) =
            Ledger::open(store.clone(), &remembered, Vec::new(), snapshot, moment);
        store.begin(facts).expect("begun");
        store.commit_take_over().expect("settled");
        (ledger, std::mem::replace(&mut self.store, store))
    }
}

#[test]
fn copy_served_by_the_previous_process_counts_at_once() {
    for (in_order, told) in [(true, true), (true, false), (false, false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut world = observed_for_two_days(Some(directory.path()));
        world.upgrade(Some(15));
        world.pass_hours_in_use(20);
        assert_eq!(world.fetch_from_predecessor(0), Some(0));
        if told {
            world.pass_facts_on();
        }
        assert_eq!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::StaleCopy,
            "{in_order}, {told}"
        );
        world.end_predecessor(in_order);
        world.pass_hours_in_use(23);
        assert_eq!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::StaleCopy,
            "{in_order}, {told}"
        );
        // A process that died may have served every crawler.
        let other = world.request_kind(3, 0, "/p1/").0;
        assert_eq!(other == Kind::Violation, in_order, "{other:?}, {told}");
        world.pass_hours_in_use(2);
        assert_eq!(
            world.request_kind(0, 0, "/p1/").0,
            Kind::Violation,
            "{in_order}, {told}"
        );
    }
}

#[test]
fn clock_set_just_before_the_end_makes_no_violator() {
    for is_upgrade in [true, false] {
        for set in [16 * HOUR, -30 * HOUR] {
            let directory = tempfile::tempdir().expect("a directory");
            let mut world = observed_for_two_days(Some(directory.path()));
            world.fetch(0, 0);
            world.pass_hours_in_use(2);
            // Nothing notices that before the end.
            world.set += set;
            if is_upgrade {
                world.upgrade(Some(15));
                world.end_predecessor(true);
            } else {
                world.end_run(true);
                world.now += 12;
                world.publish(15);
                world.start_run();
            }
            world.pass_hours_in_use(7);
            assert_eq!(
                world.request_kind(0, 0, "/p1/").0,
                Kind::StaleCopy,
                "{is_upgrade}, {set} s"
            );
        }
    }
}

#[test]
fn violator_is_known_across_an_upgrade() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut world = observed_for_two_days(Some(directory.path()));
    assert_eq!(world.request_kind(0, 0, "/always/").0, Kind::Violation);
    world.upgrade(None);
    assert_eq!(
        world.request_kind(0, 0, "/always/").0,
        Kind::Violation,
        "every version closes it"
    );
    assert!(world.predecessor_accuses_no_crawler());
    world.end_predecessor(true);
    assert_eq!(world.request_kind(0, 0, "/always/").0, Kind::Violation);
}
