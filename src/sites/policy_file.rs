//! A policy file as crawlgate last read it. The main types are [`PolicyFile`], its state, and [`KnownFile`], which adds
//! the text and the findings. This file must not know how files are found or compiled.
//!
//! Every reading of a changed file moves it to one of the states: to `Active` when it has no mistake and its hosts are
//! free; to `HostConflict` when another site has one of them; to `Rejected` when it has a mistake and an earlier policy
//! is there to stay in force; otherwise to `Invalid`.

use super::policy_directory::PolicyText;
use super::report::Outcome;
use crate::policy::SiteEntry;
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source};

/// Findings of one file that are told one by one.
const MAX_TOLD: usize = 20;

/// The state of a policy file.
#[derive(Clone, Debug)]
pub enum PolicyFile {
    /// The file is in force.
    Active {
        /// Its site.
        entry: SiteEntry,
    },
    /// The file has a mistake; an earlier policy is in force.
    Rejected {
        /// The earlier policy.
        last_good: LastGood,
    },
    /// Another site has one of the file's hosts.
    HostConflict {
        /// The other site.
        owner: String,
        /// An earlier policy, if there is one: then it is in force.
        last_good: Option<LastGood>,
    },
    /// The file has a mistake, and there is no earlier policy: none is in force.
    Invalid,
}

/// An earlier policy of a file.
#[derive(Clone, Debug)]
pub struct LastGood {
    /// Its site.
    pub entry: SiteEntry,
    /// Whether it comes from the state store. Otherwise this process read it from the file.
    pub is_copy: bool,
}

impl PolicyFile {
    /// The site in force.
    pub fn entry(&self) -> Option<&SiteEntry> {
        match self {
            PolicyFile::Active { entry } => Some(entry),
            file => file.last_good().map(|last_good| &last_good.entry),
        }
    }

    /// The earlier policy in force.
    fn last_good(&self) -> Option<&LastGood> {
        match self {
            PolicyFile::Rejected { last_good } => Some(last_good),
            PolicyFile::HostConflict { last_good, .. } => last_good.as_ref(),
            PolicyFile::Active { .. } | PolicyFile::Invalid => None,
        }
    }

    /// The site in force, to be changed.
    pub fn entry_mut(&mut self) -> Option<&mut SiteEntry> {
        match self {
            PolicyFile::Active { entry } => Some(entry),
            PolicyFile::Rejected { last_good } | PolicyFile::HostConflict { last_good: Some(last_good), .. } => {
                Some(&mut last_good.entry)
            }
            PolicyFile::HostConflict { last_good: None, .. } | PolicyFile::Invalid => None,
        }
    }

    /// What stays in force when the next reading of the file finds a mistake.
    pub fn into_last_good(self) -> Option<LastGood> {
        match self {
            PolicyFile::Active { entry } => Some(LastGood { entry, is_copy: false }),
            PolicyFile::Rejected { last_good } => Some(last_good),
            PolicyFile::HostConflict { last_good, .. } => last_good,
            PolicyFile::Invalid => None,
        }
    }

    /// Whether the file as it was last read is in force.
    pub fn is_active(&self) -> bool {
        matches!(self, PolicyFile::Active { .. })
    }

    /// Whether the site in force comes from the state store.
    pub fn runs_on_copy(&self) -> bool {
        self.last_good().is_some_and(|last_good| last_good.is_copy)
    }

    /// The site that has one of the file's hosts.
    pub fn conflicts_with(&self) -> Option<&str> {
        if let PolicyFile::HostConflict { owner, .. } = self { Some(owner) } else { None }
    }

    /// The outcome of a reload that finds the file as it was.
    pub fn outcome_when_unchanged(&self) -> Outcome {
        match self {
            PolicyFile::Active { .. } => Outcome::Unchanged,
            known if known.entry().is_some() => Outcome::Kept,
            _ => Outcome::Refused,
        }
    }
}

/// A policy file with its text and its findings.
#[derive(Clone, Debug)]
pub struct KnownFile {
    /// As it was last read, good or not.
    pub text: PolicyText,
    /// What was found in it.
    pub report: FileReport,
    /// Its state.
    pub state: PolicyFile,
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
