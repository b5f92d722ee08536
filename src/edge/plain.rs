//! [`Plain`]: a listener without limits, for the admin interface. The interface is an application of Pingora's and not
//! public.

use super::connection::Connection;
use super::listening::{ClientSocket, Serve};
use super::stops::Stops;
use super::transport::Transport;
use crate::forwarding::Peer;
use crate::requests::ClientConnection;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::Stream;
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take nothing of what is written.
const STALL: Duration = Duration::from_secs(60);

/// Serves the connections of an application of Pingora's.
pub struct Plain<A>(pub Arc<A>);

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> Serve for Plain<A> {
    async fn serve(&self, socket: ClientSocket, stops: Stops) {
        let (transport, address) = match socket {
            ClientSocket::Tcp(stream, address) => (Transport::Plain(stream), Some(address)),
            ClientSocket::Unix(stream) => (Transport::Unix(stream), None),
        };
        let peer = Peer { address: address.map(|address| address.ip()), ..Peer::default() };
        let connection = Connection::new(transport, address, ClientConnection::new(peer, None), None, STALL);
        let mut next: Option<Stream> = Some(Box::new(connection));
        while let Some(stream) = next {
            next = self.0.process_new(stream, &stops.leaving).await;
        }
    }
}
