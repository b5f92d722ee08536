//! How a server begins: on its own, or in place of a running one. [`Beginning`] says which, [`begin`] makes what both give
//! alike: listeners and locks. Must not know what is served.

use super::ServerError;
use super::rooms::{policies, stored_copies};
use super::sockets::{bind_tcp, bind_unix, names};
use crate::admin::control::ControlSocket;
use crate::crawlers::Registry;
use crate::settings::Settings;
use crate::sites::SiteManager;
use crate::state::{StateError, StateStore};
use crate::time::Timestamp;
use crate::upgrade::{AnySocket, Inherited, ListenerName, Successor, Taken};
use std::path::Path;
use std::time::SystemTime;

/// How a server begins.
#[derive(Debug)]
pub enum Beginning {
    /// On its own; it cannot be upgraded.
    Alone,
    /// On its own; another process may take its place.
    Replaceable,
    /// In place of a running one.
    Next(Box<Successor>),
}

/// What every server begins with.
pub(super) struct Begun {
    pub(super) taken: Taken,
    /// The control socket, unless the process before has it.
    pub(super) control: Option<ControlSocket>,
    /// The process before.
    pub(super) successor: Option<Box<Successor>>,
    pub(super) is_replaceable: bool,
}

/// Takes the listeners and locks that another process has. The settings' certificates were checked.
pub(super) fn begin(beginning: Beginning, passed: Inherited, settings: &Settings) -> Result<Begun, ServerError> {
    let own_control = || settings.control.as_deref().map(ControlSocket::bind).transpose();
    let is_replaceable = !matches!(beginning, Beginning::Alone);
    let Beginning::Next(mut successor) = beginning else {
        let taken = Taken { inherited: passed, ..Taken::default() };
        return Ok(Begun { taken, control: own_control()?, successor: None, is_replaceable });
    };
    check(&successor, settings)?;
    let (takes, own) = bind_missing(&successor.listeners, settings)?;
    let takes_control = settings.control.is_some() && is_same(&settings.control, &successor.control);
    let control = if takes_control { None } else { own_control()? };
    let taken = successor.take(takes, takes_control, own)?;
    Ok(Begun { taken, control, successor: Some(successor), is_replaceable })
}

/// Whether this process could serve by these settings. Changes nothing.
fn check(successor: &Successor, settings: &Settings) -> Result<(), ServerError> {
    if !is_same(&settings.state, &successor.state) {
        return Err(ServerError::OtherState);
    }
    let now = Timestamp::from(SystemTime::now());
    let (store, mut remembered) = StateStore::in_memory_only();
    if let Some(directory) = &settings.state {
        remembered.facts = StateStore::check(directory, now).map_err(|error| match error {
            StateError::Unread { file, error } => ServerError::DamagedState { file, error },
            error => error.into(),
        })?;
    }
    let copies = stored_copies(&remembered, now);
    SiteManager::start(policies(settings, &copies), (&store, &remembered), Registry::builtin(), now)?;
    Ok(())
}

/// The listeners that the process before has, and those that it has not, bound.
fn bind_missing(offered: &[ListenerName], settings: &Settings) -> Result<(Vec<ListenerName>, Inherited), ServerError> {
    let (mut offered, mut takes, mut own) = (offered.to_vec(), Vec::new(), Inherited::default());
    for name in names(settings) {
        match offered.iter().position(|offered| *offered == name) {
            Some(place) => takes.push(offered.swap_remove(place)),
            None => {
                let socket = match &name {
                    ListenerName::Tcp(address) => AnySocket::Tcp(bind_tcp(*address)?),
                    ListenerName::Unix(path) => AnySocket::Unix(bind_unix(path)?),
                };
                own.add(name, socket);
            }
        }
    }
    Ok((takes, own))
}

/// Whether two settings name the same place.
fn is_same(one: &Option<impl AsRef<Path>>, other: &Option<impl AsRef<Path>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => std::path::absolute(one).ok() == std::path::absolute(other).ok(),
        (None, None) => true,
        _ => false,
    }
}
