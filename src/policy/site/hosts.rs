//! [`HostIndex`] finds the site of a request by its host. An exact name takes precedence over
//! wildcard patterns. A longer pattern takes precedence over a shorter pattern. If nothing matches,
//! the request belongs to the site whose policy names no hosts, if there is one.

use crate::policy::model::HostPattern;
use std::collections::HashMap;

/// The sites of a name, by port; `None` stands for any port.
type SitesByPort = Vec<(Option<u16>, usize)>;

/// The most bytes of a name that can match (RFC 1035 section 2.3.4).
const MAX_HOST_NAME: usize = 255;

/// An index from hosts to the indexes of sites.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {
    /// By name. That of a wildcard pattern begins with its dot.
    names: HashMap<String, SitesByPort>,
    default_site: Option<usize>,
}

impl HostIndex {
    /// Indexes the host patterns of each site. Of two sites with the same pattern the first has it.
    /// A site without patterns has every other host.
    pub fn new<'a>(
        sites: impl IntoIterator<Item = impl IntoIterator<Item = &'a HostPattern>>,
    ) -> HostIndex {
        let mut index = HostIndex::default();
        for (site, patterns) in sites.into_iter().enumerate() {
            let mut none = true;
            for pattern in patterns {
                none = false;
                let dot = if pattern.wildcard { "." } else { "" };
                let name = format!("{dot}{}", pattern.name);
                let ports = index.names.entry(name).or_default();
                if !ports.iter().any(|(port, _)| *port == pattern.port) {
                    ports.push((pattern.port, site));
                }
            }
            if none {
                index.default_site.get_or_insert(site);
            }
        }
        index
    }

    /// The index of the site for a `Host` field value. Does not allocate.
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        self.find_by_pattern(host).or(self.default_site)
    }

    /// The site with the closest pattern for this host, without regard to case.
    fn find_by_pattern(&self, host: &[u8]) -> Option<usize> {
        if self.names.is_empty() {
            return None;
        }
        let (name, port) = split_host_port(host);
        let mut buffer = [0u8; MAX_HOST_NAME];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;
        let dots = memchr::memchr_iter(b'.', name.as_bytes());
        std::iter::once(name)
            .chain(dots.map(|dot| &name[dot..]))
            .find_map(|name| site_for_port(self.names.get(name)?, port))
    }
}

/// The site for exactly this port, else the one for any port.
fn site_for_port(ports: &SitesByPort, port: Option<u16>) -> Option<usize> {
    let with_port = ports.iter().find(|(own, _)| own.is_some() && *own == port);
    let (_, site) = with_port.or_else(|| ports.iter().find(|(own, _)| own.is_none()))?;
    Some(*site)
}

/// Splits a `Host` field value into name and port, without the brackets of an IPv6 address and a
/// trailing dot. The port is `None` where it is missing or invalid.
pub fn split_host_port(host: &[u8]) -> (&[u8], Option<u16>) {
    if let Some(inner) = host.strip_prefix(b"[")
        && let Some(end) = memchr::memchr(b']', inner)
    {
        let port = inner[end + 1..].strip_prefix(b":").and_then(parse_port);
        return (&inner[..end], port);
    }
    let (name, port) = match memchr::memrchr(b':', host) {
        Some(colon) => (&host[..colon], parse_port(&host[colon + 1..])),
        None => (host, None),
    };
    (name.strip_suffix(b".").unwrap_or(name), port)
}

fn parse_port(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
