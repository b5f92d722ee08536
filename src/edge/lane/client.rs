//! [`Client`]: the client's side of a request that the lane forwards (see `mod.rs`). HTTP/1.1 and
//! HTTP/2 implement it.

use super::lines::Lines;
use super::outgoing::Outgoing;
use super::response::ResponseHead;
use crate::answers::Answer;
use crate::requests::Connection;
use http::{HeaderMap, StatusCode};
use httparse::Header;
use std::io;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Why the body of a request does not go on.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The client left.
    #[error("the client left")]
    Gone(#[from] io::Error),
    /// Two readers could see its end in different places.
    #[error("the body of the request is malformed")]
    Malformed,
}

/// The head of a response as its client gets it. The fields that frame the body are not in it.
pub struct ClientHead<'h, 'b> {
    /// The status.
    pub status: StatusCode,
    /// The words after the status.
    pub reason: &'b str,
    /// The fields.
    pub lines: &'h Lines<'b>,
}

/// The client's side of an exchange. A function that is not ready wakes the task when it is. An
/// error ends the exchange: the client is gone, or takes nothing for too long, which the
/// implementation has to notice.
pub trait Client {
    /// Whether the client gets the trailers of a response.
    const TAKES_TRAILERS: bool;

    /// The facts that all requests of its connection share.
    fn connection(&self) -> Connection<'_>;

    /// The fields of the request that shape an answer.
    fn asked(&self) -> HeaderMap;

    /// Adds the octets of the request's body that have come. Ready with whether that was its end.
    /// Only called while there is room for more, so that a client is read no faster than the origin
    /// takes its body.
    fn poll_body(
        &mut self,
        request: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>>;

    /// Passes an informational response on.
    fn inform(&mut self, head: &ClientHead<'_, '_>);

    /// Begins the final response. One without octets in its body ends here.
    fn begin(&mut self, head: &ClientHead<'_, '_>, origins: &ResponseHead);

    /// Ready when octets of the response's body may be read for the client.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Sends octets of the body, and returns how many of them are taken: one at least. With `ends`,
    /// the body ends when all of them are taken.
    fn poll_send(
        &mut self,
        octets: &[u8],
        ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>;

    /// Ends a body whose end was not known before.
    fn end(&mut self, trailers: &[Header<'_>]);

    /// Sends a whole answer, in place of a response that was not begun.
    fn answer(&mut self, answer: &Answer);

    /// Ready when all that was sent has left. Also called, and not awaited, when nothing more comes
    /// for now.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when the client is gone. Only called before any of the request's body is asked for,
    /// and after its end.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;

    /// Ready when this moment has passed.
    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()>;
}
