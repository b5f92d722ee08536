//! `enforcement`: how far, with which answers, for whom.

use super::patterns::check_pattern;
use super::signals::unlicensed;
use crate::crawlers::Purpose;
use crate::policy::model::{AnswerPolicy, BehindCache, Defaulted, Enforcement, EnforcementFields, Mode, Unverified};
use crate::yaml::{Decoder, Diagnostic, Fields, Located, Node, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// RFC 9309 section 2.4: a copy may be used for 24 hours.
const DEFAULT_GRACE: Duration = Duration::from_secs(86_400);
/// No operator documents keeping a robots.txt for longer than a week. Beyond a month enforcing would never begin.
const MAX_GRACE: Duration = Duration::from_secs(31 * 86_400);

/// How long a mark of a trap lasts at most: addresses change hands.
const MAX_TRAPPED: Duration = Duration::from_secs(30 * 86_400);

pub fn enforcement(node: Option<&Node>, decoder: &mut Decoder<'_>) -> Enforcement {
    let mut enforcement = Enforcement {
        site: EnforcementFields::default(),
        purposes: BTreeMap::new(),
        agents: Vec::new(),
        grace: Defaulted::new(DEFAULT_GRACE),
        behind_cache: None,
        traps: Vec::new(),
        exempt: Vec::new(),
    };
    let Some(node) = node else { return enforcement };
    let Some(mut fields) = decoder.fields(node, "a map: mode, disallowed, traps, purposes, agents, ...") else {
        return enforcement;
    };
    enforcement.site = overrides(&mut fields, decoder);
    if let Some(node) = fields.take("traps") {
        enforcement.traps = traps(node, decoder);
    }
    if let Some(node) = fields.take("exempt") {
        enforcement.exempt = exempt(node, decoder);
    }
    if let Some((node, grace)) = fields.take("grace").and_then(|node| Some((node, decoder.duration(node)?))) {
        if grace > MAX_GRACE {
            decoder.error("bad-value", node.span, "`grace` is longer than 31 days: nothing would ever be enforced");
        }
        enforcement.grace = Defaulted { value: grace, span: Some(node.span) };
    }
    enforcement.behind_cache = fields.take("behind_cache").and_then(|node| behind_cache(node, decoder));
    if let Some(node) = fields.take("purposes") {
        enforcement.purposes = purposes(node, decoder);
    }
    if let Some(node) = fields.take("agents") {
        enforcement.agents = agents(node, decoder);
    }
    fields.finish(decoder);
    enforcement
}

fn purposes(node: &Node, decoder: &mut Decoder<'_>) -> BTreeMap<Purpose, EnforcementFields> {
    let mut said = BTreeMap::new();
    let Some(mut fields) = decoder.fields(node, "a map of purposes, like `seo: enforce`") else {
        return said;
    };
    for purpose in Purpose::ALL {
        if let Some(node) = fields.take(purpose.name()) {
            said.insert(purpose, nested(node, decoder));
        }
    }
    fields.finish(decoder);
    said
}

fn agents(node: &Node, decoder: &mut Decoder<'_>) -> Vec<(Located<String>, EnforcementFields)> {
    let mut agents: Vec<(Located<String>, EnforcementFields)> = Vec::new();
    let entries = decoder.entries(node, "a map of crawlers, like `Bytespider: enforce`");
    for (key, value) in entries.into_iter().flatten() {
        let Some(agent) = decoder.located(key, "the token of a crawler") else { continue };
        if let Some((first, _)) = agents.iter().find(|(other, _)| other.value.eq_ignore_ascii_case(&agent.value)) {
            let message = format!("`{}` is written twice", agent.value);
            let diagnostic = Diagnostic::error("duplicate-key", agent.span, message).related(first.span, "first here");
            decoder.diagnostics.push(diagnostic);
            continue;
        }
        if is_name(&agent, "write the field directly under `enforcement`: it is for all", decoder) {
            agents.push((agent, nested(value, decoder)));
        }
    }
    agents
}

/// Whether this may name one crawler; complains otherwise.
fn is_name(agent: &Located<String>, for_all: &str, decoder: &mut Decoder<'_>) -> bool {
    if let Some((name, _)) = agent.value.split_once('/') {
        let message = format!("`{}` has a version; a product token has none", agent.value);
        decoder.error("bad-token", agent.span, message).help = Some(format!("write `{name}`"));
        return false;
    }
    if agent.value == "*" {
        decoder.error("bad-token", agent.span, "`*` is not a crawler").help = Some(for_all.into());
        return false;
    }
    true
}

/// A trap is a whole path of its own: a wide one would mark every reader of the site.
fn traps(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let mut traps: Vec<Located<String>> = Vec::new();
    for trap in decoder.texts(node, "a list of paths, like `/no-crawlers-here/`") {
        if !trap.value.is_empty() && !check_pattern(&trap, decoder) {
            continue;
        }
        let literal = trap.value.split(['*', '$']).next().unwrap_or_default();
        let problem = if literal.chars().count() < 3 {
            "a trap is a path of its own, like `/no-crawlers-here/`: a wider one marks every reader of the site"
        } else if "/robots.txt".starts_with(literal) || "/.well-known/".starts_with(literal) {
            "crawlers have reasons to ask for this: it is no trap"
        } else {
            if !traps.iter().any(|other| other.value == trap.value) {
                traps.push(trap);
            }
            continue;
        };
        decoder.error("bad-trap", trap.span, problem);
    }
    traps
}

fn exempt(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let mut exempt = decoder.texts(node, "a list of crawlers, like `IntranetBot`");
    exempt.retain(|agent| is_name(agent, "write `mode: observe` to refuse no crawler", decoder));
    exempt
}

/// `no`, `yes`, or how long the cache keeps a file whatever `max_age` says.
fn behind_cache(node: &Node, decoder: &mut Decoder<'_>) -> Option<BehindCache> {
    if let Value::Scalar { text, .. } = &node.value {
        match text.to_ascii_lowercase().as_str() {
            "no" | "false" | "off" => return None,
            "yes" | "true" | "on" => return Some(BehindCache::AsLongAsMaxAge),
            _ => {}
        }
    }
    let kept = decoder.duration(node)?;
    if kept > MAX_GRACE {
        decoder.error("bad-value", node.span, "`behind_cache` is longer than 31 days: nothing would ever be enforced");
    }
    Some(BehindCache::For(kept))
}

/// What a purpose or a crawler has of its own: a map, or a mode alone.
fn nested(node: &Node, decoder: &mut Decoder<'_>) -> EnforcementFields {
    if matches!(node.value, Value::Scalar { .. }) && !node.is_null() {
        return EnforcementFields { mode: mode(node, decoder), ..EnforcementFields::default() };
    }
    let Some(mut fields) = decoder.fields(node, "a mode, or a map: mode, disallowed, ambiguous, ...") else {
        return EnforcementFields::default();
    };
    let overrides = overrides(&mut fields, decoder);
    fields.finish(decoder);
    overrides
}

fn overrides(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> EnforcementFields {
    let unverified =
        [("as_claimed", Unverified::AsClaimed), ("observe", Unverified::Observe), ("refuse", Unverified::Refuse)];
    let (trapped, trapped_for) = fields.take("trapped").map(|node| trapped(node, decoder)).unwrap_or_default();
    EnforcementFields {
        mode: fields.take("mode").and_then(|node| mode(node, decoder)),
        disallowed: fields.take("disallowed").and_then(|node| answer(node, decoder)),
        ambiguous: fields.take("ambiguous").and_then(|node| answer(node, decoder)),
        too_fast: fields.take("too_fast").and_then(|node| too_fast(node, decoder)),
        impostor: fields.take("impostor").and_then(|node| answer(node, decoder)),
        trapped,
        trapped_for,
        unverified: fields.take("unverified").and_then(|node| {
            Some((decoder.word(node, &unverified, "what becomes of crawlers that are not verified")?, node.span))
        }),
        unlicensed: fields.take("unlicensed").and_then(|node| unlicensed(node, decoder)),
    }
}

fn mode(node: &Node, decoder: &mut Decoder<'_>) -> Option<Mode> {
    // YAML 1.1 readers take a bare `off` for false; so both are read.
    let modes = [("off", Mode::Off), ("false", Mode::Off), ("observe", Mode::Observe), ("enforce", Mode::Enforce)];
    decoder.word(node, &modes, "a mode")
}

/// How long to wait follows from the pace; it is not for the policy to say.
fn too_fast(node: &Node, decoder: &mut Decoder<'_>) -> Option<AnswerPolicy> {
    if !matches!(node.value, Value::Mapping(_)) {
        return answer(node, decoder);
    }
    let mut fields = decoder.fields(node, "an answer")?;
    refuse_empty(node, "a `status` or a `body`", decoder);
    let status = fields.take("status").and_then(|node| status(node, decoder));
    let body = body(&mut fields, decoder);
    fields.finish(decoder);
    Some(AnswerPolicy { status, retry_after: None, body })
}

/// The answer, and for how long it is given: either may be left out.
fn trapped(node: &Node, decoder: &mut Decoder<'_>) -> (Option<AnswerPolicy>, Option<Duration>) {
    if !matches!(node.value, Value::Mapping(_)) {
        return (answer(node, decoder), None);
    }
    let Some(mut fields) = decoder.fields(node, "an answer, and `for` how long") else { return (None, None) };
    refuse_empty(node, "a `status`, a `body` or `for` how long", decoder);
    let status = fields.take("status").and_then(|node| status(node, decoder));
    let body = body(&mut fields, decoder);
    let time = fields.take("for").and_then(|node| Some((node, decoder.duration(node)?)));
    if let Some((node, time)) = time
        && (time.as_secs() == 0 || time > MAX_TRAPPED)
    {
        decoder.error("bad-value", node.span, "`for` is from one second to 30 days");
    }
    fields.finish(decoder);
    (Some(AnswerPolicy { status, retry_after: None, body }), time.map(|(_, time)| time))
}

fn answer(node: &Node, decoder: &mut Decoder<'_>) -> Option<AnswerPolicy> {
    if !matches!(node.value, Value::Mapping(_)) {
        return Some(AnswerPolicy { status: Some(status(node, decoder)?), retry_after: None, body: None });
    }
    let mut fields = decoder.fields(node, "an answer")?;
    refuse_empty(node, "a `status`, a `retry_after` or a `body`", decoder);
    let status = fields.take("status").and_then(|node| status(node, decoder));
    let retry_after = fields.take("retry_after").and_then(|node| retry_after(node, decoder));
    let body = body(&mut fields, decoder);
    fields.finish(decoder);
    Some(AnswerPolicy { status, retry_after, body })
}

/// An answer that says nothing is a mistake, or changes nothing.
fn refuse_empty(node: &Node, says: &str, decoder: &mut Decoder<'_>) {
    if matches!(&node.value, Value::Mapping(entries) if entries.is_empty()) {
        decoder.error("missing-field", node.span, format!("an answer says {says}"));
    }
}

fn body(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Option<String> {
    let body = fields.take("body").and_then(|node| decoder.located(node, "a text"))?;
    if body.value.len() > 64 * 1024 {
        decoder.error("bad-value", body.span, "the body of a refusal is at most 64 KiB");
    }
    Some(body.value)
}

fn status(node: &Node, decoder: &mut Decoder<'_>) -> Option<u16> {
    let status = decoder.integer(node, 400..=599, "a status that refuses")?;
    u16::try_from(status).ok()
}

/// Retry-After is whole seconds (RFC 9110 section 10.2.3).
pub fn retry_after(node: &Node, decoder: &mut Decoder<'_>) -> Option<Duration> {
    let duration = decoder.duration(node)?;
    if duration.as_secs() == 0 || duration > Duration::from_secs(30 * 86_400) {
        decoder.error("bad-value", node.span, "`retry_after` is from one second to 30 days");
        return None;
    }
    Some(duration)
}
