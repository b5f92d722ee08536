//! [`AdminService`] serves the admin interface, a Pingora application that is not public. The
//! connections of the admin interface have the same limits as those of the proxy, but are counted
//! separately. So a flood of connections to the proxy does not block the admin interface.

use super::accept::{ClientSocket, ServeConnection};
use super::client_stream::{ClientStream, MAX_LINGER_BYTES};
use super::context::PingoraApp;
use super::http1::{read_head, write_answer};
use super::listener::try_write_rejection;
use super::sent_answer::bare_rejection;
use super::stop_signals::StopSignals;
use crate::answers::Rejection;
use crate::forwarding::ConnectionPeer;
use crate::requests::{AdmissionLimiter, ClientConnection};
use crate::settings::Limits;
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// How long a request may take, from its whole head to the last byte of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves a Pingora application over HTTP/1 in clear text.
pub struct AdminService {
    app: Box<dyn PingoraApp>,
    limits: Limits,
    admission: Arc<AdmissionLimiter>,
}

impl AdminService {
    /// Serves `app` within `limits`.
    pub fn new(app: impl HttpServerApp + Send + Sync + 'static, limits: Limits) -> AdminService {
        let admission = AdmissionLimiter::new(limits.connections, limits.connections_per_address);
        AdminService {
            app: Box::new(Arc::new(app)),
            limits,
            admission,
        }
    }
}

#[async_trait]
impl ServeConnection for AdminService {
    /// Serves a connection. Beyond the limits, the client gets a 503. The settings allow no Unix
    /// socket.
    async fn serve(&self, socket: ClientSocket, stops: StopSignals) {
        let ClientSocket::Tcp(stream, address) = socket else {
            return;
        };
        let Ok(mut admitted) = self.admission.admit(1) else {
            return try_write_rejection(&stream, Rejection::Busy);
        };
        if admitted.admit_address(address.ip().to_canonical()).is_err() {
            return try_write_rejection(&stream, Rejection::Busy);
        }
        let peer = ConnectionPeer {
            address: Some(address.ip()),
            ..ConnectionPeer::default()
        };
        let client = ClientConnection::new(peer, None);
        let stall = self.limits.stall;
        let connection = ClientStream::new(Box::new(stream), Some(address), client, None, stall);
        self.serve_http(Box::new(connection), stops).await;
    }
}

impl AdminService {
    /// Has the application answer one request after the other. The connection ends when the client
    /// leaves, at a stop, after a malformed head, after `REQUEST_TIMEOUT`, or when the application
    /// does not return it.
    async fn serve_http(&self, mut connection: Box<ClientStream>, mut stops: StopSignals) {
        let mut closed = pin!(stops.closing.wait_for(|closing| *closing));
        loop {
            match read_head(&mut connection, &self.limits, closed.as_mut()).await {
                // Pingora reads the head again.
                Ok(Some(_)) => {}
                Ok(None) => return drop(connection.shutdown().await),
                // Malformed or late.
                Err(error) => {
                    let answer = bare_rejection(error.to_rejection());
                    write_answer(&mut connection, &answer, false).await;
                    return connection.linger(MAX_LINGER_BYTES).await;
                }
            }
            let session = ServerSession::new_http1(connection);
            let processed = self.app.process(session, &stops.draining);
            let answered = timeout(REQUEST_TIMEOUT, processed).await;
            let Ok(Some(reused)) = answered else { return };
            let Ok(next) = reused.consume().0.into_any().downcast::<ClientStream>() else {
                return;
            };
            connection = next;
        }
    }
}
