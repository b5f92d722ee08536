//! The sections of a policy, decoded: one file per section. Each decoder complains and goes on, and gives what it could
//! make out, so that later checks still run.

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
pub use robots::is_token;
pub use signals::{is_category, url_mistake};

use super::model::{Acknowledgement, Environment, OriginRobots, Policy, Stance};
use crate::crawlers::Purpose;
use crate::yaml::{Decoder, Located, Node, Source};
use std::collections::BTreeMap;

/// Decodes a whole file.
pub fn policy(name: &str, source: &Source, root: &Node, decoder: &mut Decoder<'_>) -> Option<Policy> {
    let mut fields = decoder.fields(root, "a map of fields: hosts, robots, indexing, ...")?;

    let environments = [("production", Environment::Production), ("staging", Environment::Staging)];
    let environment = fields.take("environment").and_then(|node| decoder.word(node, &environments, "an environment"));
    let crawls = [("allow", Stance::Allow), ("disallow", Stance::Disallow)];
    let staging_crawl = fields.take_with_key("staging_crawl").and_then(|(key, node)| {
        if environment != Some(Environment::Staging) {
            decoder.error("without-effect", key.span, "`staging_crawl` is only for `environment: staging`").help =
                Some("remove it, or write `environment: staging`".into());
        }
        decoder.word(node, &crawls, "allow or disallow")
    });
    let policy = Policy {
        name: name.to_owned(),
        source: source.clone(),
        hosts: fields.take("hosts").map(|node| hosts::hosts(node, decoder)).unwrap_or_default(),
        environment: environment.unwrap_or_default(),
        staging_crawl: staging_crawl.unwrap_or(Stance::Allow),
        purposes: fields.take("purposes").map(|node| purposes(node, decoder)).unwrap_or_default(),
        robots: robots::robots(fields.take("robots"), decoder),
        indexing: fields.take("indexing").map(|node| indexing::rules(node, decoder)).unwrap_or_default(),
        origin_tags: fields
            .take("origin_tags")
            .and_then(|node| indexing::origin_tags(node, decoder))
            .unwrap_or_default(),
        html: fields.take("html").map(|node| html::html(node, decoder)).unwrap_or_default(),
        retire: fields.take("retire").map(|node| retire::retire(node, decoder)).unwrap_or_default(),
        enforcement: enforcement::enforcement(fields.take("enforcement"), decoder),
        pauses: fields.take("pause").map(|node| pause::pauses(node, decoder)).unwrap_or_default(),
        answers: fields.take("answers").map(|node| answers::answers(node, decoder)).unwrap_or_default(),
        crawlers: fields.take("crawlers").map(|node| crawlers::crawlers(node, decoder)).unwrap_or_default(),
        tdm: fields.take("tdm").map(|node| signals::tdm(node, decoder)).unwrap_or_default(),
        acknowledge: fields.take("acknowledge").map(|node| acknowledge(node, decoder)).unwrap_or_default(),
        tests: fields.take("tests").map(|node| cases::cases(node, decoder)).unwrap_or_default(),
    };
    fields.finish(decoder);
    whole_file(&policy, decoder);
    Some(policy)
}

/// What only the whole file shows.
fn whole_file(policy: &Policy, decoder: &mut Decoder<'_>) {
    signals::whole_file(policy, decoder);
    if policy.robots.origin == OriginRobots::Only
        && let Some(stance) = policy.purposes.values().find(|stance| stance.value != Stance::Inherit)
    {
        let message = "with `origin: only` the origin's file says it all: `purposes` has no effect";
        decoder.error("without-effect", stance.span, message).help = Some("remove it, or write `origin: merge`".into());
    }
    let (grace, max_age) = (policy.enforcement.grace.value, policy.robots.max_age.value);
    if grace < max_age && max_age <= robots::MAX_MAX_AGE {
        let span = policy.enforcement.grace.span.or(policy.robots.max_age.span).unwrap_or_default();
        decoder.error("grace-below-max-age", span, "`grace` is shorter than the `max_age` of robots.txt").help = Some(
            "a crawler may rightly hold the file for as long as max_age says; raise grace or lower max_age".into(),
        );
    }
}

fn purposes(node: &Node, decoder: &mut Decoder<'_>) -> BTreeMap<Purpose, Located<Stance>> {
    let mut purposes = BTreeMap::new();
    let Some(mut fields) = decoder.fields(node, "a map of purposes, like `training: disallow`") else {
        return purposes;
    };
    let stances = [("inherit", Stance::Inherit), ("allow", Stance::Allow), ("disallow", Stance::Disallow)];
    for purpose in Purpose::ALL {
        let Some(node) = fields.take(purpose.name()) else { continue };
        let Some(value) = decoder.word(node, &stances, "a stance") else { continue };
        if matches!(purpose, Purpose::Tool | Purpose::Other) && value != Stance::Inherit {
            decoder
                .error(
                    "purpose-without-tokens",
                    node.span,
                    format!("crawlers of purpose `{}` have no token to publish", purpose.name()),
                )
                .help = Some("they follow `*`; to hold them to it, name them under `enforcement`".into());
            continue;
        }
        purposes.insert(purpose, Located { value, span: node.span });
    }
    fields.finish(decoder);
    purposes
}

fn acknowledge(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<Acknowledgement>> {
    let words = [
        ("site_disallowed", Acknowledgement::SiteDisallowed),
        ("site_noindex", Acknowledgement::SiteNoindex),
        ("long_pause", Acknowledgement::LongPause),
    ];
    let items = decoder.one_or_many(node, "a list of what is done on purpose");
    items
        .iter()
        .filter_map(|item| {
            decoder.word(item, &words, "something to acknowledge").map(|value| Located { value, span: item.span })
        })
        .collect()
}
