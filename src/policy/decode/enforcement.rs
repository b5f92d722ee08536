//! `enforcement`: how far, with which answers, for whom.

use super::signals::unlicensed;
use crate::crawlers::Purpose;
use crate::policy::model::{AnswerPolicy, Defaulted, Enforcement, EnforcementFields, Mode};
use crate::yaml::{Decoder, Diagnostic, Fields, Node, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// RFC 9309 section 2.4: a copy may be used for 24 hours.
const DEFAULT_GRACE: Duration = Duration::from_secs(86_400);
/// Nobody documents keeping a robots.txt for longer than a week; beyond a month enforcing would never begin.
const MAX_GRACE: Duration = Duration::from_secs(31 * 86_400);

/// Fields whose behaviour is still to come.
const LATER: [&str; 7] = ["too_fast", "impostor", "trapped", "traps", "unverified", "behind_cache", "exempt"];
const FIELDS: [&str; 4] = ["mode", "disallowed", "ambiguous", "unlicensed"];

pub fn enforcement(node: Option<&Node>, decoder: &mut Decoder<'_>) -> Enforcement {
    let mut enforcement = Enforcement {
        site: EnforcementFields::default(),
        purposes: BTreeMap::new(),
        agents: Vec::new(),
        grace: Defaulted::new(DEFAULT_GRACE),
    };
    let Some(node) = node else { return enforcement };
    let Some(mut fields) = decoder.fields(node, "a map: mode, disallowed, ambiguous, purposes, agents, grace") else {
        return enforcement;
    };
    fields.refuse(&LATER, decoder);
    enforcement.site = overrides(&mut fields, decoder);
    if let Some((node, grace)) = fields.take("grace").and_then(|node| Some((node, decoder.duration(node)?))) {
        if grace > MAX_GRACE {
            decoder.error("bad-value", node.span, "`grace` is longer than 31 days: nothing would ever be enforced");
        }
        enforcement.grace = Defaulted { value: grace, span: Some(node.span) };
    }
    if let Some(mut purposes) = fields
        .take("purposes")
        .and_then(|node| decoder.fields(node, "a map of purposes, like `seo: { mode: enforce }`"))
    {
        for purpose in Purpose::ALL {
            if let Some(node) = purposes.take(purpose.name()) {
                enforcement.purposes.insert(purpose, nested(node, decoder));
            }
        }
        purposes.finish(&Purpose::ALL.map(Purpose::name), decoder);
    }
    if let Some(entries) = fields
        .take("agents")
        .and_then(|node| decoder.entries(node, "a map of crawlers, like `Bytespider: { mode: enforce }`"))
    {
        for (key, value) in entries {
            let Some(agent) = decoder.located(key, "the token of a crawler") else { continue };
            if let Some((first, _)) =
                enforcement.agents.iter().find(|(other, _)| other.value.eq_ignore_ascii_case(&agent.value))
            {
                let diagnostic =
                    Diagnostic::error("duplicate-key", agent.span, format!("`{}` is written twice", agent.value))
                        .related(first.span, "first here");
                decoder.diagnostics.push(diagnostic);
                continue;
            }
            if let Some((name, _)) = agent.value.split_once('/') {
                let message = format!("`{}` has a version; a product token has none", agent.value);
                decoder.error("bad-token", agent.span, message).help = Some(format!("write `{name}`"));
                continue;
            }
            if agent.value == "*" {
                decoder.error("bad-token", agent.span, "`*` is not a crawler").help =
                    Some("write the field directly under `enforcement`: it is for all".into());
                continue;
            }
            let fields = nested(value, decoder);
            enforcement.agents.push((agent, fields));
        }
    }
    fields.finish(&["mode", "disallowed", "ambiguous", "unlicensed", "grace", "purposes", "agents"], decoder);
    enforcement
}

fn nested(node: &Node, decoder: &mut Decoder<'_>) -> EnforcementFields {
    let Some(mut fields) = decoder.fields(node, "a map: mode, disallowed, ambiguous") else {
        return EnforcementFields::default();
    };
    fields.refuse(&LATER, decoder);
    let overrides = overrides(&mut fields, decoder);
    fields.finish(&FIELDS, decoder);
    overrides
}

fn overrides(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> EnforcementFields {
    // YAML 1.1 readers take a bare `off` for false; people who know that write either.
    let modes = [("off", Mode::Off), ("false", Mode::Off), ("observe", Mode::Observe), ("enforce", Mode::Enforce)];
    EnforcementFields {
        mode: fields.take("mode").and_then(|node| decoder.word(node, &modes, "a mode")),
        disallowed: fields.take("disallowed").and_then(|node| answer(node, decoder)),
        ambiguous: fields.take("ambiguous").and_then(|node| answer(node, decoder)),
        unlicensed: fields.take("unlicensed").and_then(|node| unlicensed(node, decoder)),
    }
}

fn answer(node: &Node, decoder: &mut Decoder<'_>) -> Option<AnswerPolicy> {
    if !matches!(node.value, Value::Mapping(_)) {
        return Some(AnswerPolicy { status: status(node, decoder)?, retry_after: None, body: None });
    }
    let mut fields = decoder.fields(node, "an answer")?;
    let status = match fields.take("status") {
        Some(node) => status(node, decoder),
        None => {
            decoder.error("missing-field", node.span, "an answer needs a `status`");
            None
        }
    };
    let retry_after = fields.take("retry_after").and_then(|node| retry_after(node, decoder));
    let body = fields.take("body").and_then(|node| decoder.located(node, "a text"));
    if let Some(body) = body.as_ref().filter(|body| body.value.len() > 64 * 1024) {
        decoder.error("bad-value", body.span, "the body of a refusal is at most 64 KiB");
    }
    fields.finish(&["status", "retry_after", "body"], decoder);
    Some(AnswerPolicy { status: status?, retry_after, body: body.map(|body| body.value) })
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
