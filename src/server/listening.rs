//! Listeners in place of Pingora's: [`Listening`]. They are bound before anything starts, so that a busy port fails at once
//! (Pingora tries 30 times, a second apart) and port 0 works. A stop knows how many connections are left. Must not know
//! what is served.

use super::ServerError;
use super::connection::Connection;
use super::stop::{Counted, Open};
use crate::admin::Operations;
use crate::telemetry::{Metrics, OpenConnection};
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::Service;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How many connections wait to be accepted. The system caps it (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// The pause after an error that lasts, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds an address. Returns the bound address: port 0 takes a free port.
pub(super) fn bind(address: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), ServerError> {
    let bind = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // For a restart while old connections linger. A second listener would need SO_REUSEPORT.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = std::net::TcpListener::from(socket);
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bind().map_err(|source| ServerError::Bind { address, source })
}

/// Accepts connections and hands them to an application.
pub(super) struct Listening<A> {
    pub(super) name: &'static str,
    pub(super) listeners: Vec<std::net::TcpListener>,
    pub(super) app: Arc<A>,
    pub(super) threads: usize,
    /// Says when to stop accepting. Without it, Pingora's shutdown says so.
    pub(super) stop: Option<ShutdownWatch>,
    /// Counts accept loops and connections.
    pub(super) open: Arc<Open>,
    /// Becomes ready when connections are accepted.
    pub(super) ready: Option<Arc<Operations>>,
    /// Where connections are counted by state, if they are.
    pub(super) metrics: Option<Arc<Metrics>>,
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> Service for Listening<A> {
    async fn start_service(&mut self, _fds: Option<ListenFds>, shutdown: ShutdownWatch, _listeners_per_fd: usize) {
        let stop = self.stop.take().unwrap_or(shutdown);
        let mut loops = JoinSet::new();
        for listener in self.listeners.drain(..) {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    let metrics = self.metrics.clone();
                    loops.spawn(accept(listener, self.app.clone(), stop.clone(), self.open.clone(), metrics));
                }
                Err(error) => tracing::error!(%error, "cannot use a listener; its address is not served"),
            }
        }
        if let Some(ready) = &self.ready {
            ready.set_ready(!*stop.borrow());
        }
        while loops.join_next().await.is_some() {}
    }

    fn name(&self) -> &str {
        self.name
    }

    fn threads(&self) -> Option<usize> {
        Some(self.threads)
    }
}

async fn accept<A: ServerApp + Send + Sync + 'static>(
    listener: TcpListener,
    app: Arc<A>,
    mut stop: ShutdownWatch,
    open: Arc<Open>,
    metrics: Option<Arc<Metrics>>,
) {
    let _accepting = open.count();
    let stopping = stop.clone();
    let stopped = stop.wait_for(|stop| *stop);
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            biased;
            // An error means that the sender is gone, and no later stop could arrive.
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let counted = metrics.as_ref().map(|metrics| metrics.open_connection());
                tokio::spawn(serve(app.clone(), stream, peer, stopping.clone(), counted, open.count()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether the client left before it was accepted. Nothing is wrong with the listener then.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn serve<A: ServerApp + Send + Sync + 'static>(
    app: Arc<A>,
    stream: TcpStream,
    peer: SocketAddr,
    stop: ShutdownWatch,
    counted: Option<OpenConnection>,
    _open: Counted,
) {
    // `Connection` gathers writes already. What is flushed must leave at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
    }
    let mut next = app.process_new(Box::new(Connection::new(stream, peer, counted)), &stop).await;
    while let Some(stream) = next {
        next = app.process_new(stream, &stop).await;
    }
}
