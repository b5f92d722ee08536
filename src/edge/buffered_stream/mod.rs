//! [`BufferedStream`]: a network stream with two buffers. Bytes in the read buffer can be inspected
//! before they are consumed. The write buffer sends a message head and its body in one system call.
//!
//! Pingora's own stream has buffers only when Pingora itself listens. Pingora's buffers take 64 KiB
//! for every idle connection (Pingora 0.9.1). The buffers of [`BufferedStream`] take memory only
//! while they contain something.

use super::pooled_buffer::PooledBuffer;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{
    Context,
    Poll::{self, Ready},
    ready,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the write buffer: a head and a small body. A write that does not fit leaves at once,
/// with what is buffered.
pub const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// Bytes that are read at a time: a TLS record.
const READ_AHEAD_BYTES: usize = 16 * 1024;

/// A stream with a buffer in each direction.
#[derive(Debug)]
pub struct BufferedStream<S> {
    stream: S,
    read_buffer: Vec<u8>,
    /// The stream has taken the first `written` bytes of it.
    write_buffer: PooledBuffer,
    written: usize,
    is_unflushed: bool,
}

impl<S> BufferedStream<S> {
    pub fn new(stream: S) -> BufferedStream<S> {
        BufferedStream {
            stream,
            read_buffer: Vec::new(),
            write_buffer: PooledBuffer::default(),
            written: 0,
            is_unflushed: false,
        }
    }

    pub fn inner(&self) -> &S {
        &self.stream
    }

    /// The write buffer, for adding more.
    pub fn write_buffer(&mut self) -> &mut Vec<u8> {
        self.write_buffer.writable()
    }

    /// How many bytes of the write buffer the stream has not taken.
    pub fn unwritten_len(&self) -> usize {
        self.write_buffer.len() - self.written
    }

    /// Bytes that came and are not read yet.
    pub fn read_buffer(&self) -> &[u8] {
        &self.read_buffer
    }

    /// Removes and returns these bytes of the read buffer. The bytes before them are discarded,
    /// those behind them stay.
    pub fn take_range(&mut self, range: Range<usize>) -> Vec<u8> {
        let rest = self.read_buffer.split_off(range.end);
        let mut taken = std::mem::replace(&mut self.read_buffer, rest);
        taken.drain(..range.start);
        taken
    }

    /// Puts bytes in front of the read buffer.
    pub fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.append(&mut self.read_buffer);
        self.read_buffer = bytes;
    }

    /// Moves up to `limit` bytes of the read buffer into `buffer`, as many as fit. Returns their
    /// number.
    pub fn read_buffered(&mut self, limit: usize, buffer: &mut ReadBuf<'_>) -> usize {
        let count = self.read_buffer.len().min(limit).min(buffer.remaining());
        buffer.put_slice(&self.read_buffer[..count]);
        self.discard(count);
        count
    }

    /// Discards the first bytes of the read buffer.
    pub fn discard(&mut self, count: usize) {
        self.read_buffer.drain(..count);
        if self.read_buffer.is_empty() {
            self.read_buffer = Vec::new();
        }
    }
}

impl<S: AsyncRead + Unpin> BufferedStream<S> {
    /// Reads up to 16 KiB into the read buffer. Ready with their number; 0 is the end of the
    /// stream.
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut memory = [const { MaybeUninit::uninit() }; READ_AHEAD_BYTES];
        let mut buffer = ReadBuf::uninit(&mut memory);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.read_buffer.extend_from_slice(buffer.filled());
        Ready(Ok(buffer.filled().len()))
    }

    /// Reads up to `limit` bytes from the stream straight into `buffer`. Ready with their number; 0
    /// is the end. Only called while the read buffer is empty.
    pub fn poll_read_direct(
        &mut self,
        limit: usize,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.filled().len();
        if limit >= buffer.remaining() {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            return Ready(Ok(buffer.filled().len() - before));
        }
        let mut limited = ReadBuf::new(buffer.initialize_unfilled_to(limit));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut limited))?;
        let count = limited.filled().len();
        buffer.advance(count);
        Ready(Ok(count))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BufferedStream<S> {
    /// Reads the bytes that were peeked, as many as fit into the buffer. If there are none, reads
    /// from the stream.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read_buffer.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        this.read_buffered(usize::MAX, buffer);
        Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> BufferedStream<S> {
    /// Writes the write buffer into the stream, without flushing it.
    pub fn poll_write_buffer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unwritten_len() > 0 {
            ready!(self.poll_write_through(&[], context))?;
        }
        Ready(Ok(()))
    }

    /// Writes the write buffer and `bytes` in one call of the stream. Ready with how many of
    /// `bytes` the stream took: 0 if it did not take the whole write buffer. A stream that takes
    /// nothing is an error.
    fn poll_write_through(
        &mut self,
        bytes: &[u8],
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let waiting = &self.write_buffer[self.written..];
        let polled = match (waiting, bytes) {
            ([], bytes) | (bytes, []) => stream.poll_write(context, bytes),
            (waiting, bytes) => {
                stream.poll_write_vectored(context, &[IoSlice::new(waiting), IoSlice::new(bytes)])
            }
        };
        let length = waiting.len();
        let count = ready!(polled)?;
        if count == 0 {
            return Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.is_unflushed = true;
        if count < length {
            self.written += count;
            return Ready(Ok(0));
        }
        self.write_buffer.release();
        self.written = 0;
        Ready(Ok(count - length))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BufferedStream<S> {
    /// Adds `bytes` to the write buffer, if they fit. Otherwise writes the buffer, and as many of
    /// `bytes` as the stream takes. Ready with how many of `bytes` were taken.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        while this.unwritten_len() + bytes.len() > WRITE_BUFFER_BYTES {
            let count = ready!(this.poll_write_through(bytes, context))?;
            if count > 0 {
                return Ready(Ok(count));
            }
        }
        this.write_buffer().extend_from_slice(bytes);
        Ready(Ok(bytes.len()))
    }

    /// Writes the write buffer, and flushes the stream if something was written since its last
    /// flush.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_write_buffer(context))?;
        if this.is_unflushed {
            ready!(Pin::new(&mut this.stream).poll_flush(context))?;
            this.is_unflushed = false;
        }
        Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_write_buffer(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
