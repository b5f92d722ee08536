//! [`Transport`]: the carrier of a connection's octets: a TCP or Unix socket, TLS on a TCP socket,
//! or, for one request of an HTTP/2 connection, memory.

use std::fmt::Debug;
use std::os::fd::{AsRawFd, RawFd};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// What carries a connection.
pub type Transport = Box<dyn Carrier>;

/// Octets in both directions.
pub trait Carrier: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin {
    /// The descriptor of the socket; -1 for a connection in memory.
    fn descriptor(&self) -> RawFd;
}

impl Carrier for TcpStream {
    fn descriptor(&self) -> RawFd {
        self.as_raw_fd()
    }
}

impl Carrier for UnixStream {
    fn descriptor(&self) -> RawFd {
        self.as_raw_fd()
    }
}

impl Carrier for TlsStream<TcpStream> {
    fn descriptor(&self) -> RawFd {
        self.get_ref().0.as_raw_fd()
    }
}

impl Carrier for DuplexStream {
    fn descriptor(&self) -> RawFd {
        -1
    }
}
