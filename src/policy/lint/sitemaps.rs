//! Lints of the Sitemap lines of a robots.txt: relative URLs, sitemaps on other hosts, and sitemaps
//! that crawlers may not fetch.

use super::catalogue as lints;
use super::subject::LintSubject;
use crate::crawlers::is_internal_host;
use crate::policy::model::HostPattern;
use crate::robots::{AbsoluteUrl, TargetScratch, url_path};
use crate::yaml::{Diagnostics, Located, strip_http_scheme};

/// The most important readers of sitemaps.
const READERS: [&str; 3] = ["Googlebot", "Bingbot", "*"];

/// Reports each sitemap that is no absolute URL, is on another domain, or is disallowed. A closed
/// site is reported elsewhere.
pub fn lint(subject: &LintSubject, diagnostics: &mut Diagnostics) {
    for Located { value: url, span } in &subject.sitemaps {
        let Some(rest) = strip_http_scheme(url) else {
            let host = subject.hosts.iter().find(|host| !host.wildcard);
            let finding =
                lints::SITEMAP_RELATIVE.finding(*span, format!("\"{url}\" is not an absolute URL"));
            diagnostics.push(finding.help(match host {
                Some(host) => format!(
                    "write the full URL: \"https://{}/{}\"",
                    host.name,
                    url.trim_start_matches('/')
                ),
                None => "write the full URL, with \"https://\" and the host".to_owned(),
            }));
            continue;
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        let is_internal = AbsoluteUrl::parse(url.as_bytes())
            .is_some_and(|url| is_internal_host(url.authority.name));
        let mut hosts = subject.hosts.iter();
        if (is_internal || !subject.hosts.is_empty())
            && !hosts.any(|known| is_in_domain_of(known, host))
        {
            lints::SITEMAP_OTHER_HOST.report(
                diagnostics,
                *span,
                if is_internal {
                    format!("crawlers cannot reach \"{host}\"")
                } else {
                    format!("\"{host}\" is not one of the site's hosts")
                },
                "serve the sitemap from this host, or check that it lists pages of this host. \
                 Search engines ignore pages of other hosts, unless the robots.txt of those hosts \
                 names the sitemap, too",
            );
            continue;
        }
        let mut scratch = TargetScratch::default();
        let path = url_path(url.as_bytes());
        let target = scratch.normalise(&path).sent;
        let group = READERS
            .iter()
            .find_map(|reader| subject.group_for_token(reader));
        let Some(group) = group.filter(|group| group.closing_rule().is_none()) else {
            continue;
        };
        if let Some(rule) = group.deciding_rule(target).filter(|rule| !rule.allow) {
            diagnostics.push(
                lints::SITEMAP_DISALLOWED
                    .finding(*span, "crawlers may not fetch this sitemap")
                    .related(rule.span, "disallowed here")
                    .help(if subject.hosts.is_empty() {
                        "if it is on the host of this file, allow its path"
                    } else {
                        "allow its path"
                    }),
            );
        }
    }
}

/// Whether a host, perhaps with a port, is in the domain of the site's host without `www.`:
/// sitemaps are often on hosts of their own.
fn is_in_domain_of(known: &HostPattern, host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, _)| name)
        .to_ascii_lowercase();
    let domain = known.name.strip_prefix("www.").unwrap_or(&known.name);
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
