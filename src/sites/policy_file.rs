//! A policy file. [`SiteCompiler`] compiles its text to a [`Candidate`]: the findings about the
//! file, and the site if the file has no mistake. [`KnownFile`] is the file as crawlgate last read
//! it, and [`ReloadReport`] the outcome of a reload of all files.
//!
//! Every reading of a changed file moves it to one of these states:
//! - active: it has no mistake, its hosts are free, and it is in force;
//! - missing: it is gone, and its last good policy is in force;
//! - rejected: it has a mistake, and an earlier policy is in force;
//! - conflicting: another site has one of its hosts; an earlier policy is in force if there is one;
//! - invalid: it has a mistake, and no policy is in force.

use super::host_owners::HostConflict;
use super::policy_directory::{PolicyText, is_removed};
use crate::crawlers::Registry;
use crate::finding::Finding;
use crate::policy::lint::allow_published_proof;
use crate::policy::origin::Origin;
use crate::policy::{IncludedFiles, Site, SiteEntry};
use crate::time::Timestamp;
use crate::verdict::Surroundings;
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Findings of one file that are told one by one.
const MAX_TOLD: usize = 20;

/// The function that decodes, checks and compiles a policy file: `verdict::load_with`.
pub type Read = fn(
    &str,
    &Source,
    Surroundings<'_>,
    &'static Registry,
    Timestamp,
) -> (Option<Arc<Site>>, Diagnostics);

/// Compiles policies.
pub struct SiteCompiler {
    /// Decodes, checks and compiles a file.
    pub read: Read,
    /// The files in the policy directory that policies may name.
    pub files: IncludedFiles,
    /// Whether the settings allow proof by what the operators of crawlers publish.
    pub published_proof: bool,
}

impl SiteCompiler {
    /// Compiles one file with what is known of its origin's robots.txt. A text that could not be
    /// read gives a candidate without a site, with the finding that says why. A panic of the
    /// compiler becomes a finding about this file, so that other sites still load.
    pub fn compile(
        &self,
        name: &str,
        text: &PolicyText,
        origin: &Origin,
        now: Timestamp,
    ) -> Candidate {
        let source = match text {
            Ok(source) => source,
            Err(unreadable) => {
                return Candidate {
                    source: Source {
                        name: unreadable.path.clone().into(),
                        text: "".into(),
                    },
                    site: None,
                    findings: Diagnostics {
                        items: vec![unreadable.diagnostic()],
                    },
                };
            }
        };
        let surroundings = Surroundings {
            origin,
            files: &self.files,
        };
        let read =
            AssertUnwindSafe(|| (self.read)(name, source, surroundings, Registry::builtin(), now));
        let (site, mut findings) = catch_unwind(read).unwrap_or_else(|_| {
            let finding =
                Diagnostic::whole_file("internal-error", "crawlgate itself fails on this file")
                    .help("this is a mistake in crawlgate: please report it, with the file");
            (
                None,
                Diagnostics {
                    items: vec![finding],
                },
            )
        });
        if let Some(site) = site.as_ref().filter(|_| self.published_proof) {
            allow_published_proof(site, Registry::builtin(), &mut findings);
        }
        Candidate {
            source: source.clone(),
            site,
            findings,
        }
    }
}

/// A file that was compiled.
pub struct Candidate {
    source: Source,
    /// The site, if the file has no mistake.
    pub site: Option<Arc<Site>>,
    findings: Diagnostics,
}

impl Candidate {
    /// Takes the site away, because another site has one of its hosts, and adds the finding about
    /// that. `owner_is_gone`: the file of that other site is gone, and the finding says what to do
    /// then. Does nothing if there is no site.
    pub fn refuse(&mut self, conflict: &HostConflict, owner_is_gone: bool) {
        if let Some(site) = self.site.take() {
            let mut finding = conflict.diagnostic(&site);
            if owner_is_gone {
                finding = finding.help(format!(
                    "its file is gone, and not all its hosts are in other files: name them, or end that site with `crawlgate \
                     reload --remove {}`",
                    conflict.owner
                ));
            }
            self.findings.push(finding);
            self.findings.sort();
        }
    }

    /// One line for each error and warning, the errors first: for the log and the status. Notes,
    /// and what is beyond [`MAX_TOLD`], are left to `crawlgate check`.
    pub fn findings(&self) -> Vec<Finding> {
        let mut worst: Vec<&Diagnostic> = self
            .findings
            .items
            .iter()
            .filter(|item| item.severity != Severity::Note)
            .collect();
        worst.sort_by_key(|item| std::cmp::Reverse(item.severity));
        told(
            &worst,
            |item| item.one_line(&self.source),
            ": `crawlgate check` shows them all",
        )
    }

    /// The errors with their help, `MAX_TOLD` at most and then how many more there are. For an
    /// operator who has no file to run `crawlgate check` on.
    pub fn refusals(&self) -> Vec<Finding> {
        told(&self.errors(), |item| item.with_help(&self.source), "")
    }

    /// All errors at length, for a start that fails.
    pub fn rendered(&self) -> String {
        self.errors()
            .iter()
            .map(|item| item.render(&self.source, false) + "\n")
            .collect()
    }

    fn errors(&self) -> Vec<&Diagnostic> {
        self.findings
            .items
            .iter()
            .filter(|item| item.severity == Severity::Error)
            .collect()
    }
}

/// The first `MAX_TOLD` of these findings, each with the message that `text` makes of it. If there
/// are more, a last finding with the id `more` says `and N more` and the hint.
fn told(items: &[&Diagnostic], text: impl Fn(&Diagnostic) -> String, hint: &str) -> Vec<Finding> {
    let mut told = Vec::new();
    for item in items.iter().take(MAX_TOLD) {
        told.push(Finding::new(item.id, text(item)));
    }
    if let more @ 1.. = items.len().saturating_sub(MAX_TOLD) {
        told.push(Finding::new("more", format!("and {more} more{hint}")));
    }
    told
}

/// A policy file as it was last read, good or not.
#[derive(Debug)]
pub struct KnownFile {
    /// Its text.
    pub text: PolicyText,
    /// See [`Candidate::findings`].
    pub findings: Vec<Finding>,
    /// See [`Candidate::rendered`].
    pub rendered: String,
    /// The policy in force.
    pub in_force: Option<InForce>,
    /// The site that has one of its hosts.
    pub conflicts_with: Option<String>,
}

/// The policy in force of a file.
#[derive(Debug)]
pub struct InForce {
    /// Its site.
    pub entry: SiteEntry,
    /// Where it comes from.
    pub origin: PolicyOrigin,
}

/// Where the policy in force comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// The file as it was last read.
    File,
    /// The same file, read earlier by this process.
    Earlier,
    /// The state store.
    Store,
}

impl KnownFile {
    /// The site in force.
    pub fn entry(&self) -> Option<&SiteEntry> {
        self.in_force.as_ref().map(|in_force| &in_force.entry)
    }

    /// Where the policy in force comes from.
    pub fn origin(&self) -> Option<PolicyOrigin> {
        self.in_force.as_ref().map(|in_force| in_force.origin)
    }

    /// Whether the file as it was last read is in force.
    pub fn is_active(&self) -> bool {
        self.origin() == Some(PolicyOrigin::File)
    }

    /// Whether the file is gone.
    pub fn is_missing(&self) -> bool {
        is_removed(&self.text)
    }

    /// The outcome of a reload that finds the file as it was: `Missing` if it is gone; else by what
    /// is in force: this text, an older policy (`Kept`), or nothing (`Refused`).
    pub fn outcome_when_unchanged(&self) -> ReloadOutcome {
        if self.is_missing() {
            return ReloadOutcome::Missing;
        }
        match self.origin() {
            Some(PolicyOrigin::File) => ReloadOutcome::Unchanged,
            Some(_) => ReloadOutcome::Kept,
            None => ReloadOutcome::Refused,
        }
    }
}

/// The outcome of a reload, per site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
    /// What is wrong with the directory itself.
    pub problem: Option<Finding>,
    /// Why new policies are not in force yet, though nothing is wrong with them.
    pub waiting: Option<Finding>,
}

impl ReloadReport {
    /// Whether every file is in force as it stands, the directory could be read, and nothing waits.
    pub fn is_whole(&self) -> bool {
        self.problem.is_none()
            && self.waiting.is_none()
            && !self.sites.iter().any(|site| site.outcome.needs_attention())
    }
}

/// One site's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReload {
    /// The site.
    pub site: String,
    /// The outcome.
    pub outcome: ReloadOutcome,
    /// `file:line:column: error[id]: message`, in the order of the file.
    pub findings: Vec<Finding>,
}

/// The outcome for a site's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReloadOutcome {
    /// The file is new, and its policy is in force.
    Added,
    /// The file is as it was, and its policy is in force.
    Unchanged,
    /// The new policy is in force.
    Replaced,
    /// The file is refused; the old policy stays in force.
    Kept,
    /// The file is refused, and there is no old policy: none is in force.
    Refused,
    /// The file is gone; the last good policy stays in force, until its end is confirmed.
    Missing,
    /// The file is gone, and with it the site.
    Removed,
}

impl ReloadOutcome {
    /// Whether the file, as it is on disk, is not in force.
    fn needs_attention(self) -> bool {
        matches!(
            self,
            ReloadOutcome::Kept | ReloadOutcome::Refused | ReloadOutcome::Missing
        )
    }
}

/// Why sites cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// No such site.
    #[error("there is no site `{site}`: the sites are {}", .sites.join(", "))]
    UnknownSite {
        /// The name.
        site: String,
        /// The sites with a policy file.
        sites: Vec<String>,
    },
    /// The policy file is there.
    #[error(
        "the policy file of `{site}` is there ({path}): delete it first, or the site would be back at once"
    )]
    FileExists {
        /// The site.
        site: String,
        /// The file.
        path: String,
    },
    /// The policy directory cannot be read.
    #[error("{0}; nothing was removed")]
    Directory(String),
}

impl RemoveError {
    /// Its id.
    pub fn id(&self) -> &'static str {
        match self {
            RemoveError::UnknownSite { .. } => "unknown-site",
            RemoveError::FileExists { .. } => "file-exists",
            RemoveError::Directory(_) => "policy-directory",
        }
    }
}
