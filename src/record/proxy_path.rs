//! [`ProxyPath`]: the chain of trusted HTTP proxies that a request came through, as a hash of their
//! addresses. One of these proxies may have a cache. If two requests have equal hashes, the same
//! cache may answer both.

use std::fmt;
use std::net::IpAddr;

/// The trusted HTTP proxies that a request came through, as a digest of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyPath(u64);

impl ProxyPath {
    /// The path through proxies with these addresses, the nearest first. Empty where the only proxy
    /// is a peer on a Unix socket, which has no address.
    pub fn from_addresses(proxies: impl IntoIterator<Item = IpAddr>) -> ProxyPath {
        // FNV-1a: the digest is stored, so it has to stay the same.
        let mut digest: u64 = 0xcbf2_9ce4_8422_2325;
        for proxy in proxies {
            let address = match proxy.to_canonical() {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            for byte in address.octets() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        ProxyPath(digest)
    }

    /// Reads a digest as it is stored.
    pub fn parse(text: &str) -> Option<ProxyPath> {
        u64::from_str_radix(text, 16).ok().map(ProxyPath)
    }
}

impl fmt::Display for ProxyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
