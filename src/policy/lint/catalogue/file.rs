//! The lints that apply only to an existing robots.txt file, and not to a policy.

use super::{Lint, lints};

lints! {
    /// A file closes the whole site to Googlebot, so Google drops the site. Often the file comes
    /// from a test site, or a group without rules joins the next one ([glued-group](#glued-group)).
    ///
    /// Fix: remove the rule if search engines are to find the site. To keep a test site private,
    /// use a password: robots.txt does not protect it.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /
    /// ```
    ///
    /// An `Allow` of one file that is no page does not open a site: `/robots.txt`, `/sitemap.xml`,
    /// `/logo.png`, `/assets/site.css`, `/wp-admin/admin-ajax.php`, anything below `/.well-known/`. In a
    /// policy this is an error ([site-disallowed](#site-disallowed)).
    SITE_CLOSED: Warning "site-closed";
    /// A search engine may fetch only a part of the site. Googlebot or Bingbot may not fetch the
    /// front page, or may fetch only what an `Allow` opens below `Disallow: /`. Or Bingbot may
    /// fetch nothing. crawlgate publishes such a file and such a policy.
    ///
    /// Fix: remove the rule if search engines are to find all of the site. In a policy
    /// `acknowledge: [site_disallowed]` says that it is meant.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /$
    /// ```
    SITE_PARTLY_CLOSED: Warning "site-partly-closed";
    /// A file has no rule in a group, so crawlers may fetch everything, as if there were no file.
    /// Sometimes a deployment lost the rules, or all lines are comments.
    ///
    /// Fix: if that is meant, write `User-agent: *` and an empty `Disallow:`.
    ///
    /// ```text
    /// # nothing yet
    /// ```
    EMPTY_FILE: Warning "empty-file";
    /// All crawlers of a group ignore Crawl-delay, as their operators (such as Google) document.
    ///
    /// Fix: remove it. To slow these crawlers down, answer 429 or 503 with Retry-After.
    ///
    /// ```text
    /// User-agent: Googlebot
    /// Crawl-delay: 10
    /// Disallow: /cart/
    /// ```
    CRAWL_DELAY_IGNORED: Warning "crawl-delay-ignored";
    /// A User-agent line has several names. Crawlers read only the first name of a line (RFC 9309
    /// section 2.2.1), so the rules do not apply to the others.
    ///
    /// Fix: write each name on a User-agent line of its own.
    ///
    /// ```text
    /// User-agent: Googlebot, Bingbot
    /// Disallow: /cart/
    /// ```
    ///
    /// Names without a comma between them are reported only if all of them are known tokens.
    SEVERAL_AGENTS: Warning "several-agents";
    /// A group without rules becomes one group with the next. Only Allow and Disallow end a list of
    /// crawlers (RFC 9309 section 2.2.1), not an empty line, a Crawl-delay, a Sitemap or any other
    /// line. The example closes the site to both crawlers.
    ///
    /// Fix: write the rules of the first crawler before the second User-agent; `Allow: /` if it may
    /// fetch everything.
    ///
    /// ```text
    /// User-agent: Googlebot
    ///
    /// User-agent: GPTBot
    /// Disallow: /
    /// ```
    ///
    /// Many lists of crawlers contain comments. So if only a comment is between two names,
    /// crawlgate reports it only if exactly one of them is a search engine or `*`.
    GLUED_GROUP: Warning "glued-group";
    /// A rule precedes the first User-agent line. It belongs to no group and applies to no crawler
    /// (RFC 9309 section 2.2.2).
    ///
    /// Fix: write `User-agent: *` above it, if that is meant.
    ///
    /// ```text
    /// Disallow: /cart/
    /// ```
    RULE_OUTSIDE_GROUP: Warning "rule-outside-group";
    /// Not every crawler understands a key. Google's library accepts known misspellings (`Disalow`)
    /// and anything that begins with a key (`Disallowed`). Other crawlers may ignore the line.
    /// crawlgate applies a known misspelling to every crawler, and `Disallowed` only to Google's.
    ///
    /// Fix: correct the key.
    ///
    /// ```text
    /// User-agent: *
    /// Disalow: /cart/
    /// ```
    MISSPELT_KEY: Warning "misspelt-key";
    /// The colon between a key and its value is missing. Google's library adds it if the line has
    /// exactly two words. Other crawlers ignore the line.
    ///
    /// Fix: write `key: value`.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow /cart/
    /// ```
    MISSING_COLON: Warning "missing-colon";
    /// A line is neither a rule nor a comment. Crawlers ignore it.
    ///
    /// Fix: if it is a comment, begin it with `#`. If it is a rule, write `key: value`, such as
    /// `Disallow: /path`.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /cart/
    /// our shop
    /// ```
    NO_RECORD: Warning "no-record";
    /// No crawler reads this directive any more: `Noindex` and `Nofollow` in robots.txt (Google,
    /// until 2019), `Noarchive`, which no crawler documents there, and `Host` (Yandex, until 2018).
    ///
    /// Fix: send the directive as a tag, such as `X-Robots-Tag: noindex`, and let crawlers fetch
    /// the page. `Host` is only a note: redirect to the main host instead.
    ///
    /// ```text
    /// User-agent: *
    /// Noindex: /old/
    /// Disallow: /cart/
    /// ```
    RETIRED_DIRECTIVE: Warning "retired-directive";
    /// No crawler documents this directive. Crawlers ignore the line, and it does not end a group.
    /// It may be a misspelling that no crawler accepts.
    ///
    /// Fix: correct or remove the line.
    ///
    /// ```text
    /// User-agent: *
    /// Visit-window: 0200-0400
    /// Disallow: /cart/
    /// ```
    UNKNOWN_DIRECTIVE: Note "unknown-directive";
    /// A line is too long. Google's library reads the first 16,663 bytes of a line. The rest has no
    /// effect.
    ///
    /// Fix: write one rule per line.
    LINE_TOO_LONG: Warning "line-too-long";
    /// A file contains NUL, broken UTF-8, a byte order mark inside the file, or an invisible
    /// character. Crawlers do not read the rest of a line after a NUL. A byte order mark inside the
    /// file spoils its line. A no-break space around a key or a path is part of it: crawlers ignore
    /// the line, or match other URLs.
    ///
    /// Fix: save the file as UTF-8, and type the line again.
    ///
    /// Bytes that are not UTF-8 are compared one by one.
    UNREADABLE_BYTES: Warning "unreadable-bytes";
    /// The file is HTML or UTF-16. Crawlers find no rules in it and may fetch everything. Often it
    /// is an error page with status 200.
    ///
    /// Fix: answer 404 if there is no robots.txt. Save UTF-16 as UTF-8.
    ///
    /// ```text
    /// <!doctype html>
    /// <title>Not found</title>
    /// ```
    NOT_A_ROBOTS_TXT: Warning "not-a-robots-txt";
    /// The file is larger than what crawlers read. RFC 9309 section 2.5 asks crawlers to read 500
    /// KiB, and Google reads no more. Rules after that have no effect.
    ///
    /// Fix: use fewer, wider patterns.
    FILE_TOO_LARGE: Warning "file-too-large";
}
