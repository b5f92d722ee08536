//! [`SiteCompiler`] compiles the text of a policy file to a [`CompiledPolicy`]: the findings about
//! the file, and the site if the file has no mistake. [`PolicyFile`] is a file as crawlgate last
//! read it, and [`ReloadReport`] the outcome of a reload of all files.
//!
//! When a changed file has been read, it is in one of these states:
//! - active: it has no mistake, its hosts are free, and it is in force;
//! - missing: it is gone, and its last good policy is in force;
//! - rejected: it has a mistake, and an earlier policy is in force;
//! - conflicting: another site has one of its hosts; an earlier policy is in force if there is one;
//! - invalid: it has a mistake, and no policy is in force.

use super::StartError;
use super::host_owners::HostConflict;
use super::pauses::nearest_sites;
use super::policy_directory::{PolicyText, check_command, is_removed};
use crate::crawlers::Registry;
use crate::finding::Finding;
use crate::policy::lint::remove_provable_findings;
use crate::policy::origin::OriginRobotsAvailability;
use crate::policy::{IncludedFiles, Site, SiteEntry};
use crate::time::Timestamp;
use crate::verdict::PolicyDependencies;
use crate::yaml::{Diagnostic, Diagnostics, Severity, SourceFile};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ReloadOutcome::*;

/// The most findings of a file that are logged and shown.
const MAX_LOGGED_FINDINGS: usize = 20;

/// The function that decodes, checks and compiles a policy file: `verdict::load_site_at`.
pub type CompileFn = fn(
    &str,
    &SourceFile,
    PolicyDependencies<'_>,
    &'static Registry,
    Timestamp,
) -> (Option<Arc<Site>>, Diagnostics);

/// Compiles policies.
pub struct SiteCompiler {
    /// Decodes, checks and compiles a file.
    pub compile: CompileFn,
    /// The files in the policy directory that policies may name.
    pub files: IncludedFiles,
    /// Whether the settings allow proof by networks that the operators of crawlers publish.
    pub published_proof: bool,
}

impl SiteCompiler {
    /// Compiles one file with this state of its origin's robots.txt. A text that could not be read
    /// becomes a finding. So does a panic of the compiler, so that other sites still load.
    pub fn compile(
        &self,
        name: &str,
        text: &PolicyText,
        origin: &OriginRobotsAvailability,
        now: Timestamp,
    ) -> CompiledPolicy {
        let source = match text {
            Ok(source) => source,
            Err(unreadable) => {
                return CompiledPolicy {
                    source: SourceFile {
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
        let surroundings = PolicyDependencies {
            origin,
            files: &self.files,
        };
        let read = AssertUnwindSafe(|| {
            (self.compile)(name, source, surroundings, Registry::builtin(), now)
        });
        let (site, mut findings) = catch_unwind(read).unwrap_or_else(|_| {
            let finding =
                Diagnostic::whole_file("internal-error", "crawlgate itself failed on this file")
                    .help("this is a fault of crawlgate: please report it, with the file");
            (
                None,
                Diagnostics {
                    items: vec![finding],
                },
            )
        });
        if let Some(site) = site.as_ref().filter(|_| self.published_proof) {
            remove_provable_findings(site, Registry::builtin(), &mut findings);
        }
        CompiledPolicy {
            source: source.clone(),
            site,
            findings,
        }
    }
}

/// The result of compiling a policy file.
pub struct CompiledPolicy {
    source: SourceFile,
    /// The site, if the file has no mistake.
    pub site: Option<Arc<Site>>,
    findings: Diagnostics,
}

impl CompiledPolicy {
    /// Removes the site, because another site has one of its hosts, and adds a finding.
    /// `owner_is_gone`: the file of that other site is missing, and the finding says what to do.
    /// Does nothing if there is no site.
    pub fn reject_for_conflict(&mut self, conflict: &HostConflict, owner_is_gone: bool) {
        if let Some(site) = self.site.take() {
            let mut finding = conflict.diagnostic(&site);
            if owner_is_gone {
                finding = finding.help(format!(
                    "its file is gone, and not all its hosts are in other files. Add them there, or end the site \
                     with \"crawlgate reload --remove {}\"",
                    conflict.owner.name
                ));
            }
            self.findings.push(finding);
            self.findings.sort();
        }
    }

    /// One line for each error and warning, the errors first, for the log and the status. Notes, and
    /// findings beyond [`MAX_LOGGED_FINDINGS`], are left to `crawlgate check`.
    pub fn findings(&self) -> Vec<Finding> {
        let mut worst: Vec<&Diagnostic> = self
            .findings
            .items
            .iter()
            .filter(|item| item.severity != Severity::Note)
            .collect();
        worst.sort_by_key(|item| std::cmp::Reverse(item.severity));
        limited_findings(
            &worst,
            |item| item.one_line(&self.source),
            &format!(
                ". To see them all, run \"{}\"",
                check_command(&self.source.name)
            ),
        )
    }

    /// The errors with their help, at most [`MAX_LOGGED_FINDINGS`] and then how many more there are.
    /// For errors that `crawlgate check` does not show, because they come from the origin's file.
    pub fn errors_with_help(&self) -> Vec<Finding> {
        limited_findings(
            &self.errors(),
            |item| item.one_line_with_help(&self.source),
            "",
        )
    }

    /// All errors with their lines of the file, for a start that fails.
    pub fn render_errors(&self) -> String {
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

/// At most [`MAX_LOGGED_FINDINGS`] findings, with messages by `text`. If there are more, a last
/// finding with the id `more` says `and N more` and the hint.
fn limited_findings(
    items: &[&Diagnostic],
    text: impl Fn(&Diagnostic) -> String,
    hint: &str,
) -> Vec<Finding> {
    let mut limited = Vec::new();
    for item in items.iter().take(MAX_LOGGED_FINDINGS) {
        limited.push(Finding::new(item.id, text(item)));
    }
    if let more @ 1.. = items.len().saturating_sub(MAX_LOGGED_FINDINGS) {
        limited.push(Finding::new("more", format!("and {more} more{hint}")));
    }
    limited
}

/// A policy file as it was last read.
pub struct PolicyFile {
    /// Its text.
    pub text: PolicyText,
    /// See [`CompiledPolicy::findings`].
    pub findings: Vec<Finding>,
    /// See [`CompiledPolicy::render_errors`].
    pub rendered: String,
    /// The policy in force.
    pub active: Option<ActivePolicy>,
    /// The site that has one of its hosts.
    pub conflicts_with: Option<String>,
}

/// The policy in force of a file.
pub struct ActivePolicy {
    /// Its site.
    pub entry: SiteEntry,
    /// Where it comes from.
    pub source: PolicySource,
}

/// Where the policy in force comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PolicySource {
    /// The file as it was last read.
    File,
    /// The same file, read earlier by this process.
    Earlier,
    /// The state store.
    Store,
}

impl PolicyFile {
    /// The site in force.
    pub fn entry(&self) -> Option<&SiteEntry> {
        self.active.as_ref().map(|active| &active.entry)
    }

    /// Where the policy in force comes from.
    pub fn source(&self) -> Option<PolicySource> {
        self.active.as_ref().map(|active| active.source)
    }

    /// Whether the file as it was last read is in force.
    pub fn is_active(&self) -> bool {
        self.source() == Some(PolicySource::File)
    }

    /// Whether the file is gone.
    pub fn is_missing(&self) -> bool {
        is_removed(&self.text)
    }

    /// The outcome of a reload for an unchanged file: `Missing` if it is gone; otherwise by the
    /// policy in force: this text (`Unchanged`), an older one (`Kept`), or none (`Refused`).
    pub fn unchanged_outcome(&self) -> ReloadOutcome {
        if self.is_missing() {
            return Missing;
        }
        match self.source() {
            Some(PolicySource::File) => Unchanged,
            Some(_) => Kept,
            None => Refused,
        }
    }
}

/// The outcome of a reload, per site.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
    /// The problem with the directory itself.
    pub problem: Option<Finding>,
    /// Why new policies without mistakes are not in force yet.
    pub waiting: Option<Finding>,
    /// Says that the process of the last upgrade still answers requests, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<Finding>,
}

impl ReloadReport {
    /// Whether every file is in force, the directory could be read, and nothing waits.
    pub fn is_complete(&self) -> bool {
        self.problem.is_none()
            && self.waiting.is_none()
            && !self.sites.iter().any(|site| site.outcome.needs_attention())
    }
}

/// One site's outcome.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReload {
    /// The site.
    pub site: String,
    /// The outcome.
    pub outcome: ReloadOutcome,
    /// Whether the policy in force has the same robots.txt as before, on the same hosts and with the
    /// same names of crawlers.
    #[serde(default)]
    pub same_robots_txt: bool,
    /// When a policy that is unchanged came into force; none if that was at the start, or is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// `file:line:column: error[id]: message`, in the order of the file.
    pub findings: Vec<Finding>,
}

/// The outcome for a site's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReloadOutcome {
    /// The file is new, and its policy is in force.
    Added,
    /// The new policy is in force.
    Replaced,
    /// The file is rejected; the old policy stays in force.
    Kept,
    /// The file is rejected, and there is no old policy: none is in force.
    Refused,
    /// The file is gone; the last good policy stays in force, until its end is confirmed.
    Missing,
    /// The file is gone, and with it the site.
    Removed,
    /// The file is as it was, and its policy is in force.
    Unchanged,
}

impl ReloadOutcome {
    /// Whether the file on disk is not in force.
    fn needs_attention(self) -> bool {
        matches!(self, Kept | Refused | Missing)
    }
}

/// Why sites cannot be removed.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RemoveError {
    /// No such site.
    #[error("there is no site {site}{}", nearest_sites(site, sites))]
    UnknownSite {
        /// The name.
        site: String,
        /// The sites with a policy file.
        sites: Vec<String>,
    },
    /// The policy file is there.
    #[error(
        "{site} still has its policy file ({path}). Delete the file first, or the site would come back at once"
    )]
    FileExists {
        /// The site.
        site: String,
        /// The file.
        path: String,
    },
    /// The policy directory cannot be read.
    #[error("{0}; nothing was removed")]
    PolicyDirectory(#[from] StartError),
}

impl RemoveError {
    /// Its id.
    pub fn id(&self) -> &'static str {
        self.into()
    }
}
