//! [`Beginning`]: whether a server begins on its own or in place of a running one. [`begin`] opens
//! what every server needs first (listeners, locks and the control socket), or takes it over from
//! the running process.

use super::ServerError;
use super::rooms::{policies, stored_copies};
use super::sockets::{bind, names};
use crate::admin::control::{ControlError, ControlSocket};
use crate::settings::{ListenAddress, Settings};
use crate::sites::SiteManager;
use crate::state::{StateError, StateStore};
use crate::time::Timestamp;
use crate::upgrade::{Inherited, Successor, Taken};
use std::path::PathBuf;
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

/// The things that every server begins with.
pub struct Begun {
    pub taken: Taken,
    /// The control socket, unless the process before has it.
    pub control: Option<ControlSocket>,
    /// The process before.
    pub successor: Option<Box<Successor>>,
    pub is_replaceable: bool,
}

/// Opens the control socket and takes over listeners and locks: from the running process if this
/// one begins in its place, else what the service manager `passed`. Fails before anything is taken
/// from the running process if this one could not serve by the settings. The certificates of the
/// settings were checked before.
pub fn begin(
    beginning: Beginning,
    passed: Inherited,
    settings: &Settings,
) -> Result<Begun, ServerError> {
    let is_replaceable = !matches!(beginning, Beginning::Alone);
    let Beginning::Next(mut successor) = beginning else {
        let taken = Taken {
            inherited: passed,
            ..Taken::default()
        };
        return Ok(Begun {
            taken,
            control: bind_control(settings)?,
            successor: None,
            is_replaceable,
        });
    };
    check(&successor, settings)?;
    let (takes, own) = bind_missing(&successor.listeners, settings)?;
    let takes_control =
        settings.control.is_some() && place(&settings.control) == place(&successor.control);
    let control = if takes_control {
        None
    } else {
        bind_control(settings)?
    };
    let taken = successor.take(takes, takes_control, own)?;
    Ok(Begun {
        taken,
        control,
        successor: Some(successor),
        is_replaceable,
    })
}

fn bind_control(settings: &Settings) -> Result<Option<ControlSocket>, ControlError> {
    settings
        .control
        .as_deref()
        .map(ControlSocket::bind)
        .transpose()
}

/// Fails if this process could not serve by these settings in place of the running one: another
/// state directory, facts that cannot be read, policies that cannot be loaded. Changes nothing.
fn check(successor: &Successor, settings: &Settings) -> Result<(), ServerError> {
    if place(&settings.state) != place(&successor.state) {
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
    SiteManager::start(policies(settings, &copies), (&store, &remembered), now)?;
    Ok(())
}

/// Sorts the listeners of the settings: the names of those that the process before offers, and the
/// others, which are bound here. Fails if one cannot be bound.
fn bind_missing(
    offered: &[ListenAddress],
    settings: &Settings,
) -> Result<(Vec<ListenAddress>, Inherited), ServerError> {
    let mut offered = offered.to_vec();
    let mut takes = Vec::new();
    let mut own = Inherited::default();
    for name in names(settings) {
        match offered.iter().position(|offered| *offered == name) {
            Some(place) => takes.push(offered.swap_remove(place)),
            None => {
                let listener = bind(&name)?;
                own.add(name, listener);
            }
        }
    }
    Ok((takes, own))
}

/// The path as an absolute one, so that two spellings of it are equal. The outer `None` is no path
/// in the settings, the inner one a path that cannot be made absolute.
fn place(path: &Option<PathBuf>) -> Option<Option<PathBuf>> {
    path.as_ref().map(|path| std::path::absolute(path).ok())
}
