//! [`BoundedHttp`]: the HTTP client by which the crate instant-acme asks a certificate authority.
//! Answers are bounded in size and time, every URL must be https, and no redirect is followed. The
//! client keeps the `Retry-After` of a failed request, because the crate does not pass it on.

use super::failure::cut;
use crate::download::{client, octets};
use crate::locks::lock;
use bytes::Bytes;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use ureq::Agent;

/// A chain of certificates has some KiB.
const LARGEST: usize = 512 * 1024;
const CONNECT: Duration = Duration::from_secs(10);
/// The limit for a request with its answer.
const TIME: Duration = Duration::from_secs(30);
/// The user agent, which RFC 8555 section 6.1 requires.
const AGENT: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// The problem document of an answer 429 that has none.
const LIMITED: &[u8] =
    br#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"429 Too Many Requests"}"#;

/// A client with bounds.
#[derive(Clone)]
pub struct BoundedHttp {
    agent: Agent,
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl BoundedHttp {
    pub fn new() -> BoundedHttp {
        let config = client(TIME)
            .https_only(true)
            .timeout_connect(Some(CONNECT))
            .build();
        BoundedHttp {
            agent: Agent::new_with_config(config),
            retry_after: Arc::default(),
        }
    }

    /// The `Retry-After` of the last answer, if that was a failure.
    pub fn retry_after(&self) -> Option<Duration> {
        *lock(&self.retry_after)
    }

    /// Sends a request and reads the whole answer. Keeps the `Retry-After` of a status 4xx or 5xx,
    /// and forgets it at another status. A 429 without the problem `rateLimited` gets a body with
    /// that problem. An error (also for a status 5xx) says why the authority cannot be asked.
    fn call(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        if request.uri().scheme_str() != Some("https") {
            return Err("it names a URL that is not https".into());
        }
        let response = self.agent.run(request)?;
        let (head, body) = response.into_parts();
        let mut octets =
            octets(body, LARGEST).map_err(|error| format!("its answer broke off: {error}"))?;
        if octets.len() > LARGEST {
            return Err(format!("its answer has more than {LARGEST} bytes").into());
        }
        let failed = head.status.is_client_error() || head.status.is_server_error();
        let after = failed
            .then(|| head.headers.get(RETRY_AFTER).and_then(duration))
            .flatten();
        *lock(&self.retry_after) = after;
        // The crate reads a failure from the document alone, which may be another server's, or
        // none.
        if head.status.is_server_error() {
            let text = cut(&String::from_utf8_lossy(&octets));
            return Err(format!("it answers {} {text}", head.status).into());
        }
        if head.status == StatusCode::TOO_MANY_REQUESTS
            && !String::from_utf8_lossy(&octets).contains("rateLimited")
        {
            octets = LIMITED.into();
        }
        Ok(Response::from_parts(head, Bytes::from(octets)))
    }
}

impl HttpClient for BoundedHttp {
    /// Sends a request of the crate, with the user agent of crawlgate, on a thread for blocking
    /// work.
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let (mut head, mut body) = request.into_parts();
            head.headers
                .insert(USER_AGENT, HeaderValue::from_static(AGENT));
            // Its octets are all there, in one frame.
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            let octets = frame
                .and_then(Result::ok)
                .and_then(|frame| frame.into_data().ok())
                .unwrap_or_default();
            let request = Request::from_parts(head, octets.to_vec());
            let answer = tokio::task::spawn_blocking(move || client.call(request)).await;
            let answer = answer
                .unwrap_or_else(|_| Err("the request was given up".into()))
                .map_err(Error::Other)?;
            let (parts, body) = answer.into_parts();
            Ok(BytesResponse {
                parts,
                body: Box::new(body),
            })
        })
    }
}

/// The duration in a `Retry-After`: seconds, or a date (RFC 9110 section 10.2.3). A date in the
/// past gives 0.
fn duration(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::duration;
    use http::HeaderValue;
    use std::time::Duration;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |text: &'static str| duration(&HeaderValue::from_static(text));
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Fri, 31 Dec 1999 23:59:59 GMT"), Some(Duration::ZERO));
        assert!(read("Fri, 31 Dec 2100 23:59:59 GMT") > Some(Duration::from_secs(86_400)));
        assert_eq!((read("-1"), read("soon"), read("")), (None, None, None));
    }
}
