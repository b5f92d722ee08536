//! [`AcceptService`] accepts client connections. It passes each connection to the
//! [`ServeConnection`] of its listener. [`bind`] binds a listener before anything else starts. So a
//! busy port is an error at once, and the real port is known if the settings say port 0. This
//! service replaces Pingora's own listeners, which try a busy port 30 times, a second apart.

use super::connection_counter::{ConnectionCounter, CountGuard};
use super::stop_signals::StopSignals;
use super::worker_health::WorkerHealth;
use crate::threads::spawn;
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

/// What a listener does with its connections.
#[async_trait]
pub trait ServeConnection: Send + Sync + 'static {
    /// Serves a connection to its end.
    async fn serve(&self, socket: ClientSocket, stops: StopSignals);

    /// Called when a connection could not be accepted.
    fn log_accept_error(&self, error: &io::Error) {
        tracing::warn!(%error, "cannot accept a connection");
    }
}

/// Binds an address. Returns the bound address: port 0 takes a free port.
///
/// # Errors
/// The system refuses it.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
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
    Ok(socket.into())
}

/// Accepts connections and hands them to the service behind each listener.
pub struct AcceptService {
    /// The name of the threads.
    pub name: &'static str,
    /// The listeners, each with its service.
    pub listeners: ServedListeners,
    /// The number of workers. Each has a thread and a runtime.
    pub threads: usize,
    /// The signals to stop accepting and to end connections.
    pub stops: StopSignals,
    /// Counts accept loops and connections.
    pub counter: Arc<ConnectionCounter>,
    /// Notices workers that are stuck.
    pub worker_health: Arc<WorkerHealth>,
    /// Called once, when all workers accept connections.
    pub on_ready: Box<dyn Fn() + Send + Sync>,
}

/// Listeners, each with the service for its connections.
pub type ServedListeners = Vec<(BoundListener, Arc<dyn ServeConnection>)>;

/// A bound listener that belongs to no runtime yet.
pub enum BoundListener {
    /// At an address.
    Tcp(std::net::TcpListener),
    /// A socket in the file system.
    Unix(net::UnixListener),
}

impl BoundListener {
    fn try_clone(&self) -> io::Result<BoundListener> {
        use BoundListener::*;
        match self {
            Tcp(listener) => listener.try_clone().map(Tcp),
            Unix(listener) => listener.try_clone().map(Unix),
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

/// A listener in the runtime of a worker.
enum WorkerListener {
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

impl WorkerListener {
    fn new(listener: BoundListener) -> io::Result<WorkerListener> {
        match listener {
            BoundListener::Tcp(listener) => {
                TcpListener::from_std(listener).map(WorkerListener::Tcp)
            }
            BoundListener::Unix(listener) => {
                UnixListener::from_std(listener).map(WorkerListener::Unix)
            }
        }
    }

    /// Waits for the next connection.
    async fn accept(&self) -> io::Result<ClientSocket> {
        match self {
            WorkerListener::Tcp(listener) => listener
                .accept()
                .await
                .map(|(stream, peer)| ClientSocket::Tcp(stream, peer)),
            WorkerListener::Unix(listener) => listener
                .accept()
                .await
                .map(|(stream, _)| ClientSocket::Unix(stream)),
        }
    }
}

impl AcceptService {
    /// Starts a worker, which reports when it accepts connections.
    fn start_worker(
        &self,
        listeners: &ServedListeners,
        accepting: mpsc::UnboundedSender<()>,
    ) -> io::Result<()> {
        let mut own_listeners = ServedListeners::new();
        for (listener, service) in listeners {
            own_listeners.push((listener.try_clone()?, service.clone()));
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let counter = self.counter.clone();
        let health = self.worker_health.answer_checks();
        let mut stops = self.stops.clone();
        let started = spawn(self.name, move || {
            runtime.block_on(async {
                tokio::spawn(health);
                for (listener, service) in own_listeners {
                    match WorkerListener::new(listener) {
                        Ok(listener) => {
                            let guard = counter.count();
                            tokio::spawn(accept(
                                listener,
                                service,
                                stops.clone(),
                                counter.clone(),
                                guard,
                            ));
                        }
                        Err(error) => {
                            tracing::error!(%error, "this worker cannot use a listener, and does not serve it");
                        }
                    }
                }
                drop(accepting);
                // A connection may outlast the stop, until its time is up. Then the runtime is dropped
                // with all connections, and each open request is recorded.
                let _ = stops.ending.wait_for(|ending| *ending).await;
            });
        });
        started.map(drop)
    }
}

/// A runtime for each worker: a connection stays with the worker that accepted it, so that no task,
/// no socket and no timer crosses from one processor to another. The workers share the queue of
/// each listener, and the one that has time accepts.
#[async_trait]
impl Service for AcceptService {
    /// Starts the workers and calls `on_ready` when all accept connections, unless the stop came
    /// before. Ends at the stop; the workers go on. If no worker can be started, it tries again
    /// until one runs.
    async fn start_service(
        &mut self,
        _fds: Option<ListenFds>,
        _shutdown: ShutdownWatch,
        _listeners_per_fd: usize,
    ) {
        let mut stop = self.stops.draining.clone();
        let (accepting, mut accepts) = mpsc::unbounded_channel();
        let listeners = std::mem::take(&mut self.listeners);
        let mut workers = 0;
        for _ in 0..self.threads {
            match self.start_worker(&listeners, accepting.clone()) {
                Ok(()) => workers += 1,
                Err(error) => {
                    tracing::error!(%error, "cannot start a worker for {}; trying again until one runs", self.name)
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
        if !*stop.borrow() {
            (self.on_ready)();
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

/// Accepts connections until `draining` is signalled, and spawns a task for each one. Pauses for
/// `ACCEPT_PAUSE` after an error that concerns the listener. `_guard` counts this loop as open.
async fn accept(
    listener: WorkerListener,
    service: Arc<dyn ServeConnection>,
    mut stops: StopSignals,
    counter: Arc<ConnectionCounter>,
    _guard: CountGuard,
) {
    let connection_stops = stops.clone();
    let stopped = stops.draining.wait_for(|draining| *draining);
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
                    service.clone(),
                    accepted,
                    connection_stops.clone(),
                    counter.count(),
                ));
            }
            Err(error) if is_single_connection_error(&error) => {}
            Err(error) => {
                service.log_accept_error(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, which counts as open (`_guard`) until its end. Sets TCP_NODELAY first.
async fn serve(
    service: Arc<dyn ServeConnection>,
    socket: ClientSocket,
    stops: StopSignals,
    _guard: CountGuard,
) {
    // `BufferedStream` gathers writes already. What is flushed must leave at once.
    if let ClientSocket::Tcp(stream, _) = &socket
        && let Err(error) = stream.set_nodelay(true)
    {
        tracing::debug!(%error, "cannot set TCP_NODELAY on a connection");
    }
    service.serve(socket, stops).await;
}

/// Whether the error of an accept concerns one connection only, such as one whose client left
/// before it was accepted. Then the next one can be accepted at once.
fn is_single_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
