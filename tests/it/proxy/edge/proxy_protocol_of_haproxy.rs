//! The PROXY protocol as HAProxy sends it: both versions, health checks, and TLS that HAProxy
//! passes on.

use super::https::{BOTH, get};
use crate::proxy::support::program::haproxy_passing_on;
use crate::proxy::support::{Authority, BROWSER, Origin, Setup, TlsConnection, eventually};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// An address of loopback that is not a trusted proxy's.
const CLIENT: &str = "127.0.0.5";

/// A connection of this client's.
fn connect(to: SocketAddr) -> TcpStream {
    let socket =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket
        .bind(
            &format!("{CLIENT}:0")
                .parse::<SocketAddr>()
                .expect("an address")
                .into(),
        )
        .expect("its own address");
    socket.connect(&to.into()).expect("a connection");
    socket.into()
}

#[test]
fn haproxy_names_the_client_in_both_versions() {
    for version in ["send-proxy", "send-proxy-v2"] {
        let origin = Origin::plain();
        let gate = Setup::before(origin.address)
            .listeners("{ address: 127.0.0.1:0, proxy_protocol: yes }")
            .settings("trusted_proxies: 127.0.0.1")
            .start();
        let proxy = haproxy_passing_on(
            gate.address,
            &format!("{version} check inter 100ms check-send-proxy"),
        );
        let mut client = connect(proxy.address);
        client
            .write_all(b"GET /page HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut page = String::new();
        client.read_to_string(&mut page).expect("a response");
        assert!(page.starts_with("HTTP/1.1 200"), "{version}: {page}");
        let of = |target: &str| {
            let received = origin
                .received()
                .into_iter()
                .rfind(|request| request.target() == target);
            received.and_then(|request| request.field("x-forwarded-for").map(str::to_owned))
        };
        assert_eq!(of("/page").as_deref(), Some(CLIENT), "{version}");
        let checked = eventually("a health check", || of("/health"));
        assert_eq!(checked, "127.0.0.1", "{version}");
        assert!(
            !gate.metrics().contains("{reason=\"proxy_header\"}"),
            "{version}: {}",
            gate.log.text()
        );
    }
}

#[test]
fn client_behind_haproxy_that_passes_tls_on_is_named() {
    let (origin, authority) = (Origin::plain(), Authority::new());
    let directory = tempfile::tempdir().expect("a directory");
    authority.certify(directory.path(), "shop", &["shop.example"], 2100);
    let file = |kind: &str| {
        directory
            .path()
            .join(format!("shop.{kind}"))
            .display()
            .to_string()
    };
    let tls = format!(
        "{{ certificates: {{ cert: {}, key: {} }} }}",
        file("pem"),
        file("key")
    );
    let gate = Setup::before(origin.address)
        .listeners(&format!(
            "{{ address: 127.0.0.1:0, proxy_protocol: yes, tls: {tls} }}"
        ))
        .settings("trusted_proxies: 127.0.0.1")
        .start();
    for version in ["send-proxy", "send-proxy-v2"] {
        let proxy = haproxy_passing_on(gate.address, version);
        let config = authority.client(&["http/1.1"], &BOTH);
        let mut connection = TlsConnection::over(connect(proxy.address), "shop.example", &config)
            .expect("a connection");
        assert!(get(&mut connection, "shop.example", "/", BROWSER).starts_with("HTTP/1.1 200"));
        assert_eq!(
            origin.last().field("x-forwarded-for"),
            Some(CLIENT),
            "{version}"
        );
        assert_eq!(origin.last().field("x-forwarded-proto"), Some("https"));
    }
}
