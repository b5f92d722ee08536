//! Octets to and from an origin, within the time that the origin may take. While nothing moves, the client is watched: a
//! request whose client is gone ends.

use crate::edge::connection::Connection;
use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType, Result};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite};

/// Octets that are read at a time. Pingora's streams copy what is read in smaller pieces (Pingora 0.9.1).
const READ: usize = 64 * 1024;

/// An error of the origin.
pub(super) fn of_origin(kind: ErrorType, context: &'static str) -> Box<Error> {
    let mut error = Error::explain(kind, context);
    error.as_up();
    error
}

/// An error of the client.
pub(super) fn of_client(kind: ErrorType, cause: io::Error) -> Box<Error> {
    let mut error = Error::because(kind, "the client left", cause);
    error.as_down();
    error
}

/// Sends octets to the origin.
pub(super) async fn write(stream: &mut Stream, octets: &[u8], client: &mut Connection, limit: Duration) -> Result<()> {
    let mut written = 0;
    let mut has_waited = false;
    poll_fn(|context| {
        let polled = poll_write(stream, octets, &mut written, context);
        let late = || of_origin(ErrorType::WriteTimedout, "the origin takes nothing");
        watch(polled, client, (limit, &mut has_waited), late, context)
    })
    .await?
    .map_err(|error| {
        let mut error = Error::because(ErrorType::WriteError, "while sending the request", error);
        error.as_up();
        error
    })
}

fn poll_write(
    stream: &mut Stream,
    octets: &[u8],
    written: &mut usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while *written < octets.len() {
        match ready!(Pin::new(&mut *stream).poll_write(context, &octets[*written..]))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            count => *written += count,
        }
    }
    Pin::new(stream).poll_flush(context)
}

/// Reads more from the origin; 0 is the end.
pub(super) async fn read(
    stream: &mut Stream,
    input: &mut Vec<u8>,
    client: &mut Connection,
    limit: Duration,
) -> Result<usize> {
    let mut has_waited = false;
    poll_fn(|context| {
        let polled = poll_read(stream, input, context);
        let late = || of_origin(ErrorType::ReadTimedout, "the origin sends nothing");
        watch(polled, client, (limit, &mut has_waited), late, context)
    })
    .await?
    .map_err(read_error)
}

/// The same without waiting: `None` if nothing is there.
pub(super) async fn read_now(stream: &mut Stream, input: &mut Vec<u8>) -> Result<Option<usize>> {
    let read = poll_fn(|context| match poll_read(stream, input, context) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending => Poll::Ready(None),
    });
    read.await.transpose().map_err(read_error)
}

fn read_error(error: io::Error) -> Box<Error> {
    let mut error = Error::because(ErrorType::ReadError, "while reading the response", error);
    error.as_up();
    error
}

fn poll_read(stream: &mut Stream, input: &mut Vec<u8>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    input.reserve(READ);
    let read = pin!(stream.read_buf(input));
    read.poll(context)
}

/// Ends what waits when the client is gone or the time is over. The deadline begins when something has to be waited for.
fn watch<T>(
    polled: Poll<io::Result<T>>,
    client: &mut Connection,
    (limit, has_waited): (Duration, &mut bool),
    late: impl FnOnce() -> Box<Error>,
    context: &mut Context<'_>,
) -> Poll<Result<io::Result<T>>> {
    if let Poll::Ready(result) = polled {
        return Poll::Ready(Ok(result));
    }
    if let Poll::Ready(gone) = client.poll_client_gone(context) {
        let cause = gone.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
        return Poll::Ready(Err(of_client(ErrorType::ConnectionClosed, cause)));
    }
    if !std::mem::replace(has_waited, true) {
        client.set_deadline(limit);
    }
    if client.has_deadline_passed(context) { Poll::Ready(Err(late())) } else { Poll::Pending }
}
