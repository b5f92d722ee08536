//! The control socket, by which commands such as `pause`, `reload` and `status` reach the running
//! crawlgate. It is a Unix socket that only its owner can open. [`ControlSocket`] is the server,
//! and [`call`] is the client. A [`Request`] is one line of JSON, and so is its [`Response`].

use super::dashboard::live_report;
use super::{
    InstanceStatus, LiveAnswer, LiveQuestion, Operations, StoreStatus, UpgradeReport,
    UpgradeRequest,
};
use crate::facts::Mark;
use crate::files::directory_of;
use crate::finding::Finding;
use crate::identity::refresh::ListUpdate;
use crate::locks::lock;
use crate::peers::ForgetError;
use crate::report::{Period, Report};
use crate::sites::{PauseError, PauseRequest, ReloadReport, RemoveError};
use crate::state::history::HistoryError;
use crate::state::{Locking, ProcessLock};
use crate::threads::spawn;
use crate::time::Timestamp;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A request is short; an answer holds the findings of all sites.
const MAX_REQUEST: usize = 64 * 1024;
const MAX_ANSWER: u64 = 64 * 1024 * 1024;
/// Clients at a time. More wait until one has its answer, or said nothing for too long.
const MAX_CLIENTS: usize = 128;
/// How long a client may take to send its line, or to take the answer.
const CLIENT_TIME: Duration = Duration::from_secs(5);
/// How long the server may take to write its last answers when it ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How long the server may take to answer: a reload of thousands of sites takes seconds.
const SERVER_TIME: Duration = Duration::from_secs(120);

/// A request of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Request {
    Status,
    Reload {
        /// Sites whose files are gone, and whose policies are to end.
        #[serde(default)]
        remove: Vec<String>,
    },
    Pause(PauseRequest),
    Resume {
        site: Option<String>,
    },
    Traps,
    Release {
        address: IpAddr,
        prefix_length: u8,
    },
    Explain(LiveQuestion),
    Report {
        /// How far back, in seconds; without it about as far as there is something.
        since: Option<u64>,
        /// A site; empty for all.
        site: String,
    },
    UpdateLists,
    Instances,
    Forget {
        instance: String,
    },
    Upgrade(UpgradeRequest),
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Response {
    Status(Box<InstanceStatus>),
    Reloaded(ReloadReport),
    Paused {
        until: Timestamp,
        /// Why the pause is not fully in force, or may be lost at a restart.
        #[serde(default)]
        warnings: Vec<Finding>,
    },
    Resumed {
        sites: Vec<String>,
        /// Why the end of the pause is not fully in force, or may be lost at a restart.
        #[serde(default)]
        warnings: Vec<Finding>,
    },
    Marks {
        marks: Vec<Mark>,
    },
    Released {
        marks: Vec<Mark>,
    },
    Explained(LiveAnswer),
    Report(Box<Report>),
    /// The update of each published list.
    ListsUpdated {
        lists: Vec<ListUpdate>,
    },
    /// The state of the store and its instances.
    Instances(Box<StoreStatus>),
    /// The next process serves.
    Upgraded(UpgradeReport),
    /// The request cannot be granted: no such site, too long a pause.
    Refused(Finding),
}

/// Why the running crawlgate does not do what an operator asks.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the request is longer than {MAX_REQUEST} bytes")]
    TooLong,
    #[error("invalid request: {0}")]
    Invalid(#[from] serde_json::Error),
    #[error(transparent)]
    Network(#[from] ipnet::PrefixLenError),
    #[error(transparent)]
    Pause(#[from] PauseError),
    #[error(transparent)]
    Remove(#[from] RemoveError),
    #[error(transparent)]
    Forget(#[from] ForgetError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    #[error(
        "the running crawlgate did not update lists: its settings have no `identity.outgoing: yes` and no \
         directory in `identity.lists`, or the servers took too long"
    )]
    NoUpdate,
    #[error("there is no site {0}, and the history has none in this period")]
    NoSite(String),
    #[error("the running crawlgate knows no other instance: its settings have no `store`")]
    NoStore,
    #[error("this crawlgate cannot be upgraded: it is a demo. Stop it and start it again")]
    NoUpgrade,
}

impl Refusal {
    fn id(&self) -> &'static str {
        match self {
            Refusal::TooLong => "too-long",
            Refusal::Invalid(_) => "invalid-request",
            Refusal::Network(_) => "invalid-network",
            Refusal::History(_) => "history",
            Refusal::Pause(error) => error.id(),
            Refusal::Remove(error) => error.id(),
            Refusal::Forget(ForgetError::UnknownInstance(_)) => "unknown-instance",
            Refusal::Forget(ForgetError::Busy) => "store-busy",
            Refusal::Upgrade(_) => "no-upgrade",
            Refusal::NoUpdate => "no-update",
            Refusal::NoSite(_) => "unknown-site",
            Refusal::NoStore => "no-store",
            Refusal::NoUpgrade => "demo",
        }
    }
}

/// Why a client cannot ask, or the server cannot open the socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process listens.
    #[error(
        "no crawlgate answers at {path}: {error}\nstart one with `crawlgate run`, or name its socket with --control"
    )]
    NotRunning {
        /// The socket.
        path: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// Another process serves the socket already.
    #[error(
        "another crawlgate serves the control socket {path}{}; this one does not start. Stop the other one, or name \
         another socket with --control",
        .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    AlreadyRunning {
        /// The socket.
        path: String,
        /// Its process id, where it is known.
        pid: Option<u32>,
    },
    /// The socket cannot be made or used.
    #[error("the control socket {path}: {error}")]
    Io {
        /// The socket.
        path: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

impl ControlError {
    fn io(path: &Path, error: io::Error) -> ControlError {
        ControlError::Io {
            path: path.display().to_string(),
            error,
        }
    }
}

/// Hands over to the next process, or says why the running process goes on.
pub type Upgrade = Box<dyn Fn(UpgradeRequest) -> Result<UpgradeReport, UpgradeError> + Send + Sync>;

/// Why the running process goes on.
pub type UpgradeError = Box<dyn Error + Send + Sync>;

/// What performs the requests of clients.
pub struct Commands {
    /// All but upgrades.
    pub operations: Arc<Operations>,
    /// Upgrades, where they are possible.
    pub upgrade: Option<Upgrade>,
}

/// The suffix of the file beside a socket that its owner locks.
const LOCK_SUFFIX: &str = ".lock";

/// A listening socket, removed when dropped. A file beside it is locked as long as the process
/// runs: by the lock two crawlgates notice each other even if both start at once or the socket was
/// removed.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Absent on a file system without locks.
    lock: Mutex<Option<ProcessLock>>,
    /// The device and the inode of the socket: another process may have taken the name since.
    identity: Option<(u64, u64)>,
    connected: Clients,
    /// Those whose request was read and whose answer is not written yet.
    unanswered: Clients,
}

/// How many clients there are in one state.
#[derive(Default)]
struct Clients {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Clients {
    /// Counts one more client, until the returned guard is dropped.
    fn add(&self) -> Client<'_> {
        *lock(&self.count) += 1;
        Client(self)
    }

    /// Blocks until there are fewer than `most` clients in this state.
    fn wait_for_fewer_than(&self, most: usize) {
        drop(
            self.changed
                .wait_while(lock(&self.count), |count| *count >= most),
        );
    }
}

/// One of these clients.
struct Client<'c>(&'c Clients);

impl Drop for Client<'_> {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.changed.notify_all();
    }
}

impl ControlSocket {
    /// Opens the socket with mode 0600. A socket that a dead process left behind is replaced.
    ///
    /// # Errors
    /// Another process listens there, something else than a socket is there, or the place cannot be
    /// written.
    pub fn bind(path: &Path) -> Result<ControlSocket, ControlError> {
        // A name that was mistyped: a policy is not to be replaced by a socket.
        if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket()) {
            let error = io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file that is not a socket has this name",
            );
            return Err(ControlError::io(path, error));
        }
        fs::create_dir_all(directory_of(path)).map_err(|error| ControlError::io(path, error))?;
        let lock = own(path)?;
        if UnixStream::connect(path).is_ok() {
            return Err(ControlError::AlreadyRunning {
                path: path.display().to_string(),
                pid: None,
            });
        }
        ControlSocket::place(path, lock).map_err(|error| ControlError::io(path, error))
    }

    /// Puts a socket in the place of that of the process before. `lock` is the descriptor of the
    /// locked file that this process got from it; `None` on a file system without locks.
    ///
    /// # Errors
    /// The place cannot be written.
    pub fn take_over(path: &Path, lock: Option<OwnedFd>) -> Result<ControlSocket, ControlError> {
        lock.map(ProcessLock::passed)
            .transpose()
            .and_then(|lock| ControlSocket::place(path, lock))
            .map_err(|error| ControlError::io(path, error))
    }

    /// Opens a socket of mode 0600 and gives it the name `path` in one step, in place of a socket
    /// that has the name. So clients always find a socket there, and no other user can connect
    /// before the mode is set. `lock` is only kept in the result, as long as the socket is used.
    fn place(path: &Path, lock: Option<ProcessLock>) -> io::Result<ControlSocket> {
        let directory = directory_of(path);
        // Between bind and chmod every user could connect. So the socket is bound in a directory
        // that only the owner can enter, and moved to its place afterwards.
        let private = tempfile::Builder::new()
            .prefix(".crawlgate")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(directory)?;
        let hidden = private.path().join("s");
        let listener = UnixListener::bind(&hidden)?;
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        let identity = identity(&hidden);
        fs::rename(&hidden, path)?;
        Ok(ControlSocket {
            listener,
            path: path.to_owned(),
            lock: Mutex::new(lock),
            identity,
            connected: Clients::default(),
            unanswered: Clients::default(),
        })
    }

    /// Starts the thread that accepts clients until the process ends, and returns at once. Each
    /// client is answered in a thread of its own: neither a silent client nor a reload makes
    /// another request wait. At most `MAX_CLIENTS` at a time; more wait to be accepted.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(self: Arc<ControlSocket>, commands: Commands) -> io::Result<()> {
        let commands = Arc::new(commands);
        spawn("control", move || {
            loop {
                let accepted = self
                    .listener
                    .accept()
                    .and_then(|(stream, _)| self.attend(stream, &commands));
                // Out of descriptors, say. Trying again at once would only take processor time.
                if let Err(error) = accepted {
                    tracing::warn!(%error, "the control socket cannot accept a connection; retrying in a second");
                    thread::park_timeout(Duration::from_secs(1));
                }
                self.connected.wait_for_fewer_than(MAX_CLIENTS);
            }
        })
        .map(drop)
    }

    /// Starts a thread that answers one client, and counts the client as connected meanwhile.
    fn attend(
        self: &Arc<ControlSocket>,
        stream: UnixStream,
        commands: &Arc<Commands>,
    ) -> io::Result<()> {
        let socket = self.clone();
        let commands = commands.clone();
        spawn("control-client", move || {
            let _connected = socket.connected.add();
            if let Err(error) = answer(&stream, &commands, &socket.unanswered) {
                tracing::debug!(%error, "a client of the control socket disconnected");
            }
        })
        .map(drop)
    }

    /// A descriptor of the lock for another process, where there is one.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn share_lock(&self) -> io::Result<Option<OwnedFd>> {
        lock(&self.lock)
            .as_ref()
            .map(ProcessLock::share)
            .transpose()
    }

    /// Records that the process which got the lock serves the socket's name from now on: this
    /// process does not release the lock when it ends.
    pub fn pass_on(&self) {
        lock(&self.lock).iter_mut().for_each(ProcessLock::pass_on);
    }

    /// Waits up to 2 seconds for answers that are being written, and then removes the socket's
    /// name, so that no client finds it any more. A socket of another process under this name
    /// stays. Releases the lock, unless it was passed on; its file stays.
    pub fn remove(&self) {
        // An upgrade ends this process, and its client is still to be told.
        let count = lock(&self.unanswered.count);
        drop(
            self.unanswered
                .changed
                .wait_timeout_while(count, LAST_ANSWERS, |count| *count > 0),
        );
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
        // The file stays: if it were removed, two processes could lock two files of its name.
        let _ = lock(&self.lock).as_ref().map(ProcessLock::release);
    }
}

/// Locks the file beside a socket. `None` on a file system without locks.
///
/// # Errors
/// Another process has the lock, or a file that crawlgate did not write has the name.
fn own(path: &Path) -> Result<Option<ProcessLock>, ControlError> {
    let mut file = path.as_os_str().to_owned();
    file.push(LOCK_SUFFIX);
    match ProcessLock::acquire(Path::new(&file)) {
        Ok(Locking::Owned { lock, .. }) => Ok(Some(lock)),
        Ok(Locking::Held { pid }) => Err(ControlError::AlreadyRunning {
            path: path.display().to_string(),
            pid,
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ControlError::io(path, error))
        }
        Err(error) => {
            tracing::debug!(%error, "cannot lock the control socket; another crawlgate is noticed only if it answers");
            Ok(None)
        }
    }
}

/// The device and the inode of what has this name now (of a link itself); `None` if nothing has.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads one request, performs it and writes the response: `Refused` if the request is too long,
/// cannot be read or cannot be granted. From the request to the end of the answer the client counts
/// as unanswered.
fn answer(mut stream: &UnixStream, commands: &Commands, unanswered: &Clients) -> io::Result<()> {
    let line = read_line(stream)?;
    let _answering = unanswered.add();
    let response = line
        .ok_or(Refusal::TooLong)
        .and_then(|line| perform(&line, commands))
        .unwrap_or_else(|error| Response::Refused(Finding::new(error.id(), error.to_string())));
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    stream.set_write_timeout(Some(CLIENT_TIME))?;
    stream.write_all(&bytes)
}

/// Reads a request up to the end of its line or of the stream, without the line end. `None` if it
/// is longer than `MAX_REQUEST`. The whole line has one deadline (`CLIENT_TIME`): a timeout of each
/// read would let a client go on for ever.
fn read_line(mut stream: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + CLIENT_TIME;
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let read = &buffer[..count];
        let newline = read.iter().position(|byte| *byte == b'\n');
        // The rest is read and dropped: closing on unread bytes would take the answer away from the
        // client.
        line.extend_from_slice(&read[..newline.unwrap_or(count).min(MAX_REQUEST + 1 - line.len())]);
        if newline.is_some() || count == 0 {
            return Ok((line.len() <= MAX_REQUEST).then_some(line));
        }
    }
}

/// Performs the request of this line of JSON. The warnings in the responses to pauses say why they
/// are not fully in force or may be lost at a restart.
///
/// # Errors
/// The line is no request, or this crawlgate cannot do what it asks: the text for the client.
fn perform(line: &[u8], commands: &Commands) -> Result<Response, Refusal> {
    let operations = &commands.operations;
    let sites = &operations.instance.sites;
    let store = operations
        .sources
        .instances
        .as_ref()
        .ok_or(Refusal::NoStore);
    Ok(match serde_json::from_slice(line)? {
        Request::Status => Response::Status(Box::new(operations.status())),
        Request::Reload { remove } if remove.is_empty() => Response::Reloaded(operations.reload()),
        Request::Reload { remove } => Response::Reloaded(operations.remove(&remove)?),
        Request::Pause(request) => Response::Paused {
            until: operations.pause(&request)?,
            warnings: sites.storing_problems(),
        },
        Request::Resume { site } => Response::Resumed {
            sites: operations.resume(site.as_deref())?,
            warnings: sites.storing_problems(),
        },
        Request::Traps => Response::Marks {
            marks: operations.marks(),
        },
        Request::Release {
            address,
            prefix_length,
        } => Response::Released {
            marks: operations.release(IpNet::new(address, prefix_length)?),
        },
        Request::Explain(question) => Response::Explained(operations.explain(&question)),
        Request::Report { since, site } => {
            let period = since
                .map(|since| Period::since(Duration::from_secs(since), operations.moment().now));
            let report = live_report(operations, period, &site)?;
            let is_known = site.is_empty() || sites.snapshot().entry_named(&site).is_some();
            if !is_known && report.crawlers.is_empty() {
                return Err(Refusal::NoSite(site));
            }
            Response::Report(Box::new(report))
        }
        Request::Instances => Response::Instances(Box::new(store?.status())),
        Request::Forget { instance } => {
            let store = store?;
            store.peers.forget(&instance)?;
            Response::Instances(Box::new(store.status()))
        }
        Request::Upgrade(request) => {
            let upgrade = commands.upgrade.as_ref().ok_or(Refusal::NoUpgrade)?;
            Response::Upgraded(upgrade(request)?)
        }
        Request::UpdateLists => Response::ListsUpdated {
            lists: operations.update_lists().ok_or(Refusal::NoUpdate)?,
        },
    })
}

/// Asks a running crawlgate.
///
/// # Errors
/// No process listens, or the answer cannot be read.
pub fn call(path: &Path, request: &Request) -> Result<Response, ControlError> {
    let stream = UnixStream::connect(path).map_err(|error| ControlError::NotRunning {
        path: path.display().to_string(),
        error,
    })?;
    exchange(&stream, request).map_err(|error| ControlError::io(path, error))
}

/// Sends a request and reads the response. Fails if the server takes longer than `SERVER_TIME`.
fn exchange(mut stream: &UnixStream, request: &Request) -> io::Result<Response> {
    stream.set_read_timeout(Some(SERVER_TIME))?;
    stream.set_write_timeout(Some(CLIENT_TIME))?;
    let mut bytes = serde_json::to_vec(request)?;
    bytes.push(b'\n');
    stream.write_all(&bytes)?;
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
