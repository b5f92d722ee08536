//! [`policy_tests`] decodes the policy section `tests`, which lists requests and what crawlgate
//! must decide about each. A policy is used only if all its tests pass.

use crate::indexing::Directives;
use crate::policy::model::{Expectation, PolicyTest, TestCachedRobotsTxt};
use crate::yaml::{Located, MapFields, NodeReader, NodeValue};
use std::net::IpAddr;

/// Decodes the section: a list of cases, or a single case.
pub fn policy_tests(node: NodeReader<'_>) -> Vec<PolicyTest> {
    node.decode_maps(
        [
            "a list of cases, like \"{ agent: GPTBot, path: /, expect: disallowed }\"",
            "a case: agent, path, expect",
        ],
        policy_test,
    )
}

/// Decodes one case. `None` without a valid `agent` and `path`.
fn policy_test(fields: &mut MapFields<'_>) -> Option<PolicyTest> {
    let agent = fields.text("agent", "a token, a name or a user agent");
    let path = fields.located("path", path);
    for name in ["agent", "path", "expect"] {
        fields.required_field(name, &format!("this case has no \"{name}\""), None);
    }
    Some(PolicyTest {
        host: fields.text("host", "a host"),
        content_type: fields.text("type", "a media type").map(|text| text.value),
        status: fields
            .integer("status", 200..=599, "a status")
            .unwrap_or(200),
        at: fields.get("at", NodeReader::timestamp),
        ip: fields.get("ip", address),
        identity: fields.variant("identity", "a value of \"identity\""),
        cached: fields.get("cached", cached_copy),
        expect: fields.get_or_default("expect", expectation),
        span: fields.span,
        // Last, so that the mistakes of all other fields are reported.
        agent: agent?,
        path: path?,
    })
}

fn path(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "a path",
        |text| {
            let is_path = text.starts_with('/') && !text.chars().any(char::is_control);
            is_path.then(|| text.to_owned())
        },
        ("bad-path", "is not a path", "a path begins with \"/\""),
    )
}

fn address(node: NodeReader<'_>) -> Option<IpAddr> {
    node.parse_with(
        "an address, like 192.0.2.1",
        |text| Some(text.parse::<IpAddr>().ok()?.to_canonical()),
        (
            "bad-value",
            "is not an address",
            "write an address, like \"192.0.2.1\"",
        ),
    )
}

/// Decodes the copy that the crawler has cached: `none`, `current`, or the text of an earlier
/// robots.txt.
fn cached_copy(node: NodeReader<'_>) -> Option<TestCachedRobotsTxt> {
    node.parse_with(
        "\"none\", \"current\", or the text of a robots.txt",
        |text| match text {
            "none" => Some(TestCachedRobotsTxt::Nothing),
            "current" => Some(TestCachedRobotsTxt::InForce),
            // Every rule of a robots.txt has a colon.
            text => text
                .contains(':')
                .then(|| TestCachedRobotsTxt::Superseded(text.to_owned())),
        },
        (
            "bad-value",
            "is not a copy of robots.txt",
            "write \"none\", \"current\", or the text of an earlier robots.txt, as a block after \
             \"|\"",
        ),
    )
}

/// Decodes `expect`: a verdict, or a map of the expected values.
fn expectation(node: NodeReader<'_>) -> Expectation {
    if matches!(node.value, NodeValue::Scalar { .. }) {
        return Expectation {
            verdict: node.variant("a verdict").map(|value| Located {
                value,
                span: node.span,
            }),
            ..Expectation::default()
        };
    }
    let wanted =
        "a verdict, or a map: verdict, kind, never_fetched, action, mode, status, tag, signals";
    node.decode_map(wanted, |fields| Expectation {
        verdict: fields.located("verdict", |node| node.variant("a verdict")),
        kind: fields.located("kind", |node| node.variant("a kind")),
        never_fetched: fields.located("never_fetched", NodeReader::boolean),
        action: fields.located("action", |node| node.variant("an action")),
        mode: fields.located("mode", |node| node.variant("a mode")),
        answer_status: fields.located("status", |node| node.integer(200..=599, "a status")),
        tag: fields.get("tag", |node| Some(tag_lines(node))),
        signals: fields.get("signals", |node| {
            Some(node.texts("header lines, like \"Content-Usage: train-ai=n\""))
        }),
    })
    .unwrap_or_default()
}

/// Decodes X-Robots-Tag lines as they are sent, perhaps with the name of a crawler: one text, or a
/// list.
fn tag_lines(node: NodeReader<'_>) -> Vec<Located<String>> {
    let lines = node.texts("X-Robots-Tag lines");
    for line in &lines {
        let directives = line
            .value
            .split_once(": ")
            .filter(|(name, _)| !name.contains(','))
            .map_or(line.value.as_str(), |(_, directives)| directives);
        if Directives::parse(directives).is_err() && Directives::parse(&line.value).is_err() {
            node.decoder.error_with_help(
                "bad-directive",
                line.span,
                format!("\"{}\" is not a line of X-Robots-Tag", line.value),
                "write it as crawlgate sends it: \"noindex, noarchive\" or \"googlebot: nofollow\"",
            );
        }
    }
    lines
}
