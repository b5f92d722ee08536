//! Lints of lines of the origin's robots.txt that have no effect in the site's file: `Noindex` and its like, which are
//! passed on and which no crawler follows any more, and lines that are left out because crawlgate does not know their
//! keys. The help names the field of the policy to use.

use super::catalogue as lints;
use super::file::no_longer_read;
use crate::indexing::Directives;
use crate::policy::compile::unknown_keys;
use crate::policy::origin::OriginFile;
use crate::policy::site::Site;
use crate::robots::{Key, TargetScratch};
use crate::yaml::Diagnostics;
use std::collections::HashSet;

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    let Some(origin) = site.origin.as_ref().filter(|_| site.policy.reads_origin()) else { return };
    let mut found = Diagnostics::default();
    for line in origin.file.lines_read() {
        let Some(record) = line.record.as_ref().filter(|record| record.key == Key::Noindex) else { continue };
        let (name, path) = (origin.file.text(&record.name), origin.file.text(&record.value));
        let directive = name.to_ascii_lowercase();
        if is_said(site, &path, &directive) {
            continue;
        }
        let place = origin.place(line.number);
        lints::RETIRED_DIRECTIVE.report(
            &mut found,
            None,
            format!("`{name}: {path}` in the origin's robots.txt: {} ({place})", no_longer_read(&name)),
            format!(
                "say it in the policy, `indexing: [{{ paths: {path:?}, tag: {directive} }}]`, and let crawlers fetch the pages; \
                 the line is passed on, and means nothing to a reader that follows RFC 9309"
            ),
        );
    }
    left_out(site, origin, &mut found);
    super::limit(&mut found);
    diagnostics.items.append(&mut found.items);
}

/// One finding for each key that is left out.
fn left_out(site: &Site, origin: &OriginFile, found: &mut Diagnostics) {
    let mut seen = HashSet::new();
    for line in unknown_keys(&origin.file, &site.policy.robots.origin_keys) {
        let Some(record) = &line.record else { continue };
        let name = origin.file.text(&record.name);
        if seen.insert(name.to_ascii_lowercase()) {
            let place = origin.place(line.number);
            lints::ORIGIN_KEY_LEFT_OUT.report(
                found,
                None,
                format!("`{name}` is no key of a robots.txt: its lines are not published ({place})"),
                format!("if crawlers are to read them, name the key in the policy: `origin_keys: [{name}]`"),
            );
        }
    }
}

/// Whether the policy gives the directive to every crawler, for the path itself at least.
fn is_said(site: &Site, path: &str, directive: &str) -> bool {
    let Ok(wanted) = Directives::parse(directive) else { return false };
    let mut scratch = TargetScratch::default();
    let rules = site.tags.for_path(scratch.normalise(path.trim_end_matches(['*', '$']).as_bytes()), &mut Vec::new());
    site.tags.tags(&rules, 200, Some(b"text/html")).is_some_and(|said| {
        let said = said.tags.effective("*");
        wanted.iter().all(|wanted| said.iter().any(|directive| directive == wanted))
    })
}
