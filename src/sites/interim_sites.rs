//! [`interim_entries`]: the sites in force while a new robots.txt waits, because crawlgate cannot
//! announce it to other instances of crawlgate yet.

use super::pauses::Pauses;
use super::same_robots::has_same_robots;
use crate::policy::SiteEntry;
use crate::policy::model::HostPattern;
use crate::time::Timestamp;

/// One entry for each site of `before`: the former one with the present pauses of pages, or the new
/// one if it has the same robots.txt. If `new` has other sites or hosts than `before`, or is empty,
/// all former sites stay.
pub fn interim_entries(
    before: &[SiteEntry],
    new: &[SiteEntry],
    pauses: &Pauses,
    now: Timestamp,
) -> Vec<SiteEntry> {
    let has_same_sites = have_same_sites(before, new);
    let mut entries = Vec::new();
    for before in before {
        let same = new.iter().find(|new| {
            has_same_sites && new.site.name == before.site.name && has_same_robots(before, new)
        });
        entries.push(match same {
            Some(new) => new.clone(),
            None => before
                .clone()
                .with_page_pauses(pauses.for_site(&before.site, now)),
        });
    }
    entries
}

/// Whether both have sites of the same names with the same hosts in the same order.
fn have_same_sites(before: &[SiteEntry], new: &[SiteEntry]) -> bool {
    before.len() == new.len()
        && new.iter().all(|new| {
            let mut before = before.iter();
            before.any(|before| {
                before.site.name == new.site.name && host_patterns(before).eq(host_patterns(new))
            })
        })
}

fn host_patterns(entry: &SiteEntry) -> impl Iterator<Item = &HostPattern> {
    entry.site.policy.hosts.iter().map(|host| &host.value)
}
