//! Tests of the steps that all requests go through: each request is recorded exactly once, even if
//! its client leaves, and malformed request heads are rejected.

use super::partial_head::PartialHead;
use super::{
    ConnectionFacts, HeadError, HeaderMapHead, RequestHead, RequestPipeline, RequestSettings,
    ResponseEnd, ResponseOutcome,
};
use crate::answers::Answer;
use crate::clock::Clock;
use crate::crawlers::Registry;
use crate::forwarding::ConnectionPeer;
use crate::identity::IdentityVerifier;
use crate::judge::RequestLogs;
use crate::ledger::Ledger;
use crate::settings::Limits;
use crate::sites::{SiteLoadOptions, SiteManager};
use crate::state::StateStore;
use crate::upkeep::Instance;
use crate::verdict::CachedVersionsBasis;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::net::IpAddr;
use std::sync::Arc;
use tempfile::TempDir;

const POLICY: &str = "hosts: [shop.example]\nrobots: { origin: replace, groups: [{ agents: [GPTBot], disallow: [/] }] }\n\
                      enforcement: { mode: enforce }\n";

struct World {
    instance: Arc<Instance>,
    requests: Arc<RequestPipeline>,
    directory: TempDir,
}

fn new_world() -> World {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("shop.yaml"), POLICY).expect("a policy");
    let (store, remembered) = StateStore::in_memory_only();
    let options = SiteLoadOptions {
        policies: directory.path().to_owned(),
        strict: true,
        ..SiteLoadOptions::default()
    };
    let (clock, registry) = (Clock::default(), Registry::builtin());
    let sites =
        SiteManager::start(options, &store, &remembered, clock.moment().now).expect("loaded");
    let ledger = Arc::new(Ledger::in_memory(
        vec!["shop.example".into()],
        &sites.snapshot(),
        clock.moment(),
    ));
    let proofs = Arc::new(IdentityVerifier::with_policy_networks_only(registry));
    let instance = Instance::new(
        sites,
        ledger,
        proofs,
        Arc::default(),
        clock,
        RequestLogs::off(),
    );
    let Instance {
        judge,
        recorder,
        clock,
        ..
    } = &*instance;
    let requests = RequestPipeline::new(
        judge.clone(),
        recorder.clone(),
        clock.clone(),
        RequestSettings::default(),
    );
    World {
        instance,
        requests,
        directory,
    }
}

fn header_map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

fn connection() -> ConnectionFacts<'static> {
    ConnectionFacts::cleartext(ConnectionPeer {
        address: Some([192, 0, 2, 1].into()),
        ..ConnectionPeer::default()
    })
}

impl World {
    fn receive(&self, target: &str, agent: &'static str) -> (super::Ticket, Option<Answer>) {
        let headers = header_map(&[("host", "shop.example"), ("user-agent", agent)]);
        let head = HeaderMapHead::new(&Method::GET, target.as_bytes(), None, &headers);
        self.requests
            .receive(&head, &connection(), self.requests.arrival_now())
    }

    /// Requests of GPTBot that were counted, and those of them for robots.txt.
    fn counted_requests(&self) -> (u64, u64) {
        let metrics = self.instance.metrics.render();
        let count = |name: &str| -> u64 {
            let lines = metrics
                .lines()
                .filter(|line| line.starts_with(name) && !line.contains("crawler=\"none\""));
            lines
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
                .sum()
        };
        (
            count("crawlgate_requests_total{"),
            count("crawlgate_robots_txt_total{"),
        )
    }

    fn has_request_in_flight(&self) -> bool {
        self.instance
            .metrics
            .render()
            .contains("crawlgate_requests_in_flight 1")
    }
}

#[test]
fn finished_ticket_is_recorded_once() {
    let world = new_world();
    let (ticket, answer) = world.receive("/robots.txt", "GPTBot/1.2");
    assert!(answer.is_some() && world.has_request_in_flight());
    assert_eq!(world.counted_requests(), (0, 0), "nothing was sent yet");
    assert!(world.instance.ledger.crawler_copies("shop").is_empty());
    ticket.finish(&ResponseOutcome {
        status: 200,
        ended_by: ResponseEnd::Complete,
        ..ResponseOutcome::default()
    });
    assert_eq!(world.counted_requests(), (1, 1));
    assert_eq!(world.instance.ledger.crawler_copies("shop").len(), 1);
    assert!(!world.has_request_in_flight());
}

#[test]
fn dropped_ticket_is_recorded_as_client_left() {
    let world = new_world();
    drop(world.receive("/robots.txt", "GPTBot/1.2"));
    assert_eq!(world.counted_requests(), (1, 1));
    assert!(
        world.instance.ledger.crawler_copies("shop").is_empty(),
        "nobody got the file"
    );
    assert!(!world.has_request_in_flight());
}

#[test]
fn proxy_that_asks_for_a_decision_is_no_cache() {
    let world = new_world();
    let loopback: IpAddr = [127, 0, 0, 1].into();
    let connection = ConnectionFacts::cleartext(ConnectionPeer {
        address: Some(loopback),
        is_trusted: true,
        ..ConnectionPeer::default()
    });
    for (is_for_proxies, client, is_perhaps_cached) in [
        (false, "198.51.100.1", true),
        (true, "198.51.100.1", false),
        (true, "127.0.0.1", false),
    ] {
        let requests = world.requests.with_settings(RequestSettings {
            trusted_proxies: vec![loopback.into()],
            is_for_proxies,
            ..RequestSettings::default()
        });
        let headers = header_map(&[
            ("host", "shop.example"),
            ("user-agent", "GPTBot/1.2"),
            ("x-forwarded-for", client),
        ]);
        let head = HeaderMapHead::new(&Method::GET, b"/page", None, &headers);
        let (ticket, _) = requests.receive(&head, &connection, requests.arrival_now());
        let judgement = ticket.judgement();
        let basis = judgement.judged().map(|judged| judged.basis);
        assert_eq!(
            basis == Some(CachedVersionsBasis::PerhapsCached),
            is_perhaps_cached,
            "{is_for_proxies} {client} {basis:?}"
        );
    }
}

#[test]
fn protocol_switch_releases_the_policies() {
    let world = new_world();
    let snapshot = world.instance.sites.snapshot();
    let before = Arc::strong_count(&snapshot);
    let (mut ticket, answer) = world.receive("/page", "Mozilla/5.0 Firefox/140.0");
    assert!(answer.is_none());
    assert_eq!(Arc::strong_count(&snapshot), before + 1);
    ticket.switch_protocol();
    assert_eq!(Arc::strong_count(&snapshot), before);
    assert_eq!(
        ticket.judged().map(|(_, entry)| entry.site.name.as_str()),
        Some("shop")
    );
    ticket.finish(&ResponseOutcome {
        status: 101,
        ended_by: ResponseEnd::Complete,
        ..ResponseOutcome::default()
    });
    let counted = |line: &&str| {
        line.starts_with("crawlgate_requests_total") && line.contains("site=\"shop\"} 1")
    };
    assert_eq!(
        world
            .instance
            .metrics
            .render()
            .lines()
            .filter(counted)
            .count(),
        1
    );
}

#[test]
fn request_that_circles_is_rejected() {
    let world = new_world();
    for (lines, is_loop) in [
        (
            &["cdn; a=1, crawlgate", "crawlgate", "crawlgate"][..],
            false,
        ),
        (
            &["crawlgate,crawlgate , cdn", "crawlgate", "crawlgate"],
            true,
        ),
    ] {
        let mut headers = header_map(&[("host", "shop.example")]);
        for line in lines {
            headers.append("cdn-loop", HeaderValue::from_static(line));
        }
        let head = HeaderMapHead::new(&Method::GET, b"/", None, &headers);
        let arrival = world.requests.arrival_now();
        let (_, answer) = world.requests.receive(&head, &connection(), arrival);
        let status = answer.map(|answer| answer.status().as_u16());
        assert_eq!(status, is_loop.then_some(508), "{lines:?}");
    }
}

#[test]
fn loop_is_logged_at_most_once_a_minute() {
    let world = new_world();
    let log = world.directory.path().join("log");
    let file = std::fs::File::create(&log).expect("a file");
    let subscriber = tracing_subscriber::fmt()
        .with_writer(Arc::new(file))
        .finish();
    // With one subscriber alone, tracing-core 0.1 asks that of the thread which comes to a line
    // first, and a thread that has none turns the line off for all.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    tracing::subscriber::with_default(subscriber, || {
        let headers = header_map(&[
            ("host", "shop.example"),
            ("cdn-loop", "crawlgate, crawlgate, crawlgate, crawlgate"),
        ]);
        let head = HeaderMapHead::new(&Method::GET, b"/", None, &headers);
        for _ in 0..3 {
            let arrival = world.requests.arrival_now();
            let (_, answer) = world.requests.receive(&head, &connection(), arrival);
            assert!(answer.is_some());
        }
    });
    let lines = std::fs::read_to_string(log).expect("lines");
    assert_eq!(lines.matches("WARN").count(), 1, "{lines}");
}

#[test]
fn header_map_heads_are_checked_strictly() {
    let mistake = |method: Method, target: &str, authority: Option<&'static str>, lines: &[_]| {
        let headers = header_map(lines);
        HeaderMapHead::new(&method, target.as_bytes(), authority, &headers)
            .head_error(&Limits::default())
    };
    let of_host = |host: &'static str| mistake(Method::GET, "/", None, &[("host", host)]);
    assert_eq!(of_host("shop.example:443"), None);
    assert_eq!(of_host("shop.example."), None);
    let no_hosts = [
        "shop.example/x",
        "shop.example x",
        "x.example, shop.example",
        "shop.example:abc",
        "a@shop.example",
        "a..b",
        "%",
        "-",
    ];
    for host in no_hosts {
        assert_eq!(of_host(host), Some(HeadError::BadHost), "{host}");
    }
    let named = Some("shop.example");
    assert_eq!(
        mistake(Method::GET, "/", None, &[]),
        Some(HeadError::NoHost)
    );
    assert_eq!(
        mistake(Method::GET, "/", named, &[("host", "other.example")]),
        Some(HeadError::OtherHost)
    );
    assert_eq!(
        mistake(Method::GET, "/", named, &[("host", "SHOP.example")]),
        None
    );
    assert_eq!(
        mistake(Method::GET, "?a", named, &[]),
        Some(HeadError::Target)
    );
    assert_eq!(
        mistake(Method::GET, "*", named, &[]),
        Some(HeadError::Target)
    );
    assert_eq!(mistake(Method::OPTIONS, "*", named, &[]), None);
    assert_eq!(
        mistake(Method::GET, "/", named, &[("expect", "x")]),
        Some(HeadError::Expectation)
    );
    assert_eq!(
        mistake(Method::GET, "/", named, &[("expect", "100-continue")]),
        None
    );
    assert_eq!(
        mistake(Method::TRACE, "/", named, &[]),
        Some(HeadError::Method)
    );
    assert_eq!(
        mistake(Method::POST, "/", named, &[("content-length", "1x")]),
        Some(HeadError::ContentLength)
    );
    let long = format!("/{}", "a".repeat(Limits::default().target));
    assert_eq!(
        mistake(Method::GET, &long, named, &[]),
        Some(HeadError::TargetTooLong)
    );
}

/// A field in several lines.
fn repeated_field(name: &'static str, count: usize) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for _ in 0..count {
        headers.append(name, HeaderValue::from_static("a=b"));
    }
    headers
}

#[test]
fn repeated_fields_of_header_map_heads_are_counted() {
    let named = Some("shop.example");
    let agents = repeated_field("user-agent", 2);
    let head = HeaderMapHead::new(&Method::GET, b"/", named, &agents);
    assert_eq!(
        head.head_error(&Limits::default()),
        Some(HeadError::UserAgent)
    );
    let cookie = repeated_field("cookie", 150);
    let head = HeaderMapHead::new(&Method::GET, b"/", named, &cookie);
    assert_eq!(
        head.head_error(&Limits::default()),
        None,
        "its pieces are one field"
    );
    let headers = repeated_field("a", 150);
    let head = HeaderMapHead::new(&Method::GET, b"/", named, &headers);
    assert_eq!(
        head.head_error(&Limits::default()),
        Some(HeadError::TooManyFields)
    );
    assert_eq!(
        head.prechecked("1.1").head_error(&Limits::default()),
        None,
        "the server before the entry point has counted them"
    );
}

#[test]
fn partial_head_has_the_readable_parts() {
    let bytes = b"\r\nGET /a  HTTP/1.1\r\nA : b\r\nhosts: no\r\nHOST:shop.example \r\nX-Forwarded-For: 192.0.2.7\nhost: second\r\n\
                   x-forwarded-for: 192.0.2.8\r\nUser-Agent: GPTBot/1.2\r\n\r\nReferer: body";
    let head = PartialHead::new(bytes);
    let fields = head.fields();
    assert_eq!(
        (fields.method, fields.target, fields.host),
        (&b"GET"[..], &b"/a"[..], &b"shop.example"[..])
    );
    assert_eq!(
        (head.fields().user_agent, head.fields().referer),
        (Some(&b"GPTBot/1.2"[..]), None)
    );
    assert_eq!(
        head.values(&HeaderName::from_static("x-forwarded-for"))
            .collect::<Vec<_>>(),
        [b"192.0.2.7", b"192.0.2.8"]
    );
    for bytes in [
        &b""[..],
        b"\r\n",
        b"HEAD",
        b"HEAD  /",
        b"\0\n:\nhost\n\xff: \xff",
    ] {
        let head = PartialHead::new(bytes);
        let fields = head.fields();
        assert_eq!(
            (fields.target, fields.host, fields.user_agent),
            (&b""[..], &b""[..], None),
            "{bytes:?}"
        );
    }
}
