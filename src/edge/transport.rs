//! [`Transport`]: what carries the bytes of a client's connection. This is a TCP or Unix socket,
//! TLS on a TCP socket, or a pipe in memory, through which Pingora gets one request of an HTTP/2
//! connection.

use std::fmt::Debug;
use std::os::fd::{AsRawFd, RawFd};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

pub type BoxedTransport = Box<dyn Transport>;

/// A stream of bytes in both directions.
pub trait Transport: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin {
    /// The file descriptor of the socket; -1 for memory.
    fn raw_fd(&self) -> RawFd;
}

impl Transport for TcpStream {
    fn raw_fd(&self) -> RawFd {
        self.as_raw_fd()
    }
}

impl Transport for UnixStream {
    fn raw_fd(&self) -> RawFd {
        self.as_raw_fd()
    }
}

impl Transport for TlsStream<TcpStream> {
    fn raw_fd(&self) -> RawFd {
        self.get_ref().0.as_raw_fd()
    }
}

impl Transport for DuplexStream {
    fn raw_fd(&self) -> RawFd {
        -1
    }
}
