//! Tests of how the client of a request is found, from the other end of the connection and from
//! header fields such as X-Forwarded-For.

use super::*;
use http::HeaderName;

fn find_from(peer: ConnectionPeer, field: &'static str, lines: &[&str]) -> ResolvedClient {
    let trusted: Vec<IpNet> = ["10.0.0.0/8", "104.16.0.0/13", "::1/128"]
        .iter()
        .map(|network| network.parse().unwrap())
        .collect();
    let field = ClientAddressField(HeaderName::from_static(field));
    ResolvedClient::resolve(
        peer,
        || lines.iter().map(|line| line.as_bytes()),
        &field,
        &trusted,
    )
}

fn find(peer: &str, field: &'static str, lines: &[&str]) -> ResolvedClient {
    let peer = ConnectionPeer {
        address: peer.parse().ok(),
        is_trusted: true,
        ..ConnectionPeer::default()
    };
    find_from(peer, field, lines)
}

/// The client that a trusted proxy names; `None` where that leaves it unknown.
fn named(field: &'static str, lines: &[&str]) -> Option<String> {
    let client = find("10.0.0.1", field, lines);
    assert!(
        client
            .address
            .is_none_or(|address| client.logged == Some(address)),
        "{client:?}"
    );
    client.address.map(|address| address.to_string())
}

fn some(address: &str) -> Option<String> {
    Some(address.to_owned())
}

fn ip(address: &str) -> Option<IpAddr> {
    address.parse().ok()
}

const LIST: &str = "x-forwarded-for";
const ELEMENTS: &str = "forwarded";

#[test]
fn untrusted_peer_is_the_client_whatever_it_claims() {
    let peer = ConnectionPeer {
        address: ip("::ffff:192.0.2.1"),
        ..ConnectionPeer::default()
    };
    for field in [LIST, ELEMENTS, "x-real-ip"] {
        let client = find_from(peer, field, &["198.51.100.1", "for=198.51.100.1"]);
        assert_eq!(
            (client.address, client.logged),
            (ip("192.0.2.1"), ip("192.0.2.1"))
        );
        assert_eq!((client.is_unreadable, client.forwarded), (false, None));
    }
}

#[test]
fn proxy_header_without_a_client_leaves_it_unknown() {
    let peer = ConnectionPeer {
        address: ip("10.0.0.1"),
        names_no_client: true,
        ..ConnectionPeer::default()
    };
    let client = find_from(peer, LIST, &["198.51.100.1"]);
    assert_eq!(
        (client.address, client.logged, client.is_unreadable),
        (None, ip("10.0.0.1"), false)
    );
}

#[test]
fn trusted_proxies_are_skipped_from_the_right() {
    assert_eq!(
        named(LIST, &["203.0.113.9, 198.51.100.1", "10.0.0.3,10.0.0.2"]),
        some("198.51.100.1")
    );
    let lines = [
        "for=203.0.113.9, for=198.51.100.1;proto=https",
        "For=\"10.0.0.3:80\";by=x, FOR = 10.0.0.2",
    ];
    assert_eq!(named(ELEMENTS, &lines), some("198.51.100.1"));
    assert_eq!(
        named("cf-connecting-ip", &["198.51.100.1"]),
        some("198.51.100.1")
    );
    assert_eq!(
        named("cf-connecting-ip", &["203.0.113.9", "198.51.100.1"]),
        some("198.51.100.1"),
        "the last line"
    );
}

#[test]
fn unreadable_entry_leaves_the_client_unknown() {
    for line in [
        "unknown, 104.16.1.1",
        "198.51.100.1, unknown, 10.0.0.2",
        "198.51.100.1,",
        "",
        "\u{1f980}",
        "unix:",
    ] {
        let client = find("10.0.0.1", LIST, &[line]);
        assert_eq!(
            (client.address, client.logged, client.is_unreadable),
            (None, ip("10.0.0.1"), true),
            "{line}"
        );
    }
    for line in [
        "proto=https",
        "for=unknown",
        "for=_hidden",
        "for=\"_hidden:80\"",
        "for=",
        "198.51.100.1",
        "for",
        "for=192.0.2.7;for=198.51.100.1",
    ] {
        let client = find("10.0.0.1", ELEMENTS, &[&format!("for=203.0.113.9, {line}")]);
        assert_eq!(
            (client.address, client.logged, client.is_unreadable),
            (None, ip("10.0.0.1"), true),
            "{line}"
        );
    }
    for field in [LIST, ELEMENTS, "x-real-ip"] {
        let client = find("10.0.0.1", field, &[]);
        assert_eq!(
            (client.address, client.logged, client.is_unreadable),
            (None, ip("10.0.0.1"), true),
            "{field}"
        );
    }
}

#[test]
fn only_trusted_proxies_leave_the_client_unknown() {
    for (field, line) in [
        (LIST, "10.0.0.3, 10.0.0.2"),
        (ELEMENTS, "for=10.0.0.3, for=10.0.0.2"),
        ("x-real-ip", "10.0.0.3"),
        ("cf-connecting-ip", "::ffff:10.0.0.3"),
    ] {
        let client = find("10.0.0.1", field, &[line]);
        assert_eq!(
            (client.address, client.logged, client.is_unreadable),
            (None, ip("10.0.0.3"), false),
            "{line}"
        );
    }
}

#[test]
fn ports_brackets_quotes_and_mapped_addresses_are_read() {
    for (written, address) in [
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:_port", "2001:db8::1"),
        ("198.51.100.1:_port", "198.51.100.1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
    ] {
        assert_eq!(named(LIST, &[written]), some(address), "{written}");
        assert_eq!(
            named(LIST, &[&format!("\"{written}\"")]),
            some(address),
            "{written}"
        );
        assert_eq!(
            named(ELEMENTS, &[&format!("for={written}")]),
            some(address),
            "{written}"
        );
        assert_eq!(
            named(ELEMENTS, &[&format!("by=_x; for=\"{written}\" ;host=a")]),
            some(address),
            "{written}"
        );
    }
    assert_eq!(named(LIST, &["198.51.100.1:99999"]), None);
    assert_eq!(named(LIST, &["2001:db8::1]:1"]), None);
}

#[test]
fn forged_quotes_do_not_hide_what_a_proxy_adds() {
    for forged in [
        "for=\"x",
        "for=\"\\\"",
        "host=\"a, for=\"b\"",
        "\"",
        "for=\"a,b\"",
    ] {
        for added in ["for=198.51.100.1", "for=\"[2001:db8::1]\";host=\"a\""] {
            let client = find("10.0.0.1", ELEMENTS, &[&format!("{forged}, {added}")]);
            let expected = if added.contains('[') {
                "2001:db8::1"
            } else {
                "198.51.100.1"
            };
            assert_eq!(client.address, ip(expected), "{forged}");
        }
    }
    assert_eq!(named(LIST, &["\", 198.51.100.1"]), some("198.51.100.1"));
}

#[test]
fn proto_and_host_come_from_the_clients_element() {
    let read = |line: &str| {
        let forwarded = find("10.0.0.1", ELEMENTS, &[line])
            .forwarded
            .map(|forwarded| *forwarded)
            .unwrap_or_default();
        (
            forwarded.proto,
            forwarded
                .host
                .map(|host| String::from_utf8_lossy(&host).into_owned()),
        )
    };
    let all = "for=203.0.113.9;proto=http, for=192.0.2.1;Proto=HTTPS;host=\"shop.example:8443\", for=10.0.0.2;proto=http";
    assert_eq!(read(all), (Some("https"), some("shop.example:8443")));
    assert_eq!(
        read("for=unknown;proto=https"),
        (Some("https"), None),
        "also of a client that is not named"
    );
    assert_eq!(
        read("for=192.0.2.1;proto=gopher;host=\"a b\""),
        (None, None)
    );
    assert_eq!(find("10.0.0.1", LIST, &["192.0.2.1"]).forwarded, None);
}
