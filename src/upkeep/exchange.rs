//! [`ExchangeThread`]: the exchange of one instance, connected to what it judges by. One thread takes a turn every 200 ms; the
//! publisher announces through it before anything comes into force. Must not know which store it is.
//!
//! Locks: the publisher holds its own while it announces. So a turn never asks the sites for anything while it holds that of
//! the exchange.

mod memory;
mod who;

use super::instance::Instance;
use super::repeated::Repeated;
use crate::clock::Clock;
use crate::exchange::{Exchange, ExchangeStatus, Gauge, Identity, Now, OfOthers, Outbox, Store, TURN, Totals};
use crate::history::PublicationLog;
use crate::judge::Others;
use crate::policy::{Snapshot, Version};
use crate::sites::{self, Announce, PauseWord, Publications};
use crate::state::{ExchangeMembership, Fact, Remembered, StateStore};
use crate::time::Timestamp;
use arc_swap::ArcSwap;
use memory::OfInstance;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, UNIX_EPOCH};

/// The exchange of this instance.
pub struct ExchangeThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<Repeated>>,
}

struct Shared {
    core: Mutex<Core>,
    instance: Arc<Instance>,
    state: StateStore,
    others: Arc<Others>,
    announcing: Mutex<Option<Timestamp>>,
    confirmations: Mutex<Totals>,
    membership: Mutex<ExchangeMembership>,
    /// A digest of the policies of a snapshot, by its generation.
    policies: Mutex<(u64, String)>,
    /// What other instances publish, while a reload is being made here.
    of_others: Mutex<Option<sites::Others>>,
    /// What operators said of pauses at other instances, until the sites have heard it.
    pauses: Mutex<Vec<PauseWord>>,
    /// How the exchange stood after the last turn: a status waits for no store.
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
    /// The name of this machine.
    pub host: String,
}

impl ExchangeThread {
    /// Makes the instance one of several. To be called before anything is served: until the store is reached, `/robots.txt` is
    /// answered 503, and no crawler is accused. Takes the first turn before it returns.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        (instance, state): (Arc<Instance>, StateStore),
        remembered: &Remembered,
        options: ExchangeOptions,
    ) -> io::Result<Arc<ExchangeThread>> {
        let (before, id) = who::before(remembered);
        let me = who::me(id, options.host, &instance);
        let mut membership = ExchangeMembership {
            id: me.id.clone(),
            run: me.run.clone(),
            store_run: String::new(),
            store_epoch: String::new(),
            has_left: false,
        };
        if let Some(Identity { run_id, epoch }) = before.identity.clone() {
            (membership.store_run, membership.store_epoch) = (run_id, epoch);
        }
        let (outbox, gauge) = (Arc::new(Outbox::default()), Arc::new(Gauge::default()));
        memory::tell(&instance, &outbox);
        let others = Arc::new(Others::new(gauge.clone()));
        instance.judge.go_by(others.clone());
        instance.recorder.go_by(others.clone());
        // Nothing changes what is published before the threads of upkeep begin.
        let Publications { log, files } = instance.sites.published();
        let exchange = Exchange::new(me, before, (outbox.clone(), gauge), log, files);
        let shared = Arc::new(Shared {
            core: Mutex::new(Core { exchange, store: options.store }),
            instance: instance.clone(),
            state,
            others,
            announcing: Mutex::default(),
            confirmations: Mutex::default(),
            membership: Mutex::new(membership),
            policies: Mutex::default(),
            of_others: Mutex::default(),
            pauses: Mutex::default(),
            status: ArcSwap::default(),
        });
        shared.keep_membership();
        instance.sites.announce_through(Box::new(Announcing(Arc::downgrade(&shared), outbox)));
        shared.turn();
        let exchange = ExchangeThread { shared, thread: Mutex::default() };
        exchange.resume()?;
        Ok(Arc::new(exchange))
    }

    /// Goes on after [`ExchangeThread::stop`]: no other process took the place of this one.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn resume(&self) -> io::Result<()> {
        let turning = self.shared.clone();
        let work = move || {
            turning.turn();
            TURN
        };
        *lock(&self.thread) = Some(Repeated::start("exchange", work)?);
        Ok(())
    }

    /// How the exchange stands.
    pub fn status(&self) -> ExchangeStatus {
        let shared = &self.shared;
        let mut status = ExchangeStatus::clone(&shared.status.load());
        let confirmations = *lock(&shared.confirmations);
        status.totals.confirmed = confirmations.confirmed;
        status.totals.refuted = confirmations.refuted;
        status.totals.unconfirmed = confirmations.unconfirmed;
        status.announcement_waits_since = *lock(&shared.announcing);
        status.records_waiting = shared.others.waiting();
        status
    }

    /// Takes an instance for gone that will not come back.
    ///
    /// # Errors
    /// No other instance has this id.
    pub fn forget(&self, id: &str) -> Result<(), String> {
        self.shared.core().exchange.forget(id)
    }

    /// Stops without a goodbye: another process goes on in the place of this one.
    pub fn stop(&self) {
        if let Some(thread) = lock(&self.thread).take() {
            thread.close();
        }
    }

    /// Tells everything and leaves. Nothing may be served any more. After [`ExchangeThread::stop`] another process has the
    /// place of this one, and there is nothing to say.
    pub fn close(&self) {
        let Some(thread) = lock(&self.thread).take() else { return };
        thread.close();
        let shared = &self.shared;
        let Instance { recorder, judge, clock, .. } = &*shared.instance;
        recorder.settle(None, Duration::MAX, judge);
        let left = {
            let mut core = shared.core();
            let Core { exchange, store } = &mut *core;
            exchange.leave(store.as_mut(), now(clock))
        };
        match left {
            Ok(()) => lock(&shared.membership).has_left = true,
            Err(error) => tracing::warn!(
                "cannot say goodbye to the other instances: {error}; they accuse no crawler until this instance is back, or \
                 for 25 hours (`crawlgate instances forget` ends that)"
            ),
        }
        shared.keep_membership();
    }
}

fn now(clock: &Clock) -> Now {
    let since = clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { milliseconds: i64::try_from(since.as_millis()).unwrap_or(i64::MAX), lived: clock.moment().lived }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    fn turn(&self) {
        let Instance { sites, ledger, judge, recorder, clock, .. } = &*self.instance;
        let asks = self.others.waiting() > 0;
        let digest = self.policies(&sites.snapshot());
        let (changed, settled, pauses, begins_anew) = {
            let mut core = self.core();
            let Core { exchange, store } = &mut *core;
            exchange.set_policies(digest);
            let mut memory = OfInstance::new(&self.instance);
            exchange.turn(store.as_mut(), &|| now(clock), &mut memory, asks);
            (exchange.others(now(clock)), exchange.settled().cloned(), memory.pauses, memory.begins_anew)
        };
        if begins_anew {
            sites.history_was_broken(clock.moment().now);
        }
        self.pause(pauses);
        let knows_all = self.publish_of_others(changed);
        self.note_store(settled);
        let moment = now(clock);
        let (hindrance, confirmed) = {
            let core = self.core();
            self.show(core.exchange.status(moment));
            (core.exchange.hindrance(moment), core.exchange.confirmed(moment))
        };
        ledger.is_in_the_dark(hindrance.is_some());
        let settled = recorder.settle(confirmed.filter(|_| knows_all), moment.lived, judge);
        let mut totals = lock(&self.confirmations);
        totals.confirmed += settled.confirmed;
        totals.refuted += settled.refuted;
        totals.unconfirmed += settled.unconfirmed;
    }

    /// Goes by what other instances publish; says whether that succeeded. Otherwise a reload is being made, and the next
    /// turn tries again.
    fn publish_of_others(&self, changed: Option<OfOthers>) -> bool {
        let mut waiting = lock(&self.of_others);
        if let Some(OfOthers { logs, files }) = changed {
            *waiting = Some(sites::Others { logs, versions: files });
        }
        let Some(others) = waiting.take() else { return true };
        let Instance { sites, ledger, clock, .. } = &*self.instance;
        let now = clock.moment().now;
        match sites.others_published(others, now) {
            Ok(()) => ledger.settle(&sites.snapshot(), now),
            Err(others) => *waiting = Some(others),
        }
        waiting.is_none()
    }

    /// Goes by what operators said of pauses at other instances. While a reload is being made, the next turn tries again.
    fn pause(&self, words: Vec<PauseWord>) {
        let mut waiting = lock(&self.pauses);
        waiting.extend(words);
        if !waiting.is_empty() {
            let now = self.instance.clock.moment().now;
            let heard = self.instance.sites.heard_of_pauses(std::mem::take(&mut waiting), now);
            *waiting = heard.err().unwrap_or_default();
        }
    }

    fn policies(&self, snapshot: &Snapshot) -> String {
        let mut known = lock(&self.policies);
        if known.1.is_empty() || known.0 != snapshot.generation {
            *known = (snapshot.generation, who::policies(snapshot));
        }
        known.1.clone()
    }

    /// Keeps how the exchange stands, for those who ask; says when the store went away and when it came back.
    fn show(&self, status: ExchangeStatus) {
        let status = Arc::new(status);
        let before = self.status.swap(status.clone());
        match (&before.away, &status.away) {
            (None, Some(away)) => tracing::error!(
                "{}; crawlgate goes on by what it knows, calls no request a violation, and keeps the robots.txt in force until \
                 the store answers",
                away.error
            ),
            (Some(away), None) => tracing::info!("the store answers again; it was away since {}", away.since),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    /// Remembers the store that this instance is settled in.
    fn note_store(&self, settled: Option<Identity>) {
        let Some(Identity { run_id, epoch }) = settled else { return };
        let is_news = {
            let mut membership = lock(&self.membership);
            let is_news = (&membership.store_run, &membership.store_epoch) != (&run_id, &epoch);
            (membership.store_run, membership.store_epoch) = (run_id, epoch);
            is_news
        };
        if is_news {
            self.keep_membership();
        }
    }

    fn keep_membership(&self) {
        let fact = Fact::set(self.instance.clock.moment().now, lock(&self.membership).clone());
        if self.state.commit(vec![fact.clone()]).is_err() {
            self.state.put([fact]);
        }
    }
}

/// Tells other instances before something comes into force. The sites outlive the exchange.
struct Announcing(Weak<Shared>, Arc<Outbox>);

impl Announce for Announcing {
    fn announce(&self, log: &PublicationLog, files: &[(Version, Arc<[u8]>)]) -> Result<(), String> {
        let Some(shared) = self.0.upgrade() else { return Err("this instance has left the exchange".to_owned()) };
        let clock = &shared.instance.clock;
        let told = {
            let mut core = shared.core();
            let Core { exchange, store } = &mut *core;
            exchange.announce(store.as_mut(), now(clock), log, files)
        };
        let mut since = lock(&shared.announcing);
        match &told {
            Ok(()) => *since = None,
            Err(_) => drop(since.get_or_insert(clock.moment().now)),
        }
        told
    }

    fn published(&self, log: &PublicationLog) {
        if let Some(shared) = self.0.upgrade() {
            shared.core().exchange.published(log);
        }
    }

    fn paused(&self, word: &PauseWord) {
        memory::tell_of_pause(word, &self.1);
    }
}
