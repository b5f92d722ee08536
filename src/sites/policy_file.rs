//! A policy file as crawlgate last read it: [`KnownFile`].
//!
//! Every reading of a changed file moves it to one of these states:
//! - active: it has no mistake, its hosts are free, and it is in force;
//! - rejected: it has a mistake, and an earlier policy is in force;
//! - conflicting: another site has one of its hosts; an earlier policy is in force if there is one;
//! - invalid: it has a mistake, and no policy is in force.

use super::policy_directory::PolicyText;
use super::report::ReloadOutcome;
use crate::policy::SiteEntry;
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source};

/// Findings of one file that are told one by one.
const MAX_TOLD: usize = 20;

/// A policy file as it was last read, good or not.
#[derive(Clone, Debug)]
pub struct KnownFile {
    /// Its text.
    pub text: PolicyText,
    /// What was found in it.
    pub report: FileReport,
    /// The policy in force.
    pub in_force: Option<InForce>,
    /// The site that has one of its hosts.
    pub conflicts_with: Option<String>,
}

/// The policy in force of a file.
#[derive(Clone, Debug)]
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

    /// The outcome of a reload that finds the file as it was.
    pub fn outcome_when_unchanged(&self) -> ReloadOutcome {
        match self.origin() {
            Some(PolicyOrigin::File) => ReloadOutcome::Unchanged,
            Some(_) => ReloadOutcome::Kept,
            None => ReloadOutcome::Refused,
        }
    }
}

/// The findings of a file.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// One line for each error and warning, at most [`MAX_TOLD`]: for the log and the status.
    pub findings: Vec<String>,
    /// All errors at length, for a start that fails.
    pub rendered: String,
}

impl FileReport {
    /// Notes, and what is beyond [`MAX_TOLD`], are left to `crawlgate check`.
    pub fn new(source: &Source, diagnostics: &Diagnostics) -> FileReport {
        let items = &diagnostics.items;
        let rendered = errors(diagnostics).map(|item| item.render(source, false) + "\n").collect();
        let mut worst: Vec<&Diagnostic> = items.iter().filter(|item| item.severity != Severity::Note).collect();
        worst.sort_by_key(|item| std::cmp::Reverse(item.severity));
        let mut findings: Vec<String> = worst.iter().take(MAX_TOLD).map(|item| item.one_line(source)).collect();
        if let more @ 1.. = worst.len().saturating_sub(MAX_TOLD) {
            findings.push(format!("and {more} more: `crawlgate check` shows them all"));
        }
        FileReport { findings, rendered }
    }

    /// The errors with their help, one text each.
    pub fn refusals(source: &Source, diagnostics: &Diagnostics) -> Vec<String> {
        let mut refusals: Vec<String> = errors(diagnostics).take(MAX_TOLD).map(|item| item.with_help(source)).collect();
        if let more @ 1.. = errors(diagnostics).count().saturating_sub(MAX_TOLD) {
            refusals.push(format!("and {more} more"));
        }
        refusals
    }
}

fn errors(diagnostics: &Diagnostics) -> impl Iterator<Item = &Diagnostic> {
    diagnostics.items.iter().filter(|item| item.severity == Severity::Error)
}
