//! [`compile`] turns a decoded [`Policy`] into a [`Site`]. A site has the robots.txt that crawlgate
//! serves, and the rules by which it judges requests. Both are made from the same groups, so the
//! published rules and the enforced rules cannot differ. [`compile_with_origin`] can also merge the
//! policy with the robots.txt of the origin (the web server behind crawlgate).

mod allow_conflicts;
mod assemble;
mod budget;
mod compose;
mod crawler_rules;
mod draft;
mod merge;
mod origin_rules;
mod registry_overrides;
pub(super) mod signals;
mod tags;
mod url_rewriter;

pub(super) use origin_rules::lines_with_unknown_keys;

use super::model::{FrontCacheLifetime, Policy, PreviousRobots};
use super::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use super::site::{
    FrontPageStatus, PreviousRobotsTxt, RobotsMetaPaths, RobotsTxt, RobotsVersionId, Site,
    SiteAnswerPages,
};
use crate::crawlers::Registry;
use crate::robots::{GroupMatcher, MAX_ROBOTS_BYTES, Rule, RuleSet};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Diagnostics};
use std::sync::Arc;

/// The error for a policy that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the policy cannot be compiled")]
pub struct CompileError {
    /// Why.
    pub diagnostics: Diagnostics,
}

impl From<Diagnostic> for CompileError {
    fn from(mistake: Diagnostic) -> CompileError {
        CompileError {
            diagnostics: Diagnostics {
                items: vec![mistake],
            },
        }
    }
}

/// Compiles a policy without the origin's file, as it is before any retirement begins.
///
/// # Errors
/// See [`compile_with_origin`].
pub fn compile(policy: Arc<Policy>, registry: &Registry) -> Result<Site, CompileError> {
    compile_with_origin(
        policy,
        &OriginRobotsAvailability::Missing,
        registry,
        Timestamp(i64::MIN),
    )
}

/// Compiles a policy as it is at `at`, with the origin's own robots.txt if the policy uses it. The
/// result holds until [`Site::next_switch`]. Neither the policy's tests nor the lints run here.
///
/// # Errors
/// When the robots.txt would exceed 500 KiB, which is all that a crawler must read (RFC 9309
/// section
/// 2.5), or the origin's file is too large to be merged.
pub fn compile_with_origin(
    policy: Arc<Policy>,
    origin: &OriginRobotsAvailability,
    registry: &Registry,
    at: Timestamp,
) -> Result<Site, CompileError> {
    let origin_file = origin.file().filter(|_| policy.reads_origin());
    let file = origin_file.map(Arc::as_ref);

    let assemble::ComposedRobots {
        document,
        body,
        group_sources,
        rule_sources,
        delay_sources,
        origin_tokens,
        dropped_rules,
        unpublished_lines,
    } = compose::compose(&policy, file, registry, at)?;
    if body.len() > MAX_ROBOTS_BYTES {
        return Err(too_large_error(&policy, file, body.len()).into());
    }
    let matcher = GroupMatcher::new(&document);
    let unlisted = crawler_rules::unlisted_tokens(&policy, &origin_tokens, registry);
    let tokens = registry_overrides::site_markers(&policy, registry, unlisted);
    let (crawler_rules, answers, google_rules) =
        crawler_rules::compile_crawler_rules(&policy, registry, &document, &matcher, &tokens);
    let traps = policy
        .enforcement
        .traps
        .iter()
        .map(|trap| Rule::new(false, trap));
    let signals = signals::signal_plan(&policy, &document);
    Ok(Site {
        name: policy.name.clone(),
        robots_txt: robots_txt(&policy, origin, body),
        origin: origin_file.cloned(),
        dropped_rules,
        unpublished_lines,
        document,
        matcher,
        google_rules,
        rule_sources,
        delay_sources,
        group_sources,
        answers,
        pages: SiteAnswerPages::new(&policy.answers),
        previous: declared_previous(&policy, file),
        signals,
        tags: tags::tag_plan(&policy, at),
        at,
        next_switch: policy.next_switch(at),
        front_page: FrontPageStatus::default(),
        origin_tags: policy.origin_tags,
        html: RobotsMetaPaths::new(&policy.html),
        grace: policy.enforcement.grace.value,
        behind_cache: match policy.enforcement.behind_cache {
            None | Some(FrontCacheLifetime::No) => None,
            Some(FrontCacheLifetime::AsLongAsMaxAge) => Some(policy.robots.max_age.value),
            Some(FrontCacheLifetime::For(kept)) => Some(kept),
        },
        perhaps_behind_cache: policy.enforcement.behind_cache.is_none(),
        traps: RuleSet::new(traps.collect()),
        networks: registry_overrides::crawler_networks(&policy, registry, &tokens),
        tokens,
        crawler_rules,
        policy,
    })
}

fn declared_previous(
    policy: &Policy,
    origin: Option<&OriginRobotsTxt>,
) -> Option<PreviousRobotsTxt> {
    match policy.robots.previous.as_ref()? {
        PreviousRobots::File(file) => file.bytes.clone().map(PreviousRobotsTxt::File),
        PreviousRobots::Origin(_) => Some(PreviousRobotsTxt::Origin(
            origin.map(|origin| origin.file.bytes().clone()),
        )),
    }
}

/// The served file with its version, ETag and Cache-Control.
fn robots_txt(policy: &Policy, origin: &OriginRobotsAvailability, body: String) -> RobotsTxt {
    let version = RobotsVersionId::from_body(body.as_bytes());
    RobotsTxt {
        body: body.into_bytes().into(),
        version,
        etag: format!("\"{version}\""),
        cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
        awaits_origin_until: match origin {
            OriginRobotsAvailability::Awaited { until } if policy.reads_origin() => Some(*until),
            _ => None,
        },
    }
}

/// The error for a file of `size` bytes, which is too large. It is about the origin's file if there
/// is one, because the policy adds little to it; otherwise about the section `robots`.
fn too_large_error(policy: &Policy, origin: Option<&OriginRobotsTxt>, size: usize) -> Diagnostic {
    match origin.filter(|origin| !origin.file.bytes().is_empty()) {
        Some(origin) => {
            let theirs = origin.file.bytes().len();
            let message = format!(
                "with the rules of {} ({theirs} bytes), robots.txt would have {size} bytes. \
                 Crawlers read 500 KiB ({MAX_ROBOTS_BYTES} bytes)",
                origin.location
            );
            Diagnostic::whole_file("robots-txt-too-large", message).help(FEWER_RULES)
        }
        None => Diagnostic::error(
            "robots-txt-too-large",
            policy.robots.span.unwrap_or_default(),
            format!(
                "this robots.txt would have {size} bytes: more than 500 KiB ({MAX_ROBOTS_BYTES} \
                 bytes)"
            ),
        )
        .help("crawlers read 500 KiB and may ignore the rest; use fewer, wider patterns"),
    }
}

const FEWER_RULES: &str = "use fewer, wider patterns and fewer groups in the origin's file, or \
                           write \"robots: { origin: replace }\"";
