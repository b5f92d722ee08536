//! The command `status`: shows the problems, sites, instances, origins and certificates of the
//! running crawlgate.

use super::{Result, control, findings_failure_unless, instances, print_result};
use crate::admin::control::{ControlRequest, ControlResponse};
use crate::admin::{self, InstanceStatus};
use crate::policy::origin::OriginCopyState;
use crate::sites::{OriginRobotsStatus, ServedRobotsKind, SiteStatus, nearest_sites};
use crate::time::Timestamp;
use crate::verdict::{ENFORCE_ALL_LINE, PERHAPS_CACHED_END};
use askama::Template;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Further unproven hosts of a site are only counted: anybody can make up hosts of a pattern.
const MAX_UNPROVEN: usize = 5;

/// If there are more sites, each has one line.
const MAX_FULL_SITES: usize = 10;

/// Show whether crawlgate is running, its sites and origins, and what needs attention
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  crawlgate status --problems
  crawlgate status --site shop.example

Exit codes: 0 fine, 1 something needs attention, 2 wrong usage, 3 crawlgate is not running.")]
pub struct Arguments {
    /// Only check that crawlgate runs, for health checks: exit code 0 whatever its problems
    #[arg(long)]
    alive: bool,
    /// Show only what needs attention
    #[arg(long)]
    problems: bool,
    /// Show only the problems and this site in full, by policy name; JSON has all sites
    #[arg(long, conflicts_with = "alive")]
    site: Option<String>,
    #[command(flatten)]
    output: control::ControlOutputFlags,
}

/// Prints the status of the running crawlgate. Fails if it has problems, but not with `--alive`.
pub fn run(arguments: &Arguments) -> Result {
    let flags = &arguments.output.control;
    let socket = flags.path()?;
    let ControlResponse::Status(status) = flags.send_to(&socket, &ControlRequest::Status)? else {
        return control::unexpected_response();
    };
    let text = StatusText {
        status: &status,
        socket,
        arguments,
    };
    let is_known = status.policies.sites.iter().any(|site| text.shows(site));
    if let Some(site) = arguments.site.as_ref().filter(|_| !is_known) {
        let sites: Vec<String> = status
            .policies
            .sites
            .iter()
            .map(|site| site.site.clone())
            .collect();
        fail!(
            Usage,
            "there is no site {site}{}",
            nearest_sites(site, &sites)
        );
    }
    print_result(arguments.output.json, &status, text)?;
    findings_failure_unless(status.problems.is_empty() || arguments.alive)
}

/// The status as text.
#[derive(Template)]
#[template(path = "status.txt")]
struct StatusText<'a> {
    status: &'a InstanceStatus,
    socket: PathBuf,
    arguments: &'a Arguments,
}

impl StatusText<'_> {
    /// The paused sites by the end of the pause and by whom it is for.
    fn pauses(&self) -> BTreeMap<(Timestamp, Option<&str>), Vec<&str>> {
        let mut pauses = BTreeMap::<_, Vec<_>>::new();
        for site in &self.status.policies.sites {
            if let Some(until) = site.paused_until {
                pauses
                    .entry((until, site.paused_for.as_deref()))
                    .or_default()
                    .push(&*site.site);
            }
        }
        pauses
    }

    fn shows(&self, site: &SiteStatus) -> bool {
        self.arguments
            .site
            .as_ref()
            .is_none_or(|wanted| site.site == *wanted)
    }
}
