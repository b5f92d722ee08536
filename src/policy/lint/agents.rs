//! Lints of User-agent lines: tokens that are unknown, misspelt or too short, and groups that have
//! another effect than their owners expect.

use super::catalogue::{self as lints, Lint};
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::crawlers::{Binds, Crawler, Purpose, Registry, is_generic, is_of_people};
use crate::policy::decode::is_token;
use crate::printable::join;
use crate::yaml::{Diagnostics, Severity, Span};
use strsim::damerau_levenshtein;

/// The most comparisons of patterns in all groups of a file; beyond it, further groups are not
/// checked.
const MAX_COMPARED: usize = 2_000_000;

/// Shorter tokens are never looked for.
const MIN_TOKEN: usize = 3;
/// Names of so many letters are not near to each other by chance.
const MIN_LONG_NAME: usize = 9;
/// The most tokens that the help for one name lists.
const MAX_MEANT: usize = 5;
/// Purposes that owners who name a product or an operator mostly mean, in the order of their
/// concern.
const MEANT_PURPOSES: [Purpose; 3] = [Purpose::Training, Purpose::Search, Purpose::Assistant];
/// Endings of tokens behind the name of a product.
const OF_PRODUCTS: [&str; 7] = [
    "bot",
    "user",
    "searchbot",
    "web",
    "agent",
    "aiuser",
    "fetcher",
];

/// Reports agents (without `*`) that are no tokens of a crawler, each with its first mistake only;
/// then groups that free a crawler from the rules of `*`, and crawlers that ignore `*`. A name that
/// is close to no known one may be a crawler that crawlgate does not know, and is not reported.
pub fn lint(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let agents = subject.groups.iter().flat_map(|group| &group.agents);
    for (agent, span) in agents.filter(|(agent, _)| agent != "*") {
        if let Some(sign) = agent.chars().find(|sign| is_invisible(*sign)) {
            invisible_sign(lints::NOT_A_TOKEN, "name", sign, *span, diagnostics);
            continue;
        }
        if agent.chars().count() < MIN_TOKEN {
            short_token(agent, *span, subject.is_policy, diagnostics);
            continue;
        }
        if is_generic(agent.as_bytes()) || is_of_every_browser(agent) {
            generic_token(agent, *span, Severity::Warning, diagnostics);
            continue;
        }
        if is_name_of_people(agent, registry) && !subject.is_policy {
            // In a policy the owner can write a marker for it: that is said there.
            token_matches_no_request(
                agent,
                *span,
                "name the crawler that is meant, or remove the group",
                diagnostics,
            );
        }
        // A crawler looks for its token; no crawler reads a group for what people call it.
        let message = format!("`{agent}` is no product token: no crawler looks for it");
        if let Some(help) = meant_tokens(agent, registry) {
            lints::NOT_A_TOKEN.report(diagnostics, *span, message, help);
        } else if let Some(near) = nearly(agent, registry) {
            lints::UNKNOWN_TOKEN.report(
                diagnostics,
                *span,
                format!("no known crawler looks for `{agent}`"),
                format!("did you mean `{near}`?"),
            );
        } else if agent.contains(['*', '"', '\'']) {
            let help =
                "write the letters of a token alone; `*` without anything else is for all crawlers";
            lints::NOT_A_TOKEN.report(diagnostics, *span, message, help);
        }
    }
    groups_that_drop_star_rules(subject, registry, diagnostics);
    star_ignored(subject, registry, diagnostics);
}

/// Whether a name stands in people's user agents, and is neither a crawler's name nor a word for
/// bots in general.
pub fn is_name_of_people(name: &str, registry: &Registry) -> bool {
    registry.find(name).is_none() && !is_generic(name.as_bytes()) && is_of_people(name.as_bytes())
}

/// Reports a token that stands in people's user agents. crawlgate does not search for such a token,
/// so its group matches no request.
pub fn token_matches_no_request(
    agent: &str,
    span: Span,
    help: &str,
    diagnostics: &mut Diagnostics,
) {
    lints::TOKEN_MATCHES_NO_REQUEST.report(
        diagnostics,
        span,
        format!("`{agent}` stands in the user agents of people's browsers or apps, and matches none of their requests"),
        help,
    );
}

/// Reports a word for bots in general, such as `bot`. Crawlers look for names of their own. The
/// caller passes an error as `severity` where the word would have to match requests (under
/// `enforcement`).
pub fn generic_token(agent: &str, span: Span, severity: Severity, diagnostics: &mut Diagnostics) {
    let others = match severity {
        Severity::Error => {
            "`enforcement: { purposes: { other: enforce } }` is for all unlisted bots"
        }
        Severity::Warning | Severity::Note => "the group for `*` is for all others",
    };
    lints::GENERIC_TOKEN.with(severity).report(
        diagnostics,
        span,
        format!("`{agent}` names no crawler: none looks for it, and no request matches it"),
        format!("write the product token of the crawler that is meant; {others}"),
    );
}

/// Whether `enforcement: { agents: { NAME: enforce } }` with this name of an unknown bot is free of
/// errors and warnings. False for the name of a known crawler.
pub fn may_be_enforced(name: &str, registry: &Registry) -> bool {
    name.len() >= MIN_TOKEN
        && is_token(name)
        && !is_generic(name.as_bytes())
        && !is_of_people(name.as_bytes())
        && registry.find(name).is_none()
        && misspelt(name, registry).is_none()
}

/// The known token that a name under `enforcement` is written nearly like: as `nearly` finds it, or
/// one letter off in a name of nine letters or more. Such a name enforces nothing, so that more is
/// reported than for other tokens. `None` for a known name.
pub fn misspelt<'r>(name: &str, registry: &'r Registry) -> Option<&'r str> {
    let near = nearly(name, registry);
    if near.is_some() || name.len() < MIN_LONG_NAME || registry.find(name).is_some() {
        return near;
    }
    let written = name.to_ascii_lowercase();
    registry
        .tokens()
        .find(|token| damerau_levenshtein(&written, &token.to_ascii_lowercase()) == 1)
}

/// Whether a name is the word that every browser's user agent begins with.
fn is_of_every_browser(name: &str) -> bool {
    name.eq_ignore_ascii_case("mozilla")
}

/// Whether a character beyond ASCII shows nothing: blanks, and those that Unicode calls formats.
pub fn is_invisible(sign: char) -> bool {
    let is_format = matches!(sign, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}');
    !sign.is_ascii() && (sign.is_whitespace() || sign.is_control() || is_format)
}

/// Reports an invisible character in a name, a key or a path (`what`). Crawlers take only the
/// blanks of ASCII off its ends, so this one belongs to it.
pub fn invisible_sign(
    lint: Lint,
    what: &str,
    sign: char,
    span: Span,
    diagnostics: &mut Diagnostics,
) {
    let message = format!(
        "this {what} has an invisible character (U+{:04X}), so it is another one",
        u32::from(sign)
    );
    lint.report(
        diagnostics,
        span,
        message,
        "write the line anew; the character was probably copied from a page",
    );
}

/// The help for a name that is no token, with the tokens that are probably meant and their
/// purposes; `None` where there are none.
pub fn meant_tokens(name: &str, registry: &Registry) -> Option<String> {
    let meant = meant_by(name, registry);
    let named = join(
        meant
            .iter()
            .map(|one| format!("`{}` ({})", one.tokens[0], one.purpose.name())),
        ", ",
    );
    (!named.is_empty()).then(|| format!("write the tokens that are meant: {named}"))
}

/// The crawlers that are meant by a name that is not a token: the one whose first token, name or id
/// differs only in signs and case (`GPT-Bot`); else those of a product (`ChatGPT`) or of an
/// operator (`OpenAI`), one for each purpose. Empty where the name is a known token, or no
/// crawler's.
fn meant_by<'r>(name: &str, registry: &'r Registry) -> Vec<&'r Crawler> {
    if registry.has_token(name) || is_of_every_browser(name) {
        return Vec::new();
    }
    let plain = plain(name);
    let is_same = |known: &String| self::plain(known) == plain;
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
            || is_of_product(token, &plain)
        {
            of_product_or_operator.push(crawler);
        }
    }
    one_for_each_purpose(&of_product_or_operator)
}

/// The first crawler of each purpose: preferably one that its operator documents, because of the
/// others many are gone, and then one that obeys robots.txt. If any is for training, search or
/// assistants, only these purposes are returned; else at most five.
fn one_for_each_purpose<'r>(crawlers: &[&'r Crawler]) -> Vec<&'r Crawler> {
    let first_of = |purposes: &[Purpose]| -> Vec<&'r Crawler> {
        let firsts = purposes.iter().filter_map(|purpose| {
            let with_purpose = crawlers
                .iter()
                .filter(|crawler| crawler.purpose == *purpose);
            with_purpose
                .min_by_key(|crawler| {
                    (
                        !crawler.source.contains("[D]"),
                        crawler.binds == Binds::Never,
                    )
                })
                .copied()
        });
        firsts.take(MAX_MEANT).collect()
    };
    let meant = first_of(&MEANT_PURPOSES);
    if meant.is_empty() {
        first_of(&Purpose::ALL)
    } else {
        meant
    }
}

/// Whether a crawler's token is `name` (letters and digits in lower case) and a word that tells the
/// crawlers of a product apart: `ChatGPT-User`, `PerplexityBot`. Only letters and digits of the
/// token are compared, whatever their case.
fn is_of_product(token: &str, name: &str) -> bool {
    plain(token)
        .strip_prefix(name)
        .is_some_and(|rest| OF_PRODUCTS.contains(&rest))
}

/// Letters and digits in lower case.
fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|sign| sign.to_ascii_lowercase())
        .collect()
}

/// Reports a token of fewer than three characters, or an empty one. In a file that was found a
/// short one is a note: mostly it is one of a long list.
fn short_token(agent: &str, span: Span, is_policy: bool, diagnostics: &mut Diagnostics) {
    let message = if agent.is_empty() {
        "this line names no crawler".to_owned()
    } else {
        format!("`{agent}` is too short to be told from other words")
    };
    let severity = if is_policy || agent.is_empty() {
        Severity::Warning
    } else {
        Severity::Note
    };
    let help = "write the whole product token of the crawler that is meant";
    lints::SHORT_TOKEN
        .with(severity)
        .report(diagnostics, span, message, help);
}

/// The nearest known token that a name may be a misspelling of (`is_nearly`). `None` also where the
/// name is a known token, name or id.
pub fn nearly<'r>(name: &str, registry: &'r Registry) -> Option<&'r str> {
    // A crawler's name in place of its token has a lint of its own.
    let is_a_name = registry.crawlers().iter().any(|crawler| {
        crawler.name.eq_ignore_ascii_case(name) || crawler.id.eq_ignore_ascii_case(name)
    });
    if is_a_name || registry.has_token(name) {
        return None;
    }
    let written = name.to_ascii_lowercase();
    registry
        .tokens()
        .filter(|token| is_nearly(&written, &token.to_ascii_lowercase()))
        .min_by_key(|token| damerau_levenshtein(&written, &token.to_ascii_lowercase()))
}

/// Endings that many names have: without them the rest tells one name from the other.
const ENDINGS: [&str; 3] = ["bot", "crawler", "spider"];

/// Whether one name, in lower case, is the other misspelt: by one letter, or by two in names of
/// eight letters or more. Endings such as `bot` do not count. Short names are near to each other by
/// chance (WebZIP and webzio, Roverbot and rogerbot): below seven letters only changed places, or
/// one letter too many or too few from four letters on.
fn is_nearly(written: &str, known: &str) -> bool {
    let without_ending = ENDINGS
        .iter()
        .find_map(|ending| written.strip_suffix(ending).zip(known.strip_suffix(ending)));
    let (one, other) = without_ending.unwrap_or((written, known));
    let distance = damerau_levenshtein(one, other);
    match (distance, one.len().min(other.len())) {
        (1, 0..=2) => false,
        (1, 3) => sorted_letters(one) == sorted_letters(other),
        (1, 4..=6) => one.len() != other.len() || sorted_letters(one) == sorted_letters(other),
        (1, _) => true,
        (2, shortest) => shortest >= 8,
        _ => false,
    }
}

fn sorted_letters(name: &str) -> Vec<u8> {
    let mut letters = name.as_bytes().to_vec();
    letters.sort_unstable();
    letters
}

/// Reports groups that free a crawler from a Disallow of `*`. A named group replaces `*`
/// altogether: what `*` forbids and the group does not mention becomes allowed. Not reported: where
/// `*` closes the whole site (the groups are its exceptions), groups that only open or close
/// everything, and groups beyond `MAX_COMPARED` comparisons.
fn groups_that_drop_star_rules(
    subject: &Subject,
    registry: &Registry,
    diagnostics: &mut Diagnostics,
) {
    let Some(star) = subject.named("*").filter(|star| star.closing().is_none()) else {
        return;
    };
    let forbidden = rules_with_targets(star, |rule| !rule.allow);
    let mut left = MAX_COMPARED;
    for group in &subject.groups {
        if std::ptr::eq(group, star) {
            continue;
        }
        // An empty Disallow or `Allow: /`: the crawler is meant to fetch everything.
        let opens_all = group
            .rules
            .iter()
            .any(|rule| rule.pattern.is_empty() || rule.allow && rule.pattern.is_blanket());
        let closes_nothing = group
            .rules
            .iter()
            .all(|rule| rule.allow || rule.pattern.is_empty());
        // Other lints report a misspelt token, and a name that is not a token.
        let agent = group.agents.iter().find(|(agent, _)| {
            follows_star(agent, registry)
                && nearly(agent, registry).is_none()
                && meant_by(agent, registry).is_empty()
        });
        let Some((agent, span)) = agent else { continue };
        left = left.saturating_sub(forbidden.len() * (group.rules.len() + 1));
        if opens_all && closes_nothing || group.closing().is_some() || left == 0 {
            continue;
        }
        let own_rules = rules_with_targets(group, |_| true);
        let unmentioned = forbidden.iter().find(|(rule, target)| {
            !own_rules.iter().any(|(own, own_target)| {
                own.pattern.matches(target) || rule.pattern.matches(own_target)
            })
        });
        let Some((first, _)) = unmentioned else {
            continue;
        };
        let message = format!(
            "`{agent}` may fetch `{}`, which `*` may not",
            first.pattern.as_str()
        );
        diagnostics.push(
            lints::GROUP_DROPS_STAR_RULES
                .at(*span, message)
                .related(first.span, "a group that names a crawler replaces `*`")
                .help(if subject.is_policy {
                    "write `extends: \"*\"` in this group to keep those rules; or allow the paths in it, to say that it is meant"
                } else {
                    "repeat in this group the rules of `*` that are to hold for it as well"
                }),
        );
    }
}

/// The wanted rules of a group with a path, each with the target that its pattern is as text.
fn rules_with_targets(
    group: &SubjectGroup,
    is_wanted: impl Fn(&SubjectRule) -> bool,
) -> Vec<(&SubjectRule, Vec<u8>)> {
    let rules = group.rules.iter();
    rules
        .filter(|rule| !rule.pattern.is_empty() && is_wanted(rule))
        .map(|rule| (rule, rule.pattern.as_target()))
        .collect()
}

/// Whether a crawler with this token follows `*` where no group names it: some, such as advertising
/// crawlers, do not. An unknown token follows it.
fn follows_star(agent: &str, registry: &Registry) -> bool {
    let known = registry.crawlers().iter().find(|crawler| {
        crawler
            .tokens
            .iter()
            .any(|token| token.eq_ignore_ascii_case(agent))
    });
    known.is_none_or(|crawler| crawler.binds.follow_star())
}

/// Reports advertising crawlers that ignore `*`, where `*` closes the front page and no group names
/// them: the owner believes that the site is closed. At most four are named.
fn star_ignored(subject: &Subject, registry: &Registry, diagnostics: &mut Diagnostics) {
    let closed = subject
        .named("*")
        .and_then(|star| star.deciding(b"/"))
        .filter(|rule| !rule.allow);
    let Some(closed) = closed else { return };
    let free = registry.crawlers().iter().filter(|crawler| {
        crawler.binds == Binds::Named
            && crawler.purpose == Purpose::Advertising
            && !crawler
                .tokens
                .iter()
                .any(|token| subject.named(token).is_some())
    });
    let free = join(
        free.filter_map(|crawler| crawler.tokens.first()).take(4),
        ", ",
    );
    if !free.is_empty() {
        lints::STAR_IGNORED.report(
            diagnostics,
            closed.span,
            format!("{free} do not follow `*`, as their operators say"),
            "name them in a group to close the site for them as well",
        );
    }
}
