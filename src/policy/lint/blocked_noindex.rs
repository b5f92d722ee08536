//! Lints of a noindex that no crawler sees: a page that may not be fetched shows no header (Google and Yandex say so of themselves).

use super::catalogue as lints;
use super::site::span_of;
use crate::crawlers::{Binds, Purpose, Registry};
use crate::indexing::Scope;
use crate::policy::model::{Environment, IndexingRule};
use crate::policy::retire::RetireStage;
use crate::policy::site::binding;
use crate::policy::site::{Binding, RuleSource, Site};
use crate::robots::{Pattern, Rule};
use crate::yaml::{Diagnostic, Diagnostics, Span};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Less than that, and most pages have not been visited.
const SOON: Duration = Duration::from_secs(7 * 86_400);
/// Comparisons of octets where patterns are held against each other, in all of a policy.
const OVERLAPS_OF_A_POLICY: usize = 500_000;

pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Staging {
        return;
    }
    let mut looking = Looking::new(site, registry);
    for rule in &site.policy.indexing {
        if looking.overlaps == 0 {
            break;
        }
        let scopes = rule.tags.iter().filter(|(_, said)| said.forbids_indexing()).map(|(scope, _)| scope);
        let unseen = scopes.filter_map(|scope| unseen_by(scope, rule, &mut looking)).next();
        let Some((place, found, who)) = unseen else { continue };
        let never = match &who {
            Unseen::BySome(_) => "some never see this noindex: robots.txt keeps",
            Unseen::ByStar => {
                "many never see this noindex: robots.txt keeps the crawlers of the `*` group off these pages"
            }
            _ => "this noindex is never seen: robots.txt keeps",
        };
        let message = match who {
            Unseen::ByAll => format!("{never} crawlers off these pages"),
            Unseen::ByStar => never.to_owned(),
            Unseen::By(bot) => format!("{never} {bot} off these pages"),
            Unseen::BySome(engines) => format!("{never} {engines} off these pages"),
        };
        let finding = lints::NOINDEX_UNSEEN
            .at(place, message)
            .help("allow crawling until the pages have left the index, or let `retire` do both in their order");
        diagnostics.push(pointing_at(finding, &found.source, site));
    }
    retired(site, &mut looking, diagnostics);
}

/// The crawlers that do not see a noindex.
enum Unseen {
    /// No crawler does: every group keeps off those whom it is for.
    ByAll,
    /// Those without a group of their own.
    ByStar,
    /// The one that it is said to.
    By(Box<str>),
    /// Search engines do not that have groups of their own, by the names of these.
    BySome(String),
}

/// What keeps crawlers off.
struct KeptOff {
    source: RuleSource,
    /// Whether it is for the whole site: then the owner wants this crawler nowhere, whatever these pages say.
    whole_site: bool,
}

/// Where a rule says noindex to crawlers that may not fetch its pages: the place, the Disallow, and the crawlers.
fn unseen_by(scope: &Scope, rule: &IndexingRule, looking: &mut Looking<'_>) -> Option<(Span, KeptOff, Unseen)> {
    let bot = match scope {
        Scope::All => None,
        Scope::Bot(name) => Some(name),
    };
    let group = match bot {
        Some(bot) => Some(looking.group_of(bot)?),
        None => looking.site.matcher.star(),
    };
    let everywhere = rule.when.path_regex.as_ref().map_or(rule.span, |regex| regex.span);
    let mut places: Vec<(Pattern, Span)> =
        rule.when.paths.iter().map(|path| (Pattern::new(&path.value), path.span)).collect();
    if places.is_empty() {
        places.push((Pattern::new("/"), everywhere));
    }
    places.iter().find_map(|(path, span)| {
        let of_group = group.and_then(|group| Some((group, looking.keeping_off(group, path)?)));
        let Some((group, found)) = of_group else {
            let (found, engines) = looking.engines_kept_off(path).filter(|_| bot.is_none())?;
            return Some((*span, found, Unseen::BySome(engines)));
        };
        let who = match bot {
            Some(bot) => Unseen::By(bot.clone()),
            None if looking.others(group).into_iter().all(|other| looking.keeping_off(other, path).is_some()) => {
                Unseen::ByAll
            }
            None => Unseen::ByStar,
        };
        Some((*span, found, who))
    })
}

/// The rules of the groups, and what looking at them may still take.
struct Looking<'s> {
    site: &'s Site,
    registry: &'s Registry,
    /// Comparisons that are left.
    overlaps: usize,
    /// Groups that search engines go by, and the tokens that they have there.
    of_engines: Vec<(usize, Vec<&'s str>)>,
    /// Groups of which no two have the same rules.
    distinct: Vec<usize>,
}

impl<'s> Looking<'s> {
    fn new(site: &'s Site, registry: &'s Registry) -> Looking<'s> {
        let mut seen = HashSet::new();
        let rules = |group: usize| site.matcher.rules(group).rules();
        let distinct = (0..site.rule_sources.len()).filter(|group| seen.insert(rules(*group))).collect();
        let mut of_engines: Vec<(usize, Vec<&str>)> = Vec::new();
        let engines =
            registry.crawlers().iter().filter(|known| known.purpose == Purpose::Search && known.binds != Binds::Never);
        for engine in engines {
            let named = engine.tokens.iter().find_map(|token| Some((token.as_str(), site.matcher.named(token)?)));
            let Some((token, group)) = named else { continue };
            match of_engines.iter_mut().find(|(known, _)| *known == group) {
                Some((_, tokens)) if tokens.contains(&token) => {}
                Some((_, tokens)) => tokens.push(token),
                None => of_engines.push((group, vec![token])),
            }
        }
        Looking { site, registry, overlaps: OVERLAPS_OF_A_POLICY, of_engines, distinct }
    }

    /// The group that a crawler goes by: of its tokens the first that has one, as Googlebot-Image goes by Googlebot's.
    fn group_of(&self, bot: &str) -> Option<usize> {
        let known = self.registry.find(bot).map(|index| self.registry.get(index));
        let described =
            self.site.policy.crawlers.iter().find(|described| described.token.value.eq_ignore_ascii_case(bot));
        let binds = described
            .and_then(|described| described.binds)
            .or(known.map(|known| known.binds))
            .unwrap_or(Binds::Unknown);
        let tokens = known.into_iter().flat_map(|known| known.tokens.iter().map(String::as_str));
        match binding(&self.site.matcher, std::iter::once(bot).chain(tokens), binds).0 {
            Binding::Group(group) => Some(usize::from(group)),
            _ => None,
        }
    }

    /// What keeps search engines off by groups that name them, and which these are. Other crawlers have no results that a
    /// page could be left out of.
    fn engines_kept_off(&mut self, path: &Pattern) -> Option<(KeptOff, String)> {
        let (mut first, mut names): (Option<KeptOff>, Vec<&str>) = (None, Vec::new());
        for (group, tokens) in self.of_engines.clone() {
            let kept_off = self.keeping_off(group, path);
            let Some(found) = kept_off.filter(|found| !found.whole_site) else { continue };
            names.extend(tokens);
            first.get_or_insert(found);
        }
        let names = match names.as_slice() {
            [one, other, _, ..] => format!("{one}, {other} and others"),
            names => names.join(" and "),
        };
        first.map(|found| (found, names))
    }

    /// Groups that have other rules than one has.
    fn others(&self, group: usize) -> Vec<usize> {
        let rules = |group: usize| self.site.matcher.rules(group).rules();
        self.distinct.iter().copied().filter(|other| rules(*other) != rules(group)).collect()
    }

    /// The Disallow that keeps a group off all URLs of a path: it covers the path and outranks every Allow that meets
    /// it. `None` also where it takes several rules, and where comparing takes too long. What was retired does not
    /// count: its noindex was seen before.
    fn keeping_off(&mut self, group: usize, path: &Pattern) -> Option<KeptOff> {
        let site = self.site;
        let overlaps = &mut self.overlaps;
        let rules = site.matcher.rules(group).rules().iter().zip(&site.rule_sources[group]);
        let meeting: Vec<(&Rule, &RuleSource)> =
            rules.filter(|(rule, _)| *overlaps > 0 && rule.pattern.overlaps(path, overlaps)).collect();
        if *overlaps == 0 {
            return None;
        }
        let allowed = meeting.iter().filter(|(rule, _)| rule.allow).map(|(rule, _)| rule.pattern.priority()).max();
        let (rule, source) = meeting.iter().find(|(rule, source)| {
            let covers = !rule.allow && rule.pattern.covers(path) && Some(rule.pattern.priority()) > allowed;
            covers && !is_of_retire(site, source)
        })?;
        let whole_site = rule.pattern.covers(&Pattern::new("/"));
        Some(KeptOff { source: (*source).clone(), whole_site })
    }
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

/// A plan for a path within another one's, which disallows it before the noindex begins. Where an Allow may keep some
/// of it open nothing is said.
fn retired_within_another(site: &Site, looking: &mut Looking<'_>, diagnostics: &mut Diagnostics) {
    let overlaps = &mut looking.overlaps;
    let plans = &site.policy.retire;
    let all = || plans.iter().flat_map(|plan| plan.paths.iter().map(move |path| (plan, path)));
    let patterns: Vec<_> = all().map(|(plan, path)| (plan, path.span, Pattern::new(&path.value))).collect();
    for (plan, span, path) in &patterns {
        let closed = patterns.iter().find(|(other, _, wider)| {
            *overlaps = overlaps.saturating_sub(1 + wider.priority());
            *overlaps > 0 && other.disallowed_from() <= plan.noindex_from.value && wider != path && wider.covers(path)
        });
        let Some((other, closing, wider)) = closed else { continue };
        let mut rules = (0..site.rule_sources.len()).flat_map(|group| site.matcher.rules(group).rules());
        let kept_open = rules.any(|rule| {
            // Where that takes too long to find out it may be open.
            rule.allow
                && rule.pattern.priority() >= wider.priority()
                && (rule.pattern.overlaps(path, overlaps) || *overlaps == 0)
        });
        if kept_open {
            continue;
        }
        let from = other.disallowed_from();
        diagnostics.push(
            lints::RETIRED_UNSEEN
                .at(*span, format!("another plan disallows this path from {from}: this noindex is never seen"))
                .related(*closing, "disallowed by this one, before the noindex begins")
                .help("take this path out of its plan: the other one says noindex of it, too, before it disallows it"),
        );
    }
}

fn retired(site: &Site, looking: &mut Looking<'_>, diagnostics: &mut Diagnostics) {
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
            let pattern = Pattern::new(&path.value);
            let Some(found) = looking.keeping_off(star, &pattern) else { continue };
            let finding = lints::RETIRED_UNSEEN
                .at(path.span, "this path is disallowed already: its noindex is never seen")
                .help("remove the Disallow: `retire` writes one when its time has come");
            diagnostics.push(pointing_at(finding, &found.source, site));
        }
    }
    retired_within_another(site, looking, diagnostics);
}
