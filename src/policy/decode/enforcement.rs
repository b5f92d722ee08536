//! [`enforcement`] decodes the policy section `enforcement`. The section says whether requests that
//! break the rules are blocked or only observed, and how blocked requests are answered. Both can be
//! set for the whole site, for all crawlers of a purpose (such as training), and for single
//! crawlers. The section also lists traps (paths that no obedient crawler requests) and exempt
//! crawlers, and says how long a crawler may use a cached robots.txt.

use super::patterns::check_pattern;
use super::signals::unlicensed;
use crate::crawlers::Purpose;
use crate::policy::model::{AnswerPolicy, Enforcement, EnforcementFields, FrontCacheLifetime};
use crate::yaml::{Decoder, Located, MapFields, NodeReader, NodeValue, parse_duration};
use std::collections::BTreeMap;
use std::time::Duration;

/// RFC 9309 section 2.4: a copy may be used for 24 hours.
const DEFAULT_GRACE: Duration = Duration::from_secs(86_400);
/// No operator documents that it keeps a robots.txt for more than a week.
const MAX_GRACE: Duration = Duration::from_secs(31 * 86_400);

const SECOND: Duration = Duration::from_secs(1);
/// The longest Retry-After, and the longest time that a client stays marked: addresses change
/// hands.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// Decodes the section.
pub fn enforcement(fields: &mut MapFields<'_>) -> Enforcement {
    Enforcement {
        site: enforcement_fields(fields),
        traps: fields.get_or_default("traps", traps),
        exempt: fields.get_or_default("exempt", exempt),
        grace: fields.located("grace", grace).unwrap_or(Located {
            value: DEFAULT_GRACE,
            span: fields.span,
        }),
        behind_cache: fields.get("behind_cache", behind_cache),
        purposes: fields.get_or_default("purposes", purposes),
        agents: fields.get_or_default("agents", agents),
    }
}

fn grace(node: NodeReader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::ZERO..=MAX_GRACE,
        "\"grace\" is longer than 31 days: crawlgate would never enforce anything",
        None,
    )
}

fn purposes(node: NodeReader<'_>) -> BTreeMap<Purpose, EnforcementFields> {
    node.decode_map("a map of purposes, like \"seo: enforce\"", |fields| {
        Purpose::ALL
            .into_iter()
            .filter_map(|purpose| Some((purpose, fields.get(purpose.name(), nested_fields)?)))
            .collect()
    })
    .unwrap_or_default()
}

/// Decodes a map from crawlers to their fields. A lint checks whether such crawlers exist.
fn agents(node: NodeReader<'_>) -> Vec<(Located<String>, EnforcementFields)> {
    let mut agents = Vec::new();
    let entries = node.entries("a map of crawlers, like \"Bytespider: enforce\"");
    for (key, value) in entries.into_iter().flatten() {
        if let Some(agent) = key.located("the token of a crawler")
            && check_crawler_name(
                node.decoder,
                &agent,
                "write the field directly under \"enforcement\": there it is for all crawlers",
            )
        {
            agents.push((agent, nested_fields(value).unwrap_or_default()));
        }
    }
    super::report_repeated(
        agents.iter().map(|(agent, _)| agent),
        [
            "duplicate-key",
            "is written twice",
            "keep one of the two: they are not merged",
        ],
        node.decoder,
    );
    agents
}

/// Whether a text can name one crawler. `*` (with the help `for_all`) and a token with a version
/// (`GPTBot/1.0`) are errors.
fn check_crawler_name(decoder: &Decoder, agent: &Located<String>, for_all: &str) -> bool {
    let name = &agent.value;
    let (message, help) = match name.split_once('/') {
        Some((token, _)) => (
            format!("\"{name}\" has a version; a product token has none"),
            format!("write \"{token}\""),
        ),
        None if name == "*" => ("\"*\" is not a crawler".into(), for_all.into()),
        None => return true,
    };
    decoder.error_with_help("bad-token", agent.span, message, help);
    false
}

/// Decodes `marked_clients`: patterns, each once. A trap is a whole path of its own, because a wide
/// one would mark every reader of the site: it needs three characters before the first `*` or `$`.
/// It may not cover /robots.txt or /.well-known/. Others are left out with an error.
fn traps(node: NodeReader<'_>) -> Vec<Located<String>> {
    let mut traps: Vec<Located<String>> = Vec::new();
    for trap in node.texts("a list of paths, like \"/no-crawlers-here/\"") {
        if !trap.is_empty() && !check_pattern(node.decoder, &trap) {
            continue;
        }
        let literal = trap.split(['*', '$']).next().unwrap_or_default();
        let mistake = if literal.chars().count() < 3 {
            "a trap needs a path of its own, like \"/no-crawlers-here/\": a wider path would mark \
             every crawler of the site"
        } else if "/robots.txt".starts_with(literal) || "/.well-known/".starts_with(literal) {
            "well-behaved crawlers request this path, so it cannot be a trap"
        } else {
            if !traps.iter().any(|other| other.value == trap.value) {
                traps.push(trap);
            }
            continue;
        };
        node.decoder.error("bad-trap", trap.span, mistake);
    }
    traps
}

/// Decodes the crawlers that are never blocked.
fn exempt(node: NodeReader<'_>) -> Vec<Located<String>> {
    node.texts_where(
        "a list of crawlers, like \"IntranetBot\"",
        |decoder, agent| {
            check_crawler_name(
                decoder,
                agent,
                "to block no crawler, write \"mode: observe\"",
            )
        },
    )
}

/// Decodes `no`, `yes` (as long as `max_age` permits), or how long the cache keeps a file whatever
/// `max_age` is.
fn behind_cache(node: NodeReader<'_>) -> Option<FrontCacheLifetime> {
    node.parse_with(
        "yes, no or a duration",
        parse_behind_cache,
        (
            "bad-value",
            "is neither \"yes\" nor \"no\" nor a time up to 31 days",
            "write \"no\" if the proxy in front is no cache, \"yes\" if it is one, or how long it keeps robots.txt, \
             like 2h",
        ),
    )
}

fn parse_behind_cache(text: &str) -> Option<FrontCacheLifetime> {
    match text.to_ascii_lowercase().as_str() {
        "no" | "n" | "false" | "off" => Some(FrontCacheLifetime::No),
        "yes" | "y" | "true" | "on" => Some(FrontCacheLifetime::AsLongAsMaxAge),
        _ => parse_duration(text)
            .ok()
            .filter(|length| *length <= MAX_GRACE)
            .map(FrontCacheLifetime::For),
    }
}

/// Decodes the fields of a purpose or a crawler: a map, or only a mode.
fn nested_fields(node: NodeReader<'_>) -> Option<EnforcementFields> {
    if matches!(node.value, NodeValue::Scalar { .. }) && !node.is_null() {
        return Some(EnforcementFields {
            mode: node.variant("a mode"),
            ..EnforcementFields::default()
        });
    }
    node.decode_map(
        "a mode, or a map: mode, disallowed, ambiguous, ...",
        enforcement_fields,
    )
}

/// Decodes the fields that the site, a purpose and a crawler can have.
fn enforcement_fields(fields: &mut MapFields<'_>) -> EnforcementFields {
    let (trapped, trapped_for) = fields.get_or_default("trapped", trapped);
    EnforcementFields {
        mode: fields.variant("mode", "a mode"),
        disallowed: fields.get("disallowed", answer),
        ambiguous: fields.get("ambiguous", answer),
        too_fast: fields.get("too_fast", too_fast),
        impostor: fields.get("impostor", answer),
        trapped,
        trapped_for,
        unverified: fields.located("unverified", |node| {
            node.variant("a value of \"unverified\"")
        }),
        unlicensed: fields.located("unlicensed", unlicensed),
    }
}

/// Decodes the answer to requests that are too fast. Its Retry-After follows from the crawl delay.
fn too_fast(node: NodeReader<'_>) -> Option<AnswerPolicy> {
    answer_with_fields(node, ["an answer", "a \"status\" or a \"body\""], |_, _| {})
}

/// Decodes the answer to a marked client, and how long the client stays marked.
fn trapped(node: NodeReader<'_>) -> (Option<AnswerPolicy>, Option<Duration>) {
    let wanted = [
        "an answer, with \"for\" as its duration",
        "a \"status\", a \"body\" or a duration \"for\"",
    ];
    let mut time = None;
    let answer = answer_with_fields(node, wanted, |fields, _| {
        time = fields.get("for", |node| {
            node.duration_within(
                SECOND..=MAX_RETRY_AFTER,
                "\"for\" must be from one second to 30 days",
                None,
            )
        });
    });
    (answer, time)
}

/// Decodes an answer to blocked requests: a status, or a map of `status`, `retry_after` and `body`.
fn answer(node: NodeReader<'_>) -> Option<AnswerPolicy> {
    let wanted = ["an answer", "a \"status\", a \"retry_after\" or a \"body\""];
    answer_with_fields(node, wanted, |fields, answer| {
        answer.retry_after = fields.get("retry_after", retry_after);
    })
}

/// Decodes a status, or a map of `status`, `body` and the fields that `more` decodes. `wanted` and
/// `says` describe in messages what is expected.
fn answer_with_fields(
    node: NodeReader<'_>,
    [wanted, says]: [&str; 2],
    more: impl FnOnce(&mut MapFields<'_>, &mut AnswerPolicy),
) -> Option<AnswerPolicy> {
    let mut answer = AnswerPolicy::default();
    if !node.is_map() {
        answer.status = Some(status(node)?);
        return Some(answer);
    }
    if node.is_empty() {
        node.error("missing-field", format!("an answer needs {says}"));
    }
    node.decode_map(wanted, |fields| {
        answer.status = fields.get("status", status);
        answer.body = fields.get("body", body);
        more(fields, &mut answer);
        answer
    })
}

/// Decodes the body of an answer, of at most 64 KiB.
fn body(node: NodeReader<'_>) -> Option<String> {
    let body = node.text("a text")?;
    if body.len() > 64 * 1024 {
        node.error("bad-value", "the body of an answer can have at most 64 KiB");
    }
    Some(body.to_owned())
}

fn status(node: NodeReader<'_>) -> Option<u16> {
    node.integer(400..=599, "a status for a blocked request")
}

/// Decodes Retry-After, which is whole seconds in the answer (RFC 9110 section 10.2.3).
pub fn retry_after(node: NodeReader<'_>) -> Option<Duration> {
    node.duration_within(
        SECOND..=MAX_RETRY_AFTER,
        "\"retry_after\" must be from one second to 30 days",
        None,
    )
}
