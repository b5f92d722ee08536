//! The command `reload`: makes the running crawlgate read its policy files again.

use super::{Result, control, findings_failure_unless, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::finding::Finding;
use crate::sites::{ReloadOutcome, ReloadReport};
use crate::time::Timestamp;
use askama::Template;
use std::collections::BTreeMap;

/// Reload the policies of the running crawlgate
#[derive(clap::Args)]
#[command(after_help = "\
A reload fetches the origin's robots.txt only for a policy that changed. Apart from that, it is
fetched when crawlgate starts, and then every ten minutes.

Exit codes: 0 all policies are in force, 1 some are not, 2 wrong usage, 3 crawlgate is not running.")]
pub struct Arguments {
    /// End a site whose policy file is gone (otherwise its last good policy stays in force)
    #[arg(long, value_name = "SITE")]
    remove: Vec<String>,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Makes the running crawlgate reload its policies, and end the sites of `--remove`. Prints the
/// result for each site with a changed file or with findings. Fails unless every file is in force as it is.
pub fn run(arguments: &Arguments) -> Result {
    let ControlResponse::Reloaded(report) =
        arguments.output.control.send(&ControlRequest::Reload {
            remove: arguments.remove.clone(),
        })?
    else {
        return control::unexpected_response();
    };
    print_result(
        arguments.output.json,
        &report,
        ReloadText { report: &report },
    )?;
    findings_failure_unless(report.is_complete())
}

/// The result of a reload as text.
#[derive(Template)]
#[template(path = "reload.txt")]
struct ReloadText<'a> {
    report: &'a ReloadReport,
}

impl ReloadText<'_> {
    /// The sites with the same outcome, whether robots.txt is the same, and findings. A mistake in
    /// the defaults is thus shown once.
    fn results(&self) -> BTreeMap<(ReloadOutcome, bool, &[Finding]), Vec<&String>> {
        let mut results = BTreeMap::new();
        for site in &self.report.sites {
            results
                .entry((site.outcome, site.same_robots_txt, &*site.findings))
                .or_insert_with(Vec::new)
                .push(&site.site);
        }
        results
    }

    /// Of each unchanged site since when its policy is in force.
    fn unchanged(&self) -> Vec<Option<Timestamp>> {
        self.report
            .sites
            .iter()
            .filter(|site| site.outcome == ReloadOutcome::Unchanged)
            .map(|site| site.since)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::SiteReload;

    #[test]
    fn deferred_policy_waits_and_is_not_called_replaced() {
        use ReloadOutcome::*;
        let mut report = ReloadReport {
            sites: [Replaced, Unchanged, Kept, Unchanged]
                .map(|outcome| SiteReload {
                    site: "shop".into(),
                    outcome,
                    same_robots_txt: false,
                    since: None,
                    findings: Vec::new(),
                })
                .into(),
            ..ReloadReport::default()
        };
        let text = |report: &ReloadReport| ReloadText { report }.to_string();
        let shown = text(&report);
        assert!(
            shown.starts_with("shop: new robots.txt, hosts or crawlers; if a rule is new, \"crawlgate status\" says from when it counts and blocks\nshop: rejected"),
            "{shown}"
        );
        assert!(shown.ends_with("\n2 sites unchanged\n"), "{shown}");
        report.sites[3].findings = vec![Finding::new("a-warning", "look here")];
        report.sites[3].since = Some(Timestamp(0));
        let shown = text(&report);
        assert!(
            shown.contains("\nshop: unchanged\n  look here\n"),
            "{shown}"
        );
        assert!(!shown.contains("in force since"), "{shown}");
        report.waiting = Some(Finding::new("waits-for-state", "later"));
        let shown = text(&report);
        assert!(shown.contains("\nshop: waits\nshop: rejected"), "{shown}");
    }

    #[test]
    fn sites_with_the_same_result_share_a_line() {
        let place = "error[bad-value]: defaults.yaml:1:22: no";
        let site = |site: &str, same_robots_txt, findings: &[Finding]| SiteReload {
            site: site.into(),
            outcome: ReloadOutcome::Replaced,
            same_robots_txt,
            since: None,
            findings: findings.to_vec(),
        };
        let finding = [Finding::new("bad-value", place)];
        let report = ReloadReport {
            sites: vec![
                site("a", false, &[]),
                site("b", true, &[]),
                site("c", true, &finding),
                site("d", true, &[]),
                site("e", true, &finding),
            ],
            ..ReloadReport::default()
        };
        let shown = ReloadText { report: &report }.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].starts_with("a: new robots.txt"), "{shown}");
        assert!(lines[1].starts_with("2 sites (b, d): read"), "{shown}");
        assert!(lines[2].starts_with("2 sites (c, e): read"), "{shown}");
        assert_eq!(lines[3..], [format!("  {place}")], "{shown}");
    }
}
