//! [`load_site`] makes a [`Site`] from the text of a policy. Requests can then be judged by the
//! site. [`load_site`] parses, compiles and lints the policy, and runs the tests that the policy
//! contains.

use super::suite::run_tests;
use crate::crawlers::Registry;
use crate::policy::origin::OriginRobotsAvailability;
use crate::policy::{self, IncludedFiles, Site};
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Severity, SourceFile};
use std::sync::Arc;

/// Reads, compiles, lints and tests a policy. There is a site only when no error was found; the
/// findings are in the order of the file.
///
/// The site is the one before any pause or retirement begins; [`load_site_at`] loads for a moment.
pub fn load_site(
    name: &str,
    source: &SourceFile,
    registry: &'static Registry,
) -> (Option<Arc<Site>>, Diagnostics) {
    let surroundings = PolicyDependencies {
        origin: &OriginRobotsAvailability::Missing,
        files: &IncludedFiles::default(),
    };
    load_site_at(name, source, surroundings, registry, Timestamp(i64::MIN))
}

/// The other sources of a policy beside its own text.
pub struct PolicyDependencies<'a> {
    /// The origin's own robots.txt.
    pub origin: &'a OriginRobotsAvailability,
    /// The files beside the policy.
    pub files: &'a IncludedFiles,
}

/// [`load_site`] for a moment, with the other sources of the policy; the site holds until
/// [`Site::next_switch`]. Errors that appear only once `retire` has come to its end are found, too:
/// a file that is good now must not be refused by a later restart.
pub fn load_site_at(
    name: &str,
    source: &SourceFile,
    surroundings: PolicyDependencies<'_>,
    registry: &'static Registry,
    at: Timestamp,
) -> (Option<Arc<Site>>, Diagnostics) {
    let (policy, mut diagnostics) = policy::read(name, source);
    let Some(mut policy) = policy else {
        return (None, diagnostics);
    };
    policy.include(surroundings.files, &mut diagnostics);
    let policy = Arc::new(policy);
    let site = match policy::compile_with_origin(policy.clone(), surroundings.origin, registry, at)
    {
        Ok(site) => Arc::new(site),
        Err(error) => {
            diagnostics.items.extend(error.diagnostics.items);
            diagnostics.name_defaults(source);
            return (None, diagnostics);
        }
    };
    policy::lint::lint(&site, registry, &mut diagnostics);
    if !policy.retire.is_empty() {
        check_retired_site(&site, registry, &mut diagnostics);
    }
    diagnostics.items.extend(run_tests(&site, registry));
    diagnostics.sort();
    diagnostics.name_defaults(source);
    let usable = !diagnostics.has_errors();
    (usable.then_some(site), diagnostics)
}

/// Compiles and lints the site as it is once `retire` has come to its end, and adds the errors (not
/// the warnings) that it does not have already.
fn check_retired_site(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut found = Diagnostics::default();
    match policy::compile_with_origin(
        site.policy.clone(),
        &site.origin_availability(),
        registry,
        Timestamp(i64::MAX),
    ) {
        Ok(site) => policy::lint::lint(&site, registry, &mut found),
        Err(error) => found = error.diagnostics,
    }
    for mut finding in found.items {
        let mut known = diagnostics.items.iter();
        let is_known = known.any(|known| known.id == finding.id && known.span == finding.span);
        if finding.severity == Severity::Error && !is_known {
            finding.message += ", once \"retire\" has finished";
            diagnostics.push(finding);
        }
    }
}
