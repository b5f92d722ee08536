//! The page of pauses. A pause is a time in which the crawlers of a site, or everyone, get 503. For each site it shows
//! the present pause, recurring and planned pauses, the last ones that ended, and the commands that pause and resume
//! the site. The page is read-only.

use super::format::minute;
use super::layout::Layout;
use super::{Dashboard, Page};
use crate::admin::query::Query;
use crate::policy::SiteEntry;
use crate::policy::site::ActivePause;
use crate::sites::SiteStatus;
use crate::time::Timestamp;
use askama::Template;
use std::path::{Path, PathBuf};

/// The most ended pauses of a site that the page shows, and the most planned ones.
const MAX_SHOWN: usize = 5;
/// The socket that commands find without `--control` on a machine with the service (`cli/places.rs`).
const CONTROL_OF_SERVICE: &str = "/run/crawlgate/control.sock";

#[derive(Template)]
#[template(path = "pauses.html")]
struct PausesPage {
    layout: Layout,
    sites: Vec<PausedSite>,
}

struct PausedSite {
    status: SiteStatus,
    recurring: Vec<String>,
    planned: Vec<String>,
    over: Vec<String>,
    commands: Vec<String>,
}

impl Dashboard {
    pub(super) fn pauses(&self, query: &str) -> Page {
        Query::read(query, &[])?;
        let now = self.now();
        let snapshot = self.operations.instance.sites.snapshot();
        let site = |status: SiteStatus| {
            let entry = snapshot.entry_named(&status.site);
            let policies = entry.into_iter().flat_map(|entry| &entry.site.policy.pauses);
            let recurring = policies.filter(|pause| pause.time.recurs());
            PausedSite {
                recurring: recurring.map(|pause| format!("{}, {}", pause.audience.name(), pause.time)).collect(),
                planned: entry.map(|entry| planned(entry, now)).unwrap_or_default(),
                over: entry.map(|entry| over(entry, now)).unwrap_or_default(),
                commands: self.pause_commands(&status.site, status.paused_until.is_some()),
                status,
            }
        };
        let sites = self.operations.status().policies.sites.into_iter().filter(|site| site.in_force);
        Ok(PausesPage { layout: self.layout("Pauses", "/pauses"), sites: sites.map(site).collect() }.render()?)
    }

    /// The commands that pause or resume a site.
    pub(super) fn pause_commands(&self, site: &str, is_paused: bool) -> Vec<String> {
        commands(site, is_paused, self.operations.control.get().map(PathBuf::as_path))
    }
}

fn planned(entry: &SiteEntry, now: Timestamp) -> Vec<String> {
    let mut planned: Vec<&ActivePause> = entry.pauses.iter().filter(|pause| pause.from > now).collect();
    planned.sort_by_key(|pause| pause.from);
    planned.into_iter().take(MAX_SHOWN).map(shown).collect()
}

/// The pauses that have ended, the latest first.
fn over(entry: &SiteEntry, now: Timestamp) -> Vec<String> {
    // A planned one that ends where it begins stands for a robots.txt that is still answered 503.
    let planned = entry.pauses.iter().filter(|pause| pause.from < pause.until);
    let mut over: Vec<&ActivePause> = planned.chain(&entry.last_switched).filter(|pause| pause.until <= now).collect();
    over.sort_by_key(|pause| std::cmp::Reverse(pause.until));
    over.into_iter().take(MAX_SHOWN).map(shown).collect()
}

fn shown(pause: &ActivePause) -> String {
    format!("{} from {} to {} UTC", pause.audience.name(), minute(pause.from), minute(pause.until))
}

fn commands(site: &str, is_paused: bool, control: Option<&Path>) -> Vec<String> {
    let site = word(site);
    let control = control.filter(|path| *path != Path::new(CONTROL_OF_SERVICE));
    let control = control.map(|path| format!(" --control {}", word(&path.to_string_lossy()))).unwrap_or_default();
    match is_paused {
        true => vec![format!("crawlgate resume --site {site}{control}")],
        false => vec![
            format!("crawlgate pause --site {site} --for 2h{control}"),
            format!("crawlgate pause --site {site} --everyone --for 10m{control}"),
        ],
    }
}

/// A text as one word of a shell.
fn word(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-".contains(sign);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_socket_unless_it_is_that_of_the_service() {
        let said = |path: &str| commands("a b", true, Some(Path::new(path)));
        assert_eq!(said("/tmp/a.sock"), ["crawlgate resume --site 'a b' --control /tmp/a.sock"]);
        assert_eq!(said("/tmp/it's"), [r"crawlgate resume --site 'a b' --control '/tmp/it'\''s'"]);
        assert_eq!(said("/run/crawlgate/control.sock"), ["crawlgate resume --site 'a b'"]);
        assert_eq!(commands("shop", true, None), ["crawlgate resume --site shop"]);
    }
}
