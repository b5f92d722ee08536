//! Lints of Allow and Disallow lines.

use super::catalogue as lints;
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::robots::Pattern;
use crate::yaml::{Diagnostics, Span};
use std::collections::HashMap;

/// Comparing every rule with every other is for files of a person's size; beyond this many pairs a group is let be.
const MAX_PAIRS: usize = 1_000_000;
/// A path needs two or three; more make matching slow for every crawler.
const MAX_WILDCARDS: usize = 8;
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
        if group.rules.len() * group.rules.len() <= MAX_PAIRS {
            shadowed(group, &mut needless);
        }
    }
    // A rule that several groups have, by `extends` or by a list of agents, is needless only if it is so in all of them.
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
    for rule in &group.rules {
        let pattern = rule.pattern.as_str();
        if !pattern.is_empty() && !pattern.starts_with(['/', '*']) {
            diagnostics.push(
                lints::PATH_WITHOUT_SLASH
                    .at(rule.span, format!("`{pattern}` matches nothing: a path begins with `/` or `*`"))
                    .help(format!("write `/{pattern}` or `*{pattern}`")),
            );
        }
        if pattern.bytes().filter(|octet| *octet == b'*').count() > MAX_WILDCARDS {
            diagnostics.push(
                lints::MANY_WILDCARDS
                    .at(rule.span, "crawlers may be slow with a path of so many wildcards, or give up on it")
                    .help(format!("use at most {MAX_WILDCARDS}; `**` is `*`")),
            );
        }
        let secret =
            pattern.split(['/', '*', '$', '?']).find(|part| SECRETS.contains(&part.to_ascii_lowercase().as_str()));
        if let Some(secret) = secret.filter(|_| !rule.allow) {
            diagnostics.push(
                lints::PRIVATE_PATH
                    .at(rule.span, format!("robots.txt is public: it tells everybody that there is `{secret}`"))
                    .help("what must stay private needs a password; a crawler that knows no link needs no rule"),
            );
        }
    }
}

fn twins(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
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
fn shadowed(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    for (index, rule) in group.rules.iter().enumerate().filter(|(_, rule)| !rule.pattern.is_empty()) {
        let others = || group.rules.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let same_path = |other: &&SubjectRule| other.pattern == rule.pattern;
        if let Some(first) = group.rules[..index].iter().find(|other| same_path(other) && other.allow == rule.allow) {
            diagnostics.push(
                lints::DUPLICATE_RULE.at(rule.span, "this rule stands here twice").related(first.span, "first here"),
            );
            continue;
        }
        if !rule.allow
            && let Some(allow) = others().find(|other| same_path(other) && other.allow)
        {
            diagnostics.push(
                lints::UNREACHABLE_RULE
                    .at(rule.span, "this never decides: the same path is allowed, and Allow wins")
                    .related(allow.span, "allowed here")
                    .help("remove one of the two"),
            );
            continue;
        }
        let Some(literal) = literal(&rule.pattern).filter(|literal| *literal != "/") else { continue };
        let wider = others()
            .filter(|other| other.allow == rule.allow && other.pattern.priority() < rule.pattern.priority())
            .filter(|other| !other.pattern.as_str().ends_with('$'))
            .filter(|other| self::literal(&other.pattern).is_some_and(|other| literal.starts_with(other)))
            .max_by_key(|other| other.pattern.priority());
        // An Allow of what nothing forbids changes nothing, but says what is meant.
        let Some(wider) = wider else { continue };
        let between = others().any(|other| {
            let length = other.pattern.priority();
            other.allow != rule.allow
                && !other.pattern.is_empty()
                && (wider.pattern.priority()..=rule.pattern.priority()).contains(&length)
                && may_meet(&other.pattern, literal)
        });
        if !between {
            diagnostics.push(
                lints::SHADOWED_RULE
                    .at(rule.span, format!("this changes nothing: `{}` says the same already", wider.pattern.as_str()))
                    .related(wider.span, "the wider rule"),
            );
        }
    }
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
