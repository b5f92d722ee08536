use super::*;

fn origin(hosts: &[&str], servers: &[&str]) -> OriginSettings {
    OriginSettings {
        hosts: hosts.iter().map(ToString::to_string).collect(),
        servers: servers.iter().map(|host| ServerAddress { tls: false, host: host.to_string(), port: 8080 }).collect(),
        timeouts: OriginTimeouts::default(),
    }
}

fn peer_for(origins: &Origins, host: &str) -> Option<Box<HttpPeer>> {
    origins.choose(host.as_bytes()).and_then(|choice| origins.http_peer(choice)).ok()
}

fn address_for(origins: &Origins, host: &str) -> Option<String> {
    Some(peer_for(origins, host)?._address.to_string())
}

#[test]
fn exact_host_wins_over_wildcard_and_wildcard_over_the_rest() {
    let origins = Origins::new(&[
        origin(&["*.example"], &["127.0.0.1"]),
        origin(&["shop.example"], &["127.0.0.2"]),
        origin(&["*.shop.example"], &["127.0.0.3"]),
        origin(&[], &["127.0.0.4"]),
    ]);
    for (host, address) in [
        ("shop.example", "127.0.0.2:8080"),
        ("SHOP.example.:443", "127.0.0.2:8080"),
        ("a.shop.example", "127.0.0.3:8080"),
        ("blog.example:80", "127.0.0.1:8080"),
        (".example", "127.0.0.4:8080"),
        ("", "127.0.0.4:8080"),
        ("[::1]:80", "127.0.0.4:8080"),
    ] {
        assert_eq!(address_for(&origins, host).as_deref(), Some(address), "{host}");
    }
}

#[test]
fn host_without_group_has_no_peer() {
    let origins = Origins::new(&[origin(&["shop.example"], &["127.0.0.1"])]);
    assert_eq!(address_for(&origins, "blog.example"), None);
}

#[test]
fn servers_take_turns_and_one_without_address_is_skipped() {
    let origins = Origins::new(&[origin(&[], &["127.0.0.1", "unresolved.invalid", "127.0.0.2"])]);
    let mut seen: Vec<String> = (0..6).filter_map(|_| address_for(&origins, "a")).collect();
    assert_eq!(seen.len(), 6);
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["127.0.0.1:8080", "127.0.0.2:8080"]);
}

#[test]
fn retry_takes_no_turn() {
    let origins = Origins::new(&[origin(&[], &["127.0.0.1", "127.0.0.2"])]);
    let tried = |attempts: &mut Attempts| attempts.next(&origins, b"a").unwrap().server;
    let first_choices: Vec<usize> = (0..6)
        .map(|_| {
            let mut attempts = Attempts::default();
            let first = tried(&mut attempts);
            // The first server is down.
            if first == 0 {
                assert!(attempts.may_go_on());
                assert_eq!(tried(&mut attempts), 1);
            }
            first
        })
        .collect();
    assert_eq!(first_choices, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn retry_of_an_only_server_uses_its_next_address() {
    let origins = Origins::new(&[origin(&[], &["name.invalid"])]);
    origins.groups[0].servers[0].use_addresses(&["[::1]:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap()]);
    let mut attempts = Attempts::default();
    assert_eq!(attempts.next(&origins, b"a").unwrap().address, 0);
    attempts.connect_failed(&origins);
    assert_eq!(attempts.next(&origins, b"a").unwrap().address, 1);
}

#[test]
fn refused_connection_selects_the_next_address() {
    let origins = Origins::new(&[origin(&[], &["name.invalid"])]);
    let server = &origins.groups[0].servers[0];
    server.use_addresses(&["[::1]:8080".parse().unwrap(), "127.0.0.1:8080".parse().unwrap()]);
    let choice = origins.choose(b"a").unwrap();
    assert_eq!(origins.http_peer(choice).unwrap()._address.to_string(), "[::1]:8080");
    origins.connect_failed(choice);
    origins.connect_failed(choice);
    assert_eq!(address_for(&origins, "a").as_deref(), Some("127.0.0.1:8080"));
}

#[test]
fn reordered_addresses_keep_the_one_in_use() {
    let origins = Origins::new(&[origin(&[], &["name.invalid"])]);
    let server = &origins.groups[0].servers[0];
    let (one, other) = ("127.0.0.1:8080".parse().unwrap(), "127.0.0.2:8080".parse().unwrap());
    server.use_addresses(&[one, other]);
    server.use_addresses(&[other, one]);
    assert_eq!(address_for(&origins, "a").as_deref(), Some("127.0.0.1:8080"));
}

#[test]
fn peer_has_timeouts_and_verifies_the_servers_name() {
    let mut settings = origin(&[], &["127.0.0.1"]);
    settings.servers[0].tls = true;
    let peer = peer_for(&Origins::new(&[settings]), "a").unwrap();
    assert_eq!(peer.options.connection_timeout, Some(Duration::from_secs(3)));
    assert_eq!(peer.options.read_timeout, Some(Duration::from_secs(60)));
    assert_eq!(peer.options.write_timeout, Some(Duration::from_secs(30)));
    assert_eq!(peer.options.idle_timeout, Some(Duration::from_secs(55)));
    assert!(peer.is_tls() && peer.options.verify_cert && peer.options.verify_hostname);
    assert_eq!(peer.sni, "127.0.0.1");
}

#[tokio::test]
async fn failed_lookup_keeps_the_last_good_addresses() {
    let origins = Arc::new(Origins::new(&[origin(&[], &["name.invalid"])]));
    origins.groups[0].servers[0].use_addresses(&["127.0.0.1:8080".parse().unwrap()]);
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let resolver = Resolver::new(origins.clone(), move |place| {
        assert_eq!(place, ServerPlace { origin: 0, server: 0 });
        counted.fetch_add(1, Ordering::Relaxed);
    });
    assert!(resolver.round().await);
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    assert_eq!(address_for(&origins, "a").as_deref(), Some("127.0.0.1:8080"));
}

#[tokio::test]
async fn name_is_resolved_to_its_address() {
    let origins = Arc::new(Origins::new(&[origin(&[], &["localhost"])]));
    assert_eq!(address_for(&origins, "a"), None);
    assert!(Resolver::new(origins.clone(), |_| ()).round().await);
    let address: SocketAddr = address_for(&origins, "a").unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());
}

#[test]
fn authority_omits_the_default_port() {
    let settings = OriginSettings {
        servers: vec![
            ServerAddress { tls: false, host: "a.example".into(), port: 80 },
            ServerAddress { tls: true, host: "::1".into(), port: 8443 },
        ],
        ..origin(&[], &[])
    };
    let origins = Origins::new(&[settings]);
    let authorities: Vec<&str> = origins.servers().map(|server| server.authority.as_str()).collect();
    assert_eq!(authorities, ["a.example", "[::1]:8443"]);
}
