//! A policy's own `tests:`, run against its compiled site.

use crate::crawlers::Registry;
use crate::policy::SiteEntry;
use crate::yaml::Diagnostic;

/// One case that did not hold, as a finding at its place in the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFailure {
    /// What was expected and what came, at the test's place.
    pub diagnostic: Diagnostic,
}

/// Runs every case; an empty list means that all hold.
pub fn run_tests(entry: &SiteEntry, registry: &Registry) -> Vec<TestFailure> {
    let _ = (entry, registry);
    todo!()
}
