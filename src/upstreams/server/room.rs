//! [`Room`] limits how many requests are open at the servers of an origin (a request at a server
//! has a place), and holds the queue of people who wait for a place. People go before crawlers: a
//! crawler gets a place only while crawlers have few of them and no person waits for it.
//!
//! A person has a place, waits in the queue, or is turned away because the queue is full or the
//! wait is over. A crawler has a place or is turned away. Places are atomic counters at the
//! servers; the lock is taken only while somebody waits.

use super::shares::Shares;
use super::{Held, Place, Server, add_below};
use crate::crawlers::{CrawlerIndex, Registry};
use crate::locks::lock;
use crate::settings::PlaceSettings;
use crate::telemetry::Recent;
use crate::upstreams::hash::of_client;
use crate::upstreams::tally::QueueStatus;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One client's address takes at most this part of the places, ...
const PART_OF_PLACES: usize = 4;
/// ... and this part of the queue.
const PART_OF_QUEUE: usize = 16;
/// The assumed duration of a request while none has ended, in microseconds.
const UNKNOWN: u64 = 500_000;
/// The last request is this part of the mean duration.
const NEWEST: u64 = 16;
/// The longest time after which a request that is turned away may come again, apart from a crawl
/// delay, in microseconds.
const LONGEST_WAIT: u64 = 120_000_000;
/// A crawler that was not turned away for this time counts as one that finds places.
const GAP: Duration = Duration::from_secs(600);

/// The places of an origin.
pub struct Room {
    settings: PlaceSettings,
    /// People in the queue. Changed only with the queue, and read without it.
    waiting: AtomicUsize,
    /// Requests that have given their place up and go on, in all and of each client's address.
    without_place: AtomicUsize,
    shares_without_place: Shares,
    /// Servers that requests go to.
    servers: AtomicUsize,
    queue: Mutex<Queue>,
    shares: Shares,
    /// The places of each client's address in the queue.
    waiting_shares: Shares,
    /// The mean duration of a request, in microseconds.
    lasts: AtomicU64,
    /// When the next crawler that is turned away finds a place, in microseconds since the start.
    free_for_crawlers: AtomicU64,
    /// Crawlers and people of the last minutes that found no place.
    turned_away: [Recent; 2],
    /// Verified search crawlers that find no place.
    searching: Mutex<BTreeMap<CrawlerIndex, TurnedAway>>,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    next_number: u64,
    /// How often one of them was to get a place.
    turns: u64,
}

struct Waiter {
    number: u64,
    share: Option<u64>,
    given: oneshot::Sender<Held>,
}

/// A verified search crawler that finds no place.
#[derive(Debug)]
struct TurnedAway {
    since: Duration,
    last: Duration,
}

/// The facts about a request by which a server is chosen for it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The host that it asks for.
    pub host: &'a [u8],
    /// Its target as it came.
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
    /// The time that the clock had lived through when it arrived.
    pub lived: Duration,
}

/// The result of a request for a place.
pub enum Entrance {
    Place(Held),
    Queue(Waiting),
    Refused(Full),
}

/// There is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// A fixed word for metric and log: `turned_away` of a crawler, `queue_full` and
    /// `queue_timeout` of a person.
    pub reason: &'static str,
    /// When there is likely to be one, in seconds.
    pub retry_after: u32,
}

/// A person in the queue, who leaves it when this is dropped.
pub struct Waiting {
    given: oneshot::Receiver<Held>,
    number: u64,
    room: Arc<Room>,
}

impl Waiting {
    /// Waits for a place.
    ///
    /// # Errors
    /// The wait took longer than the settings allow, or another client displaced this one in a full
    /// queue.
    pub async fn place(mut self) -> Result<Held, Full> {
        match tokio::time::timeout(self.room.settings.wait, &mut self.given).await {
            Ok(Ok(held)) => Ok(held),
            // Another one took the turn.
            Ok(Err(_)) => Err(self.room.queue_full()),
            Err(_) => Err(Full {
                reason: "queue_timeout",
                retry_after: self.room.seconds_for_people(),
            }),
        }
    }
}

impl Drop for Waiting {
    /// Leaves the queue, if the place has not been given yet.
    fn drop(&mut self) {
        let mut queue = lock(&self.room.queue);
        if let Ok(place) = queue
            .waiters
            .binary_search_by_key(&self.number, |waiter| waiter.number)
        {
            self.room.remove(&mut queue, place);
        }
    }
}

impl Room {
    pub fn new(settings: PlaceSettings) -> Arc<Room> {
        Arc::new(Room {
            settings,
            waiting: AtomicUsize::new(0),
            without_place: AtomicUsize::new(0),
            shares_without_place: Shares::new(),
            servers: AtomicUsize::new(1),
            queue: Mutex::default(),
            shares: Shares::new(),
            waiting_shares: Shares::new(),
            lasts: AtomicU64::new(UNKNOWN),
            free_for_crawlers: AtomicU64::new(0),
            turned_away: Default::default(),
            searching: Mutex::default(),
        })
    }

    /// Places at all servers in use together, where each has `places`.
    fn at_all(&self, places: usize) -> usize {
        places.saturating_mul(self.servers.load(Relaxed).max(1))
    }

    /// Sets the servers that requests go to, by which places and shares are counted, and gives
    /// their free places to those who wait.
    pub fn open_at(&self, servers: &[Arc<Server>]) {
        self.servers.store(servers.len(), Relaxed);
        servers.iter().for_each(|server| self.fill(server));
    }

    /// A place at the first of these servers that has one. Without one, a person gets a place in
    /// the queue, and a crawler is turned away; a crawler in `exempt` counts as a person. A person
    /// also has to wait while others do. `now` is the time since the start.
    pub fn enter(
        self: &Arc<Room>,
        servers: &[&Arc<Server>],
        wanted: &Wanted<'_>,
        now: Duration,
    ) -> Entrance {
        let share = wanted.client.map(of_client);
        if wanted.is_crawler
            && !wanted
                .verified
                .is_some_and(|crawler| self.settings.exempt.contains(&crawler))
        {
            // Free places go to people who wait first, except those whose address has its share
            // already: otherwise one address could keep all crawlers away.
            servers.iter().for_each(|server| self.fill(server));
            let held = self.held(servers, share, Some(self.settings.crawlers));
            return held.map_or_else(
                || Entrance::Refused(self.turn_away(wanted, now)),
                Entrance::Place,
            );
        }
        let may_enter = self.waiting.load(SeqCst) == 0;
        match may_enter.then(|| self.held(servers, share, None)).flatten() {
            Some(held) => Entrance::Place(held),
            None => self.wait(servers, share),
        }
    }

    /// Takes a place at the first of these servers that has one; `None` if none has, or if the
    /// client's address (`share`, its hash) has its part of the places already. `crawlers` is for a
    /// crawler: how many places of a server crawlers may have.
    fn held(
        &self,
        servers: &[&Arc<Server>],
        share: Option<u64>,
        crawlers: Option<usize>,
    ) -> Option<Held> {
        if !self.take_share(share) {
            return None;
        }
        let Some(server) = servers
            .iter()
            .find(|server| server.enter_within(self.settings.connections, crawlers))
        else {
            self.shares.leave(share);
            return None;
        };
        Some(counted(server, share, crawlers.is_some()))
    }

    /// Counts one more place for this address, unless it has a quarter of all places already.
    /// Returns whether it did. A client without an address has no limit.
    fn take_share(&self, share: Option<u64>) -> bool {
        self.shares.enter(
            share,
            part(self.at_all(self.settings.connections), PART_OF_PLACES),
        )
    }

    /// Puts a person into the queue. In a full queue, one of an address with more waiters is
    /// displaced; if there is none, or this address has its part of the queue already, the person
    /// is refused.
    fn wait(self: &Arc<Room>, servers: &[&Arc<Server>], share: Option<u64>) -> Entrance {
        let mut queue = lock(&self.queue);
        let length = self.settings.length;
        // One that waits counts for its address.
        let has_room = queue.waiters.len() < length || self.displace(&mut queue, share);
        if !has_room
            || !self
                .waiting_shares
                .enter(share, part(length, PART_OF_QUEUE))
        {
            return Entrance::Refused(self.queue_full());
        }
        let (sender, given) = oneshot::channel();
        let number = queue.next_number;
        queue.next_number += 1;
        queue.waiters.push_back(Waiter {
            number,
            share,
            given: sender,
        });
        self.waiting.store(queue.waiters.len(), SeqCst);
        drop(queue);
        // A place that was given back in the meantime was given to nobody.
        servers.iter().for_each(|server| self.fill(server));
        Entrance::Queue(Waiting {
            given,
            number,
            room: self.clone(),
        })
    }

    /// The refusal of a person for whom the queue has no room.
    fn queue_full(&self) -> Full {
        Full {
            reason: "queue_full",
            retry_after: self.seconds_for_people(),
        }
    }

    /// Makes room in a full queue: turns away the last one of the address that has most in it, if
    /// that is more than the newcomer's address would have. Returns whether it did.
    fn displace(&self, queue: &mut Queue, newcomer: Option<u64>) -> bool {
        let counts = queue
            .waiters
            .iter()
            .map(|waiter| self.waiting_shares.count(waiter.share))
            .enumerate();
        let least = self.waiting_shares.count(newcomer) + 1;
        let most = counts
            .max_by_key(|(_, count)| *count)
            .filter(|(_, count)| *count > least);
        most.is_some_and(|(place, _)| self.remove(queue, place).is_some())
    }

    /// Removes the waiter at this place from the queue and from the counts.
    fn remove(&self, queue: &mut Queue, place: usize) -> Option<Waiter> {
        let waiter = queue.waiters.remove(place)?;
        self.waiting_shares.leave(waiter.share);
        self.waiting.store(queue.waiters.len(), SeqCst);
        Some(waiter)
    }

    /// Gives the free places of a server to those who wait and may have one, until there is no
    /// place or none of them is left. Clients that have left meanwhile are passed over.
    fn fill(&self, server: &Arc<Server>) {
        while self.waiting.load(SeqCst) > 0 && server.enter_within(self.settings.connections, None)
        {
            let Some(waiter) = self.next() else {
                server.leave(false);
                return;
            };
            if let Err(mut held) = waiter.given.send(counted(server, waiter.share, false)) {
                // The client has left. If the place were given back as usual, it would be filled
                // from within this loop.
                held.has_left = true;
                self.shares.leave(waiter.share);
                server.leave(false);
            }
        }
    }

    /// Removes and returns the next in the queue whose address may have one more place, which is
    /// counted for it; `None` if there is none. Every second time that is the first one of an
    /// address with the fewest places, so that a few addresses keep nobody else waiting, and
    /// otherwise the one that came first, so that no address waits for ever.
    fn next(&self) -> Option<Waiter> {
        let mut queue = lock(&self.queue);
        queue.turns = queue.turns.wrapping_add(1);
        let place = if queue.turns.is_multiple_of(2) {
            queue
                .waiters
                .iter()
                .position(|waiter| self.take_share(waiter.share))?
        } else {
            let waiters = queue.waiters.iter().enumerate();
            let (place, waiter) =
                waiters.min_by_key(|(_, waiter)| self.shares.count(waiter.share))?;
            self.take_share(waiter.share).then_some(place)?
        };
        self.remove(&mut queue, place)
    }

    /// Whether all places of a server are taken.
    pub fn is_full(&self, server: &Server) -> bool {
        server.in_flight() >= self.settings.connections
    }

    /// Takes a place at `server` for another attempt of a request, however many are taken. `share`
    /// is the hash of its address, for which the place counts.
    pub fn enter_again(&self, server: &Arc<Server>, share: Option<u64>, is_crawler: bool) -> Held {
        self.shares.enter(share, u32::MAX);
        server.enter();
        if is_crawler {
            server.live.crawlers.fetch_add(1, SeqCst);
        }
        counted(server, share, is_crawler)
    }

    /// Counts a request that goes on without its place. Returns false, and counts nothing, if as
    /// many do already as there are places, or a quarter of that from the same address.
    pub fn begin_without_place(&self, share: Option<u64>) -> bool {
        let most = self.at_all(self.settings.connections);
        if !self
            .shares_without_place
            .enter(share, part(most, PART_OF_PLACES))
        {
            return false;
        }
        let may = add_below(&self.without_place, most);
        if !may {
            self.shares_without_place.leave(share);
        }
        may
    }

    /// Uncounts a request that went on without its place and is over.
    pub fn end_without_place(&self, share: Option<u64>) {
        self.without_place.fetch_sub(1, SeqCst);
        self.shares_without_place.leave(share);
    }

    /// Called when a request has given its place at `server` back: uncounts it for its address, and
    /// gives the place to one who waits. `since` is when it took the place, for the mean duration;
    /// `None` if the duration does not count.
    pub fn left(&self, server: &Arc<Server>, share: Option<u64>, since: Option<Instant>) {
        self.shares.leave(share);
        if let Some(since) = since {
            let took = (since.elapsed().as_micros() as u64).min(LONGEST_WAIT);
            let mean = self.lasts.load(Relaxed);
            // If two requests end at once, one may be lost: this is a mean.
            self.lasts
                .store(mean - mean / NEWEST + took / NEWEST, Relaxed);
        }
        self.fill(server);
    }

    /// Microseconds until all who wait now have had a place, by the mean duration of a request.
    fn time_for_people(&self) -> u64 {
        let waiting = self.waiting.load(Relaxed) as u64;
        waiting.saturating_mul(self.lasts.load(Relaxed))
            / (self.at_all(self.settings.connections) as u64).max(1)
    }

    /// [`Room::time_for_people`] in seconds, for Retry-After.
    fn seconds_for_people(&self) -> u32 {
        seconds(self.time_for_people())
    }

    /// Turns a crawler away, and says when there is likely to be a place for it: behind the people
    /// who wait, and behind the crawlers that were turned away before it, which each get another
    /// moment, so that they do not all come back at once; two minutes at most. A verified search
    /// crawler is remembered for the status.
    fn turn_away(&self, wanted: &Wanted<'_>, now: Duration) -> Full {
        let micros = now.as_micros() as u64;
        let one = self.lasts.load(Relaxed) / (self.at_all(self.settings.crawlers) as u64).max(1);
        let later = |free: u64| {
            Some(
                free.max(micros)
                    .saturating_add(one)
                    .min(micros.saturating_add(LONGEST_WAIT)),
            )
        };
        let free = self.free_for_crawlers.fetch_update(Relaxed, Relaxed, later);
        let crawlers = free.ok().and_then(later).map_or(0, |free| free - micros);
        if let Some(crawler) = wanted.verified.filter(|_| wanted.is_search) {
            let mut searching = lock(&self.searching);
            let known = searching.entry(crawler).or_insert(TurnedAway {
                since: now,
                last: now,
            });
            if now.saturating_sub(known.last) > GAP {
                known.since = now;
            }
            known.last = now;
        }
        Full {
            reason: "turned_away",
            retry_after: seconds(self.time_for_people().saturating_add(crawlers)),
        }
    }

    /// People in the queue.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Counts a request that found no place. `lived` is the time that the clock had lived through.
    pub fn count_turned_away(&self, is_crawler: bool, lived: Duration) {
        let [crawlers, people] = &self.turned_away;
        if is_crawler { crawlers } else { people }.add(lived);
    }

    /// The status of the places of this origin, for an operator. `now` is the time since the start,
    /// `lived` the time that the clock has lived through.
    pub fn status(&self, origin: String, now: Duration, lived: Duration) -> QueueStatus {
        let mut search_crawlers = Vec::new();
        for (crawler, turned) in lock(&self.searching).iter() {
            if now.saturating_sub(turned.last) <= GAP {
                let name = Registry::builtin().get(*crawler).name.clone();
                let seconds = turned.last.saturating_sub(turned.since).as_secs();
                search_crawlers.push((name, seconds));
            }
        }
        let [crawlers_turned_away, people_turned_away] =
            self.turned_away.each_ref().map(|recent| recent.sum(lived));
        QueueStatus {
            origin,
            waiting: self.waiting(),
            crawlers_turned_away,
            people_turned_away,
            search_crawlers,
        }
    }
}

/// A part of the whole, one at least.
fn part(all: usize, divisor: usize) -> u32 {
    u32::try_from((all / divisor).max(1)).unwrap_or(u32::MAX)
}

/// A [`Held`] for a place at `server` that was taken already, for this address (`share`).
fn counted(server: &Arc<Server>, share: Option<u64>, is_crawler: bool) -> Held {
    let place = Place {
        server: server.clone(),
        is_crawler,
        share,
        since: Instant::now(),
        is_given_up: AtomicBool::new(false),
    };
    Held::entered(server.clone(), Some(Arc::new(place)))
}

/// Microseconds as whole seconds, rounded up: from one to those of `LONGEST_WAIT`.
fn seconds(micros: u64) -> u32 {
    micros.min(LONGEST_WAIT).div_ceil(1_000_000).max(1) as u32
}
