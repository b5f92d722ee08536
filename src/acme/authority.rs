//! [`AuthorityClient`]: the HTTP client by which the crate instant-acme talks to a certificate
//! authority. Responses are limited in size and time, every URL must be https, and redirects are
//! not followed. The client remembers the `Retry-After` of a failed request, because instant-acme
//! does not report this field.

use super::failure::one_line_excerpt;
use crate::download::{client_config, read_body};
use crate::locks::lock;
use bytes::Bytes;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Request, Response};
use http_body::Body;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use ureq::Agent;

/// A certificate chain has a few KiB.
const MAX_RESPONSE_BYTES: usize = 512 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For a request with its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// RFC 8555 section 6.1 requires a user agent.
const ACME_USER_AGENT: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"), " instant-acme");

/// An HTTP client with limits. Clones share the `Retry-After`.
#[derive(Clone)]
pub struct AuthorityClient {
    agent: Agent,
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl AuthorityClient {
    pub fn new() -> AuthorityClient {
        let config = client_config(REQUEST_TIMEOUT)
            .https_only(true)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .build();
        AuthorityClient {
            agent: Agent::new_with_config(config),
            retry_after: Arc::default(),
        }
    }

    /// The `Retry-After` of the last response, if that was a failure.
    pub fn retry_after(&self) -> Option<Duration> {
        *lock(&self.retry_after)
    }

    /// Sends a request and reads the whole response. Keeps the `Retry-After` of a status 4xx or 5xx. A
    /// status 5xx is an error.
    fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        let (head, body) = self.agent.run(request)?.into_parts();
        let bytes = read_body(body, MAX_RESPONSE_BYTES)
            .map_err(|error| format!("its answer was cut off: {error}"))?;
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err(format!("its answer has more than {MAX_RESPONSE_BYTES} bytes").into());
        }
        let failed = head.status.is_client_error() || head.status.is_server_error();
        let after = failed
            .then(|| head.headers.get(RETRY_AFTER).and_then(parse_retry_after))
            .flatten();
        *lock(&self.retry_after) = after;
        // The crate ignores the status, and reads only the document, which another server may have
        // sent.
        if head.status.is_server_error() {
            let text = one_line_excerpt(&String::from_utf8_lossy(&bytes));
            return Err(format!("it answers {} {text}", head.status).into());
        }
        Ok(Response::from_parts(head, Bytes::from(bytes)))
    }
}

impl HttpClient for AuthorityClient {
    /// Runs on a thread for blocking work.
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let (mut head, mut body) = request.into_parts();
            head.headers
                .insert(USER_AGENT, HeaderValue::from_static(ACME_USER_AGENT));
            // The body is one frame in memory.
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            let bytes = frame
                .and_then(Result::ok)
                .and_then(|frame| frame.into_data().ok())
                .unwrap_or_default();
            let request = Request::from_parts(head, bytes.to_vec());
            let answer = tokio::task::spawn_blocking(move || client.send(request)).await;
            let answer = answer
                .unwrap_or_else(|_| Err("the request was cancelled".into()))
                .map_err(Error::Other)?;
            let (parts, body) = answer.into_parts();
            Ok(BytesResponse {
                parts,
                body: Box::new(body),
            })
        })
    }
}

/// Seconds, or a date (RFC 9110 section 10.2.3). A date in the past gives 0.
fn parse_retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::parse_retry_after;
    use http::HeaderValue;
    use std::time::Duration;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |text: &'static str| parse_retry_after(&HeaderValue::from_static(text));
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        assert_eq!(read("Fri, 31 Dec 1999 23:59:59 GMT"), Some(Duration::ZERO));
        assert!(read("Fri, 31 Dec 2100 23:59:59 GMT") > Some(Duration::from_secs(86_400)));
        assert_eq!((read("-1"), read("soon"), read("")), (None, None, None));
    }
}
