//! [`poll_read`] and [`poll_write`] do one read or write on a connection to an origin.
//! [`origin_error`] and [`client_error`] make Pingora errors: the first blames the origin, the
//! second the client.

use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Bytes that are read at a time. Pingora's streams copy what is read in smaller pieces (Pingora
/// 0.9.1).
const READ_BYTES: usize = 64 * 1024;

/// An error of the origin, without a cause.
pub fn origin_error(kind: ErrorType, context: &'static str) -> Box<Error> {
    Error::explain(kind, context).into_up()
}

/// An error of the origin, with its cause.
pub fn origin_error_from(
    kind: ErrorType,
    context: &'static str,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Box<Error> {
    Error::because(kind, context, cause).into_up()
}

/// The error that the client has left.
pub fn client_error(kind: ErrorType, cause: io::Error) -> Box<Error> {
    Error::because(kind, "the client left", cause).into_down()
}

/// Writes some of these bytes. Ready with their number; a connection that takes none is an error.
pub fn poll_write(
    stream: &mut Stream,
    bytes: &[u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    match Pin::new(stream).poll_write(context, bytes) {
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
    input.reserve(READ_BYTES);
    pin!(stream.read_buf(input)).poll(context)
}
