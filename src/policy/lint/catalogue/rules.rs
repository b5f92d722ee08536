//! The lints that apply to a policy and to a robots.txt file: about crawlers, rules and sitemaps.

use super::{Lint, lints};

lints! {
    // Of crawlers.
    /// A token is part of visitors' user agents, such as `CriOS`, `Linux` and `Instagram`.
    /// crawlgate publishes the group, but no request of a browser or an app matches it. A bot
    /// matches it only if it calls itself by this name.
    ///
    /// Fix: nothing needs to be done if a crawler has this token. To block an app, describe it in
    /// `crawlers` with a `user_agent`, and write [`acknowledge: [blocks_people]`](#blocks-people).
    ///
    /// ```text
    /// User-agent: Instagram
    /// Disallow: /
    /// ```
    ///
    /// Under `enforcement.agents` it is a warning: the line blocks no visitor. In `crawlers` a token alone
    /// does not match a browser: write `user_agent`. Some agents sign their requests and send the
    /// user agent of a browser, for example ChatGPT agent. crawlgate takes such an agent for a
    /// visitor. Such an agent obeys a rule only if it reads robots.txt itself.
    TOKEN_MATCHES_NO_REQUEST: Note "token-matches-no-request";
    /// A User-agent line has a word for bots in general: `bot`, `robot`, `crawler`, `spider` or
    /// `scraper`. No crawler looks for it, and no request matches it.
    ///
    /// Fix: write the product token of the crawler. To enforce the rules for all unknown bots,
    /// write `enforcement: { purposes: { other: enforce } }`.
    ///
    /// ```text
    /// User-agent: bot
    /// Disallow: /
    /// ```
    ///
    /// Under `enforcement` and in `crawlers` it is an error.
    GENERIC_TOKEN: Warning "generic-token";
    /// A token is nearly that of a known crawler. `Googelbot` has no effect, in a group or under
    /// `tags`. Under `tests` it tests an unknown bot. Under `enforcement` it is an error:
    /// [unknown-crawler](#unknown-crawler).
    ///
    /// Fix: correct the spelling.
    ///
    /// ```text
    /// User-agent: Googelbot
    /// Disallow: /cart/
    /// ```
    ///
    /// A name of five letters or more is reported if one letter is missing or added, or if two
    /// neighbours are exchanged. One wrong letter is reported only in names of nine letters or more:
    /// `WebZIP` is not taken for `webzio`. Not reported: tokens unlike any known one, tokens
    /// that only end like one (`otherbot`), and tokens that add a part (`googlebot-news`).
    UNKNOWN_TOKEN: Warning "unknown-token";
    /// A token is a former name: its operator does not document it any more, and the file names none
    /// of the operator's crawlers of today.
    ///
    /// Fix: name the crawlers of today.
    ///
    /// ```text
    /// User-agent: anthropic-ai
    /// Disallow: /
    /// ```
    RETIRED_TOKEN: Warning "retired-token";
    /// A token has only one or two characters, or none. It is part of too many user agents, and no
    /// well-known crawler has such a token.
    ///
    /// Fix: write the full product token of the crawler.
    ///
    /// ```text
    /// User-agent: ai
    /// Disallow: /
    /// ```
    ///
    /// In a robots.txt without a policy this is a note, unless the line names nothing.
    SHORT_TOKEN: Warning "short-token";
    /// Some crawlers may enter a closed site, because they do not obey `*`. Operators of
    /// advertising crawlers (AdsBot-Google, Mediapartners-Google) document that.
    ///
    /// Fix: to close the site to them as well, name them.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /
    /// ```
    STAR_IGNORED: Note "star-ignored";
    // Of rules.
    /// A rule is written twice. `/a` and `/%61` are the same.
    ///
    /// Fix: remove one of them. Nothing breaks if it stays.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /a
    /// Disallow: /%61
    /// ```
    DUPLICATE_RULE: Note "duplicate-rule";
    /// A Disallow has no effect, because the same path is allowed. Of rules of the same length
    /// Allow wins (RFC 9309 section 2.2.2). Or a path of `tdm` or of a licence never counts: an
    /// earlier rule covers it, and the first match counts.
    ///
    /// Fix: remove the one that is not meant. If both are rules of `tdm`, or licences, put the one
    /// with fewer paths first.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /a/
    /// Allow: /a/
    /// ```
    UNREACHABLE_RULE: Warning "unreachable-rule";
    /// A path begins with neither `/` nor `*`, so the rule matches nothing. Paths of URLs begin
    /// with `/`.
    ///
    /// Fix: write `/private` for paths that begin with it, `*private` for paths that contain it.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: private
    /// ```
    ///
    /// Write paths without quotes, and an empty `Disallow:` instead of `Disallow: ""` or
    /// `Disallow: None`. A rule is not a URL either: a robots.txt is for its own host, and other
    /// hosts need their own.
    PATH_WITHOUT_SLASH: Warning "path-without-slash";
    /// One rule has several paths. Crawlers read `Disallow: /i,/j` and `Disallow: /i /j` as one
    /// path with a comma or a space in it, which matches nothing.
    ///
    /// Fix: write one rule for each path, each on its own line.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /i,/j
    /// ```
    SEVERAL_PATHS: Warning "several-paths";
    /// A path contains `#`, which begins a comment. Crawlers read `Disallow: /a#b` as `/a`, which
    /// closes more.
    ///
    /// Fix: write the path without `#` and what follows. Requests never contain that part of a URL,
    /// so no rule can be about it.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /a#b
    /// ```
    ///
    /// A comment with a space before or after the `#` is not reported.
    HASH_IN_PATH: Warning "hash-in-path";
    /// A path without a slash at its end closes more than the folder. `Disallow: /shop` also closes
    /// `/shopping` and `/shop-2`.
    ///
    /// Fix: write `/shop/` for the folder alone, `/shop$` for the page alone. If all of it is
    /// meant, as with `/search` and `/search?q=`, nothing needs to be done.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /shop
    /// ```
    ///
    /// It is not reported if an Allow begins with the path.
    OPEN_ENDED_PATH: Note "open-ended-path";
    /// A path looks like a regular expression. Crawlers read `/.*\.php` and `/(en|de)/` as plain
    /// text, which matches nothing. They also read a `$` in the middle, as in `/*.pdf$/`, as text.
    ///
    /// Fix: write `/*.php`, or `/en/` and `/de/`. In a rule `*` stands for any characters, and `$`
    /// at the end for the end of the URL.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /(en|de)/
    /// ```
    REGULAR_EXPRESSION: Warning "regular-expression";
    /// A path reads like a secret. robots.txt is public, and people who look for secrets read it.
    ///
    /// Fix: protect private pages with a password. Pages that nothing links to need no rule.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /backup/
    /// ```
    PRIVATE_PATH: Note "private-path";
    /// A rule such as `/*?` closes every URL with a query. Among them are list pages, campaign
    /// links, and style sheets and scripts with a version.
    ///
    /// Fix: name the parameters: `/*?sort=` and `/*&sort=`.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /*?
    /// ```
    EVERY_QUERY: Note "every-query";
    /// Google's library reads a rule differently from RFC 9309. Google's library decodes no
    /// escapes, does not know `%2A`, and applies an `Allow` of an index page to its directory.
    ///
    /// Fix: write paths as browsers send them. `crawlgate tester` shows both readings of a URL.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /
    /// Allow: /index.html
    /// ```
    ///
    /// crawlgate compares the readings of URLs as crawlers send them, percent-encoded. Google's
    /// crawlers are [judged by both](semantics.md#two-readings-of-a-file): what one of them allows
    /// is no violation.
    DIALECTS_DISAGREE: Warning "dialects-disagree";
    /// Search engines may not fetch style sheets, scripts or images. Google renders pages as
    /// visitors see them. Without these files a page may look empty or broken to Google.
    ///
    /// Fix: allow what the pages need, for example `Allow: /themes/*.css$`.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /wp-content/uploads/
    /// ```
    ///
    /// crawlgate looks at the group of Googlebot, or else `*`. It knows folders such as `/js/`,
    /// `/assets/`, `/wp-content/uploads/`, `/_next/static/`, `/_nuxt/` and `/pub/static/`, and
    /// endings such as `/*.css$`, in upper and lower case. It also knows the folders around these,
    /// such as `/wp-content/`. It does not report single files, nor such folders inside others
    /// (`/blog/js/`).
    RESOURCES_CLOSED: Warning "resources-closed";
    // Of sitemaps.
    /// A sitemap is not an absolute URL, so crawlers do not know its host.
    ///
    /// Fix: write the full URL, with `https://` and the host.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /cart/
    /// Sitemap: /sitemap.xml
    /// ```
    SITEMAP_RELATIVE: Warning "sitemap-relative";
    /// Crawlers may not fetch a sitemap. The rules of the file apply to the sitemap, too.
    ///
    /// Fix: allow its path.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /maps/
    /// Sitemap: https://shop.example/maps/sitemap.xml
    /// ```
    SITEMAP_DISALLOWED: Warning "sitemap-disallowed";
    /// A sitemap is on a host that is not one of the site's. Often the line is a copy from another
    /// site, or of a development machine: `localhost`, or a private address. A sitemap
    /// at a CDN works, because this host's robots.txt names it (sitemaps.org).
    ///
    /// Fix: serve the sitemap from this host if you can.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { sitemaps: [https://cdn.example.net/sitemap.xml] }
    /// ```
    ///
    /// `www` and other hosts of the same domain are not reported.
    SITEMAP_OTHER_HOST: Warning "sitemap-other-host";
}
