//! What is known of origins' own robots.txt files, and what becomes of a site when that changes.
//!
//! Knows copies; knows neither how they are fetched nor when.

use super::reload::Sites;
use crate::policy::origin::{Origin, OriginFile};
use crate::policy::{Policy, Site, SiteEntry};
use crate::time::Timestamp;
use crate::yaml::Source;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Without a copy ever, robots.txt is answered 503 for so long at most: a crawler that gets 5xx stays away, and one that
/// stays away for longer forgets the site.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// The site that there is when there is no policy: it observes who breaks the origin's own rules.
pub const WITHOUT_POLICY: &str = "origin";
/// Its policy. It says nothing of its own, so it holds nothing back either: what the site says is passed on.
const NO_POLICY: &str = "robots: { origin: only }\nacknowledge: [site_disallowed]\n";

/// Where a file has its path.
const NO_POLICY_NAME: &str = "(no policy)";

/// What is known of the robots.txt of a site's origin.
#[derive(Clone, Debug)]
pub enum OriginKnown {
    /// The last good copy.
    Copy(Arc<OriginFile>),
    /// Nothing, since it was first wanted.
    AwaitedSince(Timestamp),
}

impl OriginKnown {
    pub(super) fn for_compiling(&self) -> Origin {
        match self {
            OriginKnown::Copy(file) => Origin::Read(file.clone()),
            OriginKnown::AwaitedSince(since) => Origin::Awaited { until: since.plus(PATIENCE) },
        }
    }
}

/// How it stands with the robots.txt of a site's origin, for the status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OriginRobotsStatus {
    /// One of the states in `docs/semantics.md`.
    pub state: String,
    /// Where it is fetched.
    pub url: Option<String>,
    /// When the origin last said what it has, or that it has none.
    pub last_success: Option<Timestamp>,
    /// What is wrong, for a person.
    pub problem: Option<String>,
}

/// The policy of the site that has none.
pub fn no_policy() -> Source {
    Source { name: NO_POLICY_NAME.into(), text: NO_POLICY.into() }
}

/// Whether a policy is that of the site that has none, and not one of a file with the same name.
pub fn is_no_policy(policy: &Policy) -> bool {
    &*policy.source.name == NO_POLICY_NAME
}

impl Sites {
    /// What a site is to be compiled with.
    pub(super) fn origin_of(&self, name: &str, now: Timestamp) -> Origin {
        self.origins.get(name).cloned().unwrap_or(OriginKnown::AwaitedSince(now)).for_compiling()
    }

    /// Notes that a site came into force: from now on it waits for its origin's file, or does not ask for it.
    pub(super) fn note_origin(&mut self, site: &Site, now: Timestamp) {
        let name = site.name.clone();
        match &site.origin {
            _ if !site.policy.reads_origin() => drop(self.origins.remove(&name)),
            Some(file) => drop(self.origins.insert(name, OriginKnown::Copy(file.clone()))),
            None => drop(self.origins.entry(name).or_insert(OriginKnown::AwaitedSince(now))),
        }
    }

    /// The copy of the site without a policy, for the first policy that takes its place: it is for the same hosts.
    pub(super) fn inherited(&self, site: &Site) -> Option<Origin> {
        let new = site.policy.reads_origin() && site.policy.hosts.is_empty() && !self.origins.contains_key(&site.name);
        match self.origins.get(WITHOUT_POLICY).filter(|_| new && self.without_policy.is_some())? {
            OriginKnown::Copy(file) => Some(Origin::Read(file.clone())),
            OriginKnown::AwaitedSince(_) => None,
        }
    }

    /// Puts a copy into force, unless the site could not be used with it: then the findings say why, and everything
    /// stays as it was.
    pub(super) fn origin_says(
        &mut self,
        name: &str,
        file: Arc<OriginFile>,
        now: Timestamp,
    ) -> (Result<(), Vec<String>>, bool) {
        let Some(before) = self.entry(name).filter(|entry| entry.site.policy.reads_origin()).cloned() else {
            return (Ok(()), false);
        };
        let source = before.site.policy.source.clone();
        let candidate = self.read_with(name, Ok(source), &Origin::Read(file.clone()));
        let Some(site) = candidate.site.clone() else { return (Err(candidate.tell().0), false) };
        self.origins.insert(name.to_owned(), OriginKnown::Copy(file));
        let entry = self.succeed(Some(before), site, now);
        if let Some(place) = self.entry_mut(name) {
            *place = entry;
        }
        self.remember(now);
        (Ok(()), true)
    }

    /// The site without a policy is there while no other is in force. Says whether that changed.
    pub(super) fn settle_without_policy(&mut self, now: Timestamp) -> bool {
        let others = self.loaded.values().any(|loaded| loaded.entry.is_some());
        match (&self.without_policy, others) {
            (Some(_), true) => {
                self.without_policy = None;
                if !self.loaded.contains_key(WITHOUT_POLICY) {
                    self.origins.remove(WITHOUT_POLICY);
                }
                true
            }
            (None, false) if self.loaded.is_empty() => {
                let origin = self.origin_of(WITHOUT_POLICY, now);
                let Some(site) = self.read_with(WITHOUT_POLICY, Ok(no_policy()), &origin).site else { return false };
                self.note_origin(&site, now);
                self.without_policy = Some(self.succeed(None, site, now));
                true
            }
            _ => false,
        }
    }

    /// What a new site follows: where there was no policy, crawlers hold what was served without one.
    pub(super) fn predecessor(&self) -> Option<SiteEntry> {
        self.without_policy.clone()
    }
}
