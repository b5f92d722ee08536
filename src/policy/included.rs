//! [`IncludedFiles`]: the files of a policy directory that policies can name. These are HTML pages
//! that replace crawlgate's own, and the robots.txt that a site served before crawlgate.
//! [`Policy::include`] copies the contents of the named files into a policy.

use super::lint::catalogue as lints;
use super::model::{AnswerPages, Included, Policy, PreviousRobots};
use crate::robots::File;
use crate::yaml::Diagnostics;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The endings of files that a policy can name.
pub const ENDINGS: [&str; 2] = ["html", "txt"];
/// The largest file that is read, in octets.
pub const MAX_FILE: u64 = 512 * 1024;

/// The files of a policy directory that policies can name, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IncludedFiles(pub BTreeMap<String, Arc<[u8]>>);

impl Policy {
    /// Copies the contents of the files that the policy names into it. A file that is missing, and
    /// a .txt file that is a page of HTML, is a warning: the site works without it.
    pub fn include(&mut self, files: &IncludedFiles, diagnostics: &mut Diagnostics) {
        for included in self.included_mut() {
            included.bytes = files.0.get(&included.name.value).cloned();
            // An error page that was saved in place of the file is not what crawlers had.
            if included.name.ends_with(".txt")
                && included
                    .bytes
                    .as_ref()
                    .is_some_and(|bytes| File::parse(bytes.clone()).is_page(false))
            {
                included.bytes = None;
                let message = format!(
                    "`{}` is HTML and no robots.txt; crawlgate does not use it",
                    included.name.value
                );
                let finding = lints::NOT_A_ROBOTS_TXT.at(included.name.span, message);
                diagnostics.push(
                    finding.help(
                        "save the file with `curl -fsSL`, which fails where the site has none",
                    ),
                );
            } else if included.bytes.is_none() {
                let message = format!(
                    "the policy directory has no readable file `{}`",
                    included.name.value
                );
                let finding = lints::MISSING_FILE.at(included.name.span, message);
                diagnostics.push(finding.help(
                    "put the file beside the policy: at most 512 KiB, with the ending .html or .txt. Until then crawlgate \
                     goes on as if the line were not there",
                ));
            }
        }
    }

    /// Whether the policy names a file beside it.
    pub fn names_files(&self) -> bool {
        let AnswerPages {
            pause,
            failure,
            refusal,
        } = &self.answers;
        let has_page = [pause, failure, refusal].into_iter().any(Option::is_some);
        has_page || matches!(self.robots.previous, Some(PreviousRobots::File(_)))
    }

    /// The files that the policy names: the earlier robots.txt, then the pages for pause, failure
    /// and refusal.
    fn included_mut(&mut self) -> impl Iterator<Item = &mut Included> {
        let previous = match &mut self.robots.previous {
            Some(PreviousRobots::File(file)) => Some(file),
            _ => None,
        };
        let pages = &mut self.answers;
        let pages = [&mut pages.pause, &mut pages.failure, &mut pages.refusal];
        previous.into_iter().chain(pages.into_iter().flatten())
    }
}
