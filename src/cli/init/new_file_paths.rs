//! [`NewFilePaths`]: the files that the command `init` writes. These are the policy, a copy of the
//! robots.txt that the site served before, and the settings if there are none yet. No existing file
//! is overwritten.

use crate::cli::server_flags::load_settings_alone;
use crate::cli::{Failure, Result, write_new_file};
use crate::printable::{join, printable_path};
use crate::settings::{OriginIndex, OriginServerAddress};
use crate::sites::policy_directory::list_policies;
use std::fs;
use std::path::{Path, PathBuf};

/// The paths of the files.
pub struct NewFilePaths {
    /// The policy directory.
    pub policies: PathBuf,
    pub policy: PathBuf,
    /// In the policy directory, too.
    pub before: PathBuf,
    pub settings: PathBuf,
    /// Whether the settings exist, and stay as they are.
    pub is_second_site: bool,
    /// Whether requests of the site already reach its origin with them.
    pub has_origin: bool,
    /// The servers of all hosts that they do not name.
    pub other_servers: Vec<String>,
}

impl NewFilePaths {
    /// The files of a site in a directory. Fails if its settings have mistakes.
    pub fn new(directory: &Path, site: &str, origin: &OriginServerAddress) -> Result<NewFilePaths> {
        let directory = if directory == Path::new(".") {
            Path::new("")
        } else {
            directory
        };
        let settings = directory.join("crawlgate.yaml");
        let is_second_site = settings.symlink_metadata().is_ok();
        let mut has_origin = false;
        let mut other_servers = Vec::new();
        let (policies, before) = if is_second_site {
            let found = load_settings_alone(&settings)?;
            let index = OriginIndex::new(&found.origins);
            if let Some(reached) = index.find(site.as_bytes(), b"/") {
                let reached = &found.origins[reached];
                has_origin = reached.hosts.iter().any(|host| host == site)
                    || reached
                        .servers
                        .iter()
                        .all(|server| server.address == *origin);
                if reached.hosts.is_empty() {
                    other_servers.extend(reached.servers.iter().map(|server| server.address.url()));
                }
            }
            (found.policies, format!("before-{site}.txt"))
        } else {
            (directory.join("policies"), "before.txt".to_owned())
        };
        Ok(NewFilePaths {
            policy: policies.join(format!("{site}.yaml")),
            before: policies.join(before),
            settings,
            policies,
            is_second_site,
            has_origin,
            other_servers,
        })
    }

    /// The other policies in the directory of a first site, which crawlgate uses as well.
    pub fn other_policies(&self) -> Vec<String> {
        if self.is_second_site {
            return Vec::new();
        }
        list_policies(&self.policies)
            .unwrap_or_default()
            .into_iter()
            .filter(|path| *path != self.policy)
            .map(|path| printable_path(&path))
            .collect()
    }

    /// The files to write.
    fn all(&self) -> Vec<&Path> {
        let mut files: Vec<&Path> = vec![&self.policy, &self.before];
        if !self.is_second_site {
            files.push(&self.settings);
        }
        files
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
            "init overwrites nothing, and these files exist: {}. Delete them, or name another directory: crawlgate init DIR",
            join(existing, ", ")
        )))
    }

    /// Writes the files, without `before` if there is none. Leaves none if one cannot be written.
    pub fn write(&self, policy: &str, before: Option<&[u8]>, settings: &str) -> Result {
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
