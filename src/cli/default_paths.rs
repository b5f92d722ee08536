//! The default paths of the control socket and the state directory. The paths depend on environment
//! variables. A service and an administrator's shell have different environments, so a command
//! looks for the control socket at every default path.

use std::path::{Path, PathBuf};

/// The default state directory: systemd's `STATE_DIRECTORY`, `/var/lib/crawlgate` if it exists, or
/// the user's own. It need not exist. `None` if the environment names no home.
pub fn state_directory() -> Option<PathBuf> {
    let system = Path::new("/var/lib/crawlgate");
    directory_from_env("STATE_DIRECTORY")
        .or_else(|| system.is_dir().then(|| system.to_owned()))
        .or_else(|| Some(directory_from_env("XDG_STATE_HOME")?.join("crawlgate")))
        .or_else(|| Some(directory_from_env("HOME")?.join(".local/state/crawlgate")))
}

/// The default control socket of a crawlgate that starts.
pub fn control_socket_to_serve() -> Option<PathBuf> {
    control_socket_paths().into_iter().next()
}

/// The control socket of the running crawlgate: the first default path that exists, else the first.
pub fn control_socket_to_connect() -> Option<PathBuf> {
    let places = control_socket_paths();
    places
        .iter()
        .find(|place| place.exists())
        .or(places.first())
        .cloned()
}

/// All default paths of the control socket, in order of precedence.
fn control_socket_paths() -> Vec<PathBuf> {
    let system = Path::new("/run/crawlgate");
    let places = [
        directory_from_env("RUNTIME_DIRECTORY").map(|directory| directory.join("control.sock")),
        directory_from_env("XDG_RUNTIME_DIR")
            .filter(|directory| directory.is_dir())
            .map(|directory| directory.join("crawlgate.sock")),
        system.is_dir().then(|| system.join("control.sock")),
        state_directory().map(|state| state.join("control.sock")),
    ];
    places.into_iter().flatten().collect()
}

/// A directory from the environment. The XDG specification says to ignore relative ones.
fn directory_from_env(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
