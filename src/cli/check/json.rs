//! `check --format json`: the findings, and the sites that the policies describe, as JSON
//! ([`Report`]).

use super::{Checked, SiteReport};
use crate::telemetry::CertificateProblem;
use crate::yaml::Diagnostic;
use serde::Serialize;

#[derive(Serialize)]
pub struct Report<'a> {
    sites: Vec<SiteReport<'a>>,
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

/// Everything that was found.
pub fn report(checked: &Checked) -> Report<'_> {
    let Checked {
        origins, counts, ..
    } = checked;
    let sites = super::policies::sites(&checked.loaded);
    let findings = checked.listed(true).map(|(source, finding)| FindingInFile {
        file: &source.name,
        finding,
    });
    Report {
        sites: sites.map(|site| SiteReport::new(site, origins)).collect(),
        findings: findings.collect(),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.notes(),
        certificates: &checked.certificates,
    }
}
