//! The page of pauses: which sites are paused, and the commands that pause and resume. The page itself changes nothing.

use super::format::minute;
use super::layout::{Layout, site_link};
use super::{Dashboard, PageError};
use crate::admin::query::Query;
use crate::sites::SiteStatus;
use askama::Template;

#[derive(Template)]
#[template(path = "pauses.html")]
struct PausesPage {
    layout: Layout,
    sites: Vec<PausedSite>,
}

struct PausedSite {
    href: String,
    site: String,
    state: String,
    planned: Vec<String>,
    commands: Vec<String>,
}

impl Dashboard {
    pub(super) fn pauses(&self, query: &str) -> Result<String, PageError> {
        Query::read(query, &[])?;
        let now = self.now();
        let snapshot = self.operations.instance.sites.snapshot();
        let site = |status: SiteStatus| {
            let entry = snapshot.site_named(&status.site).map(|place| &snapshot.sites()[place]);
            let planned = entry.into_iter().flat_map(|entry| &entry.pauses).filter(|pause| pause.from > now);
            let planned = planned.map(|pause| {
                format!("{} from {} to {} UTC", pause.audience.name(), minute(pause.from), minute(pause.until))
            });
            PausedSite {
                href: site_link(&status.site),
                state: match status.paused_until {
                    None => "not paused".to_owned(),
                    Some(until) => {
                        let audience = status.paused_for.as_deref().unwrap_or("crawlers");
                        format!("paused for {audience} until {} UTC", minute(until))
                    }
                },
                planned: planned.collect(),
                commands: commands(&status.site, status.paused_until.is_some()),
                site: status.site,
            }
        };
        let sites =
            self.operations.status().policies.sites.into_iter().filter(|site| site.in_force).map(site).collect();
        Ok(PausesPage { layout: self.layout("Pauses", "/pauses"), sites }.render()?)
    }
}

/// What to type to change the pause of a site.
pub fn commands(site: &str, is_paused: bool) -> Vec<String> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
    let site = match site.chars().all(is_plain) && !site.is_empty() {
        true => site.to_owned(),
        false => format!("'{}'", site.replace('\'', r"'\''")),
    };
    match is_paused {
        true => vec![format!("crawlgate resume --site {site}")],
        false => vec![
            format!("crawlgate pause --site {site} --for 2h"),
            format!("crawlgate pause --site {site} --everyone --for 10m"),
        ],
    }
}
