//! [`ExchangeThread`] runs the exchange of facts with other instances of crawlgate. It connects the
//! `Exchange` with the sites, the ledger and the judge of this instance. Its thread reads and
//! writes the shared store every 200 ms (a turn). The publisher announces each publication through
//! it before the publication comes into force.
//!
//! Locks: the publisher holds its own lock while it announces. Therefore a turn never waits for the
//! sites while it holds the lock of the exchange: each would wait for the other.

mod away_log;
mod memory;

use super::{
    Away, Before, BegunAnew, CONFIRM_WITHIN, Deadline, Exchange, ExchangeStatus, Hindrance,
    Identity, Member, Now, Outbox, Store, TURN,
};
use crate::clock::{Clock, Moment};
use crate::facts::{ExchangeMembership, Fact, Pause, StoredFacts, Subscriber as _};
use crate::hash::Hash;
use crate::judge::PeerConfirmation;
use crate::locks::{lock, lock_within};
use crate::peers::ForgetError;
use crate::policy::{SiteEntry, Snapshot, Version};
use crate::publications::{OfOthers, PublicationLog, VersionFile};
use crate::sites::{AnnounceError, PublicationSubscriber};
use crate::state::{PreviousRun, Remembered, StateStore};
use crate::time::Timestamp;
use crate::upkeep::{Instance, Repeated};
use arc_swap::ArcSwap;
use away_log::AwayLog;
use memory::OfInstance;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long a start waits for its first turn, so that `/robots.txt` is answered from the first
/// request on.
const FIRST_TURN: Duration = Duration::from_millis(500);
/// How long a publication waits for a turn that goes on. Then it is tried again, as while the store
/// is away.
const ANNOUNCEMENT: Duration = Duration::from_millis(500);
/// How long a stop waits for the turn that goes on, and then for the goodbye.
const LAST_TURN: Duration = Duration::from_secs(2);
const GOODBYE: Duration = Duration::from_secs(3);

/// The exchange of this instance.
pub struct ExchangeThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<Repeated>>,
}

struct Shared {
    core: Mutex<Core>,
    instance: Arc<Instance>,
    state: StateStore,
    peers: Arc<PeerConfirmation>,
    announcing: Mutex<Option<Timestamp>>,
    begun_anew: Mutex<Option<BegunAnew>>,
    membership: Mutex<ExchangeMembership>,
    /// What other instances publish, while a reload is being made here.
    of_others: Mutex<Option<OfOthers>>,
    /// What operators did with pauses at other instances, until the sites have applied it.
    pauses: Mutex<Vec<Fact<Pause>>>,
    away: AwayLog,
    deadline: Deadline,
    /// When the turn began that goes on.
    turning: Mutex<Option<Moment>>,
    /// The status after the last turn, so that a reader need not wait for the store.
    status: ArcSwap<ExchangeStatus>,
}

struct Core {
    exchange: Exchange,
    store: Box<dyn Store>,
}

/// The store, and the name by which people know this instance.
pub struct ExchangeOptions {
    /// Where instances meet.
    pub store: Box<dyn Store>,
    /// The deadline of its answers.
    pub deadline: Deadline,
    /// The name of this machine.
    pub host: String,
    /// The other instances, as the judge and the recorder of this instance have them.
    pub peers: Arc<PeerConfirmation>,
}

impl ExchangeThread {
    /// Makes the instance one of several. To be called before anything is served: until the store
    /// is reached, `/robots.txt` is answered 503, and no crawler is accused. Waits half a second at
    /// most for the first turn.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        instance: Arc<Instance>,
        state: StateStore,
        remembered: &Remembered,
        options: ExchangeOptions,
    ) -> io::Result<Arc<ExchangeThread>> {
        let (before, id) = before(remembered);
        let me = me(id, options.host, &instance);
        let (store_run, store_epoch) = before
            .identity
            .clone()
            .map(|identity| (identity.run_id, identity.epoch))
            .unwrap_or_default();
        let membership = ExchangeMembership {
            id: me.id.clone(),
            run: me.run.clone(),
            store_run,
            store_epoch,
            has_left: false,
        };
        let outbox = Arc::<Outbox>::default();
        state.subscribers.add(outbox.clone());
        // A store that starts over has none of them.
        for (at, release) in &remembered.facts.releases {
            outbox.notify(&Fact::set(*at, release.clone()));
        }
        // Until the first turn no crawler is accused.
        instance.ledger.set_peers_unknown(true);
        let gauge = options.peers.gauge.clone();
        // Nothing changes what is published before the threads of upkeep begin.
        let (log, files) = instance.sites.published();
        let mut exchange = Exchange::new(me, before, outbox.clone(), gauge, log, files);
        exchange.begin(now(&instance.clock));
        let status = exchange.status(now(&instance.clock));
        let shared = Arc::new(Shared {
            core: Mutex::new(Core {
                exchange,
                store: options.store,
            }),
            instance: instance.clone(),
            state,
            peers: options.peers,
            announcing: Mutex::default(),
            begun_anew: Mutex::default(),
            membership: Mutex::new(membership),
            of_others: Mutex::default(),
            pauses: Mutex::default(),
            away: AwayLog::default(),
            deadline: options.deadline,
            turning: Mutex::default(),
            status: ArcSwap::from_pointee(status),
        });
        shared.keep_membership();
        instance
            .sites
            .subscribe(Box::new(Announcing(Arc::downgrade(&shared))));
        let exchange = ExchangeThread {
            shared,
            thread: Mutex::default(),
        };
        let (is_over, first_turn) = channel();
        exchange.run(Some(is_over))?;
        // Disconnected when the turn is over.
        let _ = first_turn.recv_timeout(FIRST_TURN);
        Ok(Arc::new(exchange))
    }

    /// Goes on after [`ExchangeThread::stop`]: no other process took the place of this one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn resume(&self) -> io::Result<()> {
        self.shared.peers.set_closed(false);
        self.shared.deadline.set(None);
        self.run(None)
    }

    /// Starts the thread that takes a turn every 200 ms. It drops `first` after its first turn, by
    /// which the caller notices the end of that turn.
    fn run(&self, mut first: Option<Sender<()>>) -> io::Result<()> {
        let turning = self.shared.clone();
        *lock(&self.thread) = Some(Repeated::start("exchange", move || {
            turning.turn();
            drop(first.take());
            TURN
        })?);
        Ok(())
    }

    /// The status after the last turn, with what changed since. If a turn has gone on for 5
    /// seconds, the store counts as away, and no crawler is accused. Does not wait for the store.
    pub fn status(&self) -> ExchangeStatus {
        let shared = &self.shared;
        let mut status = ExchangeStatus::clone(&shared.status.load());
        let Moment { now, lived } = shared.instance.clock.moment();
        status.begun_anew = lock(&shared.begun_anew).filter(|begun| begun.until > now);
        if let Some(began) = lock(&shared.turning)
            .filter(|began| lived.saturating_sub(began.lived) >= CONFIRM_WITHIN)
        {
            let error = format!(
                "the store has not answered everything that it was asked at {}",
                began.now
            );
            status.away.get_or_insert(Away {
                since: began.now,
                error,
                is_refused: false,
            });
            status.accuses_not.get_or_insert(Hindrance::StoreAway);
        }
        status.announcement_waits_since = *lock(&shared.announcing);
        status.records_waiting = shared.peers.waiting();
        status
    }

    /// Takes an instance for gone that will not come back. Waits half a second at most for the turn
    /// that goes on.
    ///
    /// # Errors
    /// No other instance has this id, or the turn takes longer.
    pub fn forget(&self, id: &str) -> Result<(), ForgetError> {
        let core = lock_within(&self.shared.core, ANNOUNCEMENT);
        if core.ok_or(ForgetError::Busy)?.exchange.forget(id) {
            Ok(())
        } else {
            Err(ForgetError::UnknownInstance(id.to_owned()))
        }
    }

    /// Stops without a goodbye: another process goes on in the place of this one. Records that wait
    /// for other instances are written as unproven.
    pub fn stop(&self) {
        self.end_turns();
    }

    /// Ends the thread; gives a turn that takes long two seconds. Records that wait are written as
    /// unproven. Returns whether the thread ran.
    fn end_turns(&self) -> bool {
        let Some(thread) = lock(&self.thread).take() else {
            return false;
        };
        self.shared.deadline.set(Some(Instant::now() + LAST_TURN));
        thread.close();
        self.shared.end_waiting();
        true
    }

    /// Tells everything to the others and leaves; nothing may be served any more. Takes a few
    /// seconds at most, and logs if others could not be told. After [`ExchangeThread::stop`] it
    /// does nothing: another process has the place of this one.
    pub fn close(&self) {
        if !self.end_turns() {
            return;
        }
        let shared = &self.shared;
        shared.deadline.set(Some(Instant::now() + GOODBYE));
        let clock = &shared.instance.clock;
        let (left, was_member) = {
            let mut core = lock(&shared.core);
            let Core { exchange, store } = &mut *core;
            (
                exchange.leave(store.as_mut(), now(clock)),
                exchange.has_joined,
            )
        };
        match left {
            Ok(()) => lock(&shared.membership).has_left = true,
            // No other instance waits for this one.
            Err(_) if !was_member => {}
            Err(error) => tracing::warn!(
                "cannot say goodbye to the other instances: {error}; they accuse no crawler until this instance is back, or \
                 for 25 hours (`crawlgate instances forget` ends that)"
            ),
        }
        shared.keep_membership();
    }
}

/// The moment by the wall clock in milliseconds, and in lived time.
fn now(clock: &Clock) -> Now {
    let since = clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now {
        milliseconds: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        lived: clock.moment().lived,
    }
}

impl Shared {
    /// Writes the records that wait for other instances, as unproven, and closes the queue: nothing
    /// will wait any more.
    fn end_waiting(&self) {
        self.peers.set_closed(true);
        self.instance
            .recorder
            .settle(None, Duration::MAX, &self.instance.judge);
    }

    /// Takes one turn of the exchange, and applies what came of it to this instance: pauses and
    /// publications of others, whether crawlers may be accused, and the waiting records that others
    /// confirm or refute. Then updates the status.
    fn turn(&self) {
        let Instance {
            sites,
            ledger,
            judge,
            recorder,
            clock,
            ..
        } = &*self.instance;
        let asks = self.peers.waiting() > 0;
        let digest = policies(&sites.snapshot());
        let (changed, settled, pauses, begins_anew) = {
            let mut core = lock(&self.core);
            *lock(&self.turning) = Some(clock.moment());
            let Core { exchange, store } = &mut *core;
            exchange.me.policies = digest;
            let mut memory = OfInstance::new(&self.instance);
            exchange.turn(store.as_mut(), &|| now(clock), &mut memory, asks);
            *lock(&self.turning) = None;
            (
                exchange.others(now(clock)),
                exchange.settled().cloned(),
                memory.pauses,
                memory.begins_anew,
            )
        };
        if begins_anew {
            self.begin_anew();
        }
        self.pause(pauses);
        let knows_all = self.publish_of_others(changed);
        self.note_store(settled);
        let moment = now(clock);
        let (hindrance, confirmed) = {
            let core = lock(&self.core);
            (
                core.exchange.hindrance(moment),
                core.exchange.confirmed(moment),
            )
        };
        ledger.set_peers_unknown(hindrance.is_some());
        let settled = recorder.settle(confirmed.filter(|_| knows_all), moment.lived, judge);
        let mut core = lock(&self.core);
        let totals = &mut core.exchange.totals;
        totals.confirmed += settled.confirmed;
        totals.refuted += settled.refuted;
        totals.unconfirmed += settled.unconfirmed;
        let status = core.exchange.status(moment);
        self.away.note(&status, moment.lived);
        self.status.store(Arc::new(status));
    }

    /// Records and logs that observation begins anew, because it is not known what crawlers were
    /// served before.
    fn begin_anew(&self) {
        let Instance { sites, clock, .. } = &*self.instance;
        let at = clock.moment().now;
        sites.history_was_broken(at);
        let until = at.plus(sites.longest_cached());
        *lock(&self.begun_anew) = Some(BegunAnew { at, until });
        tracing::warn!(
            "the store is not the one that this instance used before, and no instance that was there all that time shares it; \
             crawlgate cannot know which robots.txt crawlers were served before, and calls no request a violation that such a \
             copy may allow, until {until} at the latest (most copies expire within a day)"
        );
    }

    /// Puts what other instances publish into force: `changed`, or what waits from an earlier turn.
    /// Returns whether nothing waits any more. If a reload is being made, it waits for the next
    /// turn.
    fn publish_of_others(&self, changed: Option<OfOthers>) -> bool {
        let mut waiting = lock(&self.of_others);
        if changed.is_some() {
            *waiting = changed;
        }
        let Some(others) = waiting.take() else {
            return true;
        };
        let Instance {
            sites,
            ledger,
            clock,
            ..
        } = &*self.instance;
        let now = clock.moment().now;
        match sites.others_published(others, now) {
            Ok(()) => ledger.settle(&sites.snapshot(), now),
            Err(others) => *waiting = Some(others),
        }
        waiting.is_none()
    }

    /// Applies what operators did with pauses at other instances, with what waits from earlier
    /// turns. While a reload is being made, it waits for the next turn.
    fn pause(&self, pauses: Vec<Fact<Pause>>) {
        let mut waiting = lock(&self.pauses);
        waiting.extend(pauses);
        if !waiting.is_empty() {
            let Instance { sites, clock, .. } = &*self.instance;
            let applied = sites.apply_pauses(std::mem::take(&mut waiting), clock.moment().now);
            *waiting = applied.err().unwrap_or_default();
        }
    }

    /// Stores which store this instance is settled in, if that is another one than before. Does
    /// nothing while it is not settled.
    fn note_store(&self, settled: Option<Identity>) {
        let Some(Identity { run_id, epoch }) = settled else {
            return;
        };
        let mut membership = lock(&self.membership);
        let has_changed = membership.store_run != run_id || membership.store_epoch != epoch;
        membership.store_run = run_id;
        membership.store_epoch = epoch;
        drop(membership);
        if has_changed {
            self.keep_membership();
        }
    }

    /// Hands the membership (id, run, store, whether it has left) to the state store.
    fn keep_membership(&self) {
        let fact = Fact::set(
            self.instance.clock.moment().now,
            lock(&self.membership).clone(),
        );
        self.state.keep(vec![fact]);
    }
}

/// Tells other instances before something comes into force. The sites outlive the exchange.
struct Announcing(Weak<Shared>);

impl PublicationSubscriber for Announcing {
    /// Announces a log in the shared store. Waits half a second at most for the turn that goes on.
    /// Since the first failure the status shows that an announcement waits.
    fn announce(&self, log: &PublicationLog, files: &[VersionFile]) -> Result<(), AnnounceError> {
        let Some(shared) = self.0.upgrade() else {
            return Err(AnnounceError::Left);
        };
        let clock = &shared.instance.clock;
        let told = match lock_within(&shared.core, ANNOUNCEMENT) {
            Some(mut core) => {
                let Core { exchange, store } = &mut *core;
                exchange
                    .announce(store.as_mut(), now(clock), log, files)
                    .map_err(|error| AnnounceError::Store(error.to_string()))
            }
            None => Err(AnnounceError::Busy),
        };
        let mut since = lock(&shared.announcing);
        match &told {
            Ok(()) => *since = None,
            Err(_) => drop(since.get_or_insert(clock.moment().now)),
        }
        told
    }

    fn published(&self, log: &PublicationLog, _sites: &[SiteEntry]) {
        if let Some(shared) = self.0.upgrade() {
            lock(&shared.core).exchange.published(log);
        }
    }
}

/// What the run before left, by the state store, and the id of this instance: that of before, or a
/// new random one.
fn before(remembered: &Remembered) -> (Before, String) {
    let known = remembered
        .facts
        .exchange_memberships
        .last()
        .map(|(_, membership)| membership.clone());
    let identity = known.as_ref().filter(|known| !known.store_epoch.is_empty());
    let identity = identity.map(|known| Identity {
        run_id: known.store_run.clone(),
        epoch: known.store_epoch.clone(),
    });
    let previous = remembered.previous_run;
    let is_clean = matches!(previous, PreviousRun::Clean { .. });
    let unreported_since = match previous {
        // The process before may still serve what it had in force.
        _ if remembered.is_handed_over => previous.end(),
        PreviousRun::Unknown => known.as_ref().map(|_| Timestamp(i64::MIN)),
        previous => previous.unknown_since(),
    };
    let before = Before {
        run: known.as_ref().map(|known| known.run.clone()),
        identity,
        has_left: is_clean && known.as_ref().is_some_and(|known| known.has_left),
        has_observed: remembered.facts != StoredFacts::default(),
        unreported_since,
    };
    let id = known.map_or_else(
        || format!("{:016x}", RandomState::new().hash_one(0)),
        |known| known.id,
    );
    (before, id)
}

/// This instance, as other instances know it: with a new random run, and a digest of the names of
/// crawlers in the registry.
fn me(id: String, host: String, instance: &Instance) -> Member {
    let crawlers = instance.judge.registry.crawlers().iter();
    let names: Vec<&[u8]> = crawlers
        .flat_map(|crawler| [&crawler.id].into_iter().chain(&crawler.markers))
        .map(|name| name.as_bytes())
        .collect();
    let run = format!("{id}.{:08x}", RandomState::new().hash_one(1) >> 32);
    Member {
        id,
        run,
        host,
        crawlers: Hash::of(&names).short(),
        ..Member::default()
    }
}

/// A digest of the names and robots.txt versions of all sites in force. Instances with the same
/// policies have the same.
fn policies(snapshot: &Snapshot) -> String {
    let mut sites: Vec<(&str, Version)> = snapshot
        .sites()
        .iter()
        .map(|entry| (entry.site.name.as_str(), entry.site.robots_txt.version))
        .collect();
    sites.sort_unstable_by_key(|(name, _)| *name);
    let said: Vec<&[u8]> = sites
        .iter()
        .flat_map(|(name, version)| [name.as_bytes(), &version.0])
        .collect();
    Hash::of(&said).short()
}
