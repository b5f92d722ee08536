//! The access log: one JSON line a request, written by a thread of its own. A full queue drops lines and counts them;
//! a request never waits for a disk.

use crate::settings::AccessDestination;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError, TrySendError};
use std::time::{Duration, Instant};

/// Lines that may wait: some seconds of a busy server, some MiB.
const QUEUE: usize = 16_384;
/// Between two tries to get into a full queue.
const FULL_QUEUE: Duration = Duration::from_millis(2);

/// One line.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct AccessRecord {
    /// RFC 3339 with milliseconds, UTC.
    pub time: String,
    pub client: Option<String>,
    pub method: String,
    pub host: String,
    pub target: String,
    pub http: &'static str,
    pub status: u16,
    pub bytes: u64,
    pub milliseconds: f64,
    pub user_agent: Option<String>,
    pub referer: Option<String>,
    pub site: Option<String>,
    /// The registry's id, the policy's token, or `other`; absent for a person.
    pub crawler: Option<String>,
    pub verdict: Option<&'static str>,
    pub kind: Option<&'static str>,
    /// `file:line:column` of the rule that decided.
    pub rule: Option<String>,
    pub action: &'static str,
    /// What enforce would have done.
    pub would: Option<&'static str>,
    /// The version of robots.txt it was judged by.
    pub version: Option<String>,
    pub error: Option<String>,
}

enum Message {
    Line(Box<AccessRecord>),
    /// Look whether the file is to be opened again.
    Wake,
    Flush(Sender<()>),
}

/// What the writer shares with those who write.
#[derive(Default)]
struct Shared {
    dropped: AtomicU64,
    /// Apart from the queue: a full one must not keep a rotated file in use.
    reopen: AtomicBool,
}

/// The log; cheap to clone.
#[derive(Clone)]
pub struct AccessLog {
    queue: Option<SyncSender<Message>>,
    shared: Arc<Shared>,
}

enum Output {
    Stdout(BufWriter<Stdout>),
    File(BufWriter<File>, PathBuf),
}

impl AccessLog {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(destination: &AccessDestination) -> std::io::Result<AccessLog> {
        let output = match destination {
            AccessDestination::Off => return Ok(AccessLog::off()),
            AccessDestination::Stdout => Output::Stdout(BufWriter::new(std::io::stdout())),
            AccessDestination::File(path) => Output::File(append(path)?, path.clone()),
        };
        let (queue, messages) = mpsc::sync_channel(QUEUE);
        let shared = Arc::<Shared>::default();
        std::thread::Builder::new().name("access-log".into()).spawn({
            let shared = shared.clone();
            move || write_lines(output, &messages, &shared)
        })?;
        Ok(AccessLog { queue: Some(queue), shared })
    }

    /// A log that goes nowhere.
    pub fn off() -> AccessLog {
        AccessLog { queue: None, shared: Arc::default() }
    }

    /// Whether lines go anywhere, so that nobody builds a record for nothing.
    pub fn enabled(&self) -> bool {
        self.queue.is_some()
    }

    /// Queues a line.
    pub fn write(&self, record: AccessRecord) {
        let Some(queue) = &self.queue else { return };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            queue.try_send(Message::Line(Box::new(record)))
        {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines dropped because the queue was full, or that could not be written.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything queued is written, for at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let Some(queue) = &self.queue else { return };
        let end = Instant::now() + limit;
        let (done, wait) = mpsc::channel();
        let mut message = Message::Flush(done);
        loop {
            match queue.try_send(message) {
                Ok(()) => break,
                // The writer is at it; the standard library has no sending with a deadline.
                Err(TrySendError::Full(again)) if Instant::now() < end => {
                    message = again;
                    std::thread::park_timeout(FULL_QUEUE);
                }
                Err(_) => return,
            }
        }
        let _ = wait.recv_timeout(end.saturating_duration_since(Instant::now()));
    }

    /// Opens the file again (after rotation, on SIGHUP).
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Release);
        if let Some(queue) = &self.queue {
            // When it is full the writer is awake.
            let _ = queue.try_send(Message::Wake);
        }
    }
}

fn append(path: &Path) -> std::io::Result<BufWriter<File>> {
    Ok(BufWriter::new(OpenOptions::new().create(true).append(true).open(path)?))
}

fn write_lines(mut output: Output, messages: &Receiver<Message>, shared: &Shared) {
    let mut failing = false;
    let mut note = |result: std::io::Result<()>| match result {
        Ok(()) => failing = false,
        Err(error) if !failing => {
            failing = true;
            tracing::error!(%error, "the access log cannot be written; lines are lost until it can");
        }
        Err(_) => {}
    };
    loop {
        // What is written stays in the buffer while more is waiting, and goes out when the queue is empty.
        let message = match messages.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                note(output.flush());
                match messages.recv() {
                    Ok(message) => message,
                    Err(_) => break,
                }
            }
        };
        if shared.reopen.swap(false, Ordering::AcqRel) {
            note(output.reopen());
        }
        match message {
            Message::Wake => {}
            Message::Line(record) => {
                let written = output.line(&record);
                if written.is_err() {
                    shared.dropped.fetch_add(1, Ordering::Relaxed);
                    note(written);
                }
            }
            Message::Flush(done) => {
                note(output.flush());
                let _ = done.send(());
            }
        }
    }
    let _ = output.flush();
}

impl Output {
    fn line(&mut self, record: &AccessRecord) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        match self {
            Output::Stdout(stdout) => stdout.write_all(&line),
            Output::File(file, _) => file.write_all(&line),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Output::Stdout(stdout) => stdout.flush(),
            Output::File(file, _) => file.flush(),
        }
    }

    fn reopen(&mut self) -> std::io::Result<()> {
        if let Output::File(file, path) = self {
            // The old file may be what cannot be written.
            let flushed = file.flush();
            *file = append(path)?;
            flushed?;
        }
        Ok(())
    }
}
