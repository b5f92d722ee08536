//! Lints of signals that contradict each other, or that no crawler reads; and of licences that do
//! not exist, or that search engines are asked for.

use super::catalogue as lints;
use crate::crawlers::{Claim, Purpose, Registry};
use crate::policy::compile::signals::{covers_all, license_urls};
use crate::policy::model::{Emission, GroupSignals, Mode, OriginRobots, SignalCategory};
use crate::policy::signal_lines::yes_or_no;
use crate::policy::site::Site;
use crate::yaml::{Diagnostics, Span};

/// Reports vocabularies that contradict each other, demands for a licence that does not exist or
/// that search engines would get, statements of a group that are written nowhere, and licences
/// without HTTPS.
pub fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    disagreements(site, diagnostics);
    licenses_of_nobody(site, diagnostics);
    search_engines_asked(site, registry, diagnostics);
    nowhere(site, diagnostics);
    plain_http(site, diagnostics);
}

/// Reports categories for which the vocabularies have opposite values for the whole site: one
/// finding for each category. For training, `tdm` counts as a vocabulary, too.
fn disagreements(site: &Site, diagnostics: &mut Diagnostics) {
    for category in SignalCategory::ALL {
        let mut said = said_to_all(site, category);
        if category == SignalCategory::AiTrain {
            // Training a model is mining (EU AI Act, recital 105).
            let rule = site.policy.tdm.iter().find(|rule| covers_all(&rule.paths));
            said.extend(rule.map(|rule| ("text and data mining", !rule.reserved, rule.span)));
        }
        let Some((one, first, place)) = said.first() else {
            continue;
        };
        let Some((other, second, span)) = said.iter().find(|(_, other, _)| other != first) else {
            continue;
        };

        diagnostics.push(
            lints::SIGNALS_DISAGREE
                .at(
                    *span,
                    format!(
                        "`{other}: {}`, and `{one}: {}`",
                        yes_or_no(*second),
                        yes_or_no(*first)
                    ),
                )
                .related(*place, "the opposite is said here")
                .help("say it once, or the same in both: readers of one do not read the other"),
        );
    }
}

/// The values of a category for every crawler: the first that the group `*` states, else the
/// site's, from Content-Signal and from Content-Usage for the whole site. So at most two, each with
/// its name in its vocabulary and its place.
fn said_to_all(site: &Site, category: SignalCategory) -> Vec<(&'static str, bool, Span)> {
    let robots = &site.policy.robots;
    let star = robots.groups.iter().filter(|group| group.is_for("*"));
    let mut signals = star
        .clone()
        .flat_map(|star| &star.signals.content_signal)
        .chain(&robots.signals.content_signal);
    let mut found = Vec::new();
    if let Some(said) = signals.find_map(|signal| signal.get(category)) {
        found.push((category.name(), said.value, said.span));
    }
    let mut usages = star
        .flat_map(|star| &star.signals.content_usage)
        .chain(&robots.signals.content_usage)
        .filter(|rule| covers_all(&rule.paths))
        .flat_map(|rule| &rule.said);
    if let Some((name, said)) = usages.find(|(name, _)| name.value == category.usage()) {
        found.push((category.usage(), *said, name.span));
    }
    found
}

/// Reports a demand for a licence that reaches Googlebot: search engines buy no licence, and drop
/// the pages. Not where enforcement is off for it.
fn search_engines_asked(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let Some(index) = registry.find("googlebot") else {
        return;
    };
    let rules = site.crawler_rules(Claim::Known(index));
    let Some(status) = rules.unlicensed.filter(|_| rules.mode != Mode::Off) else {
        return;
    };
    let enforcement = &site.policy.enforcement;
    let by_purpose = enforcement
        .purposes
        .get(&Purpose::Search)
        .and_then(|fields| fields.unlicensed.as_ref());
    let said = by_purpose.or(enforcement.site.unlicensed.as_ref());
    diagnostics.push(
        lints::LICENSE_FOR_SEARCH
            .at(
                said.map_or(Span::default(), |said| said.span),
                format!("search engines would get {status}, too"),
            )
            .label("the pages would drop out of search")
            .help(
                "ask under `purposes` or `agents`: `purposes: { training: { unlicensed: 401 } }`",
            ),
    );
}

/// Reports signals of a group where only headers have signals. A header is the same for all
/// clients, so that caches can keep it, and cannot have signals for some crawlers.
fn nowhere(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.robots.signals.emission.value != Emission::HeadersOnly {
        return;
    }
    for span in site
        .policy
        .robots
        .groups
        .iter()
        .filter_map(|group| place(&group.signals))
    {
        lints::SIGNAL_NOWHERE.report(
            diagnostics,
            span,
            "under `signals: headers_only` what a group says is written nowhere",
            "say it for the site, directly under `robots`; or write `signals: all`",
        );
    }
}

/// Where the first statement of a group stands, in the order signal, usage, licence; `None` without
/// one.
fn place(signals: &GroupSignals) -> Option<Span> {
    let signal = signals.content_signal.as_ref().map(|signal| signal.span);
    signal
        .or_else(|| signals.content_usage.first().map(|usage| usage.span))
        .or_else(|| signals.licenses.first().map(|license| license.span))
}

/// Reports licences of the policy with an `http:` URL: RSL 1.0 section 8 has licences fetched over
/// HTTPS only.
fn plain_http(site: &Site, diagnostics: &mut Diagnostics) {
    for url in license_urls(&site.policy).filter(|url| url.starts_with("http://")) {
        lints::LICENSE_NOT_HTTPS.report(
            diagnostics,
            url.span,
            "a licence that is not fetched over HTTPS can be exchanged on its way",
            format!("write `{}`", url.replacen("http://", "https://", 1)),
        );
    }
}

/// Reports each demand for a licence where neither the policy nor the origin's file names one:
/// crawlers pass as if nothing was demanded. Not where the origin's file is used and there is no
/// copy of it.
fn licenses_of_nobody(site: &Site, diagnostics: &mut Diagnostics) {
    // The licences of the origin's file are not known here.
    let is_unknown = site.policy.robots.origin != OriginRobots::Replace && site.origin.is_none();
    if is_unknown || site.signals.names_license() {
        return;
    }
    for said in site.policy.asks_for_license() {
        lints::LICENSE_OF_NOBODY.report(
            diagnostics,
            said.span,
            "neither the policy nor the origin's robots.txt names a licence: no crawler is asked for one",
            "write one for the site (`robots: { license: ... }`) or in its group (`groups: [{ agents: ..., license: ... }]`)",
        );
    }
}
