//! A client's connection as Pingora sees it: [`Connection`]. It gathers what is written, so that a head and its body leave
//! in one system call. It reads the first octets ahead, which tells HTTP/2 from HTTP/1. Must not know requests.
//!
//! Pingora's own stream has buffers only when Pingora itself listens, and these take 64 KiB of every idle connection. It
//! waits for all 24 octets of the preface, however few a client sends (Pingora 0.9.1).

use crate::telemetry::OpenConnection;
use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType,
};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// How many octets are gathered: a head and a small body. A write that does not fit leaves at once, with what waits.
const GATHERED: usize = 8 * 1024;
/// The first octets of an HTTP/2 client (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Octets read at a time before the protocol is known. Pingora reads as many of an HTTP/1 request, so that reading them
/// ahead costs no further system call.
const FIRST_READ: usize = 4 * 1024;

/// A stream of octets that gathers what is written until it is flushed, and whose first octets can be seen before they
/// are read.
#[derive(Debug)]
pub(super) struct Buffered<S> {
    stream: S,
    /// Octets that were seen and not yet read. Holds memory only until they are read.
    seen: Vec<u8>,
    /// Pingora wrote these octets; the socket has not taken them yet. Holds no memory until something is written.
    waiting: Vec<u8>,
}

impl<S> Buffered<S> {
    pub(super) fn new(stream: S) -> Buffered<S> {
        Buffered { stream, seen: Vec::new(), waiting: Vec::new() }
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

impl<S: AsyncRead + Unpin> Buffered<S> {
    /// Ready when it is known whether the stream begins with the preface: at the first octet that differs, at the last one
    /// of the preface, or at the end of the stream. A stream that ends before its first octet is an error.
    fn poll_seen(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.seen.len() < PREFACE.len() && PREFACE.starts_with(&self.seen) {
            let mut room = [const { MaybeUninit::uninit() }; FIRST_READ];
            let mut buffer = ReadBuf::uninit(&mut room);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            match (buffer.filled(), self.seen.is_empty()) {
                ([], true) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                ([], false) => break,
                (octets, _) => self.seen.extend_from_slice(octets),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Buffered<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.seen.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let count = this.seen.len().min(buffer.remaining());
        buffer.put_slice(&this.seen[..count]);
        this.seen.drain(..count);
        if this.seen.is_empty() {
            this.seen = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Buffered<TcpStream>,
    digest: Arc<SocketDigest>,
    /// Where the connection is counted, if it is.
    counted: Option<Arc<OpenConnection>>,
    /// Not every octet of HTTP/2 belongs to a request.
    is_http2: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr, counted: Option<OpenConnection>) -> Connection {
        let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
        // The cell is new, so it is not set yet.
        let _ = digest.peer_addr.set(Some(peer.into()));
        Connection {
            stream: Buffered::new(stream),
            digest: Arc::new(digest),
            counted: counted.map(Arc::new),
            is_http2: false,
        }
    }

    /// Where a connection is counted, if it is.
    pub(super) fn counted(stream: &Stream) -> Option<Arc<OpenConnection>> {
        stream.as_any().downcast_ref::<Connection>()?.counted.clone()
    }
}

impl AsyncRead for Connection {
    /// A request begins with its first octet.
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let result = Pin::new(&mut this.stream).poll_read(context, buffer);
        if let Some(counted) = this.counted.as_ref().filter(|_| !this.is_http2 && buffer.filled().len() > before) {
            counted.set_active(true);
        }
        result
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, octets)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for Connection {
    async fn shutdown(&mut self) {
        if let Err(error) = AsyncWriteExt::shutdown(&mut self.stream).await {
            tracing::debug!(%error, "the client closed a connection before crawlgate did");
        }
    }
}

impl UniqueID for Connection {
    fn id(&self) -> UniqueIDType {
        self.stream.stream.as_raw_fd()
    }
}

impl Ssl for Connection {}

#[async_trait]
impl Peek for Connection {
    /// Fills in the first octets, until it is known whether they are the preface. A request that is shorter than the
    /// preface does not wait.
    async fn try_peek(&mut self, first: &mut [u8]) -> io::Result<bool> {
        poll_fn(|context| self.stream.poll_seen(context)).await?;
        self.is_http2 = self.stream.seen.starts_with(PREFACE);
        let count = self.stream.seen.len().min(first.len());
        first[..count].copy_from_slice(&self.stream.seen[..count]);
        Ok(true)
    }
}

impl GetTimingDigest for Connection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Connection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for Connection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        Some(self.digest.clone())
    }
}

#[cfg(test)]
mod tests;
