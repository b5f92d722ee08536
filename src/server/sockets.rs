//! Everything that the server listens on but the control socket, bound: [`Sockets`]. A listener that another process has
//! bound is taken over. Must not know what is served there.

use super::{Bound, ServerError};
use crate::edge;
use crate::settings::{DecisionAddress, Settings};
use crate::upgrade::{Inherited, Socket};
use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The permissions of a socket: its owner and its group may ask.
const OWNER_AND_GROUP: u32 = 0o660;

/// Bound listeners.
pub(super) struct Sockets {
    /// Of the proxy, in the order of the settings.
    pub(super) proxy: Vec<TcpListener>,
    /// Of the decision service.
    pub(super) decisions: DecisionListeners,
    pub(super) admin: Option<TcpListener>,
    /// Where they are, with the ports that the system chose.
    pub(super) bound: Bound,
}

/// Bound listeners of the decision service.
#[derive(Default)]
pub(super) struct DecisionListeners {
    pub(super) tcp: Vec<TcpListener>,
    pub(super) unix: Vec<UnixListener>,
    /// The sockets in the file system that go with this process.
    pub(super) paths: Vec<PathBuf>,
    bound: Vec<DecisionAddress>,
}

impl Sockets {
    /// Binds all addresses that no other process has bound for this one.
    pub(super) fn bind(settings: &Settings, inherited: &mut Inherited) -> Result<Sockets, ServerError> {
        let mut proxy = Vec::new();
        let mut listen = Vec::new();
        for said in &settings.listen {
            let (listener, address) = tcp(said.address, inherited)?;
            proxy.push(listener);
            listen.push((said.tls.is_some(), address));
        }
        let addresses = settings.decisions.iter().flat_map(|decisions| &decisions.listen);
        let decisions = DecisionListeners::bind(addresses, inherited)?;
        let (admin, admin_address) = settings.admin.map(|address| tcp(address, inherited)).transpose()?.unzip();
        let bound = Bound { listen, decisions: decisions.bound.clone(), admin: admin_address };
        Ok(Sockets { proxy, decisions, admin, bound })
    }
}

fn tcp(address: SocketAddr, inherited: &mut Inherited) -> Result<(TcpListener, SocketAddr), ServerError> {
    let bound = match inherited.tcp(address) {
        Some(Socket { listener, .. }) => listener.local_addr().map(|address| (listener, address)),
        None => edge::bind(address),
    };
    bound.map_err(|source| ServerError::Bind { address, source })
}

impl DecisionListeners {
    fn bind<'a>(
        addresses: impl Iterator<Item = &'a DecisionAddress>,
        inherited: &mut Inherited,
    ) -> Result<DecisionListeners, ServerError> {
        let mut listeners = DecisionListeners::default();
        for address in addresses {
            match address {
                DecisionAddress::Tcp(address) => {
                    let (listener, address) = tcp(*address, inherited)?;
                    listeners.tcp.push(listener);
                    listeners.bound.push(DecisionAddress::Tcp(address));
                }
                DecisionAddress::Unix(path) => {
                    let Socket { listener, is_managed } = unix(path, inherited)?;
                    listeners.unix.push(listener);
                    if !is_managed {
                        listeners.paths.push(path.clone());
                    }
                    listeners.bound.push(address.clone());
                }
            }
        }
        Ok(listeners)
    }
}

fn unix(path: &Path, inherited: &mut Inherited) -> Result<Socket<UnixListener>, ServerError> {
    if let Some(socket) = inherited.unix(path) {
        return Ok(socket);
    }
    let cannot = format!("cannot listen on unix:{}", path.display());
    let listener = bind_unix(path).map_err(ServerError::io(cannot))?;
    Ok(Socket { listener, is_managed: false })
}

/// Binds a socket. One that a crashed process left behind is replaced.
fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(OWNER_AND_GROUP))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
