//! [`fetch_urls`] requests the URLs of a sitemap. It reports the URLs that a search engine would
//! not index: the response is an error or a redirect, or the page says `noindex`. It follows no
//! redirect. [`FetchLimits`] bounds the time and the requests under way.

use super::lints;
use super::parse::shown;
use crate::download::{client_config, header_text, read_body};
use crate::html::read_metas;
use crate::indexing::{RobotsTags, parse_lines};
use crate::locks::lock;
use crate::policy::site::SEARCH_ENGINES;
use crate::printable::truncate;
use crate::robots::escape_url;
use crate::time::Timestamp;
use crate::yaml::Diagnostic;
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
/// How much of the target of a redirect is kept.
const MAX_TARGET_BYTES: usize = 2_048;
const FAILING_HELP: &str = "search engines fetch fewer pages of a site with failing pages";

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
                    let next = lock(&waiting).next();
                    let Some((url, finding)) = next else { break };
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
    let (lint, text, help) = match client.get(escape_url(url)).call() {
        Err(error) => (lints::URL_FAILING, format!("failed: {error}"), FAILING_HELP),
        Ok(response) => match response.status().as_u16() {
            200..=299 => match noindex_text(response, now).transpose()? {
                Ok(text) => (
                    lints::URL_NOINDEX,
                    text,
                    "remove the URL from the sitemap, or remove the noindex",
                ),
                Err(error) => (lints::URL_FAILING, format!("failed: {error}"), FAILING_HELP),
            },
            300..=399 => {
                let target = header_text(&response, "location").unwrap_or_default();
                let target = truncate(&target, MAX_TARGET_BYTES);
                if target == url {
                    let finding = lints::URL_FAILING.finding(None, "redirects to itself");
                    return Some(finding.help(FAILING_HELP));
                }
                let finding = lints::URL_REDIRECTS.finding(None, "redirects");
                let help = "list the URL of the redirect's target";
                return Some(finding.label(target).help(help));
            }
            status @ (404 | 410) => (
                lints::URL_MISSING,
                format!("answers {status}"),
                "remove the URL from the sitemap",
            ),
            status => (
                lints::URL_FAILING,
                format!("answers {status}"),
                FAILING_HELP,
            ),
        },
    };
    Some(lint.finding(None, text).help(help))
}

/// How a page says that a search engine is not to index it: by its header, or by a meta.
///
/// # Errors
/// The page ended too early.
fn noindex_text(response: Response<Body>, now: Timestamp) -> io::Result<Option<String>> {
    let forbids = |tags: &RobotsTags| {
        let mut engines = SEARCH_ENGINES.into_iter();
        engines.any(|engine| tags.effective(engine).forbids_indexing_at(now))
    };
    let fields = response.headers().get_all("x-robots-tag").iter();
    let tags = parse_lines(fields.map(HeaderValue::as_bytes));
    if forbids(&tags) {
        let lines = tags.lines().join(", ");
        return Ok(Some(format!("answers with X-Robots-Tag {}", shown(&lines))));
    }
    let content_type = header_text(&response, "content-type").unwrap_or_default();
    if !content_type.to_ascii_lowercase().contains("html") {
        return Ok(None);
    }
    let tags = read_metas(&read_body(response.into_body(), MAX_PAGE_BYTES)?);
    Ok(forbids(&tags).then(|| "is a page with a robots meta noindex".to_owned()))
}
