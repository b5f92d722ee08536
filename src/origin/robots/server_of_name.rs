//! The server of an origin whose certificate is for another name than its own: [`ServerOfName`]. The URL has the name of the
//! certificate, and the connection goes to the server.

use std::net::IpAddr;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::http::uri::{Authority, PathAndQuery, Scheme};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves every name to this server.
#[derive(Debug)]
pub(super) struct ServerOfName {
    authority: String,
    resolver: DefaultResolver,
}

impl ServerOfName {
    /// For the server with this name and port.
    pub(super) fn new(authority: &str) -> ServerOfName {
        ServerOfName { authority: authority.to_owned(), resolver: DefaultResolver::default() }
    }
}

impl Resolver for ServerOfName {
    fn resolve(&self, _: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let authority: Authority =
            self.authority.parse().map_err(|error| ureq::Error::Http(ureq::http::Error::from(error)))?;
        let uri =
            Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query(PathAndQuery::from_static("/"));
        self.resolver.resolve(&uri.build().map_err(ureq::Error::Http)?, config, timeout)
    }
}

/// A name or an address as a URL has it.
pub(super) fn in_url(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => name.to_owned(),
    }
}
