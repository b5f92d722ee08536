//! From the text of a policy to a site that may be used: read, compiled, held against the interlocks, its tests passed.

use super::suite::run_tests;
use crate::crawlers::Registry;
use crate::policy::origin::Origin;
use crate::policy::{self, Site};
use crate::yaml::{Diagnostics, Source};
use std::sync::Arc;

/// Everything that stands between a file and its use, in one run. There is a site only when no error was found; the
/// findings are in the order of the file.
pub fn load(name: &str, source: &Source, registry: &'static Registry) -> (Option<Arc<Site>>, Diagnostics) {
    load_with_origin(name, source, &Origin::Unknown, registry)
}

/// The same with what is known of the origin's own robots.txt.
pub fn load_with_origin(
    name: &str,
    source: &Source,
    origin: &Origin,
    registry: &'static Registry,
) -> (Option<Arc<Site>>, Diagnostics) {
    let (policy, mut diagnostics) = policy::read(name, source);
    let Some(policy) = policy else { return (None, diagnostics) };
    let site = match policy::compile_with_origin(Arc::new(policy), origin, registry) {
        Ok(site) => Arc::new(site),
        Err(error) => {
            diagnostics.items.extend(error.diagnostics.items);
            return (None, diagnostics);
        }
    };
    policy::lint::lint(&site, registry, &mut diagnostics);
    diagnostics.items.extend(run_tests(&site, registry).into_iter().map(|failure| failure.diagnostic));
    diagnostics.sort();
    let usable = !diagnostics.has_errors();
    (usable.then_some(site), diagnostics)
}
