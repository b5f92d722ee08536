//! [`LogWriter`]: a log file that a thread of its own writes. The thread of a request only adds its
//! line to a buffer, so that a request never waits for a disk. If the buffer is full, new lines are
//! dropped and counted. The writer thread writes the buffer several times a second, because waking
//! it for each line would be expensive. While lines are lost, the writer thread tries again once a
//! second, also without new lines.

use super::log_file::{LogFile, LogWriteError};
use crate::finding::Finding;
use crate::locks::lock;
use crate::printable::OutputStyle;
use crate::settings::LogDestination;
use crate::threads::spawn;
use serde::Serialize;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes that wait: some seconds of a busy server.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;
/// The writer begins at once if this many bytes wait.
const FULL_BATCH_BYTES: usize = 64 * 1024;
/// How long the writer waits for more lines.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// The time between attempts to write a file while lines are lost.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    /// Each line is formatted here, so that the lock is held only for copying.
    static LINE_BUFFER: RefCell<Vec<u8>> = RefCell::default();
}

/// A log; cheap to clone. The writer thread ends with the last clone.
#[derive(Clone)]
pub struct LogWriter {
    open: Option<Arc<LogWriterGuard>>,
}

struct LogWriterGuard(Arc<LogWriterShared>);

impl Drop for LogWriterGuard {
    fn drop(&mut self) {
        self.0.lock_queue().waiting.closed = true;
        self.0.work.notify_one();
    }
}

/// Lines that wait for the writer, which takes all of them at once.
#[derive(Default)]
struct LineBatch {
    lines: Vec<u8>,
    /// How many times reopening the file was requested. It is done once, before the lines are
    /// written.
    reopens: u64,
    /// Whether it is the last one.
    closed: bool,
    /// Whether a line was dropped because too many bytes waited.
    overflowed: bool,
}

/// The lines that wait, and how much was taken in and done.
#[derive(Default)]
struct WriterQueue {
    waiting: LineBatch,
    /// Bytes taken in since the start, plus one for each requested reopening.
    taken_in: u64,
    /// How much of `taken_in` is done: written, lost or reopened.
    done: u64,
    /// Whether a flush waits for the writer.
    flush_requested: bool,
    /// Why lines are lost.
    problem: Option<String>,
}

impl WriterQueue {
    /// Whether the writer must not wait for more lines: a flush waits, the log is closed, many
    /// bytes wait, or the file is to be reopened.
    fn must_write_now(&self) -> bool {
        let LineBatch {
            lines,
            reopens,
            closed,
            ..
        } = &self.waiting;
        self.flush_requested || *closed || lines.len() >= FULL_BATCH_BYTES || *reopens > 0
    }
}

/// The state that the writer shares with the threads that log.
struct LogWriterShared {
    name: &'static str,
    queue: Mutex<WriterQueue>,
    /// The writer has something to do.
    work: Condvar,
    /// The writer has done something.
    written: Condvar,
    dropped: AtomicU64,
}

impl LogWriterShared {
    fn lock_queue(&self) -> MutexGuard<'_, WriterQueue> {
        lock(&self.queue)
    }

    fn slow_writer_message(&self) -> String {
        format!(
            "the {} cannot be written fast enough, and lines are lost",
            self.name
        )
    }
}

impl LogWriter {
    /// Opens a log and starts its writer; nothing is opened or started for `Off`. A file that cannot
    /// be opened is a [`LogWriter::problem`]. `name` is for messages, and the name of the thread.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(name: &'static str, destination: &LogDestination) -> std::io::Result<LogWriter> {
        let file = match destination {
            LogDestination::Off => return Ok(LogWriter::off()),
            LogDestination::Stdout => LogFile::stdout(name)?,
            LogDestination::File(path) => LogFile::new(name, path),
        };
        let shared = Arc::new(LogWriterShared {
            name,
            queue: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let mut writer = WriterThread {
            file,
            shared: shared.clone(),
            lost: 0,
            problem: None,
        };
        let first = LineBatch::default();
        writer.write_batch(&first);
        writer.finish(&first);
        spawn(name, move || writer.run())?;
        Ok(LogWriter {
            open: Some(Arc::new(LogWriterGuard(shared))),
        })
    }

    /// A log that is not written.
    pub fn off() -> LogWriter {
        LogWriter { open: None }
    }

    fn shared(&self) -> Option<&LogWriterShared> {
        self.open.as_deref().map(|open| &*open.0)
    }

    /// Whether lines are written. If not, no record needs to be built.
    pub fn is_enabled(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a record as a line of JSON, in which characters that could harm a terminal are escaped.
    /// A record that cannot be serialized counts as dropped, also if too many bytes wait.
    pub fn write(&self, record: &impl Serialize) {
        self.write_line(|line| {
            let is_written = serde_json::to_writer(&mut *line, record).is_ok();
            OutputStyle::Json.sanitize(line);
            is_written
        });
    }

    /// Adds a line. `write` appends it without the line end, and returns whether it succeeded. The
    /// line counts as dropped if it did not, or if more than `MAX_WAITING_BYTES` would wait.
    /// `write` is not called if the log is off.
    pub fn write_line(&self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let Some(shared) = self.shared() else { return };
        LINE_BUFFER.with_borrow_mut(|line| {
            line.clear();
            if !write(line) {
                shared.dropped.fetch_add(1, Relaxed);
                return;
            }
            line.push(b'\n');
            let mut queue = shared.lock_queue();
            let before = queue.waiting.lines.len();
            if before + line.len() > MAX_WAITING_BYTES {
                queue.waiting.overflowed = true;
                shared.dropped.fetch_add(1, Relaxed);
                return;
            }
            queue.waiting.lines.extend_from_slice(line);
            queue.taken_in += line.len() as u64;
            let after = queue.waiting.lines.len();
            drop(queue);
            // Between the first line and `FULL_BATCH_BYTES` the writer sleeps for `GATHER_TIME`.
            if before == 0 || (before < FULL_BATCH_BYTES && after >= FULL_BATCH_BYTES) {
                shared.work.notify_one();
            }
        });
    }

    /// Lines that were dropped because too many bytes waited, or that could not be written.
    pub fn dropped(&self) -> u64 {
        self.shared()
            .map_or(0, |shared| shared.dropped.load(Relaxed))
    }

    /// Why lines are being lost, and how many were.
    pub fn problem(&self) -> Option<Finding> {
        let shared = self.shared()?;
        let queue = shared.lock_queue();
        let slow = queue
            .waiting
            .overflowed
            .then(|| shared.slow_writer_message());
        let reason = queue.problem.clone().or(slow)?;
        let message = match self.dropped() {
            0 => reason,
            dropped => format!("{reason}. Lines lost since the start: {dropped}"),
        };
        Some(Finding::new(shared.name, message))
    }

    /// Waits until all lines so far are written, for at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let Some(shared) = self.shared() else { return };
        let end = Instant::now() + limit;
        let mut queue = shared.lock_queue();
        let wanted = queue.taken_in;
        while queue.done < wanted {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            queue.flush_requested = true;
            shared.work.notify_one();
            queue = shared
                .written
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Has the writer thread reopen the file, after it was rotated. Does not wait for that.
    pub fn reopen(&self) {
        if let Some(shared) = self.shared() {
            let mut queue = shared.lock_queue();
            queue.waiting.reopens += 1;
            queue.taken_in += 1;
            drop(queue);
            shared.work.notify_one();
        }
    }
}

/// The thread that writes.
struct WriterThread {
    file: LogFile,
    shared: Arc<LogWriterShared>,
    /// Lines lost since the file was last written.
    lost: u64,
    /// Why the file cannot be written.
    problem: Option<String>,
}

impl WriterThread {
    /// Writes batch after batch until the last clone of the log is dropped and its lines are
    /// written.
    fn run(mut self) {
        // Two buffers are swapped.
        let mut buffer = Vec::new();
        loop {
            let batch = self.next_batch(std::mem::take(&mut buffer));
            self.write_batch(&batch);
            self.finish(&batch);
            if batch.closed {
                return;
            }
            buffer = batch.lines;
            // The memory of a burst is freed.
            if buffer.capacity() > 4 * FULL_BATCH_BYTES {
                buffer = Vec::new();
            }
        }
    }

    /// Waits until there is something to do, then up to `GATHER_TIME` for more lines, and takes all
    /// of them. While lines are lost, trying again is something to do once a second. `lines` is the
    /// buffer of the last batch, for the lines that follow.
    fn next_batch(&self, mut lines: Vec<u8>) -> LineBatch {
        let work = &self.shared.work;
        let queue = self.shared.lock_queue();
        let patience = if queue.problem.is_none() {
            Duration::MAX
        } else {
            RETRY_INTERVAL
        };
        let queue = work
            .wait_timeout_while(queue, patience, |queue| {
                queue.waiting.lines.is_empty() && !queue.must_write_now()
            })
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        let mut queue = work
            .wait_timeout_while(queue, GATHER_TIME, |queue| !queue.must_write_now())
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        lines.clear();
        queue.flush_requested = false;
        std::mem::replace(
            &mut queue.waiting,
            LineBatch {
                lines,
                ..LineBatch::default()
            },
        )
    }

    /// Reopens the file if the batch requests it, and writes its lines. Without lines it tries a file
    /// that is not open or could not be written. A failed reopening is only logged. Sets why the file cannot be written. Logs when lines
    /// begin to be lost, and how many were lost once the file can be written again.
    fn write_batch(&mut self, batch: &LineBatch) {
        if batch.reopens > 0
            && self.file.is_open()
            && let Err(error) = self.file.reopen()
        {
            tracing::error!(%error, "cannot reopen the {}", self.shared.name);
        }
        if batch.lines.is_empty() && self.file.is_open() && self.problem.is_none() {
            return;
        }
        let written = self.file.write_lines(&batch.lines);
        let log = &self.file.name;
        match written {
            Ok(()) => {
                if self.problem.take().is_some() {
                    tracing::warn!(lost = self.lost, "the {log} can be written again");
                    self.lost = 0;
                }
            }
            Err(LogWriteError { lines, error }) => {
                if self.problem.is_none() {
                    tracing::error!(%error, "the {log} cannot be written, and its lines are lost");
                }
                self.lost += lines;
                self.shared.dropped.fetch_add(lines, Relaxed);
                self.problem = Some(format!(
                    "the {log} cannot be written, and its lines are lost: {error}. Check its directory, its owner and the \
                     disk; crawlgate tries again every second"
                ));
            }
        }
    }

    /// Marks a batch as done, and wakes the threads in `flush`. Sets the problem of the log: the
    /// file cannot be written, else a slow writer, else none.
    fn finish(&self, batch: &LineBatch) {
        let mut queue = self.shared.lock_queue();
        let slow = batch.overflowed.then(|| self.shared.slow_writer_message());
        queue.problem = self.problem.clone().or(slow);
        queue.done += batch.lines.len() as u64 + batch.reopens;
        drop(queue);
        self.shared.written.notify_all();
    }
}
