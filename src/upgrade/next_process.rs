//! The running process's side of an upgrade, in which another crawlgate process replaces it.
//! [`NextProcess`] starts the next process and takes the steps of the upgrade with it.
//! [`OwnCommandLine`] is the program and the arguments by which this process was started; the next
//! process is started in the same way.

use super::channel::{ChannelError, MAX_DESCRIPTORS, ProcessChannel};
use super::messages::{HandedOverListener, PredecessorMessage, SuccessorMessage};
use crate::locks::lock;
use crate::printable::{OutputStyle, SanitizingWriter};
use crate::settings::ListenAddress;
use crate::threads::spawn;
use PredecessorMessage::*;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The flag of a process that takes over from a running one.
const SUCCESSOR_FLAG: &str = "--successor";
/// How long the next process may take for each step after it is ready.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long reading the last output of an ended process may take.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// The last bytes of its output that are kept.
const MAX_KEPT_OUTPUT: usize = 16 * 1024;

/// What the running process hands over beside its listeners.
pub struct HandedOverState {
    /// The lock of the state directory.
    pub state_lock: Option<OwnedFd>,
    /// The lock of the control socket.
    pub control_lock: Option<OwnedFd>,
}

/// Why the upgrade failed. This process goes on.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        source: io::Error,
    },
    /// The next process did not get ready.
    #[error("the new process is not ready to take over: {source}{output}")]
    NotReady {
        /// How it failed.
        source: ChannelError,
        /// What it wrote.
        output: ProcessOutput,
    },
    /// This process cannot close its state.
    #[error("cannot hand over: {0}")]
    State(io::Error),
    /// The next process did not open everything and serve.
    #[error("the new process did not take over: {source}{output}")]
    NotOpened {
        /// How it failed.
        source: ChannelError,
        /// What it wrote.
        output: ProcessOutput,
    },
}

/// The end of what a process wrote, for messages.
#[derive(Debug)]
pub struct ProcessOutput(String);

impl std::fmt::Display for ProcessOutput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.trim_end() {
            "" => out.write_str("\nit printed nothing"),
            text => write!(out, "\nits output:\n{text}"),
        }
    }
}

/// The next process. Dropping this kills it, unless it serves.
pub struct NextProcess {
    child: Child,
    pub channel: ProcessChannel,
    written: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnects when the output of the process ends.
    output_ended: Mutex<Receiver<()>>,
    takes: Vec<ListenAddress>,
    /// Whether it takes over the control socket.
    pub takes_control: bool,
    is_serving: bool,
}

impl NextProcess {
    /// Tells the next process that this one accepts no connections any more, and waits five seconds at
    /// most until it answers commands.
    ///
    /// # Errors
    /// It does not say so in time. It serves all the same.
    pub fn announce_leaving(&self, drain: Duration) -> Result<(), ChannelError> {
        let drain = Some(drain);
        self.channel.send(&Leaving { drain }, &[])?;
        self.expect_message(|message| matches!(message, SuccessorMessage::CommandsAnswered))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it takes over a listener.
    pub fn takes_over(&self, name: &ListenAddress) -> bool {
        self.takes.contains(name)
    }

    /// Starts the next process, with the channel as its standard input. A thread copies its output to
    /// standard error, and keeps the end of it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &OwnCommandLine) -> io::Result<NextProcess> {
        let (own, other) = ProcessChannel::pair()?;
        let (output, written) = io::pipe()?;
        let mut command = program.command();
        command
            .stdin(Stdio::from(other))
            .stdout(written.try_clone()?)
            .stderr(written);
        let child = command.spawn()?;
        // The command holds the other ends.
        drop(command);
        let (writes, output_ended) = channel::<()>();
        let next = NextProcess {
            child,
            channel: own,
            written: Arc::default(),
            output_ended: Mutex::new(output_ended),
            takes: Vec::new(),
            takes_control: false,
            is_serving: false,
        };
        let kept = next.written.clone();
        spawn("next-process", move || {
            relay_output(output, &kept, io::stderr());
            drop(writes);
        })?;
        Ok(next)
    }

    /// Step 1: sends `hello`, which says what can be taken over, and waits until the process is ready.
    ///
    /// # Errors
    /// It is not ready within `limit`, or sends an unexpected message.
    pub fn wait_until_ready(
        &mut self,
        hello: &PredecessorMessage,
        limit: Duration,
    ) -> Result<(), ChannelError> {
        self.channel.send(hello, &[])?;
        match self.channel.receive(Some(Instant::now() + limit))? {
            (
                SuccessorMessage::Ready {
                    takes,
                    takes_control,
                },
                _,
            ) => {
                self.takes = takes;
                self.takes_control = takes_control;
                Ok(())
            }
            (other, _) => Err(ChannelError::Unexpected(format!("{other:?}"))),
        }
    }

    /// Steps 2 and 3: passes everything, and waits until the process serves. Sets
    /// `has_started_serving` as soon as it may answer requests, so also if it fails after that.
    ///
    /// # Errors
    /// It does not serve in time.
    pub fn pass_everything(
        &mut self,
        passed: &[(HandedOverListener, OwnedFd)],
        handed: HandedOverState,
        has_started_serving: &mut bool,
    ) -> Result<(), ChannelError> {
        for some in passed.chunks(MAX_DESCRIPTORS) {
            let listeners = some.iter().map(|(passed, _)| passed.clone()).collect();
            let descriptors: Vec<BorrowedFd<'_>> = some
                .iter()
                .map(|(_, descriptor)| descriptor.as_fd())
                .collect();
            self.channel.send(&Listeners { listeners }, &descriptors)?;
        }
        let HandedOverState {
            state_lock,
            control_lock,
        } = handed;
        let control_lock = control_lock.as_ref().filter(|_| self.takes_control);
        let descriptors: Vec<BorrowedFd<'_>> = state_lock
            .iter()
            .chain(control_lock)
            .map(AsFd::as_fd)
            .collect();
        let passed = LocksPassed {
            state: state_lock.is_some(),
            control: control_lock.is_some(),
        };
        self.channel.send(&passed, &descriptors)?;
        self.expect_message(|message| matches!(message, SuccessorMessage::Opened))?;
        let output = io::stdout();
        let errors = io::stderr();
        *has_started_serving = true;
        self.channel
            .send(&StartServing, &[output.as_fd(), errors.as_fd()])?;
        self.expect_message(|message| matches!(message, SuccessorMessage::Serving))?;
        self.is_serving = true;
        Ok(())
    }

    /// Waits five seconds for this message. Any other one is an error.
    fn expect_message(
        &self,
        is_expected: impl FnOnce(&SuccessorMessage) -> bool,
    ) -> Result<(), ChannelError> {
        let (message, _) = self.channel.receive(Some(Instant::now() + STEP_TIMEOUT))?;
        if is_expected(&message) {
            Ok(())
        } else {
            Err(ChannelError::Unexpected(format!("{message:?}")))
        }
    }

    /// Kills it, and returns what it wrote.
    pub fn kill_and_quote(mut self) -> ProcessOutput {
        self.kill();
        // Reads the rest of the pipe. A child of the process may keep the other end open.
        let _ = self
            .output_ended
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(OUTPUT_TIMEOUT);
        let written: Vec<u8> = lock(&self.written).drain(..).collect();
        ProcessOutput(String::from_utf8_lossy(&written).into_owned())
    }

    fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for NextProcess {
    fn drop(&mut self) {
        if !self.is_serving {
            self.kill();
        }
    }
}

/// Copies the output of the next process to `errors`, and keeps the end of it.
fn relay_output(mut output: PipeReader, kept: &Mutex<VecDeque<u8>>, errors: impl Write) {
    let mut buffer = [0; 4096];
    let mut errors = SanitizingWriter::new(errors, OutputStyle::Text { colours: false });
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        let read = &buffer[..count];
        // Standard error may be closed.
        let _ = errors.write_all(read).and_then(|()| errors.flush());
        let mut kept = lock(kept);
        kept.extend(read);
        let surplus = kept.len().saturating_sub(MAX_KEPT_OUTPUT);
        kept.drain(..surplus);
    }
}

/// The path and arguments by which this process was started.
pub struct OwnCommandLine {
    /// The path of the program.
    pub path: PathBuf,
    arguments: Vec<OsString>,
}

impl OwnCommandLine {
    /// Without the flag `--successor`. Another version may be at the path now. A bare name is looked up
    /// in `PATH`.
    ///
    /// # Errors
    /// The system does not say which program runs.
    pub fn current() -> std::io::Result<OwnCommandLine> {
        let mut arguments = std::env::args_os();
        let called = arguments.next().map(PathBuf::from).unwrap_or_default();
        // As it was called, so that links to another version are followed.
        let path = match called.components().count() {
            0 | 1 => find_in_path(
                &called,
                &std::env::var_os("PATH").unwrap_or_default(),
                std::env::current_exe()?,
            ),
            _ => std::path::absolute(called)?,
        };
        let arguments = arguments
            .filter(|argument| argument != SUCCESSOR_FLAG)
            .collect();
        Ok(OwnCommandLine { path, arguments })
    }

    #[cfg(test)]
    fn shell_script(text: &str) -> OwnCommandLine {
        OwnCommandLine {
            path: "/bin/sh".into(),
            arguments: ["-c", text].map(OsString::from).into(),
        }
    }

    /// The command that starts the next process: with `--successor`, and without the environment
    /// variables of the service manager for this process.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(SUCCESSOR_FLAG);
        for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(variable);
        }
        command
    }
}

/// The first file of this name in `directories` (the value of `PATH`) that leads to `running`; else
/// `running` itself.
fn find_in_path(name: &Path, directories: &OsStr, running: PathBuf) -> PathBuf {
    std::env::split_paths(directories)
        .filter_map(|directory| std::path::absolute(directory.join(name)).ok())
        .find(|program| program.canonicalize().is_ok_and(|found| found == running))
        .unwrap_or(running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn hanging_process_is_killed_and_quoted() {
        let mut next = NextProcess::start(&OwnCommandLine::shell_script(
            "echo waiting; exec sleep 600",
        ))
        .expect("started");
        while next.written.lock().expect("unpoisoned").is_empty() {
            std::thread::yield_now();
        }
        let hello = Hello {
            listeners: Vec::new(),
            state: None,
            control: None,
        };
        let ready = next.wait_until_ready(&hello, Duration::from_millis(20));
        assert!(matches!(ready, Err(ChannelError::TimedOut)), "{ready:?}");
        let process = format!("/proc/{}", next.pid());
        assert!(Path::new(&process).exists());
        assert!(next.kill_and_quote().to_string().contains("waiting"));
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn output_of_the_next_process_is_made_printable() {
        let (output, mut next) = io::pipe().expect("a pipe");
        next.write_all("\x1b]0;title\x07 \u{9b}2J\n::stop-commands::t\n".as_bytes())
            .expect("written");
        drop(next);
        let mut errors = Vec::new();
        relay_output(output, &Mutex::default(), &mut errors);
        let text = String::from_utf8(errors).expect("text");
        assert!(
            !text.contains(['\x1b', '\x07', '\u{9b}']) && !text.contains("\n::"),
            "{text:?}"
        );
    }

    #[test]
    fn message_of_another_version_is_ignored() {
        // An earlier version sends the second one.
        for message in [
            r#"{"message":"weather","sun":true}"#,
            r#"{"message":"memory","memory":{"lived":7,"behaviours":null,"servers":[]}}"#,
        ] {
            let message = serde_json::from_str::<PredecessorMessage>(message);
            assert!(matches!(message, Ok(Unknown)), "{message:?}");
        }
    }

    #[test]
    fn link_in_path_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("a path");
        let other = root.join("other");
        let links = root.join("links");
        let running = root.join("crawlgate-1");
        for directory in [&other, &links] {
            std::fs::create_dir(directory).expect("a directory");
        }
        for program in [&running, &other.join("crawlgate")] {
            std::fs::write(program, "").expect("a program");
        }
        symlink(&running, links.join("crawlgate")).expect("a link");
        let directories =
            std::env::join_paths([&other, &root.join("none"), &links]).expect("a search path");
        let name = Path::new("crawlgate");
        assert_eq!(
            find_in_path(name, &directories, running.clone()),
            links.join("crawlgate")
        );
        let current = std::env::current_dir().expect("a directory");
        let mut relative: PathBuf = current.components().skip(1).map(|_| "..").collect();
        relative.push(links.strip_prefix("/").expect("an absolute path"));
        let found = find_in_path(name, relative.as_os_str(), running.clone());
        assert!(found.is_absolute() && found != running, "{found:?}");
        assert_eq!(find_in_path(name, OsStr::new(""), running.clone()), running);
    }
}
