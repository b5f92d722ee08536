//! [`OriginPool`]: idle connections to origins, kept for later requests. Each worker thread has its
//! own list, so that a connection stays with the thread that reads it.
//!
//! A request takes the connection that was added last. A connection is closed when it expires, when
//! the origin closes it or sends bytes that belong to no response, or when the list is full.

use crate::locks::lock;
use pingora_core::protocols::Stream;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};

/// The time between two searches for connections to close.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

thread_local! {
    /// The number of this thread, among those that use a pool.
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Idle connections to origins.
pub struct OriginPool {
    lists: Box<[Mutex<Vec<IdleConnection>>]>,
    /// The most connections of a list.
    max_per_worker: usize,
    next_worker: AtomicUsize,
    /// Whether the task runs that closes expired connections.
    is_swept: AtomicBool,
}

struct IdleConnection {
    /// A hash of the server and of how it is connected.
    key: u64,
    stream: Stream,
    expires_at: Instant,
}

impl OriginPool {
    /// A pool for at least one worker, each with at most `max_per_worker` connections (at least
    /// one).
    pub fn new(workers: usize, max_per_worker: usize) -> OriginPool {
        OriginPool {
            lists: (0..workers.max(1)).map(|_| Mutex::default()).collect(),
            max_per_worker,
            next_worker: AtomicUsize::new(0),
            is_swept: AtomicBool::new(false),
        }
    }

    /// Removes and returns the connection with this key that this worker added last. Closes those
    /// that are not silent. An expired one may be returned until the next sweep.
    pub fn take(&self, key: u64) -> Option<Stream> {
        loop {
            let mut idle = {
                let mut list = lock(self.worker_list());
                let index = list.iter().rposition(|idle| idle.key == key)?;
                list.remove(index)
            };
            if has_nothing_to_read(&mut idle.stream) {
                return Some(idle.stream);
            }
        }
    }

    /// Adds a connection to this worker's list for `time`. If the list is full, its oldest
    /// connection is closed. The first call starts the sweep.
    pub fn put(self: &Arc<Self>, key: u64, stream: Stream, time: Duration) {
        let dropped = {
            let mut list = lock(self.worker_list());
            // The oldest one is the first.
            let dropped =
                (list.len() >= self.max_per_worker && !list.is_empty()).then(|| list.remove(0));
            list.push(IdleConnection {
                key,
                stream,
                expires_at: Instant::now() + time,
            });
            dropped
        };
        drop(dropped);
        if !self.is_swept.load(Relaxed) && !self.is_swept.swap(true, AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// The list of the calling thread. If there are more threads than lists, they share lists.
    fn worker_list(&self) -> &Mutex<Vec<IdleConnection>> {
        let worker = WORKER.get().unwrap_or_else(|| {
            let worker = self.next_worker.fetch_add(1, Relaxed);
            WORKER.set(Some(worker));
            worker
        });
        &self.lists[worker % self.lists.len()]
    }

    /// Closes the connections that have expired at `now` or are not silent.
    fn close_expired(&self, now: Instant) {
        for list in &self.lists {
            let mut closed = Vec::new();
            let mut list = lock(list);
            for mut idle in std::mem::take(&mut *list) {
                if now < idle.expires_at && has_nothing_to_read(&mut idle.stream) {
                    list.push(idle);
                } else {
                    closed.push(idle);
                }
            }
        }
    }
}

/// Closes expired connections again and again, as long as there is a pool.
async fn sweep(pool: Weak<OriginPool>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        match pool.upgrade() {
            Some(pool) => pool.close_expired(Instant::now()),
            None => return,
        }
    }
}

/// Tries to read a byte. Returns whether nothing can be read now: no byte, no end, no error.
fn has_nothing_to_read(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut byte = [0];
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(stream)
        .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
        .is_pending()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    const MINUTE: Duration = Duration::from_secs(60);

    fn pool(max_per_worker: usize) -> Arc<OriginPool> {
        Arc::new(OriginPool::new(1, max_per_worker))
    }

    #[tokio::test]
    async fn newest_connection_of_a_key_is_taken_first() {
        let pool = pool(8);
        let (mut others, mut ends) = (Vec::new(), Vec::new());
        for key in [1, 2, 1] {
            let (one, other) = duplex(16);
            pool.put(key, Box::new(one), MINUTE);
            others.push(key);
            ends.push(other);
        }
        let mut taken = pool.take(1).unwrap();
        taken.write_all(b"x").await.unwrap();
        assert!(!has_nothing_to_read(&mut ends[2]) && has_nothing_to_read(&mut ends[0]));
        assert!(pool.take(1).is_some() && pool.take(1).is_none() && pool.take(2).is_some());
    }

    #[tokio::test]
    async fn connection_that_is_not_silent_is_not_taken() {
        let pool = pool(8);
        let (one, mut talker) = duplex(16);
        let (two, leaver) = duplex(16);
        talker.write_all(b"surplus").await.unwrap();
        drop(leaver);
        pool.put(1, Box::new(one), MINUTE);
        pool.put(1, Box::new(two), MINUTE);
        assert!(pool.take(1).is_none());
    }

    #[tokio::test]
    async fn full_list_closes_its_oldest_connection() {
        let pool = pool(2);
        let mut ends = Vec::new();
        for key in 1..=3 {
            let (one, other) = duplex(16);
            pool.put(key, Box::new(one), MINUTE);
            ends.push(other);
        }
        assert!(pool.take(1).is_none() && pool.take(2).is_some() && pool.take(3).is_some());
        assert!(!has_nothing_to_read(&mut ends[0]), "it was closed");
    }

    #[tokio::test]
    async fn sweep_closes_expired_and_closed_connections() {
        let pool = pool(8);
        let (one, _held) = duplex(16);
        let (two, closed) = duplex(16);
        let (three, _also_held) = duplex(16);
        pool.put(1, Box::new(one), MINUTE);
        pool.put(2, Box::new(two), MINUTE);
        pool.put(3, Box::new(three), Duration::ZERO);
        drop(closed);
        pool.close_expired(Instant::now());
        assert!(pool.take(2).is_none() && pool.take(3).is_none() && pool.take(1).is_some());
    }
}
