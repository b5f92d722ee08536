//! HTTP/2 on a connection, by ALPN or from the first octet on ("prior knowledge", RFC 9113 section 3.3). The main type is
//! [`Http2`]. Must not know what a request is about.
//!
//! Pingora's own loop is not fit for the public (Pingora 0.9.1): at a stop it waits without end for a client that does not
//! answer, it closes idle connections without a GOAWAY, and it keeps dead ones while a request is open. So this file
//! handles connections and hands only their requests to Pingora.

use super::connection::Connection;
use super::notices::{Notices, Reason};
use crate::requests::ClientConnection;
use crate::settings::Limits;
use crate::telemetry::OpenConnection;
use bytes::Bytes;
use h2::{Ping, PingPong};
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Accept, H2Options, HttpSession, default_h2_options, handshake};
use pingora_core::protocols::{Digest, GetProxyDigest, GetSocketDigest, Stream};
use pingora_core::server::ShutdownWatch;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// The first octets of an HTTP/2 client (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long an HTTP/2 connection stays open after its GOAWAY when no request is open.
const FAREWELL: Duration = Duration::from_secs(2);
/// Malformed requests on an HTTP/2 connection before it is closed, as in Pingora's own loop.
const MALFORMED: u32 = 32;
/// Octets of request bodies that an HTTP/2 client may send before the origin takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Octets of a response that wait for the client. The rest waits at the origin.
const SEND_BUFFER: usize = 64 * 1024;
/// Requests that a client may reset before crawlgate has begun with them (CVE-2023-44487), and resets that it may provoke by
/// breaking the protocol in the life of a connection (CVE-2025-8671). A client of good faith provokes none.
const RESETS: usize = 20;
/// Requests that have begun and may end by a reset within [`RESET_WINDOW`], whoever sent it. A browser that leaves a page
/// resets those that are open.
const BEGUN_RESETS: usize = 100;
const RESET_WINDOW: Duration = Duration::from_secs(10);

/// An HTTP application behind HTTP/2.
pub(super) struct Http2<A> {
    app: Arc<A>,
    options: H2Options,
    /// How long the handshake may take.
    handshake: Duration,
    /// How long a connection is kept between requests.
    idle: Duration,
    /// How long the client may be silent while a request is open: then it has to answer a ping in the same time.
    stall: Duration,
}

impl<A> Http2<A> {
    pub(super) fn new(app: Arc<A>, limits: &Limits) -> Http2<A> {
        let mut options = default_h2_options();
        // HTTP/2 counts 32 more octets for each field. Its own answer to a larger list has no body, so crawlgate's limit
        // has to be reached first.
        let list = limits.headers.saturating_mul(2).saturating_add(limits.target.saturating_mul(2));
        options
            .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
            .max_concurrent_streams(limits.streams)
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(Some(RESETS))
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BUFFER);
        Http2 { app, options, handshake: limits.handshake, idle: limits.idle, stall: limits.stall }
    }
}

impl<A: HttpServerApp + Send + Sync + 'static> Http2<A> {
    /// Serves a connection until the client closes it, `idle` passes without a request, or the server stops.
    pub(super) async fn serve(&self, connection: Box<Connection>, stop: ShutdownWatch, notices: &Notices) {
        let digest = Arc::new(Digest {
            ssl_digest: None,
            timing_digest: Vec::new(),
            proxy_digest: connection.get_proxy_digest(),
            socket_digest: connection.get_socket_digest(),
        });
        let client = connection.client.peer.address;
        let mut requests = Requests::new(&connection);
        let stream: Stream = connection;
        let mut connection = match timeout(self.handshake, handshake(stream, Some(self.options.clone()))).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return notices.closed(Reason::Http2, client, &error),
            Err(late) => return notices.closed(Reason::HandshakeTimeout, client, &late),
        };
        let end = self.take_requests(&mut connection, &digest, stop, &mut requests).await;
        if let Err(End { reason, detail }) = end {
            notices.closed(reason, client, &detail);
        }
        drop(connection);
        // The requests notice that the client is gone. They are counted and logged before a stop is complete.
        while requests.next_end().await.is_some() {}
    }

    /// Takes requests until the connection is to be closed. It has two states: taking requests, and `ending` after the
    /// GOAWAY. A stop, or `idle` without a request, moves it to `ending`.
    async fn take_requests(
        &self,
        connection: &mut h2::server::Connection<Stream, Bytes>,
        digest: &Arc<Digest>,
        mut stop: ShutdownWatch,
        requests: &mut Requests,
    ) -> Result<(), End> {
        let stopping = stop.clone();
        let stopped = stop.wait_for(|stop| *stop);
        let mut malformed = 0;
        let (mut ending, mut is_flood) = (false, false);
        let mut pulse = Pulse::new(connection.ping_pong(), self.stall);
        let alarm = sleep(self.idle);
        tokio::pin!(stopped, alarm);
        loop {
            tokio::select! {
                biased;
                // An error means that the sender is gone, and no later stop could arrive.
                _ = &mut stopped, if !ending => {
                    ending = true;
                    send_goaway(connection, alarm.as_mut());
                }
                Some(()) = requests.next_end() => {
                    if !is_flood && requests.are_reset_too_often() {
                        is_flood = true;
                        connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
                    }
                }
                accepted = HttpSession::from_h2_conn(connection, digest.clone()) => match accepted {
                    Ok(Some(H2Accept::Session(session))) => {
                        let (app, stop) = (self.app.clone(), stopping.clone());
                        requests.begin(async move {
                            app.process_new_http(ServerSession::new_http2(session), &stop).await;
                        });
                    }
                    Ok(Some(H2Accept::Rejected)) if malformed + 1 < MALFORMED => malformed += 1,
                    Ok(None) if is_flood => {
                        return Err(End { reason: Reason::Http2, detail: "too many resets".into() });
                    }
                    Ok(Some(H2Accept::Rejected) | None) => return Ok(()),
                    Err(error) => return broken(&error),
                },
                () = pulse.is_lost(), if !requests.is_empty() => {
                    return Err(End { reason: Reason::NoPong, detail: "no pong".into() });
                }
                // The alarm is set for the earliest moment, and not reset by each request.
                () = &mut alarm, if requests.is_empty() => {
                    let patience = if ending { FAREWELL } else { self.idle };
                    if requests.quiet_since.elapsed() < patience {
                        alarm.as_mut().reset(requests.quiet_since + patience);
                    } else if ending {
                        return Ok(());
                    } else {
                        ending = true;
                        send_goaway(connection, alarm.as_mut());
                    }
                }
            }
        }
    }
}

/// Why a connection ended before its time.
struct End {
    reason: Reason,
    detail: String,
}

/// A client that left is nothing to speak of; one that broke the protocol is.
fn broken(error: &pingora_core::Error) -> Result<(), End> {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<h2::Error>());
    match cause.is_none_or(h2::Error::is_io) {
        true => {
            tracing::debug!(%error, "an HTTP/2 connection broke");
            Ok(())
        }
        false => Err(End { reason: Reason::Http2, detail: error.to_string() }),
    }
}

/// Asks a client that has requests open for a sign of life.
struct Pulse {
    pings: Option<PingPong>,
    is_waiting: bool,
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl Pulse {
    fn new(pings: Option<PingPong>, every: Duration) -> Pulse {
        Pulse { pings, is_waiting: false, every, next: Box::pin(sleep(every)) }
    }

    /// Ready when the client did not answer a ping in time. May be dropped and asked again.
    async fn is_lost(&mut self) {
        let Some(pings) = &mut self.pings else { return std::future::pending().await };
        loop {
            tokio::select! {
                // An answer counts, even if this task did not look for a while.
                biased;
                pong = poll_fn(|context| pings.poll_pong(context)), if self.is_waiting => {
                    // An error ends the connection, which tells of it.
                    if pong.is_err() {
                        return std::future::pending().await;
                    }
                    self.is_waiting = false;
                }
                () = &mut self.next => {
                    if self.is_waiting {
                        return;
                    }
                    self.is_waiting = pings.send_ping(Ping::opaque()).is_ok();
                    self.next.as_mut().reset(Instant::now() + self.every);
                }
            }
        }
    }
}

/// Sends a GOAWAY, and gives the client time to read it.
fn send_goaway(connection: &mut h2::server::Connection<Stream, Bytes>, alarm: Pin<&mut Sleep>) {
    connection.graceful_shutdown();
    alarm.reset(Instant::now() + FAREWELL);
}

/// The open requests of an HTTP/2 connection.
struct Requests {
    tasks: JoinSet<()>,
    /// When the last request ended, or when the connection began.
    quiet_since: Instant,
    counted: Option<Arc<OpenConnection>>,
    /// Counts the requests that ended by a reset.
    client: Arc<ClientConnection>,
    /// When the present [`RESET_WINDOW`] began, and how many resets there were before it.
    window: (Instant, usize),
}

impl Requests {
    fn new(connection: &Connection) -> Requests {
        let now = Instant::now();
        let (counted, client) = (connection.counted.clone(), connection.client.clone());
        Requests { tasks: JoinSet::new(), quiet_since: now, counted, client, window: (now, 0) }
    }

    /// Whether too many requests ended by a reset lately.
    fn are_reset_too_often(&mut self) -> bool {
        let resets = self.client.resets();
        if self.window.0.elapsed() > RESET_WINDOW {
            self.window = (Instant::now(), resets);
        }
        resets - self.window.1 > BEGUN_RESETS
    }

    fn begin(&mut self, request: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(request);
        self.count();
    }

    /// Waits for the end of a request. `None` if no request is open.
    async fn next_end(&mut self) -> Option<()> {
        let _ = self.tasks.join_next().await?;
        self.quiet_since = Instant::now();
        self.count();
        Some(())
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn count(&self) {
        if let Some(counted) = &self.counted {
            counted.set_active(!self.is_empty());
        }
    }
}
