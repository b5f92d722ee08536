//! [`Inherited`]: listeners that another process has bound, by their address. A service manager passes them by the
//! protocol of systemd (`LISTEN_FDS`, sd_listen_fds(3)).

use crate::settings::DecisionAddress;
use listenfd::ListenFd;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A listener that was bound, in any process.
#[derive(Debug)]
pub struct Socket<L> {
    /// It neither waits for connections.
    pub listener: L,
    /// Whether it is the service manager's: then its name in the file system is, too.
    pub is_managed: bool,
}

/// Listeners that another process has bound and that nothing here has taken yet.
#[derive(Debug, Default)]
pub struct Inherited {
    tcp: Vec<(Name, TcpListener)>,
    unix: Vec<(Name, UnixListener)>,
}

/// How a listener is found, and called in messages.
#[derive(Debug)]
struct Name {
    address: DecisionAddress,
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
            if let Ok(Some(listener)) = passed.take_tcp_listener(place) {
                inherited.add_tcp(said, listener);
            } else if let Ok(Some(listener)) = passed.take_unix_listener(place) {
                inherited.add_unix(said, listener);
            } else {
                tracing::warn!(
                    "the service manager passed the socket `{said}`, which is no listener for streams; crawlgate leaves it alone"
                );
            }
        }
        inherited
    }

    fn add_tcp(&mut self, said: String, listener: TcpListener) {
        match listener.local_addr().and_then(|address| listener.set_nonblocking(true).map(|()| address)) {
            Ok(address) => self.tcp.push((Name { address: DecisionAddress::Tcp(address), said }, listener)),
            Err(error) => tracing::warn!(%error, "cannot use the socket `{said}` of the service manager"),
        }
    }

    fn add_unix(&mut self, said: String, listener: UnixListener) {
        let address = listener.local_addr().and_then(|address| listener.set_nonblocking(true).map(|()| address));
        match address.as_ref().map(|address| address.as_pathname()) {
            Ok(Some(path)) => {
                self.unix.push((Name { address: DecisionAddress::Unix(path.to_owned()), said }, listener));
            }
            Ok(None) => tracing::warn!("the socket `{said}` of the service manager has no name in the file system"),
            Err(error) => tracing::warn!(%error, "cannot use the socket `{said}` of the service manager"),
        }
    }

    /// The listener at an address, if it was passed.
    pub fn tcp(&mut self, wanted: SocketAddr) -> Option<Socket<TcpListener>> {
        let is_it = |(name, _): &(Name, TcpListener)| matches!(name.address, DecisionAddress::Tcp(at) if at == wanted);
        let place = self.tcp.iter().position(is_it)?;
        Some(Socket { listener: self.tcp.swap_remove(place).1, is_managed: true })
    }

    /// The listener with a name in the file system, if it was passed.
    pub fn unix(&mut self, wanted: &Path) -> Option<Socket<UnixListener>> {
        let is_it =
            |(name, _): &(Name, UnixListener)| matches!(&name.address, DecisionAddress::Unix(at) if at == wanted);
        let place = self.unix.iter().position(is_it)?;
        Some(Socket { listener: self.unix.swap_remove(place).1, is_managed: true })
    }

    /// Says which listeners the settings do not name. Clients would wait there for ever, so they are closed.
    pub fn close_the_rest(self) {
        for name in self.tcp.iter().map(|(name, _)| name).chain(self.unix.iter().map(|(name, _)| name)) {
            tracing::warn!(
                "the service manager passed the socket `{}` for {}, which is no listener of the settings; crawlgate does \
                 not serve it. Name it in the settings exactly so, or take it out of the socket unit",
                name.said,
                name.address
            );
        }
    }
}
