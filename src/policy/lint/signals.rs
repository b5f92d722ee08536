//! Lints of signals that contradict the rules of the site or each other, or that no crawler reads; and of licences that
//! no page names, or that do not exist.
//!
//! A signal is about use, a rule about fetching, and most pairs of the two go together: `ai-train: no` for crawlers
//! that may fetch is the very thing signals are for. Only a pair of which one makes the other pointless is reported.

use super::catalogue as lints;
use crate::crawlers::{Claim, Purpose, Registry};
use crate::policy::compile::signals::covers_all;
use crate::policy::model::{
    ContentSignal, ContentUsage, Emission, Environment, GroupPolicy, GroupSignals, Mode, OriginRobots, SignalCategory,
    Stance, USAGE_CATEGORIES, Unlicensed,
};
use crate::policy::site::{PathSignals, Site};
use crate::robots::TargetScratch;
use crate::yaml::{Diagnostic, Diagnostics, Located, Span, nearest};

pub(super) fn lint(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    if site.policy.environment == Environment::Production {
        purposes(site, diagnostics);
        closed_groups(site, diagnostics);
        usage_of_groups(site, diagnostics);
        licences_for_the_shut_out(site, registry, diagnostics);
    }
    disagreements(site, diagnostics);
    unknown_categories(site, diagnostics);
    unreachable_reservations(site, diagnostics);
    unreachable_licenses(site, diagnostics);
    licenses_of_nobody(site, registry, diagnostics);
    search_engines_asked(site, registry, diagnostics);
    validators(site, diagnostics);
    nowhere(site, diagnostics);
    plain_http(site, diagnostics);
}

/// Categories, each with the purpose of the crawlers that come for nothing else.
const ONLY_FOR: [(SignalCategory, Purpose); 3] = [
    (SignalCategory::Search, Purpose::Search),
    (SignalCategory::AiInput, Purpose::Assistant),
    (SignalCategory::AiTrain, Purpose::Training),
];

/// The values of a category for every crawler: for the site, or in the group `*`.
fn said_to_all(site: &Site, category: SignalCategory) -> Vec<(&'static str, bool, Span)> {
    let robots = &site.policy.robots;
    let star = || robots.groups.iter().filter(|group| group.is_for("*")).map(|group| &group.signals);
    let signals = star().flat_map(|star| &star.content_signal).chain(&robots.signals.content_signal);
    let usage = star().flat_map(|star| &star.content_usage).chain(&robots.signals.content_usage);
    said_of(category, signals, usage)
}

/// The values of a category for the whole site in the two vocabularies: of each the first statement that has one.
pub(super) fn said_of<'a>(
    category: SignalCategory,
    signals: impl Iterator<Item = &'a ContentSignal>,
    usage: impl Iterator<Item = &'a ContentUsage>,
) -> Vec<(&'static str, bool, Span)> {
    let signals = signals.flat_map(|signal| &signal.said).filter(|(other, _)| *other == category);
    let signals = signals.map(|(_, said)| (category.name(), said.value, said.span));
    let mut usage = usage.filter(|rule| covers_all(&rule.paths)).flat_map(|rule| &rule.said);
    let usage = usage.find(|(name, _)| name.value == category.usage());
    signals.chain(usage.map(|(name, said)| (category.usage(), *said, name.span))).collect()
}

/// Reports crawlers that are invited by name for the one use that is refused; or shut out, while their use is granted.
fn purposes(site: &Site, diagnostics: &mut Diagnostics) {
    for (category, purpose) in ONLY_FOR {
        let Some(stance) = site.policy.purposes.get(&purpose) else { continue };
        for (name, said, span) in said_to_all(site, category) {
            let (message, help) = match (stance.value, said) {
                (Stance::Allow, false) => (
                    format!("`{name}: no`, and `purposes` invites crawlers that come for nothing else"),
                    format!("write `{}: disallow` (or inherit), or leave `{name}` out", purpose.name()),
                ),
                (Stance::Disallow, true) => (
                    format!("`{name}: yes`, and `purposes` shuts out the crawlers that come for it"),
                    format!("write `{}: inherit`, or `{name}: no`", purpose.name()),
                ),
                _ => continue,
            };
            diagnostics
                .push(lints::SIGNAL_CONTRADICTS_RULES.at(span, message).related(stance.span, "said here").help(help));
        }
    }
}

fn closed_groups(site: &Site, diagnostics: &mut Diagnostics) {
    for group in site.policy.robots.groups.iter().filter(|group| is_closed(group)) {
        let disallow = group.disallow.first().map_or(group.span, |path| path.span);
        grants_in_closed_group(&group.signals, disallow, diagnostics);
    }
}

/// Reports grants to crawlers that may fetch nothing.
pub(super) fn grants_in_closed_group(signals: &GroupSignals, closed: Span, diagnostics: &mut Diagnostics) {
    let signal = signals
        .content_signal
        .iter()
        .flat_map(|signal| &signal.said)
        .filter(|(_, said)| said.value)
        .map(|(category, said)| (category.name(), said.span));
    let usage = signals
        .content_usage
        .iter()
        .flat_map(|rule| &rule.said)
        .filter(|(_, said)| *said)
        .map(|(name, _)| (name.value.as_str(), name.span));
    for (name, span) in signal.chain(usage) {
        diagnostics.push(
            lints::SIGNAL_CONTRADICTS_RULES
                .at(span, format!("`{name}: yes` to crawlers that may fetch nothing"))
                .related(closed, "the whole site is closed to them")
                .help("allow what they may use, or leave the grant out"),
        );
    }
}

fn is_closed_as_served(site: &Site, group: usize) -> bool {
    let rules = site.matcher.rules(group).rules();
    rules.iter().any(|rule| !rule.allow && rule.pattern.is_blanket()) && !rules.iter().any(|rule| rule.allow)
}

fn is_closed(group: &GroupPolicy) -> bool {
    group.extends.is_none() && group.allow.is_empty() && !group.disallow.is_empty() && covers_all(&group.disallow)
}

fn usage_of_groups(site: &Site, diagnostics: &mut Diagnostics) {
    let star = site.matcher.star();
    let of_groups = site.policy.robots.groups.iter().flat_map(|group| {
        let token = group.agents.first().map_or("*", |agent| agent.value.as_str());
        let place = if token == "*" { star } else { site.matcher.named(token) };
        group.signals.content_usage.iter().map(move |rule| (rule, place))
    });
    let of_site = site.policy.robots.signals.content_usage.iter().map(|rule| (rule, star));
    let placed = of_groups.chain(of_site).filter_map(|(rule, place)| Some((rule, place?)));
    for (rule, place) in placed {
        let rules = site.matcher.rules(place);
        let disallowed = |target: &[u8]| {
            let found = rules.find(target).filter(|rule| !rules.rules()[*rule].allow)?;
            Some(site.rule_sources[place][found].span())
        };
        disallowed_usage(rule, disallowed, diagnostics);
    }
}

/// draft-ietf-aipref-attach-05 section 3.1: no preferences are implied for what is disallowed.
pub(super) fn disallowed_usage(
    rule: &ContentUsage,
    disallowed: impl Fn(&[u8]) -> Option<Span>,
    diagnostics: &mut Diagnostics,
) {
    let mut scratch = TargetScratch::default();
    for path in &rule.paths {
        let literal = path.value.split(['*', '$']).next().unwrap_or("");
        if literal.len() < 2 {
            continue;
        }
        let Some(place) = disallowed(scratch.normalise(literal.as_bytes()).sent) else { continue };
        diagnostics.push(
            lints::USAGE_OF_DISALLOWED
                .at(path.span, "crawlers may not fetch this, so that nothing is said about its use")
                .related(place, "disallowed here")
                .help("allow the path, or leave the rule out"),
        );
    }
}

/// Reports vocabularies with opposite values for the whole site.
fn disagreements(site: &Site, diagnostics: &mut Diagnostics) {
    for category in SignalCategory::ALL {
        opposed_signals(&said_to_all(site, category), diagnostics);
    }
    let Some(rule) = site.policy.tdm.iter().find(|rule| covers_all(&rule.paths)) else { return };
    for (name, said, place) in said_to_all(site, SignalCategory::AiTrain) {
        if said == rule.reserved {
            let (tdm, word) = if said { ("reserved", "yes") } else { ("not reserved", "no") };
            diagnostics.push(
                lints::SIGNALS_DISAGREE
                    .at(rule.span, format!("text and data mining is {tdm}, and `{name}: {word}`"))
                    .related(place, "the opposite is said here")
                    .help("training a model is mining (EU AI Act, recital 105): say the same in both"),
            );
        }
    }
}

/// Reports the values of two vocabularies for a category, if they are opposite.
pub(super) fn opposed_signals(said: &[(&str, bool, Span)], diagnostics: &mut Diagnostics) {
    let Some(((one, first, place), rest)) = said.split_first() else { return };
    if let Some((other, second, span)) = rest.iter().find(|(_, second, _)| second != first) {
        let word = |said: &bool| if *said { "yes" } else { "no" };
        diagnostics.push(
            lints::SIGNALS_DISAGREE
                .at(*span, format!("`{other}: {}`, and `{one}: {}`", word(second), word(first)))
                .related(*place, "the opposite is said here")
                .help("say it once, or the same in both: readers of one do not read the other"),
        );
    }
}

fn unknown_categories(site: &Site, diagnostics: &mut Diagnostics) {
    let robots = &site.policy.robots;
    let rules =
        robots.groups.iter().flat_map(|group| &group.signals.content_usage).chain(&robots.signals.content_usage);
    diagnostics.items.extend(rules.flat_map(|rule| &rule.said).filter_map(|(name, _)| unknown_category(name)));
}

/// The finding about a category that Content-Usage does not have.
pub(super) fn unknown_category(name: &Located<String>) -> Option<Diagnostic> {
    if USAGE_CATEGORIES.contains(&name.value.as_str()) {
        return None;
    }
    let help = match (name.value.as_str(), nearest(&name.value, USAGE_CATEGORIES)) {
        // Labels of earlier versions of the draft.
        ("bots" | "all" | "tdm" | "ai" | "ai-output" | "genai" | "train-genai", _) => {
            "an earlier version of the draft had it; write `train-ai`, `ai-use` or `search`".to_owned()
        }
        ("ai-train", _) => "Content-Signal calls it so; here it is `train-ai`".to_owned(),
        ("ai-input", _) => "Content-Signal calls it so; here the nearest is `ai-use`".to_owned(),
        (_, Some(near)) => format!("did you mean `{near}`?"),
        _ => format!("the categories are: {}; readers pass over others", USAGE_CATEGORIES.join(", ")),
    };
    Some(lints::UNKNOWN_CATEGORY.at(name.span, format!("the vocabulary has no category `{}`", name.value)).help(help))
}

/// Parts of names that were written for a category.
const WORDS_OF_CATEGORIES: [(&str, SignalCategory); 5] = [
    ("train", SignalCategory::AiTrain),
    ("input", SignalCategory::AiInput),
    ("ground", SignalCategory::AiInput),
    ("ai-us", SignalCategory::AiInput),
    ("search", SignalCategory::Search),
];

/// The category that a name means in either vocabulary, as far as that can be told.
pub(super) fn meant_category(name: &str) -> Option<SignalCategory> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let by_word = WORDS_OF_CATEGORIES.into_iter().find(|(word, _)| name.contains(word)).map(|(_, category)| category);
    let of_name = |known: &str| SignalCategory::ALL.into_iter().find(|one| known == one.name() || known == one.usage());
    let known = SignalCategory::ALL.into_iter().flat_map(|category| [category.name(), category.usage()]);
    by_word.or_else(|| of_name(nearest(&name, known)?))
}

/// Whether a word behind a category was meant to grant or to restrict; `None` where that cannot be told.
pub(super) fn meant_word(word: &str) -> Option<bool> {
    let word = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric()).to_ascii_lowercase();
    match word.as_str() {
        "y" | "yes" | "true" | "1" | "on" | "allow" | "allowed" => Some(true),
        "n" | "no" | "none" | "never" | "false" | "0" | "off" | "deny" | "disallow" | "disallowed" => Some(false),
        _ => None,
    }
}

/// Reports rules of `tdm` behind one for the whole site: the first rule that matches counts.
fn unreachable_reservations(site: &Site, diagnostics: &mut Diagnostics) {
    let mut rules = site.policy.tdm.iter().skip_while(|rule| !covers_all(&rule.paths));
    let Some(first) = rules.next() else { return };
    for rule in rules {
        diagnostics.push(
            lints::UNREACHABLE_RESERVATION
                .at(rule.span, "this rule is never reached: one before it is for the whole site")
                .related(first.span, "the first rule that matches counts")
                .help("write the rule for the whole site last"),
        );
    }
}

/// Reports a demand for a licence that reaches search engines: they buy no licence, and drop the pages.
fn search_engines_asked(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let Some(index) = registry.find("googlebot") else { return };
    let rules = site.crawler_rules(Claim::Known(index));
    let Some(status) = rules.unlicensed.filter(|_| rules.mode != Mode::Off) else { return };
    let enforcement = &site.policy.enforcement;
    let by_purpose = enforcement.purposes.get(&Purpose::Search).and_then(|fields| fields.unlicensed.as_ref());
    let said = by_purpose.or(enforcement.site.unlicensed.as_ref());
    diagnostics.push(
        lints::LICENSE_FOR_SEARCH
            .at(said.map_or(Span::default(), |said| said.span), format!("search engines would get {status}, too"))
            .label("the pages would drop out of search")
            .help("ask under `purposes` or `agents`: `purposes: { training: { unlicensed: 401 } }`"),
    );
}

/// A site that asks for a licence wants the crawler to come back with one. A Disallow tells the crawler not to come.
fn licences_for_the_shut_out(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    let mut shut_out = |said: &Option<Located<Unlicensed>>, whom: &str, closed: Span| {
        diagnostics.items.extend(said.map(|said| {
            lints::SIGNAL_CONTRADICTS_RULES
                .at(said.span, format!("`{whom}` is asked for a licence, and robots.txt closes the site to it"))
                .related(closed, "a licence opens nothing that is disallowed")
                .help("let robots.txt allow what the licence is for; without a token it is refused all the same")
        }));
    };
    for (purpose, fields) in &site.policy.enforcement.purposes {
        if let Some(Located { value: Stance::Disallow, span }) = site.policy.purposes.get(purpose) {
            shut_out(&fields.unlicensed, purpose.name(), *span);
        }
    }
    for (agent, fields) in &site.policy.enforcement.agents {
        let claim = site.claim_of(&agent.value, registry);
        let Some(group) = site.crawler_rules(claim).binding.group().map(usize::from) else { continue };
        if is_closed_as_served(site, group) {
            shut_out(&fields.unlicensed, &agent.value, site.group_sources[group].span());
        }
    }
}

/// Google Search Console shows "syntax not understood" for every line it does not know; Lighthouse fails its audit
/// robots-txt on what is not in its list, which has Content-Signal (GoogleChrome/lighthouse pull request 16767) and not
/// License (17160) nor Content-Usage.
fn validators(site: &Site, diagnostics: &mut Diagnostics) {
    let robots = &site.policy.robots;
    let emission = &robots.signals.emission;
    if emission.value == Emission::HeadersOnly || emission.span.is_some() {
        return;
    }
    let is_written = |key: &&str| {
        let of_groups = site.document.groups.iter().flat_map(|group| &group.extensions);
        of_groups.chain(&site.document.extensions).any(|line| line.key == *key)
    };
    let places = [
        robots.signals.licenses.first().map(|license| license.url.span),
        robots.signals.content_usage.first().map(|usage| usage.span),
        robots.signals.content_signal.as_ref().map(|signal| signal.span),
    ];
    let of_groups = robots.groups.iter().flat_map(|group| place(&group.signals));
    let Some(span) = places.into_iter().flatten().chain(of_groups).next() else { return };
    let fails = ["License", "Content-Usage"]
        .into_iter()
        .filter(is_written)
        .map(|key| format!("`{key}`"))
        .collect::<Vec<_>>()
        .join(" and ");
    let stumbles = if fails.is_empty() {
        "Search Console shows a warning on `Content-Signal`, and so do older versions of Lighthouse".to_owned()
    } else {
        let more = if is_written(&"Content-Signal") { " and on `Content-Signal`" } else { "" };
        format!("Lighthouse fails its audit of robots.txt on {fails}, and Search Console shows a warning on them{more}")
    };
    lints::VALIDATORS_STUMBLE.report(
        diagnostics,
        span,
        stumbles,
        "crawlers pass over what they do not know: write `signals: all` to say so, or `signals: headers_only`",
    );
}

/// Reports signals of a group where only headers have signals. A header is the same for all clients, so that caches can
/// keep it, and cannot have signals for some crawlers.
fn nowhere(site: &Site, diagnostics: &mut Diagnostics) {
    if site.policy.robots.signals.emission.value != Emission::HeadersOnly {
        return;
    }
    for span in site.policy.robots.groups.iter().filter_map(|group| place(&group.signals)) {
        lints::SIGNAL_NOWHERE.report(
            diagnostics,
            span,
            "under `signals: headers_only` what a group says is written nowhere",
            "say it for the site, directly under `robots`; or write `signals: all`",
        );
    }
}

/// Where the first signal of a group stands.
fn place(signals: &GroupSignals) -> Option<Span> {
    let signal = signals.content_signal.as_ref().map(|signal| signal.span);
    let usage = || signals.content_usage.first().map(|usage| usage.span);
    signal.or_else(usage).or_else(|| signals.licenses.first().map(|license| license.span))
}

/// RSL 1.0 section 8: licences are fetched over HTTPS only.
fn plain_http(site: &Site, diagnostics: &mut Diagnostics) {
    let robots = &site.policy.robots;
    let urls = robots
        .signals
        .licenses
        .iter()
        .map(|license| &license.url)
        .chain(robots.groups.iter().flat_map(|group| &group.signals.licenses));
    for url in urls.filter(|url| url.value.starts_with("http://")) {
        lints::LICENSE_NOT_HTTPS.report(
            diagnostics,
            url.span,
            "a licence that is not fetched over HTTPS can be exchanged on its way",
            format!("write `{}`", url.value.replacen("http://", "https://", 1)),
        );
    }
}

/// Reports licences behind one for the whole site. robots.txt names all licences; pages and refusals name the first
/// that covers the path.
fn unreachable_licenses(site: &Site, diagnostics: &mut Diagnostics) {
    let licenses = &site.policy.robots.signals.licenses;
    let mut licenses = licenses.iter().skip_while(|license| !covers_all(&license.paths));
    let Some(first) = licenses.next() else { return };
    for license in licenses {
        diagnostics.push(
            lints::UNREACHABLE_LICENSE
                .at(license.url.span, "no page ever names this licence: one before it is for the whole site")
                .related(first.url.span, "the first that covers a path counts")
                .help("say what it covers (`url` and `paths`), and write the licence for the whole site last"),
        );
    }
}

/// Reports demands for a licence where none covers the crawler: it passes as if nothing was demanded.
fn licenses_of_nobody(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    // The licences of the origin's file are not known here.
    let is_unknown = site.policy.robots.origin != OriginRobots::Replace && site.origin.is_none();
    if is_unknown || !site.policy.robots.signals.licenses.is_empty() {
        return;
    }
    let mut of_nobody = |said: &Located<Unlicensed>, message: &str| {
        lints::LICENSE_OF_NOBODY.report(
            diagnostics,
            said.span,
            message,
            "write one for the site (`robots: { license: ... }`) or in its group (`groups: [{ agents: ..., \
                    license: ... }]`)",
        );
    };
    if site.origin.is_some() && !site.signals.names_license() {
        let message = "neither the policy nor the origin's robots.txt names a licence: no crawler is asked for one";
        return site.policy.asks_for_license().for_each(|said| of_nobody(said, message));
    }
    for (agent, fields) in &site.policy.enforcement.agents {
        let Some(said) = fields.unlicensed.as_ref().filter(|said| said.value != Unlicensed::Pass) else { continue };
        let group = site.crawler_rules(site.claim_of(&agent.value, registry)).binding.group();
        if site.signals.license(PathSignals::default(), group).is_none() {
            of_nobody(said, &format!("`{}` is told of no licence, so it is not asked for one", agent.value));
        }
    }
}
