//! [`watch()`] calls a function when a file in the policy directory changes. Some file systems send
//! no notification of a change, so [`watch()`] also calls the function every half minute.

use crate::locks::lock;
use crate::threads::spawn;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Network and overlay file systems send no notifications.
const POLL_EVERY: Duration = Duration::from_secs(30);

/// Keeps the watch alive until it is dropped.
pub struct WatchGuard {
    _watch: Arc<Mutex<DirectoryWatch>>,
}

/// The watcher, and the directories that it watches at present.
struct DirectoryWatch {
    watcher: Option<RecommendedWatcher>,
    directory: PathBuf,
    /// Device and inode of the directory, if it exists: another one may get its name.
    watched: Option<(u64, u64)>,
    /// The nearest existing directory above it.
    parent: Option<(PathBuf, (u64, u64))>,
}

/// Watches the directory in a thread of its own, and the nearest existing directory above it: a
/// deployment may replace the directory, or make it after the start. Files themselves are not
/// watched, because the first rename would end that.
///
/// The thread calls `changed` when nothing has changed for `quiet`, at most after ten times that. It
/// also calls `changed` every half minute, for file systems that send no notifications.
///
/// # Errors
/// The thread cannot be started.
pub fn watch(
    directory: &Path,
    quiet: Duration,
    changed: impl Fn() + Send + 'static,
) -> Result<WatchGuard, notify::Error> {
    let directory = std::path::absolute(directory)?;
    // One waiting change is enough.
    let (sender, changes) = mpsc::sync_channel(1);
    let watched_directory = directory.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.map_or(true, |event| is_relevant(&event, &watched_directory)) {
            let _ = sender.try_send(());
        }
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "the policy directory cannot be watched: crawlgate reads it every 30 seconds");
    }
    let mut watch = DirectoryWatch {
        watcher: watcher.ok(),
        directory,
        watched: None,
        parent: None,
    };
    watch.update_watches();
    let watch = Arc::new(Mutex::new(watch));
    let followed = Arc::downgrade(&watch);
    spawn("policy-watch", move || {
        run_loop(&changes, quiet, &followed, changed)
    })?;
    Ok(WatchGuard { _watch: watch })
}

/// Calls `changed` when changes have ceased for `quiet` (or gone on for ten times that), and every
/// half minute. Ends when the guard is dropped.
fn run_loop(
    changes: &Receiver<()>,
    quiet: Duration,
    watch: &Weak<Mutex<DirectoryWatch>>,
    changed: impl Fn(),
) {
    loop {
        match changes.recv_timeout(POLL_EVERY) {
            // Without a watcher there is no sender either; only the guard ends the loop.
            Err(RecvTimeoutError::Disconnected) if watch.strong_count() == 0 => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::park_timeout(POLL_EVERY),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) => {
                let began = Instant::now();
                while changes.recv_timeout(quiet).is_ok() && began.elapsed() <= quiet * 10 {}
            }
        }
        match watch.upgrade() {
            // Before the directory is read, or a change between the two would be missed.
            Some(watch) => lock(&watch).update_watches(),
            None => return,
        }
        changed();
    }
}

impl DirectoryWatch {
    /// Watches the directory that has the name now, and the nearest existing directory above it, if
    /// they have changed. Logs failures. Does nothing without a watcher.
    fn update_watches(&mut self) {
        let DirectoryWatch {
            watcher: Some(watcher),
            directory,
            watched,
            parent,
        } = self
        else {
            return;
        };
        let nearest = directory
            .ancestors()
            .skip(1)
            .find_map(|parent| Some((parent.to_owned(), directory_id(parent)?)));
        // First: a directory that is made in between is noticed.
        if nearest != *parent {
            if let Some((former, _)) = parent.take() {
                // The system forgot a directory that is gone; then there is nothing to end.
                let _ = watcher.unwatch(&former);
            }
            if let Some(nearest) = nearest {
                match watcher.watch(&nearest.0, RecursiveMode::NonRecursive) {
                    Ok(()) => *parent = Some(nearest),
                    Err(error) => {
                        tracing::debug!(%error, "a replaced policy directory is noticed within 30 seconds")
                    }
                }
            }
        }
        let current = directory_id(directory);
        if current == *watched {
            return;
        }
        let _ = watcher.unwatch(directory);
        *watched = current;
        // The directory above shows when the directory is made.
        if current.is_some()
            && let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive)
        {
            tracing::warn!(%error, "the policy directory cannot be watched: crawlgate reads it every 30 seconds");
        }
    }
}

/// The device and the inode of the directory at this path.
fn directory_id(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path)
        .ok()
        .filter(|metadata| metadata.is_dir())
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether an event is about the directory, or about a directory above it. Reading is no change, and
/// other files beside the directory are no policies. An event without paths means that events were
/// lost.
fn is_relevant(event: &Event, directory: &Path) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let mut paths = event.paths.iter();
    event.paths.is_empty()
        || paths.any(|path| path.starts_with(directory) || directory.starts_with(path))
}
