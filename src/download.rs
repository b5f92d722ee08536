//! Downloads over HTTP, bounded in time and size. They block their thread. [`client`] begins the
//! configuration of a client, [`conditional`] adds validators to a request, [`field`] and
//! [`octets`] read the answer.

use crate::heads::OWN_AGENT;
use std::io::{self, Read};
use std::time::Duration;
use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body, RequestBuilder};

/// The configuration of a client that trusts the roots of the system, follows no redirect, and
/// takes an answer with any status. `limit` is for a request with its whole answer.
pub fn client(limit: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(limit))
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::PlatformVerifier)
                .build(),
        )
        .user_agent(OWN_AGENT)
}

/// Makes a request conditional, by the validators of the copy that the caller has. An empty one
/// does not count.
pub fn conditional<B>(
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

/// A field of an answer, if it is text.
pub fn field(response: &Response<Body>, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)?
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// The body of an answer. Of a body with more than `most` octets, the first `most` and one more.
///
/// # Errors
/// The answer broke off.
pub fn octets(body: Body, most: usize) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    body.into_reader()
        .take(most as u64 + 1)
        .read_to_end(&mut octets)?;
    Ok(octets)
}
