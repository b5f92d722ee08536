//! Noticing that policies changed: notifications for speed, a look every half minute for file systems that give none.

use super::Live;
use notify::{EventKind, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Network and overlay file systems notify nobody.
const NET: Duration = Duration::from_secs(30);

/// Keeps the watch alive; dropped, it ends.
pub struct WatchGuard {
    _watcher: notify::RecommendedWatcher,
    _stop: Sender<Heard>,
}

enum Heard {
    Change,
}

impl Live {
    /// Watches the directory in a thread of its own, and its parent too (a mounted ConfigMap or a deployment replaces the
    /// directory by a link to another). Calls `changed` when nothing more happened for `quiet`, or after ten times that
    /// when it never gets quiet. Never a file itself: the watch would be lost with the first rename.
    ///
    /// # Errors
    /// The watch cannot be set up.
    pub fn watch(
        self: &Arc<Live>,
        directory: &Path,
        quiet: Duration,
        changed: impl Fn() + Send + 'static,
    ) -> Result<WatchGuard, notify::Error> {
        let (sender, receiver) = mpsc::channel();
        let heard = sender.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading is no change.
            if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_))) {
                let _ = heard.send(Heard::Change);
            }
        })?;
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        if let Some(parent) = directory.canonicalize().ok().as_deref().and_then(Path::parent) {
            watcher.watch(parent, RecursiveMode::NonRecursive)?;
        }
        std::thread::Builder::new().name("policy-watch".into()).spawn(move || {
            loop {
                match receiver.recv_timeout(NET) {
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(Heard::Change) => {
                        let began = Instant::now();
                        loop {
                            match receiver.recv_timeout(quiet) {
                                Err(RecvTimeoutError::Disconnected) => return,
                                Err(RecvTimeoutError::Timeout) => break,
                                Ok(Heard::Change) if began.elapsed() > quiet * 10 => break,
                                Ok(Heard::Change) => {}
                            }
                        }
                    }
                }
                changed();
            }
        })?;
        Ok(WatchGuard { _watcher: watcher, _stop: sender })
    }
}
