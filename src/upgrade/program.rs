//! [`Program`]: how this process was started, for the next one. Must not know why there is a next one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The flag of a process that takes over from a running one.
pub const SUCCESSOR_FLAG: &str = "--successor";

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// As this process was started. Another file under the same name is another version.
    ///
    /// # Errors
    /// The system does not say which program runs.
    pub fn of_this_process() -> std::io::Result<Program> {
        let mut arguments = std::env::args_os();
        let called = arguments.next().map(PathBuf::from).filter(|called| called.components().count() > 1);
        let path = match called {
            // As it was called, so that a link that leads to another version is followed.
            Some(called) => std::path::absolute(called)?,
            None => std::env::current_exe()?,
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

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}
