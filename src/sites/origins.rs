//! [`OriginRobotsFiles`]: the copies of the origins' own robots.txt files, by site. A site is
//! compiled from its policy and its copy. [`InitialOriginRobots`] has the copies at the start, and
//! [`OriginRobotsStatus`] is the state of a copy for operators.
//!
//! At first a site waits for its copy: crawlgate answers robots.txt with 503, for
//! [`MAX_ORIGIN_WAIT`] at most. After that, robots.txt is made from the policy alone. When a copy
//! comes later, it is used.

use super::default_sites::{
    DefaultSite, is_default_site_policy, log_name, origin_request_pattern, site_name_from_log,
};
use crate::policy::Site;
use crate::policy::origin::{OriginCopyState, OriginRobotsAvailability, OriginRobotsTxt};
use crate::publications::{PublicationLog, pattern_covers};
use crate::time::{Timestamp, rfc3339};
use OriginRobotsAvailability::{Available, Awaited};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ServedRobotsKind::*;

/// How long robots.txt is answered 503 while a site has never had a copy. A crawler that gets 5xx
/// stays away, and a crawler that stays away for longer may drop the site.
pub const MAX_ORIGIN_WAIT: Duration = Duration::from_secs(3_600);

/// The state of an origin's robots.txt without a copy, awaited since this moment.
pub fn awaited_origin(since: Timestamp) -> OriginRobotsAvailability {
    Awaited {
        until: since.plus(MAX_ORIGIN_WAIT),
    }
}

/// What is known of the origins' robots.txt at the start. With the default, a site whose policy says
/// `origin: merge`, or has no `origin`, answers robots.txt with 503 until a copy of the origin's
/// file comes. An entry point whose sites have no origin sets `for_every_site` to an empty file.
#[derive(Clone, Debug, Default)]
pub struct InitialOriginRobots {
    /// The copies by site.
    pub copies: BTreeMap<String, OriginRobotsAvailability>,
    /// The default sites. If it is empty, one site is for every host.
    pub default_sites: Vec<DefaultSite>,
    /// Why the origin's present file is held back, by site.
    pub held_back: BTreeMap<String, String>,
    /// The file of every site that has no copy of its own, for an application that is its own
    /// origin.
    pub for_every_site: Option<Arc<OriginRobotsTxt>>,
}

/// The state of a copy of an origin's robots.txt, for the status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OriginRobotsStatus {
    /// The state of the copy; `docs/origin-robots.md` explains each.
    pub state: OriginCopyState,
    /// Where it is fetched.
    pub url: Option<String>,
    /// When the origin last answered that it has this file or none.
    #[serde(serialize_with = "rfc3339")]
    pub last_success: Option<Timestamp>,
    /// The problem, for a person.
    pub problem: Option<String>,
    /// Lines of the origin's file that are not published: they name a host that crawlers cannot
    /// reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpublished_lines: Vec<usize>,
    /// Whether the copy was taken over, and the origin was not asked since.
    #[serde(default)]
    pub is_unasked: bool,
    /// What is served meanwhile.
    #[serde(default)]
    pub served: ServedRobotsKind,
    /// Until when robots.txt is answered 503, while it is.
    #[serde(default, serialize_with = "rfc3339")]
    pub unavailable_until: Option<Timestamp>,
    /// When crawlgate will believe that the origin has no rules any more, while the origin says so.
    #[serde(default, serialize_with = "rfc3339")]
    pub believed_at: Option<Timestamp>,
}

/// Which robots.txt a site serves whose policy reads its origin's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServedRobotsKind {
    /// The policy with the copy of the origin's file, also if the origin is known to have none.
    #[default]
    WithOrigin,
    /// 503, by which crawlers treat everything as disallowed.
    Unavailable,
    /// The policy alone; without a policy everything is allowed.
    WithoutOrigin,
}

impl ServedRobotsKind {
    /// What is served while the origin's file cannot be used, as a clause.
    pub fn words(self) -> &'static str {
        match self {
            WithOrigin => "the last good copy stays in use",
            Unavailable => "crawlgate answers robots.txt with 503 for up to an hour",
            WithoutOrigin => {
                "crawlgate serves the rules of the policy alone; without a policy it allows everything"
            }
        }
    }

    /// What a site serves at a moment, and until when if it is 503. It is 503 while the site waits
    /// for its origin's file.
    pub fn at(site: &Site, now: Timestamp) -> (ServedRobotsKind, Option<Timestamp>) {
        let awaited_until = site
            .robots_txt
            .awaits_origin_until
            .filter(|until| now < *until);
        match (&site.origin, awaited_until) {
            (_, Some(until)) => (Unavailable, Some(until)),
            (Some(_), None) => (WithOrigin, None),
            (None, None) => (WithoutOrigin, None),
        }
    }
}

/// The copies of origins' robots.txt files that sites are compiled with.
pub struct OriginRobotsFiles {
    /// The copies by site.
    pub by_site: BTreeMap<String, OriginRobotsAvailability>,
    /// The file of every site that has no copy of its own.
    pub for_every_site: Option<Arc<OriginRobotsTxt>>,
}

impl OriginRobotsFiles {
    /// The origin's file for compiling a site: its own copy, else the file for every site, else
    /// "awaited" from now on.
    pub fn for_site(&self, name: &str, now: Timestamp) -> OriginRobotsAvailability {
        let known = self
            .by_site
            .get(name)
            .cloned()
            .or_else(|| self.for_every_site.clone().map(Available));
        known.unwrap_or_else(|| awaited_origin(now))
    }

    /// The origin's file for compiling a site whose hosts changed; `None` if it keeps its own. If
    /// another site had the host of its requests to the origin, it gets the copy of that site, which
    /// is better than none if the origin is down. If it did not have the host before, and has only a
    /// copy of another host's file, it waits again. `before` is the site of this name in force.
    pub fn inherited_origin(
        &self,
        site: &Site,
        before: Option<&Site>,
        log: &PublicationLog,
        now: Timestamp,
    ) -> Option<OriginRobotsAvailability> {
        if !site.policy.reads_origin() || log.is_empty() || self.for_every_site.is_some() {
            return None;
        }
        let host = origin_request_pattern(&site.policy);
        let own = log_name(site);
        let last = log.last_owner(host.as_ref());
        if last == Some(own.as_str()) {
            return None;
        }
        match last.and_then(|last| self.by_site.get(site_name_from_log(last))) {
            Some(Available(file)) => Some(Available(file.clone())),
            // The request host belonged to this site before, or the former request host still does:
            // its copy is better than none until another comes.
            _ if log.had_host(&own, host.as_ref())
                || before.is_some_and(|before| has_former_request_host(site, before)) =>
            {
                None
            }
            // The copy under this name is of another host.
            _ => matches!(self.by_site.get(&site.name), Some(Available(_)))
                .then(|| awaited_origin(now)),
        }
    }

    /// Removes the copies of sites that are neither in `names` (the sites in force) nor in the
    /// publication log.
    pub fn retain_sites(&mut self, names: &BTreeSet<String>, log: &PublicationLog) {
        let logged: BTreeSet<&str> = log
            .site_names()
            .into_iter()
            .map(site_name_from_log)
            .collect();
        self.by_site
            .retain(|site, _| names.contains(site) || logged.contains(site.as_str()));
    }

    /// Records the copy that a site was compiled with, or that it waits, from now on unless it
    /// waited already. A site that does not use the origin's file has no entry. `takes_name`: a
    /// default site had this name before; its copy is removed if this site has a policy.
    pub fn record_site(&mut self, site: &Site, takes_name: bool, now: Timestamp) {
        let name = site.name.clone();
        if takes_name && !is_default_site_policy(&site.policy) {
            self.by_site.remove(&name);
        }
        match &site.origin {
            _ if !site.policy.reads_origin() => drop(self.by_site.remove(&name)),
            Some(file) => self.insert(&name, file.clone()),
            None if matches!(self.by_site.get(&name), Some(Awaited { .. })) => {}
            // The site was not compiled with the copy under its name: that is of another host.
            None => drop(self.by_site.insert(name, awaited_origin(now))),
        }
    }

    /// Sets the copy of a site.
    pub fn insert(&mut self, name: &str, file: Arc<OriginRobotsTxt>) {
        self.by_site.insert(name.to_owned(), Available(file));
    }

    /// Call after the wall clock was set by so many seconds (negative: back): moves the ends of
    /// waiting by as much, at most to `MAX_ORIGIN_WAIT` from now.
    pub fn apply_clock_step(&mut self, by: i64, now: Timestamp) {
        for known in self.by_site.values_mut() {
            if let Awaited { until } = known {
                *until = Timestamp(until.0.saturating_add(by)).min(now.plus(MAX_ORIGIN_WAIT));
            }
        }
    }
}

/// Whether the former host of a site's requests to its origin is still one of its hosts. A site
/// without hosts has every host. False if `before` had no such host.
fn has_former_request_host(site: &Site, before: &Site) -> bool {
    origin_request_pattern(&before.policy).is_some_and(|asked| {
        let mut hosts = site.policy.hosts.iter().map(|host| &host.value);
        site.policy.hosts.is_empty() || hosts.any(|host| pattern_covers(host, &asked))
    })
}
