//! [`compile`] makes a [`Site`] of a checked [`Policy`].
//!
//! One document is both rendered as robots.txt and matched. So the served bytes and the verdicts cannot differ.

mod allow_conflicts;
mod budget;
mod crawler_rules;
mod draft;
mod html;
mod merge;
mod origin_rules;
mod registry_overrides;
pub(super) mod signals;
mod synthesis;
mod tags;

pub(super) use origin_rules::unknown_keys;

use super::model::PreviousRobots;
use super::model::{BehindCache, Policy};
use super::origin::{Origin, OriginFile};
use super::site::{CrawlerRulesTable, DeclaredPrevious, FrontPage, RobotsTxt, Site, SitePages, Version};
use crate::crawlers::Registry;
use crate::robots::{MAX_BYTES, Matcher, Pattern, Rule, RuleSet};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Diagnostics};
use std::sync::Arc;
use std::time::Duration;

/// The error for a policy that cannot be compiled.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the policy cannot be compiled")]
pub struct CompileError {
    /// The mistakes.
    pub diagnostics: Diagnostics,
}

/// Compiles a policy as it is before any of its retirements begins. See [`compile_at`].
///
/// # Errors As for [`compile_at`].
pub fn compile(policy: Arc<Policy>, registry: &Registry) -> Result<Site, CompileError> {
    compile_at(policy, registry, Timestamp(i64::MIN))
}

/// Compiles a policy as it is at a moment; the site holds until [`Site::next_switch`]. Renders its robots.txt, prepares
/// matching, crawler rules, answers and tag plans. Runs neither the policy's tests nor the interlocks.
///
/// # Errors
/// When the file would pass 500 KiB, which is all that a crawler has to read (RFC 9309 section 2.5), or the origin's
/// file is more than can be merged.
pub fn compile_at(policy: Arc<Policy>, registry: &Registry, at: Timestamp) -> Result<Site, CompileError> {
    compile_with_origin(policy, &Origin::Unknown, registry, at)
}

/// [`compile_at`], with the origin's own robots.txt where the policy asks for it.
///
/// # Errors
/// See [`compile_at`].
pub fn compile_with_origin(
    policy: Arc<Policy>,
    origin: &Origin,
    registry: &Registry,
    at: Timestamp,
) -> Result<Site, CompileError> {
    let origin_file = origin.file().filter(|_| policy.reads_origin());
    let synthesis::Synthesis { document, body, group_sources, rule_sources, origin_tokens, left_out } =
        match synthesis::synthesise(&policy, origin_file.map(|file| &**file), registry, at) {
            Ok(synthesis) => synthesis,
            Err(too_much) => return Err(too_much_to_merge(origin_file.map(|file| &**file), too_much)),
        };
    if body.len() > MAX_BYTES {
        let diagnostic = too_large(&policy, origin_file.map(|file| &**file), body.len());
        return Err(CompileError { diagnostics: Diagnostics { items: vec![diagnostic] } });
    }
    let matcher = Matcher::new(&document);
    let mut unlisted = crawler_rules::unlisted_tokens(&policy, registry);
    let checked = unlisted.len();
    crawler_rules::add_origin_tokens(&mut unlisted, &origin_tokens, registry);
    let tokens = registry_overrides::site_markers(&policy, registry, unlisted).checked_up_to(checked);
    let (crawler_rules, answers) = CrawlerRulesTable::new(&policy, registry, &document, &matcher, &tokens);
    let traps = policy.enforcement.traps.iter();
    let traps = traps.map(|trap| Rule { allow: false, pattern: Pattern::new(&trap.value) }).collect();
    let version = Version::of(body.as_bytes());
    let signals = signals::signal_plan(&policy, &document);
    Ok(Site {
        name: policy.name.clone(),
        robots_txt: RobotsTxt {
            body: body.into_bytes().into(),
            version,
            etag: format!("\"{version}\""),
            cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
            awaits_origin_until: awaits_origin_until(&policy, origin),
        },
        origin: origin_file.cloned(),
        left_out,
        document,
        matcher,
        rule_sources,
        group_sources,
        answers,
        pages: SitePages::new(&policy.answers),
        previous: previous(&policy, origin_file),
        signals,
        tags: tags::tag_plan(&policy, at),
        at,
        next_switch: policy.next_switch(at),
        front_page: FrontPage::default(),
        origin_tags: policy.origin_tags,
        html: html::html_rules(&policy.html),
        grace: policy.enforcement.grace.value,
        behind_cache: behind_cache(&policy),
        traps: RuleSet::new(traps),
        networks: registry_overrides::networks(&policy, registry, &tokens),
        tokens,
        crawler_rules,
        policy,
    })
}

/// The robots.txt from before crawlgate, where it is known.
fn previous(policy: &Policy, origin: Option<&Arc<OriginFile>>) -> Option<DeclaredPrevious> {
    match policy.robots.previous.as_ref()? {
        PreviousRobots::File(file) => file.bytes.clone().map(DeclaredPrevious::File),
        PreviousRobots::Origin(_) => Some(DeclaredPrevious::Origin(origin.map(|origin| origin.file.bytes().clone()))),
    }
}

fn awaits_origin_until(policy: &Policy, origin: &Origin) -> Option<Timestamp> {
    match origin {
        Origin::Awaited { until } if policy.reads_origin() => Some(*until),
        _ => None,
    }
}

/// For how long a cache in front may keep robots.txt.
fn behind_cache(policy: &Policy) -> Option<Duration> {
    policy.enforcement.behind_cache.map(|kept| match kept {
        BehindCache::AsLongAsMaxAge => policy.robots.max_age.value,
        BehindCache::For(kept) => kept,
    })
}

/// The error for a file that is too large. Its help depends on the cause: the policy adds little to a large file of the
/// origin.
fn too_large(policy: &Policy, origin: Option<&OriginFile>, size: usize) -> Diagnostic {
    match origin.filter(|origin| !origin.file.bytes().is_empty()) {
        Some(origin) => {
            let theirs = origin.file.bytes().len();
            let message = format!(
                "with the origin's robots.txt, {} ({theirs} bytes), this robots.txt would have {size} bytes: more than the \
                 500 KiB ({MAX_BYTES} bytes) that crawlers read",
                origin.location
            );
            Diagnostic::whole_file("robots-txt-too-large", message).help(FEWER)
        }
        None => {
            let message = format!("this robots.txt would have {size} bytes: more than 500 KiB ({MAX_BYTES} bytes)");
            Diagnostic::error("robots-txt-too-large", policy.robots.span.unwrap_or_default(), message)
                .help("crawlers read 500 KiB and may ignore the rest; use fewer, wider patterns")
        }
    }
}

/// The help where the origin's file is too large.
const FEWER: &str =
    "have the origin use fewer, wider patterns and fewer groups, or write `robots: { origin: replace }`";

fn too_much_to_merge(
    origin: Option<&OriginFile>,
    budget::TooMuch { rules, crawlers }: budget::TooMuch,
) -> CompileError {
    let place = origin.map_or_else(String::new, |origin| format!(", {},", origin.location));
    let message =
        format!("the origin's robots.txt{place} has more rules ({rules}) and tokens ({crawlers}) than can be merged");
    let diagnostic = Diagnostic::whole_file("robots-txt-too-large", message).help(FEWER);
    CompileError { diagnostics: Diagnostics { items: vec![diagnostic] } }
}
