//! Lints: findings about a policy or a robots.txt that is valid, but probably not what its owner
//! wants. [`lint`] checks a compiled site, [`lint_file`] a robots.txt file. Some lints are about
//! lines that occur in policies and in files (`agents.rs`, `rules.rs`, `closed.rs`, `sitemaps.rs`).
//! These lints check a `LintSubject`, which can be made from a policy or from a file. `catalogue`
//! lists and explains all lints.

mod agents;
mod blocked_noindex;
// The engine alone shows no explanations.
#[cfg_attr(not(feature = "proxy"), allow(dead_code))]
pub(super) mod catalogue;
mod closed;
mod dialects;
mod environment;
mod file;
mod origin_keys;
mod rules;
mod signals;
mod site;
mod sitemaps;
mod subject;
mod tags;

#[cfg(test)]
mod never_false_tests;
#[cfg(test)]
mod tests;

pub use agents::{may_be_enforced, meant_tokens_help, nearest_token};
#[cfg(any(test, feature = "internals", feature = "proxy"))]
pub use catalogue::LINTS;
pub use catalogue::Lint;
#[cfg(feature = "proxy")]
pub(crate) use catalogue::lints;
pub use file::{FileFindings, lint_file};
pub use site::remove_provable_findings;

use super::site::Site;
use crate::crawlers::Registry;
use crate::yaml::{Diagnostics, Severity};
use std::collections::{HashMap, HashSet};
use subject::LintSubject;

/// Checks a compiled site. The interlocks are errors: a policy that closes a production site to
/// search engines, or has a long pause, is rejected unless it acknowledges that.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    site::lint(site, registry, diagnostics);
    signals::lint(site, registry, diagnostics);
    blocked_noindex::lint(site, registry, diagnostics);
    environment::lint(site, diagnostics);
    tags::lint(site, registry, diagnostics);
    agents::lint_tests(site, registry, diagnostics);
    origin_keys::lint(site, diagnostics);
    dialects::lint(site, diagnostics);
    site::lint_previous(site, diagnostics);
    lint_subject(&LintSubject::from_site(site), registry, diagnostics);
}

/// Checks what a policy and a file share: agents, rules, closed sites and sitemaps.
fn lint_subject(subject: &LintSubject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    agents::lint(subject, registry, &mut found);
    rules::lint(subject, &mut found);
    closed::lint(subject, &mut found);
    sitemaps::lint(subject, &mut found);
    add_deduplicated(found, diagnostics);
}

/// Adds findings in the order of their places, each kind once at a place: a rule that several
/// groups share is one rule to its owner. See [`add_limited`].
fn add_deduplicated(mut found: Diagnostics, diagnostics: &mut Diagnostics) {
    let mut seen = HashSet::new();
    found
        .items
        .retain(|finding| seen.insert((finding.id, finding.span)));
    found.sort();
    add_limited(found, diagnostics);
}

/// The most findings of one kind in one file. A file may have thousands of lines with the same
/// mistake.
const MAX_PER_KIND: usize = 3;

/// Adds the first [`MAX_PER_KIND`] findings of each kind, and all errors. The last of a kind counts
/// the others in `more`.
fn add_limited(found: Diagnostics, diagnostics: &mut Diagnostics) {
    // For each kind: how many were added, and the index of the last.
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for finding in found.items {
        let (added, last) = counts.entry(finding.id).or_default();
        if finding.severity == Severity::Error || *added < MAX_PER_KIND {
            *added += 1;
            *last = diagnostics.items.len();
            diagnostics.push(finding);
        } else {
            diagnostics.items[*last].more += 1 + finding.more;
        }
    }
}
