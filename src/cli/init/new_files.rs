//! [`NewFiles`]: the three files that `init` writes. It overwrites nothing.

use crate::cli::{Failure, Result, file_failure, write_new_file};
use crate::printable::{join, printable_path};
use std::fs;
use std::path::{Path, PathBuf};

/// The paths of the files.
pub struct NewFiles {
    /// The policy directory.
    pub policies: PathBuf,
    pub policy: PathBuf,
    pub before: PathBuf,
    pub settings: PathBuf,
}

impl NewFiles {
    /// The files of a site in a directory.
    pub fn new(directory: &Path, site: &str) -> NewFiles {
        let here = Path::new(".");
        let directory = if directory == here {
            Path::new("")
        } else {
            directory
        };
        let policies = directory.join("policies");
        NewFiles {
            policy: policies.join(format!("{site}.yaml")),
            before: policies.join("before.txt"),
            settings: directory.join("crawlgate.yaml"),
            policies,
        }
    }

    fn all(&self) -> [&Path; 3] {
        [&self.policy, &self.before, &self.settings]
    }

    /// Fails if one of the files exists.
    pub fn require_absent(&self) -> Result {
        let existing: Vec<String> = self
            .all()
            .into_iter()
            .filter(|path| path.symlink_metadata().is_ok())
            .map(printable_path)
            .collect();
        if existing.is_empty() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "init overwrites nothing, and these files exist: {}. Remove them, or name another directory: crawlgate init DIR",
            join(existing, ", ")
        )))
    }

    /// Writes the files, without `before` if there is none. Leaves none if one cannot be written.
    pub fn write(&self, policy: &str, before: Option<&[u8]>, settings: &str) -> Result {
        fs::create_dir_all(&self.policies).map_err(file_failure("create", &self.policies))?;
        let contents = [Some(policy.as_bytes()), before, Some(settings.as_bytes())];
        let mut written = Vec::new();
        for (path, bytes) in std::iter::zip(self.all(), contents) {
            let Some(bytes) = bytes else { continue };
            if let Err(failure) = write_new_file(path, bytes) {
                remove(&written);
                return Err(failure);
            }
            written.push(path);
        }
        Ok(())
    }

    /// Removes the files, and the policy directory if it is empty.
    pub fn remove(&self) {
        remove(&self.all());
        let _ = fs::remove_dir(&self.policies);
    }
}

fn remove(files: &[&Path]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}
