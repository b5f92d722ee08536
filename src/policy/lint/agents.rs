//! Lints of User-agent lines.

use super::catalogue as lints;
use super::subject::Subject;
use crate::crawlers::{Binds, Purpose, Registry, stands_in_browsers};
use crate::robots::{Agent, Dialect, TargetScratch};
use crate::yaml::{Diagnostics, Severity, Span};
use strsim::damerau_levenshtein;

pub fn lint(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    for (agent, span) in subject.groups.iter().flat_map(|group| &group.agents).filter(|(agent, _)| agent != "*") {
        if agent.chars().count() < 3 {
            diagnostics.push(
                lints::SHORT_TOKEN
                    .at(*span, format!("`{agent}` is too short to be told from other words"))
                    .help("write the whole product token of the crawler that is meant"),
            );
            continue;
        }
        if subject.is_policy || tokens(registry).any(|known| known.eq_ignore_ascii_case(agent)) {
            unknown_token(agent, *span, registry, diagnostics);
        } else if stands_in_browsers(agent, registry) {
            // In a policy it is an error, and said there: it would take people for crawlers.
            let mut finding = lints::TOKEN_OF_BROWSERS
                .at(*span, format!("`{agent}` stands in people's user agents, and no crawler looks for it"))
                .help("browsers read no robots.txt; name the crawler that is meant, or remove the group");
            finding.severity = Severity::Warning;
            diagnostics.push(finding);
        } else if !unknown_token(agent, *span, registry, diagnostics) {
            diagnostics.push(
                lints::UNLISTED_TOKEN
                    .at(*span, format!("no crawler that crawlgate knows has the token `{agent}`"))
                    .help("nothing is to be done if it is your own, or a new one"),
            );
        }
        if let Agent::Token(cut) = Dialect::Google.agent(agent.as_bytes(), &[])
            && cut.len() < agent.len()
            // What a crawler is called is not for a policy to mend.
            && !(subject.is_policy && tokens(registry).any(|known| known.eq_ignore_ascii_case(agent)))
        {
            let cut = String::from_utf8_lossy(cut);
            diagnostics.push(
                lints::TOKEN_CUT
                    .at(*span, format!("Google's library reads `{agent}` as `{cut}`"))
                    .help("nothing is to be done if the crawler reads its whole token, as most do; testers built on that library show no group for it"),
            );
        }
    }
    // A policy knows better what its owner wrote: there a group may extend another.
    if !subject.is_policy {
        groups_that_drop_star_rules(subject, diagnostics);
    }
    applebot_follows_googlebot(subject, diagnostics);
    star_ignored(subject, registry, diagnostics);
}

fn tokens(registry: &Registry) -> impl Iterator<Item = &str> {
    registry.crawlers().iter().flat_map(|crawler| crawler.tokens.iter().map(String::as_str))
}

/// Whether something was said.
fn unknown_token(agent: &str, span: Span, registry: &Registry, diagnostics: &mut Diagnostics) -> bool {
    let near = nearly(agent, registry);
    if let Some(near) = near {
        diagnostics.push(
            lints::UNKNOWN_TOKEN
                .at(span, format!("no known crawler looks for `{agent}`"))
                .help(format!("did you mean `{near}`?")),
        );
    }
    near.is_some()
}

/// The token that a name nearly is; `None` also where the name is known.
pub(super) fn nearly<'r>(name: &str, registry: &'r Registry) -> Option<&'r str> {
    let names = || registry.crawlers().iter().flat_map(|crawler| [crawler.name.as_str(), crawler.id.as_str()]);
    // A crawler's name in place of its token has a lint of its own.
    if tokens(registry).chain(names()).any(|known| known.eq_ignore_ascii_case(name)) {
        return None;
    }
    let written = name.to_ascii_lowercase();
    let near = tokens(registry).filter_map(|token| {
        let known = token.to_ascii_lowercase();
        is_nearly(&written, &known).then(|| (damerau_levenshtein(&written, &known), token))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, token)| token)
}

/// What many names end with: what is left of two of them tells one from the other.
const ENDINGS: [&str; 3] = ["bot", "crawler", "spider"];

/// Whether one name, in lower case, is the other misspelt: by one letter or two where there are many. Short names are
/// near to each other by chance: of these only letters that changed places, or one too many or too few.
fn is_nearly(written: &str, known: &str) -> bool {
    let both = ENDINGS.iter().find_map(|ending| written.strip_suffix(ending).zip(known.strip_suffix(ending)));
    let (one, other) = both.unwrap_or((written, known));
    let letters = |name: &str| {
        let mut letters = name.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    let distance = damerau_levenshtein(one, other);
    match (distance, one.len().min(other.len())) {
        (1, 0..=2) => false,
        (1, 3) => letters(one) == letters(other),
        (1, 4) => one.len() != other.len() || letters(one) == letters(other),
        (1, _) => true,
        (2, shortest) => shortest >= 8,
        _ => false,
    }
}

/// A named group replaces `*` altogether: what `*` forbids and the group does not mention becomes allowed.
fn groups_that_drop_star_rules(subject: &Subject, diagnostics: &mut Diagnostics) {
    let Some(star) = subject.named("*") else { return };
    for group in subject.groups.iter().filter(|group| !std::ptr::eq(*group, star)) {
        let closed = group.rules.iter().any(|rule| !rule.allow && matches!(rule.pattern.as_str(), "/" | "*" | "/*"));
        let silent = |path: &str| {
            !group.rules.iter().any(|rule| !rule.pattern.is_empty() && path.starts_with(rule.pattern.as_str()))
        };
        let mut dropped = star.rules.iter().filter(|rule| !rule.allow && !rule.pattern.is_empty());
        let dropped = dropped.find(|rule| silent(rule.pattern.as_str())).filter(|_| !closed);
        if let (Some(dropped), Some((agent, span))) = (dropped, group.agents.first()) {
            let path = dropped.pattern.as_str();
            diagnostics.push(
                lints::GROUP_DROPS_STAR_RULES
                    .at(*span, format!("`{agent}` may fetch `{path}`, which `*` may not"))
                    .related(dropped.span, "a group that names a crawler replaces `*`")
                    .help("repeat in this group the rules that are to hold for it as well (in a policy: `extends: \"*\"`)"),
            );
        }
    }
}

fn applebot_follows_googlebot(subject: &Subject, diagnostics: &mut Diagnostics) {
    let mut agents = subject.groups.iter().flat_map(|group| &group.agents);
    let Some((_, googlebot)) = agents.find(|(agent, _)| agent.eq_ignore_ascii_case("Googlebot")) else { return };
    if subject.named("Applebot").is_none() {
        diagnostics.push(
            lints::APPLEBOT_FOLLOWS_GOOGLEBOT
                .at(*googlebot, "this group binds Applebot too, which has no group of its own")
                .help("Apple documents that Applebot follows Googlebot's rules then; name Applebot where that is not meant"),
        );
    }
}

/// An owner who closes the whole site under `*` believes that it is closed. Crawlers of ads must be named.
fn star_ignored(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let Some(star) = subject.named("*") else { return };
    let mut scratch = TargetScratch::default();
    let Some(closed) = star.deciding(scratch.normalise(b"/").sent) else { return };
    if closed.allow {
        return;
    }
    let free = registry.crawlers().iter().filter(|crawler| {
        crawler.binds == Binds::Named
            && crawler.purpose == Purpose::Advertising
            && !crawler.tokens.iter().any(|token| subject.named(token).is_some())
    });
    let free: Vec<&str> = free.filter_map(|crawler| crawler.tokens.first()).map(String::as_str).take(4).collect();
    if !free.is_empty() {
        diagnostics.push(
            lints::STAR_IGNORED
                .at(closed.span, format!("{} do not follow `*`, as their operators say", free.join(", ")))
                .help("name them in a group to close the site for them as well"),
        );
    }
}
