//! [`PublishedUrls`]: the URLs of the origin's robots.txt as crawlers may see them. An origin that
//! does not know its public name writes the one by which crawlgate asks it, which may be an address
//! inside the network.

use crate::crawlers::is_public;
use crate::policy::model::Policy;
use crate::policy::origin::{InternalAuthorities, WantedHost};
use crate::robots::{AbsoluteUrl, Authority, Key};
use std::borrow::Cow;
use std::net::IpAddr;

/// Domains of names that have no meaning outside of a network (RFC 6761, RFC 6762, RFC 8375; ICANN
/// reserved `internal`).
const INTERNAL_DOMAINS: [&str; 4] = [".localhost", ".local", ".internal", ".home.arpa"];

/// The site's hosts, and what is not to be published.
pub struct PublishedUrls<'a> {
    pub policy: &'a Policy,
    pub internal: &'a InternalAuthorities,
}

impl PublishedUrls<'_> {
    /// The value of a line as it is published: a URL with the origin's host gets the site's host. A
    /// value of Host, Sitemap or License may be a host without a scheme. In other lines with blanks
    /// each word may be a URL. `None` if the line is to be left out: it names a host that crawlers
    /// cannot reach, or one of several words would have to change.
    pub fn value<'v>(&self, key: Key, value: &'v str) -> Option<Cow<'v, str>> {
        if !matches!(key, Key::Host | Key::Sitemap | Key::License)
            && value.contains(char::is_whitespace)
        {
            // Of other lines a URL may be a part (`Clean-param: a http://...`).
            let mut words = value.split_whitespace();
            let is_publishable = words.all(|word| self.url(word).as_deref() == Some(word));
            return is_publishable.then_some(Cow::Borrowed(value));
        }
        if !matches!(key, Key::Host | Key::Sitemap | Key::License) || value.contains("//") {
            return self.url(value);
        }
        // A host may stand there without a scheme.
        let url = format!("//{value}");
        let published = self.url(&url)?;
        Some(Cow::Owned(published.strip_prefix("//")?.to_owned()))
    }

    /// A URL as it is published. Text that is no absolute URL, and URLs of the site, stay. The host
    /// that the site's own origin wants becomes the site's first host without a wildcard. `None`
    /// where that fails, for the host of another site's origin, for servers, and for internal names
    /// of others.
    fn url<'v>(&self, url: &'v str) -> Option<Cow<'v, str>> {
        let Some(read) = AbsoluteUrl::read(url.as_bytes()) else {
            return Some(Cow::Borrowed(url));
        };
        let default_port = read.default_port().unwrap_or_default();
        let ports: &[&[u8]] = if read.scheme.is_empty() {
            &[b"80", b"443"]
        } else {
            &[default_port]
        };
        let is_named_by = |other: &String| {
            let other = Authority::read(other.as_bytes());
            ports.iter().any(|port| read.authority.is(&other, port))
        };
        if self.policy.has_host(&read.authority, default_port) {
            return Some(Cow::Borrowed(url));
        }
        let mut wanted = self
            .internal
            .hosts
            .iter()
            .filter(|wanted| is_named_by(&wanted.host))
            .peekable();
        if wanted.peek().is_some() {
            if !wanted.any(|wanted| self.has_origin(wanted)) {
                return None;
            }
            let host = &self
                .policy
                .hosts
                .iter()
                .find(|host| !host.value.wildcard)?
                .value;
            let colon = if read.scheme.is_empty() { "" } else { ":" };
            let scheme = String::from_utf8_lossy(read.scheme);
            let rest = String::from_utf8_lossy(read.rest);
            return Some(Cow::Owned(format!("{scheme}{colon}//{host}{rest}")));
        }
        let is_unreachable =
            is_internal(read.authority.name) && !self.policy.has_name(read.authority.name);
        (!is_unreachable && !self.internal.servers.iter().any(is_named_by))
            .then_some(Cow::Borrowed(url))
    }

    /// Whether the origin that wants this host is the site's.
    fn has_origin(&self, wanted: &WantedHost) -> bool {
        let hosts = &wanted.origin_hosts;
        hosts.is_empty()
            || self
                .policy
                .hosts
                .iter()
                .any(|own| hosts.contains(&own.to_string()))
    }
}

/// Whether a name or an address leads nowhere outside of a network: a private address, a single
/// label, and the like.
fn is_internal(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        // Clients read `127.1` and `0x7f.0.0.1` as addresses, and undo escapes (WHATWG URL, host
        // parsing).
        Err(_) if name.contains('%') || ends_in_number(&name) => true,
        Err(_) => {
            !name.contains('.') || INTERNAL_DOMAINS.iter().any(|domain| name.ends_with(domain))
        }
    }
}

/// Whether the last label of a name has digits only or begins with `0x`. An empty last label
/// counts.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
}
