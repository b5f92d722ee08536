//! Warnings for operators, in the log and in `crawlgate status`. One says why a changed policy is
//! not in force yet: crawlgate cannot store it, or waits for another instance. The others are about
//! the state directory: it is missing, or what is in it cannot be read or written.

use super::SiteManager;
use super::publisher::Deferral;
use crate::finding::Finding;
use crate::printable::join_first;
use crate::state::StoreHealth;

impl SiteManager {
    /// Why a change that was just made is not in force yet, or would be lost with the process.
    pub fn persistence_problems(&self) -> Vec<Finding> {
        self.deferral_finding()
            .into_iter()
            .chain(self.store_health_finding())
            .collect()
    }

    /// The problem of the state store. `None` if it is healthy, or if the settings name no directory.
    fn store_health_finding(&self) -> Option<Finding> {
        match self.store.health() {
            StoreHealth::Healthy | StoreHealth::NoDirectory => None,
            health => Some(Finding::new("state-directory", health.to_string())),
        }
    }

    /// Warnings about stored state: an unhealthy store, a state of the previous run that could not
    /// be read and was set aside, and `robots.previous` without a state directory in the settings.
    pub fn store_warnings(&self) -> impl Iterator<Item = Finding> {
        let set_aside = self.set_aside.as_ref().map(|file| {
            Finding::new(
                "state-set-aside",
                format!(
                    "the state of the previous run could not be read and was set aside as {}; crawlgate began an \
                     empty one. Check your pauses, and delete the file when you no longer need it",
                    file.display()
                ),
            )
        });
        self.store_health_finding()
            .into_iter()
            .chain(set_aside)
            .chain(self.ignored_previous_warning())
    }

    /// A warning that names the sites whose policies have `robots.previous`, if the settings name no
    /// state directory: then every start looks like the first one.
    fn ignored_previous_warning(&self) -> Option<Finding> {
        let snapshot = self.snapshot.load();
        let sites: Vec<&str> = snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.robots.previous.is_some())
            .map(|entry| entry.site.name.as_str())
            .collect();
        if sites.is_empty() || self.store.health() != StoreHealth::NoDirectory {
            return None;
        }
        Some(Finding::new(
            "previous-without-state",
            format!(
                "robots.previous has no effect ({}): crawlgate keeps no state, so every start looks like the first \
                 one. Name a directory that survives restarts: with \"state\" in the settings, or in an application with \
                 GateBuilder::state (Cargo feature \"state\")",
                join_first(sites, 5)
            ),
        ))
    }

    /// Why new sites are not in force yet; `None` if nothing is deferred.
    pub fn deferral_finding(&self) -> Option<Finding> {
        Some(match &*self.deferral.load_full()? {
            Deferral::Uncommitted(_) => Finding::new(
                "waits-for-state",
                "new policies and pauses of robots.txt wait, because the state directory cannot be written; they come \
                 into force after about 20 seconds at most",
            ),
            Deferral::Unannounced(_) => Finding::new(
                "waits-for-store",
                "a new or paused robots.txt waits until the store accepts it, because the other instances do not know \
                 it yet and could count violations wrongly. The rest of its policy waits with it, also its planned pauses. \
                 \"crawlgate pause\" of pages takes effect at once",
            ),
        })
    }
}
