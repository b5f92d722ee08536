//! The file as a whole, and its mistakes in their places.

use super::*;
use crate::yaml::Source;
use std::path::Path;

fn read_text(text: &str) -> (Option<SettingsFile>, Vec<String>) {
    let source = Source { name: "crawlgate.yaml".into(), text: text.into() };
    let (file, diagnostics) = read(&source);
    (file, diagnostics.items.iter().map(|item| item.one_line(&source)).collect())
}

fn defaults() -> Defaults {
    Defaults { control: Some("/run/c.sock".into()), state: None }
}

#[test]
fn a_whole_file_is_read() {
    let (file, findings) = read_text(
        "listen: [0.0.0.0:80, '[::]:80']\n\
         origins:\n\
         \x20 - hosts: [Shop.example, '*.shop.example']\n\
         \x20   servers: [http://10.0.0.1:8080, https://b.example]\n\
         \x20   timeouts: { connect: 500ms, read: 10s }\n\
         \x20 - servers: http://127.0.0.1:3000\n\
         policies: policies\nadmin: off\ncontrol: /run/crawlgate.sock\nstate: state\n\
         trusted_proxies: [10.0.0.0/8, 192.0.2.7]\n\
         limits: { target: 8KiB, drain: 5s }\nlogs: { access: '-' }\nprivacy: { logs: network, history: none }\nthreads: 4\nstrict: yes\n",
    );
    assert_eq!(findings, Vec::<String>::new());
    let settings = file.expect("a file").relative_to(Path::new("/etc/crawlgate")).settle(defaults()).expect("settings");
    assert_eq!(settings.listen.len(), 2);
    assert_eq!(settings.origins[0].hosts, ["shop.example", "*.shop.example"]);
    assert_eq!(settings.origins[0].servers[1], ServerAddress { tls: true, host: "b.example".into(), port: 443 });
    assert_eq!(settings.origins[0].timeouts.connect, Duration::from_millis(500));
    assert_eq!(settings.origins[0].timeouts.write, OriginTimeouts::default().write);
    assert!(settings.origins[1].hosts.is_empty());
    assert_eq!(settings.policies, Path::new("/etc/crawlgate/policies"));
    assert_eq!(settings.admin, None);
    assert_eq!(settings.control.as_deref(), Some(Path::new("/run/crawlgate.sock")));
    assert_eq!(settings.state.as_deref(), Some(Path::new("/etc/crawlgate/state")));
    assert_eq!(settings.trusted_proxies[1].to_string(), "192.0.2.7/32");
    assert_eq!((settings.limits.target, settings.limits.drain), (8192, Duration::from_secs(5)));
    assert_eq!(
        settings.logs,
        Logs { access: AccessDestination::Stdout, addresses: AddressDetail::Network, ..Logs::default() }
    );
    assert_eq!(settings.history_addresses, AddressDetail::None);
    assert_eq!((settings.threads, settings.strict), (Some(4), true));
}

#[test]
fn access_log_has_a_format_beside_its_place() {
    let logs = |text: &str| {
        let source = Source { name: "crawlgate.yaml".into(), text: format!("logs: {{ access: {text} }}\n").into() };
        let (file, findings) = read(&source);
        (file.map(|file| (file.access, file.access_format)), findings.items.first().map(|finding| finding.id))
    };
    let file = || Some(AccessDestination::File("a.log".into()));
    assert_eq!(logs("a.log"), (Some((file(), None)), None));
    assert_eq!(logs("{ to: a.log }"), (Some((file(), None)), None));
    assert_eq!(logs("{ to: a.log, format: combined }"), (Some((file(), Some(AccessFormat::Combined))), None));
    assert_eq!(
        logs("{ to: '-', format: json }"),
        (Some((Some(AccessDestination::Stdout), Some(AccessFormat::Json))), None)
    );
    assert_eq!(logs("{ to: off }").0, Some((Some(AccessDestination::Off), None)));
    assert_eq!(logs("{ format: combined }"), (None, Some("missing-field")));
    assert!(logs("{ to: a.log, format: common }").1.is_some() && logs("{ to: a.log, rate: 5 }").1.is_some());
}

#[test]
fn logs_addresses_is_refused_with_its_new_place() {
    let source = Source { name: "crawlgate.yaml".into(), text: "logs: { addresses: none }\n".into() };
    let (file, diagnostics) = read(&source);
    assert_eq!((file, diagnostics.items[0].id), (None, "unknown-field"));
    assert!(diagnostics.items[0].message.contains("`privacy.logs`"));
}

#[test]
fn a_single_url_is_the_origin_of_every_host() {
    let (file, _) = read_text("origins: http://127.0.0.1:3000\n");
    let settings = file.expect("a file").settle(defaults()).expect("settings");
    assert_eq!(settings.origins.len(), 1);
    assert!(settings.origins[0].hosts.is_empty());
    assert_eq!(settings.listen, [ListenSettings::from(SocketAddr::from(([127, 0, 0, 1], 8080)))]);
    assert_eq!(settings.admin, Some("127.0.0.1:9090".parse().expect("an address")));
}

#[test]
fn every_mistake_is_shown_in_its_place_in_one_run() {
    let (file, findings) = read_text(
        "lissten: 0.0.0.0:80\nlisten: 8080\norigins:\n  - servers: shop.example\n    balance: random\n\
         trusted_proxies: [10.0.0.0/40]\nlimits: { target: huge }\nthreads: 0\n",
    );
    assert_eq!(file, None);
    let places: Vec<&str> = findings.iter().map(|line| line.split(": ").next().unwrap_or("")).collect();
    assert_eq!(findings.len(), 8, "{findings:#?}");
    for place in ["1:1", "2:9", "4:5", "4:14", "5:5", "6:19", "7:19", "8:10"] {
        assert!(places.contains(&format!("crawlgate.yaml:{place}").as_str()), "{place} in {findings:#?}");
    }
    assert!(findings.iter().any(|line| line.contains("`balance` is not supported yet")), "{findings:#?}");
}

#[test]
fn what_the_flags_say_goes_over_the_file() {
    let (file, _) = read_text("origins: http://127.0.0.1:3000\nadmin: 127.0.0.1:1\nstrict: yes\n");
    let flags = SettingsFile { admin: Some(None), ..SettingsFile::default() };
    let settings = flags.over(file.expect("a file")).settle(defaults()).expect("settings");
    assert_eq!((settings.admin, settings.strict), (None, true));
    assert_eq!(SettingsFile::default().settle(defaults()), Err(NoOrigin));
}

#[test]
fn a_url_that_is_not_a_server_is_refused_with_the_reason() {
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
    ] {
        assert!(ServerAddress::parse(url).is_err(), "{url}");
    }
    let v6 = ServerAddress::parse("http://[::1]:81/").expect("a URL");
    assert_eq!((v6.host.as_str(), v6.port), ("::1", 81));
}

#[test]
fn a_size_is_written_in_units_and_so_are_its_bounds() {
    let size = |size: &str| read_text(&format!("limits: {{ headers: {size} }}\n")).1;
    for fits in ["1024", "4KiB", "64 k", "1MiB", "1m"] {
        assert_eq!(size(fits), Vec::<String>::new(), "{fits}");
    }
    let text = "limits: { headers: 2MiB }\n";
    let (_, diagnostics) = read(&Source { name: "crawlgate.yaml".into(), text: text.into() });
    let help = diagnostics.items[0].help.as_deref().expect("what to do");
    assert!(help.starts_with("from 1KiB to 1MiB"), "{help}");
}
