//! [`interim_entries`]: the sites in force while a new robots.txt waits, because crawlgate cannot
//! announce it to other instances of crawlgate yet.

use super::pauses::Pauses;
use super::same_robots::has_same_robots;
use crate::policy::SiteEntry;
use crate::time::Timestamp;

/// One entry for each site of `before`: the former one with the present pauses of pages, or the new
/// one if it has the same hosts and the same robots.txt.
pub fn interim_entries(
    before: &[SiteEntry],
    new: &[SiteEntry],
    pauses: &Pauses,
    now: Timestamp,
) -> Vec<SiteEntry> {
    let mut entries = Vec::new();
    for before in before {
        let same = new
            .iter()
            .find(|new| new.site.name == before.site.name && has_same_robots(before, new));
        entries.push(match same {
            Some(new) => new.clone(),
            None => before
                .clone()
                .with_page_pauses(pauses.for_site(&before.site, now)),
        });
    }
    entries
}
