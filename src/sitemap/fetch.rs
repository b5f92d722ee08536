//! [`fetch_urls`] requests the URLs of a sitemap, four at a time, and follows no redirect.

use crate::download::{client_config, header_text};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ureq::Agent;

/// How many requests are under way at a time.
const MAX_CONCURRENT: usize = 4;
/// The limit for one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the server of a URL answered.
#[derive(Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// A page.
    Found,
    /// A redirect.
    Redirects {
        /// The value of `Location`; empty without one.
        to: String,
    },
    /// 404 or 410.
    Missing(u16),
    /// Another status, or no answer, with the reason.
    Failing(String),
    /// The request did not begin in time.
    Unfetched,
}

/// Requests each URL once: with HEAD, and again with GET if HEAD fails, which some servers do not
/// support. No request begins after `until`. Returns the outcomes by the index of the URL; `None`
/// where there is no URL.
pub fn fetch_urls(urls: &[Option<&str>], until: Instant) -> Vec<Option<FetchOutcome>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let client = Agent::new_with_config(client_config(TIMEOUT).build());
        let mut outcomes = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            match urls.get(index) {
                None => return outcomes,
                Some(None) => {}
                Some(Some(_)) if Instant::now() >= until => {
                    outcomes.push((index, FetchOutcome::Unfetched));
                }
                Some(Some(url)) => outcomes.push((index, fetch(&client, url))),
            }
        }
    };
    let mut all: Vec<Option<FetchOutcome>> = urls.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..MAX_CONCURRENT).map(|_| scope.spawn(work)).collect();
        for (index, outcome) in threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
        {
            all[index] = Some(outcome);
        }
    });
    all
}

fn fetch(client: &Agent, url: &str) -> FetchOutcome {
    let answered = client.head(url).call().and_then(|response| {
        if response.status().as_u16() < 400 {
            Ok(response)
        } else {
            client.get(url).call()
        }
    });
    let response = match answered {
        Ok(response) => response,
        Err(error) => return FetchOutcome::Failing(error.to_string()),
    };
    match response.status().as_u16() {
        200..=299 => FetchOutcome::Found,
        300..=399 => FetchOutcome::Redirects {
            to: header_text(&response, "location").unwrap_or_default(),
        },
        status @ (404 | 410) => FetchOutcome::Missing(status),
        status => FetchOutcome::Failing(format!("it answers {status}")),
    }
}
