//! [`Repository`]: the root of the checkout. It makes names of files relative to that root, as code hosts have them.

use std::env;
use std::path::{Component, Path, PathBuf};

/// The checkout of the files that are checked.
pub(super) struct Repository {
    /// The current directory.
    current: PathBuf,
    /// The directory that names are relative to.
    root: PathBuf,
}

impl Repository {
    /// The checkout of the workflow that runs here, else the current directory.
    pub(super) fn here() -> Repository {
        let current = env::current_dir().unwrap_or_default();
        let workspace = env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
        let root = workspace.filter(|root| current.starts_with(root)).unwrap_or_else(|| current.clone());
        Repository { current, root }
    }

    /// The name of a file. A URL, and a file from elsewhere, keep theirs.
    pub(super) fn name(&self, given: &str) -> String {
        if given.contains("://") {
            return given.to_owned();
        }
        let mut file = PathBuf::new();
        for component in self.current.join(given).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    file.pop();
                }
                other => file.push(other),
            }
        }
        file.strip_prefix(&self.root).unwrap_or(Path::new(given)).display().to_string()
    }
}
