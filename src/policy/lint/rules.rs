//! Lints of Allow and Disallow lines.

use super::catalogue as lints;
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::policy::regular_expression::{is_regular_expression, paths_for};
use crate::robots::Pattern;
use crate::yaml::{Diagnostics, Span};
use std::collections::HashMap;

/// Rules that a wider one may make needless and that are compared with all others; in larger groups the rest is let be.
const MAX_COMPARED: usize = 500;
/// A path needs two or three; more make matching slow for every crawler.
const MAX_WILDCARDS: usize = 8;
/// A longer name is none that others begin with.
const MAX_NAME: usize = 40;
/// Parts of a path that tell a curious reader where to look.
const SECRETS: [&str; 18] = [
    "admin",
    "administrator",
    "backup",
    "backups",
    ".git",
    ".env",
    ".svn",
    "private",
    "secret",
    "secrets",
    "internal",
    "intranet",
    "password",
    "passwords",
    "phpmyadmin",
    "dump",
    "confidential",
    "credentials",
];

pub fn lint(subject: &Subject, diagnostics: &mut Diagnostics) {
    let mut needless = Diagnostics::default();
    for group in &subject.groups {
        each_rule(group, diagnostics);
        twins(group, diagnostics);
        needless_rules(group, &mut needless);
    }
    if needless.items.is_empty() {
        return origin_ignores_case(subject, diagnostics);
    }
    // A rule that several groups have, by `extends` or by a list of agents, is needless only if it is so in all of
    // them.
    let count = |of: &mut dyn Iterator<Item = Option<Span>>| {
        of.fold(HashMap::<Option<Span>, usize>::new(), |mut counts, span| {
            *counts.entry(span).or_default() += 1;
            counts
        })
    };
    let rules = count(&mut subject.groups.iter().flat_map(|group| &group.rules).map(|rule| Some(rule.span)));
    let found = count(&mut needless.items.iter().map(|finding| finding.span));
    needless.items.retain(|finding| found.get(&finding.span) >= rules.get(&finding.span));
    diagnostics.items.append(&mut needless.items);
    origin_ignores_case(subject, diagnostics);
}

fn origin_ignores_case(subject: &Subject, diagnostics: &mut Diagnostics) {
    if let Some(server) = &subject.ignores_case {
        let with_letters = |rule: &&SubjectRule| rule.pattern.as_str().bytes().any(|octet| octet.is_ascii_alphabetic());
        let rules = subject.groups.iter().flat_map(|group| &group.rules);
        if let Some(rule) = rules.filter(|rule| !rule.allow).find(with_letters) {
            diagnostics.push(
                lints::ORIGIN_IGNORES_CASE
                    .at(rule.span, format!("the origin ({server}) serves this path in any case; crawlers compare case"))
                    .help("have the origin redirect to one spelling, or write the spellings that are linked"),
            );
        }
    }
}

fn each_rule(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let mut opened: Vec<&str> =
        group.rules.iter().filter(|rule| rule.allow).map(|rule| rule.pattern.as_str()).collect();
    opened.sort_unstable();
    for rule in &group.rules {
        let pattern = rule.pattern.as_str();
        misread(rule, &opened, diagnostics);
        if has_dollar_inside(pattern) {
            diagnostics.push(
                lints::DOLLAR_INSIDE
                    .at(rule.span, format!("`{pattern}` matches only URLs with the character `$`"))
                    .help("`$` is the end of a URL only as the last character of a rule; URLs that have the character match as they are"),
            );
        }
        if pattern.bytes().filter(|octet| *octet == b'*').count() > MAX_WILDCARDS {
            diagnostics.push(
                lints::MANY_WILDCARDS
                    .at(rule.span, "crawlers may be slow with a path of so many wildcards, or give up on it")
                    .help(format!("use at most {MAX_WILDCARDS}; `**` is `*`")),
            );
        }
        let secret = pattern
            .split(['/', '*', '$', '?'])
            .find(|part| SECRETS.iter().any(|secret| part.eq_ignore_ascii_case(secret)));
        if let Some(secret) = secret.filter(|_| !rule.allow) {
            diagnostics.push(
                lints::PRIVATE_PATH
                    .at(rule.span, format!("robots.txt is public: it tells everybody that there is `{secret}`"))
                    .help("what must stay private needs a password; a crawler that knows no link needs no rule"),
            );
        }
    }
}

/// A rule that is no path, or not one, or wider than it looks: at most one finding. `opened` are the paths of Allow, in
/// order.
fn misread(rule: &SubjectRule, opened: &[&str], diagnostics: &mut Diagnostics) {
    let pattern = rule.pattern.as_str();
    if !pattern.is_empty() && !pattern.starts_with(['/', '*']) {
        diagnostics.push(
            lints::PATH_WITHOUT_SLASH
                .at(rule.span, format!("`{pattern}` matches nothing: a path begins with `/` or `*`"))
                .help(path_for(pattern, rule.allow)),
        );
    } else if is_regular_expression(pattern) {
        diagnostics.push(
            lints::REGULAR_EXPRESSION
                .at(rule.span, format!("`{pattern}` looks like a regular expression, and robots.txt has none"))
                .help(paths_for(pattern)),
        );
    } else if holds_several_paths(pattern) {
        diagnostics.push(
            lints::SEVERAL_PATHS
                .at(rule.span, format!("`{pattern}` is read as one path"))
                .help("write a rule for each path, in lines of their own"),
        );
    } else if is_open_ended(rule, opened) {
        let message = format!("`{pattern}` closes all that begins with it, such as `{pattern}-2`");
        let help = format!(
            "nothing is to be done if that is meant; write `{pattern}/` for the folder alone, `{pattern}$` for the page"
        );
        diagnostics.push(lints::OPEN_ENDED_PATH.at(rule.span, message).help(help));
    }
}

/// Whether this is a Disallow like `/shop`, which closes `/shopping`, too. An owner who opens something that begins with
/// the path knows it.
fn is_open_ended(rule: &SubjectRule, opened: &[&str]) -> bool {
    let path = rule.pattern.as_str();
    let name = path.rsplit('/').next().filter(|_| path.starts_with('/')).unwrap_or_default();
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let opens = opened.get(opened.partition_point(|other| *other < path)).is_some_and(|next| next.starts_with(path));
    !rule.allow && (1..=MAX_NAME).contains(&name.len()) && is_word && !opens
}

/// Whether a pattern looks like a list of paths: `/i,/j` or `/i /j`.
pub(super) fn holds_several_paths(pattern: &str) -> bool {
    let mut parts = [",/", "%20/"].into_iter().filter_map(|between| pattern.split_once(between));
    parts.any(|(before, after)| before.len() > 1 && after.starts_with(|sign: char| sign.is_ascii_alphanumeric()))
}

/// Whether a `$` stands before the end where URLs hardly have one: `/*.pdf$/`, `/foo$bar`. Domino (`/$file/`) and OData
/// (`?$filter=`) have it at the beginning of a word.
fn has_dollar_inside(pattern: &str) -> bool {
    let text = pattern.strip_suffix('$').unwrap_or(pattern);
    let begins_word = |place: usize| {
        let (before, after) = (&text[..place], &text[place + 1..]);
        before.ends_with(['/', '*', '?', '&', '=', '$'])
            && after.starts_with(|sign: char| sign.is_ascii_alphanumeric() || "$(_-".contains(sign))
    };
    text.match_indices('$').any(|(place, _)| !begins_word(place))
}

/// What to write in place of a path that does not begin with a slash. Owners write quotes, words, regular expressions,
/// URLs, and rules for other hosts.
fn path_for(pattern: &str, is_allow: bool) -> String {
    let unquoted = unquoted(pattern);
    let key = if is_allow { "Allow" } else { "Disallow" };
    let word = unquoted.to_ascii_lowercase();
    if matches!(word.as_str(), "" | "none" | "nothing" | "null" | "false") {
        return match is_allow {
            true => "write `Disallow: /` if nothing is to be allowed, and remove the line otherwise".into(),
            false => "write an empty `Disallow:` if nothing is to be disallowed".into(),
        };
    }
    if matches!(word.as_str(), "all" | "everything" | "true") {
        return format!("write `{key}: /` if the whole site is meant");
    }
    if unquoted != pattern {
        let path = if unquoted.starts_with(['/', '*']) { unquoted } else { format!("/{unquoted}") };
        return format!("write `{path}`, without quotes");
    }
    if pattern.starts_with('^') || is_regular_expression(pattern) {
        return format!("robots.txt has no regular expressions: {}", paths_for(pattern));
    }
    let Some((_, url)) = pattern.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '*'])) else {
        let general = format!("write `/{pattern}` or `*{pattern}`");
        return match pattern.split_once('/') {
            Some((host, path)) if is_host(host) && !path.is_empty() => {
                format!("if `{host}` is a host, its rules belong into its own robots.txt; on this one write `/{path}`")
            }
            Some((host, _)) if host.contains('.') && !host.contains(['?', '*']) => {
                format!("{general}; if `{host}` is a host, its rules belong into its own robots.txt")
            }
            _ => general,
        };
    };
    match url.find('/').map(|slash| url.split_at(slash)) {
        Some((host, path)) if path != "/" => {
            format!("write `{path}`; if `{host}` is another host, the rule belongs into its own robots.txt")
        }
        _ => format!(
            "a robots.txt is for its own host: write `Disallow: /` into that of `{}`",
            url.trim_end_matches('/')
        ),
    }
}

/// Whether this is the name of a host: labels, and a top-level domain of letters.
fn is_host(name: &str) -> bool {
    let mut labels = name.rsplit('.');
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_domain =
        labels.next().is_some_and(|top| top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic()));
    is_domain && name.matches('.').count() >= 2 && labels.all(is_label)
}

/// A pattern without the quotes around it, typographic ones included.
fn unquoted(pattern: &str) -> String {
    let typed = ["%E2%80%9C", "%E2%80%9D", "%E2%80%98", "%E2%80%99"]
        .iter()
        .fold(pattern.to_owned(), |text, quote| text.replace(quote, "\""));
    typed.trim_matches(['"', '\'', '`']).to_owned()
}

fn twins(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    // Of two that differ only in case one has a capital.
    let capital = |rule: &SubjectRule| rule.pattern.as_str().bytes().any(|octet| octet.is_ascii_uppercase());
    if !group.rules.iter().any(capital) {
        return;
    }
    let mut seen: HashMap<(bool, String), &SubjectRule> = HashMap::new();
    for rule in &group.rules {
        let pattern = rule.pattern.as_str();
        match seen.get(&(rule.allow, pattern.to_ascii_lowercase())) {
            Some(first) if first.pattern.as_str() != pattern => diagnostics.push(
                lints::CASE_TWINS
                    .at(rule.span, "this path and another differ only in case")
                    .related(first.span, "the other")
                    .help("crawlers compare case; where the origin does not, all other spellings stay open"),
            ),
            Some(_) => {}
            None => {
                seen.insert((rule.allow, pattern.to_ascii_lowercase()), rule);
            }
        }
    }
}

/// Rules without which every verdict would be the same, as far as that can be told from literal paths.
fn needless_rules(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let rules = &group.rules;
    // Equal patterns stand together, and each pattern after all that it begins with.
    let mut order: Vec<u32> =
        (0u32..).zip(rules).filter(|(_, rule)| !rule.pattern.is_empty()).map(|(i, _)| i).collect();
    order.sort_unstable_by(|&a, &b| {
        let text =
            |index: u32| literal(&rules[index as usize].pattern).unwrap_or(rules[index as usize].pattern.as_str());
        text(a).cmp(text(b)).then_with(|| rules[a as usize].pattern.cmp(&rules[b as usize].pattern)).then(a.cmp(&b))
    });
    // Literal paths without an anchor that the current one begins with: one list for Disallow, one for Allow.
    let mut open: [Vec<u32>; 2] = Default::default();
    let mut compared = 0;
    for same in order.chunk_by(|a, b| rules[*a as usize].pattern == rules[*b as usize].pattern) {
        let of = |allow: bool| same.iter().map(|&index| &rules[index as usize]).filter(move |rule| rule.allow == allow);
        for allow in [false, true] {
            let Some(first) = of(allow).next() else { continue };
            for again in of(allow).skip(1) {
                let found = lints::DUPLICATE_RULE.at(again.span, "this rule stands here twice");
                diagnostics.push(found.related(first.span, "first here"));
            }
            let overruled = if allow { None } else { of(true).next() };
            if let Some(overruling) = overruled {
                diagnostics.push(
                    lints::UNREACHABLE_RULE
                        .at(first.span, "this never decides: the same path is allowed, and Allow wins")
                        .related(overruling.span, "allowed here")
                        .help("remove one of the two"),
                );
                continue;
            }
            let Some(text) = literal(&first.pattern) else { continue };
            let open = &mut open[usize::from(allow)];
            let wider_text = |index: u32| literal(&rules[index as usize].pattern).unwrap_or_default();
            while open.last().is_some_and(|&last| !text.starts_with(wider_text(last))) {
                open.pop();
            }
            // An Allow of what nothing forbids changes nothing, but says what is meant.
            let wider = open.last().map(|&last| &rules[last as usize]);
            if let Some(wider) = wider.filter(|wider| wider.pattern.priority() < first.pattern.priority())
                && text != "/"
                && compared < MAX_COMPARED
            {
                compared += 1;
                if !opposed(rules, first, wider, text) {
                    let message = format!("this changes nothing: `{}` says the same already", wider.pattern.as_str());
                    diagnostics
                        .push(lints::SHADOWED_RULE.at(first.span, message).related(wider.span, "the wider rule"));
                }
            }
            if !first.pattern.as_str().ends_with('$')
                && let Some(index) = same.iter().copied().find(|&index| rules[index as usize].allow == allow)
            {
                open.push(index);
            }
        }
    }
}

/// Whether an opposite rule could decide between a rule and a wider one of its kind.
fn opposed(rules: &[SubjectRule], rule: &SubjectRule, wider: &SubjectRule, text: &str) -> bool {
    rules.iter().any(|other| {
        other.allow != rule.allow
            && !other.pattern.is_empty()
            && (wider.pattern.priority()..=rule.pattern.priority()).contains(&other.pattern.priority())
            && may_meet(&other.pattern, text)
    })
}

/// The text of a pattern that has no wildcard but at its end.
fn literal(pattern: &Pattern) -> Option<&str> {
    let text = pattern.as_str();
    let text = text.strip_suffix('$').unwrap_or(text).trim_end_matches('*');
    (!text.contains('*')).then_some(text)
}

/// Whether a pattern could match something that begins with `literal`.
fn may_meet(pattern: &Pattern, literal: &str) -> bool {
    let beginning = pattern.as_str().split(['*', '$']).next().unwrap_or("");
    beginning.starts_with(literal) || literal.starts_with(beginning)
}
