//! Serves the connections of a [`Door`], which is a listener. It counts a connection, finds the
//! address of its client, does the handshake of TLS, and hands the connection to HTTP/1 or HTTP/2.

use super::close_log::CloseReason;
use super::connection::Connection;
use super::date::with_date;
use super::door::Door;
use super::http1;
use super::http2::{self, PREFACE};
use super::listening::{ClientSocket, Serve};
use super::proxy_protocol;
use super::stops::Stops;
use super::tls::Handshake;
use super::transport::Transport;
use crate::answers::{Asked, Rejection, rejection};
use crate::forwarding::Peer;
use crate::requests::{ClientConnection, Full};
use async_trait::async_trait;
use http::{HeaderMap, Method};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

#[async_trait]
impl Serve for Door {
    async fn serve(&self, socket: ClientSocket, stops: Stops) {
        match socket {
            ClientSocket::Tcp(stream, peer) => self.serve_tcp(stream, peer, stops).await,
            ClientSocket::Unix(stream) => self.serve_unix(stream, stops).await,
        }
    }

    fn accept_failed(&self, error: &io::Error) {
        self.edge.close_log.note(CloseReason::Accept, None, error);
    }
}

impl Door {
    /// Serves a connection over TCP to its end: limits, PROXY protocol, TLS, then HTTP. The client
    /// is the one that the PROXY header names, else `peer`. A client that is a trusted proxy has no
    /// limit of its own for connections.
    async fn serve_tcp(&self, mut stream: TcpStream, peer: SocketAddr, stops: Stops) {
        let edge = &self.edge;
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let mut admitted = match edge.admission.admit(1) {
            Ok(admitted) => admitted,
            Err(full) => return self.turn_away(&stream, peer.ip(), full),
        };
        if !edge.admits(peer.ip()) {
            edge.close_log
                .note(CloseReason::Untrusted, Some(peer.ip()), &"not trusted");
            return answer_at_once(&stream, Rejection::Untrusted);
        }
        let counted = edge.metrics.open_connection();
        let named = if self.proxy_protocol {
            let Ok(named) = self.named_client(&mut stream, peer).await else {
                return;
            };
            named
        } else {
            Some(peer)
        };
        let client = named.unwrap_or(peer);
        // A proxy that is trusted speaks for many clients.
        if !edge.trusts(client.ip())
            && let Err(full) = admitted.admit_address(client.ip())
        {
            return self.turn_away(&stream, client.ip(), full);
        }
        let Some((transport, tls, is_http2)) = self.encrypt(stream, client.ip(), &stops).await
        else {
            return;
        };
        let peer = Peer {
            address: Some(client.ip()),
            is_trusted: named.is_some() && edge.trusts(client.ip()),
            is_unnamed: named.is_none(),
            is_tls: self.tls.is_some(),
        };
        let hsts = self.tls.as_ref().and_then(|tls| tls.hsts.clone());
        let mut shared = ClientConnection::new(peer, hsts);
        shared.tls = tls;
        let connection = Connection::new(
            transport,
            Some(client),
            shared,
            Some(counted),
            edge.limits().stall,
        );
        let shared = connection.client.clone();
        self.speak(Box::new(connection), is_http2, stops).await;
        if shared.is_given_up() {
            edge.close_log.note(
                CloseReason::Stall,
                Some(client.ip()),
                &"the client takes nothing",
            );
        }
    }

    /// Serves a connection of a Unix socket to its end, in clear text. The other end has no address
    /// and is trusted. Beyond the limit of connections it is closed without an answer.
    async fn serve_unix(&self, stream: UnixStream, stops: Stops) {
        let edge = &self.edge;
        let Ok(_admitted) = edge.admission.admit(1) else {
            return edge.close_log.note(CloseReason::TooMany, None, &"too many");
        };
        let counted = edge.metrics.open_connection();
        let shared = ClientConnection::new(
            Peer {
                is_trusted: true,
                ..Peer::default()
            },
            None,
        );
        let connection = Connection::new(
            Box::new(stream),
            None,
            shared,
            Some(counted),
            edge.limits().stall,
        );
        self.speak(Box::new(connection), false, stops).await;
    }

    /// Closes a connection that is one too many. In clear text the client gets an answer, if the
    /// socket takes it at once.
    fn turn_away(&self, stream: &TcpStream, client: IpAddr, full: Full) {
        let reason = match full {
            Full::Total => CloseReason::TooMany,
            Full::Address => CloseReason::TooManyOfOne,
        };
        self.edge.close_log.note(reason, Some(client), &"too many");
        if self.tls.is_none() {
            answer_at_once(stream, Rejection::Busy);
        }
    }

    /// Reads the PROXY header and returns the client that it names, `None` if it names none. Fails,
    /// and has logged why, if the peer is not trusted, or the header is missing, malformed or late:
    /// the connection ends then.
    async fn named_client(
        &self,
        stream: &mut TcpStream,
        peer: SocketAddr,
    ) -> Result<Option<SocketAddr>, ()> {
        let detail = if !self.edge.trusts(peer.ip()) {
            "the peer is not one of `trusted_proxies`".to_owned()
        } else {
            match timeout(self.edge.limits().handshake, proxy_protocol::read(stream)).await {
                Ok(Ok(named)) => {
                    return Ok(named
                        .map(|client| SocketAddr::new(client.ip().to_canonical(), client.port())));
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it did not come within `limits.handshake`".to_owned(),
            }
        };
        self.edge
            .close_log
            .note(CloseReason::ProxyHeader, Some(peer.ip()), &detail);
        Err(())
    }

    /// Does the handshake of TLS, if the listener has TLS. Returns the transport, the version of
    /// TLS, and whether ALPN chose HTTP/2. `None` ends the connection: the handshake failed or was
    /// late, a stop came, or the handshake was the check of a certificate authority, which needs no
    /// more. A client that speaks clear text gets an answer in clear text before its handshake
    /// fails.
    async fn encrypt(
        &self,
        stream: TcpStream,
        client: IpAddr,
        stops: &Stops,
    ) -> Option<(Transport, Option<&'static str>, bool)> {
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
                answer_at_once(&stream, Rejection::NotEncrypted);
            }
            tls.handshake(stream).await
        };
        let handshake = tokio::select! {
            biased;
            // In a box, or each connection would have room for it to its end.
            handshake = timeout(limit, Box::pin(handshake)) => handshake,
            _ = closing.wait_for(|closing| *closing) => return None,
        };
        match handshake {
            // The handshake was the answer.
            Ok(Ok(Handshake {
                mut stream,
                is_question: true,
                ..
            })) => {
                let _ = timeout(limit, stream.shutdown()).await;
                None
            }
            Ok(Ok(Handshake {
                stream,
                version,
                speaks_http2,
                ..
            })) => {
                let protocol = if speaks_http2 { "h2" } else { "http/1.1" };
                edge.metrics
                    .edge
                    .handshakes
                    .with_label_values(&[version, protocol])
                    .inc();
                Some((Box::new(stream), Some(version), speaks_http2))
            }
            Ok(Err(error)) => {
                edge.close_log
                    .note(CloseReason::Handshake, Some(client), &error);
                None
            }
            Err(late) => {
                edge.close_log
                    .note(CloseReason::HandshakeTimeout, Some(client), &late);
                None
            }
        }
    }

    /// Serves a connection in its protocol: over TLS the one that ALPN chose (`speaks_http2`), in
    /// clear text the one that its first bytes show, if the listener speaks HTTP/2. A listener that
    /// redirects to https speaks HTTP/1 alone: no client asks for a redirect over HTTP/2.
    async fn speak(
        &self,
        mut connection: Box<Connection>,
        mut speaks_http2: bool,
        mut stops: Stops,
    ) {
        if self.tls.is_none() && self.redirect.is_none() && self.speaks_http2 {
            connection.set_deadline(self.edge.limits().idle);
            let begins = tokio::select! {
                biased;
                begins = connection.begins_with(PREFACE) => begins,
                // There is no request yet.
                _ = stops.closing.wait_for(|closing| *closing) => return,
            };
            match begins {
                Ok(begins) => speaks_http2 = begins,
                Err(error) => {
                    return tracing::debug!(%error, "a connection ended before its first octet");
                }
            }
        }
        // In boxes, or each connection would have room for both.
        if speaks_http2 {
            Box::pin(http2::serve(&self.edge, connection, stops.leaving)).await;
        } else {
            Box::pin(http1::serve(self, connection, stops)).await;
        }
    }
}

/// Writes an answer in clear text, if the socket takes it at once.
pub fn answer_at_once(stream: &TcpStream, reason: Rejection) {
    let answer = rejection(
        reason,
        &Asked {
            method: &Method::GET,
            headers: &HeaderMap::new(),
        },
    );
    let mut octets = Vec::new();
    with_date(|date| answer.write_http1(date, false, &mut octets));
    let _ = stream.try_write(&octets);
}
