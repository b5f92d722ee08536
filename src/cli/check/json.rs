//! `check --format json`: prints the findings about the policies, and the sites without errors, as
//! JSON ([`CheckReport`]).

use super::{CheckResults, SiteSummary};
use crate::telemetry::CertificateProblem;
use crate::yaml::Diagnostic;
use serde::Serialize;

#[derive(Serialize)]
pub struct CheckReport<'a> {
    sites: Vec<SiteSummary<'a>>,
    findings: Vec<FindingInFile<'a>>,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// The problems of the certificates of the settings file.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    certificates: &'a [CertificateProblem],
}

#[derive(Serialize)]
struct FindingInFile<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

pub fn build_report(checked: &CheckResults) -> CheckReport<'_> {
    let CheckResults {
        origins, counts, ..
    } = checked;
    let sites = super::policies::valid_sites(&checked.loaded);
    let findings = checked
        .findings(true)
        .map(|(source, finding)| FindingInFile {
            file: &source.name,
            finding,
        });
    CheckReport {
        sites: sites.map(|site| SiteSummary::new(site, origins)).collect(),
        findings: findings.collect(),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.note_count(),
        certificates: &checked.certificates,
    }
}
