//! `tests`: cases that must hold before the policy is used.

use super::super::model::{CachedByTest, Expectation, IdentityByTest, PolicyTest};
use crate::indexing::Directives;
use crate::yaml::{Decoder, Located, Node, Value};
use std::net::IpAddr;

const IDENTITIES: [(&str, IdentityByTest); 3] = [
    ("unverified", IdentityByTest::Unverified),
    ("verified", IdentityByTest::Verified),
    ("impostor", IdentityByTest::Impostor),
];
const VERDICTS: [&str; 4] = ["allowed", "disallowed", "not_bound", "not_a_crawler"];
const KINDS: [&str; 11] = [
    "allowed",
    "stale_copy",
    "violation",
    "unproven",
    "ambiguous",
    "not_bound",
    "not_a_crawler",
    "trapped",
    "impostor",
    "unverified",
    "exempt",
];
const ACTIONS: [&str; 6] = ["pass", "block", "license", "pause", "robots_txt", "tdmrep"];

pub fn cases(node: &Node, decoder: &mut Decoder<'_>) -> Vec<PolicyTest> {
    let wanted = "a list of cases, like `{ agent: GPTBot, path: /, expect: disallowed }`";
    decoder.one_or_many_maps(node, wanted).iter().filter_map(|item| case(item, decoder)).collect()
}

fn case(node: &Node, decoder: &mut Decoder<'_>) -> Option<PolicyTest> {
    let mut fields = decoder.fields(node, "a case: agent, path, expect")?;
    let agent = fields.take("agent").and_then(|node| decoder.located(node, "a token, a name or a user agent"));
    let path = fields.take("path").and_then(|node| decoder.located(node, "a path"));
    let path = path.filter(|path| {
        let valid = path.value.starts_with('/') && !path.value.chars().any(char::is_control);
        if !valid {
            decoder.error("bad-path", path.span, format!("`{}` is not a path: it begins with `/`", path.value));
        }
        valid
    });
    let host = fields.take("host").and_then(|node| decoder.located(node, "a host"));
    let content_type = fields.take("type").and_then(|node| decoder.text(node, "a media type")).map(str::to_owned);
    let status = fields.take("status").and_then(|node| decoder.integer(node, 200..=599, "the status of a response"));
    let at = fields.take("at").and_then(|node| decoder.timestamp(node));
    let ip = fields.take("ip").and_then(|node| {
        let text = decoder.text(node, "an address, like 192.0.2.1")?;
        let address = text.parse::<IpAddr>();
        if address.is_err() {
            decoder.error("bad-value", node.span, format!("`{text}` is not an address"));
        }
        address.ok().map(|address| address.to_canonical())
    });
    let identity = fields.take("identity").and_then(|node| decoder.word(node, &IDENTITIES, "what is proven"));
    let held = fields.take("held").and_then(|node| held(node, decoder));
    let expected = fields.take("expect");
    let expect = expected.map(|node| expectation(node, decoder)).unwrap_or_default();
    for (name, missing) in [("agent", agent.is_none()), ("path", path.is_none()), ("expect", expected.is_none())] {
        let written = matches!(&node.value, Value::Mapping(entries) if entries.iter().any(|(key, _)| matches!(&key.value, Value::Scalar { text, .. } if text == name)));
        if missing && !written {
            decoder.error("missing-field", node.span, format!("this case does not say `{name}`"));
        }
    }
    fields.finish(decoder);
    Some(PolicyTest {
        agent: agent?,
        path: path?,
        host,
        content_type,
        status: status.and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
        at,
        ip,
        identity,
        held,
        expect,
        span: node.span,
    })
}

/// `none`, `current`, or the text of a robots.txt.
fn held(node: &Node, decoder: &mut Decoder<'_>) -> Option<CachedByTest> {
    let text = decoder.text(node, "`none`, `current`, or the text of a robots.txt")?;
    match text {
        "none" => Some(CachedByTest::Nothing),
        "current" => Some(CachedByTest::InForce),
        // Every line of a robots.txt that says something has a colon.
        text if text.contains(':') => Some(CachedByTest::Superseded(text.to_owned())),
        text => {
            let shown = text.lines().next().unwrap_or_default().to_owned();
            decoder.error("bad-value", node.span, format!("`{shown}` is nothing that a crawler holds")).help =
                Some("write `none`, `current`, or the text of an earlier robots.txt, as a block after `|`".into());
            None
        }
    }
}

fn expectation(node: &Node, decoder: &mut Decoder<'_>) -> Expectation {
    let mut expect = Expectation::default();
    if matches!(node.value, Value::Scalar { .. }) {
        expect.verdict = one_of(node, &VERDICTS, "a verdict", decoder);
        return expect;
    }
    let Some(mut fields) =
        decoder.fields(node, "a verdict, or a map: verdict, kind, never_fetched, action, status, tag, signals")
    else {
        return expect;
    };
    expect.verdict = fields.take("verdict").and_then(|node| one_of(node, &VERDICTS, "a verdict", decoder));
    expect.kind = fields.take("kind").and_then(|node| one_of(node, &KINDS, "a kind", decoder));
    expect.never_fetched = fields.take("never_fetched").and_then(|node| {
        let value =
            decoder.word(node, &[("true", true), ("yes", true), ("false", false), ("no", false)], "yes or no")?;
        Some(Located { value, span: node.span })
    });
    expect.action = fields.take("action").and_then(|node| one_of(node, &ACTIONS, "an action", decoder));
    expect.answer_status = fields.take("status").and_then(|node| {
        let value = decoder.integer(node, 200..=599, "a status")?;
        Some(Located { value: u16::try_from(value).ok()?, span: node.span })
    });
    expect.tag = fields.take("tag").map(|node| tag_lines(node, decoder));
    expect.signals = fields.take("signals").map(|node| match &node.value {
        Value::Sequence(items) if items.is_empty() => Vec::new(),
        _ => decoder.texts(node, "header lines, like `Content-Usage: train-ai=n`"),
    });
    fields.finish(decoder);
    expect
}

/// Lines as they are sent: `tag: "noindex, noarchive"` is one line, a list is several, an empty list is none.
fn tag_lines(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
        return Vec::new();
    }
    let lines = decoder.texts(node, "X-Robots-Tag lines");
    for line in &lines {
        let said = line
            .value
            .split_once(": ")
            .filter(|(name, _)| !name.contains(','))
            .map_or(line.value.as_str(), |(_, said)| said);
        if Directives::parse(said).is_err() && Directives::parse(&line.value).is_err() {
            decoder.error("bad-directive", line.span, format!("`{}` is no line of X-Robots-Tag", line.value)).help =
                Some("write it as it is sent: `noindex, noarchive` or `googlebot: nofollow`".into());
        }
    }
    lines
}

fn one_of(node: &Node, words: &[&'static str], wanted: &str, decoder: &mut Decoder<'_>) -> Option<Located<String>> {
    let pairs: Vec<(&str, &'static str)> = words.iter().map(|word| (*word, *word)).collect();
    decoder.word(node, &pairs, wanted).map(|value| Located { value: value.to_owned(), span: node.span })
}
