//! What is known of origins' own robots.txt files, and what becomes of a site when that changes.
//!
//! Knows copies; knows neither how they are fetched nor when.

use super::default_sites::{DefaultSite, asked_host, is_no_policy};
use super::reload::Sites;
use super::succession::{name_in_log, name_of_logged};
use crate::history::covers;
use crate::policy::Site;
use crate::policy::origin::{Origin, OriginCopyState, OriginFile};
use crate::settings::OriginSettings;
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Without a copy ever, robots.txt is answered 503 for so long at most: a crawler that gets 5xx stays away, and one
/// that stays away for longer forgets the site.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// What is known of the robots.txt of a site's origin.
#[derive(Clone, Debug)]
pub enum OriginKnown {
    /// The last good copy.
    Copy(Arc<OriginFile>),
    /// Nothing, since it was first wanted.
    AwaitedSince(Timestamp),
}

impl OriginKnown {
    /// What a site is compiled with that knows this.
    pub fn for_compiling(&self) -> Origin {
        match self {
            OriginKnown::Copy(file) => Origin::Read(file.clone()),
            OriginKnown::AwaitedSince(since) => Origin::Awaited { until: since.plus(PATIENCE) },
        }
    }
}

/// What is known when it all starts.
#[derive(Clone, Debug, Default)]
pub struct KnownOrigins {
    /// By site.
    pub copies: BTreeMap<String, OriginKnown>,
    /// The sites that there are while there is no policy; one for every host where none is listed.
    pub default_sites: Vec<DefaultSite>,
    /// By site, why the file that the origin has is held back.
    pub held_back: BTreeMap<String, String>,
}

impl KnownOrigins {
    /// With a site for each of these origins, while there is no policy.
    pub fn before(self, origins: &[OriginSettings]) -> KnownOrigins {
        KnownOrigins { default_sites: DefaultSite::of(origins), ..self }
    }
}

/// How it stands with the robots.txt of a site's origin, for the status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginRobotsStatus {
    /// The state of the copy; `docs/origin-robots.md` explains each.
    pub state: OriginCopyState,
    /// Where it is fetched.
    pub url: Option<String>,
    /// When the origin last said what it has, or that it has none.
    #[serde(serialize_with = "rfc3339")]
    pub last_success: Option<Timestamp>,
    /// What is wrong, for a person.
    pub problem: Option<String>,
    /// Whether the copy comes from before, and the origin was not asked since.
    #[serde(default)]
    pub is_unasked: bool,
    /// What is served meanwhile.
    #[serde(default)]
    pub served: Served,
    /// Until when robots.txt is answered 503, while it is.
    #[serde(default, serialize_with = "rfc3339")]
    pub unavailable_until: Option<Timestamp>,
    /// When it is believed that the origin has no rules any more, while that is what it says.
    #[serde(default, serialize_with = "rfc3339")]
    pub believed_at: Option<Timestamp>,
}

/// What a site whose policy asks for its origin's robots.txt serves, whatever is the matter with that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Served {
    /// The policy with the copy of the origin's file, or with the knowledge that there is none.
    #[default]
    WithOrigin,
    /// 503, which crawlers take for all being disallowed.
    Unavailable,
    /// The policy alone: without one, that all is allowed.
    WithoutOrigin,
}

impl Served {
    /// What is served of a site at a moment, and until when it is 503.
    pub fn of(site: &Site, now: Timestamp) -> (Served, Option<Timestamp>) {
        let awaited_until = site.robots_txt.awaits_origin_until.filter(|until| now < *until);
        match (&site.origin, awaited_until) {
            (_, Some(until)) => (Served::Unavailable, Some(until)),
            (Some(_), None) => (Served::WithOrigin, None),
            (None, None) => (Served::WithoutOrigin, None),
        }
    }
}

impl Sites {
    /// What a site is to be compiled with.
    pub(super) fn origin_of(&self, name: &str, now: Timestamp) -> Origin {
        self.origins.get(name).cloned().unwrap_or(OriginKnown::AwaitedSince(now)).for_compiling()
    }

    /// The same for what a file says. Of a site without a policy that happens to have its name it has nothing but what
    /// it [inherits](Sites::inherited): that may be another host's.
    pub(super) fn origin_of_file(&self, name: &str, now: Timestamp) -> Origin {
        match self.default_sites.contains_key(name) {
            true => OriginKnown::AwaitedSince(now).for_compiling(),
            false => self.origin_of(name, now),
        }
    }

    /// What is known of the origin's robots.txt for the host by which a site asks for it, where another site had that
    /// host until now: the site goes on with that copy, which is better than none should the origin be down just then.
    /// `None` where the site goes on with what it has.
    pub(super) fn inherited(&self, site: &Site, now: Timestamp) -> Option<Origin> {
        let log = &self.published_log;
        if !site.policy.reads_origin() || log.is_empty() {
            return None;
        }
        let host = asked_host(&site.policy);
        let own = name_in_log(site);
        let before = log.last_site(host.as_ref());
        if before == Some(own.as_str()) {
            return None;
        }
        match before.and_then(|before| self.origins.get(name_of_logged(before))) {
            Some(OriginKnown::Copy(file)) => Some(Origin::Read(file.clone())),
            // The host by which it asks was its own before, or that by which it asked is still: its copy is better than
            // none until another is there.
            _ if log.had(&own, host.as_ref()) || self.keeps_asked_host(site) => None,
            // A copy that has the site's name is of another host.
            _ => matches!(self.origins.get(&site.name), Some(OriginKnown::Copy(_)))
                .then(|| OriginKnown::AwaitedSince(now).for_compiling()),
        }
    }

    /// Whether the host by which a site asked for its origin's file is one of its hosts now.
    fn keeps_asked_host(&self, site: &Site) -> bool {
        let asked = self.entry(&site.name).and_then(|before| asked_host(&before.site.policy));
        asked.is_some_and(|asked| {
            let hosts = || site.policy.hosts.iter().map(|host| &host.value);
            site.policy.hosts.is_empty() || hosts().any(|host| covers(host, &asked))
        })
    }

    /// Forgets the copies of sites that are long gone.
    pub(super) fn forget_origins(&mut self) {
        let names: BTreeSet<String> = self.names().into_iter().collect();
        let known = self.memory.log.sites();
        self.origins
            .retain(|site, _| names.contains(site) || known.iter().any(|logged| name_of_logged(logged) == site));
    }

    /// Notes that a site came into force: from now on it waits for its origin's file, or does not ask for it.
    pub(super) fn note_origin(&mut self, site: &Site, now: Timestamp) {
        let name = site.name.clone();
        if self.default_sites.contains_key(&name) && !is_no_policy(&site.policy) {
            self.origins.remove(&name);
        }
        match &site.origin {
            _ if !site.policy.reads_origin() => drop(self.origins.remove(&name)),
            Some(file) => drop(self.origins.insert(name, OriginKnown::Copy(file.clone()))),
            None if matches!(self.origins.get(&name), Some(OriginKnown::AwaitedSince(_))) => {}
            // A copy that it was not compiled with is of another host.
            None => drop(self.origins.insert(name, OriginKnown::AwaitedSince(now))),
        }
    }

    /// The clock on the wall was set by so many seconds: who waits for the origin's file waits no longer, and no
    /// shorter, for that.
    pub(super) fn clock_was_set(&mut self, by: i64, now: Timestamp) -> bool {
        for known in self.origins.values_mut() {
            if let OriginKnown::AwaitedSince(since) = known {
                *since = Timestamp(since.0.saturating_add(by)).min(now);
            }
        }
        let mut changed = false;
        for name in self.names() {
            let Some(before) = self.entry(&name).filter(|entry| entry.site.robots_txt.awaits_origin_until.is_some())
            else {
                continue;
            };
            let (before, origin) = (before.clone(), self.origin_of(&name, now));
            let candidate = self.read_with(&name, Ok(before.site.policy.source.clone()), &origin);
            let Some(site) = candidate.site else { continue };
            site.front_page.go_on_from(&before.site.front_page);
            let entry = self.succeed(site, now);
            if let Some(place) = self.entry_mut(&name) {
                *place = entry;
                changed = true;
            }
        }
        if changed {
            self.remember(now);
        }
        changed
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
        let Some(site) = candidate.site.clone() else { return (Err(candidate.refusals()), false) };
        // The same octets from another URL are no news of the front page.
        if before.site.origin.as_ref().is_some_and(|known| known.file.bytes() == file.file.bytes()) {
            site.front_page.go_on_from(&before.site.front_page);
        }
        self.origins.insert(name.to_owned(), OriginKnown::Copy(file));
        let entry = self.succeed(site, now);
        if let Some(place) = self.entry_mut(name) {
            *place = entry;
        }
        self.remember(now);
        (Ok(()), true)
    }
}
