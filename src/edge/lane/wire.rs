//! [`poll_read`] and [`poll_write`]: one read from, or one write to, the connection to an origin.
//! [`of_origin`] and [`because`] make the Pingora error for a failure on the origin's side
//! ([`because`] adds the cause). [`of_client`] makes the one for a client that has left.

use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Octets that are read at a time. Pingora's streams copy what is read in smaller pieces (Pingora
/// 0.9.1).
const READ: usize = 64 * 1024;

/// An error of the origin, without a cause.
pub fn of_origin(kind: ErrorType, context: &'static str) -> Box<Error> {
    Error::explain(kind, context).into_up()
}

/// An error of the origin that another one caused.
pub fn because(
    kind: ErrorType,
    context: &'static str,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Box<Error> {
    Error::because(kind, context, cause).into_up()
}

/// An error of the client, which is gone.
pub fn of_client(kind: ErrorType, cause: io::Error) -> Box<Error> {
    Error::because(kind, "the client left", cause).into_down()
}

/// Writes some of these bytes to the origin. Ready with their number; a connection that takes none
/// is an error.
pub fn poll_write(
    stream: &mut Stream,
    octets: &[u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    match Pin::new(stream).poll_write(context, octets) {
        Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        polled => polled,
    }
}

/// Reads up to 64 KiB and adds them to `input`. Ready with their number; 0 is the end.
pub fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    input: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    input.reserve(READ);
    let read = pin!(stream.read_buf(input));
    read.poll(context)
}
