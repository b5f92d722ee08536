//! Everything that the server listens on, bound before anything else starts: [`Sockets`]. Must not know what is served
//! there.

use super::listening::bind;
use super::{Bound, ServerError};
use crate::admin::control::ControlSocket;
use crate::settings::Settings;
use std::net::TcpListener;
use std::sync::Arc;

/// The bound sockets.
pub struct Sockets {
    /// In the order of the settings.
    pub listeners: Vec<TcpListener>,
    /// The admin listener.
    pub admin: Option<TcpListener>,
    /// The control socket.
    pub control: Option<Arc<ControlSocket>>,
    /// The addresses of the listeners.
    pub bound: Bound,
}

impl Sockets {
    /// Binds every address of the settings.
    pub fn bind(settings: &Settings) -> Result<Sockets, ServerError> {
        let bound: Vec<_> = settings.listen.iter().map(|address| bind(*address)).collect::<Result<_, _>>()?;
        let (listeners, listen) = bound.into_iter().unzip();
        let (admin, admin_address) = settings.admin.map(bind).transpose()?.unzip();
        let control = settings.control.as_deref().map(ControlSocket::bind).transpose()?.map(Arc::new);
        Ok(Sockets { listeners, admin, control, bound: Bound { listen, admin: admin_address } })
    }
}
