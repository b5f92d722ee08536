//! Where the decision service listens, bound: [`DecisionListeners`]. Must not know what is answered there.

use super::{ServerError, bind};
use crate::settings::DecisionAddress;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The permissions of a socket: its owner and its group may ask.
const OWNER_AND_GROUP: u32 = 0o660;

/// Bound listeners.
#[derive(Default)]
pub struct DecisionListeners {
    pub tcp: Vec<TcpListener>,
    pub unix: Vec<UnixListener>,
    /// Where they are, with the ports that the system chose.
    pub bound: Vec<DecisionAddress>,
}

impl DecisionListeners {
    /// Binds all addresses.
    pub fn bind<'a>(addresses: impl Iterator<Item = &'a DecisionAddress>) -> Result<DecisionListeners, ServerError> {
        let mut listeners = DecisionListeners::default();
        for address in addresses {
            match address {
                DecisionAddress::Tcp(address) => {
                    let (listener, address) = bind(*address)?;
                    listeners.tcp.push(listener);
                    listeners.bound.push(DecisionAddress::Tcp(address));
                }
                DecisionAddress::Unix(path) => {
                    let cannot = format!("cannot listen on unix:{}", path.display());
                    listeners.unix.push(socket(path).map_err(ServerError::io(cannot))?);
                    listeners.bound.push(address.clone());
                }
            }
        }
        Ok(listeners)
    }

    /// The sockets in the file system.
    pub fn paths(&self) -> Vec<PathBuf> {
        let path = |address: &DecisionAddress| match address {
            DecisionAddress::Unix(path) => Some(path.clone()),
            DecisionAddress::Tcp(_) => None,
        };
        self.bound.iter().filter_map(path).collect()
    }
}

/// Binds a socket. One that a crashed process left behind is replaced.
fn socket(path: &Path) -> std::io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(OWNER_AND_GROUP))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
