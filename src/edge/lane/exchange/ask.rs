//! The first half of an exchange: a server is found, and the head of its response becomes the head that the client gets.

use super::{Exchange, Origin};
use crate::edge::date::with_date;
use crate::edge::lane::lines::Lines;
use crate::edge::lane::response::{self, BadResponse, Framing, Parsed, ResponseHead};
use crate::edge::lane::wire::{self, of_origin};
use crate::forwarding::{Head, remove_named_by_connection};
use crate::heads::X_ROBOTS_TAG;
use crate::origin::{Choice, NoPeer, Route, failure_reason};
use http::header;
use pingora_core::{Error, ErrorSource, ErrorType, Result};

/// Informational responses before the final one.
const MOST_INFORMATIONAL: u8 = 16;

/// What may wait of a response: what is read at a time, what is gathered, and what TLS writes.
const AHEAD: usize = 160 * 1024;

impl Exchange<'_> {
    /// Sends the request to a server. Gives the connection and the head of the response; what the client gets of it is in the
    /// output.
    pub(super) async fn ask(&mut self, stops: impl Fn() -> bool) -> Result<(Origin, ResponseHead)> {
        let mut must_be_fresh = false;
        loop {
            let mut origin = self.connect(must_be_fresh).await?;
            let error = match self.answer_of(&mut origin, &stops).await {
                Ok(head) => return Ok((origin, head)),
                Err(error) => error,
            };
            // The server closed a kept connection, and has read nothing of the request that it answers.
            let was_closed =
                matches!(error.etype(), ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError);
            let is_untouched = origin.is_kept && was_closed && self.request.buffers.input.is_empty();
            if !is_untouched || *error.esource() == ErrorSource::Downstream || !self.attempts.may_go_on() {
                return Err(error);
            }
            must_be_fresh = true;
        }
    }

    /// A connection to the server whose turn it is.
    async fn connect(&mut self, must_be_fresh: bool) -> Result<Origin> {
        loop {
            let (route, choice) = match self.choose() {
                Ok(chosen) => chosen,
                Err(error) => return Err(self.no_server(error)),
            };
            if let Some(stream) = Some(route.key).filter(|_| !must_be_fresh).and_then(|key| self.lane.pool.take(key)) {
                return Ok(Origin { stream, route, is_kept: true });
            }
            let peer = self.lane.origins.http_peer(choice).map_err(|error| self.no_server(error))?;
            match self.lane.connector.new_stream(&*peer).await {
                Ok(stream) => return Ok(Origin { stream, route, is_kept: false }),
                Err(mut error) => {
                    error.as_up();
                    self.attempts.connect_failed(&self.lane.origins);
                    // Another server may answer the request. That this one does not is still to be seen.
                    self.count_failure(failure_reason(error.etype()), &error);
                    if !self.attempts.may_go_on() {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn choose(&mut self) -> std::result::Result<(Route, Choice), NoPeer> {
        let choice = self.attempts.next(&self.lane.origins, self.ticket.host())?;
        Ok((self.lane.origins.route(choice)?, choice))
    }

    fn no_server(&mut self, error: NoPeer) -> Box<Error> {
        self.lane.metrics.upstream_failure(self.attempts.place(), error.reason());
        match error {
            NoPeer::NoAddress(_) => self.count_failure(error.reason(), &error),
            NoPeer::NoOrigin => {
                self.lane.origins.has_no_origin(self.ticket.host(), self.ticket.target(), self.ticket.arrival().lived);
            }
        }
        Error::explain(ErrorType::HTTPStatus(502), error.to_string())
    }

    /// Sends the request and reads up to the end of the final head.
    async fn answer_of(&mut self, origin: &mut Origin, stops: &impl Fn() -> bool) -> Result<ResponseHead> {
        let timeouts = origin.route.timeouts;
        wire::write(&mut origin.stream, &self.request.buffers.request, self.client, timeouts.write).await?;
        let mut informational = 0;
        loop {
            while let Some(head) = self.take_in(stops)? {
                self.read += head.length;
                if !head.status.is_informational() {
                    return self.check_space().map(|()| head);
                }
                informational += 1;
                if informational > MOST_INFORMATIONAL {
                    return Err(of_origin(ErrorType::InvalidHTTPHeader, "too many informational responses"));
                }
                self.send().await?;
            }
            let input = &mut self.request.buffers.input;
            if wire::read(&mut origin.stream, input, self.client, timeouts.read).await? == 0 {
                return Err(of_origin(ErrorType::ConnectionClosed, "the origin closed before the head of a response"));
            }
        }
    }

    /// Reads a head from the input and writes what the client gets of it; `None` if it is not complete.
    fn take_in(&mut self, stops: &impl Fn() -> bool) -> Result<Option<ResponseHead>> {
        let input = std::mem::take(&mut self.request.buffers.input);
        let read = match &input[self.read..] {
            [] => Ok(None),
            octets => response::read(octets, self.request.is_head, |parsed| self.write_head(&parsed, stops)),
        };
        self.request.buffers.input = input;
        read.map_err(|error: BadResponse| {
            let mut error = Error::because(ErrorType::InvalidHTTPHeader, "while reading the response", error);
            error.as_up();
            error
        })
    }

    /// Nothing was sent of a response that there is no space for.
    fn check_space(&mut self) -> Result<()> {
        if self.ticket.lacks_space() {
            self.has_begun = false;
            let mut error = Error::explain(ErrorType::HTTPStatus(503), "no space in buffers");
            error.as_down();
            return Err(error);
        }
        Ok(())
    }

    fn write_head(&mut self, parsed: &Parsed<'_, '_>, stops: &impl Fn() -> bool) -> ResponseHead {
        let head = parsed.head;
        self.status = head.status.as_u16();
        if head.status.is_informational() {
            // Early hints and the like are no answer.
            let lines = Lines::new(parsed.fields, |_| false);
            let output = &mut self.request.buffers.output;
            write_status(parsed, output);
            lines.write(output);
            output.extend_from_slice(b"\r\n");
            return head;
        }
        self.has_begun = true;
        let lived = self.ticket.arrival().lived;
        if let Some((server, elapsed)) = self.attempts.answered(&self.lane.origins, self.status, lived) {
            self.lane.metrics.upstream(server, self.status, elapsed.as_secs_f64());
        }
        self.keeps_alive &= !stops();
        let mut lines = Lines::new(parsed.fields, |name| name.eq_ignore_ascii_case(header::DATE.as_str()));
        remove_named_by_connection(&mut lines);
        lines.remove(&header::CONNECTION);
        if head.framing != Framing::None {
            self.ticket.hold_body(&lines, AHEAD);
        }
        self.ticket.forward(self.client.client.behind(None)).write_response(&mut lines, head.status);
        let keeps_alive = self.keeps_alive;
        let buffers = &mut self.request.buffers;
        lines.lines(X_ROBOTS_TAG).for_each(|tag| buffers.tags.extend(tag.iter().chain(b"\n")));
        let output = &mut buffers.output;
        write_status(parsed, output);
        lines.write(output);
        if head.framing == Framing::UntilClose {
            output.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        output.extend_from_slice(b"Date: ");
        with_date(|date| output.extend_from_slice(date));
        let connection = if keeps_alive { "keep-alive" } else { "close" };
        for part in ["\r\nConnection: ", connection, "\r\n\r\n"] {
            output.extend_from_slice(part.as_bytes());
        }
        head
    }
}

/// A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3).
fn write_status(parsed: &Parsed<'_, '_>, output: &mut Vec<u8>) {
    for part in ["HTTP/1.1 ", parsed.head.status.as_str(), " ", parsed.reason, "\r\n"] {
        output.extend_from_slice(part.as_bytes());
    }
}
