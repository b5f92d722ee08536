//! [`compile`] makes a [`Site`] of a checked [`Policy`]. [`compile_with_origin`] also takes the
//! robots.txt of the origin (the web server behind crawlgate), because a policy is merged with it
//! unless the policy says otherwise.
//!
//! The [`Site`] has one document of groups and rules. The served robots.txt is rendered from it,
//! and requests are judged by it, so the two cannot differ.

mod allow_conflicts;
mod budget;
mod crawler_rules;
mod draft;
mod merge;
mod origin_rules;
mod published_urls;
mod registry_overrides;
pub(super) mod signals;
mod synthesis;
mod tags;

pub(super) use origin_rules::unknown_keys;

use super::model::{BehindCache, Policy, PreviousRobots};
use super::origin::{Origin, OriginFile};
use super::site::{DeclaredPrevious, FrontPage, HtmlRules, RobotsTxt, Site, SitePages, Version};
use crate::crawlers::Registry;
use crate::robots::{MAX_BYTES, Matcher, Pattern, Rule, RuleSet};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Diagnostics};
use std::sync::Arc;

/// The error for a policy that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the policy cannot be compiled")]
pub struct CompileError {
    /// The mistakes.
    pub diagnostics: Diagnostics,
}

impl From<Diagnostic> for CompileError {
    fn from(mistake: Diagnostic) -> CompileError {
        let items = vec![mistake];
        CompileError {
            diagnostics: Diagnostics { items },
        }
    }
}

/// Compiles a policy as it is before any pause or retirement begins, without the origin's file.
///
/// # Errors
/// See [`compile_with_origin`].
pub fn compile(policy: Arc<Policy>, registry: &Registry) -> Result<Site, CompileError> {
    compile_with_origin(policy, &Origin::Unknown, registry, Timestamp(i64::MIN))
}

/// Compiles a policy as it is at a moment, with the origin's own robots.txt where the policy asks
/// for it; the site holds until [`Site::next_switch`]. Renders its robots.txt, prepares matching,
/// crawler rules, answers and tag plans. Runs neither the policy's tests nor the interlocks.
///
/// # Errors
/// When the file would pass 500 KiB, which is all that a crawler has to read (RFC 9309 section
/// 2.5), or the origin's file is more than can be merged.
pub fn compile_with_origin(
    policy: Arc<Policy>,
    origin: &Origin,
    registry: &Registry,
    at: Timestamp,
) -> Result<Site, CompileError> {
    let origin_file = origin.file().filter(|_| policy.reads_origin());
    let file = origin_file.map(Arc::as_ref);

    let synthesis::Synthesis {
        document,
        body,
        group_sources,
        rule_sources,
        origin_tokens,
        left_out,
        unpublished_lines,
    } = synthesis::synthesise(&policy, file, registry, at)
        .map_err(|too_much| too_much_to_merge(file, too_much))?;
    if body.len() > MAX_BYTES {
        return Err(too_large(&policy, file, body.len()).into());
    }
    let matcher = Matcher::new(&document);
    let mut unlisted = crawler_rules::unlisted_tokens(&policy, registry);
    crawler_rules::add_origin_tokens(&mut unlisted, &origin_tokens, registry);
    let tokens = registry_overrides::site_markers(&policy, registry, unlisted);
    let crawler_rules::Compiled {
        crawler_rules,
        answers,
        google_rules,
    } = crawler_rules::compile(&policy, registry, &document, &matcher, &tokens);
    let traps = policy.enforcement.traps.iter().map(|trap| Rule {
        allow: false,
        pattern: Pattern::new(trap),
    });
    let signals = signals::signal_plan(&policy, &document);
    Ok(Site {
        name: policy.name.clone(),
        robots_txt: robots_txt(&policy, origin, body),
        origin: origin_file.cloned(),
        left_out,
        unpublished_lines,
        document,
        matcher,
        google_rules,
        rule_sources,
        group_sources,
        answers,
        pages: SitePages::new(&policy.answers),
        previous: declared_previous(&policy, file),
        signals,
        tags: tags::tag_plan(&policy, at),
        at,
        next_switch: policy.next_switch(at),
        front_page: FrontPage::default(),
        origin_tags: policy.origin_tags,
        html: HtmlRules::new(&policy.html),
        grace: policy.enforcement.grace.value,
        behind_cache: match policy.enforcement.behind_cache {
            None | Some(BehindCache::No) => None,
            Some(BehindCache::AsLongAsMaxAge) => Some(policy.robots.max_age.value),
            Some(BehindCache::For(kept)) => Some(kept),
        },
        perhaps_behind_cache: policy.enforcement.behind_cache.is_none(),
        traps: RuleSet::new(traps.collect()),
        networks: registry_overrides::networks(&policy, registry, &tokens),
        tokens,
        crawler_rules,
        policy,
    })
}

fn declared_previous(policy: &Policy, origin: Option<&OriginFile>) -> Option<DeclaredPrevious> {
    match policy.robots.previous.as_ref()? {
        PreviousRobots::File(file) => file.bytes.clone().map(DeclaredPrevious::File),
        PreviousRobots::Origin(_) => Some(DeclaredPrevious::Origin(
            origin.map(|origin| origin.file.bytes().clone()),
        )),
    }
}

/// The served file with its version, ETag and Cache-Control. While the origin's copy is awaited and
/// the policy uses it, `awaits_origin_until` says until when the file is not served.
fn robots_txt(policy: &Policy, origin: &Origin, body: String) -> RobotsTxt {
    let version = Version::of(body.as_bytes());
    RobotsTxt {
        body: body.into_bytes().into(),
        version,
        etag: format!("\"{version}\""),
        cache_control: format!("public, max-age={}", policy.robots.max_age.value.as_secs()),
        awaits_origin_until: match origin {
            Origin::Awaited { until } if policy.reads_origin() => Some(*until),
            _ => None,
        },
    }
}

/// The error for a file of `size` bytes, which is too large. It blames the origin's file if that is
/// not empty, because the policy adds little to it; otherwise it points at the section `robots`.
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
        None => Diagnostic::error(
            "robots-txt-too-large",
            policy.robots.span.unwrap_or_default(),
            format!(
                "this robots.txt would have {size} bytes: more than 500 KiB ({MAX_BYTES} bytes)"
            ),
        )
        .help("crawlers read 500 KiB and may ignore the rest; use fewer, wider patterns"),
    }
}

/// The help where the origin's file is too large.
const FEWER: &str = "have the origin use fewer, wider patterns and fewer groups, or write `robots: { origin: replace }`";

/// The error for an origin's file that is beyond the bounds of merging, with the file's location
/// and its numbers of rules and tokens.
fn too_much_to_merge(
    origin: Option<&OriginFile>,
    budget::TooMuch { rules, crawlers }: budget::TooMuch,
) -> Diagnostic {
    let place = origin.map_or_else(String::new, |origin| format!(", {},", origin.location));
    Diagnostic::whole_file(
        "robots-txt-too-large",
        format!("the origin's robots.txt{place} has more rules ({rules}) and tokens ({crawlers}) than can be merged"),
    )
    .help(FEWER)
}
