//! Lints: what the language allows and still is not what an owner wants. Each has an id, a severity, a place, a fix, and
//! a section in `docs/lints.md`.
//!
//! What can be said of any robots.txt (`agents.rs`, `rules.rs`, `sitemaps.rs`) looks at a `Subject` (`subject.rs`),
//! which a compiled policy and a file that was found both can be.

mod agents;
mod catalogue;
mod file;
mod rules;
mod site;
mod sitemaps;
mod subject;
mod surroundings;
mod tags;
mod unseen;

#[cfg(test)]
mod tests;

pub use catalogue::{LINTS, Lint};
pub use file::{FileLints, lint_file};
pub use site::stands_in_browsers;

use super::compiled::Site;
use crate::crawlers::Registry;
use crate::yaml::Diagnostics;
use subject::Subject;

/// Looks at a compiled site. Interlocks are errors: a production site that keeps search engines out, or a long pause,
/// is refused unless the policy acknowledges it.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    site::lint(site, registry, diagnostics);
    unseen::lint(site, diagnostics);
    surroundings::lint(site, diagnostics);
    tags::lint(site, diagnostics);
    lint_subject(&Subject::of_site(site), registry, diagnostics);
}

fn lint_subject(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    agents::lint(subject, registry, &mut found);
    rules::lint(subject, &mut found);
    sitemaps::lint(subject, &mut found);
    // A rule that several groups share is one rule to its owner.
    let mut seen = std::collections::HashSet::new();
    found.items.retain(|finding| seen.insert((finding.id, finding.span)));
    diagnostics.items.append(&mut found.items);
}
