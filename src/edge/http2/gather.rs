//! [`Gather`]: a connection under the `h2` crate that keeps what is written until the connection's task has nothing more to
//! do; [`Output`] is the same connection as its task has it. The crate flushes after each DATA frame of 1 KiB and more
//! (h2 0.4.20), and each flush would be a TLS record and a system call of its own. Must not know what the octets mean.
//!
//! What is gathered waits for [`Output::poll_flush`], or leaves when there is more of it than [`MOST`]. Memory is taken only
//! while something waits.

use crate::edge::connection::Connection;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets that are gathered. With more of them, large responses leave the processor's cache before they are written.
const MOST: usize = 64 * 1024;
/// Buffers that a worker keeps for the next connection that writes.
const MOST_KEPT: usize = 16;
/// Octets of a buffer that is kept.
const LARGEST_KEPT: usize = 2 * MOST;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = RefCell::default();
}

/// A connection, and what waits to be written to it.
struct Shared {
    connection: Box<Connection>,
    /// Holds memory only while something waits.
    waiting: Vec<u8>,
    /// How much of that was written.
    written: usize,
    /// Whether the last write found no room.
    is_full: bool,
    /// The requests that wait for room.
    waiters: Vec<Waker>,
}

/// The connection as the crate has it.
pub(super) struct Gather(Arc<Mutex<Shared>>);

/// The connection as its task and its requests have it.
#[derive(Clone)]
pub(super) struct Output(Arc<Mutex<Shared>>);

/// Both ends of a connection that gathers.
pub(super) fn gather(connection: Box<Connection>) -> (Gather, Output) {
    let shared = Shared { connection, waiting: Vec::new(), written: 0, is_full: false, waiters: Vec::new() };
    let shared = Arc::new(Mutex::new(shared));
    (Gather(shared.clone()), Output(shared))
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            match ready!(self.connection.poll_write_both(&self.waiting[self.written..], &[], context))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.give_back();
        self.waiters.drain(..).for_each(Waker::wake);
        Pin::new(&mut *self.connection).poll_flush(context)
    }

    /// Ready when less than [`MOST`] waits.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_full = self.waiting.len() >= MOST;
        if self.is_full {
            ready!(self.poll_waiting(context))?;
            self.is_full = false;
        }
        Poll::Ready(Ok(()))
    }

    fn take_in(&mut self, octets: &[u8]) {
        if self.waiting.capacity() == 0 {
            self.waiting = KEPT.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
        self.waiting.extend_from_slice(octets);
    }

    /// Gives the memory of what was written to the worker.
    fn give_back(&mut self) {
        self.written = 0;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear();
        if (1..=LARGEST_KEPT).contains(&waiting.capacity()) {
            KEPT.with_borrow_mut(|kept| {
                if kept.len() < MOST_KEPT {
                    kept.push(waiting);
                }
            });
        }
    }
}

impl Output {
    /// Writes what waits.
    pub(super) fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_waiting(context)
    }

    /// Ready when there is room for more.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.0);
        if !shared.is_full {
            return Poll::Ready(());
        }
        if !shared.waiters.iter().any(|waiter| waiter.will_wake(context.waker())) {
            shared.waiters.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Whether the last write found no room: then frames wait in h2.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.0).is_full
    }

    /// Awaits something, and writes what it gathers meanwhile.
    pub(super) async fn flushing<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            // An error shows again when the connection is read or written.
            let _ = self.poll_flush(context);
            polled
        })
        .await
    }

    /// The connection, when the crate has let go of it.
    pub(super) fn into_connection(self) -> Option<Box<Connection>> {
        let shared = Arc::into_inner(self.0)?.into_inner();
        Some(shared.unwrap_or_else(PoisonError::into_inner).connection)
    }
}

impl AsyncRead for Gather {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.0).connection).poll_read(context, buffer)
    }
}

impl AsyncWrite for Gather {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.0);
        ready!(shared.poll_room(context))?;
        shared.take_in(octets);
        Poll::Ready(Ok(octets.len()))
    }

    /// Flushing is up to the connection's task, unless too much waits.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_room(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        ready!(shared.poll_waiting(context))?;
        Pin::new(&mut *shared.connection).poll_shutdown(context)
    }
}
