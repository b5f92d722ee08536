//! [`robots`] decodes the policy section `robots`: the groups, sitemaps and `max_age` of
//! robots.txt, and whether crawlgate merges the origin's own robots.txt with the policy, replaces
//! it, or publishes it alone.

use super::answers::included;
use super::patterns::patterns;
use super::signals;
use crate::policy::model::{Defaulted, GroupPolicy, OriginRobots, PreviousRobots, RobotsPolicy};
use crate::yaml::{Decoder, Fields, Located, Node, Span, nearest};
use std::time::Duration;

/// The default `max_age` of robots.txt: short enough to correct a mistake the same day.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);
/// RFC 9309 section 2.4: crawlers should not use a cached copy for more than 24 hours.
pub const MAX_MAX_AGE: Duration = Duration::from_secs(86_400);

/// The help for a field that has no effect.
pub const REMOVE: &str = "remove it, or write `origin: merge`";

/// Longer product tokens are garbage.
const MAX_TOKEN: usize = 100;

/// Takes the section out of the fields of a policy.
pub fn robots(policy: &mut Fields<'_>) -> RobotsPolicy {
    let span = policy.take("robots").map(|node| node.span);
    let wanted = "a map: origin, groups, sitemaps, max_age, ...";
    policy.section("robots", wanted, |fields| RobotsPolicy {
        span,
        ..section(fields)
    })
}

fn section(fields: &mut Fields<'_>) -> RobotsPolicy {
    let origin = fields
        .variant("origin", "a way to treat the origin's robots.txt")
        .unwrap_or_default();
    let previous = fields.get("previous", |decoder, node| previous(decoder, node, origin));
    let signals = signals::site(fields);
    for name in ["groups", "sitemaps"]
        .into_iter()
        .filter(|_| origin == OriginRobots::Only)
    {
        if let Some((key, _)) = fields.take_with_key(name) {
            fields.decoder.error_with_help(
                "without-effect",
                key,
                format!(
                    "with `origin: only` the origin's file says it all: `{name}` has no effect"
                ),
                REMOVE,
            );
        }
    }
    RobotsPolicy {
        origin,
        previous,
        signals,
        groups: fields.get_or_default("groups", groups),
        sitemaps: fields.get_or_default("sitemaps", sitemaps),
        origin_keys: origin_keys(fields, origin),
        max_age: Defaulted::or(fields.located("max_age", max_age), DEFAULT_MAX_AGE),
        span: None,
    }
}

fn max_age(decoder: &mut Decoder, node: &Node) -> Option<Duration> {
    let max_age = decoder.duration(node)?;
    if max_age > MAX_MAX_AGE {
        decoder.error_with_help(
            "bad-value",
            node.span,
            "`max_age` is longer than 24 hours",
            "crawlers do not keep a robots.txt longer (RFC 9309 section 2.4)",
        );
    }
    Some(max_age)
}

/// Decodes `origin_keys`: keys that crawlgate does not know. It publishes lines with known keys
/// anyway.
fn origin_keys(fields: &mut Fields<'_>, origin: OriginRobots) -> Vec<Located<String>> {
    let Some((key, node)) = fields.take_with_key("origin_keys") else {
        return Vec::new();
    };
    if origin == OriginRobots::Replace {
        fields.decoder.error_with_help(
            "without-effect",
            key,
            "with `origin: replace` crawlgate does not read the origin's file: `origin_keys` has no effect",
            REMOVE,
        );
    }
    let is_key = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    fields
        .decoder
        .checked(node, "a list of keys: `Schemamap`, say", |decoder, key| {
            let text = &key.value;
            let is_valid = (1..=MAX_TOKEN).contains(&text.len()) && text.chars().all(is_key);
            if !is_valid {
                decoder.error_with_help(
                    "bad-value",
                    key.span,
                    format!("`{text}` is no key of a line"),
                    "write what stands before the colon: letters, digits, `-` and `_`",
                );
            }
            is_valid
        })
}

/// `origin`, or the name of a file beside the policy.
fn previous(decoder: &mut Decoder, node: &Node, origin: OriginRobots) -> Option<PreviousRobots> {
    if decoder.text(
        node,
        "`origin`, or the name of a .txt file beside the policy",
    )? != "origin"
    {
        return included(decoder, node, "txt").map(PreviousRobots::File);
    }
    if origin == OriginRobots::Replace {
        decoder.error_with_help(
            "without-effect",
            node.span,
            "with `origin: replace` crawlgate does not read the origin's file, so `previous: origin` says nothing",
            "save the origin's robots.txt beside the policy and name it: `previous: before.txt`",
        );
        return None;
    }
    Some(PreviousRobots::Origin(node.span))
}

fn groups(decoder: &mut Decoder, node: &Node) -> Vec<GroupPolicy> {
    let list = "a list of groups, each with agents and rules";
    let groups = decoder.maps(
        node,
        [
            list,
            "a group: agents, allow, disallow, crawl_delay, extends",
        ],
        |fields| Some(group(fields)),
    );
    one_group_per_token(&groups, decoder);
    extends(&groups, decoder);
    groups
}

fn group(fields: &mut Fields<'_>) -> GroupPolicy {
    let signals = signals::group(fields);
    let agents = fields.get("agents", |decoder, list| {
        if list.is_empty() {
            decoder.error(
                "group-without-agents",
                list.span,
                "this list of agents is empty",
            );
        }
        Some(decoder.checked(list, "a list of product tokens", token))
    });
    if agents.is_none() {
        let begin = Span {
            end: fields.span.start + 1,
            ..fields.span
        };
        fields.decoder.error_with_help(
            "group-without-agents",
            begin,
            "this group does not say whom it is for",
            "write `agents: [\"*\"]` for everyone, or product tokens: `agents: [GPTBot]`",
        );
    }
    if let Some((key, _)) = fields.take_foreign("noindex") {
        // Google ended what little support there was in September 2019.
        fields.decoder.error_with_help(
            "unknown-field",
            key,
            "there is no field `noindex` here",
            "robots.txt cannot say noindex; write a rule under `indexing`: `{ paths: [...], tag: noindex }`",
        );
    }
    GroupPolicy {
        agents: agents.unwrap_or_default(),
        allow: fields.get_or_default("allow", patterns),
        disallow: fields.get_or_default("disallow", patterns),
        crawl_delay: fields.located("crawl_delay", crawl_delay),
        extends: fields.text("extends", "the token of a group of this file"),
        signals,
        span: fields.span,
    }
}

fn crawl_delay(decoder: &mut Decoder, node: &Node) -> Option<Duration> {
    let bounds = Duration::from_millis(1)..=Duration::from_secs(86_400);
    decoder.duration_within(
        node,
        bounds,
        "`crawl_delay` is more than nothing and at most a day",
        None,
    )
}

/// Real tokens hold digits, blanks, dots, slashes and `!` (`Sogou web spider`, `Yahoo! Slurp`);
/// what breaks the line or begins a comment is refused.
fn token(decoder: &mut Decoder, agent: &Located<String>) -> bool {
    let text = agent.value.as_str();
    if text == "*" || is_token(text) {
        return true;
    }
    let mut help =
        "write the name that the crawler's operator documents: `GPTBot`, not its whole user agent"
            .to_owned();
    let message = if text.is_empty() {
        "an empty token names no crawler".to_owned()
    } else if text.trim() != text {
        format!("the token `{text}` has blanks around it")
    } else if text.len() > MAX_TOKEN {
        "a product token is at most 100 characters long".to_owned()
    } else if text.contains('*') {
        format!("`{text}`: `*` is a token only by itself")
    } else if let Some((name, _)) = text.split_once('/') {
        // Crawlers look for their name alone, and a name with a version would be found in their
        // user agents all the same.
        help = format!("write `{name}`");
        format!("`{text}` has a version; a product token has none")
    } else {
        format!("`{text}` is not a product token")
    };
    decoder.error_with_help("bad-token", agent.span, message, help);
    false
}

/// Whether a text can stand in `agents`.
pub fn is_token(text: &str) -> bool {
    let valid = |sign: char| sign.is_ascii_alphanumeric() || " -_.!+".contains(sign);
    !text.is_empty() && text.trim() == text && text.len() <= MAX_TOKEN && text.chars().all(valid)
}

fn one_group_per_token(groups: &[GroupPolicy], decoder: &mut Decoder) {
    let mut seen: Vec<&Located<String>> = Vec::new();
    for agent in groups.iter().flat_map(|group| &group.agents) {
        match seen
            .iter()
            .find(|first| first.value.eq_ignore_ascii_case(&agent.value))
        {
            Some(first) => {
                decoder.duplicate(
                    "duplicate-token",
                    [agent.span, first.span],
                    format!("`{}` is named in two places", agent.value),
                    "write one group with all its rules; crawlers differ in how they read two",
                );
            }
            None => seen.push(agent),
        }
    }
}

fn extends(groups: &[GroupPolicy], decoder: &mut Decoder) {
    let find = |token: &str| groups.iter().position(|group| group.is_for(token));
    for (index, group) in groups.iter().enumerate() {
        let Some(Located {
            value: extends,
            span,
        }) = &group.extends
        else {
            continue;
        };
        let Some(mut next) = find(extends) else {
            let known = groups
                .iter()
                .flat_map(|group| &group.agents)
                .map(|agent| agent.value.as_str());
            let help = match nearest(extends, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "it names an agent of another group of this file, or \"*\"".to_owned(),
            };
            decoder.error_with_help(
                "unknown-group",
                *span,
                format!("no group of this file is for `{extends}`"),
                help,
            );
            continue;
        };
        // Following the chain for as many steps as there are groups finds every circle.
        for _ in 0..groups.len() {
            if next == index {
                decoder.error("circular-extends", *span, "this group extends itself");
                break;
            }
            match groups[next]
                .extends
                .as_ref()
                .and_then(|extends| find(&extends.value))
            {
                Some(further) => next = further,
                None => break,
            }
        }
    }
}

fn sitemaps(decoder: &mut Decoder, node: &Node) -> Vec<Located<String>> {
    decoder.checked(node, "a list of URLs", |decoder, url| {
        let is_valid = is_sitemap(&url.value);
        if !is_valid {
            decoder.error_with_help(
                "bad-sitemap",
                url.span,
                format!("`{}` is not an absolute URL", url.value),
                "write it whole: `https://shop.example/sitemap.xml`",
            );
        }
        is_valid
    })
}

/// Whether a text can stand in `sitemaps`.
pub fn is_sitemap(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !url
            .chars()
            .any(|sign| sign.is_control() || sign.is_whitespace())
}
