//! [`Transport`]: the carrier of a connection's octets: a TCP or Unix socket, TLS on a TCP socket,
//! or memory.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A socket, TLS on one, or memory.
#[derive(Debug)]
pub enum Transport {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// For one request of an HTTP/2 connection.
    Memory(DuplexStream),
}

/// Octets in both directions.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

impl Transport {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut dyn Duplex> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream),
            Transport::Unix(stream) => Pin::new(stream),
            Transport::Tls(stream) => Pin::new(stream),
            Transport::Memory(stream) => Pin::new(stream),
        }
    }
}

impl AsRawFd for Transport {
    /// The descriptor of the socket; -1 for a connection in memory.
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Transport::Plain(stream) => stream.as_raw_fd(),
            Transport::Unix(stream) => stream.as_raw_fd(),
            Transport::Tls(stream) => stream.get_ref().0.as_raw_fd(),
            // No descriptor.
            Transport::Memory(_) => -1,
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, octets)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
