//! Lints of sitemaps: relative URLs, other hosts, and sitemaps that crawlers may not fetch.

use super::catalogue as lints;
use super::subject::Subject;
use crate::policy::model::HostPattern;
use crate::robots::{TargetScratch, path_of_url};
use crate::yaml::Diagnostics;

/// The readers of a sitemap that owners care for most.
const READERS: [&str; 3] = ["Googlebot", "Bingbot", "*"];

/// Reports each sitemap that is no absolute URL, is on a host of another domain (where the hosts
/// are known), or may not be fetched by the group for Googlebot, else Bingbot, else `*`. At most
/// one finding for each; where that group closes the whole site, that is reported elsewhere.
pub fn lint(subject: &Subject, diagnostics: &mut Diagnostics) {
    for (url, span) in &subject.sitemaps {
        let Some(rest) = ["https://", "http://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme))
        else {
            let host = subject.hosts.iter().find(|host| !host.wildcard);
            let finding = lints::SITEMAP_RELATIVE.at(*span, format!("`{url}` is no absolute URL"));
            diagnostics.push(finding.help(match host {
                Some(host) => format!(
                    "write it whole: `https://{}/{}`",
                    host.name,
                    url.trim_start_matches('/')
                ),
                None => "write it whole, with `https://` and the host".to_owned(),
            }));
            continue;
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        if !subject.hosts.is_empty() && !subject.hosts.iter().any(|known| is_for(known, host)) {
            lints::SITEMAP_OTHER_HOST.report(
                diagnostics,
                *span,
                format!("`{host}` is none of the site's hosts"),
                "serve it from this host, or check that it lists pages of this host: search engines ignore those of other hosts, \
                 unless their robots.txt names the sitemap, too",
            );
            continue;
        }
        let mut scratch = TargetScratch::default();
        let path = path_of_url(url.as_bytes());
        let target = scratch.normalise(&path).sent;
        let group = READERS.iter().find_map(|reader| subject.named(reader));
        // Where the whole site is closed, that is said.
        let Some(group) = group.filter(|group| group.closing().is_none()) else {
            continue;
        };
        if let Some(rule) = group.deciding(target).filter(|rule| !rule.allow) {
            diagnostics.push(
                lints::SITEMAP_DISALLOWED
                    .at(*span, "crawlers may not fetch this sitemap")
                    .related(rule.span, "disallowed here")
                    .help(if subject.hosts.is_empty() {
                        "allow its path, if it is on the host of this file"
                    } else {
                        "allow its path"
                    }),
            );
        }
    }
}

/// Whether a host, perhaps with a port, is the domain of a site's host or a name in it. `www.` of
/// the site's host does not count: sitemaps stand on hosts of their own, and `www` is mostly the
/// same site.
fn is_for(known: &HostPattern, host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .map_or(host, |(name, _)| name)
        .to_ascii_lowercase();
    // Sitemaps stand on hosts of their own, and `www` is mostly the same site.
    let domain = known.name.strip_prefix("www.").unwrap_or(&known.name);
    name.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
