//! [`Buffered`]: a stream of octets that gathers what is written until it is flushed, so that a head and its body leave
//! in one system call. Octets can be seen before they are read. Must not know what the octets mean.
//!
//! Pingora's own stream has buffers only when Pingora itself listens, and these take 64 KiB of every idle connection
//! (Pingora 0.9.1). This one holds memory only while there is something to hold.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many octets are gathered: a head and a small body. A write that does not fit leaves at once, with what waits.
const GATHERED: usize = 8 * 1024;
/// Octets read ahead at a time: a record of TLS.
const READ: usize = 16 * 1024;

/// A stream with a buffer for each direction.
#[derive(Debug)]
pub(super) struct Buffered<S> {
    stream: S,
    /// Octets that were seen and not yet read. Holds memory only until they are read.
    seen: Vec<u8>,
    /// Octets that the stream has not taken yet. Holds no memory until something is written.
    waiting: Vec<u8>,
}

impl<S> Buffered<S> {
    pub(super) fn new(stream: S) -> Buffered<S> {
        Buffered { stream, seen: Vec::new(), waiting: Vec::new() }
    }

    pub(super) fn inner(&self) -> &S {
        &self.stream
    }

    /// What was seen and not yet read.
    pub(super) fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// Takes these octets out of what was seen, and throws those before them away.
    pub(super) fn take(&mut self, range: Range<usize>) -> Vec<u8> {
        let rest = self.seen.split_off(range.end);
        let mut taken = std::mem::replace(&mut self.seen, rest);
        taken.drain(..range.start);
        taken
    }

    /// Puts octets back in front of what was seen.
    pub(super) fn put_back(&mut self, mut octets: Vec<u8>) {
        octets.append(&mut self.seen);
        self.seen = octets;
    }

    /// Moves at most `limit` of the seen octets into a buffer.
    pub(super) fn read_seen(&mut self, limit: usize, buffer: &mut ReadBuf<'_>) -> usize {
        let count = self.seen.len().min(limit).min(buffer.remaining());
        buffer.put_slice(&self.seen[..count]);
        self.discard(count);
        count
    }

    /// Throws the first octets of what was seen away.
    pub(super) fn discard(&mut self, count: usize) {
        self.seen.drain(..count);
        if self.seen.is_empty() {
            self.seen = Vec::new();
        }
    }
}

impl<S: AsyncRead + Unpin> Buffered<S> {
    /// Reads ahead. Ready with the number of octets that were seen; 0 is the end of the stream.
    pub(super) fn poll_see(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.seen.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Ready when it is known whether the stream begins with these octets: at the first octet that differs, at the last one
    /// of `beginning`, or at the end of the stream. A stream that ends before its first octet is an error.
    pub(super) fn poll_begins_with(&mut self, beginning: &[u8], context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.seen.len() < beginning.len() && beginning.starts_with(&self.seen) {
            match (ready!(self.poll_see(context))?, self.seen.is_empty()) {
                (0, true) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                (0, false) => break,
                _ => {}
            }
        }
        Poll::Ready(Ok(self.seen.starts_with(beginning)))
    }

    /// Reads at most `limit` octets that were not seen yet.
    pub(super) fn poll_read_unseen(
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
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.seen.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        this.read_seen(usize::MAX, buffer);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Buffered<S> {
    /// Writes what waits.
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.waiting))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.waiting.drain(..written);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what waits, and then some of these octets, or of both. Nothing is gathered. Ready with how many were written.
    pub(super) fn poll_write_both(
        &mut self,
        first: &[u8],
        second: &[u8],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_waiting(context))?;
        let stream = Pin::new(&mut self.stream);
        let polled = match (first, second) {
            ([], octets) | (octets, []) => stream.poll_write(context, octets),
            (first, second) => stream.poll_write_vectored(context, &[IoSlice::new(first), IoSlice::new(second)]),
        };
        match ready!(polled)? {
            0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            count => Poll::Ready(Ok(count)),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Buffered<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.waiting.len() + octets.len() <= GATHERED {
            this.waiting.extend_from_slice(octets);
            return Poll::Ready(Ok(octets.len()));
        }
        while !this.waiting.is_empty() {
            let both = [IoSlice::new(&this.waiting), IoSlice::new(octets)];
            let written = ready!(Pin::new(&mut this.stream).poll_write_vectored(context, &both))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_waiting = written.min(this.waiting.len());
            this.waiting.drain(..of_waiting);
            if written > of_waiting {
                return Poll::Ready(Ok(written - of_waiting));
            }
        }
        Pin::new(&mut this.stream).poll_write(context, octets)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_waiting(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_waiting(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
