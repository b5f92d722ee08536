//! The lints that apply only to a policy: about modes, pauses, X-Robots-Tag rules, and statements
//! on the use of content.

use super::{Lint, lints};

lints! {
    // Interlocks: they keep a policy from being used.
    /// A production site keeps Googlebot off all of its pages. Google drops such a site from its
    /// results within weeks.
    ///
    /// Fix: remove the rule. If it is meant, write `acknowledge: [site_disallowed]`. For a test
    /// site write `environment: staging`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { groups: [{ agents: "*", disallow: / }] }
    /// ```
    ///
    /// An Allow of a single file that is no page does not help ([site-closed](#site-closed)). If the
    /// rule comes from the origin's own robots.txt, crawlgate does not publish that file, and the
    /// finding names its line. Google's library cuts a name at the first character other than a letter, `-`
    /// and `_`, so a group for `Googlebot2` or `Googlebot.` counts as one for Googlebot.
    SITE_DISALLOWED: Error "site-disallowed";
    /// A production site says noindex for its front page. Search engines drop the page on their
    /// next visit.
    ///
    /// Fix: narrow the rule to `paths` without the front page, or `types` without `text/html`. If it
    /// is meant, write `acknowledge: [site_noindex]`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// indexing: [{ tag: noindex }]
    /// ```
    ///
    /// A date of `unavailable_after` in the past counts as noindex.
    SITE_NOINDEX: Error "site-noindex";
    /// A pause is longer than search engines wait. Google drops URLs that answer 503 for two days.
    /// The limit is 36 hours.
    ///
    /// Fix: shorten the pause. If it is meant, write `acknowledge: [long_pause]`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// pause: { from: 2030-01-01, until: 2030-01-05 }
    /// ```
    LONG_PAUSE: Error "long-pause";
    /// The text in `user_agent` of a crawler also occurs in visitors' user agents. crawlgate would
    /// take these visitors for the crawler. It compares the text with a built-in list of browsers
    /// and apps.
    ///
    /// Fix: write a text that only this crawler has in its user agent. To block an app, write
    /// `acknowledge: [blocks_people]`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// crawlers: [{ token: Reader, user_agent: Chrome }]
    /// ```
    BLOCKS_PEOPLE: Error "blocks-people";
    // Of a policy.
    /// A pause has ended, so it has no effect. Often a policy was copied, or the year is last
    /// year's.
    ///
    /// Fix: remove the pause, or correct the date.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// pause: { from: 2025-01-01T00:00:00Z, until: 2025-01-01T06:00:00Z }
    /// ```
    ///
    /// A recurring pause never ends.
    PAST_PAUSE: Warning "past-pause";
    /// The length of a pause is unknown. Without `from` the pause begins when the policy comes into
    /// force. It ends 36 hours later, or at `until` if that is earlier.
    ///
    /// Fix: write `from`, or `acknowledge: [long_pause]`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// pause: { until: 2030-01-05 }
    /// ```
    PAUSE_WITHOUT_FROM: Warning "pause-without-from";
    /// robots.txt keeps crawlers off pages that have a noindex. A crawler that may not fetch a page
    /// never sees its noindex, so the page may stay in the index because of its links. The finding
    /// names the crawlers.
    ///
    /// Fix: allow the path until the pages have left the index, then disallow it.
    /// [`retire`](policy.md#retire) does both in this order.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { groups: [{ agents: "*", disallow: /old/ }] }
    /// indexing: [{ paths: /old/, tag: noindex }]
    /// ```
    ///
    /// crawlgate reports this only if one Disallow closes all URLs below the path. With
    /// `Allow: /old/help/` beside `Disallow: /old/`, crawlgate does not report `/old/`. Nor does it
    /// report `/old` if only `/old$` is disallowed. A tag rule without `paths` counts as one for all URLs,
    /// even with a `path_regex`. A rule with `application/pdf` in `types` also counts as one for
    /// `/*.pdf$` (`/docs/*.pdf$` with the path `/docs/`). For a noindex for all crawlers, crawlgate looks at the group `*`, and at groups
    /// for Googlebot and bingbot that do not close the whole site. It does not look at all rules of
    /// a very large policy.
    ///
    /// crawlgate does not compare the entries of `retire` with each other. Of two entries for one
    /// path, the earlier time counts for each step. An entry for a folder around the path disallows
    /// the path, too. `retire` cannot close what an Allow of the policy opens, because the longer
    /// rule decides. Search engines revisit a page within weeks, so `disallow_after` needs 14 days
    /// or more.
    NOINDEX_UNSEEN: Warning "noindex-unseen";
    /// A policy with `environment: staging` has a host that looks like the real site: a domain of
    /// its own, or its `www`. All pages get noindex.
    ///
    /// Fix: write `environment: production`, or give the test site a name such as
    /// `staging.shop.example`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// environment: staging
    /// ```
    STAGING_LOOKS_LIKE_PRODUCTION: Warning "staging-looks-like-production";
    /// A policy for production has a host that looks like a test site. Search engines index
    /// `staging.`, `dev.` and `preview-2.` like any other host, beside the real site.
    ///
    /// Fix: write a separate policy with `environment: staging`.
    ///
    /// ```yaml
    /// hosts: [shop.example, staging.shop.example]
    /// ```
    PRODUCTION_LOOKS_LIKE_STAGING: Warning "production-looks-like-staging";
    /// A group that names a crawler replaces the group `*` for it (RFC 9309 section 2.2.1), even if
    /// it has only a Crawl-delay. So the crawler may fetch what `*` disallows, unless its own group
    /// disallows it, too.
    ///
    /// Fix: in a policy write `extends: "*"`. In a robots.txt repeat the rules.
    ///
    /// ```text
    /// User-agent: *
    /// Disallow: /cart/
    ///
    /// User-agent: bingbot
    /// Disallow: /drafts/
    /// ```
    ///
    /// Not reported: a group that allows the whole site (`Disallow:`, `Allow: /`), any group if `*`
    /// closes the whole site, and advertising crawlers, which do not obey `*`.
    GROUP_DROPS_STAR_RULES: Warning "group-drops-star-rules";
    /// Search crawlers get 5xx or 429 on disallowed paths, permanently. Crawlers take both for
    /// overload. They slow down for the whole host and drop the URLs after two days.
    ///
    /// Fix: answer 403, 404 or 410.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { groups: [{ agents: "*", disallow: /cart/ }] }
    /// enforcement: { mode: enforce, disallowed: 503 }
    /// ```
    PERMANENT_ERROR: Warning "permanent-error";
    /// A User-agent line has a name that no crawler looks for. Crawlers look for their product
    /// token only. So `ChatGPT` (a product), `OpenAI` (an operator) and `GPT-Bot` have no effect.
    ///
    /// Fix: write the tokens that the finding names. `crawlgate crawlers` lists all tokens.
    ///
    /// ```text
    /// User-agent: ChatGPT
    /// Disallow: /
    /// ```
    ///
    /// For a product or an operator the finding names one token each for training, search and
    /// fetching for a user. A name that is itself a token is not reported. Names with an invisible
    /// character (such as `*` and a no-break space), an asterisk or quotes (`*bot*`, `"*"`) have no
    /// effect either.
    NOT_A_TOKEN: Warning "not-a-token";
    /// `agents` or `exempt` of `enforcement` misspells the name of a known crawler. A misspelt name
    /// enforces nothing, and exempts no crawler.
    ///
    /// Fix: correct the name. `crawlgate crawlers` lists the known names. A crawler of your own may have
    /// such a name: describe it under [`crawlers`](policy.md#crawlers).
    ///
    /// ```yaml
    /// hosts: shop.example
    /// enforcement: { agents: { GPTBoot: enforce } }
    /// ```
    ///
    /// This is a warning if the name is the beginning of a known one (`Storebot`). It is a note for
    /// any other unknown name: crawlgate looks for it in user agents exactly as written. A name that
    /// a group of the policy has is not reported here.
    UNKNOWN_CRAWLER: Error "unknown-crawler";
    /// The policy blocks crawlers that cannot be verified yet. Without further settings, only
    /// crawlers that have `networks` under `crawlers` can be verified. So `unverified: refuse` blocks
    /// all other crawlers in its scope. If the scope is the whole site, that includes search engines.
    ///
    /// Fix: write `unverified: as_claimed`, or list the `networks` of the crawlers that may come.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// enforcement: { mode: enforce, unverified: refuse }
    /// ```
    ///
    /// With [`identity.outgoing: yes`](identity.md) or a directory of lists, crawlers with
    /// published networks or host names can be verified, too. All others are still blocked.
    /// `crawlgate check --config crawlgate.yaml` takes that into account.
    UNVERIFIED_REFUSED: Warning "unverified-refused";
    /// The origin's robots.txt has an old Last-Modified date, and `robots.previous` is not set.
    ///
    /// Fix: if all hosts of the site have served this file for that time, through all caches, write
    /// `robots: { previous: origin }`. Then violations count from the first minute
    /// ([policy.md](policy.md#robotsprevious)).
    ///
    /// The date alone is no proof: a restored backup has an old date, and another host may have
    /// another file.
    PREVIOUS_UNDECLARED: Note "previous-undeclared";
    /// The policy names, under `answers` or as `robots.previous`, a file that is not in the policy
    /// directory. crawlgate ignores the line.
    ///
    /// Fix: put the file into the policy directory: at most 512 KiB, with the ending `.html` or
    /// `.txt`. If the name is wrong, correct it.
    MISSING_FILE: Warning "missing-file";
    /// crawlgate leaves out an Allow of the origin's robots.txt, because it could override a
    /// Disallow of the policy. The remaining rules decide about its URLs.
    ///
    /// Fix: write what is to stay open under `allow` in the policy.
    ///
    /// The first three are listed, the rest is counted. In very large files crawlgate also leaves
    /// out an Allow that it did not compare.
    ORIGIN_ALLOW_LEFT_OUT: Warning "origin-allow-left-out";
    /// The origin's robots.txt disallows the whole site, and an Allow of the policy opens it again. A
    /// preset may have such an Allow for `*`.
    ///
    /// Fix: if the site is to stay closed, remove the Allow. Otherwise remove the Disallow from the
    /// origin's file.
    ORIGIN_DISALLOW_LEFT_OUT: Warning "origin-disallow-left-out";
    /// The origin's robots.txt has lines with a key that crawlgate does not know. An origin may
    /// answer `/robots.txt` with something else, so crawlgate publishes only rules, sitemaps and
    /// lines with known keys. A comment in the merged file counts the lines that are left out.
    ///
    /// Fix: if crawlers need the lines, name their key under
    /// [`robots.origin_keys`](policy.md#robotsorigin_keys).
    ///
    /// A misspelt key that only Google reads (`Disallowed`) is a warning: correct it in the
    /// origin's file, or Google loses the rule.
    ORIGIN_KEY_LEFT_OUT: Note "origin-key-left-out";
    // Of signals.
    /// Two signals contradict each other: `content_signal` and `content_usage`, for the whole site or
    /// for one group. Or `tdm` contradicts one of them about training, because training is text and
    /// data mining (EU AI Act, recital 105). Rules for paths are compared if only one of `tdm` and
    /// `content_usage` has such rules. Programs that read one signal do not read the other.
    ///
    /// Fix: write the same in both.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { content_signal: { ai-train: no }, content_usage: { train-ai: yes } }
    /// ```
    SIGNALS_DISAGREE: Warning "signals-disagree";
    /// Programs that read a signal ignore a part of it. Content-Signal has `yes` or `no` after `=`
    /// (`ai-train=no`), Content-Usage has `y` or `n` (`train-ai=n`).
    ///
    /// Fix: correct the part. Content-Signal has the categories `ai-train`, `ai-input` and
    /// `search`. Content-Usage has `train-ai`, `ai-use` and `search` (draft-ietf-aipref-vocab-08).
    ///
    /// ```text
    /// User-agent: *
    /// Content-Signal: ai-train=maybe
    /// Disallow: /cart/
    /// ```
    ///
    /// Unknown categories are ignored, too. A key of Content-Usage with a capital letter spoils its
    /// whole line (RFC 9651 section 4.2).
    UNREADABLE_SIGNAL: Warning "unreadable-signal";
    /// The policy asks crawlers for a licence, but neither the policy nor the origin's robots.txt
    /// names one. So crawlgate asks no crawler, whatever `unlicensed` says.
    ///
    /// Fix: name a licence. Check the origin's file with `check --origin-robots FILE`.
    ///
    /// A crawler is not asked if neither its group nor the site names a licence. Crawlers for which
    /// robots.txt disallows everything are blocked, not asked. This is reported if `purposes` or the
    /// origin's robots.txt disallows it, but not if a group of the policy does. To block a crawler
    /// without this warning, write `unlicensed: pass` for it under `agents`.
    LICENSE_OF_NOBODY: Warning "license-of-nobody";
    /// The policy asks search engines for a licence. They get 401 or 402 for every page, and drop
    /// the pages.
    ///
    /// Fix: ask other crawlers, under `purposes` or `agents`, or exempt search engines:
    /// `enforcement: { purposes: { search: { unlicensed: pass } } }`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { license: https://shop.example/license.xml }
    /// enforcement: { mode: enforce, unlicensed: 401 }
    /// ```
    LICENSE_FOR_SEARCH: Warning "license-for-search";
    /// The URL of a licence begins with `http:`. An attacker could replace the terms in transit.
    /// RSL 1.0 (section 8) tells clients to reject such a licence.
    ///
    /// Fix: write `https://`.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// robots: { license: http://shop.example/license.xml }
    /// ```
    LICENSE_NOT_HTTPS: Warning "license-not-https";
    // Of tags.
    /// The date of `unavailable_after` has passed. Google no longer shows the pages; other search
    /// engines do not know the directive.
    ///
    /// Fix: write noindex, which all search engines know, or a later date.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// indexing: [{ paths: /sale/, tag: "unavailable_after: 2024-01-01" }]
    /// ```
    UNAVAILABLE_AFTER_PAST: Warning "unavailable-after-past";
    /// No search engine documents this directive. crawlgate sends it as written, and crawlers that
    /// do not know it ignore it.
    ///
    /// Fix: check the spelling. If the directive is meant, nothing needs to be done.
    ///
    /// A word that is nearly a known directive is an error.
    CUSTOM_DIRECTIVE: Warning "custom-directive";
    /// A search engine ignores this directive. Google does not use `noarchive`, `nocache` and
    /// `nositelinkssearchbox` any more, and Bing does not document `unavailable_after`. `noodp` and
    /// `noydir` are about directories that are closed.
    ///
    /// Fix: remove the directive.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// indexing: [{ paths: /news/, tags: { googlebot: noarchive } }]
    /// ```
    ///
    /// `noarchive` and `nocache` for all crawlers are no finding, because Bing uses them.
    DIRECTIVE_IGNORED: Note "directive-ignored";
    /// A rule has directives for a crawler that does not look for them in the header. Apple
    /// documents only meta tags. OpenAI, Anthropic and Common Crawl document only robots.txt.
    ///
    /// Fix: use `html: meta` or robots.txt for these crawlers.
    ///
    /// ```yaml
    /// hosts: shop.example
    /// indexing: [{ paths: /old/, tags: { GPTBot: noindex } }]
    /// ```
    HEADER_UNREAD: Warning "header-unread";
}
