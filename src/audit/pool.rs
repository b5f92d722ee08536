//! [`audit`] runs an audit. The calling thread reads the logs, and one worker per processor judges
//! and counts the requests. The counts of the workers are merged into one [`Report`].

use super::input::Input;
use super::report::report;
use super::rules::Rules;
use super::tally::Tally;
use super::worker::{Chunk, Options, Worker};
use crate::crawlers::Registry;
use crate::report::{Damaged, Report};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// How far a run is.
#[derive(Debug)]
pub struct ReadSoFar {
    /// Octets taken from the logs as they are stored.
    pub taken: u64,
    /// The octets of all logs, where that is known.
    pub size: Option<u64>,
    /// Lines read.
    pub lines: u64,
}

/// A log that cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {name}: {error}")]
pub struct AuditError {
    name: String,
    error: io::Error,
}

/// Reads all logs and judges their requests. `progress` is called after each chunk of a log.
///
/// # Errors
/// A log cannot be opened. One that breaks off is read up to there, and the report says so.
pub fn audit(
    inputs: &[Input],
    rules: &Rules,
    registry: &'static Registry,
    options: &Options,
    progress: &mut dyn FnMut(ReadSoFar),
) -> Result<Report, AuditError> {
    let mut size = Some(0);
    for input in inputs {
        let own = input.size().map_err(|error| AuditError {
            name: input.name(),
            error,
        })?;
        size = size.zip(own).map(|(all, own)| all + own);
    }
    let workers = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (sender, receiver) = sync_channel(2 * workers);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut reading = Reading {
        sender,
        size,
        taken: Arc::default(),
        lines: 0,
        damaged: Vec::new(),
        progress,
    };
    let (read, tally) = thread::scope(|scope| {
        let mut handles = Vec::new();
        for _ in 0..workers {
            let receiver = receiver.clone();
            let worker = move || work(Worker::new(rules, registry, options), &receiver);
            handles.push(scope.spawn(worker));
        }
        let read = inputs
            .iter()
            .enumerate()
            .try_for_each(|(index, input)| reading.input(index, input));
        // No more chunks follow: the workers end.
        let Reading {
            damaged, sender, ..
        } = reading;
        drop(sender);
        let mut tally = Tally::default();
        for handle in handles {
            tally.merge(
                handle
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        (read.map(|()| damaged), tally)
    });
    let damaged = read?;
    let networks = options.networks.as_ref();
    Ok(report(tally, rules, networks, inputs, damaged))
}

struct Reading<'a> {
    sender: SyncSender<Chunk>,
    size: Option<u64>,
    taken: Arc<AtomicU64>,
    lines: u64,
    damaged: Vec<Damaged>,
    progress: &'a mut dyn FnMut(ReadSoFar),
}

impl Reading<'_> {
    /// Reads one log, hands its chunks to the workers, and calls `progress` after each. A log that
    /// breaks off is added to `damaged`. `index` is its place among the logs.
    ///
    /// # Errors
    /// The log cannot be opened.
    fn input(&mut self, index: usize, input: &Input) -> Result<(), AuditError> {
        let opened = input.open(self.taken.clone());
        let mut opened = opened.map_err(|error| AuditError {
            name: input.name(),
            error,
        })?;
        let mut first_line = 1;
        while let Some(octets) = opened.chunk() {
            let lines = memchr::memchr_iter(b'\n', &octets).count() as u64;
            if self
                .sender
                .send(Chunk {
                    input: index,
                    first_line,
                    octets,
                })
                .is_err()
            {
                // The workers have ended, which they do only when one of them panics.
                return Ok(());
            }
            first_line += lines;
            self.lines += lines;
            let taken = self.taken.load(Ordering::Relaxed);
            (self.progress)(ReadSoFar {
                taken,
                size: self.size,
                lines: self.lines,
            });
        }
        self.damaged.extend(opened.damage.map(|error| Damaged {
            file: input.name(),
            error: error.to_string(),
        }));
        Ok(())
    }
}

fn work(mut worker: Worker<'_>, chunks: &Mutex<Receiver<Chunk>>) -> Tally {
    loop {
        let next = crate::locks::lock(chunks).recv();
        match next {
            Ok(chunk) => worker.read(&chunk),
            Err(_) => return worker.tally,
        }
    }
}
