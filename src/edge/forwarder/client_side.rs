//! [`ClientSide`]: the trait by which the forwarder reads a request's body from the client and
//! sends the client the response. HTTP/1.1 and HTTP/2 implement it.

use super::field_lines::FieldLines;
use super::request_buffer::RequestBuffer;
use super::response_head::ResponseHead;
use crate::answers::Answer;
use crate::edge::body_decoder::MalformedBody;
use crate::requests::ConnectionFacts;
use http::{HeaderMap, StatusCode};
use httparse::Header;
use std::io;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Why the body of a request cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The client left.
    #[error("the client left")]
    ClientLeft(#[from] io::Error),
    /// Two readers could frame it differently.
    #[error("the body of the request is malformed")]
    Malformed(#[from] MalformedBody),
}

/// The client's side of a round trip. An error ends the round trip: the client has left, or takes
/// nothing for too long, which the implementation has to notice.
pub trait ClientSide {
    /// Whether the client gets the trailers of a response.
    const SUPPORTS_TRAILERS: bool;

    /// What all requests of the connection share.
    fn connection(&self) -> ConnectionFacts<'_>;

    /// The fields of the request that an answer depends on.
    fn request_fields(&self) -> HeaderMap;

    /// Adds bytes of the body that have come to `request`. Ready with whether that was its end.
    /// Only called while `request` has capacity, so that a client is read no faster than the origin
    /// takes the body.
    fn poll_body(
        &mut self,
        request: &mut RequestBuffer,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>>;

    /// Sends an informational response.
    fn send_informational(&mut self, status: StatusCode, reason: &str, lines: &FieldLines<'_>);

    /// Sends the final head: the status of `head`, the reason phrase, and `lines`, which are
    /// without the fields that frame the body. A response without a body ends here.
    fn send_head(&mut self, head: &ResponseHead, reason: &str, lines: &FieldLines<'_>);

    /// Ready when more of the response's body may be read for the client.
    fn poll_capacity(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Sends bytes of the body. Ready with how many of them were taken: at least one. With `ends`,
    /// the body ends when all of them are taken.
    fn poll_send_body(
        &mut self,
        bytes: &[u8],
        ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>>;

    /// Ends a body without a length.
    fn end_body(&mut self, trailers: &[Header<'_>]);

    /// Sends a whole answer instead of a response, of which nothing was sent.
    fn send_answer(&mut self, answer: &Answer);

    /// Ready when all that was sent has left. Also polled when nothing more comes for now.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when the client has left. Not called while the body of the request is read.
    fn poll_client_left(&mut self, context: &mut Context<'_>) -> Poll<io::Error>;

    /// Ready when this moment has passed.
    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()>;
}
