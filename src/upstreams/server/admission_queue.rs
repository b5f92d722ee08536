//! [`AdmissionQueue`] limits how many requests the servers of an origin handle at one time. Each
//! server has a limited number of places, and a request at the server takes one of them. If no
//! place is free, requests of visitors may wait in a queue. Visitors go before crawlers: a crawler
//! gets a place only while crawlers have few places and no visitor waits.
//!
//! A visitor has a place, waits in the queue, or is turned away because the queue is full or the
//! wait took too long. A crawler has a place or is turned away. Places are atomic counters at the
//! servers. The lock of the queue is taken only while a visitor waits.

use super::client_counts::ClientCounts;
use super::{InFlightGuard, ReleasablePlace, Server, add_below};
use crate::crawlers::{CrawlerIndex, Registry};
use crate::locks::lock;
use crate::settings::CapacitySettings;
use crate::telemetry::RecentCount;
use crate::upstreams::hash::hash_client;
use crate::upstreams::outcomes::QueueStatus;
use Admission::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// One client's address gets at most a quarter of the places, ...
const PLACES_DIVISOR: usize = 4;
/// ... and a sixteenth of the queue.
const QUEUE_DIVISOR: usize = 16;
/// A crawler that was not turned away for this time counts as admitted.
const REFUSAL_GAP: Duration = Duration::from_secs(600);

/// The places of an origin, and the people who wait for them.
#[derive(Default)]
pub struct AdmissionQueue {
    settings: CapacitySettings,
    /// The length of the queue. It changes only under the lock, and is read without it.
    waiting_count: AtomicUsize,
    /// Requests that continue after they released their place, in all and by client address.
    released_count: AtomicUsize,
    released_by_client: ClientCounts,
    /// Servers that requests go to.
    servers: AtomicUsize,
    waiters: Mutex<WaitQueue>,
    places_by_client: ClientCounts,
    /// The number of waiting requests by client address.
    waiting_by_client: ClientCounts,
    /// The recent requests of crawlers and of people that were turned away.
    turned_away: [RecentCount; 2],
    /// The verified search crawlers that were turned away.
    refused_search_crawlers: Mutex<BTreeMap<CrawlerIndex, RefusalPeriod>>,
}

#[derive(Default)]
struct WaitQueue {
    waiters: VecDeque<Waiter>,
    next_number: u64,
    /// How often a place was given to a waiter.
    turns: u64,
}

struct Waiter {
    number: u64,
    client_hash: Option<u64>,
    sender: oneshot::Sender<InFlightGuard>,
}

/// The time for which a verified search crawler is turned away.
struct RefusalPeriod {
    since: Duration,
    last: Duration,
}

/// The facts about a request that choose its server and its place.
pub struct RoutingFacts<'a> {
    /// The requested host.
    pub host: &'a [u8],
    /// The request target as it was sent.
    pub target: &'a [u8],
    /// The address of its client; `None` for a proxy that speaks for many clients.
    pub client: Option<IpAddr>,
    /// Whether a crawler sends it.
    pub is_crawler: bool,
    /// The crawler, if it is verified.
    pub verified: Option<CrawlerIndex>,
    /// Whether the crawler is that of a search engine.
    pub is_search: bool,
    /// Whether it may be sent twice: GET, HEAD or OPTIONS, and no body.
    pub is_repeatable: bool,
    /// The monotonic time at which it arrived.
    pub monotonic: Duration,
}

/// The result of a request for a place.
pub enum Admission {
    Admitted(InFlightGuard),
    Queued(QueuedRequest),
    Refused(AdmissionRefusal),
}

/// Why a request gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionRefusal {
    /// A fixed word for metric and log: `turned_away` of a crawler, `queue_full` and
    /// `queue_timeout` of a person.
    pub reason: &'static str,
    /// The seconds that a person would wait for a place, at least one.
    pub retry_after: u32,
}

/// A request of a person in the queue. It leaves the queue when this is dropped.
pub struct QueuedRequest {
    receiver: oneshot::Receiver<InFlightGuard>,
    number: u64,
    queue: Arc<AdmissionQueue>,
}

impl QueuedRequest {
    /// Waits for a place.
    ///
    /// # Errors
    /// The wait took longer than the settings allow, or another client displaced this one in a full
    /// queue.
    pub async fn wait(mut self) -> Result<InFlightGuard, AdmissionRefusal> {
        match tokio::time::timeout(self.queue.settings.queue_timeout, &mut self.receiver).await {
            Ok(Ok(guard)) => Ok(guard),
            // Another client displaced this one.
            Ok(Err(_)) => Err(self.queue.refusal("queue_full")),
            Err(_) => Err(self.queue.refusal("queue_timeout")),
        }
    }
}

impl Drop for QueuedRequest {
    /// Leaves the queue, if it still waits.
    fn drop(&mut self) {
        let mut queue = lock(&self.queue.waiters);
        if let Ok(index) = queue
            .waiters
            .binary_search_by_key(&self.number, |waiter| waiter.number)
        {
            self.queue.remove(&mut queue, index);
        }
    }
}

impl AdmissionQueue {
    pub fn new(settings: CapacitySettings) -> Arc<AdmissionQueue> {
        Arc::new(AdmissionQueue {
            settings,
            ..AdmissionQueue::default()
        })
    }

    /// The number of places at all servers in use.
    fn total_places(&self) -> usize {
        let servers = self.servers.load(Relaxed).max(1);
        self.settings.connections.saturating_mul(servers)
    }

    /// Sets the servers in use, and gives their free places to waiting requests.
    pub fn set_servers(&self, servers: &[Arc<Server>]) {
        self.servers.store(servers.len(), Relaxed);
        servers.iter().for_each(|server| self.admit_waiting(server));
    }

    /// Admits a request to the first of these servers with a free place. Without one, a person is
    /// put into the queue, and a crawler is turned away; a crawler in `exempt` counts as a person. A
    /// person also has to wait while others wait. `now` is the time since the start.
    pub fn admit(
        self: &Arc<AdmissionQueue>,
        servers: &[&Arc<Server>],
        facts: &RoutingFacts<'_>,
        now: Duration,
    ) -> Admission {
        let client_hash = facts.client.map(hash_client);
        if facts.is_crawler
            && !facts
                .verified
                .is_some_and(|crawler| self.settings.exempt.contains(&crawler))
        {
            // Free places go first to waiting people, except those whose address has its quarter
            // already: otherwise one address could keep all crawlers away.
            servers.iter().for_each(|server| self.admit_waiting(server));
            let guard = self.try_admit(servers, client_hash, Some(self.settings.crawlers));
            return guard.map_or_else(|| Refused(self.refuse_crawler(facts, now)), Admitted);
        }
        let may_enter = self.waiting_count.load(SeqCst) == 0;
        if may_enter && let Some(guard) = self.try_admit(servers, client_hash, None) {
            return Admitted(guard);
        }
        self.enqueue(servers, client_hash)
    }

    /// Takes a place at the first of these servers that has one; `None` if none has, or if the
    /// client has a quarter of the places already. `crawlers` is for a crawler: how many places of a
    /// server crawlers may have.
    fn try_admit(
        &self,
        servers: &[&Arc<Server>],
        client_hash: Option<u64>,
        crawlers: Option<usize>,
    ) -> Option<InFlightGuard> {
        if !self.try_add_place(client_hash) {
            return None;
        }
        let Some(server) = servers
            .iter()
            .find(|server| server.try_add_in_flight(self.settings.connections, crawlers))
        else {
            self.places_by_client.remove(client_hash);
            return None;
        };
        Some(new_guard(server, client_hash, crawlers.is_some()))
    }

    /// Counts one more place for this client, unless it has a quarter of all places already. Returns
    /// whether it did. A client without an address has no limit.
    fn try_add_place(&self, client_hash: Option<u64>) -> bool {
        self.places_by_client.try_add(
            client_hash,
            fraction_at_least_one(self.total_places(), PLACES_DIVISOR),
        )
    }

    /// Puts a person into the queue. In a full queue, a waiter of an address with more waiters is
    /// displaced. Refuses if there is none, or if this address has a sixteenth of the queue.
    fn enqueue(
        self: &Arc<AdmissionQueue>,
        servers: &[&Arc<Server>],
        client_hash: Option<u64>,
    ) -> Admission {
        let mut queue = lock(&self.waiters);
        let length = self.settings.queue_length;
        // A displaced waiter no longer counts for its address.
        let has_space =
            queue.waiters.len() < length || self.displace_waiter(&mut queue, client_hash);
        if !has_space
            || !self
                .waiting_by_client
                .try_add(client_hash, fraction_at_least_one(length, QUEUE_DIVISOR))
        {
            return Refused(self.refusal("queue_full"));
        }
        let (sender, receiver) = oneshot::channel();
        let number = queue.next_number;
        queue.next_number += 1;
        queue.waiters.push_back(Waiter {
            number,
            client_hash,
            sender,
        });
        self.waiting_count.store(queue.waiters.len(), SeqCst);
        drop(queue);
        // A place that was freed before this request waited was given to nobody.
        servers.iter().for_each(|server| self.admit_waiting(server));
        Queued(QueuedRequest {
            receiver,
            number,
            queue: self.clone(),
        })
    }

    fn refusal(&self, reason: &'static str) -> AdmissionRefusal {
        let wait = self.settings.queue_timeout.as_millis().div_ceil(1000);
        AdmissionRefusal {
            reason,
            retry_after: wait.try_into().unwrap_or(u32::MAX),
        }
    }

    /// Makes space in a full queue: removes the last waiter of the address with the most waiters, if
    /// these are more than the newcomer's address would have. Returns whether it did.
    fn displace_waiter(&self, queue: &mut WaitQueue, newcomer: Option<u64>) -> bool {
        let counts = queue
            .waiters
            .iter()
            .map(|waiter| self.waiting_by_client.count(waiter.client_hash))
            .enumerate();
        let newcomer_count = self.waiting_by_client.count(newcomer) + 1;
        let largest = counts
            .max_by_key(|(_, count)| *count)
            .filter(|(_, count)| *count > newcomer_count);
        largest.is_some_and(|(index, _)| self.remove(queue, index).is_some())
    }

    /// Removes the waiter at this index from the queue and from the counts.
    fn remove(&self, queue: &mut WaitQueue, index: usize) -> Option<Waiter> {
        let waiter = queue.waiters.remove(index)?;
        self.waiting_by_client.remove(waiter.client_hash);
        self.waiting_count.store(queue.waiters.len(), SeqCst);
        Some(waiter)
    }

    /// Gives the free places of a server to waiters, until there is no place or no waiter that may
    /// have one. Skips clients that have left.
    fn admit_waiting(&self, server: &Arc<Server>) {
        while self.waiting_count.load(SeqCst) > 0
            && server.try_add_in_flight(self.settings.connections, None)
        {
            let Some(waiter) = self.pop_next() else {
                server.remove_in_flight(false);
                return;
            };
            if let Err(mut guard) = waiter
                .sender
                .send(new_guard(server, waiter.client_hash, false))
            {
                // The client has left. A normal release of the guard would call this loop again.
                guard.is_over = true;
                self.places_by_client.remove(waiter.client_hash);
                server.remove_in_flight(false);
            }
        }
    }

    /// Removes and returns the next waiter whose address may have one more place, which is counted
    /// for it; `None` if there is none. Every second time it is the first waiter of an address with
    /// the fewest places, so that a few addresses cannot delay all others. Otherwise it is the
    /// waiter that came first, so that no address waits for ever.
    fn pop_next(&self) -> Option<Waiter> {
        let mut queue = lock(&self.waiters);
        queue.turns = queue.turns.wrapping_add(1);
        let index = if queue.turns.is_multiple_of(2) {
            queue
                .waiters
                .iter()
                .position(|waiter| self.try_add_place(waiter.client_hash))?
        } else {
            let waiters = queue.waiters.iter().enumerate();
            let (index, waiter) = waiters
                .min_by_key(|(_, waiter)| self.places_by_client.count(waiter.client_hash))?;
            self.try_add_place(waiter.client_hash).then_some(index)?
        };
        self.remove(&mut queue, index)
    }

    /// Whether all places of a server are taken.
    pub fn is_full(&self, server: &Server) -> bool {
        server.in_flight() >= self.settings.connections
    }

    /// Takes a place at `server` for another attempt of a request, without a limit.
    pub fn admit_retry(
        &self,
        server: &Arc<Server>,
        client_hash: Option<u64>,
        is_crawler: bool,
    ) -> InFlightGuard {
        self.places_by_client.try_add(client_hash, u32::MAX);
        server.add_in_flight();
        if is_crawler {
            server.counters.crawlers.fetch_add(1, SeqCst);
        }
        new_guard(server, client_hash, is_crawler)
    }

    /// Counts a request that continues without its place. Returns false, and counts nothing, if
    /// there are as many such requests as places, or a quarter of that from the same address.
    pub fn try_add_released(&self, client_hash: Option<u64>) -> bool {
        let max = self.total_places();
        if !self
            .released_by_client
            .try_add(client_hash, fraction_at_least_one(max, PLACES_DIVISOR))
        {
            return false;
        }
        let is_admitted = add_below(&self.released_count, max);
        if !is_admitted {
            self.released_by_client.remove(client_hash);
        }
        is_admitted
    }

    /// Call when a request that continued without its place has ended.
    pub fn remove_released(&self, client_hash: Option<u64>) {
        self.released_count.fetch_sub(1, SeqCst);
        self.released_by_client.remove(client_hash);
    }

    /// Call when a request has left its place at `server`: uncounts it for its address, and gives
    /// the place to a waiter.
    pub fn free_place(&self, server: &Arc<Server>, client_hash: Option<u64>) {
        self.places_by_client.remove(client_hash);
        self.admit_waiting(server);
    }

    /// Turns a crawler away. A verified search crawler is recorded for the status.
    fn refuse_crawler(&self, facts: &RoutingFacts<'_>, now: Duration) -> AdmissionRefusal {
        if let Some(crawler) = facts.verified.filter(|_| facts.is_search) {
            let mut refused_search_crawlers = lock(&self.refused_search_crawlers);
            let known = refused_search_crawlers
                .entry(crawler)
                .or_insert(RefusalPeriod {
                    since: now,
                    last: now,
                });
            if now.saturating_sub(known.last) > REFUSAL_GAP {
                known.since = now;
            }
            known.last = now;
        }
        self.refusal("turned_away")
    }

    /// The number of people in the queue.
    pub fn waiting_count(&self) -> usize {
        self.waiting_count.load(Relaxed)
    }

    /// Counts a request that was turned away.
    pub fn count_turned_away(&self, is_crawler: bool, monotonic: Duration) {
        let [crawlers, people] = &self.turned_away;
        if is_crawler { crawlers } else { people }.add(monotonic);
    }

    /// The status of the queue, for an operator. `now` is the time since the start.
    pub fn status(&self, origin: String, now: Duration, monotonic: Duration) -> QueueStatus {
        let mut search_crawlers = Vec::new();
        for (crawler, refused) in lock(&self.refused_search_crawlers).iter() {
            if now.saturating_sub(refused.last) <= REFUSAL_GAP {
                let name = Registry::builtin().get(*crawler).name.clone();
                let seconds = refused.last.saturating_sub(refused.since).as_secs();
                search_crawlers.push((name, seconds));
            }
        }
        let [crawlers_turned_away, people_turned_away] = self
            .turned_away
            .each_ref()
            .map(|recent| recent.sum(monotonic));
        QueueStatus {
            origin,
            waiting: self.waiting_count(),
            crawlers_turned_away,
            people_turned_away,
            search_crawlers,
        }
    }
}

/// `all / divisor`, at least one.
fn fraction_at_least_one(all: usize, divisor: usize) -> u32 {
    u32::try_from((all / divisor).max(1)).unwrap_or(u32::MAX)
}

/// The guard of a place at `server` that was taken already.
fn new_guard(server: &Arc<Server>, client_hash: Option<u64>, is_crawler: bool) -> InFlightGuard {
    let place = ReleasablePlace {
        server: server.clone(),
        is_crawler,
        client_hash,
        is_released: AtomicBool::new(false),
    };
    InFlightGuard::with_place(server.clone(), Some(Arc::new(place)))
}
