//! Metrics stay within their bounds, and logs lose no line without counting it.

use super::*;
use crate::record::{CountedAction, CountedRequest, ViolationKind};
use crate::settings::{AccessFormat, LogDestination};
use crate::verdict::{Kind, KnownIdentity};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

fn gauges(site: &str) -> SiteGauges {
    SiteGauges {
        site: site.into(),
        version: "v1".into(),
        indexable: true,
        front_page_seen: None,
        retire: [("planned", 0), ("noindex", 0), ("disallowed", 0)],
        paused: false,
        reload_success: true,
    }
}

/// An allowed request that was forwarded.
fn passed<'a>(site: &'a str, crawler: &'a str) -> CountedRequest<'a> {
    CountedRequest {
        site,
        crawler,
        identity: Some(KnownIdentity::Unverified),
        kind: Kind::Allowed.into(),
        action: CountedAction::Pass,
        violation: None,
        status: 200,
        bytes: 0,
        origin_milliseconds: 0,
    }
}

/// An unproven request that was blocked.
fn blocked<'a>(site: &'a str, crawler: &'a str) -> CountedRequest<'a> {
    CountedRequest {
        kind: Kind::Unproven.into(),
        action: CountedAction::Block,
        ..passed(site, crawler)
    }
}

#[test]
fn series_go_with_their_site() {
    let metrics = Metrics::new();
    metrics.set_sites(&[gauges("one"), gauges("two")], 7);
    for site in ["one", "two"] {
        metrics.counts.count(&blocked(site, "gptbot"));
        metrics.robots_txt(site, "gptbot", 200, Some(5));
        metrics.counts.count(&CountedRequest {
            identity: Some(KnownIdentity::Impostor),
            violation: Some(ViolationKind::Of(Kind::Unproven)),
            ..blocked(site, "gptbot")
        });
    }
    metrics.counts.count(&CountedRequest {
        identity: None,
        kind: Kind::NotACrawler.into(),
        ..passed(UNCLAIMED, "none")
    });
    metrics.set_sites(&[gauges("two")], 8);
    let text = metrics.render();
    assert!(!text.contains("site=\"one\""), "{text}");
    for line in [
        r#"crawlgate_requests_total{action="block",crawler="gptbot",identity="unverified",kind="unproven",site="two"} 1"#,
        r#"crawlgate_violations_total{crawler="gptbot",identity="impostor",kind="unproven",site="two"} 1"#,
        r#"crawlgate_robots_txt_total{crawler="gptbot",site="two",status="200"} 1"#,
        r#"crawlgate_robots_last_fetch_timestamp_seconds{crawler="gptbot",site="two"} 5"#,
        r#"crawlgate_requests_total{action="pass",crawler="none",identity="none",kind="not_a_crawler",site="unclaimed"} 1"#,
        r#"crawlgate_policy_info{site="two",version="v1"} 1"#,
        "crawlgate_policy_reload_timestamp_seconds 8",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    metrics.counts.count(&blocked("two", "gptbot"));
    assert!(
        metrics
            .render()
            .contains(r#"identity="unverified",kind="unproven",site="two"} 2"#),
        "counting goes on"
    );
}

#[test]
fn identities_are_counted_without_sites_within_the_cap() {
    let metrics = Metrics::new();
    metrics.set_sites(&[gauges("one")], 7);
    for outcome in ["unverified", "verified", "impostor", "impostor"] {
        metrics.identity.count(["googlebot", outcome]);
    }
    metrics.set_sites(&[], 8);
    let text = metrics.render();
    for line in [
        r#"crawlgate_identity_total{crawler="googlebot",outcome="impostor"} 2"#,
        r#"crawlgate_identity_total{crawler="googlebot",outcome="unverified"} 1"#,
        r#"crawlgate_identity_total{crawler="googlebot",outcome="verified"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    for crawler in 0..20_000 {
        metrics
            .identity
            .count([&format!("crawler-{crawler}"), "impostor"]);
    }
    assert!(
        metrics
            .render()
            .contains(r#"crawlgate_identity_total{crawler="overflow",outcome="impostor"} 3"#)
    );
}

#[test]
fn series_are_capped() {
    let metrics = Metrics::new();
    for crawler in 0..20_100 {
        let token = format!("token-{crawler}");
        metrics.counts.count(&passed("site", &token));
    }
    let text = metrics.render();
    assert!(
        text.contains(r#"crawlgate_requests_total{action="pass",crawler="overflow",identity="unverified",kind="allowed",site="site"} 100"#)
    );
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("crawlgate_requests_total{"))
            .count(),
        20_001
    );
}

#[test]
fn what_origins_do_is_counted_by_place() {
    let metrics = Metrics::new();
    metrics
        .upstream
        .set_origins([("shop.example".to_owned(), 2), ("*".to_owned(), 1)].into_iter());
    metrics.upstream.answered(
        ServerPlace {
            origin: 1,
            server: 0,
        },
        503,
        0.1,
    );
    metrics.upstream.failed(
        Some(ServerPlace {
            origin: 0,
            server: 1,
        }),
        "connect_refused",
    );
    metrics.upstream.failed(None, "no_origin");
    let text = metrics.render();
    for line in [
        r#"crawlgate_upstream_requests_total{origin="*",server="1",status="5xx"} 1"#,
        r#"crawlgate_upstream_requests_total{origin="shop.example",server="2",status="5xx"} 0"#,
        r#"crawlgate_upstream_failures_total{origin="shop.example",reason="connect_refused",server="2"} 1"#,
        r#"crawlgate_upstream_failures_total{origin="none",reason="no_origin",server="none"} 1"#,
        r#"crawlgate_upstream_seconds_count{status="5xx"} 1"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}");
    }
}

fn record(target: &str) -> AccessRecord<'_> {
    AccessRecord {
        time: std::time::UNIX_EPOCH + Duration::from_millis(1_765_000_000_007),
        client: Some([192, 0, 2, 1].into()),
        method: Octets(b"GET"),
        host: Octets(b"shop.example"),
        target: Octets(target.as_bytes()),
        tls: None,
        http: "1.1",
        status: 0,
        bytes: 0,
        milliseconds: 0.5,
        user_agent: None,
        referer: None,
        site: None,
        crawler: None,
        identity: None,
        doubt: None,
        verdict: None,
        kind: None,
        older_until: None,
        never_fetched: false,
        rule: None,
        rule_source: None,
        action: "pass",
        would: None,
        observed: None,
        version: Some(crate::policy::Version([0, 1, 2, 3, 4, 5, 6, 255])),
        request_id: Octets(b"id-1"),
        trace_id: None,
        error: None,
    }
}

#[test]
fn lines_reach_the_file_and_the_new_one_after_rotation() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log =
        AccessLog::open(&LogDestination::File(file.clone()), AccessFormat::Json).expect("opened");
    log.write(&AccessRecord {
        status: 200,
        ..record("/one\n\"quoted\"")
    });
    log.flush(Duration::from_secs(10));
    let rotated = directory.path().join("access.log.1");
    std::fs::rename(&file, &rotated).expect("rotated");
    log.reopen();
    log.write(&record("/two"));
    log.flush(Duration::from_secs(10));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("read");
    let line: serde_json::Value = serde_json::from_str(&read(&rotated)).expect("one line of JSON");
    assert_eq!(line["target"], "/one\n\"quoted\"");
    assert_eq!(
        (&line["time"], &line["client"]),
        (&"2025-12-06T05:46:40.007Z".into(), &"192.0.2.1".into())
    );
    assert_eq!(line["version"], "00010203040506ff");
    assert!(read(&file).contains("/two"));
    assert_eq!(log.dropped(), 0);
}

#[test]
fn the_cap_outlasts_scrapes() {
    let metrics = Metrics::new();
    for round in 0..3 {
        metrics.set_sites(&[gauges("site")], 1);
        for crawler in 0..10_000 {
            let token = format!("token-{round}-{crawler}");
            metrics.counts.count(&passed("site", &token));
        }
    }
    let text = metrics.render();
    assert_eq!(
        text.lines()
            .filter(|line| line.starts_with("crawlgate_requests_total{"))
            .count(),
        20_001
    );
    assert!(
        text.contains(
            r#"crawler="overflow",identity="unverified",kind="allowed",site="site"} 10000"#
        )
    );
    metrics.robots_txt("site", "late", 200, Some(5));
    assert!(
        !metrics.render().contains(r#"crawler="late""#),
        "one cap for all, the time of the last fetch included"
    );
    metrics.set_sites(&[gauges("other")], 1);
    metrics.counts.count(&passed("other", "late"));
    assert!(
        metrics
            .render()
            .contains(r#"crawler="late",identity="unverified",kind="allowed",site="other""#),
        "what went makes room"
    );
}

#[test]
fn a_full_queue_drops_and_counts_lines_and_still_flushes() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let made = std::process::Command::new("mkfifo")
        .arg(&file)
        .status()
        .expect("mkfifo");
    assert!(made.success());
    // A reader that does not read: the pipe fills, the writer waits, the queue fills.
    let mut reader = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&file)
        .expect("opened");
    let log =
        AccessLog::open(&LogDestination::File(file.clone()), AccessFormat::Json).expect("opened");
    let target = "/".repeat(2_000);
    while log.dropped() == 0 {
        log.write(&record(&target));
    }
    std::fs::rename(&file, directory.path().join("access.log.1")).expect("rotated");
    log.reopen();
    let drain = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    log.flush(Duration::from_secs(20));
    assert!(
        file.exists(),
        "the new file is there though the queue was full"
    );
    log.write(&record("/after"));
    log.flush(Duration::from_secs(20));
    assert!(
        std::fs::read_to_string(&file)
            .expect("read")
            .contains("/after")
    );
    drop((log, drain));
}

fn event(site: &str, crawler: &str, time: SystemTime) -> Event {
    Event {
        time,
        site: site.into(),
        crawler: crawler.into(),
        calls_itself: None,
        identity: "unverified",
        proof: "none",
        signature: None,
        doubt: None,
        kept_address: None,
        client: None,
        method: "GET".into(),
        host: "shop.example".into(),
        target: "/cart/".into(),
        user_agent: None,
        verdict: "disallowed",
        readings: "rfc9309",
        kind: "unproven",
        never_fetched: false,
        rule: None,
        rule_source: None,
        version: String::new(),
        history: "unknown",
        older_until: None,
        held: Vec::new(),
        action: "block",
        would: None,
        status: 403,
        retry_after: None,
        request_id: "id-1".into(),
        trace_id: None,
        left_out: 0,
    }
}

#[test]
fn beyond_the_rate_a_crawler_on_a_site_has_one_event_a_second() {
    let events = Events::recording(1);
    for second in 0..3 {
        let now = std::time::UNIX_EPOCH + Duration::from_secs(1_765_000_000 + second);
        let mut made = BTreeMap::<(String, String), u32>::new();
        for _ in 0..3 {
            for (site, crawler) in
                (0..5).flat_map(|site| (0..300).map(move |crawler| (site, crawler)))
            {
                let (site, crawler) = (format!("site-{site}"), format!("crawler-{crawler}"));
                events.record(&site, &crawler, now, || {
                    *made.entry((site.clone(), crawler.clone())).or_default() += 1;
                    event(&site, &crawler, now)
                });
            }
        }
        assert_eq!(made.len(), 5 * 300, "in second {second}");
        assert!(
            made.values().all(|made| *made == 1),
            "and no more than the rate lets them"
        );
    }
    assert_eq!(events.left_out(), 3 * 2 * 5 * 300);
    assert_eq!(events.recent().len(), Events::KEPT);
}

#[test]
fn more_names_than_there_is_room_for_are_left_out() {
    let events = Events::recording(1);
    let mut made = 0;
    for number in 0..20_000 {
        events.record("site", &number.to_string(), std::time::UNIX_EPOCH, || {
            made += 1;
            event("site", "other", std::time::UNIX_EPOCH)
        });
    }
    assert_eq!((made, events.left_out()), (16_384, 20_000 - 16_384));
}

#[test]
fn vhost_combined_line_begins_with_host_and_port() {
    use crate::logs::{Line, LineFormat};
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = AccessLog::open(
        &LogDestination::File(file.clone()),
        AccessFormat::VhostCombined,
    )
    .expect("opened");
    let plain = AccessRecord {
        status: 200,
        bytes: 5,
        http: "1.1",
        referer: None,
        ..record("/one")
    };
    let hosts: [&[u8]; 4] = [
        b"shop.example",
        b"shop.example:8080",
        b"[2001:db8::1]",
        b"a b\"\n",
    ];
    for host in hosts {
        log.write(&AccessRecord {
            host: Octets(host),
            ..plain.clone()
        });
    }
    log.write(&AccessRecord {
        tls: Some("1.3"),
        ..plain.clone()
    });
    log.write(&AccessRecord {
        host: Octets(b""),
        ..plain
    });
    log.flush(Duration::from_secs(10));
    let text = std::fs::read_to_string(&file).expect("ASCII");
    let begins: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(host, _)| host)
        .collect();
    assert_eq!(
        begins,
        [
            "shop.example:80",
            "shop.example:8080",
            "[2001:db8::1]:80",
            r"a\x20b\x22\x0A:80",
            "shop.example:443",
            "-:80"
        ]
    );
    let Ok(Line::Request(read)) =
        LineFormat::Detect.read(text.lines().next().expect("a line").as_bytes())
    else {
        panic!("{text}");
    };
    assert_eq!(
        (read.host.as_deref(), read.client.as_deref()),
        (Some(&b"shop.example:80"[..]), Some(&b"192.0.2.1"[..]))
    );
}

/// What a client can send that could end a field or a line, or be another octet.
const HOSTILE: &[u8] = b"/a \"b\\x41\\\xff\x00\x1b[31m\r\n\t\x7f - \xe2\x80\xae [x] HTTP/1.1";

#[test]
fn combined_line_is_that_of_nginx_and_is_read_back() {
    use crate::logs::{Line, LineFormat};
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = AccessLog::open(&LogDestination::File(file.clone()), AccessFormat::Combined)
        .expect("opened");
    let plain = AccessRecord {
        status: 200,
        bytes: 5,
        ..record("/one?a=b")
    };
    log.write(&AccessRecord {
        user_agent: Some(Octets(b"GPTBot/1.2")),
        referer: None,
        http: "1.1",
        ..plain.clone()
    });
    log.write(&AccessRecord {
        client: None,
        http: "2",
        status: 0,
        user_agent: None,
        ..plain.clone()
    });
    let hostile = Some(Octets(HOSTILE));
    log.write(&AccessRecord {
        target: Octets(HOSTILE),
        user_agent: hostile,
        referer: hostile,
        ..plain.clone()
    });
    log.write(&AccessRecord {
        method: Octets(b""),
        target: Octets(b""),
        status: 400,
        ..plain
    });
    log.flush(Duration::from_secs(10));
    let text: &'static str = std::fs::read_to_string(&file).expect("ASCII").leak();
    assert!(!text.contains(|sign| !matches!(sign, '\n' | ' '..='~')));
    let lines: Vec<&'static str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[..2],
        [
            r#"192.0.2.1 - - [06/Dec/2025:05:46:40 +0000] "GET /one?a=b HTTP/1.1" 200 5 "-" "GPTBot/1.2""#,
            r#"- - - [06/Dec/2025:05:46:40 +0000] "GET /one?a=b HTTP/2.0" 000 5 "-" "-""#,
        ]
    );
    assert!(lines[2].contains(
        r"GET /a \x22b\x5Cx41\x5C\xFF\x00\x1B[31m\x0D\x0A\x09\x7F - \xE2\x80\xAE [x] HTTP/1.1 HTTP/"
    ));
    let read = |line: &'static str| match LineFormat::Detect.read(line.as_bytes()) {
        Ok(Line::Request(read)) => read,
        other => panic!("{line}: {other:?}"),
    };
    let first = read(lines[0]);
    assert_eq!(
        (&*first.method, &*first.target, first.status, first.bytes),
        (&b"GET"[..], &b"/one?a=b"[..], 200, 5)
    );
    assert_eq!(
        (first.client.as_deref(), first.user_agent.as_deref()),
        (Some(&b"192.0.2.1"[..]), Some(&b"GPTBot/1.2"[..]))
    );
    assert_eq!(first.time, crate::time::Timestamp(1_765_000_000));
    assert_eq!(
        (read(lines[1]).status, read(lines[1]).user_agent.as_deref()),
        (0, Some(&b""[..]))
    );
    let odd = read(lines[2]);
    assert_eq!(
        (&*odd.target, odd.user_agent.as_deref()),
        (HOSTILE, Some(HOSTILE))
    );
    assert!(matches!(
        LineFormat::Detect.read(lines[3].as_bytes()),
        Ok(Line::NoRequest)
    ));
}

#[test]
fn hidden_characters_are_escaped_in_lines_of_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log =
        AccessLog::open(&LogDestination::File(file.clone()), AccessFormat::Json).expect("opened");
    let target = "/\u{9b}2J\u{202e}\u{7f}\u{e9}";
    log.write(&record(target));
    log.flush(Duration::from_secs(10));
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(
        !text.contains(['\u{9b}', '\u{202e}', '\u{7f}']) && text.contains('\u{e9}'),
        "{text:?}"
    );
    let line: serde_json::Value = serde_json::from_str(&text).expect("one line of JSON");
    assert_eq!(line["target"], target);
}
