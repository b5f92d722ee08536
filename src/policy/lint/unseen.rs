//! A noindex that nobody sees: a page that may not be fetched shows no header (Google and Yandex say so of themselves).

use super::catalogue as lints;
use super::site::span_of;
use crate::indexing::{Directives, Scope};
use crate::policy::compiled::{RuleSource, Site};
use crate::policy::model::Environment;
use crate::policy::retire::RetireStage;
use crate::robots::{Pattern, TargetScratch};
use crate::yaml::{Diagnostic, Diagnostics, Located, Span};
use std::collections::{HashMap, HashSet};
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
                Unseen::ByAll => "this noindex is never seen: robots.txt keeps crawlers off these pages".to_owned(),
                Unseen::ByStar => {
                    "many never see this noindex: robots.txt keeps the crawlers of the `*` group off these \
                                   pages"
                        .to_owned()
                }
                Unseen::By(bot) => format!("this noindex is never seen: robots.txt keeps {bot} off these pages"),
            };
            let finding = lints::NOINDEX_UNSEEN
                .at(place, message)
                .help("allow crawling until the pages have left the index, or let `retire` do both in their order");
            diagnostics.push(pointing_at(finding, &found, site));
        }
    }
    retired(site, diagnostics);
}

/// Who does not see a noindex.
enum Unseen {
    /// No crawler does: every group keeps off those whom it is for.
    ByAll,
    /// Those do not who have no group of their own.
    ByStar,
    /// The one that it is said to.
    By(Box<str>),
}

/// Where a rule says noindex to somebody who may not fetch its pages, the Disallow, and who that is.
fn unseen_by(
    site: &Site,
    scope: &Scope,
    said: &Directives,
    paths: &[Located<String>],
    rule: &crate::policy::model::IndexingRule,
) -> Option<(Span, RuleSource, Unseen)> {
    debug_assert!(said.forbids_indexing());
    let bot = match scope {
        Scope::All => None,
        Scope::Bot(name) => Some(name),
    };
    let group = bot.and_then(|bot| site.matcher.named(bot)).or(site.matcher.star())?;
    let who = |keeps_off: &dyn Fn(usize) -> bool| match bot {
        Some(bot) => Unseen::By(bot.clone()),
        None if (0..site.rule_sources.len()).all(keeps_off) => Unseen::ByAll,
        None => Unseen::ByStar,
    };
    if paths.is_empty() && rule.when.path_regex.is_none() {
        // Everywhere: unseen where nothing at all may be fetched.
        let closing = |group: usize| {
            let open = site.matcher.rules(group).rules().iter().any(|rule| rule.allow);
            disallowing(site, group, "/").filter(|_| !open)
        };
        return Some((rule.span, closing(group)?, who(&|group| closing(group).is_some())));
    }
    // What an expression begins with is as good as a path.
    let regex = rule.when.path_regex.as_ref().filter(|_| paths.is_empty());
    let begins = regex.and_then(|regex| Some((literal_start(&regex.value)?, regex.span)));
    paths.iter().map(|path| (path.value.as_str(), path.span)).chain(begins).find_map(|(path, span)| {
        let found = keeping_off(site, group, path)?;
        Some((span, found, who(&|group| keeping_off(site, group, path).is_some())))
    })
}

/// The Disallow that keeps a group off all that a pattern of a policy stands for.
fn keeping_off(site: &Site, group: usize, path: &str) -> Option<RuleSource> {
    if path == "/" {
        return None;
    }
    match path.find(['*', '$']) {
        None => disallowing(site, group, path),
        Some(_) => covering(site, group, path),
    }
}

/// The Disallow that matches all that a pattern with wildcards does. Where an Allow may take some of it back there is
/// none.
fn covering(site: &Site, group: usize, path: &str) -> Option<RuleSource> {
    let set = site.matcher.rules(group);
    let (rules, path) = (set.rules(), Pattern::new(path));
    // The index finds them in no order, and some more than once.
    let mut disallows = Vec::new();
    set.each(&path.as_target(), |index| disallows.push(index));
    disallows.retain(|&index| !rules[index].allow);
    disallows.sort_unstable();
    disallows.dedup();
    if disallows.is_empty() {
        return None;
    }
    // The longest Allow that meets it takes back all that is no longer.
    let mut budget = 100_000;
    let allows = rules.iter().filter(|rule| rule.allow && rule.pattern.overlaps(&path, &mut budget));
    let taken_back = allows.map(|rule| rule.pattern.priority()).max().unwrap_or(0);
    let index = disallows.into_iter().find(|&index| rules[index].pattern.priority() > taken_back)?;
    let source = &site.rule_sources[group][index];
    (!is_of_retire(site, source)).then(|| source.clone())
}

/// An Allow of the policy that a Disallow for a path gives way to somewhere.
fn keeping_open(site: &Site, path: &str) -> Option<Span> {
    let path = Pattern::new(path);
    let mut budget = 100_000;
    // A rule stands in many groups, and is looked at once.
    let mut seen = HashSet::new();
    let rules = site.rule_sources.iter().enumerate().flat_map(|(group, sources)| {
        let rules = site.matcher.rules(group).rules().iter().zip(sources);
        rules.filter(|(rule, _)| rule.allow && rule.pattern.priority() >= path.priority())
    });
    let mut rules = rules.filter_map(|(rule, source)| match source {
        RuleSource::Policy(span) => Some((rule, *span)),
        _ => None,
    });
    rules.find(|(rule, span)| seen.insert(*span) && rule.pattern.overlaps(&path, &mut budget)).map(|(_, span)| span)
}

/// What is retired does not count: it was seen before.
fn is_of_retire(site: &Site, source: &RuleSource) -> bool {
    let mut paths = site.policy.retire.iter().flat_map(|retired| &retired.paths);
    paths.any(|path| *source == RuleSource::Policy(path.span))
}

/// The Disallow that keeps a group off a path.
fn disallowing(site: &Site, group: usize, path: &str) -> Option<RuleSource> {
    let rules = site.matcher.rules(group);
    let found = rules.find(TargetScratch::default().normalise(path.as_bytes()).sent)?;
    let source = &site.rule_sources[group][found];
    (!rules.rules()[found].allow && !is_of_retire(site, source)).then(|| source.clone())
}

/// Shows where the Disallow stands. What stands in the origin's file cannot be shown in this one.
fn pointing_at(finding: Diagnostic, found: &RuleSource, site: &Site) -> Diagnostic {
    match (found, &site.origin) {
        (RuleSource::Origin(line), Some(origin)) => finding.label(format!("disallowed by {}", origin.place(*line))),
        (source, _) => finding.related(span_of(source), "disallowed here"),
    }
}

/// Two plans for one path: whichever comes first counts, step by step, and the other one is not what happens.
fn retired_twice(site: &Site, diagnostics: &mut Diagnostics) {
    let mut plans: HashMap<Pattern, (usize, Span)> = HashMap::new();
    for (place, retired) in site.policy.retire.iter().enumerate() {
        for path in &retired.paths {
            let (plan, first) = *plans.entry(Pattern::new(&path.value)).or_insert((place, path.span));
            if plan == place {
                continue;
            }
            diagnostics.push(
                lints::RETIRED_TWICE
                    .at(path.span, format!("`{}` is retired by two plans", path.value))
                    .related(first, "first here")
                    .help("keep one of them; of both, the earlier moment counts for each step"),
            );
        }
    }
}

fn retired(site: &Site, diagnostics: &mut Diagnostics) {
    retired_twice(site, diagnostics);
    for retired in &site.policy.retire {
        if retired.disallow_after.value < SOON && retired.stage(site.at) != RetireStage::Disallowed {
            let span = retired.disallow_after.span.unwrap_or(retired.span);
            diagnostics.push(
                lints::RETIRED_TOO_SOON
                    .at(span, "most crawlers will not have come by before these paths are closed")
                    .help("search engines revisit a page within weeks: write `14d` or more"),
            );
        }
        for path in &retired.paths {
            if let Some(allow) = keeping_open(site, &path.value) {
                diagnostics.push(
                    lints::RETIRED_KEPT_OPEN
                        .at(
                            path.span,
                            "an Allow of this policy keeps this path open, or a part of it, when it is disallowed",
                        )
                        .related(allow, "the longest rule decides, and of equals Allow")
                        .help("remove the Allow if it is not meant: `retire` cannot close what it opens"),
                );
            }
        }
        let Some(star) = site.matcher.star() else { continue };
        for path in &retired.paths {
            let Some(found) = keeping_off(site, star, &path.value) else { continue };
            let finding = lints::RETIRED_UNSEEN
                .at(path.span, "this path is disallowed already: its noindex is never seen")
                .help("remove the Disallow: `retire` writes one when its time has come");
            diagnostics.push(pointing_at(finding, &found, site));
        }
    }
}
