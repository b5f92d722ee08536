//! [`cases`] decodes the policy section `tests`: requests, and what crawlgate must decide about
//! each. A policy is used only if all of them hold.

use super::signals::yes_or_no;
use crate::indexing::Directives;
use crate::policy::model::{CachedByTest, Expectation, PolicyTest};
use crate::yaml::{Fields, Located, Reader, Value};
use std::net::IpAddr;
use std::str::FromStr;
use strum::VariantNames;

/// Decodes the section: a list of cases, or a single case. A case without a valid agent or path is
/// left out with an error.
pub fn cases(node: Reader<'_>) -> Vec<PolicyTest> {
    let wanted = [
        "a list of cases, like `{ agent: GPTBot, path: /, expect: disallowed }`",
        "a case: agent, path, expect",
    ];
    node.maps(wanted, case)
}

/// Decodes one case. `None` where `agent` or `path` is missing or wrong; a missing `expect` is an
/// error, too. `status` is 200 unless it is written.
fn case(fields: &mut Fields<'_>) -> Option<PolicyTest> {
    let agent = fields.text("agent", "a token, a name or a user agent");
    let path = fields.located("path", path);
    for name in ["agent", "path", "expect"] {
        fields.required(name, &format!("this case does not say `{name}`"), None);
    }
    Some(PolicyTest {
        host: fields.text("host", "a host"),
        content_type: fields.text("type", "a media type").map(|text| text.value),
        status: fields
            .integer("status", 200..=599, "the status of a response")
            .unwrap_or(200),
        at: fields.get("at", Reader::timestamp),
        ip: fields.get("ip", address),
        identity: fields.variant("identity", "what is proven"),
        held: fields.get("held", held),
        expect: fields.get_or_default("expect", expectation),
        span: fields.span,
        // What is missing ends it only here: the mistakes of all other fields are shown before.
        agent: agent?,
        path: path?,
    })
}

fn path(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "a path",
        |text| {
            let is_path = text.starts_with('/') && !text.chars().any(char::is_control);
            is_path.then(|| text.to_owned())
        },
        ("bad-path", "is not a path", "a path begins with `/`"),
    )
}

fn address(node: Reader<'_>) -> Option<IpAddr> {
    let address: IpAddr = node.parsed(
        "an address, like 192.0.2.1",
        |text| text.parse().ok(),
        ("bad-value", "is not an address", "write `192.0.2.1`, say"),
    )?;
    Some(address.to_canonical())
}

/// Decodes the copy that the crawler has cached: `none`, `current`, or the text of an earlier
/// robots.txt, which is any other text with a colon. Text without a colon is an error.
fn held(node: Reader<'_>) -> Option<CachedByTest> {
    node.parsed(
        "`none`, `current`, or the text of a robots.txt",
        |text| match text {
            "none" => Some(CachedByTest::Nothing),
            "current" => Some(CachedByTest::InForce),
            // Every line of a robots.txt that says something has a colon.
            text => text
                .contains(':')
                .then(|| CachedByTest::Superseded(text.to_owned())),
        },
        (
            "bad-value",
            "is nothing that a crawler holds",
            "write `none`, `current`, or the text of an earlier robots.txt, as a block after `|`",
        ),
    )
}

/// Decodes `expect`: a verdict alone, or a map of the expected values. The words for verdict, kind
/// and action are checked. After an error the field is absent.
fn expectation(node: Reader<'_>) -> Expectation {
    if matches!(node.value, Value::Scalar { .. }) {
        return Expectation {
            verdict: variant("a verdict")(node),
            ..Expectation::default()
        };
    }
    let wanted = "a verdict, or a map: verdict, kind, never_fetched, action, status, tag, signals";
    node.map(wanted, |fields| Expectation {
        verdict: fields.get("verdict", variant("a verdict")),
        kind: fields.get("kind", variant("a kind")),
        never_fetched: fields.located("never_fetched", yes_or_no),
        action: fields.get("action", variant("an action")),
        answer_status: fields.located("status", |node| node.integer(200..=599, "a status")),
        tag: fields.get("tag", |node| Some(tag_lines(node))),
        signals: fields.get("signals", |node| {
            Some(node.texts("header lines, like `Content-Usage: train-ai=n`"))
        }),
    })
    .unwrap_or_default()
}

/// Decodes X-Robots-Tag lines as they are sent: `tag: "noindex, noarchive"` is one line, a list is
/// several, an empty list is none. A line of which neither the whole nor the part after `name: ` is
/// valid directives adds an error, and is returned all the same.
fn tag_lines(node: Reader<'_>) -> Vec<Located<String>> {
    let lines = node.texts("X-Robots-Tag lines");
    for line in &lines {
        let said = line
            .value
            .split_once(": ")
            .filter(|(name, _)| !name.contains(','))
            .map_or(line.value.as_str(), |(_, said)| said);
        if Directives::parse(said).is_err() && Directives::parse(&line.value).is_err() {
            node.decoder.error_with_help(
                "bad-directive",
                line.span,
                format!("`{}` is no line of X-Robots-Tag", line.value),
                "write it as it is sent: `noindex, noarchive` or `googlebot: nofollow`",
            );
        }
    }
    lines
}

/// Returns a decoder for the name of a variant. The decoder returns `None` with an error for anything
/// else; `wanted` names what was expected in that error.
fn variant<T: VariantNames + FromStr>(wanted: &str) -> impl Fn(Reader<'_>) -> Option<Located<T>> {
    move |node| {
        Some(Located {
            value: node.variant(wanted)?,
            span: node.span,
        })
    }
}
