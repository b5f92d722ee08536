//! [`Report`]: the findings and sites of `check` as JSON.

use super::{Checked, lets_unlisted_pass, mode_name};
use crate::cli::origin_copy::OriginCopies;
use crate::policy::Site;
use crate::policy::model::PausePolicy;
use crate::sites::RetireStatus;
use crate::time::{Timestamp, rfc3339};
use crate::yaml::Diagnostic;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    sites: Vec<SiteReport<'a>>,
    findings: Vec<FindingInFile<'a>>,
    errors: usize,
    warnings: usize,
    notes: usize,
    /// The problems of the certificates of the settings file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    certificates: Vec<&'a str>,
}

#[derive(Serialize)]
struct SiteReport<'a> {
    site: &'a str,
    file: &'a str,
    hosts: Vec<String>,
    mode: &'static str,
    /// Whether `mode: enforce` does not refuse unlisted bots.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unlisted_only_observed: bool,
    tests: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retire: Vec<RetireStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<PlannedPause>,
    version: String,
    bytes: usize,
    /// What is assumed about the origin's own file, where the policy asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_robots: Option<String>,
    robots_txt: String,
}

/// A pause of the policy.
#[derive(Serialize)]
pub(super) struct PlannedPause {
    pub(super) audience: &'static str,
    /// As in `daily 02:00-03:00 Europe/Berlin`.
    pub(super) time: String,
    /// When it is on, or will be next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<NextPause>,
}

#[derive(Serialize)]
pub(super) struct NextPause {
    #[serde(serialize_with = "rfc3339")]
    pub(super) from: Timestamp,
    #[serde(serialize_with = "rfc3339")]
    pub(super) until: Timestamp,
}

/// The pauses that the policy plans. When one without a beginning begins, `check` does not know.
pub(super) fn planned(site: &Site) -> Vec<PlannedPause> {
    let around = crate::policy::planned_pause::planned_pauses(&site.policy, site.at, |_, from| from);
    let next = |pause: &PausePolicy| {
        let mut own = around.iter().filter(|(plan, active)| plan.span == pause.span && active.until > site.at);
        own.next().map(|(_, active)| NextPause { from: active.from, until: active.until })
    };
    let planned = site.policy.pauses.iter().map(|pause| PlannedPause {
        audience: pause.audience.name(),
        time: pause.time.to_string(),
        next: next(pause).filter(|_| pause.time.recurs()),
    });
    planned.collect()
}

#[derive(Serialize)]
struct FindingInFile<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

/// Everything that was found.
pub(super) fn report(checked: &Checked) -> Report<'_> {
    let Checked { origins, counts, .. } = checked;
    let sites = super::policies::sites(&checked.loaded);
    let findings = checked.listed(true).map(|(source, finding)| FindingInFile { file: &source.name, finding });
    Report {
        sites: sites.map(|site| site_report(site, origins)).collect(),
        findings: findings.collect(),
        errors: counts.errors,
        warnings: counts.warnings,
        notes: counts.notes(),
        certificates: checked.certificates.iter().map(|problem| problem.text.as_str()).collect(),
    }
}

fn site_report<'a>(site: &'a Site, origins: &OriginCopies) -> SiteReport<'a> {
    SiteReport {
        site: &site.name,
        file: &site.policy.source.name,
        hosts: site.policy.hosts.iter().map(|host| host.value.to_string()).collect(),
        mode: mode_name(&site.policy.enforcement.site).unwrap_or("observe"),
        unlisted_only_observed: lets_unlisted_pass(site),
        tests: site.policy.tests.len(),
        retire: RetireStatus::of(&site.policy, site.at),
        pauses: planned(site),
        version: site.robots_txt.version.to_string(),
        bytes: site.robots_txt.body.len(),
        origin_robots: origins.assumption(site),
        robots_txt: String::from_utf8_lossy(&site.robots_txt.body).into_owned(),
    }
}
