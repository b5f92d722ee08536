//! Looks names up and keeps only public addresses: [`PublicAddresses`]. A connection goes to one of the addresses that are
//! given here, so a name that resolves to another address the next time gains nothing (DNS rebinding).

use crate::verdict::is_public;
use std::net::SocketAddr;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves to public addresses only.
#[derive(Debug, Default)]
pub(super) struct PublicAddresses(DefaultResolver);

/// A name has no public address.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no public address")]
pub(super) struct NotPublic(SocketAddr);

impl Resolver for PublicAddresses {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        let mut public = self.empty();
        found.iter().filter(|address| is_public(address.ip())).for_each(|address| public.push(*address));
        match found.first() {
            Some(first) if public.is_empty() => Err(ureq::Error::Other(Box::new(NotPublic(*first)))),
            _ => Ok(public),
        }
    }
}
