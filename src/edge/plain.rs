//! [`Plain`]: a listener for an application of Pingora's that is not public, the admin interface.
//! Its connections have the limits of the proxy's, counted apart.

use super::connection::{Connection, LINGERING};
use super::http1::{next_head, write};
use super::listening::{ClientSocket, Serve};
use super::serve_door::answer_at_once;
use super::stops::Stops;
use super::transport::Transport;
use crate::answers::{Asked, Rejection, rejection};
use crate::forwarding::Peer;
use crate::requests::{Admission, ClientConnection, Mistake};
use crate::settings::Limits;
use async_trait::async_trait;
use http::{HeaderMap, Method};
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// How long a request may take, from its whole head to the last byte of the response.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// Serves the connections of an application of Pingora's.
pub struct Plain<A> {
    app: Arc<A>,
    limits: Limits,
    admission: Arc<Admission>,
}

impl<A> Plain<A> {
    /// In front of an application.
    pub fn new(app: A, limits: Limits) -> Plain<A> {
        let admission = Admission::new(limits.connections, limits.connections_per_address);
        Plain {
            app: Arc::new(app),
            limits,
            admission,
        }
    }
}

#[async_trait]
impl<A: HttpServerApp + Send + Sync + 'static> Serve for Plain<A> {
    /// Serves a connection within the limits. Beyond them a TCP client gets a refusal, and a
    /// connection of a Unix socket is closed.
    async fn serve(&self, socket: ClientSocket, stops: Stops) {
        let Ok(mut admitted) = self.admission.admit(1) else {
            if let ClientSocket::Tcp(stream, _) = &socket {
                answer_at_once(stream, Rejection::Busy);
            }
            return;
        };
        let (transport, address): (Transport, _) = match socket {
            ClientSocket::Tcp(stream, address) => {
                if admitted.admit_address(address.ip().to_canonical()).is_err() {
                    return answer_at_once(&stream, Rejection::Busy);
                }
                (Box::new(stream), Some(address))
            }
            ClientSocket::Unix(stream) => (Box::new(stream), None),
        };
        let peer = Peer {
            address: address.map(|address| address.ip()),
            ..Peer::default()
        };
        let client = ClientConnection::new(peer, None);
        let connection = Connection::new(transport, address, client, None, self.limits.stall);
        self.speak(Box::new(connection), stops).await;
    }
}

impl<A: HttpServerApp + Send + Sync + 'static> Plain<A> {
    /// Has the application answer one request after the other. The connection ends when the client
    /// or a stop ends it, after a head that is refused, after a request of more than
    /// `REQUEST_TIME`, or if the application does not give it back.
    async fn speak(&self, mut connection: Box<Connection>, mut stops: Stops) {
        let mut closed = pin!(stops.closing.wait_for(|closing| *closing));
        loop {
            match next_head(&mut connection, &self.limits, closed.as_mut()).await {
                // Its bytes stay where they are, for Pingora.
                Ok(Some(_)) => {}
                Ok(None) => return drop(connection.shutdown().await),
                Err(mistake) => return refuse(&mut connection, mistake).await,
            }
            let session = ServerSession::new_http1(connection);
            let processed = self.app.process_new_http(session, &stops.leaving);
            let answered = timeout(REQUEST_TIME, processed).await;
            let Ok(Some(reused)) = answered else { return };
            let Ok(next) = reused.consume().0.into_any().downcast::<Connection>() else {
                return;
            };
            connection = next;
        }
    }
}

/// Answers a head that cannot be read, or that does not come in time, and ends the connection.
async fn refuse(connection: &mut Connection, mistake: Mistake) {
    let asked = Asked {
        method: &Method::GET,
        headers: &HeaderMap::new(),
    };
    write(connection, &rejection(mistake.rejection(), &asked), false).await;
    connection.linger(LINGERING).await;
}
