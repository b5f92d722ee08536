//! [`HostIndex`] finds the site for the host of a request: by the exact name, then by the longest
//! wildcard pattern. Other hosts belong to the site whose policy names no hosts, if there is one.

use crate::policy::model::HostPattern;
use std::collections::HashMap;

/// Sites by port: the one for any port has none.
type Ports = Vec<(Option<u16>, usize)>;

/// A name has at most 253 characters (RFC 1035 section 2.3.4); longer ones match no pattern.
const MAX_NAME: usize = 255;

/// Hosts to site indexes.
#[derive(Clone, Debug, Default)]
pub struct HostIndex {
    exact: HashMap<Box<str>, Ports>,
    below: HashMap<Box<str>, Ports>,
    others: Option<usize>,
}

impl HostIndex {
    /// Indexes the patterns of sites, given in the order of their indexes. Of two sites with the
    /// same pattern and port the first has it. A site without patterns has every other host; of
    /// several the first.
    pub fn new<'a>(
        sites: impl IntoIterator<Item = impl IntoIterator<Item = &'a HostPattern>>,
    ) -> HostIndex {
        let mut index = HostIndex::default();
        for (site, patterns) in sites.into_iter().enumerate() {
            let mut none = true;
            for pattern in patterns {
                none = false;
                let table = if pattern.wildcard {
                    &mut index.below
                } else {
                    &mut index.exact
                };
                let ports = table.entry(pattern.name.as_str().into()).or_default();
                if !ports.iter().any(|(port, _)| *port == pattern.port) {
                    ports.push((pattern.port, site));
                }
            }
            if none {
                index.others.get_or_insert(site);
            }
        }
        index
    }

    /// The site for a Host field value: of the exact name, else of the longest wildcard, else the
    /// one for every other host. `None` where there is no such site. Does not allocate.
    pub fn find(&self, host: &[u8]) -> Option<usize> {
        self.claimed(host).or(self.others)
    }

    /// The site with a pattern for this host, without regard to case. At each name the pattern with
    /// the host's port counts before the one for any port.
    fn claimed(&self, host: &[u8]) -> Option<usize> {
        if self.exact.is_empty() && self.below.is_empty() {
            return None;
        }
        let (name, port) = name_and_port(host);
        let mut buffer = [0u8; MAX_NAME];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let name = std::str::from_utf8(lower).ok()?;
        if let Some(site) = self.exact.get(name).and_then(|ports| choose(ports, port)) {
            return Some(site);
        }
        if self.below.is_empty() {
            return None;
        }
        let mut rest = name;
        while let Some(dot) = memchr::memchr(b'.', rest.as_bytes()) {
            let parent = &rest[dot + 1..];
            if let Some(site) = self.below.get(parent).and_then(|ports| choose(ports, port)) {
                return Some(site);
            }
            rest = parent;
        }
        None
    }
}

/// The site for a port, else the one for any port. Without a port (`None`) only the latter.
fn choose(ports: &Ports, port: Option<u16>) -> Option<usize> {
    let with_port = ports.iter().find(|(own, _)| own.is_some() && *own == port);
    let any_port = || ports.iter().find(|(own, _)| own.is_none());
    let (_, site) = with_port.or_else(any_port)?;
    Some(*site)
}

/// Splits a Host field value into name and port; the brackets of an IPv6 address and a trailing dot
/// are dropped. The port is `None` where it is missing or no number of 16 bits.
pub fn name_and_port(host: &[u8]) -> (&[u8], Option<u16>) {
    if let Some(inner) = host.strip_prefix(b"[")
        && let Some(end) = inner.iter().position(|byte| *byte == b']')
    {
        let port = inner[end + 1..].strip_prefix(b":").and_then(port_number);
        return (&inner[..end], port);
    }
    let (name, port) = match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) => (&host[..colon], port_number(&host[colon + 1..])),
        None => (host, None),
    };
    (name.strip_suffix(b".").unwrap_or(name), port)
}

fn port_number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
