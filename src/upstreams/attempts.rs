//! [`Attempts`]: the attempts to send one request to the servers of an origin. Every forwarded
//! request has one [`Attempts`].
//!
//! An attempt goes to one server, and ends with a response or a failure. After a failure, the
//! request may be sent once more in two cases. Either nothing of the request was sent, or the
//! request is repeatable (such as GET) and the connection ended before the first byte of a
//! response. The second attempt goes to another server. If there is no other server, the same one
//! is tried again, but only if the first attempt used an idle connection that had ended.

use super::Upstreams;
use super::failure::{FILE_LIMIT, failure_reason};
use super::group::as_millis;
use super::outcomes::FailedRequest;
use super::server::{
    Admission, AdmissionRefusal, InFlightGuard, ReleasablePlace, RoutingFacts, Server,
};
use crate::settings::OriginTimeouts;
use crate::telemetry::ServerId;
use NoServer::{NoAddress, NoOrigin, Refused};
use pingora_core::connectors::TransportConnector;
use pingora_core::protocols::Stream;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorSource, ErrorType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The most servers that are tried for a request.
pub const MAX_ATTEMPTS: usize = 2;

/// A server that answered another request within these milliseconds is not at fault.
const RECENT_ANSWER_MS: u64 = 5_000;

/// The group key of the next peer that must not get a kept connection. Origins have small keys.
static NEXT_FRESH_KEY: AtomicU64 = AtomicU64::new(1 << 32);

/// How the forwarder connects to the chosen server.
#[derive(Debug)]
pub struct OriginConnectionOptions {
    /// The key of its connections. One of them may be used in place of another.
    pub key: u64,
    /// Its timeouts.
    pub timeouts: OriginTimeouts,
    /// Whether the request needs a new connection.
    pub must_be_fresh: bool,
}

/// Why there is no server for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoServer {
    /// No origin of the settings is for its host.
    #[error("no origin for this host")]
    NoOrigin,
    /// No server of its origin has an address.
    #[error("the name of the origin has no address")]
    NoAddress,
    /// No server has a free place.
    #[error("no server of the origin is free")]
    Refused(AdmissionRefusal),
}

impl NoServer {
    /// A fixed word for metrics, log and status.
    fn reason(self) -> &'static str {
        match self {
            NoOrigin => "no_origin",
            NoAddress => "no_address",
            Refused(refusal) => refusal.reason,
        }
    }

    /// The error that the request ends with: 503 if there is no place, else 502.
    pub fn error(self) -> Box<Error> {
        let status = if matches!(self, Refused(_)) { 503 } else { 502 };
        Error::explain(
            ErrorType::CustomCode(self.reason(), status),
            self.to_string(),
        )
    }
}

/// How far an attempt got before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptProgress {
    /// There was no connection, so nothing was sent.
    Nothing,
    /// A kept connection, but no byte of a response. The server may have closed it before the
    /// request came.
    KeptConnection,
    /// A new connection, but no byte of a response.
    NewConnection,
    /// Bytes of a response, but no whole head.
    Bytes,
    /// The body of the response.
    Body,
}

/// The attempts to send one request.
#[derive(Default)]
pub struct Attempts {
    guard: Option<InFlightGuard>,
    /// Whether that server closed the connection, and the request is sent once more.
    is_suspect: bool,
    /// The former server, if it closed the connection. It is at fault if the next one answers the
    /// same request. If the next one closes, too, the request is at fault.
    suspect: Option<InFlightGuard>,
    /// The origin and the last server, by their indexes in the settings.
    index: Option<ServerId>,
    count: usize,
    /// When the last attempt began, in milliseconds since the start.
    attempt_began: u64,
    /// Whether the failure of the last server was counted.
    is_counted: bool,
    /// Whether a kept connection ended under the request. Other kept ones are about as old.
    must_be_fresh: bool,
    /// Why there was no server.
    pub no_server: Option<NoServer>,
    began: Option<Instant>,
}

impl Attempts {
    /// Chooses the server of the next attempt: by turns, or after a failure another one. If the
    /// origin limits open requests, a person may wait here for a place; to stop waiting, drop the
    /// future.
    ///
    /// # Errors
    /// There is no server. The metrics count that, and [`Attempts::no_server`] keeps it.
    pub async fn next_server(
        &mut self,
        upstreams: &Upstreams,
        facts: &RoutingFacts<'_>,
    ) -> Result<OriginConnectionOptions, NoServer> {
        let began = *self.began.get_or_insert_with(Instant::now);
        self.count = self.count.saturating_add(1);
        let guard = match self.guard.take() {
            Some(failed) => {
                let next = upstreams
                    .group(failed.server.entry.index)
                    .admit_retry(&failed);
                self.suspect = Some(failed).filter(|_| std::mem::take(&mut self.is_suspect));
                Ok(next)
            }
            None => self.first_server(upstreams, facts).await,
        };
        let guard = guard.inspect_err(|no_server| {
            self.no_server = Some(*no_server);
            upstreams.record_no_server(self.index, facts, *no_server);
        })?;
        self.attempt_began = as_millis(began.duration_since(upstreams.started));
        self.index = Some(guard.server.entry.index);
        self.is_counted = false;
        let route = OriginConnectionOptions {
            key: guard.server.connection_key,
            timeouts: guard.server.entry.timeouts,
            must_be_fresh: self.must_be_fresh,
        };
        self.guard = Some(guard);
        Ok(route)
    }

    /// Chooses the server of the first attempt, and waits in the queue if necessary. Fails if no
    /// origin is for the host, no server has an address, or there is no place.
    async fn first_server(
        &mut self,
        upstreams: &Upstreams,
        facts: &RoutingFacts<'_>,
    ) -> Result<InFlightGuard, NoServer> {
        let origin = upstreams
            .index
            .find(facts.host, facts.target)
            .ok_or(NoOrigin)?;
        // No server is chosen yet: the first one stands for the origin in the metrics.
        let place = ServerId { origin, server: 0 };
        self.index = Some(place);
        let admission = upstreams.groups[origin].admit(facts, || upstreams.elapsed());
        match admission.ok_or(NoAddress)? {
            Admission::Admitted(guard) => Ok(guard),
            Admission::Refused(refusal) => Err(Refused(refusal)),
            Admission::Queued(waiting) => {
                let began = Instant::now();
                // In a box: otherwise the timer would enlarge the future of each request.
                let guard = Box::pin(waiting.wait()).await;
                upstreams
                    .metrics
                    .record_queue_wait(place, began.elapsed().as_secs_f64());
                guard.map_err(Refused)
            }
        }
    }

    /// The chosen server for Pingora's proxy; `None` if there is none. Pingora finds kept
    /// connections by a hash of the peer. A peer with a group key of its own gets a new connection,
    /// which is not kept (Pingora 0.9.1). A request that needs a fresh connection gets such a peer.
    pub fn peer(&self) -> Option<HttpPeer> {
        let mut peer = self.guard.as_ref()?.server.peer();
        if self.must_be_fresh {
            peer.group_key = NEXT_FRESH_KEY.fetch_add(1, Relaxed);
            peer.options.idle_timeout = Some(Duration::ZERO);
        }
        Some(peer)
    }

    /// Opens a new connection to the chosen server.
    ///
    /// # Errors
    /// The server cannot be reached, or none was chosen.
    pub async fn connect(&self, connector: &TransportConnector) -> pingora_core::Result<Stream> {
        match &self.guard {
            Some(guard) => guard.server.connect(connector).await,
            None => Err(NoAddress.error()),
        }
    }

    /// The name and port of the chosen server: the Host for a request without one.
    pub fn authority(&self) -> Option<&str> {
        self.guard
            .as_ref()
            .map(|guard| guard.server.entry.authority.as_str())
    }

    /// The address of the chosen server, for the access log.
    pub fn server_address(&self) -> Option<Arc<str>> {
        Some(self.guard.as_ref()?.server.display_address.clone())
    }

    /// Records that the chosen server did not answer, and returns whether the request may be sent
    /// once more. Does nothing and returns false if no server was chosen, the failure was recorded
    /// before, or is not the origin's. Counts and logs the failure, unless only a kept connection
    /// had ended and the request is sent again. The failure counts towards the ejection of the
    /// server if `is_server_fault`, if crawlgate was able to open a file, and if the request is not suspected: a server that closed the
    /// connection is at fault only if the next one answers (`suspect`).
    pub fn record_failure(
        &mut self,
        upstreams: &Upstreams,
        facts: &RoutingFacts<'_>,
        reached: AttemptProgress,
        error: &Error,
    ) -> bool {
        use AttemptProgress::*;

        let Some(guard) = self.guard.as_mut().filter(|_| !self.is_counted) else {
            return false;
        };
        if *error.esource() != ErrorSource::Upstream {
            return false;
        }
        self.is_counted = true;
        let has_ended = matches!(
            error.etype(),
            ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError
        );
        let may_be_repeated = match reached {
            Nothing => upstreams.has_other_server(&guard.server),
            // The server may be up, and have closed a connection that was idle for too long.
            KeptConnection => facts.is_repeatable && has_ended,
            NewConnection => {
                facts.is_repeatable && has_ended && upstreams.has_other_server(&guard.server)
            }
            Bytes | Body => false,
        };
        let goes_on = may_be_repeated && self.count < MAX_ATTEMPTS;
        let reason = failure_reason(error);
        let was_closed_before = reached == KeptConnection && has_ended;
        let was_closed_elsewhere = self.suspect.take().is_some() || self.must_be_fresh;
        self.must_be_fresh = was_closed_before;
        if goes_on {
            upstreams
                .metrics
                .record_retry(guard.server.entry.index, reason);
        }
        if !was_closed_before || !goes_on {
            upstreams
                .metrics
                .record_failure(Some(guard.server.entry.index), reason);
            let request = FailedRequest {
                host: facts.host,
                target: facts.target,
                reason,
                error,
                at: upstreams.clock.moment(),
            };
            guard
                .server
                .entry
                .outcomes
                .record_failure(&guard.server.display_name(), &request);
        }
        let has_closed = reached == NewConnection && has_ended;
        self.is_suspect = has_closed && goes_on;
        let is_for_request = self.is_suspect || has_closed && was_closed_elsewhere;
        if !was_closed_before
            && !is_for_request
            && reason != FILE_LIMIT
            && is_server_fault(&guard.server, reached, error, self.attempt_began)
        {
            upstreams.record_failure(&guard.server, reason);
        }
        guard.is_trial &= is_for_request;
        goes_on
    }

    /// Records the head of the server's response. If the former server closed the connection of
    /// this request, the failure counts against it now. An endless response releases its place.
    /// Returns how long the origin took; `None` without an attempt.
    pub fn record_response(
        &mut self,
        upstreams: &Upstreams,
        status: u16,
        monotonic: Duration,
        is_endless: impl FnOnce() -> bool,
    ) -> Option<Duration> {
        let guard = self.guard.as_mut()?;
        let now = Instant::now();
        let elapsed = now.duration_since(self.began?);
        let server = &guard.server;
        server.entry.outcomes.record_answer(status, monotonic);
        upstreams
            .metrics
            .record_response(server.entry.index, status, elapsed.as_secs_f64());
        upstreams.record_answer(server, status, now.duration_since(upstreams.started));
        if let Some(mut suspect) = self.suspect.take() {
            upstreams.record_failure(&suspect.server, "read");
            suspect.is_trial = false;
        }
        guard.is_trial = false;
        if guard.server.entry.origin_state.queue.is_some() && is_endless() {
            guard.release();
        }
        Some(elapsed)
    }

    /// The place of the request, if the origin limits open requests and the request may release it.
    /// `None` for a crawler, which keeps its place.
    pub fn releasable_place(&self) -> Option<&Arc<ReleasablePlace>> {
        self.guard.as_ref()?.releasable_place()
    }

    /// Releases the place at the server while the response continues, as for a WebSocket.
    pub fn release_place(&mut self) {
        self.guard.iter_mut().for_each(InFlightGuard::release);
    }
}

/// Whether the server is at fault, and not one request: there was no connection; or there was no
/// valid head, and the server has answered no other request since the attempt began
/// (`attempt_began`, in milliseconds since the start; without a timeout also `RECENT_ANSWER_MS`
/// before that). Some origins close certain paths without an answer.
fn is_server_fault(
    server: &Server,
    reached: AttemptProgress,
    error: &Error,
    attempt_began: u64,
) -> bool {
    let is_late = matches!(
        error.etype(),
        ErrorType::ReadTimedout | ErrorType::WriteTimedout
    );
    let since = if is_late {
        attempt_began
    } else {
        attempt_began.saturating_sub(RECENT_ANSWER_MS)
    };
    reached == AttemptProgress::Nothing
        || reached != AttemptProgress::Body && !server.has_answered_since(since)
}

impl Upstreams {
    fn has_other_server(&self, server: &Arc<Server>) -> bool {
        self.group(server.entry.index).has_other_server(server)
    }

    /// Counts a failure against a server, and reports it if that ejects the server.
    fn record_failure(&self, server: &Arc<Server>, reason: &'static str) {
        let group = self.group(server.entry.index);
        let change = group.record_failure(server, reason, self.elapsed(), self.clock.moment().now);
        Upstreams::report_change(server, change);
    }

    /// Counts an answer for a server, and reports it if that brings the server back. A status that
    /// the settings call a failure counts against the server instead.
    fn record_answer(&self, server: &Arc<Server>, status: u16, now: Duration) {
        let group = self.group(server.entry.index);
        if group.is_failure(status) {
            return self.record_failure(server, "status");
        }
        Upstreams::report_change(server, group.record_answer(server, now));
    }

    /// Counts and logs a request without a server. `index` is that of its origin; `None` if no
    /// origin is for its host.
    fn record_no_server(
        &self,
        index: Option<ServerId>,
        facts: &RoutingFacts<'_>,
        no_server: NoServer,
    ) {
        let RoutingFacts {
            host,
            target,
            is_crawler,
            monotonic,
            ..
        } = *facts;
        match (no_server, index.map(|index| (index, self.group(index)))) {
            (Refused(refusal), Some((index, group))) => {
                self.metrics.record_turned_away(index, refusal.reason);
                if let Some(queue) = &group.origin_state.queue {
                    queue.count_turned_away(is_crawler, monotonic);
                }
            }
            (_, Some((index, group))) => {
                let reason = no_server.reason();
                self.metrics.record_failure(Some(index), reason);
                if let Some(entry) = group.entries.first() {
                    let request = FailedRequest {
                        host,
                        target,
                        reason,
                        error: &no_server,
                        at: self.clock.moment(),
                    };
                    entry.outcomes.record_failure(&entry.url, &request);
                }
            }
            (_, None) => {
                self.metrics.record_failure(None, no_server.reason());
                self.unrouted.record(host, target, monotonic);
            }
        }
    }
}
