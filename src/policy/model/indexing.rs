//! Three decoded sections of a policy. `indexing` ([`IndexingRule`]) gives responses their
//! X-Robots-Tag. `html` ([`HtmlPolicy`]) writes robots meta tags into HTML pages. `retire`
//! ([`RetirePolicy`]) takes paths out of search engines: first by `noindex`, later by robots.txt.

use crate::indexing::{RobotsTags, TagScope};
use crate::time::Timestamp;
use crate::yaml::{Located, SourceSpan};
use std::time::Duration;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// One rule of `indexing`: directives for the responses that meet all of its conditions.
#[derive(Clone, Debug, Default)]
pub struct IndexingRule {
    pub when: ResponseConditions,
    /// The key `not`: a response that meets all of these conditions is excluded.
    pub unless: Option<ResponseConditions>,
    /// The directives, by crawler.
    pub tags: RobotsTags,
    /// The directives as they were written, for lints.
    pub written: Vec<WrittenDirectives>,
    /// How the origin's own tags are treated where this rule matches; when absent, as the site
    /// says.
    pub origin_tags: Option<OriginTagsMode>,
    /// The whole rule.
    pub span: SourceSpan,
}

impl IndexingRule {
    /// The written texts for a scope, in the order of the file.
    pub fn texts_for<'r>(
        &'r self,
        scope: &'r TagScope,
    ) -> impl Iterator<Item = &'r Located<String>> {
        self.written
            .iter()
            .filter(move |written| written.scope == *scope)
            .map(|written| &written.text)
    }
}

/// Directives as the owner wrote them.
#[derive(Clone, Debug)]
pub struct WrittenDirectives {
    /// The crawlers that they are for.
    pub scope: TagScope,
    pub text: Located<String>,
}

/// One entry of `retire`: paths that stay crawlable with noindex first, and are disallowed later.
/// See [`RetirePolicy::stage`].
#[derive(Clone, Debug)]
pub struct RetirePolicy {
    /// Path patterns.
    pub paths: Vec<Located<String>>,
    /// When noindex begins.
    pub noindex_from: Located<Timestamp>,
    /// How long after `noindex_from` they are disallowed.
    pub disallow_after: Duration,
    /// The whole entry.
    pub span: SourceSpan,
}

/// Conditions on a response; an empty list does not restrict.
#[derive(Clone, Debug, Default)]
pub struct ResponseConditions {
    /// Patterns on path and query; one must match.
    pub paths: Vec<Located<String>>,
    /// A valid regular expression on the path without the query.
    pub path_regex: Option<Located<String>>,
    /// Media types, lower case: `application/pdf`, `image/*`.
    pub types: Vec<Located<String>>,
    /// Status codes.
    pub status: Vec<Located<StatusCondition>>,
}

/// A status code, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatusCondition {
    /// `404`.
    Code(u16),
    /// `4xx`.
    Class(u8),
}

/// How the origin's own X-Robots-Tag is treated. The variants are ordered: each passes less of it
/// on than the one before.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum OriginTagsMode {
    /// Its lines stay, and the policy's are added.
    Keep,
    /// United with the policy's; for each crawler the most restrictive value wins.
    #[default]
    Merge,
    /// Replaced by the policy's where a rule of the policy matches.
    Replace,
    /// Always removed.
    Strip,
}

/// The section `html`.
#[derive(Clone, Debug, Default)]
pub struct HtmlPolicy {
    /// Whether robots metas with the X-Robots-Tag directives are written into pages.
    pub meta: bool,
    /// Patterns: only pages of these paths. Empty for all pages.
    pub paths: Vec<Located<String>>,
    /// Patterns: no pages of these paths.
    pub not_paths: Vec<Located<String>>,
}
