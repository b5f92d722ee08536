//! [`SitemapChecker`] judges the URLs of sitemaps: whether the rules of the site allow the known
//! search crawlers to fetch and to index each URL. If `fetch_until` is set, the checker also
//! requests the URLs.

use super::fetch::fetch_urls;
use super::lints::{self, url_finding};
use super::parse::{Sitemap, SpanFinder, shown};
use crate::crawlers::{Claim, CrawlerIndex, Purpose, Registry, RobotsObedience};
use crate::heads::likely_content_type;
use crate::policy::site::{GoogleParsing, SEARCH_ENGINES};
use crate::policy::{Kind, Site, Snapshot, Verdict};
use crate::printable::join;
use crate::robots::{AbsoluteUrl, DisallowedPart, blanket_disallow};
use crate::time::Timestamp;
use crate::verdict::{DecisionScratch, RecentBehaviour, RequestToJudge, decide_for, rule_location};
use crate::yaml::{Diagnostic, Diagnostics};
use std::collections::HashSet;
use std::time::Instant;

/// The most findings of one kind in one file. The last one counts the others.
const MAX_PER_KIND: usize = 100;
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
    /// Until when URLs are requested; `None` to request none.
    fetch_until: Option<Instant>,
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
struct SiteUrl<'u> {
    /// The index of the site in the snapshot.
    site: usize,
    /// Path, query and fragment.
    target: &'u [u8],
}

impl<'a> SitemapChecker<'a> {
    /// Prepares the sites. With `fetch_until`, each URL of the sites is requested, and no request
    /// begins later than that.
    pub fn new(
        snapshot: &'a Snapshot,
        now: Timestamp,
        only_host: Option<String>,
        fetch_until: Option<Instant>,
    ) -> SitemapChecker<'a> {
        let sites = snapshot.sites().iter();
        SitemapChecker {
            snapshot,
            now,
            audiences: sites.map(|entry| search_audiences(&entry.site)).collect(),
            only_host,
            fetch_until,
            scratch: DecisionScratch::default(),
        }
    }

    /// The findings about the URLs of a sitemap, in their order. At most 100 of each kind are
    /// listed.
    pub fn check(&mut self, sitemap: &Sitemap) -> Diagnostics {
        let mut seen = HashSet::new();
        let fetched = self.fetch_until.map(|until| {
            let on_sites = sitemap.urls.iter().map(|listed| {
                let is_first = seen.insert(&listed.url);
                let place = self.find_site(&listed.url);
                (is_first && place.is_ok()).then_some(listed.url.as_str())
            });
            fetch_urls(&on_sites.collect::<Vec<_>>(), until, self.now)
        });
        let mut fetched = fetched.into_iter().flatten();
        let mut places = SpanFinder::new(&sitemap.text);
        let mut findings = Diagnostics::default();
        if sitemap.urls.is_empty() {
            let finding = lints::SITEMAP_UNREADABLE.finding(None, "it has no URL");
            findings.push(finding.help("compare it with what your sitemap generator should list"));
        }
        seen.clear();
        for listed in &sitemap.urls {
            let found = match self.find_site(&listed.url) {
                _ if !seen.insert(&listed.url) => {
                    let text = "stands in the sitemap more than once";
                    let finding = url_finding(&lints::URL_REPEATED, &listed.url, text);
                    vec![finding.help("list each URL once")]
                }
                Err(finding) => vec![*finding],
                Ok(place) => self.judge(&listed.url, &place),
            };
            for finding in found.into_iter().chain(fetched.next().flatten()) {
                let span = Some(places.find(listed.range.clone()));
                push_limited(&mut findings, Diagnostic { span, ..finding });
            }
        }
        findings
    }

    /// The site of a URL. A finding if the URL is not absolute, or no site has its host.
    fn find_site<'u>(&self, url: &'u str) -> Result<SiteUrl<'u>, Box<Diagnostic>> {
        let absolute =
            AbsoluteUrl::parse(url.as_bytes()).filter(|absolute| absolute.default_port().is_some());
        let Some(absolute) = absolute else {
            let finding = url_finding(&lints::URL_RELATIVE, url, "is not an absolute URL");
            let help = "write the full URL, with \"https://\" and the host";
            return Err(finding.help(help).into());
        };
        let host = url.get(absolute.scheme.len() + 3..url.len() - absolute.rest.len());
        let host = host.unwrap_or_default();
        let only_host = self.only_host.as_deref();
        let is_wanted = only_host.is_none_or(|only| only.eq_ignore_ascii_case(host));
        match self.snapshot.site_for_host(host.as_bytes()) {
            Some(site) if is_wanted => Ok(SiteUrl {
                site,
                target: absolute.rest,
            }),
            _ => {
                let message = format!("no checked site has the host of {}", shown(url));
                let finding = lints::URL_OTHER_HOST.finding(None, message);
                let help = "list only URLs of the site's own hosts: search engines ignore others";
                Err(finding.help(help).into())
            }
        }
    }

    /// The findings about a URL by the rules of its site.
    fn judge(&mut self, url: &str, place: &SiteUrl<'_>) -> Vec<Diagnostic> {
        let entry = &self.snapshot.sites()[place.site];
        // The rules that disallow the URL, with the crawlers.
        let mut disallowing: Vec<(String, Vec<&str>)> = Vec::new();
        for audience in &self.audiences[place.site] {
            let request = RequestToJudge::verified_get(
                Registry::builtin(),
                entry,
                audience.claim,
                place.target,
            );
            let decision = decide_for(&request, RecentBehaviour::default(), &mut self.scratch);
            // The crawlers may fetch the URL as it is written, if only a resolved one is closed.
            if decision.verdict != Verdict::Disallowed || decision.kind == Kind::Ambiguous {
                continue;
            }
            let location = rule_location(&decision, &entry.site).unwrap_or_default();
            match disallowing.iter_mut().find(|(known, _)| *known == location) {
                Some((_, crawlers)) => crawlers.extend(&audience.crawlers),
                None => disallowing.push((location, audience.crawlers.clone())),
            }
        }
        let mut found = Vec::new();
        if !disallowing.is_empty() {
            let reasons = disallowing
                .iter_mut()
                .map(|(location, crawlers)| format!("for {} by {location}", named(crawlers)));
            let text = format!("is disallowed {}", join(reasons, ", "));
            let help = "remove the URL from the sitemap, or allow its path";
            found.push(url_finding(&lints::URL_DISALLOWED, url, &text).help(help));
        }
        found.extend(self.noindex_finding(url, place));
        found
    }

    /// The finding about a URL whose page has tags that keep a search engine from indexing it.
    fn noindex_finding(&mut self, url: &str, place: &SiteUrl<'_>) -> Option<Diagnostic> {
        let site = &self.snapshot.sites()[place.site].site;
        let target = self.scratch.target.normalise(place.target);
        let rules = site.tags.for_path(target, &mut self.scratch.decoded);
        let media = likely_content_type(place.target).as_bytes();
        let lines = site.tags.tags(&rules, 200, Some(media))?;
        let engine = SEARCH_ENGINES
            .into_iter()
            .find(|engine| lines.tags.effective(engine).forbids_indexing_at(self.now))?;
        let text = format!(
            "has the tags \"{}\" by {}: {engine} does not index it",
            lines.lines.join("\", \""),
            site.policy.source.name
        );
        let help = "remove the URL from the sitemap, or remove the tag";
        Some(url_finding(&lints::URL_NOINDEX, url, &text).help(help))
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
        let rules = site.matcher.rules(audience.group).rules();
        let closed = blanket_disallow(rules).map(|closed| closed.part);
        closed != Some(DisallowedPart::Whole) || Some(audience.group) == of_google
    });
    audiences
}

/// The first crawlers of a list as text, the important ones first, and the number of the others.
fn named(crawlers: &mut [&str]) -> String {
    crawlers.sort_by_key(|crawler| {
        let rank = SEARCH_ENGINES.iter().position(|engine| engine == crawler);
        rank.unwrap_or(usize::MAX)
    });
    let mut text = join(crawlers.iter().take(MAX_NAMED), ", ");
    if crawlers.len() > MAX_NAMED {
        text.push_str(&format!(" and {} more", crawlers.len() - MAX_NAMED));
    }
    text
}

/// Adds a finding of a file, or counts it in the last of its kind that is listed.
pub fn push_limited(findings: &mut Diagnostics, finding: Diagnostic) {
    let mut of_kind = findings
        .items
        .iter_mut()
        .filter(|listed| listed.id == finding.id);
    match of_kind.nth(MAX_PER_KIND - 1) {
        Some(last) => last.more += 1,
        None => findings.push(finding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SiteEntry;
    use crate::yaml::SourceFile;

    /// The ids of the findings about these URLs, with a policy for `docs.example`.
    fn ids(policy: &str, urls: &[&str]) -> Vec<&'static str> {
        let source = SourceFile {
            name: "docs.yaml".into(),
            text: format!("hosts: docs.example\n{policy}").into(),
        };
        let registry = Registry::builtin();
        let (site, findings) = crate::verdict::load_site("docs", &source, registry);
        let site = site.unwrap_or_else(|| panic!("{findings:?}"));
        let snapshot = Snapshot::new(vec![SiteEntry::new(site, Timestamp(0))], 0);
        let sitemap = Sitemap::parse(urls.join("\n").as_bytes()).expect("a list of URLs");
        let mut checker = SitemapChecker::new(&snapshot, Timestamp(0), None, None);
        let found = checker.check(&sitemap).items;
        found.into_iter().map(|finding| finding.id).collect()
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
    fn repeated_url_is_reported_once_for_each_repetition() {
        let policy = "robots: { origin: replace, groups: [{ agents: '*', disallow: /a }] }\n";
        let url = "https://docs.example/a";
        let found = ids(policy, &[url, "https://docs.example/A", url]);
        assert_eq!(found, ["sitemap-url-disallowed", "sitemap-url-repeated"]);
    }

    #[test]
    fn sitemap_without_urls_is_reported() {
        let empty = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"></urlset>";
        assert_eq!(ids("", &[empty]), ["sitemap-unreadable"]);
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
}
