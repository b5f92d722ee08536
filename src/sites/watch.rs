//! [`watch()`] notices changes of the policy directory by notifications of the file system. It also
//! has the directory read every half minute, for file systems that send none.

use crate::locks::lock;
use crate::threads::spawn;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Network and overlay file systems send no notifications.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Keeps the watch alive; dropped, it ends.
pub struct WatchGuard {
    _watch: Arc<Mutex<Watch>>,
}

/// The watcher and what it watches at the moment.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    directory: PathBuf,
    /// The directory, where it is there: another one may get its name.
    watched: Option<(u64, u64)>,
    /// The nearest directory above it that is there.
    above: Option<(PathBuf, (u64, u64))>,
}

/// Watches the directory in a thread of its own, and the nearest directory above it that exists: a
/// deployment may replace the directory, or make it after the start. Files themselves are not
/// watched, because the first rename would end that.
///
/// The thread calls `changed` when nothing more happened for `quiet`, or after ten times that where
/// changes do not stop. It also calls `changed` every half minute, for file systems that send no
/// notifications.
///
/// # Errors
/// The thread cannot be started.
pub fn watch(
    directory: &Path,
    quiet: Duration,
    changed: impl Fn() + Send + 'static,
) -> Result<WatchGuard, notify::Error> {
    let directory = std::path::absolute(directory)?;
    // One change that waits says as much as a thousand.
    let (sender, changes) = mpsc::sync_channel(1);
    let of_interest = directory.clone();
    let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.map_or(true, |event| concerns(&event, &of_interest)) {
            let _ = sender.try_send(());
        }
    });
    if let Err(error) = &watcher {
        tracing::warn!(%error, "policies are not watched: they are read every 30 seconds");
    }
    let mut watch = Watch {
        watcher: watcher.ok(),
        directory,
        watched: None,
        above: None,
    };
    watch.follow();
    let watch = Arc::new(Mutex::new(watch));
    let followed = Arc::downgrade(&watch);
    spawn("policy-watch", move || {
        run(&changes, quiet, &followed, changed)
    })?;
    Ok(WatchGuard { _watch: watch })
}

/// Calls `changed` after changes that ceased for `quiet` (or went on for ten times that), and every
/// half minute. Ends when the guard is dropped, and with it the watch.
fn run(changes: &Receiver<()>, quiet: Duration, watch: &Weak<Mutex<Watch>>, changed: impl Fn()) {
    loop {
        match changes.recv_timeout(LOOK_EVERY) {
            // Without a watcher there is no sender either: the guard alone says when to end.
            Err(RecvTimeoutError::Disconnected) if watch.strong_count() == 0 => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::park_timeout(LOOK_EVERY),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) => {
                let began = Instant::now();
                while changes.recv_timeout(quiet).is_ok() && began.elapsed() <= quiet * 10 {}
            }
        }
        match watch.upgrade() {
            // Before the directory is read, or a change between the two would be missed.
            Some(watch) => lock(&watch).follow(),
            None => return,
        }
        changed();
    }
}

impl Watch {
    /// Watches the directory that has the name now, and the nearest existing directory above it,
    /// where these are others than before. What cannot be watched is logged. Does nothing without a
    /// watcher.
    fn follow(&mut self) {
        let Watch {
            watcher: Some(watcher),
            directory,
            watched,
            above,
        } = self
        else {
            return;
        };
        let nearest = directory
            .ancestors()
            .skip(1)
            .find_map(|above| Some((above.to_owned(), identity(above)?)));
        // First: a directory that is made in between is noticed.
        if nearest != *above {
            if let Some((former, _)) = above.take() {
                // The system forgot a directory that is gone; then there is nothing to end.
                let _ = watcher.unwatch(&former);
            }
            if let Some(nearest) = nearest {
                match watcher.watch(&nearest.0, RecursiveMode::NonRecursive) {
                    Ok(()) => *above = Some(nearest),
                    Err(error) => {
                        tracing::debug!(%error, "what replaces the policy directory is noticed within 30 seconds")
                    }
                }
            }
        }
        let is = identity(directory);
        if is == *watched {
            return;
        }
        let _ = watcher.unwatch(directory);
        *watched = is;
        // A directory that is not there yet is noticed by what is above it.
        if is.is_some()
            && let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive)
        {
            tracing::warn!(%error, "the policy directory is not watched: it is read every 30 seconds");
        }
    }
}

/// The device and the inode of the directory that has this name now.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path)
        .ok()
        .filter(|metadata| metadata.is_dir())
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether an event says something about the directory, or about a directory above it. Our own
/// reading is no change, and what else lies beside the directory (a log, say) is no policy. An
/// event without paths means that some were lost.
fn concerns(event: &Event, directory: &Path) -> bool {
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let mut paths = event.paths.iter();
    event.paths.is_empty()
        || paths.any(|path| path.starts_with(directory) || directory.starts_with(path))
}
