//! `check --format json`: prints the findings about the policies, and the sites without errors, as
//! JSON ([`CheckReport`]).

use super::{CheckResults, CheckedFinding, SiteSummary};
use crate::telemetry::CertificateProblem;
use serde::Serialize;

#[derive(Serialize)]
pub struct CheckReport<'a> {
    sites: Vec<SiteSummary<'a>>,
    findings: Vec<CheckedFinding<'a>>,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// The problems of the certificates of the settings file.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    certificates: &'a [CertificateProblem],
}

pub fn build_report(checked: &CheckResults) -> CheckReport<'_> {
    let CheckResults {
        origins, counts, ..
    } = checked;
    let sites = super::policies::valid_sites(&checked.loaded);
    CheckReport {
        sites: sites.map(|site| SiteSummary::new(site, origins)).collect(),
        findings: checked.findings(true).collect(),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.note_count(),
        certificates: &checked.certificates,
    }
}
