//! Passes the response of an origin on to its client: [`Exchange::take_heads`] the heads,
//! [`Exchange::pass_body`] the body.

use super::transfer::WaitsFor;
use super::{Exchange, Expectation};
use crate::edge::chunks::BadChunk;
use crate::edge::lane::client::{Client, ClientHead};
use crate::edge::lane::lines::Lines;
use crate::edge::lane::response::{Framing, Parsed, ResponseHead};
use crate::edge::lane::trailers::{BadTrailers, read_trailers};
use crate::edge::lane::wire::{because, of_client, of_origin};
use crate::forwarding::{Head, ends_here, remove_named_by_connection};
use crate::heads::{X_ROBOTS_TAG, is_event_stream};
use crate::requests::{SMALL, memory_of_body, memory_of_head};
use http::{StatusCode, header};
use pingora_core::{Error, ErrorType, Result};
use std::task::{Context, Poll};

/// Informational responses before the final one.
const MOST_INFORMATIONAL: u8 = 16;

/// Octets of a response that may wait: those that are read at a time, those that are gathered, and
/// those that TLS writes.
const AHEAD: usize = 160 * 1024;

impl<C: Client> Exchange<'_, C> {
    /// Passes on the heads that have come, and after the final one the bytes of the body behind it.
    /// Returns which side is awaited. Fails with 503 without buffer space for the response, and for
    /// more than `MOST_INFORMATIONAL` informational responses.
    pub(super) fn take_heads(&mut self, context: &mut Context<'_>) -> Result<WaitsFor> {
        while let Some(head) = self.take_head()? {
            if !head.status.is_informational() {
                // Nothing of it was sent.
                if self.ticket.lacks_space() {
                    return Err(
                        Error::explain(ErrorType::HTTPStatus(503), "no space in buffers")
                            .into_down(),
                    );
                }
                self.keeps_origin = head.keeps_alive && head.framing != Framing::UntilClose;
                return self.pass_body(context);
            }
            self.informational += 1;
            if self.informational > MOST_INFORMATIONAL {
                return Err(of_origin(
                    ErrorType::InvalidHTTPHeader,
                    "too many informational responses",
                ));
            }
        }
        Ok(WaitsFor::Origin)
    }

    /// Reads the next head, if it is complete, and passes it to the client's side. Returns what
    /// crawlgate reads from it; `None` if more of it has to come.
    fn take_head(&mut self) -> Result<Option<ResponseHead>> {
        let mut response = std::mem::take(&mut self.response);
        let taken = response.take_head(self.is_head, |parsed| self.pass_head(parsed));
        self.response = response;
        taken.map_err(|error| {
            because(
                ErrorType::InvalidHTTPHeader,
                "while reading the response",
                error,
            )
        })
    }

    /// Passes one head to the client's side, without the fields that end here. A 100 is left out if
    /// crawlgate has sent one itself. A final head is reported to `upstreams`, gets crawlgate's own
    /// fields, and reserves buffer space for the response; without space nothing is sent.
    fn pass_head(&mut self, parsed: &Parsed<'_, '_>) {
        let Parsed {
            head,
            reason,
            fields,
        } = *parsed;
        let fields = fields.iter().map(|field| (field.name, field.value));
        self.status = head.status.as_u16();
        let mut lines = Lines::default();
        lines.take(fields.filter(|(name, _)| match name.len() {
            4 => !name.eq_ignore_ascii_case("date"),
            7 if !C::TAKES_TRAILERS && name.eq_ignore_ascii_case("trailer") => false,
            10 if !head.names_fields && name.eq_ignore_ascii_case("connection") => false,
            _ => !ends_here(name, head.status),
        }));
        if head.names_fields {
            remove_named_by_connection(&mut lines);
            lines.remove(&header::CONNECTION);
        }
        if head.status.is_informational() {
            // Early hints and the like are no answer.
            if head.status == StatusCode::CONTINUE {
                if self.expectation == Expectation::Told {
                    return;
                }
                self.expectation = Expectation::None;
            }
            self.informational_bytes += head.length;
            if self.informational_bytes > SMALL {
                lines = Lines::default();
            }
            return self.client.inform(&ClientHead {
                status: head.status,
                reason,
                lines: &lines,
            });
        }
        let lived = self.ticket.arrival().lived;
        let origin_elapsed =
            self.attempts
                .answered(&self.lane.upstreams, self.status, lived, || {
                    lines.lines(header::CONTENT_TYPE).any(is_event_stream)
                });
        self.ticket.set_origin_elapsed(origin_elapsed);
        let body = match head.framing {
            Framing::None => 0,
            Framing::Length(length) if length <= SMALL as u64 => 0,
            Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {
                memory_of_body(&lines, AHEAD)
            }
        };
        self.ticket.hold(memory_of_head(head.length) + body);
        if self.ticket.lacks_space() {
            return;
        }
        self.has_begun = true;
        self.request.let_go();
        let origin_host = self.ticket.host_to_replace(&self.lane.upstreams);
        self.ticket
            .forward(self.client.connection())
            .write_response(&mut lines, head.status, origin_host);
        for tag in lines.lines(X_ROBOTS_TAG) {
            self.tags.extend(tag.iter().chain(b"\n"));
        }
        self.client.begin(
            &ClientHead {
                status: head.status,
                reason,
                lines: &lines,
            },
            &head,
        );
    }

    /// Passes on the part of the body that has come. Returns which side is awaited for more, or
    /// `Done` at the end of the body.
    pub(super) fn pass_body(&mut self, context: &mut Context<'_>) -> Result<WaitsFor> {
        loop {
            let (piece, ends) = self.response.piece();
            if !piece.is_empty() {
                match self.client.poll_send(piece, ends, context) {
                    Poll::Pending => {
                        self.response.settle();
                        return Ok(WaitsFor::Client);
                    }
                    Poll::Ready(Ok(count)) => {
                        self.response.passed_on(count);
                        self.transfer.pace.pause();
                        self.body_octets += count as u64;
                    }
                    Poll::Ready(Err(error)) => return Err(of_client(ErrorType::WriteError, error)),
                }
            } else if self.response.is_body_over() {
                if !self.response.has_length() {
                    let trailers = read_trailers(self.response.trailers(), |trailers| {
                        self.client.end(trailers)
                    });
                    trailers.map_err(|BadTrailers| {
                        of_origin(
                            ErrorType::InvalidHTTPHeader,
                            "the response has malformed trailers",
                        )
                    })?;
                }
                return Ok(WaitsFor::Done);
            } else {
                let found = self.response.next_piece().map_err(|BadChunk| {
                    of_origin(
                        ErrorType::InvalidHTTPHeader,
                        "the response has a malformed chunk",
                    )
                })?;
                if !found {
                    return Ok(WaitsFor::Origin);
                }
            }
        }
    }
}
