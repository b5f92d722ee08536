//! [`ApacheConfig`] writes the configuration with which Apache httpd enforces a policy without
//! crawlgate (`templates/apache.conf`). The configuration is for a virtual host, or for the
//! `.htaccess` of a site's directory.
//!
//! The configuration consists of `<If>` sections, which test the request as the client sent it. The
//! sections use no environment variables, because a `.htaccess` sets them too late. They read
//! request headers with Apache's function `req_novary`, which does not add the names of the headers
//! to `Vary`. More names in `Vary` would make caches useless. Apache's variable `THE_REQUEST` has
//! the path as the client sent it, with the query.

use super::regex::{alternatives_regex, marker_steps, request_line_steps, split_regexes};
use super::rules::{CrawlerClass, ExportedPolicy, PathRule, SignalRule, TagCondition, TagRule};
use super::{CHALLENGE_PATH, escape_quoted};
use askama::Template;
use std::cmp::Reverse;

/// Apache reads lines of up to 8,192 bytes from a `.htaccess`.
const MAX_LINE: usize = 8_000;

#[derive(Template)]
#[template(path = "apache.conf")]
pub struct ApacheConfig<'r> {
    pub rules: &'r ExportedPolicy,
    /// Where the files are; `None` for a `.htaccess`, which has them beside it.
    pub directory: Option<&'r str>,
}

impl ApacheConfig<'_> {
    /// Whether the body of an answer is too long for a line.
    fn has_long_body(&self) -> bool {
        self.rules
            .answers
            .iter()
            .chain(&self.rules.pause)
            .any(|answer| error_document(&answer.body).is_none())
    }

    /// Fields that depend on the absence of more other fields come first (tdm-policy before
    /// tdm-reservation): a written field looks like one of the application.
    fn ordered_signals(&self) -> Vec<&SignalRule> {
        let mut signals: Vec<&SignalRule> = self.rules.signals.iter().collect();
        signals.sort_by_key(|signal| Reverse(signal.unless.len()));
        signals
    }

    /// Regular expressions for user agents with their class. The first match counts; consecutive
    /// markers of one class become one expression.
    fn agent_regexes(&self) -> Vec<(&CrawlerClass, String)> {
        let mut agents = Vec::new();
        for run in self
            .rules
            .ordered_markers()
            .chunk_by(|one, other| one.0 == other.0)
        {
            let markers: Vec<_> = run.iter().map(|(_, text)| marker_steps(text)).collect();
            for regex in split_regexes(&markers) {
                agents.push((&self.rules.classes[run[0].0], regex));
            }
        }
        agents
    }
}

/// Pairs of whether the rule allows, and a regular expression for request lines. The first match
/// counts.
fn request_rules(list: &[PathRule]) -> Vec<(bool, String)> {
    let mut requests = Vec::new();
    for run in list.chunk_by(|one, other| one.allow == other.allow) {
        for regex in request_regexes(run.iter().map(|rule| &rule.pattern)) {
            requests.push((run[0].allow, regex));
        }
    }
    requests
}

/// A regular expression for the request lines that match a pattern.
fn request_regex(pattern: &str) -> String {
    alternatives_regex(&[request_line_steps(pattern)])
}

/// Regular expressions for the request lines that match any of the patterns.
fn request_regexes<'p>(patterns: impl IntoIterator<Item = &'p String>) -> Vec<String> {
    let patterns: Vec<_> = patterns
        .into_iter()
        .map(|pattern| request_line_steps(pattern))
        .collect();
    split_regexes(&patterns)
}

/// Whether a rule excludes more paths than fit into a line.
fn has_too_many_exceptions(tag: &TagRule) -> bool {
    tag.unless
        .as_ref()
        .is_some_and(|unless| request_regexes(&unless.paths).len() > 1)
}

/// The conditions of a rule in Apache's syntax, except for the paths in `when`.
fn tag_tests(tag: &TagRule) -> Vec<String> {
    let mut tests = response_tests(&tag.when);
    if let Some(unless) = &tag.unless {
        let mut all = request_regexes(&unless.paths);
        for regex in &mut all {
            *regex = format!("%{{THE_REQUEST}} =~ m#{regex}#");
        }
        all.extend(response_tests(unless));
        tests.push(if all.is_empty() {
            "false".to_owned()
        } else {
            format!("!({})", all.join(" && "))
        });
    }
    tests
}

/// The conditions on type and status.
fn response_tests(condition: &TagCondition) -> Vec<String> {
    let mut tests = Vec::new();
    if !condition.types.is_empty() {
        tests.push(format!(
            "(%{{CONTENT_TYPE}} =~ m#{}#i)",
            condition.type_regex()
        ));
    }
    let mut status = Vec::new();
    for (first, last) in &condition.status {
        status.push(if first == last {
            format!("%{{REQUEST_STATUS}} -eq {first}")
        } else {
            format!("%{{REQUEST_STATUS}} -ge {first} && %{{REQUEST_STATUS}} -le {last}")
        });
    }
    if !status.is_empty() {
        tests.push(format!("({})", status.join(" || ")));
    }
    tests
}

/// A text as an `ErrorDocument`; `None` if it is too long for a line. It is an expression without line
/// breaks, so bytes other than letters, digits and some signs are escaped.
fn error_document(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/ .,-:".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped += &format!("%{byte:02x}");
        }
    }
    (escaped.len() < MAX_LINE).then_some(format!("%{{unescape:{escaped}}}"))
}

/// Escapes the value of a header field, in which `%` begins a variable.
fn field_value(text: &str) -> String {
    escape_quoted(&text.replace('%', "%%"))
}
