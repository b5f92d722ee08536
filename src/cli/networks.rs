//! [`read`]: the published networks of crawlers, for commands that judge old requests. They come from where `--lists`
//! says, or from the state directory of a crawlgate.

use super::{Failure, now, places, say};
use crate::audit::PublishedNetworks;
use crate::crawlers::Registry;
use crate::identity::refresh::{ListUpdate, UpdateResult, file_name, update_all};
use crate::identity::{KnownMeans, ListIndex, PublishedLists, is_directory};
use crate::settings::ListSettings;
use crate::state::{StateError, StateStore, StoredFacts};
use std::path::Path;

/// The networks from where `--lists` says, else from the state directory. `None` where there are none.
pub(super) fn read(
    lists: Option<&ListSettings>,
    state: Option<&Path>,
    registry: &Registry,
) -> Result<Option<PublishedNetworks>, Failure> {
    match (lists, state) {
        (Some(ListSettings::Off), _) => Ok(None),
        (Some(from), _) => take(from, registry).map(Some),
        (None, Some(directory)) => Ok(stored(directory, registry)?),
        (None, None) => {
            let Some(directory) = places::state() else { return Ok(None) };
            Ok(stored(&directory, registry).unwrap_or_else(|error| {
                say(&format!("crawlgate: {error}; impostors are not looked for"));
                None
            }))
        }
    }
}

/// The networks that a crawlgate stored.
fn stored(directory: &Path, registry: &Registry) -> Result<Option<PublishedNetworks>, StateError> {
    let facts = StateStore::read(directory, now())?;
    let (means, lists) = lists(registry, &facts);
    Ok(PublishedNetworks::new(means, lists, now()))
}

fn lists(registry: &Registry, facts: &StoredFacts) -> (KnownMeans, PublishedLists) {
    let means = KnownMeans::of(registry);
    let lists = PublishedLists::new(&means, &facts.network_lists, StateStore::in_memory_only().0);
    (means, lists)
}

/// Takes all lists from their operators, a mirror or a directory, and says how many could not be fetched.
fn take(from: &ListSettings, registry: &Registry) -> Result<PublishedNetworks, Failure> {
    let (means, lists) = lists(registry, &StoredFacts::default());
    let wanted: Vec<ListIndex> = lists.all().filter(|(_, url)| !is_directory(url)).map(|(list, _)| list).collect();
    let updates = update_all(&lists, &wanted, from, now());
    let updates: Vec<ListUpdate> = updates.into_iter().filter_map(|(_, update)| update).collect();
    let failed = || updates.iter().filter(|update| update.result.is_failure());
    if let Some(ListUpdate { url, error, .. }) = failed().next() {
        let (number, error) = (failed().count(), error.as_deref().unwrap_or_default());
        say(&format!(
            "crawlgate: {number} of {} lists could not be had, the first is {url}: {error}. Their crawlers stay unverified",
            updates.len()
        ));
    }
    PublishedNetworks::new(means, lists, now()).ok_or_else(|| {
        let absent = updates.iter().filter(|update| update.result == UpdateResult::Absent);
        let absent = absent.min_by_key(|update| update.url.len());
        Failure::CouldNot(match (from, absent) {
            (ListSettings::Directory(directory), Some(absent)) => format!(
                "{} has none of the lists. A list is below the directory under its URL, like {}",
                directory.display(),
                directory.join(file_name(&absent.url)).display()
            ),
            _ => "none of the lists of --lists could be had".to_owned(),
        })
    })
}
