//! [`robots`] decodes the policy section `robots`: the groups, sitemaps and `max_age` of
//! robots.txt, and whether crawlgate merges the origin's own robots.txt with the policy, replaces
//! it, or publishes it alone.

use super::answers::included;
use super::patterns::patterns;
use super::signals;
use crate::policy::model::{Defaulted, GroupPolicy, OriginRobots, PreviousRobots, RobotsPolicy};
use crate::yaml::{Decoder, Fields, Located, Reader, Span, is_word, nearest};
use std::iter;
use std::time::Duration;

/// The default `max_age` of robots.txt: short enough to correct a mistake the same day.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);
/// RFC 9309 section 2.4: crawlers should not use a cached copy for more than 24 hours.
const MAX_MAX_AGE: Duration = Duration::from_secs(86_400);

/// The help for a field that has no effect.
pub const REMOVE: &str = "remove it, or write `origin: merge`";

/// Longer product tokens are garbage.
const MAX_TOKEN: usize = 100;

/// Takes the section `robots` out of the fields of a policy. Without the section everything has its
/// default.
pub fn robots(policy: &mut Fields<'_>) -> RobotsPolicy {
    let span = policy.take("robots").map(|node| node.span);
    let robots = policy.section(
        "robots",
        "a map: origin, groups, sitemaps, max_age, ...",
        section,
    );
    RobotsPolicy { span, ..robots }
}

/// Decodes the fields of the section, except its place (`span`), which the caller sets. With
/// `origin: only` the fields `groups` and `sitemaps` are errors.
fn section(fields: &mut Fields<'_>) -> RobotsPolicy {
    let robots = RobotsPolicy {
        origin: fields
            .variant("origin", "a way to treat the origin's robots.txt")
            .unwrap_or_default(),
        previous: fields.get("previous", previous),
        signals: signals::site(fields),
        groups: fields.get_or_default("groups", groups),
        sitemaps: fields.get_or_default("sitemaps", sitemaps),
        origin_keys: fields.get_or_default("origin_keys", origin_keys),
        max_age: Defaulted::or(fields.located("max_age", max_age), DEFAULT_MAX_AGE),
        span: None,
    };
    check_effects(&robots, fields);
    robots
}

/// Reports what has no effect beside the `origin` that is written.
fn check_effects(robots: &RobotsPolicy, fields: &mut Fields<'_>) {
    const NOT_READ: &str = "with `origin: replace` crawlgate does not read the origin's file";
    let (reason, names): (_, &[_]) = match robots.origin {
        OriginRobots::Merge => return,
        OriginRobots::Replace => (NOT_READ, &["origin_keys"]),
        OriginRobots::Only => (
            "with `origin: only` the origin's file says it all",
            &["groups", "sitemaps"],
        ),
    };
    for name in names {
        if let Some((key, _)) = fields.take_with_key(name) {
            let message = format!("{reason}: `{name}` has no effect");
            key.error_with_help("without-effect", message, REMOVE);
        }
    }
    if let (OriginRobots::Replace, Some(PreviousRobots::Origin(span))) =
        (robots.origin, &robots.previous)
    {
        fields.decoder.error_with_help(
            "without-effect",
            *span,
            format!("{NOT_READ}, so `previous: origin` says nothing"),
            "save the origin's robots.txt beside the policy and name it: `previous: before.txt`",
        );
    }
}

/// Decodes `max_age`. More than 24 hours adds an error, and is returned all the same.
fn max_age(node: Reader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::ZERO..=MAX_MAX_AGE,
        "`max_age` is longer than 24 hours",
        Some("crawlers do not keep a robots.txt longer (RFC 9309 section 2.4)"),
    )
}

/// Decodes `origin_keys`: keys that crawlgate does not know and publishes lines of all the same.
/// (It publishes lines with known keys anyway.) Text that is no key is left out with an error. That
/// the field has no effect with `origin: replace` is reported by [`check_effects`].
fn origin_keys(node: Reader<'_>) -> Vec<Located<String>> {
    node.checked("a list of keys: `Schemamap`, say", |decoder, key| {
        let text = &key.value;
        let is_valid = is_word(text, MAX_TOKEN, "-_");
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

/// Decodes `origin`, or the name of a .txt file beside the policy. [`check_effects`] reports
/// `origin` as an error with `origin: replace`, where crawlgate does not read the origin's file.
fn previous(node: Reader<'_>) -> Option<PreviousRobots> {
    let wanted = "`origin`, or the name of a .txt file beside the policy";
    Some(if node.text(wanted)? == "origin" {
        PreviousRobots::Origin(node.span)
    } else {
        PreviousRobots::File(included(node, "txt")?)
    })
}

/// Decodes the groups, and checks that each token has one group and that `extends` leads to a group
/// and not into a circle.
fn groups(node: Reader<'_>) -> Vec<GroupPolicy> {
    let wanted = [
        "a list of groups, each with agents and rules",
        "a group: agents, allow, disallow, crawl_delay, extends",
    ];
    let groups = node.maps(wanted, |fields| Some(group(fields)));
    one_group_per_token(&groups, node.decoder);
    extends(&groups, node.decoder);
    groups
}

/// Decodes one group. Without `agents` it is an error (at the group's first character), and so is
/// `noindex`, which people write here although robots.txt cannot say it.
fn group(fields: &mut Fields<'_>) -> GroupPolicy {
    match fields.take("agents") {
        Some(list) if list.is_empty() => {
            list.error("group-without-agents", "this list of agents is empty")
        }
        Some(_) => {}
        None => {
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
    }
    if let Some((key, _)) = fields.take_foreign("noindex") {
        // Google ended what little support there was in September 2019.
        key.error_with_help("unknown-field",
            "there is no field `noindex` here",
            "robots.txt cannot say noindex; write a rule under `indexing`: `{ paths: [...], tag: noindex }`",
        );
    }
    GroupPolicy {
        agents: fields.get_or_default("agents", |list| {
            list.checked("a list of product tokens", token)
        }),
        allow: fields.get_or_default("allow", patterns),
        disallow: fields.get_or_default("disallow", patterns),
        crawl_delay: fields.located("crawl_delay", crawl_delay),
        extends: fields.text("extends", "the token of a group of this file"),
        signals: signals::group(fields),
        span: fields.span,
    }
}

fn crawl_delay(node: Reader<'_>) -> Option<Duration> {
    node.duration_within(
        Duration::from_millis(1)..=Duration::from_secs(86_400),
        "`crawl_delay` is more than nothing and at most a day",
        None,
    )
}

/// Whether a text may stand in `agents`: `*` or a token; adds an error otherwise. Real tokens hold
/// digits, blanks, dots and `!` (`Sogou web spider`, `Yahoo! Slurp`); what breaks the line, begins
/// a comment or has a version (`/`) is refused.
fn token(decoder: &Decoder, agent: &Located<String>) -> bool {
    let text = agent.as_str();
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

/// Whether a text is a product token: 1 to 100 of letters, digits, blank and `-_.!+`, without
/// blanks at its ends. `*` is none.
pub fn is_token(text: &str) -> bool {
    is_word(text, MAX_TOKEN, " -_.!+") && text.trim() == text
}

/// Adds an error for each token that is named a second time, in another group or the same, without
/// regard to case.
fn one_group_per_token(groups: &[GroupPolicy], decoder: &Decoder) {
    let mut seen: Vec<&Located<String>> = Vec::new();
    for agent in groups.iter().flat_map(|group| &group.agents) {
        match seen.iter().find(|first| first.eq_ignore_ascii_case(agent)) {
            Some(first) => decoder.duplicate(
                "duplicate-token",
                [agent.span, first.span],
                format!("`{}` is named in two places", agent.value),
                "write one group with all its rules; crawlers differ in how they read two",
            ),
            None => seen.push(agent),
        }
    }
}

/// Adds an error for each `extends` that names an agent of no group, or leads back to its own
/// group.
fn extends(groups: &[GroupPolicy], decoder: &Decoder) {
    for (index, group) in groups.iter().enumerate() {
        let Some(extends) = &group.extends else {
            continue;
        };
        let first = extended(groups, group);
        // Following the chain for as many steps as there are groups finds every circle.
        let mut chain =
            iter::successors(first, |next| extended(groups, &groups[*next])).take(groups.len());
        if first.is_none() {
            let known = groups
                .iter()
                .flat_map(|group| &group.agents)
                .map(|agent| agent.as_str());
            let help = match nearest(extends, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "it names an agent of another group of this file, or \"*\"".to_owned(),
            };
            decoder.error_with_help(
                "unknown-group",
                extends.span,
                format!("no group of this file is for `{}`", extends.value),
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
fn extended(groups: &[GroupPolicy], group: &GroupPolicy) -> Option<usize> {
    let token = &group.extends.as_ref()?.value;
    groups.iter().position(|group| group.is_for(token))
}

/// Decodes sitemaps: one URL, or a list. Those that are not absolute URLs are left out with an
/// error.
fn sitemaps(node: Reader<'_>) -> Vec<Located<String>> {
    node.checked("a list of URLs", |decoder, url| {
        let is_valid = is_sitemap(url);
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

/// Whether a text can stand in `sitemaps`: an http or https URL with a host and without blanks. The
/// scheme is in lower case.
pub fn is_sitemap(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && !url
            .chars()
            .any(|sign| sign.is_control() || sign.is_whitespace())
}
