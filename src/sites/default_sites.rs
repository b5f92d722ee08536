//! The sites that there are when there is no policy: one for each of the settings' origins, with the robots.txt of that
//! origin. They observe who breaks the origin's own rules, until the first policy is in force.
//!
//! Knows whose hosts are whose; neither how a robots.txt is fetched nor when.

use super::reload::Sites;
use crate::policy::model::HostPattern;
use crate::policy::{Policy, Snapshot};
use crate::settings::OriginSettings;
use crate::time::Timestamp;
use crate::yaml::Source;
use std::collections::BTreeSet;

/// The site for every host that no origin of the settings names.
pub const DEFAULT_SITE: &str = "origin";

/// Its policy says nothing of its own, so it holds nothing back either: what the site says is passed on.
const NO_POLICY: &str = "robots: { origin: only }\nacknowledge: [site_disallowed]\n";
/// Where a file has its path.
const NO_POLICY_NAME: &str = "(no policy)";
/// Characters of a host that go into a site's name: names are files and labels, and a host may have 253.
const MAX_NAMED: usize = 100;

/// A site that there is when there is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultSite {
    /// Its name: `origin` for every host, `origin-shop.example` for those of an entry of the settings.
    pub name: String,
    /// Its hosts as the settings write them; none for every host that no other has.
    pub hosts: Vec<String>,
}

impl DefaultSite {
    /// The site for every host.
    pub fn for_every_host() -> DefaultSite {
        DefaultSite { name: DEFAULT_SITE.into(), hosts: Vec::new() }
    }

    /// One site for each origin of the settings, in their order.
    pub fn of(origins: &[OriginSettings]) -> Vec<DefaultSite> {
        let mut names = BTreeSet::new();
        origins.iter().map(|origin| DefaultSite::named(&origin.hosts, &mut names)).collect()
    }

    fn named(hosts: &[String], taken: &mut BTreeSet<String>) -> DefaultSite {
        let name = match first(hosts) {
            None => DEFAULT_SITE.to_owned(),
            Some(host) => {
                let fits = |sign: char| sign.is_ascii_alphanumeric() || ".-_".contains(sign);
                let host = host.replacen("*.", "any.", 1);
                let host: String =
                    host.chars().take(MAX_NAMED).map(|sign| if fits(sign) { sign } else { '-' }).collect();
                format!("{DEFAULT_SITE}-{host}")
            }
        };
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
        taken.insert(name.clone());
        DefaultSite { name, hosts: hosts.to_vec() }
    }

    /// Its policy.
    pub fn source(&self) -> Source {
        let written = |host: &String| match host.contains(':') && !host.starts_with('[') {
            true => format!("\"[{host}]\""),
            false => format!("\"{host}\""),
        };
        let hosts: Vec<String> = self.hosts.iter().map(written).collect();
        let hosts = if hosts.is_empty() { String::new() } else { format!("hosts: [{}]\n", hosts.join(", ")) };
        Source { name: NO_POLICY_NAME.into(), text: format!("{hosts}{NO_POLICY}").into() }
    }
}

/// The host that stands for others: the first that is a name, else the first wildcard.
fn first(hosts: &[String]) -> Option<&String> {
    hosts.iter().find(|host| !host.starts_with('*')).or_else(|| hosts.first())
}

/// Whether a policy is that of a site that has none, and not one of a file with the same name.
pub fn is_no_policy(policy: &Policy) -> bool {
    &*policy.source.name == NO_POLICY_NAME
}

/// The host by which an origin is asked for a site's robots.txt: the site's first name, else a name below its first
/// wildcard. A site for every host has none.
pub fn asked_by(policy: &Policy) -> Option<String> {
    asked_host(policy).map(|host| host.to_string())
}

/// The same as a pattern.
pub(super) fn asked_host(policy: &Policy) -> Option<HostPattern> {
    let hosts = || policy.hosts.iter().map(|host| &host.value);
    let mut host = hosts().find(|host| !host.wildcard).or_else(|| hosts().next())?.clone();
    if host.wildcard {
        host.name = format!("www.{}", host.name);
        host.wildcard = false;
    }
    Some(host)
}

impl Sites {
    /// The sites without a policy are there while no other is in force. Says whether that changed.
    pub(super) fn settle_without_policy(&mut self, now: Timestamp) -> bool {
        if self.loaded.values().any(|loaded| loaded.entry.is_some()) {
            return self.end_without_policy();
        }
        if !self.loaded.is_empty() || !self.default_sites.is_empty() {
            return false;
        }
        let listed = match self.sites_without_policy.is_empty() {
            true => vec![DefaultSite::for_every_host()],
            false => self.sites_without_policy.clone(),
        };
        tracing::info!(directory = %self.policies.display(), "there is no policy (*.yaml) here: crawlers are observed by the origin's own robots.txt");
        for without in listed {
            let origin = self.origin_of(&without.name, now);
            let mut candidate = self.read_with(&without.name, Ok(without.source()), &origin);
            if let Some(origin) = candidate.site.as_ref().and_then(|site| self.inherited(site, now)) {
                candidate = self.read_with(&without.name, Ok(without.source()), &origin);
            }
            let Some(site) = candidate.site.clone() else {
                let findings = candidate.tell().0;
                tracing::error!(site = %without.name, ?findings, "these hosts of the settings cannot be those of a site: they are not observed");
                continue;
            };
            self.note_origin(&site, now);
            let entry = self.succeed(site, now);
            self.default_sites.insert(without.name, entry);
        }
        !self.default_sites.is_empty()
    }

    /// The first policy is in force.
    fn end_without_policy(&mut self) -> bool {
        if self.default_sites.is_empty() {
            return false;
        }
        let of_files = self.loaded.values().filter_map(|loaded| loaded.entry.clone());
        let of_files = Snapshot::new(of_files.collect(), 0);
        let mut unclaimed = Vec::new();
        for entry in std::mem::take(&mut self.default_sites).into_values() {
            unclaimed.extend(unclaimed_hosts(&entry.site.policy, &of_files));
        }
        if !unclaimed.is_empty() {
            tracing::warn!(hosts = %unclaimed.join(", "), "there is a policy now, and none for these hosts: they are forwarded untouched, and nobody is observed there");
        }
        true
    }
}

/// The hosts of a policy that belong to no site of these; for one without hosts that every other host does.
fn unclaimed_hosts(policy: &Policy, sites: &Snapshot) -> Vec<String> {
    if policy.hosts.is_empty() {
        let claimed = sites.site_for_host(b"").is_some();
        return if claimed { Vec::new() } else { vec!["every other host".to_owned()] };
    }
    let claimed = |host: &HostPattern| {
        let below = if host.wildcard { "www." } else { "" };
        sites.site_for_host(format!("{below}{}", host.name).as_bytes()).is_some()
    };
    policy.hosts.iter().filter(|host| !claimed(&host.value)).map(|host| host.value.to_string()).collect()
}
