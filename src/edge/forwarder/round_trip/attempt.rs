//! [`RoundTrip::send_and_relay`] sends an HTTP request to a server of the origin, over a pooled or
//! a new connection, and passes the response on to the client. If the server fails before it has
//! answered, the request may be sent once more, for example to another server.

use super::transfer::TransferState;
use super::{OriginConnection, RoundTrip};
use crate::edge::forwarder::client_side::ClientSide;
use crate::edge::forwarder::origin_io::client_error;
use crate::upstreams::{AttemptProgress, OriginConnectionOptions};
use pingora_core::{ErrorType, Result};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl<C: ClientSide> RoundTrip<'_, C> {
    /// Sends the request to a server and passes the response on to the client's side. After a
    /// failure it tries another server or connection, as long as `upstreams` allows that.
    pub async fn send_and_relay(&mut self) -> Result<()> {
        use AttemptProgress::*;
        loop {
            let mut origin = self.connect().await?;
            let error = match poll_fn(|context| self.poll_transfer(&mut origin, context)).await {
                Ok(()) => {
                    self.release_origin(origin);
                    return Ok(());
                }
                Err(error) => error,
            };
            let reached = if !self.response.is_before_body() {
                Body
            } else if !self.response.is_before_first_byte() {
                Bytes
            } else if origin.is_reused {
                KeptConnection
            } else {
                NewConnection
            };
            if !self.report_failure(reached, &error) {
                return Err(error);
            }
            self.request.rewind();
            self.transfer = TransferState::default();
        }
    }

    /// Called after a whole response. Releases the place at the server, however long the client
    /// takes. Puts the connection into the pool if the origin keeps it, the request was sent whole,
    /// and no bytes came after the response.
    fn release_origin(&mut self, origin: OriginConnection) {
        self.attempts.release_place();
        // After bytes that belong to no response, nothing is known about the next ones.
        if self.keeps_origin
            && self.request.is_sent()
            && self.transfer.is_request_flushed()
            && !self.response.has_surplus()
        {
            let OriginConnection { stream, route, .. } = origin;
            self.forwarder
                .pool
                .put(route.key, stream, route.timeouts.idle);
        }
    }

    /// Gets a connection to the next server, from the pool or a new one. If connecting fails, tries
    /// another server, as long as `upstreams` allows that.
    async fn connect(&mut self) -> Result<OriginConnection> {
        loop {
            let route = self.choose_server().await?;
            let idle = Some(route.key)
                .filter(|_| !route.must_be_fresh)
                .and_then(|key| self.forwarder.pool.take(key));
            let is_reused = idle.is_some();
            let connected = match idle {
                Some(stream) => Ok(stream),
                // Boxed: otherwise every request would have 8 KiB of memory for it.
                None => Box::pin(self.attempts.connect(&self.forwarder.connector)).await,
            };
            match connected {
                Ok(stream) => {
                    return Ok(OriginConnection {
                        stream,
                        route,
                        is_reused,
                    });
                }
                Err(mut error) => {
                    error.as_up();
                    // Nothing was sent, so that another server may get the request.
                    if !self.report_failure(AttemptProgress::Nothing, &error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Waits for the next server and a place at it. Records in the ticket if there is no server.
    async fn choose_server(&mut self) -> Result<OriginConnectionOptions> {
        let chosen = {
            let wanted = self.ticket.routing_facts(self.may_repeat);
            let mut next = pin!(
                self.attempts
                    .next_server(&self.forwarder.upstreams, &wanted)
            );
            poll_fn(|context| {
                if let Poll::Ready(chosen) = next.as_mut().poll(context) {
                    return Poll::Ready(Ok(chosen));
                }
                self.client
                    .poll_client_left(context)
                    .map(|error| Err(client_error(ErrorType::ConnectionClosed, error)))
            })
            .await?
        };
        let options = chosen.map_err(|none| {
            self.ticket.record_no_server(none);
            none.error()
        })?;
        self.ticket.set_server(self.attempts.server_address());
        Ok(options)
    }
}
