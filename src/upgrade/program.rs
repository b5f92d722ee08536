//! [`Program`]: the program and the arguments by which this process was started. The next process is started by the same.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The flag of a process that takes over from a running one.
pub const SUCCESSOR_FLAG: &str = "--successor";

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// The program as this process was started. Another version may be under its name now.
    ///
    /// # Errors
    /// The system does not say which program runs.
    pub fn of_this_process() -> std::io::Result<Program> {
        let mut arguments = std::env::args_os();
        let called = arguments.next().map(PathBuf::from).unwrap_or_default();
        // As it was called, so that a link that leads to another version is followed.
        let path = match called.components().count() {
            0 => std::env::current_exe()?,
            1 => by_name(&called, &std::env::var_os("PATH").unwrap_or_default(), std::env::current_exe()?),
            _ => std::path::absolute(called)?,
        };
        let arguments = arguments.filter(|argument| argument != SUCCESSOR_FLAG).collect();
        Ok(Program { path, arguments })
    }

    #[cfg(test)]
    pub(super) fn script(text: &str) -> Program {
        Program { path: "/bin/sh".into(), arguments: ["-c", text].map(OsString::from).into() }
    }

    /// The program that is to take over. The variables that name this process are not for the next one.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(SUCCESSOR_FLAG);
        for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(variable);
        }
        command
    }
}

/// Where the shell found a program that runs: the first of these directories that leads to it.
fn by_name(name: &Path, directories: &OsStr, running: PathBuf) -> PathBuf {
    let leads_to_it = |program: &PathBuf| program.canonicalize().is_ok_and(|program| program == running);
    let mut named = std::env::split_paths(directories).map(|directory| directory.join(name));
    named.find(leads_to_it).and_then(|program| std::path::absolute(program).ok()).unwrap_or(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn link_in_the_search_path_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        let [first, versions, links] = ["first", "versions", "links"].map(|name| root.join(name));
        for directory in [&first, &versions, &links] {
            std::fs::create_dir(directory).expect("a directory");
        }
        let running = versions.join("crawlgate-1");
        for program in [&running, &first.join("crawlgate")] {
            std::fs::write(program, "").expect("a program");
        }
        symlink(&running, links.join("crawlgate")).expect("a link");
        let directories = std::env::join_paths([&first, &root.join("none"), &links]).expect("a search path");
        let name = Path::new("crawlgate");
        assert_eq!(by_name(name, &directories, running.clone()), links.join("crawlgate"));
        assert_eq!(by_name(name, OsStr::new(""), running.clone()), running);
    }
}
