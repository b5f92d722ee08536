//! The lint for a noindex (section `indexing` or `retire` of a policy) that no crawler sees,
//! because robots.txt disallows the page. A crawler that may not fetch a page does not see the
//! headers of the page, as Google and Yandex document.

use super::catalogue as lints;
use crate::crawlers::Registry;
use crate::indexing::TagScope;
use crate::policy::model::{Environment, IndexingRule};
use crate::policy::site::{RuleSource, SEARCH_ENGINES, Site};
use crate::robots::{PathPattern, Rule};
use crate::yaml::{Diagnostic, Diagnostics, Located, SourceSpan};
use TagScope::*;

/// The most comparisons of bytes of patterns in a policy.
const MAX_OVERLAP_COST: usize = 500_000;

/// Reports each rule of `indexing` with a noindex, and each entry of `retire`, whose pages are
/// disallowed. Staging sites are not checked.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Staging {
        return;
    }
    let mut lookup = BlockingRuleFinder {
        site,
        registry,
        overlaps: MAX_OVERLAP_COST,
    };
    for rule in &site.policy.indexing {
        let places = rule_patterns(rule);
        let mut scopes = rule
            .tags
            .iter()
            .filter(|(_, directives)| directives.forbids_indexing())
            .map(|(scope, _)| scope);
        let found = scopes.find_map(|scope| find_unseen(scope, &places, &mut lookup));
        diagnostics.items.extend(found);
    }
    for retired in &site.policy.retire {
        let places = located_patterns(&retired.paths);
        diagnostics
            .items
            .extend(find_unseen(&All, &places, &mut lookup));
    }
}

fn located_patterns(paths: &[Located<String>]) -> Vec<(PathPattern, SourceSpan)> {
    paths
        .iter()
        .map(|path| (PathPattern::new(path), path.span))
        .collect()
}

/// The finding for the first of some places at which the crawlers of `scope` never see a noindex. For all crawlers
/// these are `*` and the search engines with a group of their own, unless that closes the whole
/// site to them: then the owner wants them nowhere.
fn find_unseen(
    scope: &TagScope,
    places: &[(PathPattern, SourceSpan)],
    lookup: &mut BlockingRuleFinder<'_>,
) -> Option<Diagnostic> {
    let star = lookup.site.matcher.star_group();
    let audiences = match scope {
        Bot(name) => vec![(&**name, lookup.group_for(name))],
        All => {
            let named = SEARCH_ENGINES.map(|name| {
                (
                    name,
                    lookup.group_for(name).filter(|group| Some(*group) != star),
                )
            });
            [("crawlers", star)].into_iter().chain(named).collect()
        }
    };
    for (whom, group) in audiences {
        let Some(group) = group else { continue };
        let is_by_name = *scope == All && Some(group) != star;
        for (path, place) in places {
            let Some((rule, source)) = lookup.blocking_rule(group, path) else {
                continue;
            };
            if is_by_name && rule.pattern.covers(&PathPattern::new("/")) {
                continue;
            }
            let finding = lints::NOINDEX_UNSEEN
                .finding(
                    *place,
                    format!(
                        "crawlers will never see this noindex: robots.txt keeps {whom} off these \
                         pages"
                    ),
                )
                .help(
                    "allow the pages until they have left the index, or let \"retire\" do both in \
                     the right order",
                );
            // A finding cannot point into another file.
            return Some(match (source, &lookup.site.origin) {
                (RuleSource::Origin(line), Some(origin)) => {
                    finding.label(format!("disallowed by {}", origin.line_location(*line)))
                }
                (source, _) => finding.related(source.span(), "disallowed here"),
            });
        }
    }
    None
}

/// The patterns of a rule, or `/` if it has no paths, and if it is for PDF files also `/*.pdf$`. Below
/// a path that ends in `$` are no files, and below `path_regex` perhaps none.
fn rule_patterns(rule: &IndexingRule) -> Vec<(PathPattern, SourceSpan)> {
    let when = &rule.when;
    let mut patterns = located_patterns(&when.paths);
    if patterns.is_empty() {
        patterns.push((PathPattern::new("/"), rule.span));
    }
    let mut types = when.types.iter();
    if when.path_regex.is_none() && types.any(|kind| kind.value == "application/pdf") {
        for (path, place) in patterns.clone() {
            if !path.as_str().ends_with('$') {
                let of_pdf = format!("{}*.pdf$", path.as_str());
                patterns.push((PathPattern::new(&of_pdf), place));
            }
        }
    }
    patterns
}

/// Finds rules that block pages, within a budget.
struct BlockingRuleFinder<'s> {
    site: &'s Site,
    registry: &'s Registry,
    /// Comparisons that are left.
    overlaps: usize,
}

impl<'s> BlockingRuleFinder<'s> {
    /// The group that binds a crawler.
    fn group_for(&self, bot: &str) -> Option<usize> {
        self.site
            .crawler_rules(self.site.claim_of(bot, self.registry))
            .binding
            .group()
    }

    /// The Disallow of a group that closes all URLs of a path: it covers the path and outranks
    /// every Allow that overlaps it. A Disallow of `retire` does not count: the noindex was seen
    /// before.
    fn blocking_rule(
        &mut self,
        group: usize,
        path: &PathPattern,
    ) -> Option<(&'s Rule, &'s RuleSource)> {
        let site = self.site;
        let overlaps = &mut self.overlaps;
        let rules = site
            .matcher
            .rules(group)
            .rules()
            .iter()
            .zip(&site.rule_sources[group]);
        let meeting: Vec<_> = rules
            .filter(|(rule, _)| *overlaps > 0 && rule.pattern.overlaps(path, overlaps))
            .collect();
        if *overlaps == 0 {
            return None;
        }
        let allowed = meeting
            .iter()
            .filter(|(rule, _)| rule.allow)
            .map(|(rule, _)| rule.pattern.priority())
            .max();
        meeting.into_iter().find(|(rule, source)| {
            let covers =
                !rule.allow && rule.pattern.covers(path) && Some(rule.pattern.priority()) > allowed;
            let mut retired = site.policy.retire.iter().flat_map(|retired| &retired.paths);
            covers && !retired.any(|path| **source == RuleSource::Policy(path.span))
        })
    }
}
