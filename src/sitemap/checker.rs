//! [`SitemapChecker`] judges the URLs of sitemaps: whether the rules of the site allow the known
//! search crawlers to fetch and to index each URL. With [`FetchLimits`], the checker also requests
//! the URLs.

use super::fetch::{FetchLimits, fetch_urls};
use super::findings::{FindingCollector, SitemapFinding};
use super::lints;
use super::parse::{Sitemap, SpanFinder};
use crate::crawlers::{Claim, CrawlerIndex, Purpose, Registry, RobotsObedience};
use crate::heads::likely_content_type;
use crate::policy::site::{GoogleParsing, SEARCH_ENGINES};
use crate::policy::{Kind, Site, Snapshot, Verdict};
use crate::printable::{join, join_first};
use crate::robots::{AbsoluteUrl, DisallowedPart, blanket_disallow, escape_url};
use crate::time::Timestamp;
use crate::verdict::{
    DecisionScratch, RecentBehaviour, RequestToJudge, decide_for, misspelt_line, rule_location,
};
use crate::yaml::Diagnostic;
use ahash::{AHashSet, RandomState};
use std::collections::BTreeSet;

/// The most bytes of URLs that findings list, in all sitemaps together. Further URLs are counted.
const MAX_LISTED_BYTES: usize = 512 << 20;
/// How many URLs the checker remembers to find repeated ones, in all sitemaps together.
const MAX_REMEMBERED: usize = 1_000_000;
/// How many crawlers a finding names.
const MAX_NAMED: usize = 2;

/// Checks sitemaps against the sites of a snapshot.
pub struct SitemapChecker<'a> {
    snapshot: &'a Snapshot,
    /// For `unavailable_after`.
    now: Timestamp,
    /// The search crawlers of each site of the snapshot.
    audiences: Vec<Vec<SearchCrawlerClass>>,
    /// The only host that the sites are for, with its port; `None` for those of their policies.
    only_host: Option<String>,
    /// How URLs are requested; `None` to request none.
    fetch: Option<FetchLimits>,
    hasher: RandomState,
    /// The hashes of the URLs so far, at most [`MAX_REMEMBERED`].
    seen: AHashSet<u64>,
    /// The bytes of the URLs in findings so far.
    listed_bytes: usize,
    scratch: DecisionScratch,
}

/// Search crawlers with the same rules.
struct SearchCrawlerClass {
    group: usize,
    google_parsing: GoogleParsing,
    /// One of them.
    claim: Claim,
    /// Their tokens.
    crawlers: Vec<&'static str>,
}

/// A URL of one of the sites.
struct SiteUrl {
    /// The index of the site in the snapshot.
    site: usize,
    /// Path, query and fragment, escaped as crawlers do.
    target: String,
}

impl<'a> SitemapChecker<'a> {
    /// Prepares the sites. With `fetch`, each URL of the sites is requested.
    pub fn new(
        snapshot: &'a Snapshot,
        now: Timestamp,
        only_host: Option<String>,
        fetch: Option<FetchLimits>,
    ) -> SitemapChecker<'a> {
        SitemapChecker {
            snapshot,
            now,
            audiences: snapshot
                .sites()
                .iter()
                .map(|entry| search_audiences(&entry.site))
                .collect(),
            only_host,
            fetch,
            hasher: RandomState::new(),
            seen: AHashSet::new(),
            listed_bytes: 0,
            scratch: DecisionScratch::default(),
        }
    }

    /// The findings about the URLs of a sitemap.
    pub fn check(&mut self, sitemap: &Sitemap) -> Vec<SitemapFinding> {
        // `None` for a repeated URL.
        let on_sites: Vec<Option<Result<SiteUrl, _>>> = sitemap
            .urls
            .iter()
            .map(|listed| {
                let is_new = self.insert_url(&listed.url);
                is_new.then(|| self.find_site(&listed.url))
            })
            .collect();
        let fetched = self.fetch.map(|limits| {
            let urls: Vec<_> = sitemap
                .urls
                .iter()
                .zip(&on_sites)
                .map(|(listed, place)| matches!(place, Some(Ok(_))).then_some(listed.url.as_str()))
                .collect();
            fetch_urls(&urls, limits, self.now)
        });
        let mut fetched = fetched.into_iter().flatten();
        let mut places = SpanFinder::new(&sitemap.text);
        let mut findings = FindingCollector::default();
        for (listed, place) in sitemap.urls.iter().zip(on_sites) {
            let fetched = fetched.next().flatten();
            let found = match place {
                None => {
                    let finding =
                        lints::URL_REPEATED.finding(None, "stands in the sitemaps more than once");
                    vec![finding.help("list each URL once")]
                }
                Some(Err(finding)) => vec![*finding],
                Some(Ok(place)) => self.judge(&place, fetched),
            };
            for finding in found {
                let span = Some(places.find(listed.range.clone()));
                self.listed_bytes +=
                    listed.url.len() + finding.label.as_ref().map_or(0, String::len);
                let is_listed = self.listed_bytes <= MAX_LISTED_BYTES;
                findings.add(Diagnostic { span, ..finding }, &listed.url, is_listed);
            }
        }
        findings.finish()
    }

    /// Remembers a URL. Returns whether it is new.
    fn insert_url(&mut self, url: &str) -> bool {
        let key = self.hasher.hash_one(url);
        if self.seen.len() < MAX_REMEMBERED {
            self.seen.insert(key)
        } else {
            !self.seen.contains(&key)
        }
    }

    /// The site of a URL. A finding if the URL is not absolute, or no site has its host; its message
    /// follows the URL.
    fn find_site(&self, url: &str) -> Result<SiteUrl, Box<Diagnostic>> {
        let absolute =
            AbsoluteUrl::parse(url.as_bytes()).filter(|absolute| absolute.default_port().is_some());
        let Some(absolute) = absolute else {
            let finding = lints::URL_RELATIVE.finding(None, "is not an absolute URL");
            let help = "write the full URL, with \"https://\" and the host";
            return Err(finding.help(help).into());
        };
        // The rest begins with an ASCII character.
        let (before, target) = url.split_at(url.len() - absolute.rest.len());
        let host = before.get(absolute.scheme.len() + 3..).unwrap_or_default();
        let is_wanted = self
            .only_host
            .as_deref()
            .is_none_or(|only| only.eq_ignore_ascii_case(host));
        match self.snapshot.site_for_host(host.as_bytes()) {
            Some(site) if is_wanted => Ok(SiteUrl {
                site,
                target: escape_url(target),
            }),
            _ => {
                let text = "is on a host that none of the checked sites has";
                let finding = lints::URL_OTHER_HOST.finding(None, text);
                let help = "list only URLs of the site's own hosts: search engines ignore others";
                Err(finding.help(help).into())
            }
        }
    }

    /// The findings about a URL by the rules of its site, and the one of its page, `fetched`. Their
    /// messages follow the URL.
    fn judge(&mut self, place: &SiteUrl, fetched: Option<Diagnostic>) -> Vec<Diagnostic> {
        let entry = &self.snapshot.sites()[place.site];
        // The rules that disallow the URL, with the crawlers.
        let mut disallowing: Vec<(String, Vec<&str>)> = Vec::new();
        let mut misspelt = BTreeSet::new();
        for audience in &self.audiences[place.site] {
            let request = RequestToJudge::verified_get(
                Registry::builtin(),
                entry,
                audience.claim,
                place.target.as_bytes(),
            );
            let decision = decide_for(&request, RecentBehaviour::default(), &mut self.scratch);
            // The crawlers may fetch the URL as it is written, if only a resolved one is closed.
            if decision.verdict != Verdict::Disallowed || decision.kind == Kind::Ambiguous {
                continue;
            }
            let location = rule_location(&decision, &entry.site).unwrap_or_default();
            if misspelt_line(&decision, &entry.site).is_some() {
                misspelt.insert(location.clone());
            }
            match disallowing.iter_mut().find(|(known, _)| *known == location) {
                Some((_, crawlers)) => crawlers.extend(&audience.crawlers),
                None => disallowing.push((location, audience.crawlers.clone())),
            }
        }
        let is_unseen = SEARCH_ENGINES.iter().all(|engine| {
            let mut closed = disallowing.iter();
            closed.any(|(_, crawlers)| crawlers.contains(engine))
        });
        let mut found = Vec::new();
        if !disallowing.is_empty() {
            let reasons = disallowing
                .iter_mut()
                .map(|(location, crawlers)| format!("for {} by {location}", named(crawlers)));
            let mut text = format!("is disallowed {}", join(reasons, "; "));
            if !misspelt.is_empty() {
                let lines = join(misspelt, ", ");
                text +=
                    &format!(" (misspelt: {lines}. Google reads it, other crawlers may ignore it)");
            }
            let help = "remove the URL from the sitemap, or allow its path";
            found.push(lints::URL_DISALLOWED.finding(None, text).help(help));
        }
        if place.target.contains('#') {
            found.push(
                lints::URL_FRAGMENT
                    .finding(None, "has a fragment")
                    .help("list the URL without # and what follows"),
            );
        }
        for mut finding in self.noindex_finding(place).into_iter().chain(fetched) {
            if is_unseen && finding.id == lints::URL_NOINDEX.id {
                finding.message += ", but is disallowed: crawlers never see the noindex";
                finding = finding.help(
                    "allow the path, so that crawlers see the noindex. When the page has left \
                     the index, remove the URL from the sitemap",
                );
            }
            found.push(finding);
        }
        found
    }

    /// The finding about a URL whose page has tags that keep a search engine from indexing it.
    fn noindex_finding(&mut self, place: &SiteUrl) -> Option<Diagnostic> {
        let target = place.target.as_bytes();
        let site = &self.snapshot.sites()[place.site].site;
        let media = likely_content_type(target).as_bytes();
        let target = self.scratch.target.normalise(target);
        let rules = site.tags.for_path(target, &mut self.scratch.decoded);
        let lines = site.tags.tags(&rules, 200, Some(media))?;
        let engine = SEARCH_ENGINES
            .into_iter()
            .find(|engine| lines.tags.effective(engine).forbids_indexing_at(self.now))?;
        let text = format!(
            "has the tags \"{}\" for {engine} by {}",
            lines.lines.join("\", \""),
            site.policy.source.name
        );
        let help = "remove the URL from the sitemap, or remove the tag";
        Some(lints::URL_NOINDEX.finding(None, text).help(help))
    }
}

/// The search crawlers that the groups of a site bind, by the rules that they obey. Leaves out
/// those to which the whole site is closed: their owner wants them nowhere. The group of
/// Googlebot stays.
fn search_audiences(site: &Site) -> Vec<SearchCrawlerClass> {
    let mut audiences: Vec<SearchCrawlerClass> = Vec::new();
    let crawlers = Registry::builtin().crawlers();
    for (index, crawler) in (0..).map(CrawlerIndex).zip(crawlers) {
        let claim = Claim::Known(index);
        let rules = site.crawler_rules(claim);
        let (Some(token), Some(group)) = (crawler.tokens.first(), rules.binding.group()) else {
            continue;
        };
        let is_bound = rules.judged && rules.binds != RobotsObedience::Never;
        if crawler.purpose != Purpose::Search || crawler.retired.is_some() || !is_bound {
            continue;
        }
        let google_parsing = rules.google_parsing;
        match audiences
            .iter_mut()
            .find(|audience| audience.group == group && audience.google_parsing == google_parsing)
        {
            Some(audience) => audience.crawlers.push(token),
            None => audiences.push(SearchCrawlerClass {
                group,
                google_parsing,
                claim,
                crawlers: vec![token],
            }),
        }
    }
    let of_google = audiences
        .iter()
        .find(|audience| audience.crawlers.contains(&SEARCH_ENGINES[0]))
        .map(|audience| audience.group);
    audiences.retain(|audience| {
        let rules = site.matcher.rules(audience.group).rules().iter();
        let closed = blanket_disallow(&rules.collect::<Vec<_>>()).map(|closed| closed.part);
        closed != Some(DisallowedPart::Whole) || Some(audience.group) == of_google
    });
    audiences
}

/// The first crawlers of a list as text, the important ones first, and the number of the others.
fn named(crawlers: &mut [&str]) -> String {
    crawlers.sort_by_key(|crawler| {
        SEARCH_ENGINES
            .iter()
            .position(|engine| engine == crawler)
            .unwrap_or(usize::MAX)
    });
    join_first(crawlers, MAX_NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SiteEntry;
    use crate::yaml::SourceFile;

    /// The findings about these URLs, with a policy for `docs.example`.
    fn findings(policy: &str, urls: &[&str]) -> Vec<SitemapFinding> {
        let source = SourceFile {
            name: "docs.yaml".into(),
            text: format!("hosts: docs.example\n{policy}").into(),
        };
        let registry = Registry::builtin();
        let (site, findings) = crate::verdict::load_site("docs", &source, registry);
        let site = site.unwrap_or_else(|| panic!("{findings:?}"));
        let snapshot = Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 0);
        let sitemap = Sitemap::parse(urls.join("\n").as_bytes()).expect("a list of URLs");
        SitemapChecker::new(&snapshot, Timestamp(0), None, None).check(&sitemap)
    }

    /// The ids of these findings, one for each URL.
    fn ids(policy: &str, urls: &[&str]) -> Vec<&'static str> {
        let found = findings(policy, urls).into_iter();
        found
            .flat_map(|finding| vec![finding.diagnostic.id; finding.urls.len().max(1)])
            .collect()
    }

    #[test]
    fn url_closed_to_some_search_crawlers_is_disallowed() {
        let policy = |agent: &str, path: &str| {
            format!(
                "robots: {{ origin: replace, groups: [{{ agents: {agent}, disallow: {path} }}] }}\n"
            )
        };
        let url = ["https://docs.example/a"];
        assert_eq!(
            ids(&policy("bingbot", "/a"), &url),
            ["sitemap-url-disallowed"]
        );
        // Their owner wants them nowhere, or they are no search crawlers.
        assert!(ids(&policy("bingbot", "/"), &url).is_empty());
        assert!(ids(&policy("GPTBot", "/a"), &url).is_empty());
        let closed = policy("'*'", "/") + "acknowledge: site_disallowed\n";
        assert_eq!(ids(&closed, &url), ["sitemap-url-disallowed"]);
    }

    #[test]
    fn url_whose_resolved_path_alone_is_closed_is_allowed() {
        let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: /a/ }] }\n";
        let urls = ["https://docs.example//a/", "HTTPS://DOCS.example:443/A"];
        assert!(ids(policy, &urls).is_empty());
        let other = [
            "ftp://docs.example/",
            "//docs.example/",
            "http://docs.example.evil/",
        ];
        assert_eq!(
            ids(policy, &other),
            [
                "sitemap-url-relative",
                "sitemap-url-relative",
                "sitemap-url-other-host"
            ]
        );
    }

    #[test]
    fn url_is_judged_as_crawlers_escape_it() {
        let policy =
            "robots: { origin: replace, groups: [{ agents: Googlebot, disallow: /über } ] }\n";
        for url in [
            "https://docs.example/über",
            "https://docs.example/%C3%BCber",
        ] {
            assert_eq!(ids(policy, &[url]), ["sitemap-url-disallowed"], "{url}");
        }
    }

    #[test]
    fn url_with_a_fragment_is_found() {
        assert_eq!(
            ids("", &["https://docs.example/a#b"]),
            ["sitemap-url-fragment"]
        );
    }

    #[test]
    fn urls_beyond_the_listed_bytes_are_counted() {
        let snapshot = Snapshot::default();
        let mut checker = SitemapChecker::new(&snapshot, Timestamp(0), None, None);
        checker.listed_bytes = MAX_LISTED_BYTES;
        let urls = [
            "https://a.example/1",
            "https://a.example/2",
            "https://a.example/3",
        ];
        let sitemap = Sitemap::parse(urls.join("\n").as_bytes()).expect("a list of URLs");
        let found = checker.check(&sitemap);
        let counted = (found.len(), found[0].urls.len(), found[0].diagnostic.more);
        assert_eq!(counted, (1, 1, 2));
    }

    #[test]
    fn repeated_url_is_reported_once_for_each_repetition() {
        let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: /a }] }\n";
        let url = "https://docs.example/a";
        let found = ids(policy, &[url, "https://docs.example/A", url]);
        assert_eq!(found, ["sitemap-url-disallowed", "sitemap-url-repeated"]);
    }

    #[test]
    fn url_in_two_sitemaps_is_repeated() {
        let snapshot = Snapshot::new(Vec::new(), 0);
        let mut checker = SitemapChecker::new(&snapshot, Timestamp(0), None, None);
        let mut repeated = |text: &str| {
            let sitemap = Sitemap::parse(text.as_bytes()).expect("a list of URLs");
            let found = checker.check(&sitemap).into_iter();
            let mut found = found.filter(|found| found.diagnostic.id == "sitemap-url-repeated");
            found.next().map_or(0, |found| found.urls.len())
        };
        assert_eq!(
            repeated("https://docs.example/a\nhttps://docs.example/b"),
            0
        );
        assert_eq!(
            repeated("https://docs.example/b\nhttps://docs.example/c"),
            1
        );
    }

    #[test]
    fn noindex_counts_for_the_type_of_the_url() {
        let policy = "robots: { origin: replace }\nindexing: [{ types: application/pdf, tag: noindex }, { paths: /x, tags: { yandex: noindex } }]\n";
        let urls = [
            "https://docs.example/a.pdf",
            "https://docs.example/a",
            "https://docs.example/x",
        ];
        assert_eq!(ids(policy, &urls), ["sitemap-url-noindex"]);
    }

    #[test]
    fn noindex_that_no_crawler_sees_is_another_finding() {
        let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: /a }, { agents: YandexBot, disallow: /b }] }\nindexing: [{ paths: [/a, /b], tag: noindex }]\n";
        let urls = ["https://docs.example/a", "https://docs.example/b"];
        let found = findings(policy, &urls);
        let found = found.iter().map(|finding| &finding.diagnostic);
        let of_noindex = found.filter(|finding| finding.id == "sitemap-url-noindex");
        let helps: Vec<_> = of_noindex.map(|finding| &finding.help).collect();
        assert_eq!(helps.len(), 2);
        assert_ne!(helps[0], helps[1]);
    }
}
