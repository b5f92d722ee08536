//! Lints of a policy's statements about the use of content. They report statements that contradict
//! each other in different vocabularies (such as Content-Signal and Content-Usage), and rules that
//! never count. They also report licence URLs without https, demands for a licence when no licence is named, demands
//! for a licence that search engines would get, too, and reservations that nothing records.

use super::catalogue as lints;
use crate::crawlers::{Purpose, Registry};
use crate::policy::compile::signals::{covers_whole_site, extends_chain, license_urls};
use crate::policy::model::{
    CrawlStance, EnforcementMode, GroupPolicy, OriginRobotsMode, SignalCategory,
};
use crate::policy::signal_lines::yes_or_no;
use crate::policy::site::Site;
use crate::yaml::{Diagnostics, Located, SourceSpan};

/// Checks a site's statements about the use of content.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    lint_disagreements(site, diagnostics);
    lint_unreachable_rules(site, diagnostics);
    lint_missing_licenses(site, diagnostics);
    lint_unrecorded_reservation(site, diagnostics);
    lint_license_for_search(site, registry, diagnostics);
    lint_plain_http(site, diagnostics);
}

/// Reports categories with opposite values for the whole site, for the group `*` and for each other
/// group.
fn lint_disagreements(site: &Site, diagnostics: &mut Diagnostics) {
    let groups = &site.policy.robots.groups;
    let star = groups.iter().position(|group| group.names_agent("*"));
    let chain = star.map_or_else(Vec::new, |index| extends_chain(&site.policy, index));
    lint_group_disagreements(site, &chain, true, diagnostics);
    for index in (0..groups.len()).filter(|index| Some(*index) != star) {
        let chain = extends_chain(&site.policy, index);
        lint_group_disagreements(site, &chain, false, diagnostics);
    }
}

/// Reports categories with opposite values for a group (`chain`: it and those that it extends), in
/// the vocabularies of Content-Signal, Content-Usage and (`is_star`, for training) `tdm`. A value
/// that another group shares is reported once.
fn lint_group_disagreements(
    site: &Site,
    chain: &[&GroupPolicy],
    is_star: bool,
    diagnostics: &mut Diagnostics,
) {
    for category in SignalCategory::ALL {
        let mut values = site_wide_values(site, chain, category);
        if is_star && category == SignalCategory::AiTrain {
            // Training a model is mining (EU AI Act, recital 105).
            let rule = site
                .policy
                .tdm
                .iter()
                .find(|rule| covers_whole_site(&rule.paths));
            values.extend(rule.map(|rule| ("text and data mining", !rule.reserved, rule.span)));
        }
        let Some((one, first, place)) = values.first() else {
            continue;
        };
        let Some((other, second, span)) = values.iter().find(|(_, other, _)| other != first) else {
            continue;
        };
        let mut known = diagnostics.items.iter();
        if known
            .any(|finding| finding.id == lints::SIGNALS_DISAGREE.id && finding.span == Some(*span))
        {
            continue;
        }
        diagnostics.push(
            lints::SIGNALS_DISAGREE
                .finding(
                    *span,
                    format!(
                        "\"{other}: {}\", and \"{one}: {}\"",
                        yes_or_no(*second),
                        yes_or_no(*first)
                    ),
                )
                .related(*place, "this says the opposite")
                .help(
                    "write it in one place, or the same in both: programs that read one do not \
                     read the other",
                ),
        );
    }
}

/// The values of a category for a group and the whole site, from Content-Signal and from
/// Content-Usage: the name in the vocabulary, whether it is granted, and its place.
fn site_wide_values(
    site: &Site,
    chain: &[&GroupPolicy],
    category: SignalCategory,
) -> Vec<(&'static str, bool, SourceSpan)> {
    let robots = &site.policy.robots;
    let groups = chain.iter().map(|group| &group.signals);
    let mut signals = groups
        .clone()
        .flat_map(|group| &group.content_signal)
        .chain(&robots.signals.content_signal);
    let mut found = Vec::new();
    if let Some(value) = signals.next().and_then(|signal| signal.get(category)) {
        found.push((category.name(), value.value, value.span));
    }
    let mut usages = groups
        .flat_map(|group| &group.content_usage)
        .chain(&robots.signals.content_usage)
        .filter(|rule| covers_whole_site(&rule.paths));
    // The first rule replaces the others as a whole.
    let mut values = usages.next().into_iter().flat_map(|rule| &rule.values);
    if let Some((name, value)) = values.find(|(name, _)| name.value == category.usage_category()) {
        found.push((category.usage_category(), *value, name.span));
    }
    found
}

/// Reports rules of `tdm`, and licences for some paths, that never count: the first match counts, and
/// an earlier rule covers all of their paths. robots.txt has several licences for the whole site.
fn lint_unreachable_rules(site: &Site, diagnostics: &mut Diagnostics) {
    let tdm = site.policy.tdm.iter();
    let licenses = site.policy.robots.signals.licenses.iter();
    let tdm: Vec<_> = tdm.map(|rule| (&rule.paths, rule.span)).collect();
    let licenses: Vec<_> = licenses.map(|rule| (&rule.paths, rule.url.span)).collect();
    for (rules, is_tdm) in [(tdm, true), (licenses, false)] {
        for (place, (paths, span)) in rules.iter().enumerate() {
            let mut earlier = rules[..place].iter();
            if let Some((_, earlier)) = earlier.find(|(earlier, _)| covers(earlier, paths))
                && (is_tdm || !paths.is_empty())
            {
                let finding = lints::UNREACHABLE_RULE.finding(
                    *span,
                    "this rule never counts: an earlier one covers its paths, and the first match counts",
                );
                let finding = finding.related(*earlier, "the earlier rule");
                diagnostics.push(finding.help("move this rule up, or remove it"));
            }
        }
    }
}

/// Whether some patterns surely match all paths that other ones match.
fn covers(patterns: &[Located<String>], others: &[Located<String>]) -> bool {
    let is_covered = |other: &Located<String>| {
        patterns.iter().any(|pattern| {
            let is_prefix = other.starts_with(pattern.as_str()) && !pattern.contains(['*', '$']);
            is_prefix || pattern.as_str() == other.as_str()
        })
    };
    covers_whole_site(patterns) || !others.is_empty() && others.iter().all(is_covered)
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

/// Reports the first reservation of a site that asks nobody for a licence.
fn lint_unrecorded_reservation(site: &Site, diagnostics: &mut Diagnostics) {
    if let Some(span) = site.policy.reservation()
        && site.policy.license_demands().next().is_none()
    {
        lints::RESERVATION_UNRECORDED.report(
            diagnostics,
            span,
            "no report and no evidence shows who reads pages in spite of this: it is no rule of \
             robots.txt",
            "name a \"license\", and ask for it with \"unlicensed\". Or disallow the crawlers",
        );
    }
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

/// Reports each demand for a licence of crawlers that the policy closes the site to, and each if
/// neither the policy nor the origin's file names a licence.
fn lint_missing_licenses(site: &Site, diagnostics: &mut Diagnostics) {
    for (purpose, fields) in &site.policy.enforcement.purposes {
        let stance = site.policy.purposes.get(purpose);
        let is_closed = stance.is_some_and(|stance| stance.value == CrawlStance::Disallow);
        if let Some(demand) = fields.unlicensed.as_ref().filter(|_| is_closed) {
            lints::LICENSE_OF_NOBODY.report(
                diagnostics,
                demand.span,
                format!(
                    "these crawlers are not asked for a licence: \"purposes: {{ {}: disallow }}\" \
                     closes the site to them",
                    purpose.name()
                ),
                "write one of the two: \"disallow\" to block them, \"unlicensed\" to ask them",
            );
        }
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
