//! The lints of sitemaps: the mistakes that crawlgate finds in the URLs of a sitemap, each with an
//! id. The doc comment on a lint is also the explanation that users read.

use crate::policy::lint::{Lint, lints};

lints! {
    /// Search engines cannot read a file as a sitemap. The finding says why: it is not XML or a
    /// list of URLs, has no URL, has more than 50,000 URLs or 50 MiB unpacked, is not UTF-8, or has a
    /// document type.
    ///
    /// Fix: correct what the finding names.
    ///
    /// In an index, crawlgate also reports a sitemap that is missing, an entry that is an index, and
    /// all sitemaps after the first 100.
    SITEMAP_UNREADABLE: Error "sitemap-unreadable";
    /// robots.txt closes a URL of the sitemap to search crawlers. Google reports that as an error
    /// of the sitemap. The finding names the crawlers, and the line of the policy or of the
    /// robots.txt.
    ///
    /// Fix: remove the URL from the sitemap, or allow its path.
    ///
    /// crawlgate checks this for Googlebot and all other search crawlers. If robots.txt closes the whole
    /// site to one of them but not to Googlebot, that is probably meant: crawlgate does not name
    /// that crawler.
    ///
    /// If the line is misspelt (`Disalow`), only Google surely reads it. The finding then says so.
    URL_DISALLOWED: Error "sitemap-url-disallowed";
    /// The policy has a noindex for Googlebot or bingbot on a URL of the sitemap. A sitemap lists
    /// pages that search engines are to index, and the tag says the opposite.
    ///
    /// Fix: remove the URL from the sitemap, or remove the tag.
    ///
    /// If robots.txt also disallows the URL for Googlebot and bingbot, they never see the noindex, and the
    /// page may stay in the index. Then allow the path until the page has left the index.
    ///
    /// The type of the page is taken from its extension. With `--fetch`, crawlgate also finds a
    /// noindex that your server sends: in the header `X-Robots-Tag`, and in the robots metas in the
    /// first 256 KiB of a page.
    URL_NOINDEX: Warning "sitemap-url-noindex";
    /// The page at a URL names another URL as its canonical one. Search engines index that URL, which
    /// the finding names.
    ///
    /// Fix: list the canonical URL, or correct the page.
    ///
    /// Only `--fetch` finds this: in the header `Link`, and in the `<link rel="canonical">` in the first
    /// 256 KiB of a page.
    URL_CANONICAL: Warning "sitemap-url-canonical";
    /// No policy has the host of a URL, or a sitemap of an index is on another host than its index.
    /// Search engines ignore such URLs. Often the sitemap was made on a test host.
    ///
    /// Fix: list only URLs of the site's own hosts.
    ///
    /// crawlgate neither judges nor requests these URLs. A robots.txt file does not name its host. If
    /// you check one, crawlgate applies it to the URLs of all hosts, and reports none of them here.
    URL_OTHER_HOST: Warning "sitemap-url-other-host";
    /// A URL is empty or not absolute. Search engines do not complete it with the address of the sitemap,
    /// but ignore it.
    ///
    /// Fix: write the full URL, with `https://` and the host.
    URL_RELATIVE: Warning "sitemap-url-relative";
    /// A URL has a fragment: `#` and a name. Search engines ignore it, and index the page once.
    ///
    /// Fix: list the URL without the fragment.
    URL_FRAGMENT: Warning "sitemap-url-fragment";
    /// A URL stands in the sitemaps of this check more than once. Search engines ignore the repetition.
    /// Often it shows that the generator lists a page for each of its categories or parameters.
    ///
    /// Fix: list each URL once.
    ///
    /// crawlgate compares each URL with the first 1,000,000 of all sitemaps.
    URL_REPEATED: Warning "sitemap-url-repeated";
    /// A URL redirects. Search engines index the target, and fetch two URLs in place of one.
    ///
    /// Fix: list the target of the redirect. If the target is the URL itself, fix the redirect on
    /// the server: it is a loop.
    ///
    /// Only `--fetch` finds this.
    URL_REDIRECTS: Warning "sitemap-url-redirects";
    /// A URL answers 404 or 410. Search engines fetch it in vain, and trust the sitemap less.
    ///
    /// Fix: remove the URL from the sitemap.
    ///
    /// Only `--fetch` finds this.
    URL_MISSING: Warning "sitemap-url-missing";
    /// A URL answers with another error, or does not answer within ten seconds.
    /// The finding has the status or the reason.
    ///
    /// Fix: repair the page. Search engines fetch fewer pages of a site with failing pages.
    ///
    /// Only `--fetch` finds this.
    URL_FAILING: Warning "sitemap-url-failing";
    /// A URL was not requested, because the time of `--fetch` ran out. Nothing is known about its
    /// answer.
    ///
    /// Fix: give more time with `--fetch-time`, or request more URLs at a time with `--connections`.
    URL_UNFETCHED: Warning "sitemap-url-unfetched";
}
