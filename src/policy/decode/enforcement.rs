//! [`enforcement`] decodes the policy section `enforcement`: whether crawlgate refuses requests
//! against the rules or only observes them, and the answers to refused requests. Both can differ by
//! crawler and by purpose (such as training). The section also has traps (paths that no obedient
//! crawler requests), crawlers that are never refused, and how long a crawler may use a cached
//! robots.txt.

use super::patterns::check_pattern;
use super::signals::unlicensed;
use crate::crawlers::Purpose;
use crate::policy::model::{
    AnswerPolicy, BehindCache, Defaulted, Enforcement, EnforcementFields, Mode,
};
use crate::yaml::{Decoder, Fields, Located, Reader, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// RFC 9309 section 2.4: a copy may be used for 24 hours.
const DEFAULT_GRACE: Duration = Duration::from_secs(86_400);
/// No operator documents keeping a robots.txt for longer than a week. Beyond a month enforcing
/// would never begin.
const MAX_GRACE: Duration = Duration::from_secs(31 * 86_400);

const SECOND: Duration = Duration::from_secs(1);
/// The longest Retry-After. A client that requested a trap stays marked as long at most: addresses
/// change hands.
const MONTH: Duration = Duration::from_secs(30 * 86_400);

/// Decodes the section from its fields. `grace` is 24 hours where it is absent or wrong.
pub fn enforcement(fields: &mut Fields<'_>) -> Enforcement {
    Enforcement {
        site: overrides(fields),
        traps: fields.get_or_default("traps", traps),
        exempt: fields.get_or_default("exempt", exempt),
        grace: Defaulted::or(fields.located("grace", grace), DEFAULT_GRACE),
        behind_cache: fields.get("behind_cache", behind_cache),
        purposes: fields.get_or_default("purposes", purposes),
        agents: fields.get_or_default("agents", agents),
    }
}

fn grace(node: Reader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::ZERO..=MAX_GRACE,
        "`grace` is longer than 31 days: nothing would ever be enforced",
        None,
    )
}

fn purposes(node: Reader<'_>) -> BTreeMap<Purpose, EnforcementFields> {
    node.map("a map of purposes, like `seo: enforce`", |fields| {
        Purpose::ALL
            .into_iter()
            .filter_map(|purpose| Some((purpose, fields.get(purpose.name(), nested)?)))
            .collect()
    })
    .unwrap_or_default()
}

/// Decodes a map from crawlers to their fields. A crawler that is written twice (without regard to
/// case), and a name that is not of one crawler, is left out with an error. Whether such a crawler
/// exists is not checked here.
fn agents(node: Reader<'_>) -> Vec<(Located<String>, EnforcementFields)> {
    let mut agents: Vec<(Located<String>, EnforcementFields)> = Vec::new();
    let entries = node.entries("a map of crawlers, like `Bytespider: enforce`");
    for (key, value) in entries.into_iter().flatten() {
        let Some(agent) = key.located("the token of a crawler") else {
            continue;
        };
        if let Some((first, _)) = agents
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(&agent))
        {
            node.decoder.duplicate(
                "duplicate-key",
                [agent.span, first.span],
                format!("`{}` is written twice", agent.value),
                "keep one of them; nothing is merged",
            );
            continue;
        }
        if check_name(
            node.decoder,
            &agent,
            "write the field directly under `enforcement`: it is for all",
        ) {
            agents.push((agent, nested(value).unwrap_or_default()));
        }
    }
    agents
}

/// Checks whether a text may name one crawler. Adds an error for `*`, with the help `for_all`, and
/// for a token with a version (`GPTBot/1.0`).
fn check_name(decoder: &Decoder, agent: &Located<String>, for_all: &str) -> bool {
    let name = &agent.value;
    let (message, help) = match name.split_once('/') {
        Some((token, _)) => (
            format!("`{name}` has a version; a product token has none"),
            format!("write `{token}`"),
        ),
        None if name == "*" => ("`*` is not a crawler".into(), for_all.into()),
        None => return true,
    };
    decoder.error_with_help("bad-token", agent.span, message, help);
    false
}

/// Decodes `traps`: patterns, each once. A trap is a whole path of its own, because a wide one
/// would mark every reader of the site: it needs three characters before the first `*` or `$`. It
/// may not cover /robots.txt or /.well-known/. Others are left out with an error.
fn traps(node: Reader<'_>) -> Vec<Located<String>> {
    let mut traps: Vec<Located<String>> = Vec::new();
    for trap in node.texts("a list of paths, like `/no-crawlers-here/`") {
        if !trap.is_empty() && !check_pattern(node.decoder, &trap) {
            continue;
        }
        let literal = trap.split(['*', '$']).next().unwrap_or_default();
        let mistake = if literal.chars().count() < 3 {
            "a trap is a path of its own, like `/no-crawlers-here/`: a wider one marks every reader of the site"
        } else if "/robots.txt".starts_with(literal) || "/.well-known/".starts_with(literal) {
            "crawlers have reasons to ask for this: it is no trap"
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

/// Decodes the crawlers that are never refused. Names that are not of one crawler are left out with
/// an error.
fn exempt(node: Reader<'_>) -> Vec<Located<String>> {
    node.checked(
        "a list of crawlers, like `IntranetBot`",
        |decoder, agent| check_name(decoder, agent, "write `mode: observe` to refuse no crawler"),
    )
}

/// Decodes `no`, `yes` (as long as `max_age` says), or how long the cache keeps a file whatever
/// `max_age` says: at most 31 days.
fn behind_cache(node: Reader<'_>) -> Option<BehindCache> {
    if let Value::Scalar { text, .. } = &node.value {
        match text.to_ascii_lowercase().as_str() {
            "no" | "false" | "off" => return Some(BehindCache::No),
            "yes" | "true" | "on" => return Some(BehindCache::AsLongAsMaxAge),
            _ => {}
        }
    }
    node.duration_within(
        Duration::ZERO..=MAX_GRACE,
        "`behind_cache` is longer than 31 days: nothing would ever be enforced",
        None,
    )
    .map(BehindCache::For)
}

/// The fields of a purpose or a crawler: a map, or a mode alone.
fn nested(node: Reader<'_>) -> Option<EnforcementFields> {
    if matches!(node.value, Value::Scalar { .. }) && !node.is_null() {
        return Some(EnforcementFields {
            mode: mode(node),
            ..EnforcementFields::default()
        });
    }
    node.map(
        "a mode, or a map: mode, disallowed, ambiguous, ...",
        overrides,
    )
}

/// Takes the fields that the site, a purpose and a crawler may have. A field that is not written
/// stays `None`: it then comes from the next wider section.
fn overrides(fields: &mut Fields<'_>) -> EnforcementFields {
    let (trapped, trapped_for) = fields.get_or_default("trapped", trapped);
    EnforcementFields {
        mode: fields.get("mode", mode),
        disallowed: fields.get("disallowed", answer),
        ambiguous: fields.get("ambiguous", answer),
        too_fast: fields.get("too_fast", too_fast),
        impostor: fields.get("impostor", answer),
        trapped,
        trapped_for,
        unverified: fields.located("unverified", |node| {
            node.variant("what becomes of crawlers that are not verified")
        }),
        unlicensed: fields.located("unlicensed", unlicensed),
    }
}

fn mode(node: Reader<'_>) -> Option<Mode> {
    // YAML 1.1 readers take a bare `off` for false; so both are read.
    let modes = [
        ("off", Mode::Off),
        ("false", Mode::Off),
        ("observe", Mode::Observe),
        ("enforce", Mode::Enforce),
    ];
    node.word(&modes, "a mode")
}

/// The answer to requests that come too fast: a status alone, or a map of `status` and `body`. Its
/// Retry-After follows from the crawl delay, so a policy cannot say it.
fn too_fast(node: Reader<'_>) -> Option<AnswerPolicy> {
    answer_with(node, ["an answer", "a `status` or a `body`"], |_, _| {})
}

/// Decodes the answer to a marked client, and for how long the client stays marked (1 second to 30
/// days); either may be left out. A status alone says no time. Both are `None` for a node that is
/// neither a valid status nor a map; a wrong field of a map is left out alone.
fn trapped(node: Reader<'_>) -> (Option<AnswerPolicy>, Option<Duration>) {
    let wanted = [
        "an answer, and `for` how long",
        "a `status`, a `body` or `for` how long",
    ];
    let mut time = None;
    let answer = answer_with(node, wanted, |fields, _| {
        time = fields.get("for", |node| {
            node.duration_within(SECOND..=MONTH, "`for` is from one second to 30 days", None)
        });
    });
    (answer, time)
}

/// Decodes an answer to refused requests: a status alone, or a map of `status`, `retry_after` and
/// `body`, each of which may be left out.
fn answer(node: Reader<'_>) -> Option<AnswerPolicy> {
    let wanted = ["an answer", "a `status`, a `retry_after` or a `body`"];
    answer_with(node, wanted, |fields, answer| {
        answer.retry_after = fields.get("retry_after", retry_after);
    })
}

/// Decodes a status alone, or a map of `status`, `body` and the fields that `more` takes. `more` is
/// called only for a map, and may set further fields of the answer. `wanted` and `says` describe in
/// messages what is expected. An empty map adds an error and gives an empty answer. `None` for a
/// node that is neither a valid status nor a map.
fn answer_with(
    node: Reader<'_>,
    [wanted, says]: [&str; 2],
    more: impl FnOnce(&mut Fields<'_>, &mut AnswerPolicy),
) -> Option<AnswerPolicy> {
    let mut answer = AnswerPolicy::default();
    if !node.is_map() {
        answer.status = Some(status(node)?);
        return Some(answer);
    }
    if node.is_empty() {
        node.error("missing-field", format!("an answer says {says}"));
    }
    node.map(wanted, |fields| {
        answer.status = fields.get("status", status);
        answer.body = fields.get("body", body);
        more(fields, &mut answer);
        answer
    })
}

/// Decodes the body of an answer. One of more than 64 KiB adds an error, and is returned all the
/// same.
fn body(node: Reader<'_>) -> Option<String> {
    let body = node.text("a text")?;
    if body.len() > 64 * 1024 {
        node.error("bad-value", "the body of a refusal is at most 64 KiB");
    }
    Some(body.to_owned())
}

/// Decodes the status of an answer that refuses: 400 to 599.
fn status(node: Reader<'_>) -> Option<u16> {
    node.integer(400..=599, "a status that refuses")
}

/// Decodes Retry-After: from one second to 30 days. In the answer it is whole seconds (RFC 9110
/// section 10.2.3).
pub fn retry_after(node: Reader<'_>) -> Option<Duration> {
    node.duration_within(
        SECOND..=MONTH,
        "`retry_after` is from one second to 30 days",
        None,
    )
}
