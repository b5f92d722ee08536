//! Fetches robots.txt files. [`robots`] keeps copies of the files that origins (the web servers
//! behind crawlgate) serve themselves. [`fetch_robots`] fetches the file of any site as a crawler
//! does (RFC 9309 section 2.3): it follows redirects, also to other hosts, and limits size and
//! time.

pub mod robots;

use crate::download::{client_config, failure_reason, read_body};
use crate::printable::printable_path;
use crate::robots::MAX_ROBOTS_BYTES;
use std::time::Duration;

/// RFC 9309 section 2.3.1.2 requires at least five.
const MAX_REDIRECTS: u32 = 5;
/// The limit for all redirects together.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a fetch.
pub enum RobotsFetchOutcome {
    /// A file.
    File {
        /// Its first 500 KiB and one byte more, which shows that a file is longer.
        bytes: Vec<u8>,
        /// Its URL, after redirects.
        location: String,
    },
    /// 4xx, or too many redirects. Crawlers treat the site as one without rules (RFC 9309 section
    /// 2.3.1.3).
    Unavailable(u16),
    /// 5xx, and 429, which Google treats like 5xx. Crawlers stay away (RFC 9309 section 2.3.1.4).
    Unreachable(u16),
}

/// Why there is no complete response. Crawlers treat that like a 5xx.
#[derive(Debug, thiserror::Error)]
#[error("cannot fetch {url}: {reason}")]
pub struct FetchError {
    url: String,
    /// The reason for a person.
    pub reason: String,
}

/// Fetches an http or https URL, over at most five redirects. A URL without a path stands for the
/// site's `/robots.txt`. Blocks for 20 seconds at most.
///
/// # Errors
/// There is no complete answer: the name does not resolve, the connection is refused, the
/// certificate is bad, or time ran out.
pub fn fetch_robots(url: &str) -> Result<RobotsFetchOutcome, FetchError> {
    let url = robots_url(url);
    send_request(&url).map_err(|error| FetchError {
        url: printable_path(&url),
        reason: error.to_string(),
    })
}

fn send_request(url: &str) -> Result<RobotsFetchOutcome, Box<dyn std::error::Error>> {
    let agent =
        ureq::Agent::new_with_config(client_config(TIMEOUT).max_redirects(MAX_REDIRECTS).build());
    let response = agent
        .get(url)
        .header("accept", "text/plain, */*;q=0.5")
        .call()
        .map_err(|error| failure_reason(&error))?;
    let status = response.status().as_u16();
    match status {
        200..=299 => {
            let location = printable_path(ureq::ResponseExt::get_uri(&response).to_string());
            let bytes = read_body(response.into_body(), MAX_ROBOTS_BYTES)?;
            Ok(RobotsFetchOutcome::File { bytes, location })
        }
        429 | 500..=599 => Ok(RobotsFetchOutcome::Unreachable(status)),
        _ => Ok(RobotsFetchOutcome::Unavailable(status)),
    }
}

/// The URL with the path `/robots.txt`, if it has no path or `/` alone, and no query or fragment.
fn robots_url(url: &str) -> String {
    let authority = url.find("://").map_or(0, |place| place + 3);
    match url[authority..].find(['/', '?', '#']) {
        None => format!("{url}/robots.txt"),
        Some(path) if &url[authority + path..] == "/" => format!("{url}robots.txt"),
        Some(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_without_path_becomes_robots_txt() {
        for (url, expected) in [
            ("https://shop.example", "https://shop.example/robots.txt"),
            ("https://shop.example/", "https://shop.example/robots.txt"),
            (
                "http://shop.example:8080/robots.txt",
                "http://shop.example:8080/robots.txt",
            ),
            (
                "https://shop.example/old-robots.txt?v=2",
                "https://shop.example/old-robots.txt?v=2",
            ),
        ] {
            assert_eq!(robots_url(url), expected);
        }
    }
}
