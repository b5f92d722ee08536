//! A connection's way through a [`Door`]: it is counted, its client is named, it is encrypted, and then it is served in its
//! protocol.

use super::connection::Connection;
use super::date::with_date;
use super::door::Door;
use super::http1;
use super::http2::{self, PREFACE};
use super::listening::Serve;
use super::notices::Reason;
use super::proxy_protocol;
use super::stops::Stops;
use super::tls::Handshake;
use super::transport::Transport;
use crate::answers::{Asked, Rejection, rejection};
use crate::forwarding::{Peer, is_trusted};
use crate::requests::{ClientConnection, Full};
use async_trait::async_trait;
use http::{HeaderMap, Method};
use pingora_core::apps::HttpServerApp;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// What a handshake settled; nothing in clear text.
#[derive(Clone, Copy, Default)]
struct Settled {
    /// The version of TLS.
    tls: Option<&'static str>,
    /// Whether ALPN chose HTTP/2.
    is_http2: bool,
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> Serve for Door<A> {
    async fn serve(&self, mut stream: TcpStream, peer: SocketAddr, stops: Stops) {
        let edge = &self.edge;
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let mut admitted = match edge.admission.admit(1) {
            Ok(admitted) => admitted,
            Err(full) => return self.turn_away(&stream, peer.ip(), full),
        };
        let is_strange =
            edge.desk.responder.is_some() && !is_trusted(peer.ip(), &edge.desk.requests.settings().trusted_proxies);
        if is_strange {
            edge.notices.closed(Reason::Untrusted, Some(peer.ip()), &"not trusted");
            return answer_at_once(&stream, Rejection::Untrusted);
        }
        let counted = edge.metrics.open_connection();
        let client = match self.proxy_protocol {
            false => peer,
            true => match self.named_client(&mut stream, peer).await {
                Some(client) => client,
                None => return,
            },
        };
        if let Err(full) = edge.admit(&mut admitted, client.ip()) {
            return self.turn_away(&stream, client.ip(), full);
        }
        let Some((transport, protocol)) = self.encrypt(stream, client.ip(), &stops).await else { return };
        let is_trusted = is_trusted(client.ip(), &edge.desk.requests.settings().trusted_proxies);
        let peer = Peer { address: Some(client.ip()), is_trusted, is_tls: self.tls.is_some() };
        let hsts = self.tls.as_ref().and_then(|tls| tls.hsts.clone());
        let shared = ClientConnection::new(peer, hsts).over_tls(protocol.tls);
        let connection = Connection::new(transport, Some(client), shared, Some(counted), edge.desk.limits().stall);
        let shared = connection.client.clone();
        self.speak(Box::new(connection), protocol.is_http2, stops).await;
        if shared.is_given_up() {
            edge.notices.closed(Reason::Stall, Some(client.ip()), &"the client takes nothing");
        }
    }

    async fn serve_unix(&self, stream: UnixStream, stops: Stops) {
        let edge = &self.edge;
        let Ok(_admitted) = edge.admission.admit(1) else {
            return edge.notices.closed(Reason::TooMany, None, &"too many");
        };
        let counted = edge.metrics.open_connection();
        let peer = Peer { address: None, is_trusted: true, is_tls: false };
        let shared = ClientConnection::new(peer, None);
        let stall = edge.desk.limits().stall;
        let connection = Connection::new(Transport::Unix(stream), None, shared, Some(counted), stall);
        self.speak(Box::new(connection), false, stops).await;
    }

    fn accept_failed(&self, error: &io::Error) {
        self.edge.notices.closed(Reason::Accept, None, error);
    }
}

impl<A: HttpServerApp + Send + Sync + 'static> Door<A> {
    /// Closes a connection that is one too many. In clear text it gets an answer, if the socket takes it at once.
    fn turn_away(&self, stream: &TcpStream, client: IpAddr, full: Full) {
        let reason = match full {
            Full::Total => Reason::TooMany,
            Full::Address => Reason::TooManyOfOne,
        };
        self.edge.notices.closed(reason, Some(client), &"too many");
        if self.tls.is_none() {
            answer_at_once(stream, Rejection::Busy);
        }
    }

    /// The client that a trusted proxy names. `None` ends the connection.
    async fn named_client(&self, stream: &mut TcpStream, peer: SocketAddr) -> Option<SocketAddr> {
        let (limits, notices) = (self.edge.desk.limits(), &self.edge.notices);
        if !is_trusted(peer.ip(), &self.edge.desk.requests.settings().trusted_proxies) {
            notices.closed(Reason::ProxyHeader, Some(peer.ip()), &"the peer is not one of `trusted_proxies`");
            return None;
        }
        match timeout(limits.handshake, proxy_protocol::read(stream)).await {
            Ok(Ok(Some(client))) => Some(SocketAddr::new(client.ip().to_canonical(), client.port())),
            // The proxy speaks for itself, as its health checks do.
            Ok(Ok(None)) => Some(peer),
            Ok(Err(error)) => {
                notices.closed(Reason::ProxyHeader, Some(peer.ip()), &error);
                None
            }
            Err(_) => {
                notices.closed(Reason::ProxyHeader, Some(peer.ip()), &"it did not come within `limits.handshake`");
                None
            }
        }
    }

    /// The transport, and what the handshake settled. `None` ends the connection.
    async fn encrypt(&self, stream: TcpStream, client: IpAddr, stops: &Stops) -> Option<(Transport, Settled)> {
        let Some(tls) = &self.tls else { return Some((Transport::Plain(stream), Settled::default())) };
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
            handshake = timeout(self.edge.desk.limits().handshake, Box::pin(handshake)) => handshake,
            _ = closing.wait_for(|closing| *closing) => return None,
        };
        match handshake {
            // The handshake was the answer.
            Ok(Ok(Handshake { mut stream, is_question: true, .. })) => {
                let _ = timeout(self.edge.desk.limits().handshake, stream.shutdown()).await;
                None
            }
            Ok(Ok(Handshake { stream, version, speaks_http2, .. })) => {
                self.edge.metrics.tls_handshake(version, if speaks_http2 { "h2" } else { "http/1.1" });
                Some((Transport::Tls(Box::new(stream)), Settled { tls: Some(version), is_http2: speaks_http2 }))
            }
            Ok(Err(error)) => {
                self.edge.notices.closed(Reason::Handshake, Some(client), &error);
                None
            }
            Err(late) => {
                self.edge.notices.closed(Reason::HandshakeTimeout, Some(client), &late);
                None
            }
        }
    }

    /// Serves a connection in its protocol: over TLS the one that ALPN chose, in clear text the one that its first octets
    /// are of. A listener that leads to https speaks HTTP/1 alone: no client asks for a redirect over HTTP/2.
    async fn speak(&self, mut connection: Box<Connection>, mut speaks_http2: bool, mut stops: Stops) {
        if self.tls.is_none() && self.redirect.is_none() {
            connection.set_deadline(self.edge.desk.limits().idle);
            let begins = tokio::select! {
                biased;
                begins = connection.begins_with(PREFACE) => begins,
                // There is no request yet.
                _ = stops.closing.wait_for(|closing| *closing) => return,
            };
            match begins {
                Ok(begins) => speaks_http2 = begins,
                Err(error) => return tracing::debug!(%error, "a connection ended before its first octet"),
            }
        }
        // In boxes, or each connection would have room for both.
        if speaks_http2 {
            Box::pin(http2::serve(self, connection, stops.leaving)).await;
        } else {
            Box::pin(http1::serve(self, connection, stops)).await;
        }
    }
}

/// Writes an answer in clear text, if the socket takes it at once.
fn answer_at_once(stream: &TcpStream, reason: Rejection) {
    let answer = rejection(reason, &Asked { method: &Method::GET, headers: &HeaderMap::new() });
    let mut octets = Vec::new();
    with_date(|date| answer.write_http1(date, false, &mut octets));
    let _ = stream.try_write(&octets);
}
