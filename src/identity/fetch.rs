//! [`fetch`] requests one published list over HTTP and returns a [`ListFetch`]. Redirects, size and time are bounded. It
//! blocks the thread meanwhile.

use super::published::FetchedList;
use crate::crawlers::MAX_LIST_BYTES;
use crate::download::{client, conditional, field, octets};
use std::time::{Duration, Instant};

const REDIRECTS: usize = 5;
/// The limit for all redirects together.
const TIME: Duration = Duration::from_secs(20);
const CONNECT: Duration = Duration::from_secs(5);

/// The result of a request for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListFetch {
    /// A list.
    List(FetchedList),
    /// The list has not changed.
    Unchanged,
    /// There is none, by status 404 or 410 or because the directory has no file for it.
    Absent,
    /// The list could not be fetched, for this reason.
    Failed(String),
}

/// Requests a list. The validators are those of the known list; empty where there is none.
pub fn fetch(url: &str, etag: &str, last_modified: &str) -> ListFetch {
    let deadline = Instant::now() + TIME;
    let mut url = url.to_owned();
    for _ in 0..=REDIRECTS {
        let response = match request(&url, etag, last_modified, deadline) {
            Ok(response) => response,
            Err(error) => return ListFetch::Failed(error.to_string()),
        };
        let field = |name: &str| field(&response, name).unwrap_or_default();
        match response.status().as_u16() {
            200 => {
                let (etag, last_modified) = (field("etag"), field("last-modified"));
                return match octets(response.into_body(), MAX_LIST_BYTES) {
                    Ok(bytes) => ListFetch::List(FetchedList { bytes, etag, last_modified }),
                    Err(error) => ListFetch::Failed(format!("the answer broke off: {error}")),
                };
            }
            304 if !(etag.is_empty() && last_modified.is_empty()) => return ListFetch::Unchanged,
            status @ (301 | 302 | 303 | 307 | 308) => match redirected(&url, &field("location")) {
                Some(next) => url = next,
                None => return ListFetch::Failed(format!("the Location of the {status} cannot be followed")),
            },
            404 | 410 => return ListFetch::Absent,
            status => return ListFetch::Failed(format!("the answer is {status}")),
        }
    }
    ListFetch::Failed(format!("more than {REDIRECTS} redirects"))
}

/// Where a redirect leads. From https never to http.
fn redirected(from: &str, location: &str) -> Option<String> {
    let (scheme, rest) = from.split_once("://")?;
    let authority = rest.split('/').next()?;
    if location.starts_with("https://") || scheme == "http" && location.starts_with("http://") {
        return Some(location.to_owned());
    }
    let is_path = location.starts_with('/') && !location.starts_with("//");
    is_path.then(|| format!("{scheme}://{authority}{location}"))
}

fn request(
    url: &str,
    etag: &str,
    last_modified: &str,
    deadline: Instant,
) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let agent = ureq::Agent::new_with_config(client(left).timeout_connect(Some(CONNECT)).build());
    let request = agent.get(url).header("accept", "application/json, text/plain;q=0.9, */*;q=0.5");
    let [etag, last_modified] = [etag, last_modified].map(|known| Some(known).filter(|known| !known.is_empty()));
    conditional(request, etag, last_modified).call()
}

#[cfg(test)]
mod tests {
    use super::redirected;

    #[test]
    fn redirects_never_leave_tls() {
        let to = |from: &str, location: &str| redirected(from, location).unwrap_or_default();
        assert_eq!(to("https://a.example/x", "/y"), "https://a.example/y");
        assert_eq!(to("https://a.example/x", "https://b.example/y"), "https://b.example/y");
        assert_eq!(to("https://a.example/x", "http://b.example/y"), "");
        assert_eq!(to("http://a.example/x", "http://b.example/y"), "http://b.example/y");
        for refused in ["//b.example/y", "y", "", "file:///etc/passwd"] {
            assert_eq!(to("https://a.example/x", refused), "", "{refused}");
        }
    }
}
