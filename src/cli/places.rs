//! The default places of the control socket and the state directory. `run` and the commands that talk to it look in
//! the same places.

use super::Failure;
use std::env;
use std::path::{Path, PathBuf};

/// The state directory: systemd's `STATE_DIRECTORY`, `/var/lib/crawlgate` where it was made, the user's own.
pub fn state() -> Option<PathBuf> {
    if let Some(directory) = variable("STATE_DIRECTORY") {
        return Some(directory);
    }
    let system = Path::new("/var/lib/crawlgate");
    if system.is_dir() {
        return Some(system.to_owned());
    }
    variable("XDG_STATE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/state")))
        .map(|home| home.join("crawlgate"))
}

/// The state directory that a command was given, else the default one.
pub fn state_or_default(given: Option<&Path>) -> Result<PathBuf, Failure> {
    given.map(Path::to_owned).or_else(state).ok_or_else(|| {
        Failure::Usage("the default state directory is not known here; name one with --state DIR".into())
    })
}

/// The control socket of a crawlgate that is about to run: the first place that can hold one.
pub fn control_to_serve() -> Option<PathBuf> {
    controls().into_iter().next()
}

/// The control socket of a crawlgate that is running: the first that is there, else where one would be.
pub fn control_to_ask() -> Option<PathBuf> {
    let places = controls();
    places.iter().find(|place| place.exists()).or(places.first()).cloned()
}

/// Every place where a socket may be, nearest first. A service and its administrator have different
/// environments, so the claimants look in all of them.
fn controls() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(directory) = variable("RUNTIME_DIRECTORY") {
        places.push(directory.join("control.sock"));
    }
    if let Some(directory) = variable("XDG_RUNTIME_DIR").filter(|directory| directory.is_dir()) {
        places.push(directory.join("crawlgate.sock"));
    }
    let system = Path::new("/run/crawlgate");
    if system.is_dir() {
        places.push(system.join("control.sock"));
    }
    places.extend(state().map(|state| state.join("control.sock")));
    places
}

/// A directory from the environment; the XDG specification says to pass over relative ones.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
