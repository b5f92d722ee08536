//! [`LINTS`]: every lint with its stable id, its severity and its subject. `docs/lints.md` has a
//! section for each.

use crate::yaml::{Diagnostic, Diagnostics, Severity, Span};

/// One lint.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// A stable name in kebab-case, to search for.
    pub id: &'static str,
    /// The severity. An error keeps a policy from being used.
    pub severity: Severity,
}

impl Lint {
    /// A finding of it at a place, or about the whole file.
    pub fn at(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: self.severity,
            span: span.into(),
            ..Diagnostic::whole_file(self.id, message)
        }
    }

    /// The lint with another severity.
    pub fn with(self, severity: Severity) -> Lint {
        Lint { severity, ..self }
    }

    /// Adds a finding, and says what to do.
    pub fn report(
        &self,
        diagnostics: &mut Diagnostics,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        diagnostics.push(self.at(span, message).help(help));
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
    /// A production site that keeps search engines off its front page.
    SITE_DISALLOWED: Error "site-disallowed";
    /// A production site that says noindex on its front page.
    SITE_NOINDEX: Error "site-noindex";
    /// A pause that is longer than search engines wait.
    LONG_PAUSE: Error "long-pause";
    /// A marker of a crawler that stands in people's user agents.
    BLOCKS_PEOPLE: Error "blocks-people";
    // Of a policy.
    /// A pause that is over.
    PAST_PAUSE: Warning "past-pause";
    /// A pause whose length cannot be checked.
    PAUSE_WITHOUT_FROM: Warning "pause-without-from";
    /// A noindex on pages that robots.txt keeps crawlers off.
    NOINDEX_UNSEEN: Warning "noindex-unseen";
    /// A staging policy for what looks like the site itself.
    STAGING_LOOKS_LIKE_PRODUCTION: Warning "staging-looks-like-production";
    /// A production policy for what looks like a test site.
    PRODUCTION_LOOKS_LIKE_STAGING: Warning "production-looks-like-staging";
    /// A group that frees a crawler from the rules of `*`.
    GROUP_DROPS_STAR_RULES: Warning "group-drops-star-rules";
    /// 5xx or 429 for search crawlers, for good.
    PERMANENT_ERROR: Warning "permanent-error";
    /// A name in place of a product token.
    NOT_A_TOKEN: Warning "not-a-token";
    /// Enforcement for an unknown crawler.
    UNKNOWN_CRAWLER: Note "unknown-crawler";
    /// Refusing crawlers that cannot be verified yet.
    UNVERIFIED_REFUSED: Warning "unverified-refused";
    /// Networks that prove everybody.
    NETWORK_OF_EVERYBODY: Warning "network-of-everybody";
    /// An old file of the origin, of which nothing is declared.
    PREVIOUS_UNDECLARED: Note "previous-undeclared";
    /// A file beside the policy that is not there.
    MISSING_FILE: Warning "missing-file";
    /// An Allow of the origin that cannot be kept beside a rule of the policy.
    ORIGIN_ALLOW_LEFT_OUT: Warning "origin-allow-left-out";
    /// A line of the origin whose key crawlgate does not know.
    ORIGIN_KEY_LEFT_OUT: Note "origin-key-left-out";
    // Of signals.
    /// Two signals that say the opposite.
    SIGNALS_DISAGREE: Warning "signals-disagree";
    /// A part of a signal that readers pass over.
    UNREADABLE_SIGNAL: Warning "unreadable-signal";
    /// Crawlers that are asked for a licence, and there is none.
    LICENSE_OF_NOBODY: Warning "license-of-nobody";
    /// Search engines that are asked for a licence.
    LICENSE_FOR_SEARCH: Warning "license-for-search";
    /// A licence that is not fetched over HTTPS.
    LICENSE_NOT_HTTPS: Warning "license-not-https";
    /// What a group says where only headers speak.
    SIGNAL_NOWHERE: Warning "signal-nowhere";
    // Of the tags of a policy.
    /// Directives that cannot both be meant.
    CONTRADICTORY_TAG: Warning "contradictory-tag";
    /// An unavailable_after that has passed.
    UNAVAILABLE_AFTER_PAST: Warning "unavailable-after-past";
    /// An undocumented directive.
    CUSTOM_DIRECTIVE: Warning "custom-directive";
    /// Directives to a crawler that does not look for them in the header.
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
    /// A closed site that some crawlers enter because they must be named.
    STAR_IGNORED: Note "star-ignored";
    // Of rules.
    /// A rule that stands there twice, or that a wider one says already.
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
    /// Style sheets, scripts or images that search engines may not fetch.
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
    /// A group without rules, which the next group joins.
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
    /// A line of which the end is not read.
    LINE_TOO_LONG: Warning "line-too-long";
    /// NUL, broken UTF-8 or a stray byte order mark.
    UNREADABLE_OCTETS: Warning "unreadable-octets";
    /// HTML or UTF-16 in place of a robots.txt.
    NOT_A_ROBOTS_TXT: Warning "not-a-robots-txt";
    /// More than crawlers read.
    FILE_TOO_LARGE: Warning "file-too-large";
}
