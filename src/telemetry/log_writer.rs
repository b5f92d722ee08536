//! [`LogWriter`]: a log of lines. It takes lines in on the thread of the request and gathers them.
//! A thread of its own writes them several times a second, because waking that thread for each line
//! would cost more than everything else. A full buffer drops lines and counts them, so a request
//! never waits for a disk. Lines that wait while the file is opened again go into the new file.

use super::log_file::{LogFile, Lost};
use crate::locks::lock;
use crate::printable::Style;
use crate::settings::LogDestination;
use crate::threads::spawn;
use serde::Serialize;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Octets that may wait: some seconds of a busy server.
const ROOM: usize = 8 * 1024 * 1024;
/// With so many octets waiting the writer begins at once.
const ENOUGH: usize = 64 * 1024;
/// How long a line may wait for others.
const GATHERED: Duration = Duration::from_millis(50);

thread_local! {
    /// A line is put together here, so that the lock is held for copying only.
    static LINE: RefCell<Vec<u8>> = RefCell::default();
}

/// A log; cheap to clone. The writer ends with the last of the clones.
#[derive(Clone)]
pub struct LogWriter {
    open: Option<Arc<Open>>,
}

struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.queue().waiting.closed = true;
        self.0.work.notify_one();
    }
}

/// What waits for the writer, which takes it all at once.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// How often the file is to be opened again before the lines are written; once is enough.
    reopens: u64,
    /// Whether it is the last one.
    closed: bool,
    /// Whether a line found no room.
    overflowed: bool,
}

/// What waits to be written, and what became of the rest.
#[derive(Default)]
struct Queue {
    waiting: Batch,
    /// Octets that were ever taken in, and one for each time that the file is to be opened again.
    taken_in: u64,
    /// How many of these are done: written, lost or opened again.
    done: u64,
    /// Whether a flush waits for the writer.
    hurry: bool,
    /// Why lines are lost, or go into a file that has another name.
    problem: Option<String>,
}

impl Queue {
    /// Whether the writer is not to wait for more lines: a flush waits, the log is closed, many
    /// octets wait, or the file is to be opened again.
    fn must_write_now(&self) -> bool {
        let Batch {
            lines,
            reopens,
            closed,
            ..
        } = &self.waiting;
        self.hurry || *closed || lines.len() >= ENOUGH || *reopens > 0
    }
}

/// What the writer shares with the threads that log.
struct Shared {
    name: &'static str,
    queue: Mutex<Queue>,
    /// The writer has something to do.
    work: Condvar,
    /// The writer has done something.
    written: Condvar,
    dropped: AtomicU64,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    fn too_slow(&self) -> String {
        format!(
            "the {} is written too slowly, and lines are lost",
            self.name
        )
    }
}

impl LogWriter {
    /// Opens a log and starts its writer; nothing is opened or started for `Off`. `name` is for
    /// messages, and the name of the thread.
    pub fn open(name: &'static str, destination: &LogDestination) -> std::io::Result<LogWriter> {
        let file = match destination {
            LogDestination::Off => return Ok(LogWriter::off()),
            LogDestination::Stdout => LogFile::stdout(name)?,
            LogDestination::File(path) => LogFile::open(name, path)?,
        };
        let shared = Arc::new(Shared {
            name,
            queue: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let writer = Writer {
            file,
            shared: shared.clone(),
            lost: 0,
        };
        spawn(name, move || writer.run())?;
        Ok(LogWriter {
            open: Some(Arc::new(Open(shared))),
        })
    }

    /// A log that is not written.
    pub fn off() -> LogWriter {
        LogWriter { open: None }
    }

    fn shared(&self) -> Option<&Shared> {
        self.open.as_deref().map(|open| &*open.0)
    }

    /// Whether lines are written. If not, no record needs to be built.
    pub fn enabled(&self) -> bool {
        self.open.is_some()
    }

    /// Takes a record in, as a line of JSON in which characters that could harm a terminal are
    /// escaped. A record that cannot be written as JSON, or finds no room, counts as dropped.
    pub fn write(&self, record: &impl Serialize) {
        self.write_line(|line| {
            let is_written = serde_json::to_writer(&mut *line, record).is_ok();
            Style::Json.make_harmless(line);
            is_written
        });
    }

    /// Takes a line in. `write` appends it, without the line end, and returns whether it could. A
    /// line that it could not append, or for which the waiting lines leave no room (`ROOM`), counts
    /// as dropped. `write` is not called if the log is off.
    pub fn write_line(&self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let Some(shared) = self.shared() else { return };
        LINE.with_borrow_mut(|line| {
            line.clear();
            if !write(line) {
                shared.dropped.fetch_add(1, Relaxed);
                return;
            }
            line.push(b'\n');
            let mut queue = shared.queue();
            let before = queue.waiting.lines.len();
            if before + line.len() > ROOM {
                queue.waiting.overflowed = true;
                shared.dropped.fetch_add(1, Relaxed);
                return;
            }
            queue.waiting.lines.extend_from_slice(line);
            queue.taken_in += line.len() as u64;
            let after = queue.waiting.lines.len();
            drop(queue);
            // Between the first line and `ENOUGH` the writer sleeps for a fixed time.
            if before == 0 || (before < ENOUGH && after >= ENOUGH) {
                shared.work.notify_one();
            }
        });
    }

    /// Lines that were dropped because too many waited, or that could not be written.
    pub fn dropped(&self) -> u64 {
        self.shared()
            .map_or(0, |shared| shared.dropped.load(Relaxed))
    }

    /// Why lines are being lost, or go into a renamed file.
    pub fn problem(&self) -> Option<String> {
        let shared = self.shared()?;
        let queue = shared.queue();
        queue
            .problem
            .clone()
            .or_else(|| queue.waiting.overflowed.then(|| shared.too_slow()))
    }

    /// Waits until everything that was taken in is written, for at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let Some(shared) = self.shared() else { return };
        let end = Instant::now() + limit;
        let mut queue = shared.queue();
        let wanted = queue.taken_in;
        while queue.done < wanted {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            queue.hurry = true;
            shared.work.notify_one();
            queue = shared
                .written
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Has the writer thread open the file again, after it was rotated. Does not wait for that.
    pub fn reopen(&self) {
        if let Some(shared) = self.shared() {
            let mut queue = shared.queue();
            queue.waiting.reopens += 1;
            queue.taken_in += 1;
            drop(queue);
            shared.work.notify_one();
        }
    }
}

/// The thread that writes.
struct Writer {
    file: LogFile,
    shared: Arc<Shared>,
    /// Lines that were lost since the log could last be written.
    lost: u64,
}

impl Writer {
    /// Writes batch after batch until the last clone of the log is dropped and its lines are
    /// written.
    fn run(mut self) {
        // Two buffers change places.
        let mut buffer = Vec::new();
        loop {
            let batch = self.next_batch(std::mem::take(&mut buffer));
            let problem = self.write_batch(&batch);
            self.finish(&batch, problem);
            if batch.closed {
                return;
            }
            buffer = batch.lines;
            // The memory of a burst is given back.
            if buffer.capacity() > 4 * ENOUGH {
                buffer = Vec::new();
            }
        }
    }

    /// Waits until there is something to do, then up to `GATHERED` for more lines, and takes all
    /// that waits. `lines` is the buffer of the last batch; emptied, it takes in the lines that
    /// come next.
    fn next_batch(&self, mut lines: Vec<u8>) -> Batch {
        let work = &self.shared.work;
        let queue = work
            .wait_while(self.shared.queue(), |queue| {
                queue.waiting.lines.is_empty() && !queue.must_write_now()
            })
            .unwrap_or_else(PoisonError::into_inner);
        let mut queue = work
            .wait_timeout_while(queue, GATHERED, |queue| !queue.must_write_now())
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        lines.clear();
        queue.hurry = false;
        std::mem::replace(
            &mut queue.waiting,
            Batch {
                lines,
                ..Batch::default()
            },
        )
    }

    /// Opens the file again if the batch asks for it, and writes its lines. A reopening that fails
    /// is only logged. Returns why lines are lost; `None` if none are. The log says when lines
    /// begin to be lost, and how many were once the file can be written again.
    fn write_batch(&mut self, batch: &Batch) -> Option<String> {
        if batch.reopens > 0
            && let Err(error) = self.file.reopen()
        {
            tracing::error!(%error, "cannot open the {} again; crawlgate goes on with the open file", self.shared.name);
        }
        if batch.lines.is_empty() {
            return None;
        }
        let log = self.shared.name;
        match self.file.write_lines(&batch.lines) {
            Ok(()) => {
                if self.lost > 0 {
                    tracing::warn!(lost = self.lost, "the {log} can be written again");
                    self.lost = 0;
                }
                None
            }
            Err(Lost { lines, error }) => {
                let problem = format!("the {log} cannot be written, and lines are lost: {error}");
                if self.lost == 0 {
                    tracing::error!(%error, "the {log} cannot be written; lines are lost until it can");
                }
                self.lost += lines;
                self.shared.dropped.fetch_add(lines, Relaxed);
                Some(problem)
            }
        }
    }

    /// Records what became of a batch, and wakes those who wait in `flush`. A batch with lines
    /// replaces the problem: by `problem` (the file cannot be written), else by that the writer is
    /// too slow or that the lines went into a renamed file, else by none.
    fn finish(&self, batch: &Batch, problem: Option<String>) {
        let mut queue = self.shared.queue();
        if !batch.lines.is_empty() {
            queue.problem = if problem.is_some() {
                problem
            } else if batch.overflowed {
                Some(self.shared.too_slow())
            } else {
                self.file.reopen_problem().map(|error| {
                    format!(
                        "the {} cannot be created again, and crawlgate goes on with the renamed file: {error}",
                        self.shared.name
                    )
                })
            };
        }
        queue.done += batch.lines.len() as u64 + batch.reopens;
        drop(queue);
        self.shared.written.notify_all();
    }
}
