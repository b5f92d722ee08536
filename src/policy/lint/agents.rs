//! Lints of the User-agent lines of a robots.txt: names of crawlers that are unknown, misspelt or
//! too short, and groups that do not have the effect that their owners expect.

use super::catalogue::{self as lints, Lint};
use super::subject::{LintSubject, SubjectGroup, SubjectRule};
use crate::crawlers::{
    Crawler, Purpose, Registry, RobotsObedience, is_generic_bot_name, is_visitor_word,
};
use crate::policy::decode::is_token;
use crate::policy::site::Site;
use crate::printable::{clip, join, join_first};
use crate::yaml::{Diagnostics, Located, Severity, SourceSpan};
use strsim::{damerau_levenshtein, levenshtein};

/// The most comparisons of patterns in a file; further groups are not checked.
const MAX_COMPARED: usize = 2_000_000;
/// Further rules that a group drops are only counted.
const MAX_DROPPED: usize = 10;

/// Shorter tokens are never searched for in user agents.
const MIN_TOKEN: usize = 3;
/// Shorter names are similar by chance.
const MIN_SIMILAR_NAME: usize = 5;
/// In shorter names one other letter makes another name: Roverbot is not rogerbot.
const MIN_OTHER_LETTER_NAME: usize = 9;
/// The most tokens that the help for one name lists.
const MAX_SUGGESTIONS: usize = 3;
/// Suffixes of tokens after the name of a product.
const PRODUCT_SUFFIXES: [&str; 7] = [
    "bot",
    "user",
    "searchbot",
    "web",
    "agent",
    "aiuser",
    "fetcher",
];

/// Reports agents that are no tokens of a crawler, each with its first mistake only; groups that
/// free a crawler from the rules of `*`; and crawlers that ignore `*`. An unknown name that is
/// similar to no known one is not reported.
pub fn lint(subject: &LintSubject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let agents = subject.groups.iter().flat_map(|group| &group.agents);
    for Located { value: agent, span } in agents.filter(|agent| agent.value != "*") {
        if let Some(sign) = agent.chars().find(|sign| is_invisible_character(*sign)) {
            report_invisible_character(lints::NOT_A_TOKEN, "name", sign, *span, diagnostics);
            continue;
        }
        if agent.chars().count() < MIN_TOKEN {
            report_short_token(agent, *span, subject.is_policy, diagnostics);
            continue;
        }
        // Every browser's user agent begins with "Mozilla".
        if is_generic_bot_name(agent.as_bytes()) || agent.eq_ignore_ascii_case("mozilla") {
            report_generic_token(agent, *span, Severity::Warning, diagnostics);
            continue;
        }
        if is_in_browser_agents(agent, registry) && !subject.is_policy {
            // In a policy the owner can write a marker for it: `lint/site.rs` says so.
            report_unmatched_token(
                agent,
                *span,
                Severity::Note,
                "name the crawler, or remove the group",
                diagnostics,
            );
        }
        report_retired_token(agent, *span, subject, registry, diagnostics);
        let message = format!("\"{agent}\" is not the name of a crawler: no crawler looks for it");
        if let Some(help) = meant_tokens_help(agent, registry) {
            lints::NOT_A_TOKEN.report(diagnostics, *span, message, help);
        } else if let Some(near) = nearest_token(agent, registry) {
            lints::UNKNOWN_TOKEN.report(
                diagnostics,
                *span,
                format!("no known crawler looks for \"{agent}\""),
                format!("did you mean \"{near}\"?"),
            );
        } else if agent.contains(['*', '"', '\'']) {
            let help = "write the letters of the name alone; \"*\" alone means all crawlers";
            lints::NOT_A_TOKEN.report(diagnostics, *span, message, help);
        }
    }
    lint_dropped_star_rules(subject, registry, diagnostics);
    lint_star_ignored(subject, registry, diagnostics);
}

/// Reports a test of the policy whose crawler is misspelt: it tests an unknown bot.
pub fn lint_tests(site: &Site, registry: &Registry, diagnostics: &mut Diagnostics) {
    for agent in site.policy.tests.iter().map(|test| &test.agent) {
        if let Some(near) = nearest_token(agent, registry)
            && site.policy.crawler_description(agent).is_none()
        {
            let message = format!("no known crawler is called \"{}\"", agent.value);
            let help = format!("did you mean \"{near}\"?");
            lints::UNKNOWN_TOKEN.report(diagnostics, agent.span, message, help);
        }
    }
}

/// Whether a name is found in people's user agents, and is neither a crawler's name nor a word for
/// bots in general.
pub fn is_in_browser_agents(name: &str, registry: &Registry) -> bool {
    registry.find(name).is_none()
        && !is_generic_bot_name(name.as_bytes())
        && is_visitor_word(name.as_bytes())
}

/// Reports a token that is found in people's user agents. User agents are not searched for it, so
/// its group matches no request. Under `enforcement` it is a warning: the line blocks nobody.
pub fn report_unmatched_token(
    agent: &str,
    span: SourceSpan,
    severity: Severity,
    help: &str,
    diagnostics: &mut Diagnostics,
) {
    let message = format!(
        "\"{agent}\" is part of the user agents of browsers or apps. Their requests are not \
         affected"
    );
    lints::TOKEN_MATCHES_NO_REQUEST
        .with_severity(severity)
        .report(diagnostics, span, message, help);
}

/// Reports a word for bots in general, such as `bot`: as an error under `enforcement`, where it
/// would have to match requests.
pub fn report_generic_token(
    agent: &str,
    span: SourceSpan,
    severity: Severity,
    diagnostics: &mut Diagnostics,
) {
    let others = match severity {
        Severity::Error => {
            "to enforce the rules for all unknown bots, write \"enforcement: { purposes: { other: \
             enforce } }\""
        }
        Severity::Warning | Severity::Note => "the group \"*\" is for all other crawlers",
    };
    lints::GENERIC_TOKEN.with_severity(severity).report(
        diagnostics,
        span,
        format!(
            "\"{agent}\" is not the name of a crawler: no crawler looks for it, and no \
                 request matches it"
        ),
        format!("write the product token of the crawler; {others}"),
    );
}

/// Whether the name of an unknown bot could be written under `enforcement: agents` without errors
/// and warnings.
pub fn may_be_enforced(name: &str, registry: &Registry) -> bool {
    name.len() >= MIN_TOKEN
        && is_token(name)
        && !is_generic_bot_name(name.as_bytes())
        && !is_visitor_word(name.as_bytes())
        && registry.find(name).is_none()
        && nearest_token(name, registry).is_none()
}

/// Whether a character beyond ASCII is not visible: blanks, and format characters of Unicode.
pub fn is_invisible_character(sign: char) -> bool {
    let is_format = matches!(sign, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}');
    !sign.is_ascii() && (sign.is_whitespace() || sign.is_control() || is_format)
}

/// Reports an invisible character in a name, a key or a path (`what`). Crawlers trim only the
/// blanks of ASCII, so it counts.
pub fn report_invisible_character(
    lint: Lint,
    what: &str,
    sign: char,
    span: SourceSpan,
    diagnostics: &mut Diagnostics,
) {
    let message = format!(
        "this {what} has an invisible character (U+{:04X}), so it is a different {what}",
        u32::from(sign)
    );
    lint.report(
        diagnostics,
        span,
        message,
        "type the line again; the character was probably copied from a page",
    );
}

/// The help for a name that is no token: the tokens that are probably meant, with their purposes.
pub fn meant_tokens_help(name: &str, registry: &Registry) -> Option<String> {
    let meant = crawlers_meant_by(name, registry);
    let named = join(
        meant
            .iter()
            .map(|one| format!("\"{}\" ({})", one.tokens[0], one.purpose.name())),
        ", ",
    );
    (!named.is_empty()).then(|| format!("write these tokens: {named}"))
}

/// The crawlers that are probably meant by a name that is no token: the one whose first token, name
/// or id differs only in signs and case (`GPT-Bot`); else those of a product (`ChatGPT`) or of an
/// operator (`OpenAI`), one for each purpose.
fn crawlers_meant_by<'r>(name: &str, registry: &'r Registry) -> Vec<&'r Crawler> {
    if registry.has_token(name) || name.eq_ignore_ascii_case("mozilla") {
        return Vec::new();
    }
    let plain_name = lowercase_alphanumeric(name);
    let is_same = |known: &String| lowercase_alphanumeric(known) == plain_name;
    let mut of_product_or_operator = Vec::new();
    for crawler in registry.crawlers() {
        let Some(token) = crawler.tokens.first() else {
            continue;
        };
        if is_same(token) || is_same(&crawler.name) || is_same(&crawler.id) {
            return vec![crawler];
        }
        if is_same(&crawler.operator)
            || crawler.products.iter().any(is_same)
            // The product with a usual suffix: `ChatGPT-User`, `PerplexityBot`.
            || lowercase_alphanumeric(token)
                .strip_prefix(&plain_name)
                .is_some_and(|rest| PRODUCT_SUFFIXES.contains(&rest))
        {
            of_product_or_operator.push(crawler);
        }
    }
    first_of_each_purpose(&of_product_or_operator)
}

/// The best crawler of each purpose: preferably one that its operator documents (many others are
/// gone), then one that obeys robots.txt. At most [`MAX_SUGGESTIONS`], in the order of
/// [`Purpose::ALL`]: it begins with what people mostly mean.
fn first_of_each_purpose<'r>(crawlers: &[&'r Crawler]) -> Vec<&'r Crawler> {
    let firsts = Purpose::ALL.into_iter().filter_map(|purpose| {
        crawlers
            .iter()
            .filter(|crawler| crawler.purpose == purpose)
            .min_by_key(|crawler| {
                (
                    !crawler.source.contains("[D]"),
                    crawler.binds == RobotsObedience::Never,
                )
            })
            .copied()
    });
    firsts.take(MAX_SUGGESTIONS).collect()
}

/// The letters and digits of a name, in lower case.
fn lowercase_alphanumeric(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|sign| sign.to_ascii_lowercase())
        .collect()
}

/// Reports a former name of a crawler, if the file names none of the crawlers that its operator has
/// today.
fn report_retired_token(
    agent: &str,
    span: SourceSpan,
    subject: &LintSubject,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) {
    let Some(former) = registry.find_crawler(agent) else {
        return;
    };
    let Some(since) = &former.retired else {
        return;
    };
    let crawlers = registry.crawlers().iter();
    let current: Vec<&Crawler> = crawlers
        .filter(|crawler| crawler.operator == former.operator && crawler.retired.is_none())
        .collect();
    let mut agents = subject.groups.iter().flat_map(|group| &group.agents);
    let names_current = agents.any(|agent| current.iter().any(|crawler| crawler.has_token(agent)));
    let tokens = first_of_each_purpose(&current)
        .into_iter()
        .filter_map(|crawler| crawler.tokens.first())
        .map(|token| format!("\"{token}\""));
    let tokens = join(tokens, ", ");
    if !names_current && !tokens.is_empty() {
        lints::RETIRED_TOKEN.report(
            diagnostics,
            span,
            format!(
                "\"{agent}\" is a former name: {} does not document it any more ({since})",
                former.operator
            ),
            format!("name the crawlers of today: {tokens}"),
        );
    }
}

/// Reports an empty or very short token. In a file a short one is only a note: mostly it is one of
/// a long list.
fn report_short_token(
    agent: &str,
    span: SourceSpan,
    is_policy: bool,
    diagnostics: &mut Diagnostics,
) {
    let message = if agent.is_empty() {
        "this line names no crawler".to_owned()
    } else {
        format!("\"{agent}\" is too short: many words contain it")
    };
    let severity = if is_policy || agent.is_empty() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let help = "write the full product token of the crawler";
    lints::SHORT_TOKEN
        .with_severity(severity)
        .report(diagnostics, span, message, help);
}

/// The known token that a name is probably a misspelling of ([`is_misspelling`]); `None` for a known
/// token, name or id.
pub fn nearest_token<'r>(name: &str, registry: &'r Registry) -> Option<&'r str> {
    if registry.find(name).is_some() || registry.has_token(name) {
        return None;
    }
    let written = name.to_ascii_lowercase();
    registry
        .tokens()
        .find(|token| is_misspelling(&written, &token.to_ascii_lowercase()))
}

/// Whether two names in lower case differ in one letter, which is missing, added, exchanged with its
/// neighbour, or, in long names, another one.
fn is_misspelling(written: &str, known: &str) -> bool {
    let is_other_letter = written.len() == known.len() && levenshtein(written, known) == 1;
    let shortest = if is_other_letter {
        MIN_OTHER_LETTER_NAME
    } else {
        MIN_SIMILAR_NAME
    };
    written.len().min(known.len()) >= shortest && damerau_levenshtein(written, known) == 1
}

/// Reports groups that free a crawler from a Disallow of `*`: a named group replaces `*`, so what
/// it does not mention becomes allowed. Groups that only open or close everything, and exceptions
/// from a closed site, are not reported.
fn lint_dropped_star_rules(
    subject: &LintSubject,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) {
    let Some(star) = subject
        .group_for_token("*")
        .filter(|star| star.closing_rule().is_none())
    else {
        return;
    };
    let mut forbidden = rules_with_targets(star);
    forbidden.retain(|(rule, _)| !rule.allow);
    let mut left = MAX_COMPARED;
    for group in &subject.groups {
        if std::ptr::eq(group, star) {
            continue;
        }
        let opens_all = group
            .rules
            .iter()
            .any(|rule| rule.pattern.is_empty() || rule.allow && rule.pattern.is_blanket());
        let closes_nothing = group
            .rules
            .iter()
            .all(|rule| rule.allow || rule.pattern.is_empty());
        // Names that are no tokens are reported by other lints.
        let mut agents = group.agents.iter().filter(|agent| {
            follows_star(agent, registry)
                && nearest_token(agent, registry).is_none()
                && crawlers_meant_by(agent, registry).is_empty()
        });
        let Some(Located { value: agent, span }) = agents.next() else {
            continue;
        };
        left = left.saturating_sub(forbidden.len() * (group.rules.len() + 1));
        if opens_all && closes_nothing || group.closing_rule().is_some() || left == 0 {
            continue;
        }
        let own_rules = rules_with_targets(group);
        let dropped = forbidden.iter().filter(|(rule, target)| {
            !own_rules.iter().any(|(own, own_target)| {
                own.pattern.matches(target) || rule.pattern.matches(own_target)
            })
        });
        let dropped = dropped.map(|(rule, _)| rule).collect::<Vec<_>>();
        let Some(first) = dropped.first() else {
            continue;
        };
        let patterns = dropped
            .iter()
            .map(|rule| format!("\"{}\"", clip(rule.pattern.as_str(), 100)));
        let others = agents.map(|agent| format!(", \"{}\"", agent.value));
        let message = format!(
            "\"{agent}\"{} may fetch what \"*\" may not: {}",
            clip(&join(others, ""), 100),
            join_first(patterns, MAX_DROPPED)
        );
        diagnostics.push(
            lints::GROUP_DROPS_STAR_RULES
                .finding(*span, message)
                .related(
                    first.span,
                    "a group that names a crawler replaces the group \"*\" for it",
                )
                .help(if subject.is_policy {
                    "to keep those rules, write \"extends: '*'\" in this group. To show that this \
                     is meant, allow the paths in this group"
                } else {
                    "repeat the rules of \"*\" in this group, if they are to apply to it as well"
                }),
        );
    }
}

/// The rules of a group that can match, each with its pattern as a target.
fn rules_with_targets(group: &SubjectGroup) -> Vec<(&SubjectRule, Vec<u8>)> {
    group
        .rules
        .iter()
        .filter(|rule| rule.pattern.as_str().starts_with(['/', '*']))
        .map(|rule| (rule, rule.pattern.to_wildcard_target()))
        .collect()
}

/// Whether a crawler with this token follows `*`. An unknown token does.
fn follows_star(agent: &str, registry: &Registry) -> bool {
    let mut crawlers = registry.crawlers().iter();
    let known = crawlers.find(|crawler| crawler.has_token(agent));
    known.is_none_or(|crawler| crawler.binds.follows_star())
}

/// Reports advertising crawlers that ignore `*`, if `*` closes the front page and no group names
/// them: the owner believes that the site is closed.
fn lint_star_ignored(subject: &LintSubject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let closed = subject
        .group_for_token("*")
        .and_then(|star| star.deciding_rule(b"/"))
        .filter(|rule| !rule.allow);
    let Some(closed) = closed else { return };
    let free = registry.crawlers().iter().filter(|crawler| {
        crawler.binds == RobotsObedience::Named
            && crawler.purpose == Purpose::Advertising
            && !crawler
                .tokens
                .iter()
                .any(|token| subject.group_for_token(token).is_some())
    });
    let free = join(
        free.filter_map(|crawler| crawler.tokens.first()).take(4),
        ", ",
    );
    if !free.is_empty() {
        lints::STAR_IGNORED.report(
            diagnostics,
            closed.span,
            format!("{free} do not obey \"*\", as their operators document"),
            "to close the site to them as well, name them in a group",
        );
    }
}
