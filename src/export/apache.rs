//! [`Lines`] is the configuration by which Apache httpd itself enforces a policy, without
//! crawlgate (`templates/apache.conf`): for a virtual host, or for the `.htaccess` of a site's
//! directory.
//!
//! Both consist of sections (`<If>`) on the request as it came. They use no variables of the
//! environment: in a `.htaccess` none is set before Apache chooses the sections. `req_novary` reads
//! a field without naming it in `Vary`, which would spoil caches. The request line (`THE_REQUEST`)
//! has the path as it was sent, with the query.

use super::regex::{marker, regex, regexes, request_line};
use super::rules::{CrawlerClass, PathRule, Rules, SignalRule, TagCondition, TagRule};
use super::{CHALLENGE, escaped};
use askama::Template;
use std::cmp::Reverse;

/// Apache reads lines of up to 8,192 bytes from a `.htaccess`. A test has one regular expression of
/// at most half of that.
const LINE: usize = 8_000;

#[derive(Template)]
#[template(path = "apache.conf")]
pub struct Lines<'r> {
    pub rules: &'r Rules,
    /// Where the files are, for a virtual host. For a `.htaccess` they are beside it.
    pub directory: Option<&'r str>,
}

impl Lines<'_> {
    /// Whether Apache has no room for the body of an answer.
    fn has_long_body(&self) -> bool {
        let mut answers = self.rules.answers.iter().chain(&self.rules.pause);
        answers.any(|answer| document(&answer.body).is_none())
    }

    /// The fields of the policy in the order in which they are written: first those that are
    /// written only where most other fields are absent (tdm-policy before tdm-reservation). Once a
    /// field is written, it cannot be seen any more that the application sent none.
    fn signals(&self) -> Vec<&SignalRule> {
        let mut signals: Vec<&SignalRule> = self.rules.signals.iter().collect();
        signals.sort_by_key(|signal| Reverse(signal.unless.len()));
        signals
    }

    /// Regular expressions for user agents, each with its class. The first that matches counts: a
    /// run of markers of one class becomes one expression.
    fn agents(&self) -> Vec<(&CrawlerClass, String)> {
        let mut agents = Vec::new();
        for run in self.rules.markers().chunk_by(|one, other| one.0 == other.0) {
            let markers: Vec<_> = run.iter().map(|(_, text)| marker(text)).collect();
            let class = &self.rules.classes[run[0].0];
            agents.extend(regexes(&markers).into_iter().map(|regex| (class, regex)));
        }
        agents
    }
}

/// Regular expressions for request lines, each with whether it allows. The first that matches
/// counts.
fn requests(list: &[PathRule]) -> Vec<(bool, String)> {
    let mut requests = Vec::new();
    for run in list.chunk_by(|one, other| one.allow == other.allow) {
        let regexes = any_request(run.iter().map(|rule| &rule.pattern)).into_iter();
        requests.extend(regexes.map(|regex| (run[0].allow, regex)));
    }
    requests
}

/// A regular expression for the first line of a request whose target matches a pattern.
fn request_regex(pattern: &str) -> String {
    regex(&[request_line(pattern)])
}

/// Regular expressions for request lines, of which one matches where a pattern does.
fn any_request<'p>(patterns: impl IntoIterator<Item = &'p String>) -> Vec<String> {
    let patterns: Vec<_> = patterns
        .into_iter()
        .map(|pattern| request_line(pattern))
        .collect();
    regexes(&patterns)
}

/// Whether a rule excepts more paths than fit into a line.
fn is_too_long(tag: &TagRule) -> bool {
    tag.unless
        .as_ref()
        .is_some_and(|unless| any_request(&unless.paths).len() > 1)
}

/// The tests for the fields of a rule: those that are known when fields are written.
fn tests(tag: &TagRule) -> Vec<String> {
    let mut tests = response_tests(&tag.when);
    if let Some(unless) = &tag.unless {
        let mut all = any_request(&unless.paths);
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

/// The tests of type and status.
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

/// A text as an error document; `None` where a line has no room for it. Apache reads it as an
/// expression, without line breaks, so each byte but letters, digits and some signs is escaped.
fn document(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/ .,-:".contains(&byte) {
            escaped.push(byte.into());
        } else {
            escaped += &format!("%{byte:02x}");
        }
    }
    let document = format!("%{{unescape:{escaped}}}");
    (escaped.len() < LINE).then_some(document)
}

/// The text of a field's value, in which `%` begins a variable.
fn field_value(text: &str) -> String {
    escaped(&text.replace('%', "%%"))
}
