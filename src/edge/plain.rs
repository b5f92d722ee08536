//! [`Plain`]: a listener without limits, for an application that is not for the public.

use super::connection::Connection;
use super::listening::Serve;
use super::stops::Stops;
use super::transport::Transport;
use crate::forwarding::Peer;
use crate::requests::ClientConnection;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// How long a client may take nothing of what is written.
const STALL: Duration = Duration::from_secs(60);

/// An application of Pingora's.
pub struct Plain<A>(pub Arc<A>);

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> Serve for Plain<A> {
    async fn serve(&self, stream: TcpStream, address: SocketAddr, stops: Stops) {
        self.speak(Transport::Plain(stream), Some(address), stops).await;
    }

    async fn serve_unix(&self, stream: UnixStream, stops: Stops) {
        self.speak(Transport::Unix(stream), None, stops).await;
    }
}

impl<A: ServerApp + Send + Sync + 'static> Plain<A> {
    async fn speak(&self, transport: Transport, address: Option<SocketAddr>, stops: Stops) {
        let peer = Peer { address: address.map(|address| address.ip()), is_trusted: false, is_tls: false };
        let client = ClientConnection::new(peer, None);
        let connection = Connection::new(transport, address, client, None, STALL);
        let mut next: Option<Stream> = Some(Box::new(connection));
        while let Some(stream) = next {
            next = self.0.process_new(stream, &stops.leaving).await;
        }
    }
}
