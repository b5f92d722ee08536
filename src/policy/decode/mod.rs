//! [`read`] parses a policy file and returns a [`Policy`] in which every value is valid. Each
//! larger section of the policy has its own submodule. A decoder that finds a mistake adds an error
//! and continues, so that one run reports all mistakes.

mod answers;
mod cases;
mod crawlers;
mod enforcement;
mod hosts;
mod html;
mod indexing;
mod patterns;
mod pause;
mod retire;
mod robots;
mod signals;

pub use hosts::parse_host;
pub use patterns::MAX_PATTERN;
pub use robots::{is_comment, is_sitemap, is_token};
pub use signals::url_mistake;

use super::model::{Acknowledgement, CrawlStance, Environment, OriginRobotsMode, Policy};
use crate::crawlers::Purpose;
use crate::yaml::{Decoder, Diagnostic, Diagnostics, Located, MapFields, NodeReader, SourceFile};
use CrawlStance::*;
use std::collections::BTreeMap;

/// Reads one policy file. There is a policy only if no error was found; warnings leave it usable.
///
/// ```
/// use crawlgate::{internals::policy, yaml::SourceFile};
/// let source = SourceFile { name: "shop.yaml".into(), text: "robots: { origin: replace }\nhots: [shop.example]\n".into() };
/// let (policy, findings) = policy::read("shop", &source);
/// assert!(policy.is_none());
/// assert_eq!(findings.items[0].help.as_deref(), Some("did you mean \"hosts\"?"));
/// ```
pub fn read(name: &str, source: &SourceFile) -> (Option<Policy>, Diagnostics) {
    crate::yaml::decode_file(source, "", |decoder, root| match root {
        Some(root) => policy(name, source, root),
        None => {
            decoder.push(
                Diagnostic::whole_file("empty-policy", "the policy is empty").help(
                    "the shortest policy is \"robots: { groups: [{ agents: '*', disallow: \
                     /private/ }] }\"",
                ),
            );
            None
        }
    })
}

/// Decodes a whole file. `None` only if it is no map; after other errors [`read`] drops the policy.
fn policy(name: &str, source: &SourceFile, root: NodeReader<'_>) -> Option<Policy> {
    let policy = root.decode_map("a map of fields: hosts, robots, indexing, ...", |fields| {
        report_misplaced(fields);
        let environment = fields
            .variant("environment", "an environment")
            .unwrap_or_default();
        let staging_crawl = staging_crawl(fields, environment);
        Policy {
            name: name.to_owned(),
            source: source.clone(),
            defaults: source.defaults(),
            hosts: fields.get_or_default("hosts", hosts::hosts),
            environment,
            staging_crawl,
            purposes: fields.get_or_default("purposes", purposes),
            robots: robots::robots(fields),
            indexing: fields.get_or_default("indexing", indexing::rules),
            origin_tags: fields
                .variant("origin_tags", "a value of \"origin_tags\"")
                .unwrap_or_default(),
            html: fields.get_or_default("html", html::html),
            retire: fields.get_or_default("retire", retire::retire),
            enforcement: fields.section(
                "enforcement",
                "a map: mode, disallowed, traps, purposes, agents, ...",
                enforcement::enforcement,
            ),
            pauses: fields.get_or_default("pause", pause::pauses),
            answers: fields.section(
                "answers",
                "a map: pause, failure, refusal",
                answers::answers,
            ),
            crawlers: fields.get_or_default("crawlers", crawlers::crawlers),
            tdm: fields.get_or_default("tdm", signals::tdm),
            acknowledge: fields.get_or_default("acknowledge", acknowledge),
            tests: fields.get_or_default("tests", cases::policy_tests),
        }
    })?;
    check_sections(&policy, root.decoder);
    Some(policy)
}

/// Says where fields belong that stand at the top by mistake.
fn report_misplaced(fields: &mut MapFields<'_>) {
    for (section, names) in [
        (
            "enforcement",
            ["agents", "behind_cache", "exempt", "grace", "mode"],
        ),
        (
            "robots",
            ["groups", "license", "origin", "previous", "sitemaps"],
        ),
    ] {
        for name in names {
            if let Some((key, _)) = fields.foreign_field(name) {
                key.error_with_help(
                    "unknown-field",
                    format!("there is no field \"{name}\" here"),
                    format!("it belongs in \"{section}\": write {section}: {{ {name}: ... }}"),
                );
            }
        }
    }
}

/// Decodes `staging_crawl`. It is an error in a production policy.
fn staging_crawl(fields: &mut MapFields<'_>, environment: Environment) -> CrawlStance {
    if let Some((key, _)) = fields.field_with_key("staging_crawl")
        && environment != Environment::Staging
    {
        key.error_with_help(
            "without-effect",
            "\"staging_crawl\" has an effect only with \"environment: staging\"",
            "remove it, or write \"environment: staging\"",
        );
    }
    let words = [("allow", Allow), ("disallow", Disallow)];
    fields
        .word("staging_crawl", &words, "allow or disallow")
        .unwrap_or(Allow)
}

/// Checks what needs several sections.
fn check_sections(policy: &Policy, decoder: &Decoder) {
    robots::check_sitemap_hosts(policy, decoder);
    if policy.robots.origin == OriginRobotsMode::Only
        && let Some(stance) = policy
            .purposes
            .values()
            .find(|stance| stance.value != Inherit)
    {
        decoder.error_with_help(
            "without-effect",
            stance.span,
            "with \"origin: only\" all rules come from the origin's file: \"purposes\" has no \
             effect",
            robots::REMOVE,
        );
    }
    let grace = policy.enforcement.grace;
    // The default of `grace` is the most that `max_age` can be, so `grace` is written here.
    if grace.value < policy.robots.max_age.value {
        decoder.error_with_help(
            "grace-below-max-age",
            grace.span,
            "\"grace\" is shorter than the \"max_age\" of robots.txt",
            "a crawler may keep the file for \"max_age\"; make \"grace\" longer or \"max_age\" \
             shorter",
        );
    }
}

/// Decodes a map from purposes to stances. The purposes `tool` and `other` have no token to
/// publish, so they can only inherit.
fn purposes(node: NodeReader<'_>) -> BTreeMap<Purpose, Located<CrawlStance>> {
    let mut purposes = BTreeMap::new();
    node.decode_map("a map of purposes, like \"training: disallow\"", |fields| {
        for purpose in Purpose::ALL {
            let Some(stance) = fields.located(purpose.name(), |node| {
                node.variant("a value of \"purposes\"")
            }) else {
                continue;
            };
            if matches!(purpose, Purpose::Tool | Purpose::Other)
                && stance.value != Inherit
            {
                fields.decoder.error_with_help(
                    "purpose-without-tokens",
                    stance.span,
                    format!(
                        "no crawler of the purpose \"{}\" has a token for robots.txt",
                        purpose.name()
                    ),
                    "such clients follow \"*\"; to enforce rules for them, name them under \"enforcement\"",
                );
                continue;
            }
            purposes.insert(purpose, stance);
        }
    });
    purposes
}

/// Adds an error for each name that is repeated, without regard to case. `mistake` is its id, its
/// message after the name, and what to do.
fn report_repeated<'a>(
    names: impl Iterator<Item = &'a Located<String>>,
    mistake: [&'static str; 3],
    decoder: &Decoder,
) {
    let [id, message, help] = mistake;
    let mut seen: Vec<&Located<String>> = Vec::new();
    for name in names {
        match seen.iter().find(|first| first.eq_ignore_ascii_case(name)) {
            Some(first) => decoder.duplicate(
                id,
                [name.span, first.span],
                format!("\"{}\" {message}", name.value),
                help,
            ),
            None => seen.push(name),
        }
    }
}

/// Decodes the findings that the owner accepts: one word, or a list.
fn acknowledge(node: NodeReader<'_>) -> Vec<Located<Acknowledgement>> {
    node.one_or_many("a list of findings that are meant")
        .filter_map(|item| {
            Some(Located {
                value: item.variant("a value of \"acknowledge\"")?,
                span: item.span,
            })
        })
        .collect()
}
