//! [`Sockets`]: the listening sockets of the proxy, of the decision service for other proxies, and
//! of the admin interface. [`Sockets::bind`] takes over the sockets that a previous process or the
//! service manager passes, and binds the remaining addresses. [`ControlEndpoint`] is the control
//! socket for commands such as `crawlgate status`. It answers before the server accepts the first
//! request. In an upgrade, the previous process may have the same socket path. Then the previous
//! process keeps the control socket until it accepts no more connections.

use super::{BoundAddresses, ServerError};
use crate::admin::control::{ControlRequestHandler, ControlSocket};
use crate::edge::{self, BoundListener};
use crate::locks::lock;
use crate::settings::{ListenAddress, Settings};
use crate::upgrade::{HandedOverListener, InheritedListeners};
use ListenAddress::*;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The permissions of a socket: its owner and its group may connect.
const OWNER_AND_GROUP: u32 = 0o660;

/// A listener with a descriptor for another process.
pub type PassableListener = (HandedOverListener, OwnedFd);

/// Bound listeners.
#[derive(Default)]
pub struct Sockets {
    /// The listeners of the proxy, in the order of the settings.
    pub proxy: Vec<BoundListener>,
    /// The listeners of the decision service.
    pub decisions: Vec<BoundListener>,
    pub admin: Option<BoundListener>,
    /// The Unix sockets that this process removes at its end.
    pub paths: Vec<PathBuf>,
    /// Their addresses, with the ports that the system chose.
    pub bound: BoundAddresses,
    /// All listeners, for the next process.
    pub passable: Vec<PassableListener>,
}

/// The listeners of the settings, in the order in which [`Sockets::bind`] takes them.
pub fn listener_names(settings: &Settings) -> impl Iterator<Item = ListenAddress> {
    let proxy = settings.listen.iter().map(|listener| Tcp(listener.address));
    let decisions = settings
        .decisions
        .iter()
        .flat_map(|decisions| &decisions.listen)
        .cloned();
    proxy.chain(decisions).chain(settings.admin.map(Tcp))
}

impl Sockets {
    /// Takes the listeners of the settings out of `inherited`, and binds those that are not in it.
    /// Fails at the first that cannot be bound.
    pub fn bind(
        settings: &Settings,
        inherited: &mut InheritedListeners,
    ) -> Result<Sockets, ServerError> {
        let mut sockets = Sockets::default();
        for entry in &settings.listen {
            let (listener, address) = sockets.take_or_bind_tcp(entry.address, inherited)?;
            sockets.proxy.push(listener);
            sockets.bound.listen.push((entry.tls.is_some(), address));
        }
        for entry in settings
            .decisions
            .iter()
            .flat_map(|decisions| &decisions.listen)
        {
            let (listener, bound) = match entry {
                Tcp(address) => {
                    let (listener, address) = sockets.take_or_bind_tcp(*address, inherited)?;
                    (listener, Tcp(address))
                }
                Unix(_) => (
                    sockets.take_or_bind(entry.clone(), inherited)?,
                    entry.clone(),
                ),
            };
            sockets.decisions.push(listener);
            sockets.bound.decisions.push(bound);
        }
        if let Some(address) = settings.admin {
            let (listener, address) = sockets.take_or_bind_tcp(address, inherited)?;
            sockets.admin = Some(listener);
            sockets.bound.admin = Some(address);
        }
        Ok(sockets)
    }

    /// The listener at an address, inherited or bound now, and its address with the real port.
    fn take_or_bind_tcp(
        &mut self,
        address: SocketAddr,
        inherited: &mut InheritedListeners,
    ) -> Result<(BoundListener, SocketAddr), ServerError> {
        let listener = self.take_or_bind(Tcp(address), inherited)?;
        let bound = match &listener {
            BoundListener::Tcp(listener) => listener
                .local_addr()
                .map_err(ServerError::from_io("cannot keep a listener"))?,
            BoundListener::Unix(_) => address,
        };
        Ok((listener, bound))
    }

    /// The listener with this name, inherited or bound now. Keeps a descriptor for the next process,
    /// and the path of a socket that this process removes at its end.
    fn take_or_bind(
        &mut self,
        name: ListenAddress,
        inherited: &mut InheritedListeners,
    ) -> Result<BoundListener, ServerError> {
        let (listener, passed) = match inherited.take(&name) {
            Some(found) => found,
            None => (
                bind_listener(&name)?,
                HandedOverListener {
                    name,
                    is_managed: false,
                },
            ),
        };
        let descriptor = listener
            .as_fd()
            .try_clone_to_owned()
            .map_err(ServerError::from_io("cannot keep a listener"))?;
        if let HandedOverListener {
            name: Unix(path),
            is_managed: false,
        } = &passed
        {
            self.paths.push(path.clone());
        }
        self.passable.push((passed, descriptor));
        Ok(listener)
    }
}

/// Binds a listener of its own, which is one of the settings.
pub fn bind_listener(name: &ListenAddress) -> Result<BoundListener, ServerError> {
    match name {
        Tcp(address) => edge::bind(*address)
            .map(BoundListener::Tcp)
            .map_err(|source| ServerError::Bind {
                address: *address,
                source,
            }),
        Unix(path) => bind_socket(path)
            .map(BoundListener::Unix)
            .map_err(ServerError::from_io(format!(
                "cannot listen on unix:{}",
                path.display()
            ))),
    }
}

/// Binds a Unix socket for its owner and group. Replaces a socket at this path that does not answer:
/// a crashed process left it.
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

/// The control socket, with its path.
pub struct ControlEndpoint {
    pub path: Option<PathBuf>,
    /// `None` while the previous process has it, and without a path.
    socket: Mutex<Option<Arc<ControlSocket>>>,
}

impl ControlEndpoint {
    /// The control socket at this path, with the socket if this process has it already.
    pub fn new(path: Option<PathBuf>, socket: Option<ControlSocket>) -> ControlEndpoint {
        ControlEndpoint {
            path,
            socket: Mutex::new(socket.map(Arc::new)),
        }
    }

    /// The socket, if this process has it.
    pub fn socket(&self) -> Option<Arc<ControlSocket>> {
        lock(&self.socket).clone()
    }

    /// Answers the clients of the socket from now on, if this process has it.
    pub fn serve(&self, commands: ControlRequestHandler) -> Result<(), ServerError> {
        let Some(socket) = self.socket() else {
            return Ok(());
        };
        socket
            .serve(commands)
            .map_err(ServerError::from_io("cannot serve the control socket"))
    }

    /// Replaces the socket of the previous process, which passed its `file_lock`, and serves it. Does
    /// nothing without a path in the settings or if this process has the socket already. An error is
    /// logged.
    pub fn take_over(&self, file_lock: Option<OwnedFd>, commands: ControlRequestHandler) {
        let Some(path) = self.path.as_deref().filter(|_| self.socket().is_none()) else {
            return;
        };
        let taken = ControlSocket::take_over(path, file_lock).map_err(ServerError::from);
        let served = taken.and_then(|socket| {
            *lock(&self.socket) = Some(Arc::new(socket));
            self.serve(commands)
        });
        if let Err(error) = served {
            tracing::error!("{error}; crawlgate serves requests, but no command reaches it");
        }
    }

    /// Removes the socket, unless another process has it.
    pub fn remove(&self) {
        if let Some(socket) = self.socket() {
            socket.remove();
        }
    }
}
