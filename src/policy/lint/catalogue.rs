//! [`LINTS`]: every lint with its stable id, its severity and its subject. `docs/lints.md` has a section for each.

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
    pub(in crate::policy) fn at(&self, span: impl Into<Option<Span>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: self.severity, span: span.into(), ..Diagnostic::whole_file(self.id, message) }
    }

    /// The lint with another severity.
    pub(super) fn with(self, severity: Severity) -> Lint {
        Lint { severity, ..self }
    }

    /// Adds a finding, and says what to do.
    pub(in crate::policy) fn report(
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
    ($($name:ident: $severity:ident $id:literal, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub(in crate::policy) const $name: Lint = Lint { id: $id, severity: Severity::$severity };
        )*
        /// All lints, in the order of `docs/lints.md`.
        #[cfg(any(test, feature = "internals"))]
        pub const LINTS: &[Lint] = &[$($name),*];
    };
}

lints! {
    // Interlocks of a policy.
    SITE_DISALLOWED: Error "site-disallowed", "a production site that keeps search engines off its front page";
    SITE_NOINDEX: Error "site-noindex", "a production site that says noindex on its front page";
    LONG_PAUSE: Error "long-pause", "a pause that is longer than search engines wait";
    BLOCKS_PEOPLE: Error "blocks-people", "a marker of a crawler that stands in people's user agents";
    // Of a policy.
    PAST_PAUSE: Warning "past-pause", "a pause that is over";
    PAUSE_WITHOUT_FROM: Warning "pause-without-from", "a pause whose length cannot be checked";
    NOINDEX_UNSEEN: Warning "noindex-unseen", "a noindex on pages that robots.txt keeps crawlers off";
    STAGING_LOOKS_LIKE_PRODUCTION: Warning "staging-looks-like-production", "a staging policy for what looks like the site itself";
    PRODUCTION_LOOKS_LIKE_STAGING: Warning "production-looks-like-staging", "a production policy for what looks like a test site";
    GROUP_DROPS_STAR_RULES: Warning "group-drops-star-rules", "a group that frees a crawler from the rules of `*`";
    PERMANENT_ERROR: Warning "permanent-error", "5xx or 429 for search crawlers, for good";
    NOT_A_TOKEN: Warning "not-a-token", "a name in place of a product token";
    UNKNOWN_CRAWLER: Note "unknown-crawler", "enforcement for an unknown crawler";
    UNVERIFIED_REFUSED: Warning "unverified-refused", "refusing crawlers that cannot be verified yet";
    NETWORK_OF_EVERYBODY: Warning "network-of-everybody", "networks that prove everybody";
    PREVIOUS_UNDECLARED: Note "previous-undeclared", "an old file of the origin, of which nothing is declared";
    MISSING_FILE: Warning "missing-file", "a file beside the policy that is not there";
    ORIGIN_ALLOW_LEFT_OUT: Warning "origin-allow-left-out", "an Allow of the origin that cannot be kept beside a rule of the policy";
    ORIGIN_KEY_LEFT_OUT: Note "origin-key-left-out", "a line of the origin whose key crawlgate does not know";
    // Of signals.
    SIGNALS_DISAGREE: Warning "signals-disagree", "two signals that say the opposite";
    UNREADABLE_SIGNAL: Warning "unreadable-signal", "a part of a signal that readers pass over";
    LICENSE_OF_NOBODY: Warning "license-of-nobody", "crawlers that are asked for a licence, and there is none";
    LICENSE_FOR_SEARCH: Warning "license-for-search", "search engines that are asked for a licence";
    LICENSE_NOT_HTTPS: Warning "license-not-https", "a licence that is not fetched over HTTPS";
    SIGNAL_NOWHERE: Warning "signal-nowhere", "what a group says where only headers speak";
    // Of the tags of a policy.
    CONTRADICTORY_TAG: Warning "contradictory-tag", "directives that cannot both be meant";
    UNAVAILABLE_AFTER_PAST: Warning "unavailable-after-past", "an unavailable_after that has passed";
    CUSTOM_DIRECTIVE: Warning "custom-directive", "an undocumented directive";
    HEADER_UNREAD: Warning "header-unread", "directives to a crawler that does not look for them in the header";
    // Of agents.
    TOKEN_MATCHES_NO_REQUEST: Note "token-matches-no-request", "a token that matches no request";
    GENERIC_TOKEN: Warning "generic-token", "a word for bots in general in place of a product token";
    UNKNOWN_TOKEN: Warning "unknown-token", "a token that is nearly that of a known crawler";
    SHORT_TOKEN: Warning "short-token", "a token of one or two characters";
    STAR_IGNORED: Note "star-ignored", "a closed site that some crawlers enter because they must be named";
    // Of rules.
    DUPLICATE_RULE: Note "duplicate-rule", "a rule that stands there twice, or that a wider one says already";
    UNREACHABLE_RULE: Warning "unreachable-rule", "a Disallow that an Allow of the same path overrules";
    PATH_WITHOUT_SLASH: Warning "path-without-slash", "a path that begins with neither `/` nor `*`";
    SEVERAL_PATHS: Warning "several-paths", "several paths in one rule";
    HASH_IN_PATH: Warning "hash-in-path", "a `#` in a path, which begins a comment";
    OPEN_ENDED_PATH: Note "open-ended-path", "a path without a slash at its end, which closes more than the folder";
    REGULAR_EXPRESSION: Warning "regular-expression", "a regular expression in place of a path";
    PRIVATE_PATH: Note "private-path", "a path that reads like a secret";
    EVERY_QUERY: Note "every-query", "a rule that closes every URL with a query";
    DIALECTS_DISAGREE: Warning "dialects-disagree", "a rule that Google's library reads otherwise than the RFC";
    RESOURCES_CLOSED: Warning "resources-closed", "style sheets, scripts or images that search engines may not fetch";
    // Of sitemaps.
    SITEMAP_RELATIVE: Warning "sitemap-relative", "a sitemap that is no absolute URL";
    SITEMAP_DISALLOWED: Warning "sitemap-disallowed", "a sitemap that crawlers may not fetch";
    SITEMAP_OTHER_HOST: Warning "sitemap-other-host", "a sitemap on a host that is none of the site's";
    // Of a file as it was found.
    SITE_CLOSED: Warning "site-closed", "a file that closes the whole site to search engines";
    SITE_PARTLY_CLOSED: Warning "site-partly-closed", "a site of which a search engine may fetch only a part, or not the front page";
    EMPTY_FILE: Warning "empty-file", "a file without a rule";
    CRAWL_DELAY_IGNORED: Warning "crawl-delay-ignored", "a Crawl-delay for crawlers that ignore it";
    SEVERAL_AGENTS: Warning "several-agents", "several names on one User-agent line";
    GLUED_GROUP: Warning "glued-group", "a group without rules, which the next group joins";
    RULE_OUTSIDE_GROUP: Warning "rule-outside-group", "a rule before the first User-agent";
    MISSPELT_KEY: Warning "misspelt-key", "a key that not every crawler understands";
    MISSING_COLON: Warning "missing-colon", "a key and a value without a colon between them";
    NO_RECORD: Warning "no-record", "a line that is neither a rule nor a comment";
    RETIRED_DIRECTIVE: Warning "retired-directive", "a directive that no crawler reads any more";
    UNKNOWN_DIRECTIVE: Note "unknown-directive", "an undocumented directive";
    LINE_TOO_LONG: Warning "line-too-long", "a line of which the end is not read";
    UNREADABLE_OCTETS: Warning "unreadable-octets", "NUL, broken UTF-8 or a stray byte order mark";
    NOT_A_ROBOTS_TXT: Warning "not-a-robots-txt", "HTML or UTF-16 in place of a robots.txt";
    FILE_TOO_LARGE: Warning "file-too-large", "more than crawlers read";
}
