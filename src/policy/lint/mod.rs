//! Lints: what the language allows and still is not what an owner wants. Each has an id, a severity, a place, a fix,
//! and a section in `docs/lints.md`.
//!
//! What can be said of any robots.txt (`agents.rs`, `rules.rs`, `sitemaps.rs`) looks at a `Subject` (`subject.rs`),
//! which a compiled policy and a file that was found both can be.

mod agents;
mod blocked_noindex;
pub(super) mod catalogue;
mod described_crawlers;
mod expression;
mod extent;
mod file;
mod licenses;
mod passed_on;
mod redundant_rules;
mod rules;
mod selectors;
mod signals;
mod site;
mod sitemaps;
mod subject;
mod surroundings;
mod tags;
mod words;

#[cfg(test)]
mod never_false_tests;
#[cfg(test)]
mod tests;

pub use catalogue::{LINTS, Lint};
pub use file::{FileLints, lint_file};

use super::site::Site;
use crate::crawlers::Registry;
use crate::yaml::{Diagnostics, Severity};
use subject::Subject;

/// Looks at a compiled site. Interlocks are errors: a production site that keeps search engines out, or a long pause,
/// is refused unless the policy acknowledges it.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    site::lint(site, registry, diagnostics);
    described_crawlers::lint(site, registry, diagnostics);
    signals::lint(site, registry, diagnostics);
    blocked_noindex::lint(site, registry, diagnostics);
    surroundings::lint(site, diagnostics);
    tags::lint(site, registry, diagnostics);
    passed_on::lint(site, diagnostics);
    selectors::lint(site, diagnostics);
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
    found.sort();
    limit(&mut found);
    diagnostics.items.append(&mut found.items);
}

/// Findings of one kind in one file that are shown; a page of HTML has a thousand lines that are no records.
const MAX_OF_A_KIND: usize = 10;

/// Of each kind the first few: the rest is more of the same. What refuses the file is shown whole.
fn limit(found: &mut Diagnostics) {
    let mut counts = std::collections::HashMap::new();
    let mut last = std::collections::HashMap::new();
    let mut kept = Vec::with_capacity(found.items.len());
    for finding in found.items.drain(..) {
        if finding.severity == Severity::Error {
            kept.push(finding);
            continue;
        }
        let count = counts.entry(finding.id).or_insert(0usize);
        *count += 1;
        if *count <= MAX_OF_A_KIND {
            last.insert(finding.id, kept.len());
            kept.push(finding);
        }
    }
    for (id, count) in counts {
        if let Some(finding) = last.get(id).and_then(|&place| kept.get_mut(place)).filter(|_| count > MAX_OF_A_KIND) {
            let more = format!("and {} more of this kind in the file", count - MAX_OF_A_KIND);
            finding.help = Some(match finding.help.take() {
                Some(help) => format!("{help}; {more}"),
                None => more,
            });
        }
    }
    found.items = kept;
}
