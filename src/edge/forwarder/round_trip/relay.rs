//! Passes an origin's response on to the client. [`RoundTrip::relay_heads`] passes on the status
//! and header lines, and [`RoundTrip::relay_body`] the body.

use super::transfer::WaitingFor;
use super::{ContinueState, RoundTrip};
use crate::edge::body_decoder::MalformedBody;
use crate::edge::forwarder::client_side::ClientSide;
use crate::edge::forwarder::field_lines::FieldLines;
use crate::edge::forwarder::origin_io::{client_error, origin_error, origin_error_from};
use crate::edge::forwarder::response_head::{ParsedResponse, ResponseFraming, ResponseHead};
use crate::edge::forwarder::trailers::read_trailers;
use crate::forwarding::{EditableHead, is_dropped_from_response, remove_connection_named};
use crate::heads::{X_ROBOTS_TAG, is_event_stream};
use crate::requests::{MAX_UNRESERVED, body_reservation, head_reservation};
use WaitingFor::*;
use http::{StatusCode, header};
use pingora_core::{
    Error,
    ErrorType::{HTTPStatus, InvalidHTTPHeader, WriteError},
    Result,
};
use std::task::{Context, Poll};

/// The most informational responses before the final one.
const MAX_INFORMATIONAL: u8 = 16;

/// Bytes of a response that may wait: those that are read at a time, those of the write buffer, and
/// those that TLS writes.
const RESPONSE_READ_AHEAD: usize = 160 * 1024;

impl<C: ClientSide> RoundTrip<'_, C> {
    /// Passes on the heads that have come, and what has come of the body. Fails with 503 without
    /// buffer space for the response, and after more than `MAX_INFORMATIONAL` informational
    /// responses.
    pub fn relay_heads(&mut self, context: &mut Context<'_>) -> Result<WaitingFor> {
        while let Some(head) = self.relay_next_head()? {
            if !head.status.is_informational() {
                // Nothing of it was sent.
                if self.ticket.lacks_buffer_space() {
                    return Err(Error::explain(HTTPStatus(503), "no space in buffers").into_down());
                }
                self.keeps_origin = head.keeps_alive && head.framing != ResponseFraming::UntilClose;
                return self.relay_body(context);
            }
            self.informational += 1;
            if self.informational > MAX_INFORMATIONAL {
                return Err(origin_error(
                    InvalidHTTPHeader,
                    "too many informational responses",
                ));
            }
        }
        Ok(Origin)
    }

    /// Passes the next head to the client's side, if it is complete.
    fn relay_next_head(&mut self) -> Result<Option<ResponseHead>> {
        let mut response = std::mem::take(&mut self.response);
        let parsed = response.parse_head(self.is_head, |parsed| self.relay_head(parsed));
        self.response = response;
        parsed.map_err(|error| {
            origin_error_from(InvalidHTTPHeader, "while reading the response", error)
        })
    }

    /// Passes one head to the client's side, without the fields that end here. A 100 is dropped if
    /// crawlgate has sent one itself. A final head is reported to `upstreams`, gets crawlgate's
    /// fields, and reserves buffer space for the response; without space nothing is sent.
    fn relay_head(&mut self, parsed: &ParsedResponse<'_, '_>) {
        let ParsedResponse {
            head,
            reason,
            fields,
        } = *parsed;
        let fields = fields.iter().map(|field| (field.name, field.value));
        self.status = head.status.as_u16();
        let mut lines = FieldLines::default();
        lines.extend(fields.filter(|(name, _)| match name.len() {
            4 => !name.eq_ignore_ascii_case("date"),
            7 if !C::SUPPORTS_TRAILERS && name.eq_ignore_ascii_case("trailer") => false,
            10 if !head.names_fields && name.eq_ignore_ascii_case("connection") => false,
            _ => !is_dropped_from_response(name, head.status),
        }));
        if head.names_fields {
            remove_connection_named(&mut lines);
            lines.remove(&header::CONNECTION);
        }
        if head.status.is_informational() {
            if head.status == StatusCode::CONTINUE {
                if self.continue_state == ContinueState::SentHere {
                    return;
                }
                self.continue_state = ContinueState::None;
            }
            self.informational_bytes += head.length;
            if self.informational_bytes > MAX_UNRESERVED {
                lines = FieldLines::default();
            }
            return self.client.send_informational(head.status, reason, &lines);
        }
        let monotonic = self.ticket.arrival().monotonic;
        let origin_elapsed = self.attempts.record_response(
            &self.forwarder.upstreams,
            self.status,
            monotonic,
            || lines.lines(header::CONTENT_TYPE).any(is_event_stream),
        );
        self.ticket.record_origin_head(&lines, origin_elapsed);
        let body = match head.framing {
            ResponseFraming::None => 0,
            ResponseFraming::Length(length) if length <= MAX_UNRESERVED as u64 => 0,
            _ => body_reservation(&lines, RESPONSE_READ_AHEAD),
        };
        self.ticket
            .reserve_buffers(head_reservation(head.length) + body);
        if self.ticket.lacks_buffer_space() {
            return;
        }
        self.has_sent_head = true;
        self.request.release_if_sent();
        let origin_host = self.ticket.host_to_replace(&self.forwarder.upstreams);
        self.ticket
            .head_writer(self.client.connection())
            .write_response(&mut lines, head.status, origin_host);
        for tag in lines.lines(X_ROBOTS_TAG) {
            self.tags.extend(tag.iter().chain(b"\n"));
        }
        self.client.send_head(&head, reason, &lines);
    }

    /// Passes on what has come of the body. Waits for nothing at its end.
    pub fn relay_body(&mut self, context: &mut Context<'_>) -> Result<WaitingFor> {
        loop {
            let (data, ends) = self.response.data();
            if !data.is_empty() {
                match self.client.poll_send_body(data, ends, context) {
                    Poll::Pending => {
                        self.response.shrink_buffer();
                        return Ok(Client);
                    }
                    Poll::Ready(Ok(count)) => {
                        self.response.consume(count);
                        self.transfer.slow_client.end_wait();
                        self.body_bytes += count as u64;
                    }
                    Poll::Ready(Err(error)) => {
                        return Err(client_error(WriteError, error));
                    }
                }
            } else if self.response.is_body_finished() {
                if !self.response.has_known_length() {
                    let trailers = read_trailers(self.response.trailers(), |trailers| {
                        self.client.end_body(trailers)
                    });
                    trailers.map_err(|MalformedBody| {
                        origin_error(InvalidHTTPHeader, "the response has malformed trailers")
                    })?;
                }
                return Ok(Nothing);
            } else {
                let has_decoded = self.response.decode_more().map_err(|MalformedBody| {
                    origin_error(InvalidHTTPHeader, "the response has a malformed chunk")
                })?;
                if !has_decoded {
                    return Ok(Origin);
                }
            }
        }
    }
}
