//! [`audit_logs`] judges access logs with several threads. The calling thread reads the logs, and
//! one worker thread per processor judges and counts the requests. Then the counts of all workers
//! are merged into one [`Report`].

use super::input::LogInput;
use super::report::build_report;
use super::rules::AuditRules;
use super::tally::{AuditTally, KeyBudget};
use super::worker::{AuditOptions, AuditWorker, LogChunk};
use crate::crawlers::Registry;
use crate::report::{DamagedLog, Report};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// How much of the logs was read.
pub struct AuditProgress {
    /// Bytes as they are stored.
    pub bytes_read: u64,
    /// The stored bytes of all logs, where they are known.
    pub total_bytes: Option<u64>,
    /// Lines.
    pub lines: u64,
}

/// Reads all logs and judges their requests. `progress` is called after each chunk of a log.
///
/// # Errors
/// A log cannot be opened. A damaged log is no error: it is read up to the damage, and the report
/// names it.
pub fn audit_logs(
    inputs: &[LogInput],
    rules: &AuditRules,
    registry: &'static Registry,
    options: &AuditOptions,
    progress: &mut dyn FnMut(AuditProgress),
) -> io::Result<Report> {
    let mut total_bytes = Some(0);
    for input in inputs {
        let bytes = input.stored_bytes().map_err(|error| input.error(error))?;
        total_bytes = total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
    }
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (sender, receiver) = sync_channel(2 * workers);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut producer = ChunkProducer {
        sender,
        total_bytes,
        bytes_read: 0,
        lines: 0,
        damaged: Vec::new(),
        progress,
    };
    let budget = &KeyBudget::default();
    let (read, tally) = thread::scope(|scope| {
        let mut handles = Vec::new();
        for _ in 0..workers {
            let receiver = receiver.clone();
            let worker = AuditWorker::new(rules, registry, options, budget);
            handles.push(scope.spawn(move || run_worker(worker, &receiver)));
        }
        let read = inputs
            .iter()
            .enumerate()
            .try_for_each(|(index, input)| producer.read_log(index, input));
        // Without a sender the workers end.
        let ChunkProducer {
            damaged, sender, ..
        } = producer;
        drop(sender);
        let mut tally = AuditTally::default();
        for handle in handles {
            tally.merge(
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        (read.map(|()| damaged), tally)
    });
    let mut report = build_report(tally, rules, options, inputs, read?);
    if !options.crawlers.is_empty() {
        // Without the others there are no shares.
        report.traffic = None;
    }
    Ok(report)
}

/// Reads logs and sends their chunks to the workers.
struct ChunkProducer<'a> {
    sender: SyncSender<LogChunk>,
    total_bytes: Option<u64>,
    /// Of the logs before.
    bytes_read: u64,
    lines: u64,
    damaged: Vec<DamagedLog>,
    progress: &'a mut dyn FnMut(AuditProgress),
}

impl ChunkProducer<'_> {
    /// Reads one log, sends its chunks to the workers, and calls `progress` after each chunk. A
    /// damaged log is added to `damaged`. `index` is the position of the log among all.
    ///
    /// # Errors
    /// The log cannot be opened.
    fn read_log(&mut self, index: usize, input: &LogInput) -> io::Result<()> {
        let mut reader = input.open().map_err(|error| input.error(error))?;
        let mut first_line = 1;
        while let Some(lines_of_chunk) = reader.next_chunk() {
            let lines = memchr::memchr_iter(b'\n', &lines_of_chunk.bytes).count() as u64;
            let chunk = LogChunk {
                input: index,
                first_line,
                lines: lines_of_chunk,
            };
            if self.sender.send(chunk).is_err() {
                // The workers end early only when one of them panics.
                return Ok(());
            }
            first_line += lines;
            self.lines += lines;
            (self.progress)(AuditProgress {
                bytes_read: self.bytes_read + reader.bytes_read(),
                total_bytes: self.total_bytes,
                lines: self.lines,
            });
        }
        self.bytes_read += reader.bytes_read();
        self.damaged
            .extend(reader.read_error.map(|error| DamagedLog {
                file: input.display_name(),
                error: error.to_string(),
            }));
        Ok(())
    }
}

/// Counts chunks until no more come.
fn run_worker(mut worker: AuditWorker<'_>, chunks: &Mutex<Receiver<LogChunk>>) -> AuditTally {
    loop {
        let Ok(chunk) = crate::locks::lock(chunks).recv() else {
            return worker.tally;
        };
        worker.count_chunk(&chunk);
    }
}
