//! [`Output`]: the connection below the crate `h2`. It gathers what the crate writes until the
//! connection's task has nothing more to do. The crate flushes after each DATA frame of 1 KiB and
//! more (h2 0.4.20), and each flush would be a TLS record and a system call of its own.
//! [`Output::is_flooded`] detects floods.
//!
//! Gathered octets wait for [`Output::poll_flush`]. If more than [`MOST`] are gathered, they leave
//! at once.

use crate::edge::connection::Connection;
use crate::locks::lock;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets that are gathered. With more of them, large responses leave the processor's cache before
/// they are written.
const MOST: usize = 64 * 1024;
/// A client may send so many octets for each octet of requests, bodies and responses that moves on,
/// and `OCTETS_MORE` in addition. Of bodies, 1 MiB may wait for origins. A client that reads sends
/// a few for each frame that it gets.
const OCTETS_EACH: u64 = 8;
const OCTETS_MORE: u64 = 2 * 1024 * 1024;
/// What each piece that moves on counts beside its octets.
const PIECE: u64 = 32;

/// A connection, with counts of the octets on it.
struct Shared {
    gathered: Mutex<Gathered>,
    /// Octets that came, and octets of requests, bodies and responses that moved on. Only the
    /// connection's task counts.
    came: AtomicU64,
    moved: AtomicU64,
}

struct Gathered {
    connection: Box<Connection>,
    /// Whether the last write found no room.
    is_full: bool,
    /// The requests that wait for room.
    waiters: Vec<Waker>,
    /// Whether the last read found nothing. h2 reads again for each request that it hands out.
    is_dry: bool,
}

/// A handle to the connection, for the crate, the connection's task and its requests.
#[derive(Clone)]
pub struct Output(Arc<Shared>);

/// Adds to a count that only one task changes.
fn add(count: &AtomicU64, octets: u64) {
    count.store(count.load(Relaxed).saturating_add(octets), Relaxed);
}

impl Gathered {
    /// Writes all that was gathered and wakes the requests that wait for room. Ready when the
    /// connection is flushed.
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.connection.poll_gathered(context))?;
        self.waiters.drain(..).for_each(Waker::wake);
        Pin::new(&mut *self.connection).poll_flush(context)
    }

    /// Ready when less than `MOST` waits. If more does, writes and flushes all of it first; until
    /// then `is_full` is set.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_full = self.connection.stream.gathered() >= MOST;
        if self.is_full {
            ready!(self.poll_waiting(context))?;
            self.is_full = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl Output {
    pub fn new(connection: Box<Connection>) -> Output {
        let gathered = Mutex::new(Gathered {
            connection,
            is_full: false,
            waiters: Vec::new(),
            is_dry: false,
        });
        Output(Arc::new(Shared {
            gathered,
            came: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }))
    }

    /// Writes and flushes all that was gathered.
    pub fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0.gathered).poll_waiting(context)
    }

    /// Ready unless the last write found no room. Then the task is woken when what was gathered has
    /// been written.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.0.gathered);
        if !shared.is_full {
            return Poll::Ready(());
        }
        if !shared
            .waiters
            .iter()
            .any(|waiter| waiter.will_wake(context.waker()))
        {
            shared.waiters.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Records that a request was taken. `most` is the limit for the head of any request, not the
    /// size of this one: for each request the client may send that many bytes, whatever its head
    /// has. It is divided because [`Output::is_flooded`] allows `OCTETS_EACH` bytes for each one
    /// that moved.
    pub fn note_request(&self, most: usize) {
        add(&self.0.moved, most as u64 / OCTETS_EACH);
    }

    /// Records that a piece of a body with so many bytes moved on. It counts `PIECE` bytes in
    /// addition, so that small pieces do not look like a flood.
    pub fn note_moved(&self, octets: usize) {
        add(&self.0.moved, PIECE + octets as u64);
    }

    /// Whether the client floods: it has sent more than `OCTETS_EACH` bytes for each byte that
    /// moved on, and `OCTETS_MORE`. Then most are PING, SETTINGS, PRIORITY and the like, which move
    /// nothing. h2 has no limit for these (h2 0.4.20).
    pub fn is_flooded(&self) -> bool {
        let moved = self.0.moved.load(Relaxed);
        self.0.came.load(Relaxed)
            > moved
                .saturating_mul(OCTETS_EACH)
                .saturating_add(OCTETS_MORE)
    }

    /// Allows the next read. After a read that found nothing, the connection is not read until this
    /// is called, because something may have come.
    pub fn look_again(&self) {
        lock(&self.0.gathered).is_dry = false;
    }

    /// Whether the last write found no room: then frames wait in h2.
    pub fn is_full(&self) -> bool {
        lock(&self.0.gathered).is_full
    }

    /// Awaits a future. Each time it was polled, writes what was gathered.
    pub async fn flushing<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.look_again();
            let polled = future.as_mut().poll(context);
            // An error shows again when the connection is read or written.
            let _ = self.poll_flush(context);
            polled
        })
        .await
    }

    /// The connection, if this is the last handle to it; `None` while h2 or a request has another
    /// one.
    pub fn into_connection(self) -> Option<Box<Connection>> {
        let shared = Arc::into_inner(self.0)?.gathered.into_inner();
        Some(shared.unwrap_or_else(PoisonError::into_inner).connection)
    }
}

impl AsyncRead for Output {
    /// Reads from the connection and counts the bytes. Pending without a try after a read that
    /// found nothing, until [`Output::look_again`]; the task is not woken for it then.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0.gathered);
        if shared.is_dry {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut *shared.connection).poll_read(context, buffer);
        add(&self.0.came, (buffer.filled().len() - before) as u64);
        shared.is_dry = polled.is_pending();
        polled
    }
}

impl AsyncWrite for Output {
    /// Gathers all of `octets` when there is room. Writes nothing as long as less than `MOST`
    /// waits.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.0.gathered);
        ready!(shared.poll_room(context))?;
        shared.connection.stream.gather().extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }

    /// Gathers all of these parts when there is room, and is ready with their bytes together.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.0.gathered);
        ready!(shared.poll_room(context))?;
        let waiting = shared.connection.stream.gather();
        let before = waiting.len();
        for part in parts {
            waiting.extend_from_slice(part);
        }
        Poll::Ready(Ok(waiting.len() - before))
    }

    /// h2 would copy a small piece of a body behind its head, to write both at once.
    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Writes nothing as long as less than `MOST` waits: flushing is up to the connection's task.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0.gathered).poll_room(context)
    }

    /// Writes all that was gathered, and closes the connection's writing side.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0.gathered);
        ready!(shared.poll_waiting(context))?;
        Pin::new(&mut *shared.connection).poll_shutdown(context)
    }
}
