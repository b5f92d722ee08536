//! A checked policy into a compiled [`Site`].
//!
//! The document that is written here is what is rendered *and* what is matched: the served bytes and the verdicts cannot
//! drift apart.

pub mod hosts;
pub mod own;
pub mod standings;
pub mod synthesis;
pub mod tags;

use super::compiled::{RobotsTxt, Site, Version};
use super::model::{BehindCache, Policy};
use crate::crawlers::Registry;
use crate::robots::{MAX_BYTES, Matcher, Pattern, Rule, RuleSet};
use crate::yaml::{Diagnostic, Diagnostics};
use standings::Standings;
use std::sync::Arc;
use tags::TagPlan;

/// The policy cannot be used; says why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the policy cannot be compiled")]
pub struct CompileError {
    /// What is wrong.
    pub diagnostics: Diagnostics,
}

/// Compiles a policy: renders its robots.txt, prepares matching, standings, answers and tag plans. Runs neither the
/// policy's tests nor the interlocks.
///
/// # Errors
/// When the file would pass 500 KiB, which is all that a crawler has to read (RFC 9309 section 2.5).
pub fn compile(policy: Arc<Policy>, registry: &'static Registry) -> Result<Site, CompileError> {
    let synthesis::Synthesis { document, body, group_sources, rule_sources } = synthesis::synthesise(&policy, registry);
    if body.len() > MAX_BYTES {
        let span = policy.robots.span.unwrap_or_default();
        let size = body.len() / 1024;
        let diagnostic =
            Diagnostic::error("robots-txt-too-large", span, format!("this robots.txt would have {size} KiB"))
                .help("crawlers read 500 KiB and may ignore the rest; use fewer, wider patterns");
        return Err(CompileError { diagnostics: Diagnostics { items: vec![diagnostic] } });
    }
    let matcher = Matcher::new(&document);
    let tokens = own::marks(&policy, registry, standings::unlisted_tokens(&policy, registry));
    let (standings, answers) = Standings::new(&policy, registry, &document, &matcher, &tokens);
    let traps = policy.enforcement.traps.iter();
    let traps = traps.map(|trap| Rule { allow: false, pattern: Pattern::new(&trap.value) }).collect();
    let version = Version::of(body.as_bytes());
    Ok(Site {
        name: policy.name.clone(),
        robots_txt: RobotsTxt {
            body: body.into_bytes().into(),
            version,
            etag: format!("\"{version}\""),
            cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
        },
        document,
        matcher,
        rule_sources,
        group_sources,
        answers,
        tags: TagPlan::new(&policy),
        origin_tags: policy.origin_tags,
        grace: policy.enforcement.grace.value,
        behind_cache: policy.enforcement.behind_cache.map(|kept| match kept {
            BehindCache::AsLongAsMaxAge => policy.robots.max_age.value,
            BehindCache::For(kept) => kept,
        }),
        traps: RuleSet::new(traps),
        networks: own::Networks::new(&policy, registry, &tokens),
        tokens,
        standings,
        policy,
    })
}
