//! Functions for HTTP downloads with limits for time and size, by the crate ureq. A download blocks
//! the calling thread. [`client_config`] starts the configuration of an HTTP client, and
//! [`with_validators`] makes a request conditional, so that an unchanged file is not sent again.
//! [`header_text`] and [`read_body`] read the response.

use crate::heads::OWN_USER_AGENT;
use std::io::{self, Read};
use std::time::Duration;
use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body, RequestBuilder};

/// The configuration of a client that trusts the roots of the system, follows no redirect, and
/// accepts every status. `timeout` is for a request with its whole response.
pub fn client_config(timeout: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(timeout))
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::PlatformVerifier)
                .build(),
        )
        .user_agent(OWN_USER_AGENT)
}

/// The reason of a failed request for a person, without ureq's "io: ".
pub fn failure_reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Makes a request conditional, by the validators of the copy that the caller has. Empty validators
/// are left out.
pub fn with_validators<B>(
    mut request: RequestBuilder<B>,
    etag: Option<&str>,
    last_modified: Option<&str>,
) -> RequestBuilder<B> {
    for (name, value) in [
        ("if-none-match", etag),
        ("if-modified-since", last_modified),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            request = request.header(name, value);
        }
    }
    request
}

/// The value of a response header, if it is text.
pub fn header_text(response: &Response<Body>, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)?
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// The body of a response. Of a longer body it returns the first `max_bytes` and one more byte.
///
/// # Errors
/// The connection failed before the end.
pub fn read_body(body: Body, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    body.into_reader()
        .take(max_bytes as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
