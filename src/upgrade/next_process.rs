//! [`NextProcess`] starts the next process and takes the steps of an upgrade, on the side of the
//! running process. [`Program`]: the program and the arguments by which this process was started.
//! The next process is started by the same.

use super::channel::{Channel, ChannelError, MOST_DESCRIPTORS};
use super::messages::{FromPredecessor, FromSuccessor, Memory, PassedListener};
use crate::locks::lock;
use crate::printable::{Printer, Style};
use crate::settings::ListenAddress;
use crate::threads::spawn;
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
/// How long the next process may take to open everything, and then to accept connections.
const OPENING: Duration = Duration::from_secs(5);
/// How long its last words may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many octets of its output are kept, from its end.
const OUTPUT: usize = 16 * 1024;

/// What the running server hands over beside its listeners.
#[derive(Debug)]
pub struct Handed {
    /// The lock of the state directory.
    pub state: Option<OwnedFd>,
    /// The lock of the control socket.
    pub control: Option<OwnedFd>,
    /// Facts that are in no table of the state directory.
    pub memory: Memory,
}

/// Why there was no upgrade. This process goes on.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The next process did not get ready.
    #[error("the next process is not ready to take over: {source}{output}")]
    NotReady {
        /// How it failed.
        source: ChannelError,
        /// What it wrote.
        output: Output,
    },
    /// This process cannot close what it has open.
    #[error("cannot hand over: {0}")]
    State(io::Error),
    /// The next process could not open what it needs.
    #[error("the next process did not take over: {source}{output}")]
    NotOpened {
        /// How it failed.
        source: ChannelError,
        /// What it wrote.
        output: Output,
    },
}

/// What a process wrote, for a person.
#[derive(Debug)]
pub struct Output(String);

impl std::fmt::Display for Output {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.trim_end() {
            "" => out.write_str("\nit wrote nothing"),
            text => write!(out, "\nit wrote:\n{text}"),
        }
    }
}

/// The next process. It is ended when this is dropped, unless it serves.
#[derive(Debug)]
pub struct NextProcess {
    child: Child,
    /// The channel to it.
    pub channel: Channel,
    written: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnected when the output of the process ends.
    written_whole: Mutex<Receiver<()>>,
    takes: Vec<ListenAddress>,
    /// Whether it takes over the control socket.
    pub takes_control: bool,
    serves: bool,
}

impl NextProcess {
    /// Tells the next process that this one accepts no connection any more, and waits, for five
    /// seconds at most, until it answers commands.
    ///
    /// # Errors
    /// It does not say so in time. It serves all the same.
    pub fn leave_to_it(&self) -> Result<(), ChannelError> {
        self.channel.send(&FromPredecessor::Leaving, &[])?;
        self.expect(|message| matches!(message, FromSuccessor::Settled))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it takes over a listener.
    pub fn took(&self, name: &ListenAddress) -> bool {
        self.takes.contains(name)
    }

    /// Starts the next process, with the channel as its standard input. A thread copies what it
    /// writes to standard error, and keeps the end of it for messages.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Program) -> io::Result<NextProcess> {
        let (own, other) = Channel::pair()?;
        let (output, written) = io::pipe()?;
        let mut command = program.command();
        command
            .stdin(Stdio::from(other))
            .stdout(written.try_clone()?)
            .stderr(written);
        let child = command.spawn()?;
        // The command has the other ends as long as it is there.
        drop(command);
        let (writes, written_whole) = channel::<()>();
        let next = NextProcess {
            child,
            channel: own,
            written: Arc::default(),
            written_whole: Mutex::new(written_whole),
            takes: Vec::new(),
            takes_control: false,
            serves: false,
        };
        let kept = next.written.clone();
        spawn("next-process", move || {
            copy(output, &kept, io::stderr());
            drop(writes);
        })?;
        Ok(next)
    }

    /// Step 1: sends `hello`, which says what there is to take over, and waits until the process is
    /// ready. Keeps what it takes over.
    ///
    /// # Errors
    /// It is not ready within `limit`, or sends something else.
    pub fn get_ready(
        &mut self,
        hello: &FromPredecessor,
        limit: Duration,
    ) -> Result<(), ChannelError> {
        self.channel.send(hello, &[])?;
        match self.channel.receive(Some(Instant::now() + limit))? {
            (
                FromSuccessor::Ready {
                    takes,
                    takes_control,
                },
                _,
            ) => {
                self.takes = takes;
                self.takes_control = takes_control;
                Ok(())
            }
            (other, _) => Err(ChannelError::Strange(format!("{other:?}"))),
        }
    }

    /// Steps 2 and 3: passes everything on, and waits until the process serves. Sets `has_gone`
    /// when it may begin to answer requests, so also if it fails after that.
    ///
    /// # Errors
    /// It does not serve in time.
    pub fn open(
        &mut self,
        passed: &[(PassedListener, OwnedFd)],
        handed: Handed,
        has_gone: &mut bool,
    ) -> Result<(), ChannelError> {
        for some in passed.chunks(MOST_DESCRIPTORS) {
            let listeners = some.iter().map(|(passed, _)| passed.clone()).collect();
            let descriptors: Vec<BorrowedFd<'_>> = some
                .iter()
                .map(|(_, descriptor)| descriptor.as_fd())
                .collect();
            self.channel
                .send(&FromPredecessor::Listeners { listeners }, &descriptors)?;
        }
        let Handed {
            state,
            control,
            memory,
        } = handed;
        let memory = Box::new(memory);
        self.channel
            .send(&FromPredecessor::Memory { memory }, &[])?;
        let control = control.as_ref().filter(|_| self.takes_control);
        let descriptors: Vec<BorrowedFd<'_>> =
            state.iter().chain(control).map(AsFd::as_fd).collect();
        let yours = FromPredecessor::Yours {
            state: state.is_some(),
            control: control.is_some(),
        };
        self.channel.send(&yours, &descriptors)?;
        self.expect(|message| matches!(message, FromSuccessor::Opened))?;
        let output = io::stdout();
        let errors = io::stderr();
        *has_gone = true;
        self.channel
            .send(&FromPredecessor::Go, &[output.as_fd(), errors.as_fd()])?;
        self.expect(|message| matches!(message, FromSuccessor::Serving))?;
        self.serves = true;
        Ok(())
    }

    /// Waits five seconds for a message for which `is_it` is true. Any other message is an error.
    fn expect(&self, is_it: impl FnOnce(&FromSuccessor) -> bool) -> Result<(), ChannelError> {
        let (message, _) = self.channel.receive(Some(Instant::now() + OPENING))?;
        if is_it(&message) {
            Ok(())
        } else {
            Err(ChannelError::Strange(format!("{message:?}")))
        }
    }

    /// Ends it, and returns what it wrote.
    pub fn end(mut self) -> Output {
        self.kill();
        // Its last words are in the pipe. A process that it has started may still have the other
        // end open.
        let _ = self
            .written_whole
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(LAST_WORDS);
        let written: Vec<u8> = lock(&self.written).drain(..).collect();
        Output(String::from_utf8_lossy(&written).into_owned())
    }

    fn kill(&mut self) {
        // It may have ended by itself: then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for NextProcess {
    fn drop(&mut self) {
        if !self.serves {
            self.kill();
        }
    }
}

/// Writes what the next process writes to `errors`, so that it is in the log, and keeps the end of
/// it.
fn copy(mut output: PipeReader, kept: &Mutex<VecDeque<u8>>, errors: impl Write) {
    let mut buffer = [0; 4096];
    let mut errors = Printer::new(errors, Style::Text { colours: false });
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        let read = &buffer[..count];
        // A closed standard error is no reason to stop.
        let _ = errors.write_all(read).and_then(|()| errors.flush());
        let mut kept = lock(kept);
        kept.extend(read);
        let surplus = kept.len().saturating_sub(OUTPUT);
        kept.drain(..surplus);
    }
}

/// A program and its arguments.
#[derive(Debug)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// The path and arguments by which this process was started, without `--successor`. Another
    /// version may be at that path now. A bare name is looked up in `PATH`.
    ///
    /// # Errors
    /// The system does not say which program runs.
    pub fn of_this_process() -> std::io::Result<Program> {
        let mut arguments = std::env::args_os();
        let called = arguments.next().map(PathBuf::from).unwrap_or_default();
        // As it was called, so that a link that leads to another version is followed.
        let path = match called.components().count() {
            0 => std::env::current_exe()?,
            1 => by_name(
                &called,
                &std::env::var_os("PATH").unwrap_or_default(),
                std::env::current_exe()?,
            ),
            _ => std::path::absolute(called)?,
        };
        let arguments = arguments
            .filter(|argument| argument != SUCCESSOR_FLAG)
            .collect();
        Ok(Program { path, arguments })
    }

    #[cfg(test)]
    fn script(text: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            arguments: ["-c", text].map(OsString::from).into(),
        }
    }

    /// The command that starts the next process: this program with `--successor`, without the
    /// environment variables that the service manager meant for this process.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(SUCCESSOR_FLAG);
        for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            command.env_remove(variable);
        }
        command
    }
}

/// Where the shell found the running program under this name: in the first of `directories` (the
/// value of `PATH`) whose file of the name leads to `running`; without one, `running` itself.
fn by_name(name: &Path, directories: &OsStr, running: PathBuf) -> PathBuf {
    for directory in std::env::split_paths(directories) {
        let program = directory.join(name);
        if program.canonicalize().is_ok_and(|found| found == running)
            && let Ok(program) = std::path::absolute(program)
        {
            return program;
        }
    }
    running
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The time is another one than that of an upgrade, which is a minute.
    #[test]
    fn process_that_hangs_at_its_start_is_ended_and_quoted() {
        let mut next =
            NextProcess::start(&Program::script("echo waiting; exec sleep 600")).expect("started");
        while next.written.lock().expect("unpoisoned").is_empty() {
            std::thread::yield_now();
        }
        let hello = FromPredecessor::Hello {
            listeners: Vec::new(),
            state: None,
            control: None,
        };
        let ready = next.get_ready(&hello, Duration::from_millis(20));
        assert!(matches!(ready, Err(ChannelError::Late)), "{ready:?}");
        let process = format!("/proc/{}", next.pid());
        assert!(Path::new(&process).exists());
        assert!(next.end().to_string().contains("waiting"));
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn what_the_next_process_writes_reaches_no_terminal() {
        let (output, mut next) = io::pipe().expect("a pipe");
        next.write_all("\x1b]0;title\x07 \u{9b}2J\n::stop-commands::t\n".as_bytes())
            .expect("written");
        drop(next);
        let mut errors = Vec::new();
        copy(output, &Mutex::default(), &mut errors);
        let text = String::from_utf8(errors).expect("text");
        assert!(
            !text.contains(['\x1b', '\x07', '\u{9b}']) && !text.contains("\n::"),
            "{text:?}"
        );
    }

    #[test]
    fn message_of_a_later_version_is_ignored() {
        let message =
            serde_json::from_str::<FromPredecessor>(r#"{"message":"weather","sun":true}"#);
        assert!(
            matches!(message, Ok(FromPredecessor::Unknown)),
            "{message:?}"
        );
        let memory = serde_json::from_str::<Memory>(r#"{"lived":7,"weather":[]}"#)
            .expect("what is known of it");
        assert_eq!(
            memory,
            Memory {
                lived: 7,
                ..Memory::default()
            }
        );
    }

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
        let directories =
            std::env::join_paths([&first, &root.join("none"), &links]).expect("a search path");
        let name = Path::new("crawlgate");
        assert_eq!(
            by_name(name, &directories, running.clone()),
            links.join("crawlgate")
        );
        assert_eq!(by_name(name, OsStr::new(""), running.clone()), running);
    }
}
