//! [`StartMode`]: whether a server starts on its own, or replaces a running process in an upgrade.
//! [`acquire_resources`] opens what a server needs first (listeners, locks and the control socket),
//! or takes it over from the running process.

use super::ServerError;
use super::services::site_options;
use super::sockets::{bind_listener, listener_names};
use crate::admin::control::{ControlError, ControlSocket};
use crate::origin::robots::StoredCopies;
use crate::settings::{ListenAddress, Settings};
use crate::sites::SiteManager;
use crate::state::StateStore;
use crate::time::Timestamp;
use crate::upgrade::{InheritedListeners, PendingTakeover, TakenOverState};
use std::path::PathBuf;
use std::time::SystemTime;

/// How a server starts.
pub enum StartMode {
    /// On its own, without upgrades.
    Alone,
    /// On its own; another process may take over later.
    Replaceable,
    /// In place of a running process.
    Successor(Box<PendingTakeover>),
}

/// The resources of a server that starts.
pub struct StartResources {
    pub taken: TakenOverState,
    /// The control socket, unless the previous process has it.
    pub control: Option<ControlSocket>,
    /// The connection to the previous process.
    pub successor: Option<Box<PendingTakeover>>,
    pub is_replaceable: bool,
}

/// Opens the control socket and takes over listeners and locks: from the running process if this one
/// replaces it, else those that the service manager `passed`. Fails before it takes anything from
/// the running process, if this one could not serve with the settings.
pub fn acquire_resources(
    start_mode: StartMode,
    passed: InheritedListeners,
    settings: &Settings,
) -> Result<StartResources, ServerError> {
    let is_replaceable = !matches!(start_mode, StartMode::Alone);
    let StartMode::Successor(mut successor) = start_mode else {
        let taken = TakenOverState {
            inherited: passed,
            ..TakenOverState::default()
        };
        return Ok(StartResources {
            taken,
            control: bind_control(settings)?,
            successor: None,
            is_replaceable,
        });
    };
    check_takeover(&successor, settings)?;
    let (taken_listeners, own_listeners) = bind_missing(&successor.listeners, settings)?;
    let takes_control = settings.control.is_some()
        && absolute_path(&settings.control) == absolute_path(&successor.control);
    let control = if takes_control {
        None
    } else {
        bind_control(settings)?
    };
    let taken = successor.take_over(taken_listeners, takes_control, own_listeners)?;
    Ok(StartResources {
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

/// Fails if this process could not replace the running one with these settings: another state
/// directory, unreadable facts, or policies that cannot be loaded. Changes nothing.
fn check_takeover(successor: &PendingTakeover, settings: &Settings) -> Result<(), ServerError> {
    if absolute_path(&settings.state) != absolute_path(&successor.state) {
        return Err(ServerError::OtherState);
    }
    let now = Timestamp::from(SystemTime::now());
    let (store, mut restored) = StateStore::in_memory_only();
    if let Some(directory) = &settings.state {
        restored.facts = StateStore::check(directory, now).map_err(ServerError::UnreadState)?;
    }
    let copies = StoredCopies::from_records(&restored.facts.origin_copies, now);
    SiteManager::start(site_options(settings, &copies), &store, &restored, now)?;
    Ok(())
}

/// Returns the listeners of the settings that the `running` process has, and binds the others.
/// Fails if one cannot be bound.
fn bind_missing(
    running: &[ListenAddress],
    settings: &Settings,
) -> Result<(Vec<ListenAddress>, InheritedListeners), ServerError> {
    let mut offered = running.to_vec();
    let mut taken_listeners = Vec::new();
    let mut own_listeners = InheritedListeners::default();
    for name in listener_names(settings) {
        match offered.iter().position(|offered| *offered == name) {
            Some(place) => taken_listeners.push(offered.swap_remove(place)),
            None => {
                let listener = bind_listener(&name)?;
                own_listeners.add_bound(name, listener);
            }
        }
    }
    Ok((taken_listeners, own_listeners))
}

/// The absolute path, for comparisons. The outer `None` is no path in the settings, the inner one a
/// path that cannot be made absolute.
fn absolute_path(path: &Option<PathBuf>) -> Option<Option<PathBuf>> {
    path.as_ref().map(|path| std::path::absolute(path).ok())
}
