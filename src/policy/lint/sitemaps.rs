//! Lints of sitemaps.

use super::catalogue as lints;
use super::subject::Subject;
use crate::policy::model::HostPattern;
use crate::robots::{TargetScratch, path_of_url};
use crate::yaml::Diagnostics;

/// Whose reading of a sitemap an owner wants.
const READERS: [&str; 3] = ["Googlebot", "Bingbot", "*"];

pub fn lint(subject: &Subject, diagnostics: &mut Diagnostics) {
    for (url, span) in &subject.sitemaps {
        let Some(rest) = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme)) else {
            diagnostics.push(
                lints::SITEMAP_RELATIVE
                    .at(*span, format!("`{url}` is no absolute URL"))
                    .help("write it whole: `https://shop.example/sitemap.xml`"),
            );
            continue;
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        if !subject.hosts.is_empty() && !subject.hosts.iter().any(|known| is_for(known, host)) {
            let message = format!("`{host}` is none of the site's hosts");
            diagnostics.push(lints::SITEMAP_OTHER_HOST.at(*span, message).help(
                "search engines take it only if that host's robots.txt names it too, or both belong to one account",
            ));
            continue;
        }
        let mut scratch = TargetScratch::default();
        let path = path_of_url(url.as_bytes());
        let target = scratch.normalise(&path).sent;
        let Some(group) = READERS.iter().find_map(|reader| subject.named(reader)) else { continue };
        if let Some(rule) = group.deciding(target).filter(|rule| !rule.allow) {
            diagnostics.push(
                lints::SITEMAP_DISALLOWED
                    .at(*span, "crawlers may not fetch this sitemap")
                    .related(rule.span, "disallowed here")
                    .help("allow its path"),
            );
        }
    }
}

fn is_for(known: &HostPattern, host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
    match known.wildcard {
        true => name.strip_suffix(&known.name).is_some_and(|rest| rest.ends_with('.')),
        false => name == known.name,
    }
}
