//! [`fetch_urls`] requests the URLs of a sitemap. It reports the URLs that a search engine would
//! not index: the response is an error or a redirect, or the page says `noindex` or has another
//! canonical URL. It follows no redirect. [`FetchLimits`] bounds the time and the requests under way.

use super::lints;
use super::parse::shown;
use crate::download::{client_config, header_text, read_body};
use crate::html::read_metas;
use crate::indexing::{RobotsTags, parse_lines};
use crate::locks::lock;
use crate::policy::site::SEARCH_ENGINES;
use crate::printable::truncate;
use crate::robots::{AbsoluteUrl, TargetScratch, escape_url, url_path};
use crate::time::Timestamp;
use crate::yaml::Diagnostic;
use quick_xml::escape::unescape;
use std::io;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use ureq::http::{HeaderValue, Response};
use ureq::{Agent, Body};

/// The limit for one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a page is read for its metas.
const MAX_PAGE_BYTES: usize = 256 * 1024;
/// How much of the target of a redirect, or of a canonical URL, is kept.
const MAX_TARGET_BYTES: usize = 2_048;

/// How URLs are requested.
#[derive(Clone, Copy)]
pub struct FetchLimits {
    /// No request begins later.
    pub until: Instant,
    /// How many requests are under way at a time.
    pub connections: u8,
}

/// Requests each URL once. Returns the findings by the index of the URL, without the URL; `None`
/// where there is no URL, and for a page that may be in the index at `now`.
pub fn fetch_urls(
    urls: &[Option<&str>],
    limits: FetchLimits,
    now: Timestamp,
) -> Vec<Option<Diagnostic>> {
    let mut findings = vec![None; urls.len()];
    let waiting = Mutex::new(urls.iter().zip(&mut findings));
    thread::scope(|scope| {
        for _ in 0..limits.connections {
            scope.spawn(|| {
                let client = Agent::new_with_config(client_config(TIMEOUT).build());
                loop {
                    let Some((url, finding)) = lock(&waiting).next() else {
                        break;
                    };
                    *finding = url.and_then(|url| fetch(&client, url, limits.until, now));
                }
            });
        }
    });
    findings
}

/// The finding about the answer to a URL, unless it is a page that may be in the index.
fn fetch(client: &Agent, url: &str, until: Instant, now: Timestamp) -> Option<Diagnostic> {
    if Instant::now() >= until {
        let text = "was not requested: the time for all URLs ran out";
        let help =
            "give more time with --fetch-time, or request more URLs at a time with --connections";
        return Some(lints::URL_UNFETCHED.finding(None, text).help(help));
    }
    let response = match client.get(escape_url(url)).call() {
        Err(error) => return Some(failing(format!("failed: {error}"))),
        Ok(response) => response,
    };
    match response.status().as_u16() {
        200..=299 => page_finding(response, url, now)
            .unwrap_or_else(|error| Some(failing(format!("failed: {error}")))),
        status @ 300..=399 => {
            let target = header_text(&response, "location").unwrap_or_default();
            let finding = lints::URL_REDIRECTS.finding(None, format!("redirects ({status})"));
            let help = "list the URL of the redirect's target. If the target is this URL or redirects back to it, fix the \
                        redirect on the server: it is a loop";
            Some(
                finding
                    .label(truncate(&target, MAX_TARGET_BYTES))
                    .help(help),
            )
        }
        status @ (404 | 410) => Some(
            lints::URL_MISSING
                .finding(None, format!("answers {status}"))
                .help("remove the URL from the sitemap"),
        ),
        status => Some(failing(format!("answers {status}"))),
    }
}

fn failing(text: String) -> Diagnostic {
    let help = "search engines fetch fewer pages of a site with failing pages";
    lints::URL_FAILING.finding(None, text).help(help)
}

/// The finding about a page that says that search engines are not to index this URL: by a noindex in
/// its header or in the page, or by another canonical URL there.
///
/// # Errors
/// The page ended too early.
fn page_finding(
    response: Response<Body>,
    url: &str,
    now: Timestamp,
) -> io::Result<Option<Diagnostic>> {
    let forbids = |tags: &RobotsTags| {
        SEARCH_ENGINES
            .into_iter()
            .any(|engine| tags.effective(engine).forbids_indexing_at(now))
    };
    let fields = response.headers().get_all("x-robots-tag");
    let tags = parse_lines(fields.iter().map(HeaderValue::as_bytes));
    if forbids(&tags) {
        let lines = shown(&tags.lines().join(", "));
        return Ok(Some(noindex(format!("answers with X-Robots-Tag {lines}"))));
    }
    let content_type = header_text(&response, "content-type").unwrap_or_default();
    let mut canonical = response
        .headers()
        .get_all("link")
        .iter()
        .find_map(|link| linked_canonical(link.as_bytes()));
    if content_type.to_ascii_lowercase().contains("html") {
        let page = read_metas(&read_body(response.into_body(), MAX_PAGE_BYTES)?);
        if forbids(&page.tags) {
            return Ok(Some(noindex("is a page with a robots meta noindex".into())));
        }
        canonical = page.canonical.or(canonical);
    }
    let canonical = canonical.unwrap_or_default();
    let canonical = canonical.trim();
    // HTML may have names that XML lacks, and `&` alone.
    let canonical = unescape(canonical).unwrap_or(canonical.into());
    Ok(is_other_page(url, &canonical).then(|| {
        lints::URL_CANONICAL
            .finding(None, "is canonicalised")
            .label(truncate(&canonical, MAX_TARGET_BYTES))
            .help("list the canonical URL of the page")
    }))
}

/// The canonical URL of a `Link` header, which a PDF has in place of an element.
fn linked_canonical(field: &[u8]) -> Option<String> {
    let field = String::from_utf8_lossy(field);
    let link = field.split('<').find(|link| {
        link.to_ascii_lowercase()
            .replace('"', "")
            .contains("rel=canonical")
    });
    Some(link?.split_once('>')?.0.to_owned())
}

fn noindex(text: String) -> Diagnostic {
    let help = "remove the URL from the sitemap, or remove the noindex";
    lints::URL_NOINDEX.finding(None, text).help(help)
}

/// Whether a canonical URL is not this one. False for one that is relative to the page.
fn is_other_page(url: &str, canonical: &str) -> bool {
    let Some(own) = AbsoluteUrl::parse(url.as_bytes()) else {
        return false;
    };
    let other = AbsoluteUrl::parse(canonical.as_bytes());
    let is_other_host = other.is_some_and(|other| {
        let port = own.default_port().unwrap_or_default();
        !other.scheme.is_empty() && !other.scheme.eq_ignore_ascii_case(own.scheme)
            || !own.authority.is_same_as(&other.authority, port)
    });
    let [path, other_path] = [url, canonical].map(|url| {
        let path = url_path(url.as_bytes());
        TargetScratch::default().normalise(&path).sent.to_vec()
    });
    let is_absolute = other.is_some() || canonical.starts_with('/');
    is_other_host || is_absolute && path != other_path
}

#[cfg(test)]
mod tests {
    use super::{is_other_page, linked_canonical};

    #[test]
    fn canonical_of_link_header_is_found() {
        let first =
            "</a,b.css>; rel=preload; as=style, <https://shop.example/a>; rel=\"canonical\"";
        for (field, canonical) in [
            (first, Some("https://shop.example/a")),
            ("</b>; title=x; Rel=canonical", Some("/b")),
            ("</c>; rel=next", None),
        ] {
            assert_eq!(linked_canonical(field.as_bytes()).as_deref(), canonical);
        }
    }

    #[test]
    fn canonical_of_another_url_is_found() {
        const URL: &str = "https://shop.example/%c3%a4?a";
        for (canonical, is_other) in [
            ("https://SHOP.example:443/\u{e4}?a#part", false),
            ("//shop.example/%C3%A4?a", false),
            ("/%C3%A4?a", false),
            ("page", false),
            ("/%C3%A4", true),
            ("http://shop.example/%C3%A4?a", true),
            ("https://www.shop.example/%C3%A4?a", true),
        ] {
            assert_eq!(is_other_page(URL, canonical), is_other, "{canonical}");
        }
        assert!(!is_other_page(
            "https://shop.example",
            "https://shop.example/"
        ));
    }
}
