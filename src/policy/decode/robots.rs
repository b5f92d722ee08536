//! [`robots`] decodes the policy section `robots`: the groups and sitemaps of robots.txt, and how
//! long crawlers may cache it (`max_age`). The section also says whether crawlgate publishes the
//! rules of the policy, the robots.txt of the origin, or both merged.

use super::answers::included_file;
use super::patterns::patterns;
use super::signals;
use crate::policy::model::{
    GroupPolicy, HOST_PLACEHOLDER, OriginRobotsMode, Policy, PreviousRobots, RobotsPolicy,
};
use crate::printable::is_hidden;
use crate::yaml::{
    Decoder, Located, MapFields, NodeReader, SourceSpan, is_plain_word, nearest_word,
    strip_http_scheme,
};
use OriginRobotsMode::*;
use std::iter;
use std::time::Duration;

/// Short enough to correct a mistake the same day.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);
/// RFC 9309 section 2.4: crawlers should not use a cached copy for more than 24 hours.
const MAX_MAX_AGE: Duration = Duration::from_secs(86_400);

/// The help for a field that has no effect.
pub const REMOVE: &str = "remove it, or write \"origin: merge\"";

/// The most bytes of `comment`.
const MAX_COMMENT: usize = 4 * 1024;

/// The most characters of a product token.
const MAX_TOKEN: usize = 100;

/// Decodes the section `robots`. Without the section everything has its default.
pub fn robots(policy: &mut MapFields<'_>) -> RobotsPolicy {
    let span = policy.field("robots").map(|node| node.span);
    RobotsPolicy {
        span,
        ..policy.section(
            "robots",
            "a map: origin, groups, sitemaps, max_age, ...",
            robots_section,
        )
    }
}

/// Decodes the fields of the section. The caller sets `span`.
fn robots_section(fields: &mut MapFields<'_>) -> RobotsPolicy {
    let robots = RobotsPolicy {
        origin: fields
            .variant("origin", "a value of \"origin\"")
            .unwrap_or_default(),
        previous: fields.get("previous", previous),
        signals: signals::site_signals(fields),
        comment: fields.get("comment", comment),
        groups: fields.get_or_default("groups", groups),
        sitemaps: fields.get_or_default("sitemaps", sitemaps),
        origin_keys: fields.get_or_default("origin_keys", origin_keys),
        max_age: fields.located("max_age", max_age).unwrap_or(Located {
            value: DEFAULT_MAX_AGE,
            span: fields.span,
        }),
        span: None,
    };
    check_effects(&robots, fields);
    robots
}

/// Adds errors for fields that have no effect with this value of `origin`.
fn check_effects(robots: &RobotsPolicy, fields: &mut MapFields<'_>) {
    const NOT_READ: &str = "with \"origin: replace\" crawlgate does not read the origin's file";
    let (reason, names): (_, &[_]) = match robots.origin {
        Merge => return,
        Replace => (NOT_READ, &["origin_keys"]),
        Only => (
            "with \"origin: only\" all rules come from the origin's file",
            &["groups", "sitemaps"],
        ),
    };
    for name in names {
        if let Some((key, _)) = fields.field_with_key(name) {
            key.error_with_help(
                "without-effect",
                format!("{reason}: \"{name}\" has no effect"),
                REMOVE,
            );
        }
    }
    if let (Replace, Some(PreviousRobots::Origin(span))) = (robots.origin, &robots.previous) {
        fields.decoder.error_with_help(
            "without-effect",
            *span,
            format!("{NOT_READ}, so \"previous: origin\" has no effect"),
            "save the origin's robots.txt in the policy directory and name it: \"previous: \
             before.txt\"",
        );
    }
}

fn max_age(node: NodeReader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::ZERO..=MAX_MAX_AGE,
        "\"max_age\" is longer than 24 hours",
        Some("crawlers do not keep a robots.txt longer (RFC 9309 section 2.4)"),
    )
}

/// Whether a text may be `comment`.
pub fn is_comment(text: &str) -> bool {
    text.len() <= MAX_COMMENT && !text.chars().any(|c| c != '\n' && is_hidden(c))
}

/// Decodes `comment`: text of one or more lines for the top of robots.txt.
fn comment(node: NodeReader<'_>) -> Option<String> {
    let text = node.text("a text")?.trim_end();
    let is_valid = is_comment(text);
    if !is_valid {
        node.error_with_help(
            "bad-value",
            "\"comment\" is longer than 4 KiB or has control characters",
            "shorten it, or link to the whole text; use spaces instead of tabs",
        );
    }
    is_valid.then(|| text.to_owned())
}

/// Decodes `origin_keys`: keys that crawlgate does not know, whose lines are published all the
/// same.
fn origin_keys(node: NodeReader<'_>) -> Vec<Located<String>> {
    node.texts_where("a list of keys, like \"Schemamap\"", |decoder, key| {
        let text = &key.value;
        let is_valid = is_plain_word(text, MAX_TOKEN, "-_");
        if !is_valid {
            decoder.error_with_help(
                "bad-value",
                key.span,
                format!("\"{text}\" is not the key of a line"),
                "write the word before the colon: letters, digits, \"-\" and \"_\"",
            );
        }
        is_valid
    })
}

/// Decodes `origin`, or the name of a .txt file beside the policy.
fn previous(node: NodeReader<'_>) -> Option<PreviousRobots> {
    Some(
        if node.text("\"origin\", or the name of a .txt file in the policy directory")? == "origin"
        {
            PreviousRobots::Origin(node.span)
        } else {
            PreviousRobots::File(included_file(node, "txt")?)
        },
    )
}

/// Decodes the groups. Each token has one group, and `extends` leads to a group and not into a
/// circle.
fn groups(node: NodeReader<'_>) -> Vec<GroupPolicy> {
    let groups = node.decode_maps(
        [
            "a list of groups, each with agents and rules",
            "a group: agents, allow, disallow, crawl_delay, extends",
        ],
        |fields| Some(group(fields)),
    );
    super::report_repeated(
        groups.iter().flat_map(|group| &group.agents),
        [
            "duplicate-token",
            "is in two places",
            "write one group with all of its rules: some crawlers obey only one of two",
        ],
        node.decoder,
    );
    check_extends(&groups, node.decoder);
    groups
}

/// Decodes one group. `noindex` has an error of its own: people write it here although robots.txt
/// cannot say it.
fn group(fields: &mut MapFields<'_>) -> GroupPolicy {
    match fields.field("agents") {
        Some(list) if list.is_empty() => {
            list.error("group-without-agents", "this list of agents is empty")
        }
        Some(_) => {}
        None => {
            let begin = SourceSpan {
                end: fields.span.start + 1,
                ..fields.span
            };
            fields.decoder.error_with_help(
                "group-without-agents",
                begin,
                "this group names no crawler",
                "write \"agents: ['*']\" for all crawlers, or product tokens: \"agents: [GPTBot]\"",
            );
        }
    }
    if let Some((key, _)) = fields.foreign_field("noindex") {
        // Google ended what little support there was in September 2019.
        key.error_with_help(
            "unknown-field",
            "there is no field \"noindex\" here",
            "robots.txt has no noindex; write a rule under \"indexing\": \"{ paths: [...], tag: \
             noindex }\"",
        );
    }
    GroupPolicy {
        agents: fields.get_or_default("agents", |list| {
            list.texts_where("a list of product tokens", check_token)
        }),
        allow: fields.get_or_default("allow", patterns),
        disallow: fields.get_or_default("disallow", patterns),
        crawl_delay: fields.located("crawl_delay", crawl_delay),
        extends: fields.text("extends", "the token of another group"),
        signals: signals::group_signals(fields),
        span: fields.span,
    }
}

fn crawl_delay(node: NodeReader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::from_millis(1)..=Duration::from_secs(86_400),
        "\"crawl_delay\" must be more than nothing and at most a day",
        None,
    )
}

/// Whether a text is `*` or a product token; otherwise adds an error. Real tokens have blanks, dots
/// and `!` (`Sogou web spider`, `Yahoo! Slurp`).
fn check_token(decoder: &Decoder, agent: &Located<String>) -> bool {
    let text = agent.as_str();
    if text == "*" || is_token(text) {
        return true;
    }
    let mut help =
        "write the token that the crawler's operator documents, like \"GPTBot\": at most 100 \
         characters, without spaces around it. \"*\" stands alone"
            .to_owned();
    let message = if let Some((name, _)) = text.split_once('/') {
        // Crawlers look for their name alone, and a name with a version would be found in their
        // user agents all the same.
        help = format!("write \"{name}\"");
        format!("\"{text}\" has a version; a product token has none")
    } else {
        format!("\"{text}\" is not a product token")
    };
    decoder.error_with_help("bad-token", agent.span, message, help);
    false
}

/// Whether a text is a product token: letters, digits, blanks and `-_.!+`, without blanks at its
/// ends.
pub fn is_token(text: &str) -> bool {
    is_plain_word(text, MAX_TOKEN, " -_.!+") && text.trim() == text
}

/// Adds an error for each `extends` that leads to no group, or in a circle.
fn check_extends(groups: &[GroupPolicy], decoder: &Decoder) {
    for (index, group) in groups.iter().enumerate() {
        let Some(extends) = &group.extends else {
            continue;
        };
        let first = extended_group(groups, group);
        // Following the chain for as many steps as there are groups finds every circle.
        let mut chain = iter::successors(first, |next| extended_group(groups, &groups[*next]))
            .take(groups.len());
        if first.is_none() {
            let known = groups
                .iter()
                .flat_map(|group| &group.agents)
                .map(|agent| agent.as_str());
            let help = match nearest_word(extends, known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "write a token of another group of this file, or \"*\"".to_owned(),
            };
            decoder.error_with_help(
                "unknown-group",
                extends.span,
                format!("no group of this file names \"{}\"", extends.value),
                help,
            );
        } else if chain.any(|next| next == index) {
            decoder.error(
                "circular-extends",
                extends.span,
                "this group extends itself",
            );
        }
    }
}

/// The index of the group that a group extends.
fn extended_group(groups: &[GroupPolicy], group: &GroupPolicy) -> Option<usize> {
    let token = &group.extends.as_ref()?.value;
    groups.iter().position(|group| group.names_agent(token))
}

/// Decodes one absolute URL, or a list.
fn sitemaps(node: NodeReader<'_>) -> Vec<Located<String>> {
    node.texts_where("a list of URLs", |decoder, url| {
        let is_valid = is_sitemap(url);
        if !is_valid {
            decoder.error_with_help(
                "bad-sitemap",
                url.span,
                format!("\"{}\" is not an absolute URL", url.value),
                "write the full URL, like \"https://shop.example/sitemap.xml\"",
            );
        }
        is_valid
    })
}

/// Reports sitemaps of each host where the policy does not name each host.
pub fn check_sitemap_hosts(policy: &Policy, decoder: &Decoder) {
    if !policy.hosts.is_empty() && !policy.hosts.iter().any(|host| host.wildcard) {
        return;
    }
    for url in &policy.robots.sitemaps {
        if url.contains(HOST_PLACEHOLDER) {
            decoder.error_with_help(
                "bad-sitemap",
                url.span,
                format!(
                    "\"{HOST_PLACEHOLDER}\" stands for each host of the policy, but \"hosts\" \
                     does not list full names"
                ),
                "list each host in \"hosts\", without \"*\"; or write the URLs of the sitemaps",
            );
        }
    }
}

/// Whether a text is an http or https URL with a host and without blanks.
pub fn is_sitemap(url: &str) -> bool {
    strip_http_scheme(url).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !url
            .chars()
            .any(|sign| sign.is_control() || sign.is_whitespace())
}
