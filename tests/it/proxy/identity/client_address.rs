//! The client behind proxies: which field names it, and what happens where none does. Through every
//! way by which requests come in.

use crate::proxy::support::{Connection, Gate, Http2, Origin, Setup, eventually, read};
use serde_json::Value;

const POLICY: &str = r#"
hosts: [shop.example]
robots: { origin: replace, groups: [{ agents: ["*"], disallow: [/cart/] }] }
enforcement: { mode: enforce, impostor: 410 }
crawlers:
  - { token: PartnerBot, networks: [198.51.100.0/24] }
"#;
const HOST: &str = "shop.example";
const CRAWLER: &str = "198.51.100.7";
const OTHER: &str = "203.0.113.9";
const WAYS: [Way; 3] = [Way::Http1, Way::Http2, Way::Decision];
/// The peer, and a network of a CDN.
const TRUSTED: &str = "trusted_proxies: [127.0.0.1, 104.16.0.0/13]\nlogs: { access: access.log }\ndecisions: 127.0.0.1:0";

/// A way of a request to crawlgate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Http1,
    Http2,
    Decision,
}

fn start(policy: &str, origin: &Origin, settings: &str) -> Gate {
    Setup::before(origin.address)
        .policy("shop", policy)
        .settings(&format!("{TRUSTED}\n{settings}"))
        .start()
}

/// The status that a crawler gets.
fn ask(gate: &Gate, way: Way, target: &str, agent: &str, fields: &[(&str, &str)]) -> u16 {
    let named = [fields, &[("user-agent", agent)]].concat();
    if way == Way::Http2 {
        return Http2::open(gate.listening[0])
            .get(HOST, target, &named)
            .status;
    }
    let (address, path) = match way {
        Way::Decision => (gate.decisions[0], "/decide/nginx"),
        _ => (gate.listening[0], target),
    };
    let lines: String = named
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let mut connection = Connection::open(address);
    connection.send(&format!(
        "GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Original-URI: {target}\r\n{lines}\r\n"
    ));
    let response = connection.response("GET");
    response
        .field("crawlgate-status")
        .map_or(response.status, |status| status.parse().expect("a status"))
}

/// The line of the access log about a target.
fn logged(gate: &Gate, target: &str) -> Value {
    eventually("the line of the log", || {
        let text = read(&gate.path("access.log"));
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["target"] == target)
    })
}

#[test]
fn proxy_without_client_address_accuses_no_crawler() {
    let origin = Origin::plain();
    for settings in ["", "direct_forwarding: off"] {
        let gate = start(POLICY, &origin, settings);
        for way in WAYS {
            let target = format!("/{way:?}");
            let mut number = 0;
            let mut from = |fields: &[(&str, &str)]| {
                number += 1;
                let target = format!("{target}/{number}");
                let status = ask(&gate, way, &target, "PartnerBot/1", fields);
                let line = logged(&gate, &target);
                let word = |name: &str| line[name].as_str().map(str::to_owned);
                (status, word("identity"), word("doubt"), word("client"))
            };
            let found = |status, identity: &str, doubt: Option<&str>, client: &str| {
                (
                    status,
                    Some(identity.to_owned()),
                    doubt.map(str::to_owned),
                    Some(client.to_owned()),
                )
            };
            assert_eq!(
                from(&[("x-forwarded-for", CRAWLER)]),
                found(200, "verified", None, CRAWLER),
                "{way:?}"
            );
            assert_eq!(
                from(&[("x-forwarded-for", OTHER)]),
                found(410, "impostor", None, OTHER),
                "{way:?}"
            );
            for fields in [
                &[][..],
                &[("x-forwarded-for", "unknown, 104.16.1.1")],
                &[("x-forwarded-for", "203.0.113.9, unknown")],
                &[("forwarded", "for=203.0.113.9")],
                &[("x-real-ip", OTHER)],
                &[("cf-connecting-ip", OTHER)],
            ] {
                let unknown = found(200, "unverified", Some("client_unknown"), "127.0.0.1");
                assert_eq!(from(fields), unknown, "{way:?} {fields:?}");
            }
            let of_the_cdn = found(200, "unverified", Some("client_unknown"), "104.16.1.1");
            assert_eq!(
                from(&[("x-forwarded-for", "104.16.1.1")]),
                of_the_cdn,
                "{way:?}"
            );
        }
    }
}

#[test]
fn configured_field_counts_and_no_other_does() {
    let origin = Origin::plain();
    for (field, written) in [
        (
            "forwarded",
            "for=203.0.113.9, For=\"[2001:db8::7]:4711\";proto=https, for=104.16.1.1",
        ),
        ("x-real-ip", "2001:db8::7"),
        ("cf-connecting-ip", "2001:db8::7"),
        ("true-client-ip", "[2001:db8::7]:443"),
        ("x-own-proxy", "2001:db8::7"),
    ] {
        let gate = start(POLICY, &origin, &format!("client_address: {field}"));
        for way in WAYS {
            let target = format!("/{way:?}");
            let fields = [
                ("x-forwarded-for", CRAWLER),
                (field, written),
                ("x-other-ip", OTHER),
            ];
            ask(&gate, way, &target, "PartnerBot/1", &fields);
            assert_eq!(
                logged(&gate, &target)["client"],
                "2001:db8::7",
                "{field} {way:?}"
            );
            let target = format!("/{way:?}/without");
            ask(
                &gate,
                way,
                &target,
                "PartnerBot/1",
                &[("x-forwarded-for", CRAWLER)],
            );
            assert_eq!(
                logged(&gate, &target)["doubt"],
                "client_unknown",
                "{field} {way:?}"
            );
        }
    }
}

#[test]
fn unknown_client_gets_503_where_the_unverified_are_refused() {
    let origin = Origin::plain();
    let policy = POLICY.replace("impostor: 410", "impostor: 410, unverified: refuse");
    let gate = start(&policy, &origin, "");
    for way in WAYS {
        for agent in ["PartnerBot/1", "Bytespider", "GPTBot/1.2"] {
            assert_eq!(
                ask(&gate, way, "/", agent, &[("forwarded", "for=203.0.113.9")]),
                503,
                "{way:?} {agent}"
            );
        }
        assert_eq!(
            ask(&gate, way, "/", "Bytespider", &[("x-forwarded-for", OTHER)]),
            403,
            "{way:?}"
        );
    }
}

#[test]
fn peer_in_the_networks_of_the_policy_is_verified() {
    let origin = Origin::plain();
    let policy = POLICY
        .replace("198.51.100.0/24", "127.0.0.0/8")
        .replace("mode: enforce", "mode: enforce, unverified: refuse");
    let gate = start(&policy, &origin, "");
    assert_eq!(ask(&gate, Way::Http1, "/own", "PartnerBot/1", &[]), 200);
    assert_eq!(logged(&gate, "/own")["identity"], "verified");
}

#[test]
fn origin_gets_the_client_of_the_configured_field() {
    let origin = Origin::plain();
    for settings in ["", "direct_forwarding: off"] {
        let gate = start(
            POLICY,
            &origin,
            &format!("client_address: forwarded\n{settings}"),
        );
        for way in [Way::Http1, Way::Http2] {
            let fields = [
                (
                    "forwarded",
                    "for=203.0.113.9;proto=https;host=www.shop.example",
                ),
                ("x-forwarded-for", CRAWLER),
                ("x-forwarded-proto", "http"),
                ("x-forwarded-port", "80"),
                ("x-forwarded-host", "forged.example"),
            ];
            ask(&gate, way, "/", "curl/8", &fields);
            let asked = origin.last();
            assert_eq!(
                asked.field("x-forwarded-for"),
                Some("203.0.113.9, 127.0.0.1"),
                "{way:?} {settings}"
            );
            assert_eq!(
                asked.field("x-forwarded-proto"),
                Some("https"),
                "{way:?} {settings}"
            );
            assert_eq!(
                asked.field("x-forwarded-host"),
                Some("www.shop.example"),
                "{way:?} {settings}"
            );
            assert_eq!(asked.field("x-forwarded-port"), None, "{way:?} {settings}");
        }
    }
}

#[test]
fn origin_gets_no_field_of_a_proxy_from_a_client() {
    let origin = Origin::plain();
    let fields = [
        ("x-original-url", "/cart/"),
        ("x-rewrite-url", "/cart/"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-ssl", "on"),
        ("x-forwarded-scheme", "https"),
        ("x-forwarded-server", "a.example"),
        ("forwarded", "for=198.51.100.7;proto=https"),
        ("x-real-ip", CRAWLER),
        ("cf-connecting-ip", CRAWLER),
        ("true-client-ip", CRAWLER),
        ("fastly-client-ip", CRAWLER),
        ("x_original_url", "/cart/"),
        ("x_azure_clientip", CRAWLER),
        ("x-own-proxy", CRAWLER),
        ("x_own_proxy", CRAWLER),
    ];
    for settings in ["", "direct_forwarding: off"] {
        let settings = format!("client_address: x-own-proxy\n{settings}");
        let gate = Setup::before(origin.address)
            .policy("shop", POLICY)
            .settings(&settings)
            .start();
        for way in [Way::Http1, Way::Http2] {
            assert_eq!(ask(&gate, way, "/", "curl/8", &fields), 200);
            let asked = origin.last();
            for (name, _) in fields {
                assert_eq!(asked.field(name), None, "{way:?} {settings} {name}");
            }
            assert_eq!(asked.field("x-forwarded-for"), Some("127.0.0.1"));
        }
    }
}
