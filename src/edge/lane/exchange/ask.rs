//! [`Exchange::ask`] sends a request to a server and passes the response on. It takes a kept
//! connection or opens one. If the server fails, it may send the request to another one.

use super::transfer::Transfer;
use super::{Exchange, Origin};
use crate::edge::lane::client::Client;
use crate::edge::lane::wire::of_client;
use crate::upstreams::{NoServer, Reached, Route};
use pingora_core::{ErrorType, Result};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

impl<C: Client> Exchange<'_, C> {
    /// Sends the request to a server and passes the response on to the client's side. After a
    /// failure it begins again with another server or connection, as long as `upstreams` allows
    /// that.
    pub(super) async fn ask(&mut self) -> Result<()> {
        loop {
            let mut origin = self.connect().await?;
            let error = match poll_fn(|context| self.poll_transfer(&mut origin, context)).await {
                Ok(()) => {
                    self.let_go(origin);
                    return Ok(());
                }
                Err(error) => error,
            };
            let reached = if !self.response.is_before_body() {
                Reached::Body
            } else if !self.response.is_awaited() {
                Reached::Octets
            } else if origin.is_kept {
                Reached::KeptConnection
            } else {
                Reached::NewConnection
            };
            if !self.note_failure(reached, &error) {
                return Err(error);
            }
            self.request.rewind();
            self.transfer = Transfer::default();
        }
    }

    /// Ends the use of a server after a whole response: gives the place at it up, so that it is
    /// free for another request however long this client takes. Keeps the connection in the pool if
    /// the origin does, the request was sent whole, and no bytes came after the response.
    fn let_go(&mut self, origin: Origin) {
        self.attempts.leave();
        // After octets that belong to no response, nothing is known about the next ones.
        if self.keeps_origin
            && self.request.is_sent()
            && self.transfer.takes_request()
            && !self.response.has_surplus()
        {
            let Origin { stream, route, .. } = origin;
            self.lane.pool.keep(route.key, stream, route.timeouts.idle);
        }
    }

    /// A connection to the server whose turn it is: a kept one, unless it must be fresh, or a new
    /// one. If connecting fails, another server may be tried, as `upstreams` allows.
    async fn connect(&mut self) -> Result<Origin> {
        loop {
            let route = self.choose().await?;
            let kept = Some(route.key)
                .filter(|_| !route.must_be_fresh)
                .and_then(|key| self.lane.pool.take(key));
            let is_kept = kept.is_some();
            let connected = match kept {
                Some(stream) => Ok(stream),
                // In memory of its own: a request on a kept connection would carry 8 KiB of room
                // for it.
                None => Box::pin(self.attempts.connect(&self.lane.connector)).await,
            };
            match connected {
                Ok(stream) => {
                    return Ok(Origin {
                        stream,
                        route,
                        is_kept,
                    });
                }
                Err(mut error) => {
                    error.as_up();
                    // Nothing was sent, so that another server may get the request.
                    if !self.note_failure(Reached::Nothing, &error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Chooses the server to send the request to, and waits for a place if there is none. That
    /// there is no server is noted in the ticket and is an error.
    async fn choose(&mut self) -> Result<Route> {
        self.chosen().await?.map_err(|none| {
            self.ticket.note_no_server(none);
            none.error()
        })
    }

    /// Waits for a server. The inner error is that there is none, the outer one that the client
    /// left meanwhile.
    async fn chosen(&mut self) -> Result<std::result::Result<Route, NoServer>> {
        let wanted = self.ticket.wanted(self.may_repeat);
        let mut next = pin!(self.attempts.next(&self.lane.upstreams, &wanted));
        poll_fn(|context| {
            if let Poll::Ready(chosen) = next.as_mut().poll(context) {
                return Poll::Ready(Ok(chosen));
            }
            self.client
                .poll_gone(context)
                .map(|gone| Err(of_client(ErrorType::ConnectionClosed, gone)))
        })
        .await
    }
}
