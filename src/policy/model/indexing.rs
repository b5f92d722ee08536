//! [`IndexingRule`], [`HtmlPolicy`] and [`RetirePolicy`]: three checked sections of a policy.
//! `indexing` gives responses their X-Robots-Tag, `html` writes metas into HTML pages, and `retire`
//! takes paths out of search engines in two steps.

use super::Defaulted;
use crate::indexing::{Scope, Tags};
use crate::time::Timestamp;
use crate::yaml::{Located, Span};
use std::time::Duration;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// One rule of `indexing`: conditions that must all hold, and the directives for responses that
/// meet them.
#[derive(Clone, Debug)]
pub struct IndexingRule {
    /// The conditions.
    pub when: Conditions,
    /// None of these may hold: `not` excludes a response for which all of its own conditions hold.
    pub unless: Option<Conditions>,
    /// The directives.
    pub tags: Tags,
    /// The directives as they were written, for lints.
    pub written: Vec<WrittenDirectives>,
    /// The treatment of the origin's own tags where this rule matches; that of the site when
    /// absent.
    pub origin_tags: Option<OriginTags>,
    /// The whole rule.
    pub span: Span,
}

impl IndexingRule {
    /// The texts for a scope, in the order of the file.
    pub fn texts_for<'r>(&'r self, scope: &'r Scope) -> impl Iterator<Item = &'r Located<String>> {
        let written = self.written.iter();
        written
            .filter(move |written| written.scope == *scope)
            .map(|written| &written.text)
    }
}

/// Directives as the owner wrote them, for which crawlers, and where.
#[derive(Clone, Debug)]
pub struct WrittenDirectives {
    /// The crawlers that they are for.
    pub scope: Scope,
    /// The text.
    pub text: Located<String>,
}

/// Paths that are first to be crawled with noindex, and later not to be crawled. See
/// [`RetirePolicy::stage`].
#[derive(Clone, Debug)]
pub struct RetirePolicy {
    /// robots patterns.
    pub paths: Vec<Located<String>>,
    /// From when they are noindex.
    pub noindex_from: Located<Timestamp>,
    /// How long after `noindex_from` they are disallowed.
    pub disallow_after: Defaulted<Duration>,
    /// The whole entry.
    pub span: Span,
}

/// Conditions on a response; an empty list does not restrict.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// robots patterns on path and query; one must match.
    pub paths: Vec<Located<String>>,
    /// A regular expression on the path without the query, already known to compile.
    pub path_regex: Option<Located<String>>,
    /// Media types, lower case: `application/pdf`, `image/*`.
    pub types: Vec<Located<String>>,
    /// Status codes.
    pub status: Vec<Located<StatusCondition>>,
}

/// A status, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCondition {
    /// `404`.
    Code(u16),
    /// `4xx`.
    Class(u8),
}

/// The treatment of the origin's own X-Robots-Tag. The variants stand in order: the first passes
/// most of it on.
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
pub enum OriginTags {
    /// Its lines stay as they are, ours are added.
    Keep,
    /// United with ours; per scope the most restrictive value wins.
    #[default]
    Merge,
    /// Ours stand in its place where a rule of ours matches.
    Replace,
    /// Never passed on.
    Strip,
}

/// The changes to HTML pages; none unless the policy asks for them.
#[derive(Clone, Debug, Default)]
pub struct HtmlPolicy {
    /// Whether robots metas say what the X-Robots-Tag field says.
    pub meta: bool,
    /// Only pages of these paths, where there are any: robots patterns.
    pub paths: Vec<Located<String>>,
    /// No pages of these paths.
    pub not_paths: Vec<Located<String>>,
}
