//! Lints of a policy's statements about the use of content. They report statements that contradict
//! each other in different vocabularies (such as Content-Signal and Content-Usage), and rules that
//! never count. They also report licence URLs without https, demands for a licence when no licence is
//! named, and demands for a licence that search engines would get, too.

use super::catalogue as lints;
use super::site::closed_extent_for;
use crate::crawlers::{Purpose, Registry};
use crate::policy::compile::signals::{covers_whole_site, license_urls};
use crate::policy::model::{
    ContentSignal, ContentUsageRule, EnforcementMode, OriginRobotsMode, SignalCategory,
};
use crate::policy::signal_lines::yes_or_no;
use crate::policy::site::{RuleSource, Site};
use crate::printable::join_first;
use crate::robots::{DisallowedPart, PathPattern};
use crate::yaml::{Diagnostics, SourceSpan};

/// The category of Content-Usage that is compared with `tdm`.
const TRAIN_AI: &str = "train-ai";
/// How a finding names a rule of `tdm`.
const TDM: &str = "tdm reservation";

/// Checks a site's statements about the use of content.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    lint_disagreements(site, diagnostics);
    lint_unreachable_rules(site, diagnostics);
    lint_missing_licenses(site, registry, diagnostics);
    lint_license_for_search(site, registry, diagnostics);
    lint_plain_http(site, diagnostics);
}

/// Reports categories with opposite values in the vocabularies of Content-Signal, Content-Usage and
/// (for training) `tdm`: for the whole site, and for each group. Rules for paths are compared if only
/// one of `tdm` and Content-Usage has such rules.
fn lint_disagreements(site: &Site, diagnostics: &mut Diagnostics) {
    let robots = &site.policy.robots;
    let whole = &robots.signals;
    for category in SignalCategory::ALL {
        let mut values = stated_values(&whole.content_signal, &whole.content_usage, category);
        if category == SignalCategory::AiTrain {
            // Training a model is mining (EU AI Act, recital 105).
            let mut rules = site.policy.tdm.iter();
            let mut usages = whole.content_usage.iter().flat_map(|usage| &usage.values);
            if let [only] = &*site.policy.tdm
                && covers_whole_site(&only.paths)
                && let Some((name, _)) = usages
                    .find(|(name, granted)| name.value == TRAIN_AI && *granted == only.reserved)
            {
                values = vec![(TRAIN_AI, only.reserved, name.span)];
            }
            let last = values.last().map(|last| last.1);
            let no_paths = whole
                .content_usage
                .iter()
                .all(|usage| covers_whole_site(&usage.paths));
            // The first rule for the whole site is the last one that counts.
            let rule = rules
                .find(|rule| {
                    covers_whole_site(&rule.paths) || (no_paths && last == Some(rule.reserved))
                })
                .filter(|rule| last == Some(rule.reserved));
            values.extend(rule.map(|rule| (TDM, !rule.reserved, rule.span)));
        }
        report_disagreement(&values, diagnostics);
        for group in robots.groups.iter().map(|group| &group.signals) {
            let values = stated_values(&group.content_signal, &group.content_usage, category);
            report_disagreement(&values, diagnostics);
        }
    }
}

/// Reports the first value that is the opposite of the one before.
fn report_disagreement(values: &[(&'static str, bool, SourceSpan)], diagnostics: &mut Diagnostics) {
    let pair = values.windows(2).find(|pair| pair[0].1 != pair[1].1);
    let Some(&[(one, first, place), (other, second, span)]) = pair else {
        return;
    };
    let message = format!(
        "\"{other}: {}\" contradicts \"{one}: {}\"",
        // A reservation denies what the other names grant.
        yes_or_no(second != (other == TDM)),
        yes_or_no(first)
    );
    let finding = lints::SIGNALS_DISAGREE.finding(span, message);
    diagnostics.push(finding.related(place, "this says the opposite").help(
        "write it in one place, or the same in both: programs that read one do not read the other",
    ));
}

/// The values of a category in Content-Signal and in Content-Usage: the name in the vocabulary,
/// whether it is granted, and its place.
fn stated_values(
    signal: &Option<ContentSignal>,
    usages: &[ContentUsageRule],
    category: SignalCategory,
) -> Vec<(&'static str, bool, SourceSpan)> {
    let signal = signal.as_ref().and_then(|signal| signal.get(category));
    let usage = usages.iter().find(|rule| covers_whole_site(&rule.paths));
    let mut usage = usage.into_iter().flat_map(|rule| &rule.values);
    let name = category.usage_category();
    let usage = usage.find(|(written, _)| written.value == name);
    let signal = signal.map(|value| (category.name(), value.value, value.span));
    let usage = usage.map(|(written, granted)| (name, *granted, written.span));
    signal.into_iter().chain(usage).collect()
}

/// Reports paths of `tdm` and of licences that never count: the first match counts.
fn lint_unreachable_rules(site: &Site, diagnostics: &mut Diagnostics) {
    let tdm = site.policy.tdm.iter().map(|rule| &rule.paths);
    let licenses = site.policy.robots.signals.licenses.iter();
    let licenses = licenses.map(|rule| &rule.paths);
    for rules in [tdm.collect::<Vec<_>>(), licenses.collect()] {
        let mut earlier: Vec<PathPattern> = Vec::new();
        for paths in rules {
            let patterns: Vec<PathPattern> =
                paths.iter().map(|path| PathPattern::new(path)).collect();
            for (path, pattern) in paths.iter().zip(&patterns) {
                let target = pattern.to_wildcard_target();
                if earlier.iter().any(|one| one.matches(&target)) {
                    lints::UNREACHABLE_RULE.report(
                        diagnostics,
                        path.span,
                        "this path never counts: an earlier rule covers it, and the first match counts",
                        "move this rule up, or remove the path",
                    );
                }
            }
            earlier.extend(patterns);
            if paths.is_empty() {
                earlier.push(PathPattern::new("/"));
            }
        }
    }
}

/// Reports a demand for a licence that reaches Googlebot: search engines buy no licences, and drop
/// the pages.
fn lint_license_for_search(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let rules = site.crawler_rules(site.claim_of("googlebot", registry));
    let Some(status) = rules
        .unlicensed
        .filter(|_| rules.mode != EnforcementMode::Off)
    else {
        return;
    };
    let enforcement = &site.policy.enforcement;
    let by_purpose = enforcement
        .purposes
        .get(&Purpose::Search)
        .and_then(|fields| fields.unlicensed.as_ref());
    let written = by_purpose.or(enforcement.site.unlicensed.as_ref());
    diagnostics.push(
        lints::LICENSE_FOR_SEARCH
            .finding(
                written.map_or(SourceSpan::default(), |value| value.span),
                format!("search engines would get {status} as well"),
            )
            .label("search engines would drop the pages")
            .help(
                "write this under \"purposes\" or \"agents\": \"purposes: { training: { \
                 unlicensed: 401 } }\"",
            ),
    );
}

/// Reports licences with an `http:` URL (RSL 1.0 section 8).
fn lint_plain_http(site: &Site, diagnostics: &mut Diagnostics) {
    for url in license_urls(&site.policy).filter(|url| url.starts_with("http://")) {
        lints::LICENSE_NOT_HTTPS.report(
            diagnostics,
            url.span,
            "without HTTPS, an attacker can replace this licence on its way",
            format!("write \"{}\"", url.replacen("http://", "https://", 1)),
        );
    }
}

/// Reports crawlers that would be asked for a licence if `purposes` or the origin's file did not close
/// the site to them (a group of the policy is meant so), and each demand if neither the policy nor that
/// file names a licence.
fn lint_missing_licenses(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let Some(demand) = site.policy.license_demands().next() else {
        return;
    };
    // Without markers it is only a name in robots.txt, and sends no requests.
    let crawlers = registry.crawlers().iter();
    let mut tokens: Vec<&String> = crawlers
        .filter(|crawler| !crawler.markers.is_empty())
        .filter_map(|crawler| crawler.tokens.first())
        .collect();
    tokens.retain(|token| {
        let rules = site.crawler_rules(site.claim_of(token, registry));
        rules.unlicensed.is_some()
            && closed_extent_for(site, token, registry).is_some_and(|(closed, source)| {
                let is_meant = matches!(source, RuleSource::Policy(_));
                closed.part == DisallowedPart::Whole && !is_meant
            })
    });
    if let Some(first) = tokens.first() {
        lints::LICENSE_OF_NOBODY.report(
            diagnostics,
            demand.span,
            format!(
                "robots.txt closes the site to {}: under enforcement the answer is 403, not the offer of a licence",
                join_first(&tokens, 3)
            ),
            format!(
                "to offer a licence, remove that Disallow from the origin's robots.txt or from \"purposes\"; to block them without this warning, write \"{first}: {{ unlicensed: pass }}\" for each under \"agents\" in \"enforcement\""
            ),
        );
    }
    // The licences of the origin's file are not known here.
    let is_unknown =
        site.policy.robots.origin != OriginRobotsMode::Replace && site.origin.is_none();
    if is_unknown || site.signals.has_license() {
        return;
    }
    for demand in site.policy.license_demands() {
        lints::LICENSE_OF_NOBODY.report(
            diagnostics,
            demand.span,
            "no crawler is asked for a licence: neither the policy nor the origin's robots.txt \
             names one",
            "add a licence for the site (\"robots: { license: ... }\") or for a group (\"groups: \
             [{ agents: ..., license: ... }]\")",
        );
    }
}
