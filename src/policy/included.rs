//! [`IncludedFiles`]: the files in the policy directory that a policy can refer to by name. These
//! are HTML pages that replace crawlgate's own, and the robots.txt that the site served before
//! crawlgate. [`Policy::include`] copies the contents of the named files into a policy.

use super::lint::catalogue as lints;
use super::model::{IncludedFile, Policy, PreviousRobots};
use crate::robots::RobotsFile;
use crate::yaml::Diagnostics;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The extensions of files that a policy can name.
pub const EXTENSIONS: [&str; 2] = ["html", "txt"];
/// The size of the largest file that is read.
pub const MAX_BYTES: u64 = 512 * 1024;

/// The contents of files beside the policies, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IncludedFiles(pub BTreeMap<String, Arc<[u8]>>);

impl Policy {
    /// Copies the contents of the files that the policy names into it. A missing file, and a .txt
    /// file with HTML in it, is a warning: the site works without it.
    pub fn include(&mut self, files: &IncludedFiles, diagnostics: &mut Diagnostics) {
        for included in self.included_files_mut() {
            included.bytes = files.0.get(&included.name.value).cloned();
            // Somebody saved an error page in place of the file.
            if included.name.ends_with(".txt")
                && included
                    .bytes
                    .as_ref()
                    .is_some_and(|bytes| RobotsFile::parse(bytes.clone()).is_html_page(false))
            {
                included.bytes = None;
                let message = format!(
                    "\"{}\" is an HTML page, not a robots.txt, so crawlgate does not use it",
                    included.name.value
                );
                let finding = lints::NOT_A_ROBOTS_TXT.finding(included.name.span, message);
                diagnostics.push(finding.help(
                    "save the file with \"curl -fsSL\": it fails if the site has no robots.txt",
                ));
            } else if included.bytes.is_none() {
                let message = format!(
                    "the policy directory has no readable file \"{}\"",
                    included.name.value
                );
                diagnostics.push(lints::MISSING_FILE.finding(included.name.span, message).help(
                    "put the file into the policy directory: at most 512 KiB, with the ending \
                     .html or .txt. Until then crawlgate ignores this line",
                ));
            }
        }
    }

    pub fn has_included_files(&self) -> bool {
        let pages = &self.answers;
        pages.pause.is_some()
            || pages.failure.is_some()
            || pages.refusal.is_some()
            || matches!(self.robots.previous, Some(PreviousRobots::File(_)))
    }

    fn included_files_mut(&mut self) -> impl Iterator<Item = &mut IncludedFile> {
        let previous = match &mut self.robots.previous {
            Some(PreviousRobots::File(file)) => Some(file),
            _ => None,
        };
        let pages = &mut self.answers;
        previous.into_iter().chain(
            [&mut pages.pause, &mut pages.failure, &mut pages.refusal]
                .into_iter()
                .flatten(),
        )
    }
}
