//! Tests of reading a whole `crawlgate.yaml`: what is decoded, which defaults apply, and that each
//! mistake is reported at its place in the file.

use super::listen::RedirectSettings;
use super::store::Secret;
use super::*;
use crate::yaml::{Diagnostics, SourceFile};
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

fn decode(source: &SourceFile) -> (Option<Settings>, Diagnostics) {
    decode_in_directory(Path::new(""), source)
}

/// Reads a file that stands in a directory.
fn decode_in_directory(directory: &Path, source: &SourceFile) -> (Option<Settings>, Diagnostics) {
    super::decode_settings(
        source,
        directory,
        Settings {
            control: Some("/run/c.sock".into()),
            ..Settings::default()
        },
    )
}

fn decode_text(text: &str) -> (Option<Settings>, Vec<String>) {
    decode_text_in("", text)
}

fn decode_text_in(directory: &str, text: &str) -> (Option<Settings>, Vec<String>) {
    let source = SourceFile {
        name: "crawlgate.yaml".into(),
        text: text.into(),
    };
    let (file, diagnostics) = decode_in_directory(Path::new(directory), &source);
    (
        file,
        diagnostics
            .items
            .iter()
            .map(|item| item.one_line(&source))
            .collect(),
    )
}

#[test]
fn whole_file_is_decoded() {
    let (file, findings) = decode_text_in(
        "/etc/crawlgate",
        "listen: [0.0.0.0:80, '[::]:80']\n\
         origins:\n\
         \x20 - hosts: [Shop.example, '*.shop.example']\n\
         \x20   servers: [http://10.0.0.1:8080, https://b.example]\n\
         \x20   timeouts: { connect: 500ms, read: 10s }\n\
         \x20 - servers: http://127.0.0.1:3000\n\
         policies: policies\nadmin: off\nadmin_hosts: Metrics.internal\ncontrol: /run/crawlgate.sock\nstate: state\n\
         trusted_proxies: [10.0.0.0/8, 192.0.2.7]\nclient_address: CF-Connecting-IP\n\
         limits: { target: 8KiB, drain: 5s }\nupgrade: { drain: 2m }\nlogs: { access: '-' }\nprivacy: { logs: network, history: none }\nhistory: { paths: no }\nthreads: 4\nstrict: yes\n",
    );
    assert_eq!(findings, Vec::<String>::new());
    let settings = file.expect("a file").finalize().expect("settings");
    assert_eq!(settings.listen.len(), 2);
    assert_eq!(
        settings.origins[0].hosts,
        ["shop.example", "*.shop.example"]
    );
    assert_eq!(
        settings.origins[0].servers[1].address,
        OriginServerAddress {
            tls: true,
            host: "b.example".into(),
            port: 443,
            socket: None
        }
    );
    assert_eq!(
        settings.origins[0].timeouts.connect,
        Duration::from_millis(500)
    );
    assert_eq!(
        settings.origins[0].timeouts.write,
        OriginTimeouts::default().write
    );
    assert!(settings.origins[1].hosts.is_empty());
    assert_eq!(settings.policies, Path::new("/etc/crawlgate/policies"));
    assert_eq!(settings.admin, None);
    assert_eq!(settings.admin_hosts, ["metrics.internal"]);
    assert_eq!(
        settings.control.as_deref(),
        Some(Path::new("/run/crawlgate.sock"))
    );
    assert_eq!(
        settings.state.as_deref(),
        Some(Path::new("/etc/crawlgate/state"))
    );
    assert_eq!(settings.trusted_proxies[1].to_string(), "192.0.2.7/32");
    assert_eq!(settings.client_address.0, "cf-connecting-ip");
    assert_eq!(
        (settings.limits.target, settings.limits.drain),
        (8192, Duration::from_secs(5))
    );
    assert_eq!(settings.upgrade_drain, Duration::from_secs(120));
    assert_eq!(
        settings.logs,
        LogSettings {
            access: LogDestination::Stdout,
            addresses: AddressDetail::Network,
            ..LogSettings::default()
        }
    );
    assert_eq!(settings.history_addresses, AddressDetail::None);
    assert!(!settings.history_paths && Settings::default().history_paths);
    assert_eq!((settings.threads, settings.strict), (Some(4), true));
}

#[test]
fn access_log_takes_place_and_format() {
    let logs = |text: &str| {
        let source = SourceFile {
            name: "crawlgate.yaml".into(),
            text: format!("logs: {{ access: {text} }}\n").into(),
        };
        let (file, findings) = decode(&source);
        let logs = file.map(|file| (file.logs.access, file.logs.access_format));
        (logs, findings.items.first().map(|finding| finding.id))
    };
    let file = || LogDestination::File("a.log".into());
    assert_eq!(logs("a.log"), (Some((file(), AccessFormat::Json)), None));
    assert_eq!(
        logs("{ to: a.log }"),
        (Some((file(), AccessFormat::Json)), None)
    );
    assert_eq!(
        logs("{ to: a.log, format: combined }"),
        (Some((file(), AccessFormat::Combined)), None)
    );
    assert_eq!(
        logs("{ to: a.log, format: vhost_combined }"),
        (Some((file(), AccessFormat::VhostCombined)), None)
    );
    assert_eq!(
        logs("{ to: '-', format: json }"),
        (Some((LogDestination::Stdout, AccessFormat::Json)), None)
    );
    assert_eq!(
        logs("{ to: off }").0,
        Some((LogDestination::Off, AccessFormat::Json))
    );
    assert_eq!(logs("{ format: combined }"), (None, Some("missing-field")));
    assert!(
        logs("{ to: a.log, format: common }").1.is_some()
            && logs("{ to: a.log, rate: 5 }").1.is_some()
    );
}

#[test]
fn single_url_is_origin_of_every_host() {
    let (file, _) = decode_text("origins: http://127.0.0.1:3000\n");
    let settings = file.expect("a file").finalize().expect("settings");
    assert_eq!(settings.origins.len(), 1);
    assert!(settings.origins[0].hosts.is_empty());
    assert_eq!(
        settings.listen,
        [ListenSettings::from(SocketAddr::from((
            [127, 0, 0, 1],
            8080
        )))]
    );
    assert_eq!(
        settings.admin,
        Some("127.0.0.1:9190".parse().expect("an address"))
    );
}

#[test]
fn evidence_is_off_by_default_and_needs_state() {
    let evidence = |lines: &str| {
        let (file, findings) = decode_text(&format!("origins: http://127.0.0.1:3000\n{lines}\n"));
        let places = findings
            .iter()
            .map(|line| line.split(": ").next().unwrap_or_default().to_owned());
        let settings = file.and_then(|file| file.finalize()?.evidence);
        (settings, places.collect::<Vec<_>>())
    };
    assert_eq!(evidence(""), (None, vec![]));
    assert_eq!(
        evidence("evidence: on"),
        (Some(EvidenceSettings::default()), vec![])
    );
    let text = "evidence: { keep: 30d, megabytes: 64, timestamps: https://tsa.example/tsr }";
    let timestamps = vec!["https://tsa.example/tsr".to_owned()];
    let expected = EvidenceSettings {
        keep: Duration::from_secs(30 * 86_400),
        timestamps,
        size: 64 << 20,
    };
    assert_eq!(evidence(text), (Some(expected), vec![]));
    for (text, place) in [
        ("evidence: { keep: 1h }", "2:19"),
        ("evidence: { megabytes: 1 }", "2:24"),
        ("evidence: { timestamps: [tsa.example] }", "2:26"),
        ("state: off\nevidence: on", "3:11"),
    ] {
        assert_eq!(
            evidence(text),
            (None, vec![format!("crawlgate.yaml:{place}")]),
            "{text}"
        );
    }
}

#[test]
fn redirect_has_port_that_clients_see() {
    let listener = |redirect: &str| {
        let text = format!(
            "origins: http://127.0.0.1:3000\nlisten: {{ address: 127.0.0.1:80, redirect: {redirect} }}\n"
        );
        let (file, findings) = decode_text(&text);
        let places: Vec<_> = findings
            .iter()
            .filter_map(|line| line.split(": ").next().map(str::to_owned))
            .collect();
        let settings = file.and_then(Settings::finalize);
        (
            settings.and_then(|settings| settings.listen.first()?.redirect),
            places,
        )
    };
    let to = |port| {
        Some(RedirectSettings {
            port: NonZeroU16::new(port),
        })
    };
    assert_eq!(listener("https"), (to(0), vec![]));
    assert_eq!(listener("{ to: https }"), (to(0), vec![]));
    assert_eq!(listener("{ to: https, port: 8443 }"), (to(8443), vec![]));
    for (redirect, place) in [
        ("http", "2:44"),
        ("{ port: 443 }", "2:44"),
        ("{ to: http }", "2:50"),
        ("{ to: https, port: 65536 }", "2:63"),
    ] {
        assert_eq!(
            listener(redirect),
            (None, vec![format!("crawlgate.yaml:{place}")]),
            "{redirect}"
        );
    }
}

#[test]
fn every_mistake_is_reported_in_one_run() {
    let (file, findings) = decode_text(
        "lissten: 0.0.0.0:80\nlisten: 8080\norigins:\n  - servers: shop.example\n    health: {}\n\
         trusted_proxies: [10.0.0.0/40]\nlimits: { target: huge }\nthreads: 0\nclient_address: x forwarded\n",
    );
    assert_eq!(file, None);
    let places: Vec<&str> = findings
        .iter()
        .map(|line| line.split(": ").next().unwrap_or(""))
        .collect();
    assert_eq!(findings.len(), 9, "{findings:#?}");
    for place in [
        "1:1", "2:9", "4:5", "4:14", "5:13", "6:19", "7:19", "8:10", "9:17",
    ] {
        assert!(
            places.contains(&format!("crawlgate.yaml:{place}").as_str()),
            "{place} in {findings:#?}"
        );
    }
}

#[test]
fn missing_settings_keep_their_defaults() {
    let (file, _) = decode_text("origins: http://127.0.0.1:3000\nadmin: off\nstrict: yes\n");
    let settings = file.expect("a file").finalize().expect("settings");
    assert_eq!((settings.admin, settings.strict), (None, true));
    assert_eq!(settings.control.as_deref(), Some(Path::new("/run/c.sock")));
    assert!(settings.policies_may_be_missing);
    assert_eq!(Settings::default().finalize(), None);
}

fn decode_origins(text: &str) -> (Vec<OriginSettings>, Vec<&'static str>) {
    let source = SourceFile {
        name: "crawlgate.yaml".into(),
        text: format!("origins: {text}\n").into(),
    };
    let (file, findings) = decode(&source);
    let ids = findings.items.iter().map(|finding| finding.id).collect();
    (file.map(|file| file.origins).unwrap_or_default(), ids)
}

#[test]
fn servers_have_weights_and_backups_and_origins_their_rules() {
    let (read, findings) = decode_origins(
        "{ paths: [/api/], servers: [http://a, { url: http://b, weight: 5, backup: yes }], balance: client, \
         ejection: { failures: 5, for: 1m, statuses: [503, 500-502] } }",
    );
    assert_eq!(findings, Vec::<&str>::new());
    let OriginSettings {
        paths,
        servers,
        balance,
        ejection,
        capacity,
        ..
    } = &read[0];
    assert_eq!(
        (paths.as_slice(), balance, capacity),
        (
            ["/api/".to_owned()].as_slice(),
            &LoadBalancing::Client,
            &None
        )
    );
    assert_eq!(
        servers
            .iter()
            .map(|server| (server.weight, server.is_backup))
            .collect::<Vec<_>>(),
        [(1, false), (5, true)]
    );
    let rules = EjectionSettings {
        failures: 5,
        initial_time: Duration::from_secs(60),
        statuses: vec![503..=503, 500..=502],
        ..EjectionSettings::default()
    };
    assert_eq!(ejection.as_ref(), Some(&rules));
    assert_eq!(
        decode_origins("{ servers: http://a, ejection: off }").0[0].ejection,
        None
    );
    assert_eq!(
        decode_origins("http://a").0[0].ejection,
        Some(EjectionSettings::default())
    );
}

#[test]
fn files_of_tls_are_relative_to_the_settings() {
    let text = "origins: { servers: https://a, tls: { ca: ca.pem, server_name: App.Internal, \
                client: { cert: c.pem, key: /keys/c.key } } }\n";
    let (file, findings) = decode_text_in("/etc/crawlgate", text);
    assert_eq!(findings, Vec::<String>::new());
    let file = file.expect("a file");
    let tls = file.origins[0].tls.clone().expect("TLS");
    let [cert, key] = tls.client.expect("a certificate");
    let ca = tls.ca.expect("authorities");
    assert_eq!(
        (ca.path.as_path(), ca.span.line),
        (Path::new("/etc/crawlgate/ca.pem"), 1)
    );
    assert_eq!(cert.path, Path::new("/etc/crawlgate/c.pem"));
    assert_eq!(key.path, Path::new("/keys/c.key"));
    assert_eq!(tls.server_name.as_deref(), Some("app.internal"));
}

#[test]
fn origin_host_may_have_a_port() {
    for (written, read, certificate) in [
        (
            "App-1.Platform.example",
            "app-1.platform.example",
            "app-1.platform.example",
        ),
        ("app.internal:8080", "app.internal:8080", "app.internal"),
        (
            "\"[2001:DB8::1]:8080\"",
            "[2001:db8::1]:8080",
            "2001:db8::1",
        ),
        ("\"::1\"", "[::1]", "::1"),
        (
            "bücher.example.",
            "xn--bcher-kva.example",
            "xn--bcher-kva.example",
        ),
    ] {
        let (origins, findings) =
            decode_origins(&format!("{{ servers: https://a, host: {written} }}"));
        assert_eq!(findings, Vec::<&str>::new(), "{written}");
        assert_eq!(origins[0].host.as_deref(), Some(read), "{written}");
        assert_eq!(
            origins[0].certificate_name(),
            Some(certificate),
            "{written}"
        );
    }
    let named = "{ servers: https://a, host: b, tls: { server_name: c } }";
    assert_eq!(decode_origins(named).0[0].certificate_name(), Some("c"));
    assert_eq!(
        decode_origins("{ servers: https://a }").0[0].certificate_name(),
        None
    );
}

#[test]
fn origin_host_mistakes_are_reported_in_place() {
    for host in [
        "https://a",
        "a/b",
        "'*.a'",
        "a:0",
        "a:65536",
        "a:b",
        "user@a",
        "''",
        "'[::1'",
        "'a b'",
        "[a, b]",
    ] {
        let text = format!("origins: {{ servers: http://a,\n           host: {host} }}\n");
        let (_, findings) = decode_text(&text);
        let place = "2:18: error";
        assert!(
            findings.len() == 1 && findings[0].contains(place),
            "{host}: {findings:?}"
        );
    }
}

#[test]
fn unix_sockets_are_relative_to_the_settings() {
    let (file, findings) = decode_text_in(
        "/etc/crawlgate",
        "origins: [unix:/run/app.sock, unix:app.sock]\n",
    );
    assert_eq!(findings, Vec::<String>::new());
    let file = file.expect("a file");
    let urls: Vec<String> = file.origins[0]
        .servers
        .iter()
        .map(|server| server.address.url())
        .collect();
    assert_eq!(urls, ["unix:/run/app.sock", "unix:/etc/crawlgate/app.sock"]);
    assert!(OriginServerAddress::parse(&format!("unix:/{}", "a".repeat(107))).is_err());
}

#[test]
fn health_needs_a_path_and_has_defaults() {
    let decode = |health: &str| {
        let (read, findings) =
            decode_origins(&format!("{{ servers: http://a, health: {health} }}"));
        assert_eq!(findings, Vec::<&str>::new(), "{health}");
        read[0].health.clone().expect("checks")
    };
    let plain = HealthSettings {
        path: "/up".into(),
        ..HealthSettings::default()
    };
    assert_eq!(decode("{ path: /up }"), plain);
    assert_eq!(
        (
            plain.unhealthy_after,
            plain.healthy_after,
            plain.statuses.clone()
        ),
        (3, 2, vec![200..=399])
    );
    let text = "{ path: /up, host: A.example, every: 1m, timeout: 1s, unhealthy_after: 1, healthy_after: 4, status: 404 }";
    let (every, timeout) = (Duration::from_secs(60), Duration::from_secs(1));
    let expected = HealthSettings {
        host: Some("a.example".into()),
        every,
        timeout,
        unhealthy_after: 1,
        healthy_after: 4,
        statuses: vec![404..=404],
        ..plain
    };
    assert_eq!(decode(text), expected);
}

#[test]
fn health_mistakes_are_reported_in_place() {
    for (health, finding, column) in [
        ("{ every: 1s }", "missing-field", 39),
        ("{ path: up }", "bad-path", 47),
        ("{ path: '/up#a' }", "bad-path", 47),
        ("{ path: /, host: '*.a.example' }", "bad-host", 56),
        ("{ path: /, every: 10ms }", "bad-value", 57),
        ("{ path: /, timeout: 2m }", "bad-value", 59),
        ("{ path: /, healthy_after: 0 }", "bad-value", 65),
        ("{ path: /, status: [200, 100] }", "bad-value", 64),
        ("{ path: /, often: yes }", "unknown-field", 50),
    ] {
        let text = format!("\norigins: {{ servers: http://a, health: {health} }}\n");
        let source = SourceFile {
            name: "crawlgate.yaml".into(),
            text: text.into(),
        };
        let found = decode(&source).1.items;
        assert_eq!(
            found.iter().map(|found| found.id).collect::<Vec<_>>(),
            [finding],
            "{health}"
        );
        let line = found[0].one_line(&source);
        assert!(
            line.starts_with(&format!("crawlgate.yaml:2:{column}: ")),
            "{health}: {line}"
        );
    }
}

#[test]
fn capacity_has_crawler_share_and_visitor_queue() {
    let (read, findings) = decode_origins(
        "{ servers: http://a, connections: 50, exempt: Googlebot, queue: { wait: 1s } }",
    );
    assert_eq!(findings, Vec::<&str>::new());
    let places = read[0].capacity.clone().expect("places");
    assert_eq!(
        (places.connections, places.crawlers, places.queue_length),
        (50, 10, 1_000)
    );
    assert_eq!(
        (places.exempt.len(), places.queue_timeout),
        (1, Duration::from_secs(1))
    );
    assert_eq!(
        decode_origins("{ servers: http://a, connections: 2 }").0[0]
            .capacity
            .as_ref()
            .map(|places| places.crawlers),
        Some(1)
    );
}

#[test]
fn origin_mistakes_are_reported() {
    for (text, finding) in [
        ("{ servers: http://a, crawlers: 5 }", "missing-field"),
        (
            "{ servers: http://a, resolvers: dns.example }",
            "bad-address",
        ),
        (
            "{ servers: http://a, resolvers: [system, 127.0.0.1] }",
            "bad-address",
        ),
        (
            "{ servers: http://a, queue: { length: 5 } }",
            "missing-field",
        ),
        (
            "{ servers: http://a, connections: 5, crawlers: 6 }",
            "bad-value",
        ),
        (
            "{ servers: http://a, connections: 5, exempt: Nobodybot }",
            "unknown-crawler",
        ),
        (
            "{ servers: http://a, ejection: { for: 1m, most: 10s } }",
            "bad-value",
        ),
        (
            "{ servers: http://a, ejection: { statuses: 200 } }",
            "bad-value",
        ),
        ("{ servers: { url: http://a, backup: yes } }", "no-server"),
        ("{ servers: http://a, paths: [/a, /a] }", "duplicate-path"),
        ("{ servers: http://a, paths: a }", "bad-path"),
        (
            "[{ servers: http://a }, { servers: http://b }]",
            "duplicate-origin",
        ),
        ("[{ servers: http://a }, http://b]", "duplicate-origin"),
        (
            "{ servers: http://a, tls: { server_name: a.example } }",
            "bad-value",
        ),
        (
            "{ servers: https://a, tls: { server_name: 'a:1' } }",
            "bad-host",
        ),
        (
            "{ servers: https://a, tls: { client: { cert: a.pem } } }",
            "missing-field",
        ),
        ("{ servers: https://a, tls: { ca: '' } }", "bad-path"),
        (
            "[{ hosts: a.example, servers: http://a }, { hosts: a.example, servers: http://b }]",
            "duplicate-origin",
        ),
        (
            "[{ paths: [/a, /b], servers: http://a }, { paths: /b, servers: http://b }]",
            "duplicate-origin",
        ),
    ] {
        assert_eq!(decode_origins(text).1, [finding], "{text}");
    }
    for (listen, server, is_same) in [
        ("127.0.0.1:80", "http://localhost", true),
        ("127.0.0.1:80", "http://127.0.0.1:80", true),
        ("0.0.0.0:80", "http://127.0.0.1", true),
        ("[::]:80", "http://[::1]", true),
        ("192.0.2.1:80", "http://192.0.2.1", true),
        ("127.0.0.1:80", "http://localhost:81", false),
        ("127.0.0.2:80", "http://127.0.0.1", false),
        ("192.0.2.1:80", "http://192.0.2.2", false),
        ("0.0.0.0:80", "unix:/run/app.sock", false),
    ] {
        let address = OriginServerAddress::parse(server).expect("a server");
        let listen = listen.parse().expect("an address");
        assert_eq!(address.is_at(listen), is_same, "{listen} {server}");
    }
    let apart = "[{ hosts: a.example, servers: http://a }, { hosts: a.example, paths: /b, servers: http://b }, http://c]";
    assert_eq!(decode_origins(apart).1, Vec::<&str>::new());
}

#[test]
fn upgrade_mistakes_are_reported_in_place() {
    for (text, finding, column) in [
        ("upgrade: { drain: 25h }", "bad-value", 19),
        ("upgrade: { drian: 5s }", "unknown-field", 12),
        ("upgrade: 5s", "wrong-type", 10),
        ("lane: off", "unknown-field", 1),
    ] {
        let findings = decode_text(text).1;
        let place = format!("crawlgate.yaml:1:{column}:");
        assert!(
            findings.len() == 1 && findings[0].starts_with(&place),
            "{findings:?}"
        );
        assert!(findings[0].contains(finding), "{findings:?}");
    }
}

#[test]
fn url_of_no_server_is_rejected_with_reason() {
    for url in [
        "example.com",
        "ftp://example.com",
        "http://",
        "http://a/b",
        "http://a?b",
        "http://u:p@a",
        "http://a:0",
        "http://a:99999",
        "http://a:x",
        "http://[::1",
        "http://::1",
        "http://a b",
        "http://a:",
        "http://a..b",
        "unix:",
    ] {
        assert!(OriginServerAddress::parse(url).is_err(), "{url}");
    }
    let v6 = OriginServerAddress::parse("http://[::1]:81/").expect("a URL");
    assert_eq!((v6.host.as_str(), v6.port), ("::1", 81));
}

#[test]
fn sizes_and_their_bounds_have_units() {
    let size = |size: &str| decode_text(&format!("limits: {{ headers: {size} }}\n")).1;
    for fits in ["1024", "4KiB", "64 k", "1MiB", "1m"] {
        assert_eq!(size(fits), Vec::<String>::new(), "{fits}");
    }
    let text = "limits: { headers: 2MiB }\n";
    let (_, diagnostics) = decode(&SourceFile {
        name: "crawlgate.yaml".into(),
        text: text.into(),
    });
    let help = diagnostics.items[0].help.as_deref().expect("what to do");
    assert!(help.contains("1KiB to 1MiB"), "{help}");
}

#[test]
fn acme_takes_word_or_map() {
    let read_acme = |acme: &str| {
        let text = format!("listen: {{ address: 127.0.0.1:1, tls: {{ acme: {acme} }} }}\n");
        let (decoded, diagnostics) = decode(&SourceFile {
            name: "crawlgate.yaml".into(),
            text: text.into(),
        });
        assert!(!diagnostics.has_errors(), "{acme}: {:?}", diagnostics.items);
        decoded
            .and_then(|decoded| decoded.listen[0].tls.clone()?.acme)
            .expect("acme")
    };
    assert_eq!(read_acme("yes"), AcmeSettings::default());
    assert!(
        AcmeSettings::default()
            .directory
            .contains("letsencrypt.org")
    );
    let decoded = read_acme(
        "{ email: a@b.example, directory: 'https://ca.example/dir', hosts: [Shop.example, bücher.example], challenge: http, \
         resolvers: 9.9.9.9 }",
    );
    let expected = AcmeSettings {
        email: Some("a@b.example".into()),
        directory: "https://ca.example/dir".into(),
        hosts: Some(vec!["shop.example".into(), "xn--bcher-kva.example".into()]),
        challenge: ChallengeChoice::Http,
        resolvers: vec![([9, 9, 9, 9], 53).into()],
    };
    assert_eq!(decoded, expected);
}

#[test]
fn acme_mistakes_are_reported_in_place() {
    for (tls, finding, column) in [
        ("{ acme: { email: a } }", "bad-value", 55),
        ("{ acme: { email: 'a@b@c' } }", "bad-value", 55),
        (
            "{ acme: { directory: 'http://ca.example' } }",
            "bad-value",
            59,
        ),
        ("{ acme: { hosts: '*.a.example' } }", "bad-host", 55),
        ("{ acme: { hosts: [a.example, 10.0.0.1] } }", "bad-host", 67),
        (
            "{ acme: { hosts: [a.example, a.example] } }",
            "duplicate-host",
            67,
        ),
        ("{ acme: { challenge: dns } }", "bad-value", 59),
        ("{ acme: { resolvers: a } }", "bad-address", 59),
        ("{ acme: { eab: a } }", "unknown-field", 48),
        ("{ acme: no }", "missing-field", 38),
    ] {
        let text = format!("\nlisten: {{ address: 127.0.0.1:1, tls: {tls} }}\n");
        let source = SourceFile {
            name: "crawlgate.yaml".into(),
            text: text.into(),
        };
        let found = decode(&source).1.items;
        assert_eq!(
            found.iter().map(|found| found.id).collect::<Vec<_>>(),
            [finding],
            "{tls}"
        );
        let line = found[0].one_line(&source);
        assert!(
            line.starts_with(&format!("crawlgate.yaml:2:{column}: ")),
            "{tls}: {line}"
        );
    }
    let two = "listen: [{ address: 127.0.0.1:1, tls: { acme: yes } }, { address: 127.0.0.1:2, tls: { acme: { hosts: a.example } } }]";
    let found = decode(&SourceFile {
        name: "crawlgate.yaml".into(),
        text: two.into(),
    })
    .1
    .items;
    assert_eq!(
        found.iter().map(|found| found.id).collect::<Vec<_>>(),
        ["bad-value"]
    );
}

#[test]
fn store_takes_url_or_map() {
    let read_store = |store: &str| {
        let (file, findings) = decode_text(&format!("store: {store}\n"));
        assert_eq!(findings, Vec::<String>::new(), "{store}");
        file.and_then(|file| file.store).expect("a store")
    };
    let plain = read_store("redis://10.0.0.5");
    assert_eq!(
        (plain.url.to_string().as_str(), plain.prefix.as_str()),
        ("redis://10.0.0.5:6379/0", "crawlgate:")
    );
    let full = read_store("'rediss://edge:p%40ss@[::1]:6380/3'");
    let StoreUrl {
        tls,
        host,
        port,
        user,
        password,
        database,
    } = &full.url;
    assert_eq!(
        (tls, host.as_str(), port, database),
        (&true, "::1", &6380, &3)
    );
    assert_eq!(
        (user.as_deref(), password.clone()),
        (Some("edge"), Some(Secret("p@ss".into())))
    );
    let shown = format!("{full:?} {}", full.url);
    assert!(
        !shown.contains("p@ss") && shown.contains("rediss://[::1]:6380/3"),
        "{shown}"
    );
    let text = "store: { url: valkeys://a.example, password_file: secret, ca: /ca.pem, prefix: 'shop:' }\n";
    let file = decode_text_in("/etc/crawlgate", text).0.expect("a file");
    let decoded = file.store.expect("a store");
    assert_eq!(
        decoded.password_file.as_deref(),
        Some(Path::new("/etc/crawlgate/secret"))
    );
    assert_eq!(
        (decoded.ca.as_deref(), decoded.prefix.as_str()),
        (Some(Path::new("/ca.pem")), "shop:")
    );
}

#[test]
fn store_mistakes_are_reported_in_place() {
    for (store, finding, column) in [
        ("http://a", "bad-value", 8),
        ("redis://", "bad-value", 8),
        ("redis://a:0", "bad-value", 8),
        ("redis://a/first", "bad-value", 8),
        ("redis://a/65536", "bad-value", 8),
        ("'redis://a?db=1'", "bad-value", 8),
        ("'redis://u:p:q@a'", "bad-value", 8),
        ("{ prefix: 'a:' }", "missing-field", 8),
        ("{ url: redis://a, prefix: 'a*' }", "bad-value", 34),
        ("{ url: redis://a, password: a }", "unknown-field", 26),
        ("{ url: 'redis://:p@a', password_file: p }", "bad-value", 8),
        ("{ url: 'redis://u@a' }", "missing-field", 8),
        ("{ url: redis://a, ca: ca.pem }", "bad-value", 8),
    ] {
        let source = SourceFile {
            name: "crawlgate.yaml".into(),
            text: format!("\nstore: {store}\n").into(),
        };
        let found = decode(&source).1.items;
        assert_eq!(
            found.iter().map(|found| found.id).collect::<Vec<_>>(),
            [finding],
            "{store}"
        );
        let line = found[0].one_line(&source);
        assert!(
            line.starts_with(&format!("crawlgate.yaml:2:{column}: ")),
            "{store}: {line}"
        );
        assert!(!line.contains("u:p"), "{line}");
    }
}

#[test]
fn store_excludes_acme_and_needs_state() {
    let findings = |rest: &str| {
        let source = SourceFile {
            name: "crawlgate.yaml".into(),
            text: format!("store: redis://a\n{rest}\n").into(),
        };
        decode(&source)
            .1
            .items
            .iter()
            .map(|found| found.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        findings("listen: { address: 127.0.0.1:1, tls: { acme: yes } }"),
        ["bad-value"]
    );
    assert_eq!(findings("state: off"), ["missing-field"]);
    assert_eq!(findings("state: state"), Vec::<&str>::new());
}
