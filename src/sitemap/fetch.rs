//! [`fetch_urls`] requests the URLs of a sitemap, four at a time, and follows no redirect.

use super::lints;
use super::parse::shown;
use crate::download::{client_config, header_text};
use crate::yaml::Diagnostic;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ureq::Agent;

/// How many requests are under way at a time.
const MAX_CONCURRENT: usize = 4;
/// The limit for one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Requests each URL once: with HEAD, and again with GET if HEAD fails, which some servers do not
/// support. No request begins after `until`. Returns the findings by the index of the URL; `None`
/// where there is no URL, and for a page.
pub fn fetch_urls(urls: &[Option<&str>], until: Instant) -> Vec<Option<Diagnostic>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let client = Agent::new_with_config(client_config(TIMEOUT).build());
        let mut findings = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            match urls.get(index) {
                None => return findings,
                Some(None) => {}
                Some(Some(url)) => findings.push((index, fetch(&client, url, until))),
            }
        }
    };
    let mut all = vec![None; urls.len()];
    thread::scope(|scope| {
        let threads: Vec<_> = (0..MAX_CONCURRENT).map(|_| scope.spawn(work)).collect();
        for (index, finding) in threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
        {
            all[index] = finding;
        }
    });
    all
}

/// The finding about the answer to a URL, unless it is a page.
fn fetch(client: &Agent, url: &str, until: Instant) -> Option<Diagnostic> {
    let shown_url = shown(url);
    if Instant::now() >= until {
        let message = format!("{shown_url} was not requested: the time for all URLs ran out");
        let help = "check fewer sitemaps at a time with --fetch";
        return Some(lints::URL_UNFETCHED.finding(None, message).help(help));
    }
    let answered = client.head(url).call().and_then(|response| {
        if response.status().as_u16() < 400 {
            Ok(response)
        } else {
            client.get(url).call()
        }
    });
    let status = answered.as_ref().map(|response| response.status().as_u16());
    let (lint, message, help) = match (status, &answered) {
        (Ok(200..=299), Ok(response)) => {
            let tag = header_text(response, "x-robots-tag").unwrap_or_default();
            if !tag.to_lowercase().contains("noindex") {
                return None;
            }
            (
                lints::URL_NOINDEX,
                format!("answers with X-Robots-Tag {}", shown(&tag)),
                "remove the URL from the sitemap, or remove the tag",
            )
        }
        (Ok(300..=399), Ok(response)) => {
            let target = header_text(response, "location").unwrap_or_default();
            (
                lints::URL_REDIRECTS,
                format!("redirects to {}", shown(&target)),
                "list the URL of the redirect's target",
            )
        }
        (Ok(status @ (404 | 410)), _) => (
            lints::URL_MISSING,
            format!("answers {status}"),
            "remove the URL from the sitemap",
        ),
        (status, _) => {
            let reason = match status {
                Ok(status) => format!("it answers {status}"),
                Err(error) => error.to_string(),
            };
            (
                lints::URL_FAILING,
                format!("failed: {reason}"),
                "search engines fetch fewer pages of a site with failing pages",
            )
        }
    };
    Some(
        lint.finding(None, format!("{shown_url} {message}"))
            .help(help),
    )
}
