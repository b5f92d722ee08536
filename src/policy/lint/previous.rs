//! Lint of `robots.previous`: suggests `previous: origin` where the origin says that its robots.txt has not changed for
//! a day.

use super::catalogue as lints;
use crate::policy::site::Site;
use crate::yaml::Diagnostics;
use std::time::Duration;

/// How long crawlers use a copy (RFC 9309 section 2.4).
const DAY: Duration = Duration::from_secs(86_400);

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let Some(modified) = site.origin.as_ref().and_then(|origin| origin.last_modified) else { return };
    if site.policy.robots.previous.is_some() || !site.policy.reads_origin() || site.at.since(modified) < DAY {
        return;
    }
    let message = format!("the origin says that its robots.txt has not changed since {modified}");
    diagnostics.push(lints::PREVIOUS_UNDECLARED.of_file(message).help(
        "if every host of the site served this file all that time, through every cache, write `robots: { previous: origin }`; \
         violations are then certain from the first minute. The date alone does not prove it",
    ));
}
