//! [`Attempts`]: the attempts to send one request to an origin, each to one server of it. Every
//! forwarded request has one.
//!
//! An attempt has a server, and ends with a response or a failure. After a failure the request may
//! be sent once more: if nothing of it was sent, or if it may be sent twice and the connection
//! ended before the first octet of a response. It then goes to another server. It goes to the same
//! one only if a kept connection ended and there is no other server.

use super::Upstreams;
use super::failure::failure_reason;
use super::group::milliseconds;
use super::server::{Entrance, Full, Held, Place, Server, Wanted};
use super::tally::FailedRequest;
use crate::settings::OriginTimeouts;
use crate::telemetry::ServerPlace;
use pingora_core::connectors::TransportConnector;
use pingora_core::protocols::Stream;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorSource, ErrorType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Servers tried for a request.
pub const MOST_ATTEMPTS: usize = 2;

/// A failure of one request is not its server's if the server has answered another request so
/// shortly before, in milliseconds.
const MEANWHILE: u64 = 5_000;

/// The group key of the next peer that must not get a kept connection. Origins have the small keys.
static FRESH: AtomicU64 = AtomicU64::new(1 << 32);

/// The facts about the chosen server that the lane needs.
#[derive(Debug)]
pub struct Route {
    /// The key of its connections. One of them may be used in place of another.
    pub key: u64,
    /// Its timeouts.
    pub timeouts: OriginTimeouts,
    /// Whether the request needs a new connection.
    pub must_be_fresh: bool,
}

/// Why a request can be sent to no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoServer {
    /// No origin of the settings is for its host.
    #[error("no origin for this host")]
    NoOrigin,
    /// No server of its origin has an address.
    #[error("the name of the origin has no address")]
    NoAddress,
    /// No server has a place for it.
    #[error("the servers of the origin have no place for the request")]
    Full(Full),
}

impl NoServer {
    /// A fixed word for metrics, log and status.
    fn reason(self) -> &'static str {
        match self {
            NoServer::NoOrigin => "no_origin",
            NoServer::NoAddress => "no_address",
            NoServer::Full(full) => full.reason,
        }
    }

    /// The error that the request ends with: 503 if there is no place, else 502.
    pub fn error(self) -> Box<Error> {
        let status = if matches!(self, NoServer::Full(_)) {
            503
        } else {
            502
        };
        Error::explain(ErrorType::HTTPStatus(status), self.to_string())
    }
}

/// How far an attempt came before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// There was no connection, so nothing was sent.
    Nothing,
    /// A kept connection, but no octet of a response. The server may have closed it before the
    /// request came.
    KeptConnection,
    /// A new connection, but no octet of a response.
    NewConnection,
    /// Octets of a response, but no whole head.
    Octets,
    /// The body of the response.
    Body,
}

/// See the top of this file.
#[derive(Default)]
pub struct Attempts {
    held: Option<Held>,
    /// Whether that server closed the connection of a request that is sent once more.
    is_suspect: bool,
    /// The server before, if it did. It is at fault if the next one answers the same request. If
    /// that closes, too, the request is.
    suspect: Option<Held>,
    /// The origin, and the last server, by their places in the settings.
    place: Option<ServerPlace>,
    count: usize,
    /// When the last attempt began, in milliseconds since the start.
    asked: u64,
    /// Whether the failure of the last server was counted.
    is_counted: bool,
    /// Whether a kept connection ended under the request. The other kept ones are about as old.
    must_be_fresh: bool,
    /// Why there was no server.
    pub none: Option<NoServer>,
    began: Option<Instant>,
}

impl Attempts {
    /// Takes a place at the server to try next: the one whose turn it is, or after a failure
    /// another one. If the origin has a bound, a person may wait here for a place; a caller that
    /// waits no longer drops the future.
    ///
    /// # Errors
    /// No server can be reached. The metrics count that, and `Attempts::none` keeps it.
    pub async fn next(
        &mut self,
        upstreams: &Upstreams,
        wanted: &Wanted<'_>,
    ) -> Result<Route, NoServer> {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.count = self.count.saturating_add(1);
        let held = match self.held.take() {
            Some(failed) => {
                let next = upstreams
                    .group(failed.server.entry.place)
                    .enter_after(&failed);
                self.suspect = Some(failed).filter(|_| std::mem::take(&mut self.is_suspect));
                Ok(next)
            }
            None => self.enter(upstreams, wanted).await,
        };
        let held = held.inspect_err(|none| {
            self.none = Some(*none);
            upstreams.record_no_server(self.place, wanted, *none);
        })?;
        self.asked = milliseconds(began.duration_since(upstreams.started));
        self.place = Some(held.server.entry.place);
        self.is_counted = false;
        let route = Route {
            key: held.server.key,
            timeouts: held.server.entry.timeouts,
            must_be_fresh: self.must_be_fresh,
        };
        self.held = Some(held);
        Ok(route)
    }

    /// Takes a place for the first attempt, and waits for it if the request is put into the queue.
    /// Fails if no origin is for the host, no server has an address, or there is no place.
    async fn enter(
        &mut self,
        upstreams: &Upstreams,
        wanted: &Wanted<'_>,
    ) -> Result<Held, NoServer> {
        let origin = upstreams
            .index
            .find(wanted.host, wanted.target)
            .ok_or(NoServer::NoOrigin)?;
        // No server is chosen yet: the first one stands for the origin in the metrics.
        self.place = Some(ServerPlace { origin, server: 0 });
        let entrance = upstreams.groups[origin].enter(wanted, || upstreams.elapsed());
        match entrance.ok_or(NoServer::NoAddress)? {
            Entrance::Place(held) => Ok(held),
            Entrance::Refused(full) => Err(NoServer::Full(full)),
            Entrance::Queue(waiting) => {
                let began = Instant::now();
                // In a box: otherwise each request would have room for its timer.
                let held = Box::pin(waiting.place()).await;
                upstreams.metrics.waited(began.elapsed().as_secs_f64());
                held.map_err(NoServer::Full)
            }
        }
    }

    /// The chosen server as Pingora connects to it; `None` if there is none. Pingora finds kept
    /// connections by a hash of the peer. A peer with a group key of its own gets a new connection,
    /// which is not kept (Pingora 0.9.1): so it is where the request needs a fresh one.
    pub fn peer(&self) -> Option<HttpPeer> {
        let mut peer = self.held.as_ref()?.server.peer();
        if self.must_be_fresh {
            peer.group_key = FRESH.fetch_add(1, Ordering::Relaxed);
            peer.options.idle_timeout = Some(Duration::ZERO);
        }
        Some(peer)
    }

    /// A new connection to the chosen server.
    ///
    /// # Errors
    /// No server can be reached.
    pub async fn connect(&self, connector: &TransportConnector) -> pingora_core::Result<Stream> {
        match &self.held {
            Some(held) => held.server.connect(connector).await,
            None => Err(NoServer::NoAddress.error()),
        }
    }

    /// The name and port of the chosen server, for a request that names no host to an origin that
    /// wants none.
    pub fn authority(&self) -> Option<&str> {
        self.held
            .as_ref()
            .map(|held| held.server.entry.authority.as_str())
    }

    /// Reports that the chosen server did not answer, and returns whether the request may be sent
    /// once more. Only returns false if no server was chosen, the failure was reported before, or
    /// is not the origin's. Counts and logs a failure, unless just a kept connection had ended and
    /// the request goes on. The failure counts against the server (towards its ejection) only if
    /// `is_fault`, and not if the request may be at fault: then the next attempt decides
    /// (`suspect`). It may be where a second server, too, closed its connection at this request.
    pub fn failed(
        &mut self,
        upstreams: &Upstreams,
        wanted: &Wanted<'_>,
        reached: Reached,
        error: &Error,
    ) -> bool {
        let Some(held) = self.held.as_mut().filter(|_| !self.is_counted) else {
            return false;
        };
        if *error.esource() != ErrorSource::Upstream {
            return false;
        }
        self.is_counted = true;
        let may_be_repeated = match reached {
            Reached::Nothing => upstreams.has_another(&held.server),
            // The server may be up, and have closed a connection that was idle for too long.
            Reached::KeptConnection => wanted.is_repeatable && has_ended(error),
            Reached::NewConnection => {
                wanted.is_repeatable && has_ended(error) && upstreams.has_another(&held.server)
            }
            Reached::Octets | Reached::Body => false,
        };
        let goes_on = may_be_repeated && self.count < MOST_ATTEMPTS;
        let reason = failure_reason(error.etype());
        let was_closed_before = reached == Reached::KeptConnection && has_ended(error);
        let was_closed_elsewhere = self.suspect.take().is_some() || self.must_be_fresh;
        self.must_be_fresh = was_closed_before;
        if goes_on {
            upstreams.metrics.retried(held.server.entry.place, reason);
        }
        if !was_closed_before || !goes_on {
            upstreams
                .metrics
                .failed(Some(held.server.entry.place), reason);
            let request = FailedRequest {
                host: wanted.host,
                target: wanted.target,
                reason,
                error,
                at: upstreams.clock.moment(),
            };
            held.server
                .entry
                .tally
                .failed(&held.server.named(), &request);
        }
        let has_closed = reached == Reached::NewConnection && has_ended(error);
        self.is_suspect = has_closed && goes_on;
        let is_for_request = self.is_suspect || has_closed && was_closed_elsewhere;
        if !was_closed_before
            && !is_for_request
            && is_fault(&held.server, reached, error, self.asked)
        {
            upstreams.failed(&held.server, reason);
        }
        held.is_trial &= is_for_request;
        goes_on
    }

    /// Reports the head of the server's response. If a server before closed the connection of this
    /// request, the failure counts against that one now. An endless response gives its place back,
    /// if the origin has a bound on requests. `lived` is the time that the clock had lived through.
    /// Returns how long the origin took; `None` where nothing was asked.
    pub fn answered(
        &mut self,
        upstreams: &Upstreams,
        status: u16,
        lived: Duration,
        is_endless: impl FnOnce() -> bool,
    ) -> Option<Duration> {
        let held = self.held.as_mut()?;
        let now = Instant::now();
        let elapsed = now.duration_since(self.began?);
        let server = &held.server;
        server.entry.tally.answered(status, lived);
        upstreams
            .metrics
            .answered(server.entry.place, status, elapsed.as_secs_f64());
        upstreams.answered(server, status, now.duration_since(upstreams.started));
        if let Some(mut suspect) = self.suspect.take() {
            upstreams.failed(&suspect.server, "read");
            suspect.is_trial = false;
        }
        held.is_trial = false;
        if held.server.entry.shared.room.is_some() && is_endless() {
            held.leave();
        }
        Some(elapsed)
    }

    /// The place of the request, if the origin has a bound and the request may give it up; `None`
    /// if it has given it back, and for a crawler, which keeps its place.
    pub fn place(&self) -> Option<&Arc<Place>> {
        self.held.as_ref()?.place()
    }

    /// Gives the place at the server back while the response goes on, as that of a WebSocket does.
    pub fn leave(&mut self) {
        self.held.iter_mut().for_each(Held::leave);
    }
}

/// Whether the error is that the connection ended: closed, or failed in a read or a write.
fn has_ended(error: &Error) -> bool {
    matches!(
        error.etype(),
        ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError
    )
}

/// Whether a failure is the server's, and not that of one request: no connection; or no head, or a
/// malformed head, and the server has answered no other request meanwhile. Origins close some paths
/// without an answer. Meanwhile is since the attempt began (`asked`, in milliseconds since the
/// start), and without a timeout also `MEANWHILE` before that.
fn is_fault(server: &Server, reached: Reached, error: &Error, asked: u64) -> bool {
    let is_late = matches!(
        error.etype(),
        ErrorType::ReadTimedout | ErrorType::WriteTimedout
    );
    let since = if is_late {
        asked
    } else {
        asked.saturating_sub(MEANWHILE)
    };
    reached == Reached::Nothing || reached != Reached::Body && !server.has_answered_since(since)
}

impl Upstreams {
    fn has_another(&self, server: &Arc<Server>) -> bool {
        self.group(server.entry.place).has_another(server)
    }

    /// Counts a failure against a server, and reports it if that ejects the server.
    fn failed(&self, server: &Arc<Server>, reason: &'static str) {
        let group = self.group(server.entry.place);
        let change = group.failed(server, reason, self.elapsed(), self.clock.moment().now);
        self.report(server, change);
    }

    /// Counts an answer for a server, and reports it if that brings the server back. A status that
    /// the settings call a failure counts against the server instead.
    fn answered(&self, server: &Arc<Server>, status: u16, now: Duration) {
        let group = self.group(server.entry.place);
        if group.is_failure(status) {
            return self.failed(server, "status");
        }
        self.report(server, group.answered(server, now));
    }

    /// Counts and logs a request that no server was found for. `place` is that of its origin;
    /// `None` if no origin is for its host.
    fn record_no_server(&self, place: Option<ServerPlace>, wanted: &Wanted<'_>, none: NoServer) {
        let Wanted {
            host,
            target,
            is_crawler,
            lived,
            ..
        } = *wanted;
        match (none, place.map(|place| (place, self.group(place)))) {
            (NoServer::Full(full), Some((place, group))) => {
                self.metrics.turned_away(place, full.reason);
                if let Some(room) = &group.shared.room {
                    room.count_turned_away(is_crawler, lived);
                }
            }
            (_, Some((place, group))) => {
                let reason = none.reason();
                self.metrics.failed(Some(place), reason);
                if let Some(entry) = group.entries.first() {
                    let request = FailedRequest {
                        host,
                        target,
                        reason,
                        error: &none,
                        at: self.clock.moment(),
                    };
                    entry.tally.failed(&entry.url, &request);
                }
            }
            (_, None) => {
                self.metrics.failed(None, none.reason());
                self.without_origin.asked(host, target, lived);
            }
        }
    }
}
