//! [`ResolvedClient`]: the client that sent a request. Usually the client is the other end of the
//! connection. Behind a trusted proxy ([`is_trusted`]), the client is the one that the proxy names
//! in a header field such as X-Forwarded-For (setting [`ClientAddressField`]). If the proxy names
//! no client, or an unreadable one, the client is unknown. The address of the proxy does not take
//! its place, because all clients behind the proxy would then count as one.

use crate::crawlers::parse_address;
use crate::heads::is_host;
use crate::record::ProxyPath;
use crate::settings::ClientAddressField;
use ipnet::IpNet;
use smallvec::SmallVec;
use std::net::IpAddr;

/// The other end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionPeer {
    /// Its address; a Unix socket has none.
    pub address: Option<IpAddr>,
    /// Whether its forwarding fields are believed.
    pub is_trusted: bool,
    /// Whether it is a trusted proxy whose PROXY header names no client. Then the forwarding fields
    /// are the client's own, and are not believed.
    pub names_no_client: bool,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
}

impl ConnectionPeer {
    /// Whether nothing is known of it: an application does not pass its address.
    pub fn is_unknown(&self) -> bool {
        self.address.is_none() && !self.is_trusted
    }
}

/// Who sent a request.
#[derive(Debug, Default)]
pub struct ResolvedClient {
    /// Its address, if it is known.
    pub address: Option<IpAddr>,
    /// The address for logs: that of the client, or of the proxy that does not name one.
    pub logged: Option<IpAddr>,
    /// Whether a trusted proxy does not send the field, or sends one without a readable client.
    pub is_unreadable: bool,
    /// The other parameters of `Forwarded`.
    pub forwarded: Option<Box<ForwardedElement>>,
    /// The trusted HTTP proxies that the request came through. `None` if it came through none.
    pub proxies: Option<ProxyPath>,
}

/// Parameters of one element of `Forwarded` (RFC 7239 sections 5.3 and 5.4).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ForwardedElement {
    /// `http` or `https`.
    pub proto: Option<&'static str>,
    /// The host that the proxy was asked for.
    pub host: Option<Box<[u8]>>,
}

/// Whether the address is in one of these networks.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

impl ResolvedClient {
    /// Finds the client of a request. An untrusted peer is the client itself. For a trusted peer,
    /// reads the lines of `field` from right to left, to the first address that is not a trusted
    /// proxy: no trusted proxy vouches for the entries left of that one. If all are trusted
    /// proxies, the client is unknown, and the leftmost one is logged.
    pub fn resolve<'a, L: DoubleEndedIterator<Item = &'a [u8]>>(
        peer: ConnectionPeer,
        lines: impl FnOnce() -> L,
        field: &ClientAddressField,
        trusted: &[IpNet],
    ) -> ResolvedClient {
        let mut client = ResolvedClient {
            logged: peer.address.map(|address| address.to_canonical()),
            ..ResolvedClient::default()
        };
        if !peer.is_trusted {
            client.address = client.logged.filter(|_| !peer.names_no_client);
            return client;
        }
        // With the PROXY protocol the peer is the client itself.
        let is_proxy = peer
            .address
            .is_none_or(|address| is_trusted(address.to_canonical(), trusted));
        let mut proxies: SmallVec<[IpAddr; 4]> = client.logged.into_iter().collect();
        let mut nearest = None;
        let mut last_entry = None;
        for entry in lines()
            .rev()
            .flat_map(|line| split_unquoted(line, b',').into_iter().rev())
        {
            last_entry = Some(entry);
            let node = if field.is_forwarded() {
                element_parameter(entry, "for")
            } else {
                Some(unquoted(entry))
            };
            nearest = node.and_then(parse_node);
            match nearest {
                Some(proxy) if is_trusted(proxy, trusted) => proxies.push(proxy),
                _ => {
                    client.address = nearest;
                    break;
                }
            }
        }
        client.proxies = is_proxy.then(|| ProxyPath::from_addresses(proxies));
        client.logged = nearest.or(client.logged);
        client.is_unreadable = nearest.is_none();
        client.forwarded = last_entry
            .filter(|_| field.is_forwarded())
            .map(|entry| Box::new(ForwardedElement::parse(entry)));
        client
    }
}

impl ForwardedElement {
    /// Parses one element. Each parameter is `None` if it is missing, is there twice, or is
    /// invalid.
    fn parse(element: &[u8]) -> ForwardedElement {
        let proto = element_parameter(element, "proto").unwrap_or_default();
        let host = element_parameter(element, "host").filter(|host| is_host(host));
        ForwardedElement {
            proto: ["https", "http"]
                .into_iter()
                .find(|scheme| proto.eq_ignore_ascii_case(scheme.as_bytes())),
            host: host.map(Box::from),
        }
    }
}

/// Splits at separators outside of quotes. A quote without an end is the client's, and would hide
/// what the proxy adds behind it: then every separator counts.
fn split_unquoted(text: &[u8], separator: u8) -> SmallVec<[&[u8]; 8]> {
    let mut parts = SmallVec::new();
    let mut begin = 0;
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            byte if *byte == separator && !is_quoted => {
                parts.push(&text[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    if is_quoted {
        return text.split(|byte| *byte == separator).collect();
    }
    parts.push(&text[begin..]);
    parts
}

/// The value of a parameter of an element of `Forwarded`, without its quotes. `None` if it is
/// missing, or is there twice (RFC 7239 section 4).
fn element_parameter<'a>(element: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut values = split_unquoted(element, b';')
        .into_iter()
        .filter_map(|pair| {
            let equals = memchr::memchr(b'=', pair)?;
            let is_named = pair[..equals]
                .trim_ascii()
                .eq_ignore_ascii_case(name.as_bytes());
            is_named.then(|| unquoted(&pair[equals + 1..]))
        });
    let first = values.next();
    first.filter(|_| values.next().is_none())
}

/// The value without white space around it and without its quotes.
fn unquoted(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value)
}

/// The address of a node without its port, which may be obfuscated (RFC 7239 section 6.3). `None`
/// if the node is `unknown` or obfuscated.
fn parse_node(node: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(node).ok()?;
    parse_address(text.rsplit_once(":_").map_or(text, |(before, _)| before))
}

#[cfg(test)]
mod tests;
