//! Lints of Allow and Disallow lines: paths that crawlers read otherwise than their owners, and
//! rules that decide nothing.

use super::catalogue as lints;
use super::subject::{Subject, SubjectGroup, SubjectRule};
use crate::policy::regular_expression::{PATHS, is_regular_expression};
use crate::robots::Pattern;
use crate::yaml::{Diagnostics, Span, is_word};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The longest name that is checked for being open-ended: other names hardly begin with a longer
/// one.
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

/// Reports rules that crawlers read otherwise than their owners, and rules that decide nothing. A
/// rule that several groups have (by `extends`, or by a list of agents) is needless only if it is
/// so in all of them.
pub fn lint(subject: &Subject, diagnostics: &mut Diagnostics) {
    let mut needless = Diagnostics::default();
    for group in &subject.groups {
        each_rule(group, diagnostics);
        needless_rules(group, &mut needless);
    }
    // A rule that several groups have, by `extends` or by a list of agents, is needless only if it
    // is so in all of them.
    let mut needed: HashMap<Option<Span>, isize> = HashMap::new();
    for rule in subject.groups.iter().flat_map(|group| &group.rules) {
        *needed.entry(Some(rule.span)).or_default() += 1;
    }
    for finding in &needless.items {
        *needed.entry(finding.span).or_default() -= 1;
    }
    needless.items.retain(|finding| needed[&finding.span] <= 0);
    diagnostics.items.append(&mut needless.items);
}

/// Reports what is wrong with single rules of a group: a path that is misread, a Disallow that
/// names a secret, and a Disallow of every URL with a query.
fn each_rule(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let mut opened: Vec<&str> = group
        .rules
        .iter()
        .filter(|rule| rule.allow)
        .map(|rule| rule.pattern.as_str())
        .collect();
    opened.sort_unstable();
    for rule in &group.rules {
        let pattern = rule.pattern.as_str();
        misread(rule, &opened, diagnostics);
        let secret = pattern.split(['/', '*', '$', '?']).find(|part| {
            SECRETS
                .iter()
                .any(|secret| part.eq_ignore_ascii_case(secret))
        });
        if let Some(secret) = secret.filter(|_| !rule.allow) {
            lints::PRIVATE_PATH.report(
                diagnostics,
                rule.span,
                format!("robots.txt is public: it tells everybody that there is `{secret}`"),
                "what must stay private needs a password; a crawler that knows no link needs no rule",
            );
        }
        if !rule.allow && matches!(rule.pattern.as_str().trim_end_matches('*'), "/*?" | "*?") {
            lints::EVERY_QUERY.report(
                diagnostics,
                rule.span,
                "this closes every URL with a query: pages of lists, links of campaigns, versions of files",
                "name the parameters that are meant: `/*?sort=` and `/*&sort=`",
            );
        }
    }
}

/// Reports a rule that is not a path, or several, or wider than it looks: at most one finding.
/// `opened` are the paths of Allow, in order.
fn misread(rule: &SubjectRule, opened: &[&str], diagnostics: &mut Diagnostics) {
    let pattern = rule.pattern.as_str();
    if !pattern.is_empty() && !pattern.starts_with(['/', '*']) {
        lints::PATH_WITHOUT_SLASH.report(
            diagnostics,
            rule.span,
            format!("`{pattern}` matches nothing: a path begins with `/` or `*`"),
            path_for(pattern),
        );
    } else if is_regular_expression(pattern) {
        lints::REGULAR_EXPRESSION.report(
            diagnostics,
            rule.span,
            format!("`{pattern}` looks like a regular expression, and robots.txt has none"),
            PATHS,
        );
    } else if holds_several_paths(pattern) {
        lints::SEVERAL_PATHS.report(
            diagnostics,
            rule.span,
            format!("`{pattern}` is read as one path"),
            "write a rule for each path, in lines of their own",
        );
    } else if is_open_ended(rule, opened) {
        lints::OPEN_ENDED_PATH.report(
            diagnostics,
            rule.span,
            format!("`{pattern}` closes all that begins with it, such as `{pattern}-2`"),
            format!(
                "nothing is to be done if that is meant; write `{pattern}/` for the folder alone, `{pattern}$` for the page"
            ),
        );
    }
}

/// Whether this is a Disallow like `/shop`, which closes `/shopping`, too: its last part is a word
/// of at most 40 characters. False where an Allow begins with the path (`opened`, sorted): then the
/// owner knows it.
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
    !rule.allow && is_word(name, MAX_NAME, "-_") && !opens
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

/// The help for a path that begins with neither `/` nor `*`: for a regular expression, for a URL
/// (the path in it), or for another text.
fn path_for(pattern: &str) -> String {
    if pattern.starts_with('^') || is_regular_expression(pattern) {
        return format!("robots.txt has no regular expressions: {PATHS}");
    }
    match pattern.split_once("://") {
        Some((_, url)) => {
            format!(
                "write `{}`, in the robots.txt of that host",
                url.find('/').map_or("/", |slash| &url[slash..])
            )
        }
        None => format!("write `/{pattern}` or `*{pattern}`"),
    }
}

/// Reports rules that decide nothing: the second of two equal ones, one that a wider rule says
/// already, and a Disallow of a path that is allowed as well.
fn needless_rules(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let mut first: HashMap<(&Pattern, bool), &SubjectRule> = HashMap::new();
    for rule in group.rules.iter().filter(|rule| !rule.pattern.is_empty()) {
        match first.entry((&rule.pattern, rule.allow)) {
            Entry::Vacant(place) => drop(place.insert(rule)),
            Entry::Occupied(first) => {
                let found = lints::DUPLICATE_RULE.at(rule.span, "this rule stands here twice");
                diagnostics.push(found.related(first.get().span, "first here"));
            }
        }
    }
    covered_rules(group, diagnostics);
    for ((pattern, _), rule) in first.iter().filter(|((_, allow), _)| !allow) {
        if let Some(overruling) = first.get(&(*pattern, true)) {
            diagnostics.push(
                lints::UNREACHABLE_RULE
                    .at(
                        rule.span,
                        "this never decides: the same path is allowed, and Allow wins",
                    )
                    .related(overruling.span, "allowed here")
                    .help("remove one of the two"),
            );
        }
    }
}

/// Groups with more rules are not searched for covered ones.
const MAX_COVERED: usize = 500;

/// Reports rules without wildcards whose paths a shorter rule of the same kind (Allow or Disallow)
/// covers already, where no opposite rule matches the path or something below it. Groups of more
/// than 500 rules are not checked.
fn covered_rules(group: &SubjectGroup, diagnostics: &mut Diagnostics) {
    let rules: Vec<&SubjectRule> = group
        .rules
        .iter()
        .filter(|rule| !rule.pattern.is_empty())
        .collect();
    if rules.len() > MAX_COVERED {
        return;
    }
    for rule in &rules {
        if rule.pattern.as_str().contains('*') {
            continue;
        }
        let target = rule.pattern.as_target();
        let wider = rules.iter().find(|other| {
            other.allow == rule.allow
                && other.pattern.priority() < rule.pattern.priority()
                && !other.pattern.as_str().ends_with('$')
                && other.pattern.matches(&target)
        });
        let Some(wider) = wider else { continue };
        let has_opposite = rules.iter().any(|other| {
            other.allow != rule.allow
                && (other.pattern.matches(&target)
                    || rule.pattern.matches(&other.pattern.as_target()))
        });
        if !has_opposite {
            let found = lints::DUPLICATE_RULE.at(rule.span, "a wider rule says the same");
            diagnostics.push(found.related(wider.span, "here"));
        }
    }
}
