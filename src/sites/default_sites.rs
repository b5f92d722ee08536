//! [`DefaultSite`]: a site that is in force while there is no policy. Each origin of the settings
//! that serves robots.txt has one; without such an origin, one site is for every host. It passes on
//! the origin's robots.txt, and crawlgate observes which crawlers break it.

use crate::policy::model::HostPattern;
use crate::policy::{Policy, Site, Snapshot};
use crate::settings::OriginSettings;
use crate::yaml::Source;
use std::collections::BTreeSet;

/// The site for every host that no origin of the settings names.
pub const DEFAULT_SITE: &str = "origin";

/// The policy of a default site. It passes on the origin's robots.txt, even one that disallows the
/// whole site.
const NO_POLICY: &str = "robots: { origin: only }\nacknowledge: [site_disallowed]\n";
/// Stands in place of the path of a policy file.
const NO_POLICY_NAME: &str = "(no policy)";
/// Characters of a host that go into a site's name: names are files and labels, and a host may have
/// 253.
const MAX_NAMED: usize = 100;

/// A site that is in force while there is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultSite {
    /// Its name: `origin` for every host, `origin-shop.example` for those of an entry of the
    /// settings.
    pub name: String,
    /// Its hosts as the settings write them; empty for every host that no other site has.
    pub hosts: Vec<String>,
}

impl DefaultSite {
    /// The site for every host.
    pub fn for_every_host() -> DefaultSite {
        DefaultSite {
            name: DEFAULT_SITE.into(),
            hosts: Vec::new(),
        }
    }

    /// One site for each origin of the settings that serves the robots.txt of its hosts, in their
    /// order.
    pub fn of(origins: &[OriginSettings]) -> Vec<DefaultSite> {
        let mut names = BTreeSet::new();
        DefaultSite::origins(origins)
            .map(|(_, origin)| DefaultSite::named(&origin.hosts, &mut names))
            .collect()
    }

    /// The origins that serve robots.txt, with their places in the settings (from 0). An origin
    /// with `paths` is among them only if one of its paths is a prefix of `/robots.txt`.
    pub fn origins(origins: &[OriginSettings]) -> impl Iterator<Item = (usize, &OriginSettings)> {
        origins.iter().enumerate().filter(|(_, origin)| {
            let mut paths = origin.paths.iter();
            origin.paths.is_empty() || paths.any(|path| "/robots.txt".starts_with(path.as_str()))
        })
    }

    /// The site of these hosts. Its name is `origin-` and the first host, at most 100 characters of
    /// it and with `-` for odd ones; `origin` without hosts. A name in `taken` gets `-2`, `-3` and
    /// so on. Adds the name to `taken`.
    fn named(hosts: &[String], taken: &mut BTreeSet<String>) -> DefaultSite {
        let name = match first(hosts) {
            None => DEFAULT_SITE.to_owned(),
            Some(host) => {
                let host: String = host
                    .replacen("*.", "any.", 1)
                    .chars()
                    .take(MAX_NAMED)
                    .collect();
                format!("{DEFAULT_SITE}-{}", host.replace(is_odd, "-"))
            }
        };
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let name = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !taken.contains(name))
            .unwrap_or(name);
        taken.insert(name.clone());
        DefaultSite {
            name,
            hosts: hosts.to_vec(),
        }
    }

    /// The text of its policy: its hosts, IPv6 addresses in brackets, and `NO_POLICY`. Without
    /// hosts the text has no `hosts`, so the site is for every host.
    pub fn source(&self) -> Source {
        let mut hosts = String::new();
        for host in &self.hosts {
            // A bare IPv6 address.
            let is_open = host.contains(':') && !host.starts_with('[');
            hosts += &if is_open {
                format!("\"[{host}]\", ")
            } else {
                format!("\"{host}\", ")
            };
        }
        if !hosts.is_empty() {
            hosts = format!("hosts: [{}]\n", hosts.trim_end_matches(", "));
        }
        Source {
            name: NO_POLICY_NAME.into(),
            text: format!("{hosts}{NO_POLICY}").into(),
        }
    }
}

/// Whether a sign does not stand in the name of a site.
fn is_odd(sign: char) -> bool {
    !sign.is_ascii_alphanumeric() && !".-_".contains(sign)
}

/// The host that the site is named after: the first that is no wildcard, else the first wildcard.
fn first(hosts: &[String]) -> Option<&String> {
    hosts
        .iter()
        .find(|host| !host.starts_with('*'))
        .or_else(|| hosts.first())
}

/// Whether a policy is that of a default site. A policy file may make a site of the same name; its
/// source has another name than `NO_POLICY_NAME`.
pub fn is_no_policy(policy: &Policy) -> bool {
    &*policy.source.name == NO_POLICY_NAME
}

/// The host that crawlgate names when it fetches the origin's robots.txt for a site: the first host
/// of the policy that is no wildcard, else `www.` below its first wildcard. `None` for a site for
/// every host.
pub fn asked_by(policy: &Policy) -> Option<String> {
    asked_host(policy).map(|host| host.to_string())
}

/// The host of [`asked_by`], as a pattern.
pub fn asked_host(policy: &Policy) -> Option<HostPattern> {
    let mut host = policy
        .hosts
        .iter()
        .find(|host| !host.value.wildcard)
        .or(policy.hosts.first())?
        .value
        .clone();
    if host.wildcard {
        host.name = format!("www.{}", host.name);
        host.wildcard = false;
    }
    Some(host)
}

/// The name of a site in the publication log. A default site has a prefix there, because a policy
/// file may have its name.
pub fn name_in_log(site: &Site) -> String {
    if is_no_policy(&site.policy) {
        format!("{NO_POLICY_IN_LOG}{}", site.name)
    } else {
        site.name.clone()
    }
}

/// No file name begins with it.
const NO_POLICY_IN_LOG: &str = "/";

/// The site's name, from its name in the publication log.
pub fn name_of_logged(logged: &str) -> &str {
    logged.strip_prefix(NO_POLICY_IN_LOG).unwrap_or(logged)
}

/// The hosts of a policy that none of these sites answers for, as text. A wildcard is tried with a
/// `www.` name. A policy without hosts stands for all unnamed hosts: the result is `every other
/// host` unless one of the sites has these.
pub fn unclaimed_hosts(policy: &Policy, sites: &Snapshot) -> Vec<String> {
    if policy.hosts.is_empty() {
        return if sites.site_for_host(b"").is_some() {
            Vec::new()
        } else {
            vec!["every other host".to_owned()]
        };
    }
    let mut unclaimed = Vec::new();
    for host in policy.hosts.iter().map(|host| &host.value) {
        let below = if host.wildcard { "www." } else { "" };
        let name = format!("{below}{}", host.name);
        if sites.site_for_host(name.as_bytes()).is_none() {
            unclaimed.push(host.to_string());
        }
    }
    unclaimed
}
