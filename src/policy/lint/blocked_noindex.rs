//! Lints of a noindex that no crawler sees, in `indexing` and `retire`: a crawler that may not fetch a page does not
//! see its headers (Google and Yandex document that).

use super::catalogue as lints;
use crate::crawlers::{Binds, Crawler, Purpose, Registry};
use crate::indexing::Scope;
use crate::policy::model::{Environment, IndexingRule};
use crate::policy::retire::RetireStage;
use crate::policy::site::{RuleSource, Site};
use crate::robots::{Pattern, Rule};
use crate::yaml::{Diagnostic, Diagnostics, Span};
use std::collections::HashSet;
use std::time::Duration;

/// Within so short a time crawlers have not visited most pages.
const SOON: Duration = Duration::from_secs(7 * 86_400);
/// The most comparisons of octets of patterns, in all of a policy.
const OVERLAPS_OF_A_POLICY: usize = 500_000;

pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Staging {
        return;
    }
    let mut lookup = GroupLookup::new(site, registry);
    for rule in &site.policy.indexing {
        if lookup.overlaps == 0 {
            break;
        }
        let scopes = rule.tags.iter().filter(|(_, said)| said.forbids_indexing()).map(|(scope, _)| scope);
        let unseen = scopes.filter_map(|scope| unseen_by(scope, rule, &mut lookup)).next();
        let Some((place, found, message)) = unseen else { continue };
        let finding = lints::NOINDEX_UNSEEN
            .at(place, message)
            .help("allow crawling until the pages have left the index, or let `retire` do both in their order");
        diagnostics.push(pointing_at(finding, &found.source, site));
    }
    retired(site, &mut lookup, diagnostics);
}

/// A Disallow that keeps crawlers off.
struct KeptOff {
    source: RuleSource,
    /// Whether it is for the whole site: then the owner wants this crawler nowhere, whatever these pages say.
    whole_site: bool,
}

/// The place where a rule says noindex to crawlers that may not fetch its pages, with the Disallow and the message.
fn unseen_by(scope: &Scope, rule: &IndexingRule, lookup: &mut GroupLookup<'_>) -> Option<(Span, KeptOff, String)> {
    let bot = match scope {
        Scope::All => None,
        Scope::Bot(name) => Some(name),
    };
    let group = match bot {
        Some(bot) => Some(lookup.group_of(bot)?),
        None => lookup.site.matcher.star(),
    };
    let everywhere = rule.when.path_regex.as_ref().map_or(rule.span, |regex| regex.span);
    let mut places: Vec<(Pattern, Span)> =
        rule.when.paths.iter().map(|path| (Pattern::new(&path.value), path.span)).collect();
    if places.is_empty() {
        let regex = rule.when.path_regex.as_ref().and_then(|regex| plain(&regex.value));
        let is_pdf = rule.when.types.iter().any(|media_type| media_type.value == "application/pdf");
        let path = regex.unwrap_or_else(|| if is_pdf { "/*.pdf$".into() } else { "/".into() });
        places.push((Pattern::new(&path), everywhere));
    }
    places.iter().find_map(|(path, span)| {
        let of_group = group.and_then(|group| Some((group, lookup.keeping_off(group, path)?)));
        let Some((group, found)) = of_group else {
            let (found, engines) = lookup.engines_kept_off(path).filter(|_| bot.is_none())?;
            return Some((
                *span,
                found,
                format!("some never see this noindex: robots.txt keeps {engines} off these pages"),
            ));
        };
        let message = match bot {
            Some(bot) => format!("this noindex is never seen: robots.txt keeps {bot} off these pages"),
            // Every group keeps off those whom it is for.
            None if lookup.others(group).into_iter().all(|other| lookup.keeping_off(other, path).is_some()) => {
                "this noindex is never seen: robots.txt keeps crawlers off these pages".into()
            }
            None => {
                "many never see this noindex: robots.txt keeps the crawlers of the `*` group off these pages".into()
            }
        };
        Some((*span, found, message))
    })
}

/// The pattern of a regular expression that is a text, perhaps with an anchor at either end.
fn plain(regex: &str) -> Option<String> {
    let (start, rest) = regex.strip_prefix('^').map_or(("*", regex), |rest| ("", rest));
    let (rest, end) = rest.strip_suffix('$').map_or((rest, ""), |rest| (rest, "$"));
    let text = rest.replace("\\.", "\0").replace("\\/", "/").replace("\\-", "-");
    let is_plain = text.chars().all(|sign| sign.is_ascii_alphanumeric() || "/-_\0".contains(sign));
    (is_plain && !text.is_empty()).then(|| format!("{start}{}{end}", text.replace('\0', ".")))
}

/// The rules of the groups, and the comparisons that are left for them.
struct GroupLookup<'s> {
    site: &'s Site,
    registry: &'s Registry,
    /// Comparisons that are left.
    overlaps: usize,
    /// Groups of which no two have the same rules.
    distinct: Vec<usize>,
}

impl<'s> GroupLookup<'s> {
    fn new(site: &'s Site, registry: &'s Registry) -> GroupLookup<'s> {
        let mut seen = HashSet::new();
        let rules = |group: usize| site.matcher.rules(group).rules();
        let distinct = (0..site.rule_sources.len()).filter(|group| seen.insert(rules(*group))).collect();
        GroupLookup { site, registry, overlaps: OVERLAPS_OF_A_POLICY, distinct }
    }

    /// The group that binds a crawler: of its tokens the first that has one, as Googlebot-Image follows Googlebot's.
    fn group_of(&self, bot: &str) -> Option<usize> {
        self.site.crawler_rules(self.site.claim_of(bot, self.registry)).binding.group().map(usize::from)
    }

    /// The Disallow that keeps search engines off in groups that name them, and the names of these engines. Other
    /// crawlers have no results that a page could be left out of.
    fn engines_kept_off(&mut self, path: &Pattern) -> Option<(KeptOff, String)> {
        let (mut first, mut names): (Option<KeptOff>, Vec<&str>) = (None, Vec::new());
        let (site, registry) = (self.site, self.registry);
        let is_engine = |known: &&Crawler| known.purpose == Purpose::Search && known.binds != Binds::Never;
        for engine in registry.crawlers().iter().filter(is_engine) {
            let named = engine.tokens.iter().find_map(|token| Some((token.as_str(), site.matcher.named(token)?)));
            let Some((token, group)) = named.filter(|(token, _)| !names.contains(token)) else { continue };
            let kept_off = self.keeping_off(group, path);
            let Some(found) = kept_off.filter(|found| !found.whole_site) else { continue };
            names.push(token);
            first.get_or_insert(found);
        }
        let names = match names.as_slice() {
            [one, other, _, ..] => format!("{one}, {other} and others"),
            names => names.join(" and "),
        };
        first.map(|found| (found, names))
    }

    /// Groups with other rules than a group has.
    fn others(&self, group: usize) -> Vec<usize> {
        let rules = |group: usize| self.site.matcher.rules(group).rules();
        self.distinct.iter().copied().filter(|other| rules(*other) != rules(group)).collect()
    }

    /// The Disallow that keeps a group off all URLs of a path: it covers the path and outranks every Allow that
    /// overlaps it. `None` also where it takes several rules, and where comparing takes too long. A Disallow of
    /// `retire` does not count: its noindex was seen before.
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

/// An Allow of the policy that outranks a Disallow for a path, for some of its URLs.
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

/// Whether a rule is a Disallow of `retire`.
fn is_of_retire(site: &Site, source: &RuleSource) -> bool {
    let mut paths = site.policy.retire.iter().flat_map(|retired| &retired.paths);
    paths.any(|path| *source == RuleSource::Policy(path.span))
}

/// Shows where the Disallow stands. What stands in the origin's file cannot be shown in this one.
fn pointing_at(finding: Diagnostic, found: &RuleSource, site: &Site) -> Diagnostic {
    match (found, &site.origin) {
        (RuleSource::Origin(line), Some(origin)) => finding.label(format!("disallowed by {}", origin.place(*line))),
        (source, _) => finding.related(source.span(), "disallowed here"),
    }
}

fn retired(site: &Site, lookup: &mut GroupLookup<'_>, diagnostics: &mut Diagnostics) {
    for retired in &site.policy.retire {
        if retired.disallow_after.value < SOON && retired.stage(site.at) != RetireStage::Disallowed {
            let span = retired.disallow_after.span.unwrap_or(retired.span);
            lints::RETIRED_TOO_SOON.report(
                diagnostics,
                span,
                "most crawlers will not have come by before these paths are closed",
                "search engines revisit a page within weeks: write `14d` or more",
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
            let Some(found) = lookup.keeping_off(star, &pattern) else { continue };
            let finding = lints::RETIRED_UNSEEN
                .at(path.span, "this path is disallowed already: its noindex is never seen")
                .help("remove the Disallow: `retire` writes one when its time has come");
            diagnostics.push(pointing_at(finding, &found.source, site));
        }
    }
}
