//! [`OriginFiles`]: the copies of the origins' own robots.txt files, by site. A site is compiled
//! with its copy. [`KnownOrigins`] has the copies at the start, and [`OriginRobotsStatus`] shows
//! the state of a copy in the status.
//!
//! At first a copy is awaited: crawlgate answers robots.txt with 503, for [`PATIENCE`] at most.
//! After that the robots.txt is made of the policy alone. As soon as a copy comes, it is used.

use super::default_sites::{DefaultSite, asked_host, is_no_policy, name_in_log, name_of_logged};
use crate::policy::Site;
use crate::policy::origin::{Origin, OriginCopyState, OriginFile};
use crate::publications::{PublicationLog, covers};
use crate::time::{Timestamp, rfc3339};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// While a site has never had a copy, robots.txt is answered 503 for so long at most. A crawler
/// that gets 5xx stays away, and one that stays away for longer forgets the site.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// The state of an origin's robots.txt without a copy, which was first needed at this moment.
pub fn awaited_since(since: Timestamp) -> Origin {
    Origin::Awaited {
        until: since.plus(PATIENCE),
    }
}

/// What is known of the origins' robots.txt at the start. With the default a site whose policy says
/// `origin: merge`, or nothing of `origin`, answers robots.txt with 503 until a copy of the
/// origin's file comes. A door whose sites have no origin sets `for_every_site` to an empty file.
#[derive(Clone, Debug, Default)]
pub struct KnownOrigins {
    /// The copies by site.
    pub copies: BTreeMap<String, Origin>,
    /// The sites in force while there is no policy. If it is empty, one site is for every host.
    pub default_sites: Vec<DefaultSite>,
    /// By site, why the file that the origin has is held back.
    pub held_back: BTreeMap<String, String>,
    /// The file of every site that has no copy of its own. An application that is its own origin
    /// has one.
    pub for_every_site: Option<Arc<OriginFile>>,
}

/// The state of a copy of an origin's robots.txt, for the status.
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
    /// Lines of the origin's file that are not published: they name a host that crawlers cannot
    /// reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpublished_lines: Vec<usize>,
    /// Whether the copy comes from before, and the origin was not asked since.
    #[serde(default)]
    pub is_unasked: bool,
    /// What is served meanwhile.
    #[serde(default)]
    pub served: Served,
    /// Until when robots.txt is answered 503, while it is.
    #[serde(default, serialize_with = "rfc3339")]
    pub unavailable_until: Option<Timestamp>,
    /// When crawlgate will believe that the origin has no rules any more, while the origin says so.
    #[serde(default, serialize_with = "rfc3339")]
    pub believed_at: Option<Timestamp>,
}

/// What a site serves whose policy asks for its origin's robots.txt.
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
    /// What a site serves at a moment, and, if it is 503, until when. It is 503 while the site
    /// waits for its origin's file.
    pub fn of(site: &Site, now: Timestamp) -> (Served, Option<Timestamp>) {
        let awaited_until = site
            .robots_txt
            .awaits_origin_until
            .filter(|until| now < *until);
        match (&site.origin, awaited_until) {
            (_, Some(until)) => (Served::Unavailable, Some(until)),
            (Some(_), None) => (Served::WithOrigin, None),
            (None, None) => (Served::WithoutOrigin, None),
        }
    }
}

/// The copies of origins' robots.txt files by site, as sites are compiled with them.
#[derive(Clone, Debug, Default)]
pub struct OriginFiles(pub BTreeMap<String, Origin>, pub Option<Arc<OriginFile>>);

impl OriginFiles {
    /// What a site is to be compiled with: what is known of its own origin, else the file for every
    /// site if there is one, else the state of waiting, from now on.
    pub fn of(&self, name: &str, now: Timestamp) -> Origin {
        let known = self
            .0
            .get(name)
            .cloned()
            .or_else(|| self.1.clone().map(Origin::Read));
        known.unwrap_or_else(|| awaited_since(now))
    }

    /// What a site is to be compiled with where its hosts changed; `None` where it goes on with
    /// what it has. If another site had the host by which this site asks its origin, it is that
    /// site's copy, which is better than none if the origin is down. If the site did not have the
    /// host before, and only has a copy of another host's file, it waits anew. `before` is the site
    /// of this name in force.
    pub fn inherited(
        &self,
        site: &Site,
        before: Option<&Site>,
        log: &PublicationLog,
        now: Timestamp,
    ) -> Option<Origin> {
        if !site.policy.reads_origin() || log.is_empty() || self.1.is_some() {
            return None;
        }
        let host = asked_host(&site.policy);
        let own = name_in_log(site);
        let last = log.last_site(host.as_ref());
        if last == Some(own.as_str()) {
            return None;
        }
        match last.and_then(|last| self.0.get(name_of_logged(last))) {
            Some(Origin::Read(file)) => Some(Origin::Read(file.clone())),
            // The host by which the site asks was its own before, or that by which it asked is
            // still: its copy is better than none until another is there.
            _ if log.had(&own, host.as_ref())
                || before.is_some_and(|before| keeps_asked_host(site, before)) =>
            {
                None
            }
            // A copy that has the site's name is of another host.
            _ => {
                matches!(self.0.get(&site.name), Some(Origin::Read(_))).then(|| awaited_since(now))
            }
        }
    }

    /// Forgets the copies of sites that are neither in `names` (the sites in force) nor in the
    /// publication log.
    pub fn forget(&mut self, names: &BTreeSet<String>, log: &PublicationLog) {
        let logged: BTreeSet<&str> = log.sites().into_iter().map(name_of_logged).collect();
        self.0
            .retain(|site, _| names.contains(site) || logged.contains(site.as_str()));
    }

    /// Records what a site that comes into force is compiled with: its copy, or that it waits since
    /// now unless it waited already. A site that does not use the origin's file has no entry.
    /// `takes_name` says that a default site had its name: what was known of that one is dropped if
    /// this is another.
    pub fn note(&mut self, site: &Site, takes_name: bool, now: Timestamp) {
        let name = site.name.clone();
        if takes_name && !is_no_policy(&site.policy) {
            self.0.remove(&name);
        }
        match &site.origin {
            _ if !site.policy.reads_origin() => drop(self.0.remove(&name)),
            Some(file) => self.set(&name, file.clone()),
            None if matches!(self.0.get(&name), Some(Origin::Awaited { .. })) => {}
            // A copy that the site was not compiled with is of another host.
            None => drop(self.0.insert(name, awaited_since(now))),
        }
    }

    /// The origin of a site has this file.
    pub fn set(&mut self, name: &str, file: Arc<OriginFile>) {
        self.0.insert(name.to_owned(), Origin::Read(file));
    }

    /// For a wall clock that was set by so many seconds (negative: back): moves the end of waiting
    /// by as much, to `PATIENCE` from now at most.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        for known in self.0.values_mut() {
            if let Origin::Awaited { until } = known {
                *until = Timestamp(until.0.saturating_add(by)).min(now.plus(PATIENCE));
            }
        }
    }
}

/// Whether the host by which a site asked for its origin's file before is one of its hosts now. A
/// site without hosts has every host. False if `before` had no such host.
fn keeps_asked_host(site: &Site, before: &Site) -> bool {
    asked_host(&before.policy).is_some_and(|asked| {
        let mut hosts = site.policy.hosts.iter().map(|host| &host.value);
        site.policy.hosts.is_empty() || hosts.any(|host| covers(host, &asked))
    })
}
