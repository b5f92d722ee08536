//! Lints: findings about a policy or a robots.txt that is valid and probably not what its owner
//! wants. [`lint`] checks a compiled site, [`lint_file`] a robots.txt file. [`LINTS`] lists all
//! lints; `docs/lints.md` has a section for each.
//!
//! The lints of robots.txt (`agents.rs`, `rules.rs`, `closed.rs`, `sitemaps.rs`) check a `Subject`
//! (`subject.rs`). It is made from a compiled site or from a robots.txt file.

mod agents;
mod blocked_noindex;
pub(super) mod catalogue;
mod closed;
mod file;
mod passed_on;
mod readings;
mod rules;
mod signals;
mod site;
mod sitemaps;
mod subject;
mod tags;
mod words;

#[cfg(test)]
mod never_false_tests;
#[cfg(test)]
mod tests;

pub use agents::{may_be_enforced, meant_tokens};
#[cfg(any(test, feature = "internals"))]
pub use catalogue::LINTS;
pub use file::{FileLints, lint_file};
pub use site::allow_published_proof;

use super::site::Site;
use crate::crawlers::Registry;
use crate::yaml::{Diagnostics, Severity};
use std::collections::{HashMap, HashSet};
use subject::Subject;

/// Checks a compiled site. Interlocks are errors: a production site that keeps search engines out,
/// or a long pause, is refused unless the policy acknowledges it.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    site::lint(site, registry, diagnostics);
    signals::lint(site, registry, diagnostics);
    blocked_noindex::lint(site, registry, diagnostics);
    site::surroundings(site, diagnostics);
    tags::lint(site, registry, diagnostics);
    passed_on::lint(site, diagnostics);
    readings::lint_site(site, diagnostics);
    site::previous(site, diagnostics);
    lint_subject(&Subject::of_site(site), registry, diagnostics);
}

/// Adds the findings that a policy and a file share: about agents, rules, closed sites and
/// sitemaps.
fn lint_subject(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    agents::lint(subject, registry, &mut found);
    rules::lint(subject, &mut found);
    closed::lint(subject, &mut found);
    sitemaps::lint(subject, &mut found);
    add_once(found, diagnostics);
}

/// Adds findings about rules in the order of their places, each kind once at a place: a rule that
/// several groups share is one rule to its owner. Of each kind only the first few are added
/// (`add_limited`).
fn add_once(mut found: Diagnostics, diagnostics: &mut Diagnostics) {
    let mut seen = HashSet::new();
    found
        .items
        .retain(|finding| seen.insert((finding.id, finding.span)));
    found.sort();
    add_limited(found, diagnostics);
}

/// How many findings of one kind in one file are shown: a page of HTML has a thousand lines that
/// are no records.
const MAX_OF_A_KIND: usize = 3;

/// Adds the first three findings of each kind; the last of them has the number of the others in
/// `more`. All errors are added.
fn add_limited(found: Diagnostics, diagnostics: &mut Diagnostics) {
    // How many of a kind were added, and where the last of them stands.
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for finding in found.items {
        let (added, last) = counts.entry(finding.id).or_default();
        if finding.severity == Severity::Error || *added < MAX_OF_A_KIND {
            *added += 1;
            *last = diagnostics.items.len();
            diagnostics.push(finding);
        } else {
            diagnostics.items[*last].more += 1 + finding.more;
        }
    }
}
