//! The protocol of a connection: HTTP/1, or HTTP/2 from the first octet on ("prior knowledge", RFC 9113 section 3.3). The
//! main type is [`Http`]. Must not know what a request is about.
//!
//! Pingora handles HTTP/1. Its HTTP/2 is not fit for the public (Pingora 0.9.1): it waits without end for a preface that
//! does not come and, at a stop, for a client that does not answer. It closes idle connections without a GOAWAY. So this
//! file handles HTTP/2 connections and hands only their requests to Pingora.

use super::connection::{Connection, PREFACE};
use crate::settings::Limits;
use crate::telemetry::OpenConnection;
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Accept, H2Options, HttpSession, default_h2_options, handshake};
use pingora_core::protocols::{Digest, Stream};
use pingora_core::server::ShutdownWatch;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long a client may take to send its first octets. Pingora allows as much for a first request.
const FIRST_OCTETS: Duration = Duration::from_secs(60);
/// How long an HTTP/2 connection stays open after its GOAWAY when no request is open.
const FAREWELL: Duration = Duration::from_secs(2);
/// Malformed requests on an HTTP/2 connection before it is closed, as in Pingora's own loop.
const MALFORMED: u32 = 32;
/// Octets of request bodies that an HTTP/2 client may send before the origin takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Octets of a response that wait for the client. The rest waits at the origin.
const SEND_BUFFER: usize = 64 * 1024;

/// An HTTP application behind both protocols.
pub(super) struct Http<A> {
    app: Arc<A>,
    options: H2Options,
    /// How long a connection is kept between requests.
    keepalive: Duration,
}

impl<A> Http<A> {
    pub(super) fn new(app: Arc<A>, limits: &Limits) -> Http<A> {
        let mut options = default_h2_options();
        // HTTP/2 counts 32 more octets for each field. Its own answer to a larger list has no body, so crawlgate's limit
        // has to be reached first.
        let list = limits.headers.saturating_mul(2).saturating_add(limits.target.saturating_mul(2));
        options
            .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(SEND_BUFFER);
        Http { app, options, keepalive: limits.keepalive }
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> ServerApp for Http<A> {
    async fn process_new(self: &Arc<Self>, mut stream: Stream, stop: &ShutdownWatch) -> Option<Stream> {
        if begins_with_preface(&mut stream, stop, FIRST_OCTETS).await? {
            // In a box, or each HTTP/1 connection would have room for it too.
            Box::pin(self.http2(stream, stop.clone())).await;
            return None;
        }
        let counted = Connection::counted(&stream);
        Arc::new(Http1 { app: self.app.clone(), counted }).process_new(stream, stop).await
    }

    async fn cleanup(&self) {
        self.app.http_cleanup().await;
    }
}

/// One HTTP/1 connection. It notes the end of each request.
struct Http1<A> {
    app: Arc<A>,
    counted: Option<Arc<OpenConnection>>,
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> HttpServerApp for Http1<A> {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        stop: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let reused = self.app.process_new_http(session, stop).await;
        if let Some(counted) = &self.counted {
            counted.set_active(false);
        }
        reused
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        self.app.server_options()
    }
}

/// Whether a connection begins with the preface of HTTP/2. `None` if it is over.
async fn begins_with_preface(stream: &mut Stream, stop: &ShutdownWatch, limit: Duration) -> Option<bool> {
    let mut stop = stop.clone();
    let mut first = [0; PREFACE.len()];
    let seen = tokio::select! {
        biased;
        seen = timeout(limit, stream.try_peek(&mut first)) => seen.ok()?,
        // There is no request yet.
        _ = stop.wait_for(|stop| *stop) => return None,
    };
    match seen {
        Ok(seen) => Some(seen && first == *PREFACE),
        Err(error) => {
            tracing::debug!(%error, "a connection ended before its first octet");
            None
        }
    }
}

impl<A: HttpServerApp + Send + Sync + 'static> Http<A> {
    /// Serves an HTTP/2 connection until the client closes it, `keepalive` passes without a request, or the server stops.
    async fn http2(&self, stream: Stream, stop: ShutdownWatch) {
        let digest = Arc::new(Digest {
            ssl_digest: stream.get_ssl_digest(),
            timing_digest: stream.get_timing_digest(),
            proxy_digest: stream.get_proxy_digest(),
            socket_digest: stream.get_socket_digest(),
        });
        let mut requests = Requests::new(Connection::counted(&stream));
        let mut connection = match handshake(stream, Some(self.options.clone())).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::debug!(%error, "an HTTP/2 connection ended before its handshake");
                return;
            }
        };
        self.take_requests(&mut connection, &digest, stop, &mut requests).await;
        drop(connection);
        // The requests notice that the client is gone. They are counted and logged before a stop is complete.
        while requests.next_end().await.is_some() {}
    }

    /// Takes requests until the connection is to be closed. It has two states: taking requests, and `ending` after the
    /// GOAWAY. A stop, or `keepalive` without a request, moves it to `ending`.
    async fn take_requests(
        &self,
        connection: &mut h2::server::Connection<Stream, Bytes>,
        digest: &Arc<Digest>,
        mut stop: ShutdownWatch,
        requests: &mut Requests,
    ) {
        let stopping = stop.clone();
        let stopped = stop.wait_for(|stop| *stop);
        let mut malformed = 0;
        let mut ending = false;
        let alarm = sleep(self.keepalive);
        tokio::pin!(stopped, alarm);
        loop {
            tokio::select! {
                biased;
                // An error means that the sender is gone, and no later stop could arrive.
                _ = &mut stopped, if !ending => {
                    ending = true;
                    send_goaway(connection, alarm.as_mut());
                }
                Some(()) = requests.next_end() => {}
                accepted = HttpSession::from_h2_conn(connection, digest.clone()) => match accepted {
                    Ok(Some(H2Accept::Session(session))) => {
                        let (app, stop) = (self.app.clone(), stopping.clone());
                        requests.begin(async move {
                            app.process_new_http(ServerSession::new_http2(session), &stop).await;
                        });
                    }
                    Ok(Some(H2Accept::Rejected)) if malformed + 1 < MALFORMED => malformed += 1,
                    Ok(Some(H2Accept::Rejected) | None) => return,
                    Err(error) => {
                        tracing::debug!(%error, "an HTTP/2 connection broke");
                        return;
                    }
                },
                // The alarm is set for the earliest moment, and not reset by each request.
                () = &mut alarm, if requests.is_empty() => {
                    let patience = if ending { FAREWELL } else { self.keepalive };
                    if requests.quiet_since.elapsed() < patience {
                        alarm.as_mut().reset(requests.quiet_since + patience);
                    } else if ending {
                        return;
                    } else {
                        ending = true;
                        send_goaway(connection, alarm.as_mut());
                    }
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
}

impl Requests {
    fn new(counted: Option<Arc<OpenConnection>>) -> Requests {
        Requests { tasks: JoinSet::new(), quiet_since: Instant::now(), counted }
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

#[cfg(test)]
mod tests;
