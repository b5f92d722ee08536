//! The default paths of the control socket and the state directory. A service and an administrator
//! have different environments, so a command looks for the socket of the running crawlgate at every
//! default path.

use super::{Failure, Result};
use std::path::{Path, PathBuf};

/// The default state directory, the first of: systemd's `STATE_DIRECTORY`, `/var/lib/crawlgate` if
/// it exists, the user's own. `None` if the environment names no home. It may not exist.
pub fn state() -> Option<PathBuf> {
    let system = Path::new("/var/lib/crawlgate");
    variable("STATE_DIRECTORY")
        .or_else(|| system.is_dir().then(|| system.to_owned()))
        .or_else(|| Some(variable("XDG_STATE_HOME")?.join("crawlgate")))
        .or_else(|| Some(variable("HOME")?.join(".local/state/crawlgate")))
}

/// The state directory that a command reads.
#[derive(clap::Args)]
pub struct StateDirectory {
    /// The state directory
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl StateDirectory {
    /// The one that was given.
    pub fn given(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// The one that was given, else the default one.
    pub fn path(&self) -> Result<PathBuf> {
        self.state.clone().map_or_else(state_or_failure, Ok)
    }
}

/// The default state directory, where there is one.
pub fn state_or_failure() -> Result<PathBuf> {
    state().ok_or_else(|| {
        Failure::Usage(
            "the default state directory is not known here; name one with --state DIR".into(),
        )
    })
}

/// The control socket of a crawlgate that is about to run: the first place that can hold one.
pub fn control_to_serve() -> Option<PathBuf> {
    controls().into_iter().next()
}

/// The control socket of a crawlgate that is running: the first that is there, else where one would
/// be.
pub fn control_to_ask() -> Option<PathBuf> {
    let places = controls();
    places
        .iter()
        .find(|place| place.exists())
        .or(places.first())
        .cloned()
}

/// Every place where a socket may be, nearest first. A service and its administrator have different
/// environments, so the commands look in all of them.
fn controls() -> Vec<PathBuf> {
    let system = Path::new("/run/crawlgate");
    let places = [
        variable("RUNTIME_DIRECTORY").map(|directory| directory.join("control.sock")),
        variable("XDG_RUNTIME_DIR")
            .filter(|directory| directory.is_dir())
            .map(|directory| directory.join("crawlgate.sock")),
        system.is_dir().then(|| system.join("control.sock")),
        state().map(|state| state.join("control.sock")),
    ];
    places.into_iter().flatten().collect()
}

/// A directory from the environment; the XDG specification says to pass over relative ones.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
