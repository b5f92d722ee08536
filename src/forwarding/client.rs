//! [`Client`]: who sent a request. That is the peer, or the one that trusted proxies
//! ([`is_trusted`]) name in the field that the settings choose ([`ClientAddress`]). A trusted proxy
//! that names no client that can be read leaves the client unknown: its own address would be taken
//! for that of everybody behind it.

use crate::crawlers::written_address;
use crate::heads::is_host;
use crate::record::ProxyPath;
use crate::settings::ClientAddress;
use ipnet::IpNet;
use smallvec::SmallVec;
use std::net::IpAddr;

/// The other end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// Its address, where it has one.
    pub address: Option<IpAddr>,
    /// Whether its forwarding fields are believed.
    pub is_trusted: bool,
    /// Whether it is a trusted proxy whose PROXY header names no client. The fields are then the
    /// client's own, and are not believed.
    pub is_unnamed: bool,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
}

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its address; `None` where it is not known.
    pub address: Option<IpAddr>,
    /// The address for logs: that of the client, or of the proxy that does not name it.
    pub logged: Option<IpAddr>,
    /// Whether a trusted proxy sends the field without a client in it that can be read, or does not
    /// send it.
    pub is_unread: bool,
    /// What else the proxy says in `Forwarded`.
    pub forwarded: Option<Box<Forwarded>>,
    /// The trusted HTTP proxies that the request came through. `None` where it came through none,
    /// and where a proxy asks about each request by itself, before a cache of its own.
    pub proxies: Option<ProxyPath>,
}

/// What a proxy says in `Forwarded` about the request that it got (RFC 7239 sections 5.3 and 5.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// The scheme, if it is one of HTTP.
    pub proto: Option<&'static str>,
    /// The host.
    pub host: Option<Box<[u8]>>,
}

/// Whether the address is in one of these networks: its forwarding fields are believed.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

impl Client {
    /// Finds the client of a request. An untrusted peer is the client itself; a PROXY header
    /// without a client leaves it unknown. For a trusted peer, walks the lines of `field` from
    /// right to left, to the first address that is not a trusted proxy. No trusted proxy vouches
    /// for the entries left of that one. If all of them are trusted proxies, the client is unknown,
    /// and the leftmost is shown in logs; it may itself speak for others.
    pub fn find<'a, L: DoubleEndedIterator<Item = &'a [u8]>>(
        peer: Peer,
        lines: impl FnOnce() -> L,
        field: &ClientAddress,
        trusted: &[IpNet],
    ) -> Client {
        let mut client = Client {
            logged: peer.address.map(|address| address.to_canonical()),
            ..Client::default()
        };
        if !peer.is_trusted {
            client.address = client.logged.filter(|_| !peer.is_unnamed);
            return client;
        }
        // The decision service gives the client itself for the peer. What speaks the PROXY protocol
        // caches nothing.
        let is_proxy = peer
            .address
            .is_none_or(|address| is_trusted(address.to_canonical(), trusted));
        let mut proxies: SmallVec<[IpAddr; 4]> = client.logged.into_iter().collect();
        let mut nearest = None;
        let mut last_entry = None;
        for entry in lines()
            .rev()
            .flat_map(|line| split(line, b',').into_iter().rev())
        {
            last_entry = Some(entry);
            let node = if field.is_forwarded() {
                parameter(entry, "for")
            } else {
                Some(unquoted(entry))
            };
            nearest = node.and_then(parse);
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
        client.is_unread = nearest.is_none();
        client.forwarded = last_entry
            .filter(|_| field.is_forwarded())
            .map(|entry| Box::new(Forwarded::read(entry)));
        client
    }
}

impl Forwarded {
    /// Reads `proto` and `host` of one element of `Forwarded`. Each is `None` if it is missing, is
    /// there twice, or has no such value.
    fn read(element: &[u8]) -> Forwarded {
        let proto = parameter(element, "proto").unwrap_or_default();
        let host = parameter(element, "host").filter(|host| is_host(host));
        Forwarded {
            proto: ["https", "http"]
                .into_iter()
                .find(|own| proto.eq_ignore_ascii_case(own.as_bytes())),
            host: host.map(Box::from),
        }
    }
}

/// The parts between separators that stand in no quotes. A quote that has no end is the client's,
/// and would hide what the proxy adds behind it: then every separator counts.
fn split(text: &[u8], separator: u8) -> SmallVec<[&[u8]; 8]> {
    let mut parts = SmallVec::new();
    let mut begin = 0;
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (place, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            byte if *byte == separator && !is_quoted => {
                parts.push(&text[begin..place]);
                begin = place + 1;
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

/// The value of a parameter of an element of `Forwarded`, without its quotes. `None` if it is not
/// there, and if it is there twice (RFC 7239 section 4).
fn parameter<'a>(element: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut values = split(element, b';').into_iter().filter_map(|pair| {
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

/// The address of a node, without its port, which may be hidden (RFC 7239 section 6.3). `None` for
/// a client that is `unknown` or hidden.
fn parse(node: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(node).ok()?;
    written_address(text.rsplit_once(":_").map_or(text, |(before, _)| before))
}

#[cfg(test)]
mod tests;
