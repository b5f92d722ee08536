//! [`Buffered`]: a stream of octets that gathers what is written until it is flushed, so that a
//! head and its body leave in one system call. Octets can be looked at before they are read.
//!
//! Pingora's own stream has buffers only when Pingora itself listens, and these take 64 KiB of
//! every idle connection (Pingora 0.9.1). This one holds memory only while there is something to
//! hold.

use super::buffers::Buffer;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Octets that are gathered: a head and a small body. A write that does not fit leaves at once,
/// with those that wait.
pub const GATHERED: usize = 16 * 1024;
/// Octets read ahead at a time: a record of TLS.
const READ: usize = 16 * 1024;

/// A stream with a buffer for each direction.
#[derive(Debug)]
pub struct Buffered<S> {
    stream: S,
    /// Octets that were seen and not yet read. Holds memory only until they are read.
    seen: Vec<u8>,
    /// Octets that the stream has not taken yet, from `written` on. Holds memory only until they
    /// are written.
    waiting: Buffer,
    written: usize,
    is_unflushed: bool,
}

impl<S> Buffered<S> {
    pub fn new(stream: S) -> Buffered<S> {
        Buffered {
            stream,
            seen: Vec::new(),
            waiting: Buffer::default(),
            written: 0,
            is_unflushed: false,
        }
    }

    pub fn inner(&self) -> &S {
        &self.stream
    }

    /// The octets that wait to be written, for adding more.
    pub fn gather(&mut self) -> &mut Vec<u8> {
        self.waiting.filled()
    }

    /// How many octets wait to be written.
    pub fn gathered(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// What was seen and not yet read.
    pub fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// Removes these bytes from what was seen and returns them. The seen bytes before them are
    /// thrown away, those after them stay.
    pub fn take(&mut self, range: Range<usize>) -> Vec<u8> {
        let rest = self.seen.split_off(range.end);
        let mut taken = std::mem::replace(&mut self.seen, rest);
        taken.drain(..range.start);
        taken
    }

    /// Puts octets back in front of what was seen.
    pub fn put_back(&mut self, mut octets: Vec<u8>) {
        octets.append(&mut self.seen);
        self.seen = octets;
    }

    /// Moves the first of the seen bytes into `buffer`, at most `limit` and at most what it has
    /// room for. Returns how many.
    pub fn read_seen(&mut self, limit: usize, buffer: &mut ReadBuf<'_>) -> usize {
        let count = self.seen.len().min(limit).min(buffer.remaining());
        buffer.put_slice(&self.seen[..count]);
        self.discard(count);
        count
    }

    /// Throws the first octets of what was seen away.
    pub fn discard(&mut self, count: usize) {
        self.seen.drain(..count);
        if self.seen.is_empty() {
            self.seen = Vec::new();
        }
    }
}

impl<S: AsyncRead + Unpin> Buffered<S> {
    /// Reads up to 16 KiB ahead and adds them to what was seen. Ready with their number; 0 is the
    /// end of the stream.
    pub fn poll_see(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.seen.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Reads at most `limit` bytes from the stream straight into `buffer`, and is ready with their
    /// number (0 is the end). Passes over what was seen, so that it is called only when nothing is.
    pub fn poll_read_unseen(
        &mut self,
        limit: usize,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.filled().len();
        if limit >= buffer.remaining() {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            return Poll::Ready(Ok(buffer.filled().len() - before));
        }
        let mut limited = ReadBuf::new(buffer.initialize_unfilled_to(limit));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut limited))?;
        let count = limited.filled().len();
        buffer.advance(count);
        Poll::Ready(Ok(count))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Buffered<S> {
    /// Reads what was seen, as far as the buffer has room. If nothing was seen, reads from the
    /// stream.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.seen.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        this.read_seen(usize::MAX, buffer);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Buffered<S> {
    /// Writes what waits into the stream, without flushing it.
    pub fn poll_gathered(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.gathered() > 0 {
            ready!(self.poll_write_through(&[], context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes, in one call of the stream, the bytes that wait and then `octets`. Ready with how
    /// many of `octets` the stream took: 0 while a part still waits. A stream that takes nothing is
    /// an error.
    fn poll_write_through(
        &mut self,
        octets: &[u8],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let waiting = &self.waiting[self.written..];
        let polled = match (waiting, octets) {
            ([], octets) | (octets, []) => stream.poll_write(context, octets),
            (waiting, octets) => {
                stream.poll_write_vectored(context, &[IoSlice::new(waiting), IoSlice::new(octets)])
            }
        };
        let length = waiting.len();
        let count = ready!(polled)?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.is_unflushed = true;
        if count < length {
            self.written += count;
            return Poll::Ready(Ok(0));
        }
        self.waiting.release();
        self.written = 0;
        Poll::Ready(Ok(count - length))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Buffered<S> {
    /// Gathers `octets`, if they and the bytes that wait are at most `GATHERED`. Otherwise writes
    /// what waits first, and of `octets` what the stream takes. Ready with how many of `octets`
    /// were taken.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        while this.gathered() + octets.len() > GATHERED {
            let count = ready!(this.poll_write_through(octets, context))?;
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
        }
        this.gather().extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }

    /// Writes what waits, and flushes the stream if something was written since its last flush.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_gathered(context))?;
        if this.is_unflushed {
            ready!(Pin::new(&mut this.stream).poll_flush(context))?;
            this.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_gathered(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
