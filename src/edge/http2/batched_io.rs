//! [`BatchedIo`]: the network connection below the crate `h2`. It gathers what `h2` writes, and
//! sends all of it when the connection's task calls [`BatchedIo::poll_flush`]. Without this
//! batching, `h2` would flush after each DATA frame of 1 KiB or more (h2 0.4.20), and each flush
//! would cost a TLS record and a system call. [`BatchedIo::is_flooded`] finds clients that send far
//! more than their requests need.

use crate::edge::client_stream::ClientStream;
use crate::locks::lock;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{
    Context,
    Poll::{self, Pending, Ready},
    Waker, ready,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// With this many bytes, a batch leaves at once. With more, large responses leave the processor's
/// cache before they are written.
const MAX_BATCH_BYTES: usize = 64 * 1024;
/// A client may send this many bytes for each byte of progress (of requests, bodies and responses),
/// and `FLOOD_ALLOWANCE` in addition: 1 MiB of bodies may wait for origins, and a client that reads
/// sends a few bytes for each frame that it gets.
const FLOOD_FACTOR: u64 = 8;
const FLOOD_ALLOWANCE: u64 = 2 * 1024 * 1024;
/// Bytes of progress that each piece of a body counts in addition.
const PIECE_OVERHEAD: u64 = 32;

/// What all handles share. Only the connection's task changes the counts.
struct BatchedIoInner {
    batched: Mutex<BatchedConnection>,
    /// Bytes that the client sent.
    received: AtomicU64,
    /// Bytes of requests, bodies and responses that moved on.
    progressed: AtomicU64,
}

/// The connection. Its write buffer is the batch.
struct BatchedConnection {
    connection: Box<ClientStream>,
    /// Whether the batch is full and the client has not taken it.
    is_full: bool,
    /// The requests that wait for capacity.
    waiters: Vec<Waker>,
    /// Whether the last read found nothing. h2 reads again for each request that it hands out.
    is_drained: bool,
}

/// A handle to the connection, for the crate h2, the connection's task and its requests.
#[derive(Clone)]
pub struct BatchedIo(Arc<BatchedIoInner>);

/// Adds to a count that only one task changes.
fn add_to_count(count: &AtomicU64, bytes: u64) {
    count.store(count.load(Relaxed).saturating_add(bytes), Relaxed);
}

impl BatchedConnection {
    /// Writes the batch, wakes the requests that wait for capacity, and flushes the connection.
    fn poll_flush_all(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.connection.poll_write_buffer(context))?;
        self.waiters.drain(..).for_each(Waker::wake);
        Pin::new(&mut *self.connection).poll_flush(context)
    }

    /// Ready when the batch has capacity. Writes and flushes a full one first.
    fn poll_capacity(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_full = self.connection.stream.unwritten_len() >= MAX_BATCH_BYTES;
        if self.is_full {
            ready!(self.poll_flush_all(context))?;
            self.is_full = false;
        }
        Ready(Ok(()))
    }
}

impl BatchedIo {
    pub fn new(connection: Box<ClientStream>) -> BatchedIo {
        let batched = Mutex::new(BatchedConnection {
            connection,
            is_full: false,
            waiters: Vec::new(),
            is_drained: false,
        });
        BatchedIo(Arc::new(BatchedIoInner {
            batched,
            received: AtomicU64::new(0),
            progressed: AtomicU64::new(0),
        }))
    }

    /// Writes and flushes the batch.
    pub fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0.batched).poll_flush_all(context)
    }

    /// Ready unless the batch is full. Then the task is woken when it has been written.
    pub fn poll_capacity(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut batched = lock(&self.0.batched);
        if !batched.is_full {
            return Ready(());
        }
        if !batched
            .waiters
            .iter()
            .any(|waiter| waiter.will_wake(context.waker()))
        {
            batched.waiters.push(context.waker().clone());
        }
        Pending
    }

    /// Counts a request as progress. `max_head_bytes` is the limit for any head: the client may
    /// send so many bytes for each request, whatever the size of its head. Divided, because each
    /// byte of progress allows `FLOOD_FACTOR` bytes.
    pub fn count_request(&self, max_head_bytes: usize) {
        add_to_count(&self.0.progressed, max_head_bytes as u64 / FLOOD_FACTOR);
    }

    /// Counts a piece of a body as progress, with `PIECE_OVERHEAD`, so that small pieces do not
    /// look like a flood.
    pub fn count_progress(&self, bytes: usize) {
        add_to_count(&self.0.progressed, PIECE_OVERHEAD + bytes as u64);
    }

    /// Whether the client floods: most of what it sends are PING, SETTINGS, PRIORITY and other
    /// frames without progress. h2 has no limit for these (h2 0.4.20).
    pub fn is_flooded(&self) -> bool {
        let progressed = self.0.progressed.load(Relaxed);
        self.0.received.load(Relaxed)
            > progressed
                .saturating_mul(FLOOD_FACTOR)
                .saturating_add(FLOOD_ALLOWANCE)
    }

    /// Allows the next read. After a read that found nothing, the connection is not read before
    /// this call.
    pub fn allow_read(&self) {
        lock(&self.0.batched).is_drained = false;
    }

    /// Whether the batch is full: then frames wait in h2.
    pub fn is_full(&self) -> bool {
        lock(&self.0.batched).is_full
    }

    /// Awaits a future, and flushes the batch after each poll.
    pub async fn run_with_flush<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.allow_read();
            let polled = future.as_mut().poll(context);
            // An error shows again when the connection is read or written.
            let _ = self.poll_flush(context);
            polled
        })
        .await
    }

    /// The connection, if this is the last handle to it; `None` while h2 or a request has another
    /// one.
    pub fn into_connection(self) -> Option<Box<ClientStream>> {
        let batched = Arc::into_inner(self.0)?.batched.into_inner();
        Some(batched.unwrap_or_else(PoisonError::into_inner).connection)
    }
}

impl AsyncRead for BatchedIo {
    /// Reads from the connection and counts the bytes. After a read that found nothing, pending
    /// until [`BatchedIo::allow_read`], which does not wake the task.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut batched = lock(&self.0.batched);
        if batched.is_drained {
            return Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut *batched.connection).poll_read(context, buffer);
        add_to_count(&self.0.received, (buffer.filled().len() - before) as u64);
        batched.is_drained = polled.is_pending();
        polled
    }
}

impl AsyncWrite for BatchedIo {
    /// Adds all of `bytes` to the batch, when it has capacity.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    /// Adds all parts to the batch, when it has capacity.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut batched = lock(&self.0.batched);
        ready!(batched.poll_capacity(context))?;
        let waiting = batched.connection.stream.write_buffer();
        let before = waiting.len();
        for part in parts {
            waiting.extend_from_slice(part);
        }
        Ready(Ok(waiting.len() - before))
    }

    /// Otherwise h2 would copy a small piece of a body behind its frame's head.
    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Writes nothing unless the batch is full: the connection's task flushes.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0.batched).poll_capacity(context)
    }

    /// Writes the batch, and closes the connection's writing side.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut batched = lock(&self.0.batched);
        ready!(batched.poll_flush_all(context))?;
        Pin::new(&mut *batched.connection).poll_shutdown(context)
    }
}
