//! Fetching a robots.txt as a crawler does (RFC 9309 section 2.3): redirects followed also to other hosts, the size and
//! the time bounded, and a status that means something.
//!
//! Blocks its thread; knows no request of a client.

use super::trust;
use crate::robots::MAX_BYTES;
use std::io::Read;
use std::time::Duration;

/// RFC 9309 section 2.3.1.2: at least five.
const REDIRECTS: u32 = 5;
/// For everything together, in seconds.
const TIME: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A file.
    File {
        /// Its first 500 KiB and one octet more, by which a longer one shows.
        bytes: Vec<u8>,
        /// Whence it came after redirects.
        location: String,
        /// What the server says it is.
        server: Option<String>,
    },
    /// 4xx, or a chain of redirects: crawlers take it for a site without rules (RFC 9309 section 2.3.1.3).
    Unavailable(u16),
    /// 5xx and 429, which Google treats alike: crawlers stay away (RFC 9309 section 2.3.1.4).
    Unreachable(u16),
}

/// No answer at all; for crawlers the same as a 5xx.
#[derive(Debug, thiserror::Error)]
#[error("{url} could not be fetched: {reason}")]
pub struct FetchError {
    url: String,
    reason: String,
}

/// Fetches the robots.txt of an http or https URL; of a site when the URL has no path of its own.
///
/// # Errors
/// When there is no whole answer: a name that does not resolve, a refused connection, a bad certificate, a timeout.
pub fn fetch(url: &str) -> Result<Fetched, FetchError> {
    let url = robots_txt_of(url);
    let failed = |reason: String| FetchError { url: url.clone(), reason };
    let agent = ureq::Agent::new_with_config(
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(REDIRECTS)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIME))
            .tls_config(trust::system())
            .user_agent(concat!("crawlgate/", env!("CARGO_PKG_VERSION")))
            .build(),
    );
    let response =
        agent.get(&url).header("accept", "text/plain, */*;q=0.5").call().map_err(|e| failed(e.to_string()))?;
    let status = response.status().as_u16();
    match status {
        200..=299 => {
            let location = ureq::ResponseExt::get_uri(&response).to_string();
            let server = response.headers().get("server").and_then(|value| value.to_str().ok()).map(str::to_owned);
            let mut bytes = Vec::new();
            let mut body = response.into_body().into_reader().take(MAX_BYTES as u64 + 1);
            body.read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
            Ok(Fetched::File { bytes, location, server })
        }
        429 | 500..=599 => Ok(Fetched::Unreachable(status)),
        _ => Ok(Fetched::Unavailable(status)),
    }
}

/// `https://shop.example` means its `/robots.txt`.
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
    fn a_site_stands_for_its_robots_txt() {
        for (given, fetched) in [
            ("https://shop.example", "https://shop.example/robots.txt"),
            ("https://shop.example/", "https://shop.example/robots.txt"),
            ("http://shop.example:8080/robots.txt", "http://shop.example:8080/robots.txt"),
            ("https://shop.example/old-robots.txt?v=2", "https://shop.example/old-robots.txt?v=2"),
        ] {
            assert_eq!(robots_txt_of(given), fetched);
        }
    }
}
