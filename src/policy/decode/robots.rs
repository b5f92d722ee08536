//! `robots`: groups, sitemaps, max_age, and where the rest of the file comes from.

use super::answers::included;
use super::patterns::patterns;
use super::signals;
use crate::policy::model::{Defaulted, GroupPolicy, OriginRobots, PreviousRobots, RobotsPolicy};
use crate::yaml::{Decoder, Diagnostic, Located, Node, Span, nearest};
use std::time::Duration;

/// Cache-Control of robots.txt when nothing is said: short enough to correct a mistake the same day.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);
/// RFC 9309 section 2.4: crawlers should not use a cached copy for more than 24 hours.
pub const MAX_MAX_AGE: Duration = Duration::from_secs(86_400);

/// Longer product tokens are garbage.
const MAX_TOKEN: usize = 100;

pub fn robots(node: Option<&Node>, decoder: &mut Decoder<'_>) -> RobotsPolicy {
    let mut policy = RobotsPolicy {
        origin: OriginRobots::default(),
        previous: None,
        groups: Vec::new(),
        sitemaps: Vec::new(),
        origin_keys: Vec::new(),
        max_age: Defaulted::new(DEFAULT_MAX_AGE),
        signals: signals::nothing(),
        span: node.map(|node| node.span),
    };
    let Some(node) = node else { return policy };
    let Some(mut fields) = decoder.fields(node, "a map: origin, groups, sitemaps, max_age, ...") else { return policy };
    if let Some(origin) = fields.take("origin") {
        let words = [("merge", OriginRobots::Merge), ("replace", OriginRobots::Replace), ("only", OriginRobots::Only)];
        policy.origin = decoder.word(origin, &words, "a way to treat the origin's robots.txt").unwrap_or_default();
    }
    policy.previous = fields.take("previous").and_then(|node| previous(node, policy.origin, decoder));
    policy.signals = signals::site(&mut fields, decoder);
    for name in ["groups", "sitemaps"].into_iter().filter(|_| policy.origin == OriginRobots::Only) {
        if let Some((key, _)) = fields.take_with_key(name) {
            decoder
                .error(
                    "without-effect",
                    key.span,
                    format!("with `origin: only` the origin's file says it all: `{name}` has no effect"),
                )
                .help = Some("remove it, or write `origin: merge`".into());
        }
    }
    if let Some(node) = fields.take("groups") {
        policy.groups = groups(node, decoder);
    }
    if let Some(node) = fields.take("sitemaps") {
        policy.sitemaps = sitemaps(node, decoder);
    }
    if let Some((key, node)) = fields.take_with_key("origin_keys") {
        policy.origin_keys = origin_keys(key.span, node, policy.origin, decoder);
    }
    if let Some((node, max_age)) = fields.take("max_age").and_then(|node| Some((node, decoder.duration(node)?))) {
        if max_age > MAX_MAX_AGE {
            decoder.error("bad-value", node.span, "`max_age` is longer than 24 hours").help =
                Some("crawlers do not keep a robots.txt longer (RFC 9309 section 2.4)".into());
        }
        policy.max_age = Defaulted { value: max_age, span: Some(node.span) };
    }
    fields.finish(decoder);
    policy
}

/// Keys that crawlgate does not know. Those that it knows need no word.
fn origin_keys(key: Span, node: &Node, origin: OriginRobots, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    if origin == OriginRobots::Replace {
        let message = "with `origin: replace` crawlgate does not read the origin's file: `origin_keys` has no effect";
        decoder.error("without-effect", key, message).help = Some("remove it, or write `origin: merge`".into());
    }
    let keys = decoder.texts(node, "a list of keys: `Schemamap`, say");
    let is_key = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    keys.into_iter()
        .filter(|key| {
            let text = key.value.as_str();
            let is_valid = (1..=MAX_TOKEN).contains(&text.len()) && text.chars().all(is_key);
            if !is_valid {
                let message = format!("`{text}` is no key of a line");
                decoder.error("bad-value", key.span, message).help =
                    Some("write what stands before the colon: letters, digits, `-` and `_`".into());
            }
            is_valid
        })
        .collect()
}

/// `origin`, or the name of a file beside the policy.
fn previous(node: &Node, origin: OriginRobots, decoder: &mut Decoder<'_>) -> Option<PreviousRobots> {
    if decoder.text(node, "`origin`, or the name of a .txt file beside the policy")? != "origin" {
        return included(node, "txt", decoder).map(PreviousRobots::File);
    }
    if origin == OriginRobots::Replace {
        let message =
            "with `origin: replace` crawlgate does not read the origin's file, so `previous: origin` says nothing";
        decoder.error("without-effect", node.span, message).help =
            Some("save the origin's robots.txt beside the policy and name it: `previous: before.txt`".into());
        return None;
    }
    Some(PreviousRobots::Origin(node.span))
}

fn groups(node: &Node, decoder: &mut Decoder<'_>) -> Vec<GroupPolicy> {
    let items = decoder.one_or_many_maps(node, "a list of groups, each with agents and rules");
    let groups: Vec<GroupPolicy> = items.iter().filter_map(|item| group(item, decoder)).collect();
    one_group_per_token(&groups, decoder);
    extends(&groups, decoder);
    groups
}

fn group(node: &Node, decoder: &mut Decoder<'_>) -> Option<GroupPolicy> {
    let mut fields = decoder.fields(node, "a group: agents, allow, disallow, crawl_delay, extends")?;
    let signals = signals::group(&mut fields, decoder);
    let agents = match fields.take("agents") {
        None => {
            decoder
                .error(
                    "group-without-agents",
                    Span { end: node.span.start + 1, ..node.span },
                    "this group does not say whom it is for",
                )
                .help = Some("write `agents: [\"*\"]` for everyone, or product tokens: `agents: [GPTBot]`".into());
            Vec::new()
        }
        Some(list) => {
            let agents = decoder.texts(list, "a list of product tokens");
            if agents.is_empty() && matches!(&list.value, crate::yaml::Value::Sequence(items) if items.is_empty()) {
                decoder.error("group-without-agents", list.span, "this list of agents is empty");
            }
            agents.into_iter().filter(|agent| token(agent, decoder)).collect()
        }
    };
    if let Some((key, _)) = fields.take_foreign("noindex") {
        // Google ended what little support there was in September 2019.
        decoder.error("unknown-field", key.span, "there is no field `noindex` here").help = Some(
            "robots.txt cannot say noindex; write a rule under `indexing`: `{ paths: [...], tag: noindex }`".into(),
        );
    }
    let allow = fields.take("allow").map(|node| patterns(node, decoder)).unwrap_or_default();
    let disallow = fields.take("disallow").map(|node| patterns(node, decoder)).unwrap_or_default();
    let crawl_delay = fields.take("crawl_delay").and_then(|node| {
        let value = decoder.duration(node)?;
        if value.is_zero() || value > Duration::from_secs(86_400) {
            decoder.error("bad-value", node.span, "`crawl_delay` is more than nothing and at most a day");
            return None;
        }
        Some(Located { value, span: node.span })
    });
    let extends = fields.take("extends").and_then(|node| decoder.located(node, "the token of a group of this file"));
    fields.finish(decoder);
    Some(GroupPolicy { agents, allow, disallow, crawl_delay, extends, signals, span: node.span })
}

/// Real tokens hold digits, blanks, dots, slashes and `!` (`Sogou web spider`, `Yahoo! Slurp`); what breaks the line or
/// begins a comment is refused.
fn token(agent: &Located<String>, decoder: &mut Decoder<'_>) -> bool {
    let text = agent.value.as_str();
    if text == "*" || is_token(text) {
        return true;
    }
    let message = if text.is_empty() {
        "an empty token names no crawler".to_owned()
    } else if text.trim() != text {
        format!("the token `{text}` has blanks around it")
    } else if text.len() > MAX_TOKEN {
        "a product token is at most 100 characters long".to_owned()
    } else if text.contains('*') {
        format!("`{text}`: `*` is a token only by itself")
    } else if let Some((name, _)) = text.split_once('/') {
        // Crawlers look for their name alone, and a name with a version would be found in their user agents all the
        // same.
        decoder.error("bad-token", agent.span, format!("`{text}` has a version; a product token has none")).help =
            Some(format!("write `{name}`"));
        return false;
    } else {
        format!("`{text}` is not a product token")
    };
    decoder.error("bad-token", agent.span, message).help =
        Some("write the name that the crawler's operator documents: `GPTBot`, not its whole user agent".into());
    false
}

/// Whether a text can stand in `agents`.
pub fn is_token(text: &str) -> bool {
    let valid = |sign: char| sign.is_ascii_alphanumeric() || " -_.!+".contains(sign);
    !text.is_empty() && text.trim() == text && text.len() <= MAX_TOKEN && text.chars().all(valid)
}

fn one_group_per_token(groups: &[GroupPolicy], decoder: &mut Decoder<'_>) {
    let mut seen: Vec<&Located<String>> = Vec::new();
    for agent in groups.iter().flat_map(|group| &group.agents) {
        match seen.iter().find(|first| first.value.eq_ignore_ascii_case(&agent.value)) {
            Some(first) => {
                let diagnostic = Diagnostic::error(
                    "duplicate-token",
                    agent.span,
                    format!("`{}` is named in two places", agent.value),
                )
                .related(first.span, "first here")
                .help("write one group with all its rules; crawlers differ in how they read two");
                decoder.diagnostics.push(diagnostic);
            }
            None => seen.push(agent),
        }
    }
}

fn extends(groups: &[GroupPolicy], decoder: &mut Decoder<'_>) {
    let find = |token: &str| {
        groups.iter().position(|group| group.agents.iter().any(|agent| agent.value.eq_ignore_ascii_case(token)))
    };
    for (index, group) in groups.iter().enumerate() {
        let Some(extends) = &group.extends else { continue };
        let Some(mut next) = find(&extends.value) else {
            let known: Vec<&str> =
                groups.iter().flat_map(|group| group.agents.iter().map(|agent| agent.value.as_str())).collect();
            let help = match nearest(&extends.value, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "it names an agent of another group of this file, or \"*\"".to_owned(),
            };
            decoder
                .error("unknown-group", extends.span, format!("no group of this file is for `{}`", extends.value))
                .help = Some(help);
            continue;
        };
        // Following the chain for as many steps as there are groups finds every circle.
        for _ in 0..groups.len() {
            if next == index {
                decoder.error("circular-extends", extends.span, "this group extends itself");
                break;
            }
            match groups[next].extends.as_ref().and_then(|extends| find(&extends.value)) {
                Some(further) => next = further,
                None => break,
            }
        }
    }
}

fn sitemaps(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<String>> {
    let written = decoder.texts(node, "a list of URLs");
    written
        .into_iter()
        .filter(|sitemap| {
            let rest = ["https://", "http://"].iter().find_map(|scheme| sitemap.value.strip_prefix(scheme));
            let valid = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
                && !sitemap.value.chars().any(|sign| sign.is_control() || sign.is_whitespace());
            if !valid {
                decoder
                    .error("bad-sitemap", sitemap.span, format!("`{}` is not an absolute URL", sitemap.value))
                    .help = Some("write it whole: `https://shop.example/sitemap.xml`".into());
            }
            valid
        })
        .collect()
}
