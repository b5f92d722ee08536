//! [`DefaultSite`]: a site that crawlgate makes while there is no policy. It passes on the origin's
//! own robots.txt, and crawlgate observes which crawlers break it. Each origin in the settings has
//! a default site for its hosts, unless the origin's `paths` exclude `/robots.txt`. If no origin
//! has a default site, a single one covers every host.

use crate::policy::model::HostPattern;
use crate::policy::{Policy, Site};
use crate::settings::OriginSettings;
use crate::yaml::SourceFile;
use std::collections::BTreeSet;

/// The site for every host that no origin of the settings names.
pub const DEFAULT_SITE_NAME: &str = "origin";

/// The policy of a default site. It passes on the origin's robots.txt, even one that disallows the
/// whole site.
const DEFAULT_POLICY: &str = "robots: { origin: only }\nacknowledge: [site_disallowed]\n";
/// Stands for the path of a policy file.
const DEFAULT_POLICY_NAME: &str = "(no policy)";
/// The most characters of a host in a site's name: names are files and labels, and a host may have
/// 253.
const MAX_HOST_CHARS: usize = 100;

/// A site that is in force while there is no policy.
#[derive(Clone, Debug)]
pub struct DefaultSite {
    /// Its name: `origin` for every host, `origin-shop.example` for those of an entry of the
    /// settings.
    pub name: String,
    /// Its hosts as the settings write them; empty for every host that no other site has.
    pub hosts: Vec<String>,
}

impl DefaultSite {
    /// The site for every host.
    pub fn catch_all() -> DefaultSite {
        DefaultSite {
            name: DEFAULT_SITE_NAME.into(),
            hosts: Vec::new(),
        }
    }

    /// One site for each origin of the settings that serves the robots.txt of its hosts.
    pub fn from_settings(origins: &[OriginSettings]) -> Vec<DefaultSite> {
        let mut names = BTreeSet::new();
        DefaultSite::robots_origins(origins)
            .map(|(_, origin)| DefaultSite::for_hosts(&origin.hosts, &mut names))
            .collect()
    }

    /// The origins that serve robots.txt, with their index in the settings. An origin with `paths`
    /// serves it only if one of its paths is a prefix of `/robots.txt`.
    pub fn robots_origins(
        origins: &[OriginSettings],
    ) -> impl Iterator<Item = (usize, &OriginSettings)> {
        origins.iter().enumerate().filter(|(_, origin)| {
            let mut paths = origin.paths.iter();
            origin.paths.is_empty() || paths.any(|path| "/robots.txt".starts_with(path.as_str()))
        })
    }

    /// The site of these hosts. Its name is `origin-` and at most 100 characters of the first host,
    /// with `-` for characters that names cannot have; `origin` without hosts. A name in `taken`
    /// gets `-2`, `-3` and so on. Adds the name to `taken`.
    fn for_hosts(hosts: &[String], taken: &mut BTreeSet<String>) -> DefaultSite {
        let name = match naming_host(hosts) {
            None => DEFAULT_SITE_NAME.to_owned(),
            Some(host) => {
                let host: String = host
                    .replacen("*.", "any.", 1)
                    .chars()
                    .take(MAX_HOST_CHARS)
                    .collect();
                format!("{DEFAULT_SITE_NAME}-{}", host.replace(is_not_in_names, "-"))
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

    /// The text of its policy: `DEFAULT_POLICY` with its hosts, IPv6 addresses in brackets. Without
    /// hosts the policy is for every host.
    pub fn policy_source(&self) -> SourceFile {
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
        SourceFile {
            name: DEFAULT_POLICY_NAME.into(),
            text: format!("{hosts}{DEFAULT_POLICY}").into(),
        }
    }
}

/// Whether the name of a site cannot have this character.
fn is_not_in_names(c: char) -> bool {
    !c.is_ascii_alphanumeric() && !".-_".contains(c)
}

/// The host that the site is named after: the first host that is no wildcard, else the first
/// wildcard.
fn naming_host(hosts: &[String]) -> Option<&String> {
    hosts
        .iter()
        .find(|host| !host.starts_with('*'))
        .or_else(|| hosts.first())
}

/// Whether a policy is that of a default site. A policy file may make a site of the same name; its
/// source has another name than `DEFAULT_POLICY_NAME`.
pub fn is_default_site_policy(policy: &Policy) -> bool {
    &*policy.source.name == DEFAULT_POLICY_NAME
}

/// The Host of crawlgate's requests for the origin's robots.txt of a site: the first host of the
/// policy that is no wildcard, else `www.` below its first wildcard. `None` for a site for every
/// host.
pub fn origin_request_host(policy: &Policy) -> Option<String> {
    origin_request_pattern(policy).map(|host| host.to_string())
}

/// The host of [`origin_request_host`], as a pattern.
pub fn origin_request_pattern(policy: &Policy) -> Option<HostPattern> {
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
pub fn log_name(site: &Site) -> String {
    if is_default_site_policy(&site.policy) {
        format!("{DEFAULT_SITE_LOG_PREFIX}{}", site.name)
    } else {
        site.name.clone()
    }
}

/// The prefix of default sites in the publication log. No file name begins with it.
const DEFAULT_SITE_LOG_PREFIX: &str = "/";

/// The site's name, from its name in the publication log.
pub fn site_name_from_log(logged: &str) -> &str {
    logged
        .strip_prefix(DEFAULT_SITE_LOG_PREFIX)
        .unwrap_or(logged)
}
