//! [`Inherited`]: listeners that another process has bound, by what the settings call them. A service manager passes them by
//! the protocol of systemd (`LISTEN_FDS`, sd_listen_fds(3)), the process before by a channel.

use super::messages::{ListenerName, PassedListener};
use listenfd::ListenFd;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A listener that was bound, in any process. It does not block.
#[derive(Debug)]
pub struct Socket<L> {
    /// The listener.
    pub listener: L,
    /// Whether it is the service manager's: then its name in the file system is, too.
    pub is_managed: bool,
}

/// A listener of any kind.
#[derive(Debug)]
pub enum AnySocket {
    /// At an address.
    Tcp(TcpListener),
    /// In the file system.
    Unix(UnixListener),
}

/// Listeners that nothing here has taken yet.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    name: ListenerName,
    socket: AnySocket,
    is_managed: bool,
    /// That of `FileDescriptorName=`.
    said: String,
}

impl Inherited {
    /// Takes what the service manager passes. To be called before any thread is started: the variables of the environment
    /// are removed.
    pub fn from_service_manager() -> Inherited {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let (mut passed, mut inherited) = (ListenFd::from_env(), Inherited::default());
        for place in 0..passed.len() {
            let said = names.next().filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
            let socket = match (passed.take_tcp_listener(place), passed.take_unix_listener(place)) {
                (Ok(Some(listener)), _) => AnySocket::Tcp(listener),
                (_, Ok(Some(listener))) => AnySocket::Unix(listener),
                _ => {
                    tracing::warn!(
                        "the service manager passed the socket `{said}`, which is no listener for streams; crawlgate leaves \
                         it alone"
                    );
                    continue;
                }
            };
            match socket.prepare() {
                Ok(name) => inherited.0.push(Entry { name, socket, is_managed: true, said }),
                Err(error) => tracing::warn!(%error, "cannot use the socket `{said}` of the service manager"),
            }
        }
        inherited
    }

    /// Adds a listener of this process.
    pub fn add(&mut self, name: ListenerName, socket: AnySocket) {
        self.0.push(Entry { name, socket, is_managed: false, said: String::new() });
    }

    /// Adds a listener of the process before.
    pub fn pass(&mut self, passed: PassedListener, descriptor: OwnedFd) {
        let PassedListener { name, is_managed } = passed;
        let socket = match &name {
            ListenerName::Tcp(_) => AnySocket::Tcp(descriptor.into()),
            ListenerName::Unix(_) => AnySocket::Unix(descriptor.into()),
        };
        self.0.push(Entry { name, socket, is_managed, said: String::new() });
    }

    /// The listener at an address, if it was passed.
    pub fn tcp(&mut self, wanted: SocketAddr) -> Option<Socket<TcpListener>> {
        let name = ListenerName::Tcp(wanted);
        let place = self.0.iter().position(|entry| entry.name == name && matches!(entry.socket, AnySocket::Tcp(_)))?;
        match self.0.remove(place) {
            Entry { socket: AnySocket::Tcp(listener), is_managed, .. } => Some(Socket { listener, is_managed }),
            _ => None,
        }
    }

    /// The listener with a name in the file system, if it was passed.
    pub fn unix(&mut self, wanted: &Path) -> Option<Socket<UnixListener>> {
        let name = ListenerName::Unix(wanted.to_owned());
        let place = self.0.iter().position(|entry| entry.name == name && matches!(entry.socket, AnySocket::Unix(_)))?;
        match self.0.remove(place) {
            Entry { socket: AnySocket::Unix(listener), is_managed, .. } => Some(Socket { listener, is_managed }),
            _ => None,
        }
    }

    /// Says which listeners of the service manager the settings do not name, and closes them.
    pub fn close_the_rest(self) {
        for Entry { name, said, .. } in self.0.iter().filter(|entry| entry.is_managed) {
            tracing::warn!(
                "the service manager passed the socket `{said}` for {name}, which is no listener of the settings; clients \
                 that connect there get no answer. Name it in the settings exactly so, or take it out of the socket unit"
            );
        }
    }
}

impl AnySocket {
    /// Makes it ready for a runtime, and says what it is called.
    fn prepare(&self) -> std::io::Result<ListenerName> {
        match self {
            AnySocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                listener.local_addr().map(ListenerName::Tcp)
            }
            AnySocket::Unix(listener) => {
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                let path =
                    address.as_pathname().ok_or_else(|| std::io::Error::other("it has no name in the file system"));
                path.map(|path| ListenerName::Unix(path.to_owned()))
            }
        }
    }
}

impl fmt::Display for ListenerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenerName::Tcp(address) => write!(out, "{address}"),
            ListenerName::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}
