//! Fetches robots.txt. [`robots`] keeps copies of the origins' own files. [`fetch`] reads the file
//! of any site as a crawler does (RFC 9309 section 2.3): it follows redirects to other hosts, and
//! bounds size and time.

pub mod robots;

use crate::download::{client, octets};
use crate::robots::MAX_BYTES;
use std::time::Duration;

/// RFC 9309 section 2.3.1.2 asks for at least five.
const REDIRECTS: u32 = 5;
/// Limit for all redirects together.
const TIME: Duration = Duration::from_secs(20);

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
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

/// There is no complete answer. Crawlers treat that like a 5xx.
#[derive(Debug, thiserror::Error)]
#[error("cannot fetch {url}: {reason}")]
pub struct FetchError {
    url: String,
    reason: String,
}

/// Fetches an http or https URL, over at most five redirects. A URL without a path stands for the
/// site's `/robots.txt`. Blocks for 20 seconds at most.
///
/// # Errors
/// There is no complete answer: the name does not resolve, the connection is refused, the
/// certificate is bad, or time ran out.
pub fn fetch(url: &str) -> Result<Fetched, FetchError> {
    let url = robots_txt_of(url);
    request(&url).map_err(|error| FetchError {
        url,
        reason: error.to_string(),
    })
}

fn request(url: &str) -> Result<Fetched, Box<dyn std::error::Error>> {
    let agent = ureq::Agent::new_with_config(client(TIME).max_redirects(REDIRECTS).build());
    let response = agent
        .get(url)
        .header("accept", "text/plain, */*;q=0.5")
        .call()?;
    let status = response.status().as_u16();
    match status {
        200..=299 => {
            let location = ureq::ResponseExt::get_uri(&response).to_string();
            let bytes = octets(response.into_body(), MAX_BYTES)?;
            Ok(Fetched::File { bytes, location })
        }
        429 | 500..=599 => Ok(Fetched::Unreachable(status)),
        _ => Ok(Fetched::Unavailable(status)),
    }
}

/// The URL itself; with `/robots.txt` if it has no path, or `/` alone, and no query or fragment.
fn robots_txt_of(url: &str) -> String {
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
    fn url_without_path_means_robots_txt() {
        for (given, fetched) in [
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
            assert_eq!(robots_txt_of(given), fetched);
        }
    }
}
