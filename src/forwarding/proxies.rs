//! [`proxy_path`]: the trusted HTTP proxies that a request came through.

use super::client::{is_trusted, parse};
use super::request::Peer;
use crate::ledger::ProxyPath;
use ipnet::IpNet;
use std::net::IpAddr;

/// The path through the peer and the trusted proxies that it names in `X-Forwarded-For`. `None` where the peer is no trusted
/// proxy. A peer behind the PROXY protocol is the one that the protocol names: what speaks the protocol passes octets on and
/// caches nothing.
pub fn proxy_path<'a>(
    peer: Peer,
    forwarded_for: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &[IpNet],
) -> Option<ProxyPath> {
    if !peer.is_trusted {
        return None;
    }
    let is_proxy = |address: &IpAddr| is_trusted(*address, trusted);
    let Some(peer) = peer.address else { return Some(ProxyPath::from_addresses([])) };
    let peer = peer.to_canonical();
    if !is_proxy(&peer) {
        // The decision service gives the client itself for the peer: the proxy asks about each request, before its cache.
        return None;
    }
    let entries = forwarded_for.rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    Some(ProxyPath::from_addresses([peer].into_iter().chain(entries.map_while(parse).take_while(is_proxy))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(peer: &str, line: &str) -> Option<ProxyPath> {
        let address: IpAddr = peer.parse().expect("an address");
        let trusted = ["10.0.0.0/8".parse().expect("a network")];
        let peer = Peer { address: Some(address), is_trusted: is_trusted(address, &trusted), is_tls: false };
        proxy_path(peer, [line.as_bytes()].into_iter(), &trusted)
    }

    #[test]
    fn path_is_that_of_all_trusted_proxies() {
        let of = |proxies: &[&str]| {
            Some(ProxyPath::from_addresses(proxies.iter().map(|proxy| proxy.parse::<IpAddr>().expect("an address"))))
        };
        assert_eq!(path("192.0.2.1", "10.0.0.2"), None);
        assert_eq!(path("10.0.0.1", "192.0.2.1"), of(&["10.0.0.1"]));
        assert_eq!(path("10.0.0.1", "10.0.0.9, 192.0.2.1, 10.0.0.2:80"), of(&["10.0.0.1", "10.0.0.2"]));
    }

    #[test]
    fn client_of_the_decision_service_is_no_proxy() {
        let peer = Peer { address: Some([192, 0, 2, 1].into()), is_trusted: true, is_tls: false };
        let trusted = ["10.0.0.0/8".parse().expect("a network")];
        assert_eq!(proxy_path(peer, [b"10.0.0.2".as_slice()].into_iter(), &trusted), None);
        let on_a_socket = Peer { is_trusted: true, ..Peer::default() };
        assert!(proxy_path(on_a_socket, [].into_iter(), &trusted).is_some());
    }
}
