//! Where the servers of an origin are. [`OriginNames`] asks the name servers of the origin. [`ServerOfName`] is the server whose
//! certificate is for another name than its own: the URL has the name of the certificate, and the connection goes to the server.

use crate::dns::addresses_of_host_blocking;
use std::net::{IpAddr, SocketAddr};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::http::uri::{Authority, PathAndQuery, Scheme};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Addresses that a lookup gives at most.
const MOST: usize = 16;

/// Resolves names by these name servers; by the system's where there are none.
#[derive(Debug, Default)]
pub(super) struct OriginNames {
    servers: Vec<SocketAddr>,
    system: DefaultResolver,
}

impl OriginNames {
    pub(super) fn new(servers: &[SocketAddr]) -> OriginNames {
        OriginNames { servers: servers.to_vec(), system: DefaultResolver::default() }
    }
}

impl Resolver for OriginNames {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let host = uri.host().filter(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().is_err());
        let Some(host) = host.filter(|_| !self.servers.is_empty()) else {
            return self.system.resolve(uri, config, timeout);
        };
        let found = addresses_of_host_blocking(host, &self.servers);
        let found = found.map_err(|error| ureq::Error::Io(std::io::Error::other(error)))?;
        let mut addresses = self.empty();
        found.addresses.into_iter().take(MOST).for_each(|ip| addresses.push(SocketAddr::new(ip, port)));
        Ok(addresses)
    }
}

/// Resolves every name to this server.
#[derive(Debug)]
pub(super) struct ServerOfName {
    authority: String,
    names: OriginNames,
}

impl ServerOfName {
    /// For the server with this name and port.
    pub(super) fn new(authority: &str, names: OriginNames) -> ServerOfName {
        ServerOfName { authority: authority.to_owned(), names }
    }
}

impl Resolver for ServerOfName {
    fn resolve(&self, _: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let authority: Authority =
            self.authority.parse().map_err(|error| ureq::Error::Http(ureq::http::Error::from(error)))?;
        let uri =
            Uri::builder().scheme(Scheme::HTTPS).authority(authority).path_and_query(PathAndQuery::from_static("/"));
        self.names.resolve(&uri.build().map_err(ureq::Error::Http)?, config, timeout)
    }
}

/// A name or an address as a URL has it.
pub(super) fn in_url(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => name.to_owned(),
    }
}
