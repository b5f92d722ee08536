//! A client's connection as Pingora sees it: what is written is gathered, so that a head and its body leave in one system
//! call.
//!
//! Pingora's own stream has buffers only when Pingora itself listens, and these take 64 KiB of every idle connection.

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest, UniqueID,
    UniqueIDType,
};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

/// Octets that wait for more: a head and a small body. What does not fit goes out at once, together with what waits.
const GATHERED: usize = 8 * 1024;

/// A stream of octets that gathers what is written until it is flushed.
#[derive(Debug)]
pub(super) struct Gathering<S> {
    stream: S,
    /// Written by Pingora and not yet by us. Holds no memory until something is written.
    waiting: Vec<u8>,
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    pub(super) fn new(stream: S) -> Gathering<S> {
        Gathering { stream, waiting: Vec::new() }
    }

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

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
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

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Gathering<TcpStream>,
    digest: Arc<SocketDigest>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Connection {
        let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
        // The cell is new: it cannot be set already.
        let _ = digest.peer_addr.set(Some(peer.into()));
        Connection { stream: Gathering::new(stream), digest: Arc::new(digest) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
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
            tracing::debug!(%error, "a connection was gone before it was closed");
        }
    }
}

impl UniqueID for Connection {
    fn id(&self) -> UniqueIDType {
        self.stream.stream.as_raw_fd()
    }
}

impl Ssl for Connection {}

impl Peek for Connection {}

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
mod tests {
    use super::*;

    /// Takes at most so many octets a call, and counts the calls.
    #[derive(Default)]
    struct Reluctant {
        taken: Vec<u8>,
        calls: usize,
        at_most: usize,
    }

    impl AsyncWrite for Reluctant {
        fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(octets)])
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let this = self.get_mut();
            this.calls += 1;
            // Every other call has to wait.
            if this.calls % 2 == 1 && this.at_most < usize::MAX {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let octets: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(this.at_most).collect();
            this.taken.extend_from_slice(&octets);
            Poll::Ready(Ok(octets.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_head_and_its_body_leave_in_one_call() {
        for body in [1_000, 100_000] {
            let mut stream = Gathering::new(Reluctant { at_most: usize::MAX, ..Reluctant::default() });
            stream.write_all(&[b'h'; 200]).await.expect("written");
            assert_eq!(stream.stream.calls, 0, "it waits for the body");
            stream.write_all(&vec![b'b'; body]).await.expect("written");
            stream.flush().await.expect("flushed");
            assert_eq!((stream.stream.calls, stream.stream.taken.len()), (1, 200 + body));
        }
    }

    #[tokio::test]
    async fn nothing_is_lost_or_reordered_however_little_is_taken_at_a_time() {
        for at_most in [1, 7, 199, 200, 201, 8_191, 8_193] {
            let mut stream = Gathering::new(Reluctant { at_most, ..Reluctant::default() });
            let mut sent = Vec::new();
            for (place, length) in [200, 8_000, 1, 9_000, 0, 3, 20_000, 5].into_iter().enumerate() {
                let piece: Vec<u8> = (0..length).map(|octet| (octet % 251 + place) as u8).collect();
                stream.write_all(&piece).await.expect("written");
                sent.extend(piece);
            }
            AsyncWriteExt::shutdown(&mut stream).await.expect("shut down");
            assert!(stream.stream.taken == sent, "at most {at_most} a call");
        }
    }
}
