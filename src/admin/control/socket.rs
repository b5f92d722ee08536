//! [`ControlSocket`]: the server side of the control socket, by which commands such as `pause`
//! reach the running crawlgate. Each client has a thread of its own. At an upgrade the socket
//! passes to the new process. A lock file shows whether another crawlgate uses the socket.

use super::commands::{ControlRefusal, ControlRequestHandler, MAX_REQUEST_BYTES, perform_request};
use super::{CLIENT_TIMEOUT, ControlError, ControlResponse};
use crate::files::{file_identity, parent_directory};
use crate::finding::Finding;
use crate::locks::lock;
use crate::state::{LockOutcome, ProcessLock, name_owner};
use crate::threads::spawn;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Further clients wait to be accepted.
const MAX_CLIENTS: usize = 128;
/// How long the server waits for its last responses when it ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The suffix of the lock file beside a socket.
const LOCK_SUFFIX: &str = ".lock";

/// The listening socket, removed when dropped. A file beside it is locked as long as the process
/// runs, so that a second crawlgate notices the first even if both start at once or the socket was
/// removed.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Absent on a file system without locks.
    lock: Mutex<Option<ProcessLock>>,
    /// The device and the inode of the socket: another process may have taken the name since.
    identity: Option<(u64, u64)>,
    connected: ClientCounter,
    /// Clients whose request was read and whose response is not written yet.
    unanswered: ClientCounter,
}

/// Counts clients in one state, and waits until there are few.
#[derive(Default)]
struct ClientCounter {
    count: Mutex<usize>,
    changed: Condvar,
}

impl ClientCounter {
    /// Counts a client until the returned guard is dropped.
    fn count_client(&self) -> ClientGuard<'_> {
        *lock(&self.count) += 1;
        ClientGuard(self)
    }
}

struct ClientGuard<'c>(&'c ClientCounter);

impl Drop for ClientGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.changed.notify_all();
    }
}

impl ControlSocket {
    /// Opens the socket with mode 0600, and replaces the socket of a dead process.
    ///
    /// # Errors
    /// Another process listens there, another kind of file has the name, or the directory cannot be
    /// written.
    pub fn bind(path: &Path) -> Result<ControlSocket, ControlError> {
        // A mistyped path must not replace a policy by a socket.
        if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket()) {
            let error = io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is a file with this name that is no socket",
            );
            return Err(ControlError::io(path, error));
        }
        let directory = parent_directory(path);
        let to_error = |error| ControlError::io(path, name_owner(directory, error));
        fs::create_dir_all(directory).map_err(to_error)?;
        let lock = acquire_socket_lock(path)?;
        if UnixStream::connect(path).is_ok() {
            return Err(ControlError::AlreadyRunning {
                path: path.display().to_string(),
                pid: None,
            });
        }
        ControlSocket::bind_at(path, lock).map_err(to_error)
    }

    /// Replaces the socket of the previous process. `lock` is the descriptor of the locked file that
    /// the previous process passed; `None` on a file system without locks.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn take_over(path: &Path, lock: Option<OwnedFd>) -> Result<ControlSocket, ControlError> {
        lock.map(ProcessLock::from_descriptor)
            .transpose()
            .and_then(|lock| ControlSocket::bind_at(path, lock))
            .map_err(|error| ControlError::io(path, error))
    }

    /// Opens a socket of mode 0600 and moves it to `path`, in place of a socket there. So clients
    /// always find a socket, and no other user can connect before the mode is set.
    fn bind_at(path: &Path, lock: Option<ProcessLock>) -> io::Result<ControlSocket> {
        let directory = parent_directory(path);
        // Between bind and chmod every user could connect. So the socket is bound in a directory
        // that only the owner can enter, and moved to its place afterwards.
        let private = tempfile::Builder::new()
            .prefix(".crawlgate")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(directory)?;
        let hidden = private.path().join("s");
        let listener = UnixListener::bind(&hidden)?;
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        let identity = file_identity(&hidden);
        fs::rename(&hidden, path)?;
        Ok(ControlSocket {
            listener,
            path: path.to_owned(),
            lock: Mutex::new(lock),
            identity,
            connected: ClientCounter::default(),
            unanswered: ClientCounter::default(),
        })
    }

    /// Starts the thread that accepts clients until the process ends. Each client has a thread of
    /// its own, so that neither a silent client nor a reload delays another request.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(self: Arc<ControlSocket>, commands: ControlRequestHandler) -> io::Result<()> {
        let commands = Arc::new(commands);
        spawn("control", move || {
            loop {
                let accepted = self
                    .listener
                    .accept()
                    .and_then(|(stream, _)| self.spawn_client(stream, &commands));
                // Out of descriptors, for example, which an immediate retry would not change.
                if let Err(error) = accepted {
                    tracing::warn!(%error, "the control socket cannot accept a connection; trying again in a second");
                    thread::park_timeout(Duration::from_secs(1));
                }
                let ClientCounter { count, changed } = &self.connected;
                drop(changed.wait_while(lock(count), |count| *count >= MAX_CLIENTS));
            }
        })
        .map(drop)
    }

    /// Starts a thread that answers one client.
    fn spawn_client(
        self: &Arc<ControlSocket>,
        stream: UnixStream,
        commands: &Arc<ControlRequestHandler>,
    ) -> io::Result<()> {
        let socket = self.clone();
        let commands = commands.clone();
        spawn("control-client", move || {
            let _connected = socket.connected.count_client();
            if let Err(error) = answer_client(&stream, &commands, &socket.unanswered) {
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
            .map(ProcessLock::duplicate_descriptor)
            .transpose()
    }

    /// Leaves the lock to the process that got it: this process does not release it any more.
    pub fn hand_over_lock(&self) {
        lock(&self.lock)
            .iter_mut()
            .for_each(ProcessLock::mark_transferred);
    }

    /// Waits for responses that are being written, and then removes the socket, unless another
    /// process replaced it. Releases the lock, unless it was handed over; its file stays.
    pub fn remove(&self) {
        // After an upgrade this process ends, and the client still waits for the response.
        let count = lock(&self.unanswered.count);
        drop(
            self.unanswered
                .changed
                .wait_timeout_while(count, DRAIN_TIMEOUT, |count| *count > 0),
        );
        if self.identity.is_some() && file_identity(&self.path) == self.identity {
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
fn acquire_socket_lock(path: &Path) -> Result<Option<ProcessLock>, ControlError> {
    let mut file = path.as_os_str().to_owned();
    file.push(LOCK_SUFFIX);
    match ProcessLock::acquire(Path::new(&file)) {
        Ok(LockOutcome::Owned { lock, .. }) => Ok(Some(lock)),
        Ok(LockOutcome::Held { pid }) => Err(ControlError::AlreadyRunning {
            path: path.display().to_string(),
            pid,
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ControlError::io(path, error))
        }
        Err(error) => {
            tracing::warn!(%error, "cannot lock the control socket: another crawlgate is noticed only while it answers");
            Ok(None)
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads one request, performs it and writes the response.
fn answer_client(
    mut stream: &UnixStream,
    commands: &ControlRequestHandler,
    unanswered: &ClientCounter,
) -> io::Result<()> {
    let line = read_request_line(stream)?;
    // Nobody expects a command to take effect that they gave up.
    stream.set_nonblocking(true)?;
    if let Ok(0) = stream.read(&mut [0]) {
        return Ok(());
    }
    stream.set_nonblocking(false)?;
    let _answering = unanswered.count_client();
    let response = line
        .ok_or(ControlRefusal::TooLong)
        .and_then(|line| perform_request(&line, commands))
        .unwrap_or_else(|error| {
            ControlResponse::Refused(Finding::new(error.id(), error.to_string()))
        });
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    stream.write_all(&bytes)
}

/// Reads a line up to its end or the end of the stream. `None` if it is too long. The whole line has
/// one deadline; with a timeout for each read, a slow client could continue for ever.
fn read_request_line(mut stream: &UnixStream) -> io::Result<Option<Vec<u8>>> {
    let end = Instant::now() + CLIENT_TIMEOUT;
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
        // The rest of a long line is read, because closing with unread bytes would reset the
        // connection before the client has the response.
        line.extend_from_slice(
            &read[..newline
                .unwrap_or(count)
                .min(MAX_REQUEST_BYTES + 1 - line.len())],
        );
        if newline.is_some() || count == 0 {
            return Ok((line.len() <= MAX_REQUEST_BYTES).then_some(line));
        }
    }
}
