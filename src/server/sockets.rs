//! [`Sockets`]: the bound listeners of the proxy, the decision service and the admin interface.
//! [`Sockets::bind`] takes over those that the previous process or the service manager has bound,
//! and binds the others. [`Control`] is the control socket. It answers commands before the first
//! request is accepted. In an upgrade with the same socket path, it does so once the previous
//! process accepts no connection any more.

use super::{Bound, ServerError};
use crate::admin::control::{Commands, ControlSocket};
use crate::edge::{self, BoundListener};
use crate::locks::lock;
use crate::settings::{ListenAddress, Settings};
use crate::upgrade::{Inherited, PassedListener};
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
pub type Passable = (PassedListener, OwnedFd);

/// Bound listeners.
#[derive(Default)]
pub struct Sockets {
    /// The listeners of the proxy, in the order of the settings.
    pub proxy: Vec<BoundListener>,
    /// The listeners of the decision service.
    pub decisions: Vec<BoundListener>,
    pub admin: Option<BoundListener>,
    /// The sockets in the file system that this process removes at its end.
    pub paths: Vec<PathBuf>,
    /// Where they are, with the ports that the system chose.
    pub bound: Bound,
    /// All of them, for the next process.
    pub passable: Vec<Passable>,
}

/// The listeners of the settings, in the order in which [`Sockets::bind`] takes them.
pub fn names(settings: &Settings) -> impl Iterator<Item = ListenAddress> {
    let proxy = settings
        .listen
        .iter()
        .map(|listener| ListenAddress::Tcp(listener.address));
    let decisions = settings
        .decisions
        .iter()
        .flat_map(|decisions| &decisions.listen)
        .cloned();
    proxy
        .chain(decisions)
        .chain(settings.admin.map(ListenAddress::Tcp))
}

impl Sockets {
    /// Takes the listeners of the settings out of `inherited`, and binds those that are not in it.
    /// Fails at the first that cannot be bound.
    pub fn bind(settings: &Settings, inherited: &mut Inherited) -> Result<Sockets, ServerError> {
        let mut sockets = Sockets::default();
        for said in &settings.listen {
            let (listener, address) = sockets.tcp(said.address, inherited)?;
            sockets.proxy.push(listener);
            sockets.bound.listen.push((said.tls.is_some(), address));
        }
        for said in settings
            .decisions
            .iter()
            .flat_map(|decisions| &decisions.listen)
        {
            let (listener, bound) = match said {
                ListenAddress::Tcp(address) => {
                    let (listener, address) = sockets.tcp(*address, inherited)?;
                    (listener, ListenAddress::Tcp(address))
                }
                ListenAddress::Unix(_) => (sockets.take(said.clone(), inherited)?, said.clone()),
            };
            sockets.decisions.push(listener);
            sockets.bound.decisions.push(bound);
        }
        if let Some(address) = settings.admin {
            let (listener, address) = sockets.tcp(address, inherited)?;
            sockets.admin = Some(listener);
            sockets.bound.admin = Some(address);
        }
        Ok(sockets)
    }

    /// The listener at an address, inherited or bound now, and its address with the real port.
    fn tcp(
        &mut self,
        address: SocketAddr,
        inherited: &mut Inherited,
    ) -> Result<(BoundListener, SocketAddr), ServerError> {
        let listener = self.take(ListenAddress::Tcp(address), inherited)?;
        let bound = match &listener {
            BoundListener::Tcp(listener) => listener.local_addr(),
            BoundListener::Unix(_) => Ok(address),
        };
        Ok((
            listener,
            bound.map_err(|source| ServerError::Bind { address, source })?,
        ))
    }

    /// The listener with this name, inherited or bound now. Keeps a descriptor of it for the next
    /// process, and the path of a socket that this process has to remove at its end.
    fn take(
        &mut self,
        name: ListenAddress,
        inherited: &mut Inherited,
    ) -> Result<BoundListener, ServerError> {
        let (listener, passed) = match inherited.take(&name) {
            Some(found) => found,
            None => (
                bind(&name)?,
                PassedListener {
                    name,
                    is_managed: false,
                },
            ),
        };
        let descriptor = listener
            .as_fd()
            .try_clone_to_owned()
            .map_err(ServerError::io("cannot keep a listener"))?;
        if let PassedListener {
            name: ListenAddress::Unix(path),
            is_managed: false,
        } = &passed
        {
            self.paths.push(path.clone());
        }
        self.passable.push((passed, descriptor));
        Ok(listener)
    }
}

/// Binds a listener of its own.
pub fn bind(name: &ListenAddress) -> Result<BoundListener, ServerError> {
    match name {
        ListenAddress::Tcp(address) => edge::bind(*address)
            .map(|(listener, _)| BoundListener::Tcp(listener))
            .map_err(|source| ServerError::Bind {
                address: *address,
                source,
            }),
        ListenAddress::Unix(path) => {
            bind_socket(path)
                .map(BoundListener::Unix)
                .map_err(ServerError::io(format!(
                    "cannot listen on unix:{}",
                    path.display()
                )))
        }
    }
}

/// Binds a socket in the file system, for its owner and group. A socket at this path to which
/// nobody answers is replaced: a crashed process left it behind.
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
pub struct Control {
    pub path: Option<PathBuf>,
    /// `None` while the process before has it, and without a path.
    socket: Mutex<Option<Arc<ControlSocket>>>,
}

impl Control {
    /// The control socket at this path, with the socket if this process has it already.
    pub fn new(path: Option<PathBuf>, socket: Option<ControlSocket>) -> Control {
        Control {
            path,
            socket: Mutex::new(socket.map(Arc::new)),
        }
    }

    /// The socket, if this process has it.
    pub fn socket(&self) -> Option<Arc<ControlSocket>> {
        lock(&self.socket).clone()
    }

    /// Answers the clients of the socket from now on, if this process has it.
    pub fn serve(&self, commands: Commands) -> Result<(), ServerError> {
        let Some(socket) = self.socket() else {
            return Ok(());
        };
        socket
            .serve(commands)
            .map_err(ServerError::io("cannot serve the control socket"))
    }

    /// Opens a socket in the place of that of the process before, whose `file_lock` this is, and
    /// serves it. Does nothing without a path in the settings or if this process has the socket already.
    /// An error is logged.
    pub fn take_over(&self, file_lock: Option<OwnedFd>, commands: Commands) {
        let Some(path) = self.path.as_deref().filter(|_| self.socket().is_none()) else {
            return;
        };
        let taken = ControlSocket::take_over(path, file_lock).map_err(ServerError::from);
        let served = taken.and_then(|socket| {
            *lock(&self.socket) = Some(Arc::new(socket));
            self.serve(commands)
        });
        if let Err(error) = served {
            tracing::error!("{error}; crawlgate serves requests, and no command reaches it");
        }
    }

    /// Removes the socket, unless another process has it.
    pub fn remove(&self) {
        if let Some(socket) = self.socket() {
            socket.remove();
        }
    }
}
