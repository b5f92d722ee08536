//! [`ListenerService`]: one network listener of the proxy, or of the decision service (which tells
//! other proxies whether a request may pass). For each client connection it first checks the
//! limits, then reads the header of the PROXY protocol, then does the TLS handshake, and then
//! serves HTTP/1 or HTTP/2.

use super::accept::{ClientSocket, ServeConnection};
use super::client_stream::ClientStream;
use super::close_log::CloseReason;
use super::context::EdgeContext;
use super::date::with_date;
use super::http1;
use super::http2::{self, PREFACE};
use super::proxy_protocol;
use super::sent_answer::bare_rejection;
use super::stop_signals::StopSignals;
use super::tls::{CompletedHandshake, ListenerTls};
use super::transport::BoxedTransport;
use crate::answers::Rejection;
use crate::files::is_file_limit;
use crate::forwarding::{ConnectionPeer, is_trusted};
use crate::requests::{ClientConnection, HttpsRedirect, LimitReached};
use CloseReason::*;
use async_trait::async_trait;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// One listener, with its own settings.
pub struct ListenerService {
    /// What it shares with other listeners.
    pub edge: Arc<EdgeContext>,
    /// `None` for clear text.
    pub tls: Option<ListenerTls>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether HTTP/2 is spoken beside HTTP/1.
    pub speaks_http2: bool,
    /// Where requests are redirected, instead of being served.
    pub redirect: Option<HttpsRedirect>,
}

#[async_trait]
impl ServeConnection for ListenerService {
    async fn serve(&self, socket: ClientSocket, stops: StopSignals) {
        match socket {
            ClientSocket::Tcp(stream, peer) => self.serve_tcp(stream, peer, stops).await,
            ClientSocket::Unix(stream) => self.serve_unix(stream, stops).await,
        }
    }

    fn log_accept_error(&self, error: &io::Error) {
        if is_file_limit(error) {
            self.edge.requests.record_unaccepted();
        }
        self.edge.close_log.record(Accept, None, error);
    }
}

impl ListenerService {
    /// Serves a TCP connection to its end. The client is the one that the PROXY header names, else
    /// `peer`. A trusted proxy is not limited by `connections_per_address`.
    async fn serve_tcp(&self, mut stream: TcpStream, peer: SocketAddr, stops: StopSignals) {
        let edge = &self.edge;
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let mut admitted = match edge.admission.admit(1) {
            Ok(admitted) => admitted,
            Err(full) => return self.reject_excess(&stream, peer.ip(), full),
        };
        // Everyone may connect to the proxy.
        if edge.responder.is_some() && !is_trusted(peer.ip(), &edge.decision_peers) {
            edge.close_log
                .record(Untrusted, Some(peer.ip()), &"not trusted");
            return try_write_rejection(&stream, Rejection::Untrusted);
        }
        let gauge = edge.metrics.open_connection();
        let named = if self.proxy_protocol {
            let Ok(named) = self.read_proxy_header(&mut stream, peer).await else {
                return;
            };
            named
        } else {
            Some(peer)
        };
        let client = named.unwrap_or(peer);
        // A trusted proxy speaks for many clients.
        if !edge.is_trusted_proxy(client.ip())
            && let Err(full) = admitted.admit_address(client.ip())
        {
            return self.reject_excess(&stream, client.ip(), full);
        }
        let Some((transport, tls, is_http2)) =
            self.tls_handshake(stream, client.ip(), &stops).await
        else {
            return;
        };
        let peer = ConnectionPeer {
            address: Some(client.ip()),
            is_trusted: named.is_some() && edge.is_trusted_proxy(client.ip()),
            names_no_client: named.is_none(),
            is_tls: self.tls.is_some(),
        };
        let hsts = self.tls.as_ref().and_then(|tls| tls.hsts.clone());
        let mut shared = ClientConnection::new(peer, hsts);
        shared.tls = tls;
        let connection = ClientStream::new(
            transport,
            Some(client),
            shared,
            Some(gauge),
            edge.limits().stall,
        );
        let shared = connection.client.clone();
        self.serve_http(Box::new(connection), is_http2, stops).await;
        if shared.is_stalled() {
            edge.close_log
                .record(Stall, Some(client.ip()), &"the client reads nothing");
        }
    }

    /// Serves a connection of a Unix socket to its end, in clear text. Its peer has no address and
    /// is trusted. Beyond the limit of connections it is closed without an answer.
    async fn serve_unix(&self, stream: UnixStream, stops: StopSignals) {
        let edge = &self.edge;
        let Ok(_admitted) = edge.admission.admit(1) else {
            return edge.close_log.record(TooMany, None, &"too many");
        };
        let gauge = edge.metrics.open_connection();
        let shared = ClientConnection::new(
            ConnectionPeer {
                is_trusted: true,
                ..ConnectionPeer::default()
            },
            None,
        );
        let connection = ClientStream::new(
            Box::new(stream),
            None,
            shared,
            Some(gauge),
            edge.limits().stall,
        );
        self.serve_http(Box::new(connection), false, stops).await;
    }

    /// Closes a connection beyond the limits. In clear text the client gets a 503.
    fn reject_excess(&self, stream: &TcpStream, client: IpAddr, full: LimitReached) {
        let reason = match full {
            LimitReached::Total => TooMany,
            LimitReached::Address => TooManyOfOne,
        };
        self.edge
            .close_log
            .record(reason, Some(client), &"too many");
        if self.tls.is_none() {
            try_write_rejection(stream, Rejection::Busy);
        }
    }

    /// Reads the PROXY header. Returns the client that it names, or `None` if it names none. `Err`
    /// ends the connection, and is logged: the peer is not trusted, or the header is missing,
    /// malformed or late.
    async fn read_proxy_header(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
    ) -> Result<Option<SocketAddr>, ()> {
        let detail = if !self.edge.is_trusted_proxy(peer.ip()) {
            "the peer is not in trusted_proxies".to_owned()
        } else {
            match timeout(
                self.edge.limits().handshake,
                proxy_protocol::read_header(stream),
            )
            .await
            {
                Ok(Ok(named)) => {
                    return Ok(named
                        .map(|client| SocketAddr::new(client.ip().to_canonical(), client.port())));
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it did not arrive within limits.handshake".to_owned(),
            }
        };
        self.edge
            .close_log
            .record(ProxyHeader, Some(peer.ip()), &detail);
        Err(())
    }

    /// Does the TLS handshake, if the listener has TLS. Returns the transport, the version of TLS,
    /// and whether ALPN chose HTTP/2. `None` ends the connection: the handshake failed or was late,
    /// a stop came, or it was a challenge of a certificate authority, which ends with the
    /// handshake. A client that speaks clear text gets an answer in clear text.
    async fn tls_handshake(
        &self,
        stream: TcpStream,
        client: IpAddr,
        stops: &StopSignals,
    ) -> Option<(BoxedTransport, Option<&'static str>, bool)> {
        let Some(tls) = &self.tls else {
            return Some((Box::new(stream), None, false));
        };
        let edge = &self.edge;
        let limit = edge.limits().handshake;
        let mut closing = stops.closing.clone();
        let handshake = async {
            let mut first = [0];
            stream.peek(&mut first).await?;
            // A handshake begins with 22, and a request with the letter of a method.
            if first[0].is_ascii_uppercase() {
                try_write_rejection(&stream, Rejection::NotEncrypted);
            }
            tls.handshake(stream).await
        };
        let handshake = tokio::select! {
            biased;
            // Boxed: otherwise each connection would have memory for it to its end.
            handshake = timeout(limit, Box::pin(handshake)) => handshake,
            _ = closing.wait_for(|closing| *closing) => return None,
        };
        match handshake {
            // The certificate was the answer.
            Ok(Ok(mut completed)) if completed.is_acme_challenge => {
                let _ = timeout(limit, completed.stream.shutdown()).await;
                None
            }
            Ok(Ok(CompletedHandshake {
                stream,
                version,
                speaks_http2,
                ..
            })) => Some((Box::new(stream), Some(version), speaks_http2)),
            Ok(Err(error)) => {
                edge.close_log.record(Handshake, Some(client), &error);
                None
            }
            Err(late) => {
                edge.close_log.record(HandshakeTimeout, Some(client), &late);
                None
            }
        }
    }

    /// Serves a connection as HTTP/1 or HTTP/2. Over TLS, ALPN has chosen (`speaks_http2`). In
    /// clear text the first bytes decide, except that a listener with `redirect` speaks HTTP/1
    /// only: no client follows a redirect over HTTP/2 in clear text.
    async fn serve_http(
        &self,
        mut connection: Box<ClientStream>,
        mut speaks_http2: bool,
        mut stops: StopSignals,
    ) {
        if self.tls.is_none() && self.redirect.is_none() && self.speaks_http2 {
            connection.set_deadline(self.edge.limits().idle);
            let has_preface = tokio::select! {
                biased;
                has_preface = connection.begins_with(PREFACE) => has_preface,
                // There is no request yet.
                _ = stops.closing.wait_for(|closing| *closing) => return,
            };
            match has_preface {
                Ok(has_preface) => speaks_http2 = has_preface,
                Err(error) => {
                    return tracing::debug!(%error, "a connection ended before its first byte");
                }
            }
        }
        // Boxed: otherwise each connection would have memory for both.
        if speaks_http2 {
            Box::pin(http2::serve(&self.edge, connection, stops.draining)).await;
        } else {
            Box::pin(http1::serve(&self.edge, self.redirect, connection, stops)).await;
        }
    }
}

/// Writes an answer in clear text, as much as the socket takes at once.
pub fn try_write_rejection(stream: &TcpStream, reason: Rejection) {
    let answer = bare_rejection(reason);
    let mut bytes = Vec::new();
    with_date(|date| answer.write_http1(date.as_bytes(), false, &mut bytes));
    let _ = stream.try_write(&bytes);
}
