//! [`ControlDoor`]: the control socket of the running server. It answers commands from the start. After an upgrade it
//! does so as soon as the process before accepts no connection any more.

use super::ServerError;
use crate::admin::Operations;
use crate::admin::control::{ControlError, ControlSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The control socket, with its path.
#[derive(Clone)]
pub struct ControlDoor {
    path: Option<PathBuf>,
    operations: Arc<Operations>,
    /// The socket, once this process has it.
    pub socket: Arc<OnceLock<Arc<ControlSocket>>>,
}

impl ControlDoor {
    /// The control socket at this path, if there is one. It is not opened yet.
    pub fn new(path: Option<PathBuf>, operations: Arc<Operations>) -> ControlDoor {
        path.iter().for_each(|path| operations.answers_on(path));
        ControlDoor { path, operations, socket: Arc::default() }
    }

    /// Answers the clients of a socket from now on.
    pub fn serve(&self, socket: ControlSocket) -> Result<(), ServerError> {
        let socket = Arc::new(socket);
        let served = socket.clone().serve(self.operations.clone());
        // It is set once: a process either binds the socket or takes it over.
        let _ = self.socket.set(socket);
        served.map_err(ServerError::io("cannot serve the control socket"))
    }

    /// Puts a socket of its own in the place of that of the process before, whose lock this is.
    pub fn take_over(&self, lock: Option<OwnedFd>) {
        let Some(path) = self.path.as_deref().filter(|_| self.socket.get().is_none()) else { return };
        let taken = ControlSocket::take_over(path, lock).map_err(|error: ControlError| ServerError::from(error));
        if let Err(error) = taken.and_then(|socket| self.serve(socket)) {
            tracing::error!("{error}; crawlgate serves requests, and no command reaches it");
        }
    }

    /// Removes the socket, unless another process has it.
    pub fn remove(&self) {
        if let Some(socket) = self.socket.get() {
            socket.remove();
        }
    }
}
