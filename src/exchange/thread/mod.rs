//! [`ExchangeThread`] runs the [`Exchange`] of facts (such as which crawler fetched which
//! robots.txt) with the other crawlgate instances (peers), in the background. Every 200 ms it runs
//! a turn, which reads and writes the shared store. Then it updates this instance (which sites are
//! paused, for example) with what peers reported. Before a site serves another robots.txt, the
//! publisher (`sites/publisher`) announces it to the peers through this thread.
//!
//! Locks: the publisher holds its own lock while it waits for the lock of the exchange. So a turn,
//! which holds the lock of the exchange, must not wait for the sites. Otherwise the publisher and
//! the turn would wait for each other.

mod instance_facts;

use super::{
    CONFIRM_TIMEOUT, Exchange, ExchangeStatus, ExchangeStore, ExchangeTime, FactOutbox, Member,
    NoAccusationReason, ObservationRestart, PreviousMembership, StoreDeadline, StoreIdentity,
    StoreOutage, TURN_INTERVAL,
};
use crate::clock::{Clock, Moment};
use crate::facts::{ExchangeMembership, Fact, FactSubscriber as _, PauseRecord, StoredFacts};
use crate::hash::Hash;
use crate::judge::PeerConfirmation;
use crate::locks::{lock, lock_within};
use crate::peers::ForgetError;
use crate::policy::{RobotsVersionId, SiteEntry, Snapshot};
use crate::publications::{PeerPublicationLogs, PublicationLog, VersionFile};
use crate::sites::{AnnounceError, PublicationSubscriber};
use crate::state::{PreviousRun, RestoredState, StateStore};
use crate::time::Timestamp;
use crate::upkeep::{Instance, RepeatingThread};
use arc_swap::ArcSwap;
use instance_facts::InstanceFacts;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long a start waits for the first turn, so that the first request for `/robots.txt` is
/// answered.
const FIRST_TURN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a publication waits for a running turn. Then it is tried again later, as while the
/// store cannot be reached.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a stop waits for the running turn, and then for the last report.
const LAST_TURN_TIMEOUT: Duration = Duration::from_secs(2);
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(3);

/// The exchange of this instance, with its thread.
pub struct ExchangeThread {
    shared: Arc<ExchangeThreadInner>,
    thread: Mutex<Option<RepeatingThread>>,
}

struct ExchangeThreadInner {
    core: Mutex<ExchangeCore>,
    instance: Arc<Instance>,
    state: StateStore,
    peers: Arc<PeerConfirmation>,
    announcing_since: Mutex<Option<Timestamp>>,
    begun_anew: Mutex<Option<ObservationRestart>>,
    membership: Mutex<ExchangeMembership>,
    /// What peers publish, while a reload runs here.
    peer_publications: Mutex<Option<PeerPublicationLogs>>,
    /// Changes of pauses at peers that the sites have not applied yet.
    peer_pauses: Mutex<Vec<Fact<PauseRecord>>>,
    deadline: StoreDeadline,
    /// When the running turn began.
    turn_began: Mutex<Option<Moment>>,
    /// The status after the last turn, so that a reader need not wait for the store.
    status: ArcSwap<ExchangeStatus>,
}

struct ExchangeCore {
    exchange: Exchange,
    store: Box<dyn ExchangeStore>,
}

/// What [`ExchangeThread::start`] needs from the server.
pub struct ExchangeOptions {
    /// The shared store.
    pub store: Box<dyn ExchangeStore>,
    /// The deadline of its calls.
    pub deadline: StoreDeadline,
    /// The name of this machine.
    pub host: String,
    /// The records that wait for peers, shared with the judge and the recorder.
    pub peers: Arc<PeerConfirmation>,
}

impl ExchangeThread {
    /// Starts the exchange. Call it before anything is served: until the store is reached,
    /// `/robots.txt` is answered with 503, and no crawler is accused. Waits at most half a second
    /// for the first turn.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        instance: Arc<Instance>,
        state: StateStore,
        remembered: &RestoredState,
        options: ExchangeOptions,
    ) -> io::Result<Arc<ExchangeThread>> {
        let (before, id) = previous_membership(remembered);
        let own = own_member(id, options.host, &instance);
        let (store_run, store_epoch) = before
            .identity
            .clone()
            .map(|identity| (identity.run_id, identity.epoch))
            .unwrap_or_default();
        let membership = ExchangeMembership {
            id: own.id.clone(),
            run: own.run.clone(),
            store_run,
            store_epoch,
            has_left: false,
        };
        let outbox = Arc::<FactOutbox>::default();
        state.subscribers.add(outbox.clone());
        // A store that lost its facts has none of them.
        for (at, release) in &remembered.facts.releases {
            outbox.notify(&Fact::set(*at, release.clone()));
        }
        // Until the first turn no crawler is accused.
        instance.ledger.set_peers_unknown(true);
        let progress = options.peers.progress.clone();
        // No publication changes before the threads of upkeep start.
        let (log, files) = instance.sites.publications();
        let mut exchange = Exchange::new(own, before, outbox.clone(), progress, log, files);
        exchange.record_start(exchange_time(&instance.clock));
        let status = exchange.status(exchange_time(&instance.clock));
        let shared = Arc::new(ExchangeThreadInner {
            core: Mutex::new(ExchangeCore {
                exchange,
                store: options.store,
            }),
            instance: instance.clone(),
            state,
            peers: options.peers,
            announcing_since: Mutex::default(),
            begun_anew: Mutex::default(),
            membership: Mutex::new(membership),
            peer_publications: Mutex::default(),
            peer_pauses: Mutex::default(),
            deadline: options.deadline,
            turn_began: Mutex::default(),
            status: ArcSwap::from_pointee(status),
        });
        shared.store_membership();
        instance
            .sites
            .subscribe(Box::new(StoreAnnouncer(Arc::downgrade(&shared))));
        let exchange = ExchangeThread {
            shared,
            thread: Mutex::default(),
        };
        let (first_turn_ended, first_turn) = channel();
        exchange.spawn_turns(Some(first_turn_ended))?;
        // Disconnected when the turn is over.
        let _ = first_turn.recv_timeout(FIRST_TURN_TIMEOUT);
        Ok(Arc::new(exchange))
    }

    /// Starts turns again after [`ExchangeThread::stop`], if no other process replaced this one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn resume(&self) -> io::Result<()> {
        self.shared.peers.set_confirmation_ended(false);
        self.shared.deadline.set(None);
        self.spawn_turns(None)
    }

    /// Starts the thread that runs a turn every 200 ms. It drops `first` after the first turn,
    /// which wakes a caller that waits on the other end.
    fn spawn_turns(&self, mut first: Option<Sender<()>>) -> io::Result<()> {
        let shared = self.shared.clone();
        *lock(&self.thread) = Some(RepeatingThread::start("exchange", move || {
            shared.run_turn();
            drop(first.take());
            TURN_INTERVAL
        })?);
        Ok(())
    }

    /// Returns the status after the last turn, with what changed since. If a turn has run for 5
    /// seconds, the store counts as away, and no crawler is accused. Does not wait for the store.
    pub fn status(&self) -> ExchangeStatus {
        let shared = &self.shared;
        let mut status = ExchangeStatus::clone(&shared.status.load());
        let Moment { now, monotonic } = shared.instance.clock.moment();
        status.begun_anew = lock(&shared.begun_anew).filter(|begun| begun.until > now);
        if let Some(began) = lock(&shared.turn_began)
            .filter(|began| monotonic.saturating_sub(began.monotonic) >= CONFIRM_TIMEOUT)
        {
            let error = format!(
                "the store did not answer everything that was asked at {}",
                began.now
            );
            status.away.get_or_insert(StoreOutage {
                since: began.now,
                error,
            });
            status
                .accuses_not
                .get_or_insert(NoAccusationReason::StoreAway);
        }
        status.announcement_waits_since = *lock(&shared.announcing_since);
        status.records_waiting = shared.peers.waiting_count();
        status
    }

    /// Declares an instance gone that will not come back. Waits at most half a second for the
    /// running turn.
    ///
    /// # Errors
    /// No other instance has this id, or the turn takes longer.
    pub fn forget(&self, id: &str) -> Result<(), ForgetError> {
        let core = lock_within(&self.shared.core, ANNOUNCEMENT_TIMEOUT);
        if core.ok_or(ForgetError::Busy)?.exchange.forget_member(id) {
            Ok(())
        } else {
            Err(ForgetError::UnknownInstance(id.to_owned()))
        }
    }

    /// Stops the turns without leaving, as when another process replaces this one. Waits at most
    /// two seconds for a running turn. Records that wait for peers are written as unproven. Returns
    /// whether turns ran.
    pub fn stop(&self) -> bool {
        let Some(thread) = lock(&self.thread).take() else {
            return false;
        };
        self.shared
            .deadline
            .set(Some(Instant::now() + LAST_TURN_TIMEOUT));
        thread.close();
        self.shared.flush_waiting();
        true
    }

    /// Reports everything to peers and leaves; nothing may be served any more. Takes a few seconds
    /// at most, and logs a failure. After [`ExchangeThread::stop`] it does nothing, because another
    /// process continues the membership.
    pub fn close(&self) {
        if !self.stop() {
            return;
        }
        let shared = &self.shared;
        shared.deadline.set(Some(Instant::now() + GOODBYE_TIMEOUT));
        let clock = &shared.instance.clock;
        let mut core = lock(&shared.core);
        let ExchangeCore { exchange, store } = &mut *core;
        let left = exchange.leave_store(store.as_mut(), exchange_time(clock));
        let was_member = exchange.has_joined;
        drop(core);
        match left {
            Ok(()) => lock(&shared.membership).has_left = true,
            // No peer waits for this instance.
            Err(_) if !was_member => {}
            Err(error) => tracing::warn!(
                "cannot tell the other instances that this one stops: {error}; they count no violations until it is \
                 back, or for 25 hours. To end that earlier, run \"crawlgate instances forget\""
            ),
        }
        shared.store_membership();
    }
}

/// The moment by the wall clock in milliseconds, and the monotonic time.
fn exchange_time(clock: &Clock) -> ExchangeTime {
    let since = clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ExchangeTime {
        milliseconds: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        monotonic: clock.moment().monotonic,
    }
}

impl ExchangeThreadInner {
    /// Writes the records that wait for peers as unproven, and closes the queue, so that no further
    /// record waits.
    fn flush_waiting(&self) {
        self.peers.set_confirmation_ended(true);
        self.instance
            .recorder
            .resolve_waiting(None, Duration::MAX, &self.instance.judge);
    }

    /// Runs one turn of the exchange, and applies its results to this instance: pauses and
    /// publications of peers, whether crawlers may be accused, and the waiting records that peers
    /// confirmed or refuted. Then updates the status.
    fn run_turn(&self) {
        let Instance {
            sites,
            ledger,
            judge,
            recorder,
            clock,
            ..
        } = &*self.instance;
        let asks = self.peers.waiting_count() > 0;
        let digest = policies_digest(&sites.snapshot());
        let mut core = lock(&self.core);
        *lock(&self.turn_began) = Some(clock.moment());
        let ExchangeCore { exchange, store } = &mut *core;
        exchange.own.policies = digest;
        let mut facts = InstanceFacts {
            instance: &self.instance,
            moment: clock.moment(),
            pauses: Vec::new(),
            begins_anew: false,
        };
        exchange.turn(store.as_mut(), &|| exchange_time(clock), &mut facts, asks);
        *lock(&self.turn_began) = None;
        let changed = exchange.take_peer_publications(exchange_time(clock));
        let settled = exchange.settled.clone();
        // The sites are not waited for under this lock.
        drop(core);
        if facts.begins_anew {
            self.record_restart();
        }
        self.apply_peer_pauses(facts.pauses);
        let knows_all = self.apply_peer_publications(changed);
        self.record_settled_store(settled);
        let moment = exchange_time(clock);
        let core = lock(&self.core);
        let hindrance = core.exchange.no_accusation_reason(moment);
        let confirmed = core.exchange.last_confirmed_entry(moment);
        drop(core);
        ledger.set_peers_unknown(hindrance.is_some());
        let settled =
            recorder.resolve_waiting(confirmed.filter(|_| knows_all), moment.monotonic, judge);
        let mut core = lock(&self.core);
        let totals = &mut core.exchange.totals;
        totals.confirmed += settled.confirmed;
        totals.refuted += settled.refuted;
        totals.unconfirmed += settled.unconfirmed;
        let status = core.exchange.status(moment);
        log_outage(self.status.load().away.as_ref(), &status);
        self.status.store(Arc::new(status));
    }

    /// Records and logs that observation begins anew, because it is unknown what crawlers were
    /// served before.
    fn record_restart(&self) {
        let Instance { sites, clock, .. } = &*self.instance;
        let at = clock.moment().now;
        sites.record_observation_gap(at);
        let until = at.plus(sites.max_cache_time());
        *lock(&self.begun_anew) = Some(ObservationRestart { at, until });
        tracing::warn!(
            "the store is another one than before, and no instance knows what was served \
             meanwhile. So crawlgate does not know which robots.txt crawlers have. Until {until} \
             at the latest, requests that an older file may allow are no violations (most copies \
             expire within a day)"
        );
    }

    /// Applies publications of peers: `changed`, or what waits from an earlier turn. While a reload
    /// runs, they wait for the next turn. Returns whether none waits any more.
    fn apply_peer_publications(&self, changed: Option<PeerPublicationLogs>) -> bool {
        let mut waiting = lock(&self.peer_publications);
        if changed.is_some() {
            *waiting = changed;
        }
        let Some(logs) = waiting.take() else {
            return true;
        };
        let Instance {
            sites,
            ledger,
            clock,
            ..
        } = &*self.instance;
        let now = clock.moment().now;
        match sites.apply_peer_logs(logs, now) {
            Ok(()) => ledger.apply_snapshot(&sites.snapshot(), now),
            Err(logs) => *waiting = Some(logs),
        }
        waiting.is_none()
    }

    /// Applies changes of pauses at peers, and those that wait from earlier turns. While a reload
    /// runs, they wait for the next turn.
    fn apply_peer_pauses(&self, pauses: Vec<Fact<PauseRecord>>) {
        let mut waiting = lock(&self.peer_pauses);
        waiting.extend(pauses);
        if !waiting.is_empty() {
            let Instance { sites, clock, .. } = &*self.instance;
            let applied = sites.apply_peer_pauses(std::mem::take(&mut waiting), clock.moment().now);
            *waiting = applied.err().unwrap_or_default();
        }
    }

    /// Stores in which shared store this instance is settled, if that changed. Does nothing while
    /// it is not settled.
    fn record_settled_store(&self, settled: Option<StoreIdentity>) {
        let Some(StoreIdentity { run_id, epoch }) = settled else {
            return;
        };
        let mut membership = lock(&self.membership);
        let has_changed = membership.store_run != run_id || membership.store_epoch != epoch;
        membership.store_run = run_id;
        membership.store_epoch = epoch;
        drop(membership);
        if has_changed {
            self.store_membership();
        }
    }

    /// Writes the membership (id, run, store, whether it has left) to the state store.
    fn store_membership(&self) {
        let fact = Fact::set(
            self.instance.clock.moment().now,
            lock(&self.membership).clone(),
        );
        self.state.commit_or_queue(vec![fact]);
    }
}

/// Logs an outage of the store when it begins (it was not `away` before), and when it ends. The status
/// has later errors of the same outage.
fn log_outage(away: Option<&StoreOutage>, status: &ExchangeStatus) {
    match (away, &status.away) {
        (None, Some(StoreOutage { since, error })) => tracing::error!(
            "{error}; crawlgate goes on without the store (since {since}): it counts no violations and {} until the \
             store can be used",
            match status.withholds_robots_txt_since {
                Some(_) => "answers /robots.txt with 503",
                None => "keeps the current robots.txt",
            }
        ),
        (Some(StoreOutage { since, .. }), None) => {
            tracing::info!("the store answers again, after an outage since {since}");
        }
        _ => {}
    }
}

/// Announces publications to peers. Weak, because the sites outlive the exchange.
struct StoreAnnouncer(Weak<ExchangeThreadInner>);

impl PublicationSubscriber for StoreAnnouncer {
    /// Announces a log in the shared store. Waits at most half a second for the running turn. After
    /// a failure the status shows since when an announcement waits.
    fn announce(&self, log: &PublicationLog, files: &[VersionFile]) -> Result<(), AnnounceError> {
        use AnnounceError::*;
        let Some(shared) = self.0.upgrade() else {
            return Err(Left);
        };
        let clock = &shared.instance.clock;
        let result = match lock_within(&shared.core, ANNOUNCEMENT_TIMEOUT) {
            Some(mut core) => {
                let ExchangeCore { exchange, store } = &mut *core;
                exchange
                    .announce(store.as_mut(), exchange_time(clock), log, files)
                    .map_err(|error| Store(error.to_string()))
            }
            None => Err(Busy),
        };
        let mut since = lock(&shared.announcing_since);
        match &result {
            Ok(()) => *since = None,
            Err(_) => drop(since.get_or_insert(clock.moment().now)),
        }
        result
    }

    fn published(&self, log: &PublicationLog, _sites: &[SiteEntry]) {
        if let Some(shared) = self.0.upgrade() {
            lock(&shared.core).exchange.log.set_log(log);
        }
    }
}

/// The membership that the previous run left in the state store, and the id of this instance: the
/// previous one, or a new random one.
fn previous_membership(remembered: &RestoredState) -> (PreviousMembership, String) {
    let known = remembered.facts.exchange_memberships.last();
    let known = known.map(|(_, membership)| membership);
    let identity = known
        .filter(|known| !known.store_epoch.is_empty())
        .map(|known| StoreIdentity {
            run_id: known.store_run.clone(),
            epoch: known.store_epoch.clone(),
        });
    let previous = remembered.previous_run;
    let is_clean = matches!(previous, PreviousRun::Clean { .. });
    let unreported_since = match previous {
        // The previous process may still serve what it had in force.
        _ if remembered.is_handed_over => previous.end(),
        PreviousRun::Unknown => known.map(|_| Timestamp(i64::MIN)),
        previous => previous.unknown_since(),
    };
    let before = PreviousMembership {
        run: known.map(|known| known.run.clone()),
        identity,
        has_left: is_clean && known.is_some_and(|known| known.has_left),
        has_observed: remembered.facts != StoredFacts::default(),
        unreported_since,
    };
    let id = known.map_or_else(
        || format!("{:016x}", RandomState::new().hash_one(0)),
        |known| known.id.clone(),
    );
    (before, id)
}

/// The member entry of this instance, with a new random run, and a digest of the crawler names of
/// the registry.
fn own_member(id: String, host: String, instance: &Instance) -> Member {
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
        crawlers: Hash::digest(&names).short_hex(),
        ..Member::default()
    }
}

/// A digest of the names and robots.txt versions of all sites in force. It is equal on instances
/// with the same policies.
fn policies_digest(snapshot: &Snapshot) -> String {
    let mut sites: Vec<(&str, RobotsVersionId)> = snapshot
        .sites()
        .iter()
        .map(|entry| (entry.site.name.as_str(), entry.site.robots_txt.version))
        .collect();
    sites.sort_unstable_by_key(|(name, _)| *name);
    let said: Vec<&[u8]> = sites
        .iter()
        .flat_map(|(name, version)| [name.as_bytes(), &version.0])
        .collect();
    Hash::digest(&said).short_hex()
}
