//! [`Pool`]: connections to origins that wait for their next request. Each worker has a list of its
//! own, so that a connection stays with the worker that reads it.
//!
//! A request takes the connection that was kept last. A kept connection is closed when it expires,
//! when the origin closes it or sends octets that belong to no response, or when the list is full.

use crate::locks::lock;
use pingora_core::protocols::Stream;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};

/// The time between two searches for connections to close.
const SWEEP: Duration = Duration::from_secs(5);

thread_local! {
    /// The number of this worker.
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Kept connections.
pub struct Pool {
    lists: Box<[Mutex<Vec<Kept>>]>,
    /// Connections that a list holds.
    most: usize,
    /// The number of the next worker.
    workers: AtomicUsize,
    is_swept: AtomicBool,
}

struct Kept {
    key: u64,
    stream: Stream,
    until: Instant,
}

impl Pool {
    /// Lists for `workers` workers (one at least). Each list keeps at most `most` connections; with
    /// 0 it keeps one.
    pub fn new(workers: usize, most: usize) -> Pool {
        Pool {
            lists: (0..workers.max(1)).map(|_| Mutex::default()).collect(),
            most,
            workers: AtomicUsize::new(0),
            is_swept: AtomicBool::new(false),
        }
    }

    /// Removes and returns the connection with this key that this worker kept last and that is
    /// still silent. Closes those that are not. One whose time is over may still be taken, until
    /// the next sweep.
    pub fn take(&self, key: u64) -> Option<Stream> {
        loop {
            let mut kept = {
                let mut list = lock(self.own_list());
                let place = list.iter().rposition(|kept| kept.key == key)?;
                list.remove(place)
            };
            if check_silent(&mut kept.stream) {
                return Some(kept.stream);
            }
        }
    }

    /// Keeps a connection in this worker's list for `time`. If the list is full, the connection
    /// that it has kept longest is closed. The first call starts the sweep.
    pub fn keep(self: &Arc<Self>, key: u64, stream: Stream, time: Duration) {
        let dropped = {
            let mut list = lock(self.own_list());
            // The longest kept one is the first.
            let dropped = (list.len() >= self.most && !list.is_empty()).then(|| list.remove(0));
            list.push(Kept {
                key,
                stream,
                until: Instant::now() + time,
            });
            dropped
        };
        drop(dropped);
        if !self.is_swept.load(Ordering::Relaxed) && !self.is_swept.swap(true, Ordering::AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// The list of the thread that calls this. A thread gets its number at its first call; more
    /// threads than lists share them.
    fn own_list(&self) -> &Mutex<Vec<Kept>> {
        let worker = WORKER.get().unwrap_or_else(|| {
            let worker = self.workers.fetch_add(1, Ordering::Relaxed);
            WORKER.set(Some(worker));
            worker
        });
        &self.lists[worker % self.lists.len()]
    }

    /// Closes, in all lists, the connections whose time is over at `now`, that the origin has
    /// closed, or on which something has come.
    fn close_what_is_over(&self, now: Instant) {
        for list in &self.lists {
            let mut over = Vec::new();
            let mut list = lock(list);
            for mut kept in std::mem::take(&mut *list) {
                if now < kept.until && check_silent(&mut kept.stream) {
                    list.push(kept);
                } else {
                    over.push(kept);
                }
            }
        }
    }
}

/// Closes connections again and again, as long as there is a pool.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        match pool.upgrade() {
            Some(pool) => pool.close_what_is_over(Instant::now()),
            None => return,
        }
    }
}

/// Tries to read a byte. Returns whether nothing can be read now: no byte, no end, no error.
fn check_silent(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut octet = [0];
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(stream)
        .poll_read(&mut context, &mut ReadBuf::new(&mut octet))
        .is_pending()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    const MINUTE: Duration = Duration::from_secs(60);

    fn pool(most: usize) -> Arc<Pool> {
        Arc::new(Pool::new(1, most))
    }

    #[tokio::test]
    async fn last_kept_connection_of_a_key_is_taken_first() {
        let pool = pool(8);
        let (mut others, mut ends) = (Vec::new(), Vec::new());
        for key in [1, 2, 1] {
            let (one, other) = duplex(16);
            pool.keep(key, Box::new(one), MINUTE);
            others.push(key);
            ends.push(other);
        }
        let mut taken = pool.take(1).unwrap();
        taken.write_all(b"x").await.unwrap();
        assert!(!check_silent(&mut ends[2]) && check_silent(&mut ends[0]));
        assert!(pool.take(1).is_some() && pool.take(1).is_none() && pool.take(2).is_some());
    }

    #[tokio::test]
    async fn connection_that_says_something_or_ends_is_not_taken() {
        let pool = pool(8);
        let (one, mut talker) = duplex(16);
        let (two, leaver) = duplex(16);
        talker.write_all(b"surplus").await.unwrap();
        drop(leaver);
        pool.keep(1, Box::new(one), MINUTE);
        pool.keep(1, Box::new(two), MINUTE);
        assert!(pool.take(1).is_none());
    }

    #[tokio::test]
    async fn full_list_gives_up_the_longest_kept_connection() {
        let pool = pool(2);
        let mut ends = Vec::new();
        for key in 1..=3 {
            let (one, other) = duplex(16);
            pool.keep(key, Box::new(one), MINUTE);
            ends.push(other);
        }
        assert!(pool.take(1).is_none() && pool.take(2).is_some() && pool.take(3).is_some());
        assert!(!check_silent(&mut ends[0]), "it was closed");
    }

    #[tokio::test]
    async fn sweeping_closes_what_is_over_and_keeps_the_rest() {
        let pool = pool(8);
        let (one, _held) = duplex(16);
        let (two, left) = duplex(16);
        let (three, _also_held) = duplex(16);
        pool.keep(1, Box::new(one), MINUTE);
        pool.keep(2, Box::new(two), MINUTE);
        pool.keep(3, Box::new(three), Duration::ZERO);
        drop(left);
        pool.close_what_is_over(Instant::now());
        assert!(pool.take(2).is_none() && pool.take(3).is_none() && pool.take(1).is_some());
    }
}
