//! What a client speaks on a listener: HTTP/1, or HTTP/2 from the first octet on ("prior knowledge", RFC 9113 section
//! 3.3).
//!
//! HTTP/1 is Pingora's own affair. Its way with HTTP/2 is not fit for the public (Pingora 0.9.1): it waits without end
//! for a preface that does not come and, at a stop, for a client that does not answer, and closes idle connections
//! without a word. So connections are led from here, and only requests are handed over. Must not know what a request is
//! about.

use super::connection::PREFACE;
use crate::settings::Limits;
use async_trait::async_trait;
use pingora_core::apps::{HttpServerApp, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Accept, H2Options, HttpSession, default_h2_options, handshake};
use pingora_core::protocols::{Digest, Stream};
use pingora_core::server::ShutdownWatch;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long a client may take to show what it speaks: as long as Pingora gives it for its first request.
const FIRST_OCTETS: Duration = Duration::from_secs(60);
/// How long the last words on an HTTP/2 connection may take when no request is open.
const FAREWELL: Duration = Duration::from_secs(2);
/// Malformed requests on an HTTP/2 connection before it is closed, as in Pingora's own loop.
const MALFORMED: u32 = 32;
/// Octets of request bodies that an HTTP/2 client may send ahead of what the origin takes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Octets of a response that wait for a client to take them; the rest waits at the origin.
const SEND_BUFFER: usize = 64 * 1024;

/// An HTTP application that is spoken to in either version.
pub(super) struct Http<A> {
    app: Arc<A>,
    options: H2Options,
    /// How long a connection is kept between requests.
    keepalive: Duration,
}

impl<A> Http<A> {
    pub(super) fn new(app: Arc<A>, limits: &Limits) -> Http<A> {
        let mut options = default_h2_options();
        // HTTP/2 counts 32 octets more a field, and its own answer to more than this has no body: ours is to come
        // first.
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
            // In a box of its own, or every connection would have room for it.
            Box::pin(self.http2(stream, stop.clone())).await;
            return None;
        }
        self.app.process_new(stream, stop).await
    }

    async fn cleanup(&self) {
        self.app.http_cleanup().await;
    }
}

/// `None` when nothing more is to come of the connection.
async fn begins_with_preface(stream: &mut Stream, stop: &ShutdownWatch, limit: Duration) -> Option<bool> {
    let mut stop = stop.clone();
    let mut first = [0; PREFACE.len()];
    let seen = tokio::select! {
        biased;
        seen = timeout(limit, stream.try_peek(&mut first)) => seen.ok()?,
        // Nothing was asked yet.
        _ = stop.wait_for(|stop| *stop) => return None,
    };
    match seen {
        Ok(seen) => Some(seen && first == *PREFACE),
        Err(error) => {
            tracing::debug!(%error, "a connection ended before it began");
            None
        }
    }
}

impl<A: HttpServerApp + Send + Sync + 'static> Http<A> {
    /// Leads a connection until it is closed: by the client, after `keepalive` without a request, or for the stop.
    async fn http2(&self, stream: Stream, mut stop: ShutdownWatch) {
        let digest = Arc::new(Digest {
            ssl_digest: stream.get_ssl_digest(),
            timing_digest: stream.get_timing_digest(),
            proxy_digest: stream.get_proxy_digest(),
            socket_digest: stream.get_socket_digest(),
        });
        let mut connection = match handshake(stream, Some(self.options.clone())).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::debug!(%error, "an HTTP/2 connection ended before it began");
                return;
            }
        };
        let stopping = stop.clone();
        let stopped = stop.wait_for(|stop| *stop);
        let mut requests = JoinSet::new();
        let mut malformed = 0;
        // Whether the client was told to send no more.
        let mut ending = false;
        let mut quiet_since = Instant::now();
        let alarm = sleep(self.keepalive);
        tokio::pin!(stopped, alarm);
        loop {
            tokio::select! {
                biased;
                // An error means that nobody can say stop any more.
                _ = &mut stopped, if !ending => {
                    ending = true;
                    connection.graceful_shutdown();
                    alarm.as_mut().reset(Instant::now() + FAREWELL);
                }
                Some(_) = requests.join_next() => quiet_since = Instant::now(),
                accepted = HttpSession::from_h2_conn(&mut connection, digest.clone()) => match accepted {
                    Ok(Some(H2Accept::Session(session))) => {
                        let (app, stop) = (self.app.clone(), stopping.clone());
                        requests.spawn(async move {
                            app.process_new_http(ServerSession::new_http2(session), &stop).await;
                        });
                    }
                    Ok(Some(H2Accept::Rejected)) => {
                        malformed += 1;
                        if malformed == MALFORMED {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(%error, "an HTTP/2 connection broke");
                        break;
                    }
                },
                // Set for the earliest moment, not anew with each request.
                () = &mut alarm, if requests.is_empty() => {
                    let patience = if ending { FAREWELL } else { self.keepalive };
                    if quiet_since.elapsed() < patience {
                        alarm.as_mut().reset(quiet_since + patience);
                    } else if ending {
                        break;
                    } else {
                        ending = true;
                        connection.graceful_shutdown();
                        alarm.as_mut().reset(Instant::now() + FAREWELL);
                    }
                }
            }
        }
        drop(connection);
        // They notice that the client is gone; what they did is counted and written down before a stop is through.
        while requests.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests;
