//! The list of all lints, each with its stable id and its severity ([`Lint`]). `docs/lints.md` has
//! a section for each.

use crate::yaml::{Diagnostic, Diagnostics, Severity, SourceSpan};

/// One lint.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// A stable name in kebab-case, which people can search for.
    pub id: &'static str,
    /// An error keeps a policy from being used.
    pub severity: Severity,
}

impl Lint {
    /// A finding at a place, or about the whole file.
    pub fn finding(
        &self,
        span: impl Into<Option<SourceSpan>>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: self.severity,
            span: span.into(),
            ..Diagnostic::whole_file(self.id, message)
        }
    }

    /// The lint with another severity.
    pub fn with_severity(self, severity: Severity) -> Lint {
        Lint { severity, ..self }
    }

    /// Adds a finding with a help.
    pub fn report(
        &self,
        diagnostics: &mut Diagnostics,
        span: impl Into<Option<SourceSpan>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        diagnostics.push(self.finding(span, message).help(help));
    }
}

macro_rules! lints {
    ($(#[$about:meta] $name:ident: $severity:ident $id:literal;)*) => {
        $(
            #[$about]
            pub const $name: Lint = Lint { id: $id, severity: Severity::$severity };
        )*
        /// All lints, in the order of `docs/lints.md`.
        #[cfg(any(test, feature = "internals"))]
        pub const LINTS: &[Lint] = &[$($name),*];
    };
}

lints! {
    // Interlocks of a policy.
    /// A production site whose front page is closed to search engines.
    SITE_DISALLOWED: Error "site-disallowed";
    /// A production site with noindex on its front page.
    SITE_NOINDEX: Error "site-noindex";
    /// A pause that is longer than search engines wait.
    LONG_PAUSE: Error "long-pause";
    /// A marker of a crawler that is found in people's user agents.
    BLOCKS_PEOPLE: Error "blocks-people";
    // Of a policy.
    /// A pause that is over.
    PAST_PAUSE: Warning "past-pause";
    /// A pause whose length cannot be checked.
    PAUSE_WITHOUT_FROM: Warning "pause-without-from";
    /// A noindex on pages that robots.txt disallows.
    NOINDEX_UNSEEN: Warning "noindex-unseen";
    /// A staging policy for what looks like the site itself.
    STAGING_LOOKS_LIKE_PRODUCTION: Warning "staging-looks-like-production";
    /// A production policy for what looks like a test site.
    PRODUCTION_LOOKS_LIKE_STAGING: Warning "production-looks-like-staging";
    /// A group that frees a crawler from the rules of `*`.
    GROUP_DROPS_STAR_RULES: Warning "group-drops-star-rules";
    /// 5xx or 429 for search engines, without end.
    PERMANENT_ERROR: Warning "permanent-error";
    /// A name in place of a product token.
    NOT_A_TOKEN: Warning "not-a-token";
    /// Enforcement for an unknown crawler.
    UNKNOWN_CRAWLER: Note "unknown-crawler";
    /// Blocking crawlers that cannot be verified.
    UNVERIFIED_REFUSED: Warning "unverified-refused";
    /// Networks with half of all addresses.
    NETWORK_OF_EVERYBODY: Warning "network-of-everybody";
    /// An old robots.txt of the origin that the policy does not declare as `previous`.
    PREVIOUS_UNDECLARED: Note "previous-undeclared";
    /// A missing file that the policy names.
    MISSING_FILE: Warning "missing-file";
    /// An Allow of the origin that could defeat a rule of the policy.
    ORIGIN_ALLOW_LEFT_OUT: Warning "origin-allow-left-out";
    /// A line of the origin whose key crawlgate does not know.
    ORIGIN_KEY_LEFT_OUT: Note "origin-key-left-out";
    // Of signals.
    /// Two signals that contradict each other.
    SIGNALS_DISAGREE: Warning "signals-disagree";
    /// A part of a signal that readers ignore.
    UNREADABLE_SIGNAL: Warning "unreadable-signal";
    /// A demand for a licence that does not exist.
    LICENSE_OF_NOBODY: Warning "license-of-nobody";
    /// A demand for a licence that reaches search engines.
    LICENSE_FOR_SEARCH: Warning "license-for-search";
    /// A licence with an `http:` URL.
    LICENSE_NOT_HTTPS: Warning "license-not-https";
    /// Signals of a group where signals are only in headers.
    SIGNAL_NOWHERE: Warning "signal-nowhere";
    // Of the tags of a policy.
    /// A directive that another one leaves without effect.
    CONTRADICTORY_TAG: Warning "contradictory-tag";
    /// An unavailable_after that has passed.
    UNAVAILABLE_AFTER_PAST: Warning "unavailable-after-past";
    /// An undocumented directive.
    CUSTOM_DIRECTIVE: Warning "custom-directive";
    /// Directives for a crawler that does not read the header.
    HEADER_UNREAD: Warning "header-unread";
    // Of agents.
    /// A token that matches no request.
    TOKEN_MATCHES_NO_REQUEST: Note "token-matches-no-request";
    /// A word for bots in general in place of a product token.
    GENERIC_TOKEN: Warning "generic-token";
    /// A token that is nearly that of a known crawler.
    UNKNOWN_TOKEN: Warning "unknown-token";
    /// A token of one or two characters.
    SHORT_TOKEN: Warning "short-token";
    /// A closed site that some crawlers may enter, because they do not follow `*`.
    STAR_IGNORED: Note "star-ignored";
    // Of rules.
    /// A rule that is written twice, or that a wider rule covers.
    DUPLICATE_RULE: Note "duplicate-rule";
    /// A Disallow that an Allow of the same path overrules.
    UNREACHABLE_RULE: Warning "unreachable-rule";
    /// A path that begins with neither `/` nor `*`.
    PATH_WITHOUT_SLASH: Warning "path-without-slash";
    /// Several paths in one rule.
    SEVERAL_PATHS: Warning "several-paths";
    /// A `#` in a path, which begins a comment.
    HASH_IN_PATH: Warning "hash-in-path";
    /// A path without a slash at its end, which closes more than the folder.
    OPEN_ENDED_PATH: Note "open-ended-path";
    /// A regular expression in place of a path.
    REGULAR_EXPRESSION: Warning "regular-expression";
    /// A path that reads like a secret.
    PRIVATE_PATH: Note "private-path";
    /// A rule that closes every URL with a query.
    EVERY_QUERY: Note "every-query";
    /// A rule that Google's library reads otherwise than the RFC.
    DIALECTS_DISAGREE: Warning "dialects-disagree";
    /// Closed style sheets, scripts or images.
    RESOURCES_CLOSED: Warning "resources-closed";
    // Of sitemaps.
    /// A sitemap that is no absolute URL.
    SITEMAP_RELATIVE: Warning "sitemap-relative";
    /// A sitemap that crawlers may not fetch.
    SITEMAP_DISALLOWED: Warning "sitemap-disallowed";
    /// A sitemap on a host that is none of the site's.
    SITEMAP_OTHER_HOST: Warning "sitemap-other-host";
    // Of a file as it was found.
    /// A file that closes the whole site to search engines.
    SITE_CLOSED: Warning "site-closed";
    /// A site of which a search engine may fetch only a part, or not the front page.
    SITE_PARTLY_CLOSED: Warning "site-partly-closed";
    /// A file without a rule.
    EMPTY_FILE: Warning "empty-file";
    /// A Crawl-delay for crawlers that ignore it.
    CRAWL_DELAY_IGNORED: Warning "crawl-delay-ignored";
    /// Several names on one User-agent line.
    SEVERAL_AGENTS: Warning "several-agents";
    /// A group without rules, which becomes one with the next group.
    GLUED_GROUP: Warning "glued-group";
    /// A rule before the first User-agent.
    RULE_OUTSIDE_GROUP: Warning "rule-outside-group";
    /// A key that not every crawler understands.
    MISSPELT_KEY: Warning "misspelt-key";
    /// A key and a value without a colon between them.
    MISSING_COLON: Warning "missing-colon";
    /// A line that is neither a rule nor a comment.
    NO_RECORD: Warning "no-record";
    /// A directive that no crawler reads any more.
    RETIRED_DIRECTIVE: Warning "retired-directive";
    /// An undocumented directive.
    UNKNOWN_DIRECTIVE: Note "unknown-directive";
    /// A line whose end is not read.
    LINE_TOO_LONG: Warning "line-too-long";
    /// NUL, broken UTF-8 or a stray byte order mark.
    UNREADABLE_BYTES: Warning "unreadable-bytes";
    /// HTML or UTF-16 in place of a robots.txt.
    NOT_A_ROBOTS_TXT: Warning "not-a-robots-txt";
    /// More than crawlers read.
    FILE_TOO_LARGE: Warning "file-too-large";
}
