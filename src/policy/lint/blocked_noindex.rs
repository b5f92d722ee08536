//! Lints of a noindex that no crawler sees, in `indexing` and `retire`: a crawler that may not
//! fetch a page does not see its headers (Google and Yandex document that).

use super::catalogue as lints;
use crate::crawlers::Registry;
use crate::indexing::Scope;
use crate::policy::model::{Environment, IndexingRule};
use crate::policy::site::{RuleSource, SEARCH_ENGINES, Site};
use crate::robots::{Pattern, Rule};
use crate::yaml::{Diagnostics, Located, Span};

/// The most comparisons of octets of patterns, in all of a policy.
const OVERLAPS_OF_A_POLICY: usize = 500_000;

/// Reports each rule of `indexing` that says noindex, and each entry of `retire`, whose pages
/// robots.txt keeps crawlers off: at most one finding for each. Staging sites are not checked.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Staging {
        return;
    }
    let mut lookup = GroupLookup {
        site,
        registry,
        overlaps: OVERLAPS_OF_A_POLICY,
    };
    for rule in &site.policy.indexing {
        let places = if rule.when.paths.is_empty() {
            of_no_path(rule)
        } else {
            located(&rule.when.paths)
        };
        let mut scopes = rule
            .tags
            .iter()
            .filter(|(_, said)| said.forbids_indexing())
            .map(|(scope, _)| scope);
        let found = scopes.find_map(|scope| unseen_by(scope, &places, &mut lookup));
        report(found, site, diagnostics);
    }
    for retired in &site.policy.retire {
        let found = unseen_by(&Scope::All, &located(&retired.paths), &mut lookup);
        report(found, site, diagnostics);
    }
}

fn located(paths: &[Located<String>]) -> Vec<(Pattern, Span)> {
    paths
        .iter()
        .map(|path| (Pattern::new(path), path.span))
        .collect()
}

/// Adds the finding, if there is one, with the place of the Disallow in the policy or, as text, in
/// the origin's file.
fn report(found: Option<Unseen>, site: &Site, diagnostics: &mut Diagnostics) {
    let Some(Unseen {
        place,
        source,
        whom,
    }) = found
    else {
        return;
    };
    let finding = lints::NOINDEX_UNSEEN
        .at(place, format!("this noindex is never seen: robots.txt keeps {whom} off these pages"))
        .help("allow crawling until the pages have left the index, or let `retire` do both in their order");
    // What stands in the origin's file cannot be shown in this one.
    diagnostics.push(match (&source, &site.origin) {
        (RuleSource::Origin(line), Some(origin)) => {
            finding.label(format!("disallowed by {}", origin.place(*line)))
        }
        (source, _) => finding.related(source.span(), "disallowed here"),
    });
}

/// A noindex for crawlers that may not fetch its pages.
struct Unseen {
    place: Span,
    /// The Disallow.
    source: RuleSource,
    whom: String,
}

/// A Disallow that keeps crawlers off.
struct KeptOff {
    source: RuleSource,
    /// Whether it is for the whole site: then the owner wants this crawler nowhere, whatever these
    /// pages say.
    whole_site: bool,
}

/// The first of some places at which the crawlers of `scope` never see a noindex. For all crawlers,
/// `*` is asked first, and then the two largest search engines where a group names them: others
/// have hardly any results that a page could be left out of. An engine that such a group keeps off
/// the whole site does not count.
fn unseen_by(
    scope: &Scope,
    places: &[(Pattern, Span)],
    lookup: &mut GroupLookup<'_>,
) -> Option<Unseen> {
    let star = lookup.site.matcher.star();
    let audiences = match scope {
        Scope::Bot(name) => vec![(&**name, lookup.group_of(name))],
        Scope::All => {
            let named = SEARCH_ENGINES.map(|name| {
                (
                    name,
                    lookup.group_of(name).filter(|group| Some(*group) != star),
                )
            });
            [("crawlers", star)].into_iter().chain(named).collect()
        }
    };
    for (whom, group) in audiences {
        let Some(group) = group else { continue };
        for (path, place) in places {
            let found = lookup.keeping_off(group, path);
            // The owner wants an engine nowhere that may fetch nothing.
            let is_by_name = *scope == Scope::All && Some(group) != star;
            if let Some(found) = found.filter(|found| !(is_by_name && found.whole_site)) {
                return Some(Unseen {
                    place: *place,
                    source: found.source,
                    whom: whom.to_owned(),
                });
            }
        }
    }
    None
}

/// The patterns that a rule without paths is about: the files of the type PDF, where it is for them,
/// and after them the whole site.
fn of_no_path(rule: &IndexingRule) -> Vec<(Pattern, Span)> {
    let when = &rule.when;
    let is_pdf = when
        .types
        .iter()
        .any(|kind| kind.value == "application/pdf");
    let place = when
        .path_regex
        .as_ref()
        .map_or(rule.span, |regex| regex.span);
    let patterns = is_pdf.then_some("/*.pdf$").into_iter().chain(["/"]);
    patterns
        .map(|pattern| (Pattern::new(pattern), place))
        .collect()
}

/// The rules of the groups, and the comparisons that are left for them.
struct GroupLookup<'s> {
    site: &'s Site,
    registry: &'s Registry,
    /// Comparisons that are left.
    overlaps: usize,
}

impl<'s> GroupLookup<'s> {
    /// The group that binds a crawler, by the first of its tokens that has one: Googlebot-Image
    /// follows Googlebot's. `None` where no group binds it.
    fn group_of(&self, bot: &str) -> Option<usize> {
        self.site
            .crawler_rules(self.site.claim_of(bot, self.registry))
            .binding
            .group()
            .map(usize::from)
    }

    /// The Disallow that keeps a group off all URLs of a path: it covers the path and outranks
    /// every Allow that overlaps it. `None` also where it takes several rules, and where comparing
    /// takes too long. A Disallow of `retire` does not count: its noindex was seen before.
    fn keeping_off(&mut self, group: usize, path: &Pattern) -> Option<KeptOff> {
        let site = self.site;
        let overlaps = &mut self.overlaps;
        let rules = site
            .matcher
            .rules(group)
            .rules()
            .iter()
            .zip(&site.rule_sources[group]);
        let meeting: Vec<(&Rule, &RuleSource)> = rules
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
        let (rule, source) = meeting.iter().find(|(rule, source)| {
            let covers =
                !rule.allow && rule.pattern.covers(path) && Some(rule.pattern.priority()) > allowed;
            covers && !is_of_retire(site, source)
        })?;
        let whole_site = rule.pattern.covers(&Pattern::new("/"));
        Some(KeptOff {
            source: (*source).clone(),
            whole_site,
        })
    }
}

/// Whether a rule with this source is a Disallow of `retire`.
fn is_of_retire(site: &Site, source: &RuleSource) -> bool {
    let mut paths = site.policy.retire.iter().flat_map(|retired| &retired.paths);
    paths.any(|path| *source == RuleSource::Policy(path.span))
}
