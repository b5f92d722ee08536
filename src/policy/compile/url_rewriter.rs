//! [`UrlRewriter`] makes the URLs in the origin's robots.txt fit to be published. An origin that
//! does not know the public host of its site writes its internal host into these URLs.
//! `UrlRewriter` replaces it by the public host. If a URL has another host that crawlers cannot
//! reach, such as `localhost`, its line is dropped.

use crate::crawlers::is_internal_host;
use crate::policy::model::Policy;
use crate::policy::origin::{HostOverride, InternalAuthorities};
use crate::robots::{AbsoluteUrl, Authority, RobotsKey};
use std::borrow::Cow;

/// Rewrites URLs of the origin's file for one site.
pub struct UrlRewriter<'a> {
    pub policy: &'a Policy,
    pub internal: &'a InternalAuthorities,
}

impl UrlRewriter<'_> {
    /// The value of a line as it is published; `None` if the line must be left out, because it
    /// names a host that crawlers cannot reach, or one of several words would have to change. A
    /// value of Host, Sitemap or License may be a host without a scheme.
    pub fn rewrite_value<'v>(&self, key: RobotsKey, value: &'v str) -> Option<Cow<'v, str>> {
        let may_be_host = matches!(
            key,
            RobotsKey::Host | RobotsKey::Sitemap | RobotsKey::License
        );
        if !may_be_host && value.contains(char::is_whitespace) {
            // A URL may be one of several words (`Clean-param: a http://...`).
            let is_publishable = value
                .split_whitespace()
                .all(|word| self.rewrite_url(word).as_deref() == Some(word));
            return is_publishable.then_some(Cow::Borrowed(value));
        }
        if !may_be_host || value.contains("//") {
            return self.rewrite_url(value);
        }
        Some(Cow::Owned(
            self.rewrite_url(&format!("//{value}"))?
                .strip_prefix("//")?
                .to_owned(),
        ))
    }

    /// A URL as it is published. Text that is no absolute URL, and URLs of the site, stay. The Host
    /// value of the site's own origin becomes the site's first host. `None` for hosts of other
    /// origins, servers and internal names.
    fn rewrite_url<'v>(&self, url: &'v str) -> Option<Cow<'v, str>> {
        let Some(read) = AbsoluteUrl::parse(url.as_bytes()) else {
            return Some(Cow::Borrowed(url));
        };
        let default_port = read.default_port().unwrap_or_default();
        let ports: &[&[u8]] = if read.scheme.is_empty() {
            &[b"80", b"443"]
        } else {
            &[default_port]
        };
        let is_named_by = |other: &String| {
            let other = Authority::parse(other.as_bytes());
            ports
                .iter()
                .any(|port| read.authority.is_same_as(&other, port))
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
            if !wanted.any(|wanted| self.is_own_origin(wanted)) {
                return None;
            }
            let host = &self.policy.hosts.iter().find(|host| !host.wildcard)?.value;
            let colon = if read.scheme.is_empty() { "" } else { ":" };
            let scheme = String::from_utf8_lossy(read.scheme);
            let rest = String::from_utf8_lossy(read.rest);
            return Some(Cow::Owned(format!("{scheme}{colon}//{host}{rest}")));
        }
        let is_unreachable =
            is_internal_host(read.authority.name) && !self.policy.has_name(read.authority.name);
        (!is_unreachable && !self.internal.servers.iter().any(is_named_by))
            .then_some(Cow::Borrowed(url))
    }

    /// Whether the origin with this Host value is the site's.
    fn is_own_origin(&self, wanted: &HostOverride) -> bool {
        let hosts = &wanted.origin_hosts;
        hosts.is_empty()
            || self
                .policy
                .hosts
                .iter()
                .any(|own| hosts.contains(&own.to_string()))
    }
}
