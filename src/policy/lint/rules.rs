//! Lints of the Allow and Disallow lines of a robots.txt: paths that crawlers do not read as their
//! owners expect, and rules that have no effect.

use super::catalogue as lints;
use super::subject::{LintSubject, SubjectGroup, SubjectRule};
use crate::policy::regular_expression::{PATH_HELP, looks_like_regex, path_help};
use crate::robots::PathPattern;
use crate::yaml::{Diagnostics, SourceSpan, is_plain_word};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The longest name that may be open-ended: hardly another name begins with a longer one.
const MAX_NAME: usize = 40;
/// Parts of a path that show a curious reader where to look.
const SECRET_WORDS: [&str; 18] = [
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

/// Checks all rules.
pub fn lint(subject: &LintSubject, diagnostics: &mut Diagnostics) {
    let mut needless = Diagnostics::default();
    for group in &subject.groups {
        lint_rules(group, diagnostics);
        lint_needless_rules(group, &mut needless);
    }
    // A rule that several groups share (by `extends`, or in a list of agents) is needless only if
    // it is so in all of them.
    let mut needed: HashMap<Option<SourceSpan>, isize> = HashMap::new();
    for rule in subject.groups.iter().flat_map(|group| &group.rules) {
        *needed.entry(Some(rule.span)).or_default() += 1;
    }
    for finding in &needless.items {
        *needed.entry(finding.span).or_default() -= 1;
    }
    needless.items.retain(|finding| needed[&finding.span] <= 0);
    diagnostics.items.append(&mut needless.items);
}

/// Checks each rule of a group by itself: its path, and whether a Disallow names a secret or closes
/// every URL with a query.
fn lint_rules(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let mut opened: Vec<&str> = group
        .rules
        .iter()
        .filter(|rule| rule.allow)
        .map(|rule| rule.pattern.as_str())
        .collect();
    opened.sort_unstable();
    for rule in &group.rules {
        let pattern = rule.pattern.as_str();
        lint_path(rule, &opened, diagnostics);
        let secret = pattern.split(['/', '*', '$', '?']).find(|part| {
            SECRET_WORDS
                .iter()
                .any(|secret| part.eq_ignore_ascii_case(secret))
        });
        if let Some(secret) = secret.filter(|_| !rule.allow) {
            lints::PRIVATE_PATH.report(
                diagnostics,
                rule.span,
                format!("robots.txt is public: everybody can read that \"{secret}\" exists"),
                "protect private pages with a password; pages that nothing links to need no rule",
            );
        }
        if !rule.allow && matches!(rule.pattern.as_str().trim_end_matches('*'), "/*?" | "*?") {
            lints::EVERY_QUERY.report(
                diagnostics,
                rule.span,
                "this closes every URL with a query, such as list pages, campaign links, and files \
                 with a version",
                "name the parameters: \"/*?sort=\" and \"/*&sort=\"",
            );
        }
    }
}

/// Reports a pattern that is no path, several paths, or wider than it looks. `opened` are the
/// sorted patterns of Allow rules.
fn lint_path(rule: &SubjectRule, opened: &[&str], diagnostics: &mut Diagnostics) {
    let pattern = rule.pattern.as_str();
    if !pattern.is_empty() && !pattern.starts_with(['/', '*']) {
        lints::PATH_WITHOUT_SLASH.report(
            diagnostics,
            rule.span,
            format!("\"{pattern}\" matches nothing: a path begins with \"/\" or \"*\""),
            path_help(pattern),
        );
    } else if looks_like_regex(pattern) {
        lints::REGULAR_EXPRESSION.report(
            diagnostics,
            rule.span,
            format!("\"{pattern}\" looks like a regular expression; robots.txt has none"),
            PATH_HELP,
        );
    } else if holds_several_paths(pattern) {
        lints::SEVERAL_PATHS.report(
            diagnostics,
            rule.span,
            format!("crawlers read \"{pattern}\" as one path"),
            "write one rule for each path, each on its own line",
        );
    } else if pattern.contains("$/") || pattern.contains("$*") {
        lints::REGULAR_EXPRESSION.report(
            diagnostics,
            rule.span,
            format!("crawlers read the first \"$\" in \"{pattern}\" as a character of the URL"),
            "\"$\" stands for the end of the URL only as the last character: write nothing after it. If the URL has a \"$\" there, nothing needs to be done",
        );
    } else if is_open_ended(rule, opened) {
        lints::OPEN_ENDED_PATH.report(
            diagnostics,
            rule.span,
            format!("\"{pattern}\" also closes longer paths, such as \"{pattern}-2\""),
            format!(
                "if that is meant, nothing needs to be done. Write \"{pattern}/\" for the folder \
                 alone, \"{pattern}$\" for the page alone"
            ),
        );
    }
}

/// Whether this is a Disallow like `/shop`, which also closes `/shopping`. An Allow that begins
/// with the path shows that the owner knows it.
fn is_open_ended(rule: &SubjectRule, opened: &[&str]) -> bool {
    let path = rule.pattern.as_str();
    let name = path
        .rsplit('/')
        .next()
        .filter(|_| path.starts_with('/'))
        .unwrap_or_default();
    let opens = opened
        .get(opened.partition_point(|other| *other < path))
        .is_some_and(|next| next.starts_with(path));
    !rule.allow && is_plain_word(name, MAX_NAME, "-_") && !opens
}

/// Whether a pattern looks like a list of paths: `/i,/j` or `/i /j`.
pub fn holds_several_paths(pattern: &str) -> bool {
    let mut parts = [",/", "%20/"]
        .into_iter()
        .filter_map(|between| pattern.split_once(between));
    parts.any(|(before, after)| {
        before.len() > 1 && after.starts_with(|sign: char| sign.is_ascii_alphanumeric())
    })
}

/// Reports rules without effect: the second of two equal ones, and a Disallow of a path that is
/// allowed as well.
fn lint_needless_rules(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let mut first: HashMap<(&PathPattern, bool), &SubjectRule> = HashMap::new();
    for rule in group.rules.iter().filter(|rule| !rule.pattern.is_empty()) {
        match first.entry((&rule.pattern, rule.allow)) {
            Entry::Vacant(place) => drop(place.insert(rule)),
            Entry::Occupied(first) => {
                let found = lints::DUPLICATE_RULE.finding(rule.span, "this rule is written twice");
                diagnostics.push(found.related(first.get().span, "first here"));
            }
        }
    }
    for ((pattern, _), rule) in first.iter().filter(|((_, allow), _)| !allow) {
        if let Some(overruling) = first.get(&(*pattern, true)) {
            diagnostics.push(
                lints::UNREACHABLE_RULE
                    .finding(
                        rule.span,
                        "this rule has no effect: the same path is allowed, and Allow wins",
                    )
                    .related(overruling.span, "allowed here")
                    .help("remove one of the two"),
            );
        }
    }
}
