//! [`raise`] raises the number of files that the process may open: every connection is one.

use crate::settings::Limits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside connections: listeners, logs, the state.
const OTHERS: u64 = 100;

/// Lets the process open as many files as the system allows it to, and says so if that is less than the settings need.
pub fn raise(limits: &Limits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = current == maximum || setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let files = if raised { maximum } else { current };
    let connections = u64::try_from(limits.connections).unwrap_or(u64::MAX);
    let needed = connections.saturating_add(OTHERS);
    if let Some(files) = files.filter(|files| *files < needed) {
        tracing::warn!(
            "the process may open {files} files, fewer than `limits.connections: {connections}`; raise LimitNOFILE or \
             ulimit -n, or lower the limit"
        );
    }
}
