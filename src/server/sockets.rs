//! Everything that the server listens on but the control socket, bound: [`Sockets`]. A listener that another process has
//! bound is taken over. Must not know what is served there.

use super::{Bound, ServerError};
use crate::edge;
use crate::settings::{DecisionAddress, Settings};
use crate::upgrade::{Inherited, ListenerName, PassedListener, Socket};
use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The permissions of a socket: its owner and its group may ask.
const OWNER_AND_GROUP: u32 = 0o660;

/// A listener with a descriptor for another process.
pub(super) type Passable = (PassedListener, OwnedFd);

/// Bound listeners.
#[derive(Default)]
pub(super) struct Sockets {
    /// Of the proxy, in the order of the settings.
    pub(super) proxy: Vec<TcpListener>,
    /// Of the decision service.
    pub(super) decisions: DecisionListeners,
    pub(super) admin: Option<TcpListener>,
    /// Where they are, with the ports that the system chose.
    pub(super) bound: Bound,
    /// All of them, for the next process.
    pub(super) passable: Vec<Passable>,
}

/// Bound listeners of the decision service.
#[derive(Default)]
pub(super) struct DecisionListeners {
    pub(super) tcp: Vec<TcpListener>,
    pub(super) unix: Vec<UnixListener>,
    /// The sockets in the file system that go with this process.
    pub(super) paths: Vec<PathBuf>,
}

/// The listeners of the settings, in the order in which [`Sockets::bind`] takes them.
pub(super) fn names(settings: &Settings) -> impl Iterator<Item = ListenerName> {
    let proxy = settings.listen.iter().map(|listener| ListenerName::Tcp(listener.address));
    let decisions = settings.decisions.iter().flat_map(|decisions| &decisions.listen).map(ListenerName::from);
    proxy.chain(decisions).chain(settings.admin.map(ListenerName::Tcp))
}

impl Sockets {
    /// Binds all addresses that no other process has bound for this one.
    pub(super) fn bind(settings: &Settings, inherited: &mut Inherited) -> Result<Sockets, ServerError> {
        let mut sockets = Sockets::default();
        for said in &settings.listen {
            let (listener, address) = sockets.tcp(said.address, inherited)?;
            sockets.proxy.push(listener);
            sockets.bound.listen.push((said.tls.is_some(), address));
        }
        for said in settings.decisions.iter().flat_map(|decisions| &decisions.listen) {
            match said {
                DecisionAddress::Tcp(address) => {
                    let (listener, address) = sockets.tcp(*address, inherited)?;
                    sockets.decisions.tcp.push(listener);
                    sockets.bound.decisions.push(DecisionAddress::Tcp(address));
                }
                DecisionAddress::Unix(path) => {
                    let listener = sockets.unix(path, inherited)?;
                    sockets.decisions.unix.push(listener);
                    sockets.bound.decisions.push(said.clone());
                }
            }
        }
        if let Some(address) = settings.admin {
            let (listener, address) = sockets.tcp(address, inherited)?;
            (sockets.admin, sockets.bound.admin) = (Some(listener), Some(address));
        }
        Ok(sockets)
    }

    fn tcp(
        &mut self,
        address: SocketAddr,
        inherited: &mut Inherited,
    ) -> Result<(TcpListener, SocketAddr), ServerError> {
        let Socket { listener, is_managed } = match inherited.tcp(address) {
            Some(socket) => socket,
            None => Socket { listener: bind_tcp(address)?, is_managed: false },
        };
        self.pass(ListenerName::Tcp(address), is_managed, &listener)?;
        let bound = listener.local_addr().map_err(|source| ServerError::Bind { address, source })?;
        Ok((listener, bound))
    }

    fn unix(&mut self, path: &Path, inherited: &mut Inherited) -> Result<UnixListener, ServerError> {
        let Socket { listener, is_managed } = match inherited.unix(path) {
            Some(socket) => socket,
            None => Socket { listener: bind_unix(path)?, is_managed: false },
        };
        self.pass(ListenerName::Unix(path.to_owned()), is_managed, &listener)?;
        if !is_managed {
            self.decisions.paths.push(path.to_owned());
        }
        Ok(listener)
    }

    fn pass(&mut self, name: ListenerName, is_managed: bool, listener: &impl AsFd) -> Result<(), ServerError> {
        let descriptor = listener.as_fd().try_clone_to_owned().map_err(ServerError::io("cannot keep a listener"))?;
        self.passable.push((PassedListener { name, is_managed }, descriptor));
        Ok(())
    }
}

pub(super) fn bind_tcp(address: SocketAddr) -> Result<TcpListener, ServerError> {
    edge::bind(address).map(|(listener, _)| listener).map_err(|source| ServerError::Bind { address, source })
}

pub(super) fn bind_unix(path: &Path) -> Result<UnixListener, ServerError> {
    bind_socket(path).map_err(ServerError::io(format!("cannot listen on unix:{}", path.display())))
}

/// Binds a socket. One that a crashed process left behind is replaced.
fn bind_socket(path: &Path) -> std::io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(OWNER_AND_GROUP))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
