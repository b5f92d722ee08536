//! Listeners in place of Pingora's: [`Listening`]. They are bound before anything starts, so that a busy port fails at once
//! (Pingora tries 30 times, a second apart) and port 0 works. A stop knows how many connections are left. Must not know
//! what is served.

use super::open::{Counted, Open};
use async_trait::async_trait;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::Service;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;

/// How many connections wait to be accepted. The system caps it (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// The pause after an error that lasts, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is behind a listener.
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    /// Serves a connection to its end.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, stop: ShutdownWatch);

    /// Serves a connection of a socket in the file system, whose permissions have let it in.
    async fn serve_unix(&self, stream: UnixStream, stop: ShutdownWatch);

    /// A connection could not be accepted.
    fn accept_failed(&self, error: &io::Error) {
        tracing::warn!(%error, "cannot accept a connection");
    }
}

/// Binds an address. Returns the bound address: port 0 takes a free port.
///
/// # Errors
/// The system refuses it.
pub fn bind(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // For a restart while old connections linger. A second listener would need SO_REUSEPORT.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = std::net::TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Accepts connections and hands them to what is behind each listener.
pub struct Listening {
    /// What the threads are called.
    pub name: &'static str,
    /// The listeners, and what is behind each.
    pub listeners: Vec<(std::net::TcpListener, Arc<dyn Serve>)>,
    /// The same in the file system.
    pub sockets: Vec<(net::UnixListener, Arc<dyn Serve>)>,
    /// How many threads serve.
    pub threads: usize,
    /// Says when to stop accepting. Without it, Pingora's shutdown says so.
    pub stop: Option<ShutdownWatch>,
    /// Counts accept loops and connections.
    pub open: Arc<Open>,
    /// Called when connections are accepted.
    pub ready: Option<Box<dyn Fn() + Send + Sync>>,
}

#[async_trait]
impl Service for Listening {
    async fn start_service(&mut self, _fds: Option<ListenFds>, shutdown: ShutdownWatch, _listeners_per_fd: usize) {
        let stop = self.stop.take().unwrap_or(shutdown);
        let mut loops = JoinSet::new();
        for (listener, behind) in self.listeners.drain(..) {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    loops.spawn(accept(listener, behind, stop.clone(), self.open.clone()));
                }
                Err(error) => tracing::error!(%error, "cannot use a listener; its address is not served"),
            }
        }
        for (listener, behind) in self.sockets.drain(..) {
            match UnixListener::from_std(listener) {
                Ok(listener) => {
                    loops.spawn(accept_unix(listener, behind, stop.clone(), self.open.clone()));
                }
                Err(error) => tracing::error!(%error, "cannot use a socket; it is not served"),
            }
        }
        if let Some(ready) = self.ready.as_ref().filter(|_| !*stop.borrow()) {
            ready();
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

async fn accept(listener: TcpListener, behind: Arc<dyn Serve>, mut stop: ShutdownWatch, open: Arc<Open>) {
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
                tokio::spawn(serve(behind.clone(), stream, peer, stopping.clone(), open.count()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                behind.accept_failed(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn accept_unix(listener: UnixListener, behind: Arc<dyn Serve>, mut stop: ShutdownWatch, open: Arc<Open>) {
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
            Ok((stream, _)) => {
                let (behind, stop, counted) = (behind.clone(), stopping.clone(), open.count());
                tokio::spawn(async move {
                    behind.serve_unix(stream, stop).await;
                    drop(counted);
                });
            }
            Err(error) => {
                behind.accept_failed(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(behind: Arc<dyn Serve>, stream: TcpStream, peer: SocketAddr, stop: ShutdownWatch, _open: Counted) {
    // A connection gathers writes already. What is flushed must leave at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
    }
    behind.serve(stream, peer, stop).await;
}

/// Whether the client left before it was accepted. Nothing is wrong with the listener then.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
