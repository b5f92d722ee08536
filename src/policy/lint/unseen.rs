//! A noindex that nobody sees: a page that may not be fetched shows no header (Google and Yandex say so of themselves).

use super::catalogue as lints;
use super::site::span_of;
use crate::indexing::{Directives, Scope};
use crate::policy::compiled::{RuleSource, Site};
use crate::policy::model::Environment;
use crate::policy::retire::RetireStage;
use crate::robots::TargetScratch;
use crate::yaml::{Diagnostic, Diagnostics, Located, Span};
use std::time::Duration;

/// Less than that, and most pages have not been visited.
const SOON: Duration = Duration::from_secs(7 * 86_400);

pub fn lint(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Staging {
        return;
    }
    for rule in &site.policy.indexing {
        let noindex = rule.tags.iter().filter(|(_, said)| said.forbids_indexing());
        let unseen = noindex.filter_map(|(scope, said)| unseen_by(site, scope, said, &rule.when.paths, rule));
        for (place, found, who) in unseen.take(1) {
            let message = match who {
                None => "this noindex is never seen: robots.txt keeps crawlers off these pages".to_owned(),
                Some(bot) => format!("this noindex is never seen: robots.txt keeps {bot} off these pages"),
            };
            let finding = lints::NOINDEX_UNSEEN
                .at(place, message)
                .help("allow crawling until the pages have left the index, or let `retire` do both in their order");
            diagnostics.push(pointing_at(finding, &found, site));
        }
    }
    retired(site, diagnostics);
}

/// Where a rule says noindex to somebody who may not fetch its pages, the Disallow, and who that is.
fn unseen_by(
    site: &Site,
    scope: &Scope,
    said: &Directives,
    paths: &[Located<String>],
    rule: &crate::policy::model::IndexingRule,
) -> Option<(Span, RuleSource, Option<String>)> {
    debug_assert!(said.forbids_indexing());
    let bot = match scope {
        Scope::All => None,
        Scope::Bot(name) => Some(name.to_string()),
    };
    let group = bot.as_deref().and_then(|bot| site.matcher.named(bot)).or(site.matcher.star())?;
    if paths.is_empty() && rule.when.path_regex.is_none() {
        // Everywhere: unseen where nothing at all may be fetched.
        let rules = site.matcher.rules(group).rules();
        let closed = !rules.iter().any(|rule| rule.allow) && disallowing(site, group, "/").is_some();
        return disallowing(site, group, "/").filter(|_| closed).map(|found| (rule.span, found, bot));
    }
    paths.iter().find_map(|path| Some((path.span, disallowing(site, group, literal(&path.value)?)?, bot.clone())))
}

/// What a path begins with, if that tells it from others.
fn literal(path: &str) -> Option<&str> {
    let literal = path.split(['*', '$']).next().unwrap_or("");
    (literal.starts_with('/') && literal != "/").then_some(literal)
}

/// The Disallow that keeps a group off a path; what is retired does not count, it was seen before.
fn disallowing(site: &Site, group: usize, path: &str) -> Option<RuleSource> {
    let rules = site.matcher.rules(group);
    let found = rules.find(TargetScratch::default().normalise(path.as_bytes()).sent)?;
    let source = &site.rule_sources[group][found];
    let of_retire = site
        .policy
        .retire
        .iter()
        .any(|retired| retired.paths.iter().any(|path| *source == RuleSource::Policy(path.span)));
    (!rules.rules()[found].allow && !of_retire).then(|| source.clone())
}

/// Shows where the Disallow stands. What stands in the origin's file cannot be shown in this one.
fn pointing_at(finding: Diagnostic, found: &RuleSource, site: &Site) -> Diagnostic {
    match (found, &site.origin) {
        (RuleSource::Origin(line), Some(origin)) => finding.label(format!("disallowed by {}", origin.place(*line))),
        (source, _) => finding.related(span_of(source), "disallowed here"),
    }
}

fn retired(site: &Site, diagnostics: &mut Diagnostics) {
    for retired in &site.policy.retire {
        if retired.disallow_after.value < SOON && retired.stage(site.at) != RetireStage::Disallowed {
            let span = retired.disallow_after.span.unwrap_or(retired.span);
            diagnostics.push(
                lints::RETIRED_TOO_SOON
                    .at(span, "most crawlers will not have come by before these paths are closed")
                    .help("search engines revisit a page within weeks: write `14d` or more"),
            );
        }
        let Some(star) = site.matcher.star() else { continue };
        for path in &retired.paths {
            let Some(found) = literal(&path.value).and_then(|path| disallowing(site, star, path)) else { continue };
            let finding = lints::RETIRED_UNSEEN
                .at(path.span, "this path is disallowed already: its noindex is never seen")
                .help("remove the Disallow: `retire` writes one when its time has come");
            diagnostics.push(pointing_at(finding, &found, site));
        }
    }
}
