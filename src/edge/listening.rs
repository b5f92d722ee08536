//! [`Listening`] accepts connections, in place of Pingora's listeners. Its listeners are bound
//! before anything starts, so that a busy port fails at once (Pingora tries 30 times, a second
//! apart) and port 0 works. It counts open connections, so that a stop can wait for them.

use super::open::{Counted, Open};
use super::pulse::Pulse;
use super::stops::Stops;
use async_trait::async_trait;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::Service;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// How many connections wait to be accepted. The system caps it (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// The pause after an error that lasts, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The service behind a listener.
#[async_trait]
pub trait Serve: Send + Sync + 'static {
    /// Serves a connection to its end.
    async fn serve(&self, socket: ClientSocket, stops: Stops);

    /// Handles that a connection could not be accepted.
    fn accept_failed(&self, error: &io::Error) {
        tracing::warn!(%error, "cannot accept a connection");
    }
}

/// Binds an address. Returns the bound address: port 0 takes a free port.
///
/// # Errors
/// The system refuses it.
pub fn bind(address: SocketAddr) -> io::Result<(std::net::TcpListener, SocketAddr)> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // For a restart while old connections linger. A second listener would need SO_REUSEPORT.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = std::net::TcpListener::from(socket);
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Accepts connections and hands them to the service behind each listener.
pub struct Listening {
    /// The name of the threads.
    pub name: &'static str,
    /// The listeners, each with its service.
    pub listeners: Share,
    /// How many threads serve.
    pub threads: usize,
    /// The signals to stop accepting and to end connections.
    pub stops: Stops,
    /// Counts accept loops and connections.
    pub open: Arc<Open>,
    /// Asks the workers whether they move on.
    pub pulse: Arc<Pulse>,
    /// Called when connections are accepted.
    pub ready: Option<Box<dyn Fn() + Send + Sync>>,
}

/// Listeners, each with the service behind it. Each worker has descriptors of its own.
pub type Share = Vec<(BoundListener, Arc<dyn Serve>)>;

/// A listener that is bound.
#[derive(Debug)]
pub enum BoundListener {
    /// At an address.
    Tcp(std::net::TcpListener),
    /// A socket in the file system.
    Unix(net::UnixListener),
}

impl BoundListener {
    fn try_clone(&self) -> io::Result<BoundListener> {
        match self {
            BoundListener::Tcp(listener) => listener.try_clone().map(BoundListener::Tcp),
            BoundListener::Unix(listener) => listener.try_clone().map(BoundListener::Unix),
        }
    }
}

impl AsFd for BoundListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            BoundListener::Tcp(listener) => listener.as_fd(),
            BoundListener::Unix(listener) => listener.as_fd(),
        }
    }
}

/// A listener of a worker's runtime.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The socket of a connection.
pub enum ClientSocket {
    /// With the address of the other end.
    Tcp(TcpStream, SocketAddr),
    /// Of a socket in the file system, whose permissions have let the other end in.
    Unix(UnixStream),
}

impl Listener {
    fn new(listener: BoundListener) -> io::Result<Listener> {
        match listener {
            BoundListener::Tcp(listener) => TcpListener::from_std(listener).map(Listener::Tcp),
            BoundListener::Unix(listener) => UnixListener::from_std(listener).map(Listener::Unix),
        }
    }

    /// Waits for the next connection.
    async fn accept(&self) -> io::Result<ClientSocket> {
        match self {
            Listener::Tcp(listener) => listener
                .accept()
                .await
                .map(|(stream, peer)| ClientSocket::Tcp(stream, peer)),
            Listener::Unix(listener) => listener
                .accept()
                .await
                .map(|(stream, _)| ClientSocket::Unix(stream)),
        }
    }
}

impl Listening {
    /// Starts a worker, which reports when it accepts connections.
    fn start_worker(
        &self,
        listeners: &Share,
        accepting: mpsc::UnboundedSender<()>,
    ) -> io::Result<()> {
        let mut share = Share::new();
        for (listener, behind) in listeners {
            share.push((listener.try_clone()?, behind.clone()));
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let open = self.open.clone();
        let pulse = self.pulse.answer();
        let stops = self.stops.clone();
        let thread = std::thread::Builder::new().name(self.name.to_owned());
        let started = thread.spawn(move || {
            runtime.block_on(async {
                tokio::spawn(pulse);
                for (listener, behind) in share {
                    match Listener::new(listener) {
                        Ok(listener) => {
                            let counted = open.count();
                            let accepted =
                                accept(listener, behind, stops.clone(), open.clone(), counted);
                            tokio::spawn(accepted);
                        }
                        Err(error) => {
                            tracing::error!(%error, "cannot use a listener; this worker does not serve it");
                        }
                    }
                }
                drop(accepting);
                // A connection may outlast the stop. The process ends when the last one has, or
                // when their time is up.
                std::future::pending::<()>().await;
            });
        });
        started.map(drop)
    }
}

/// A runtime for each worker: a connection stays with the worker that accepted it, so that no task,
/// no socket and no timer crosses from one processor to another. The workers share the queue of
/// each listener, and the one that has time accepts.
#[async_trait]
impl Service for Listening {
    /// Starts the workers and calls `ready` when all accept connections, unless the stop came
    /// before. Ends at the stop; the workers go on. If no worker can be started, it tries again
    /// until one runs.
    async fn start_service(
        &mut self,
        _fds: Option<ListenFds>,
        _shutdown: ShutdownWatch,
        _listeners_per_fd: usize,
    ) {
        let mut stop = self.stops.leaving.clone();
        let (accepting, mut accepts) = mpsc::unbounded_channel();
        let listeners = std::mem::take(&mut self.listeners);
        let mut workers = 0;
        for _ in 0..self.threads {
            match self.start_worker(&listeners, accepting.clone()) {
                Ok(()) => workers += 1,
                Err(error) => {
                    tracing::error!(%error, "cannot start a worker for `{}`; trying until one runs", self.name)
                }
            }
        }
        // Clients that come while another service already accepts can take the last descriptors.
        while workers == 0 && !*stop.borrow() {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            let started = self.start_worker(&listeners, accepting.clone());
            workers += usize::from(started.is_ok());
        }
        // The addresses are given up when the workers stop, not when this ends.
        drop((listeners, accepting));
        // Ends when the last worker has dropped its sender.
        while accepts.recv().await.is_some() {}
        if let Some(ready) = self.ready.as_ref().filter(|_| !*stop.borrow()) {
            ready();
        }
        // An error means that the sender is gone, and no later stop could arrive.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    fn name(&self) -> &str {
        self.name
    }

    /// One thread of Pingora's is enough: the workers have threads of their own.
    fn threads(&self) -> Option<usize> {
        Some(1)
    }
}

/// Accepts connections and has each one served by `behind` in a task of its own, until `leaving` is
/// signalled. After an error that is not of one connection it pauses for `ACCEPT_PAUSE`.
/// `_accepting` counts this loop among what is open.
async fn accept(
    listener: Listener,
    behind: Arc<dyn Serve>,
    mut stops: Stops,
    open: Arc<Open>,
    _accepting: Counted,
) {
    let of_connections = stops.clone();
    let stopped = stops.leaving.wait_for(|leaving| *leaving);
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            biased;
            // An error means that the sender is gone, and no later stop could arrive.
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => {
                tokio::spawn(serve(
                    behind.clone(),
                    accepted,
                    of_connections.clone(),
                    open.count(),
                ));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                behind.accept_failed(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, which counts as open (`_open`) until its end. Sets TCP_NODELAY first.
async fn serve(behind: Arc<dyn Serve>, socket: ClientSocket, stops: Stops, _open: Counted) {
    // A connection gathers writes already. What is flushed must leave at once.
    if let ClientSocket::Tcp(stream, _) = &socket
        && let Err(error) = stream.set_nodelay(true)
    {
        tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
    }
    behind.serve(socket, stops).await;
}

/// Whether the error of an accept concerns one connection, such as one whose client left before it
/// was accepted. The listener is in order then, and accepts the next one at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
