//! Tests of metrics and logs: the number of metric series stays limited, log lines have the right
//! format, and every lost line is counted.

use super::*;
use crate::heads::HeadFields;
use crate::record::{
    CountedAction, CountedRequest, PathRequest, RequestCopy, RequestRecord, Sink, ViolationKind,
};
use crate::settings::{AccessFormat, AddressDetail, LogDestination};
use crate::time::Timestamp;
use crate::verdict::{CachedVersionsBasis, IdentityStatus, Kind};
use std::path::Path;
use std::time::Duration;

fn site_gauges(site: &str) -> SiteGaugeValues {
    SiteGaugeValues {
        site: site.into(),
        version: "v1".into(),
        indexable: true,
        front_page_seen: 0,
        retire: [("planned", 0), ("noindex", 0), ("disallowed", 0)],
        paused: false,
        unproven: 0,
        reload_success: true,
    }
}

/// An allowed request that was forwarded.
fn passed_request<'a>(site: &'a str, crawler: &'a str) -> CountedRequest<'a> {
    CountedRequest {
        site,
        crawler,
        identity: Some(IdentityStatus::Unverified),
        kind: Kind::Allowed.into(),
        basis: CachedVersionsBasis::default(),
        older_until: None,
        action: CountedAction::Pass,
        violation: None,
        status: 200,
        bytes: 0,
        origin_milliseconds: 0,
        has_reserved_page: false,
    }
}

/// An unproven request that was blocked.
fn blocked_request<'a>(site: &'a str, crawler: &'a str) -> CountedRequest<'a> {
    CountedRequest {
        kind: Kind::Unproven.into(),
        action: CountedAction::Block,
        ..passed_request(site, crawler)
    }
}

#[test]
fn series_are_removed_with_their_site() {
    let metrics = Metrics::new();
    metrics.set_sites(&[site_gauges("one"), site_gauges("two")], 7);
    for site in ["one", "two"] {
        metrics.counts.count(&blocked_request(site, "gptbot"));
        metrics.count_robots_txt(site, "gptbot", 200, Some(5));
        metrics.visits.count([site, "chatgpt"]);
        metrics.paths.count(&PathRequest {
            site,
            crawler: "gptbot",
            identity: IdentityStatus::Impostor,
            target: b"/",
            time: Timestamp(5),
        });
        metrics.counts.count(&CountedRequest {
            identity: Some(IdentityStatus::Impostor),
            violation: Some(ViolationKind::Of(Kind::Unproven)),
            ..blocked_request(site, "gptbot")
        });
    }
    metrics.counts.count(&CountedRequest {
        identity: None,
        kind: Kind::NotACrawler.into(),
        bytes: 7,
        ..passed_request(UNCLAIMED, "none")
    });
    metrics.set_sites(&[site_gauges("two")], 8);
    let text = metrics.render();
    assert!(!text.contains("site=\"one\""), "{text}");
    for line in [
        r#"crawlgate_requests_total{action="block",crawler="gptbot",identity="unverified",kind="unproven",site="two"} 1"#,
        r#"crawlgate_violations_total{crawler="gptbot",identity="impostor",kind="unproven",site="two"} 1"#,
        r#"crawlgate_robots_txt_total{crawler="gptbot",site="two",status="200"} 1"#,
        r#"crawlgate_robots_last_fetch_timestamp_seconds{crawler="gptbot",site="two"} 5"#,
        r#"crawlgate_requests_total{action="pass",crawler="none",identity="none",kind="not_a_crawler",site="unclaimed"} 1"#,
        r#"crawlgate_visits_total{service="chatgpt",site="two"} 1"#,
        r#"crawlgate_responses_total{crawler="none",identity="none",site="unclaimed",status="2xx"} 1"#,
        r#"crawlgate_sent_bytes_total{crawler="none",identity="none",site="unclaimed"} 7"#,
        r#"crawlgate_policy_info{site="two",version="v1"} 1"#,
        "crawlgate_policy_reload_timestamp_seconds 8",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let paths = metrics.paths.take_changed(Timestamp(5));
    let sites: Vec<&str> = paths.iter().map(|paths| &*paths.owner.site).collect();
    assert_eq!(sites, ["two"]);
    metrics.counts.count(&blocked_request("two", "gptbot"));
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
    metrics.set_sites(&[site_gauges("one")], 7);
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
        metrics.counts.count(&passed_request("site", &token));
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
fn origin_responses_and_failures_are_counted_by_server() {
    let metrics = Metrics::new();
    let names = [("shop.example".to_owned(), 2), ("*".to_owned(), 1)];
    let origins = OriginMetrics::new(&metrics, names.into_iter());
    origins.record_response(
        ServerId {
            origin: 1,
            server: 0,
        },
        503,
        0.1,
    );
    origins.record_failure(
        Some(ServerId {
            origin: 0,
            server: 1,
        }),
        "connect_refused",
    );
    origins.record_failure(None, "no_origin");
    let queued = ServerId {
        origin: 0,
        server: 0,
    };
    origins.record_queue_wait(queued, 0.1);
    let text = metrics.render();
    for line in [
        r#"crawlgate_upstream_requests_total{origin="*",server="1",status="5xx"} 1"#,
        r#"crawlgate_upstream_requests_total{origin="shop.example",server="2",status="5xx"} 0"#,
        r#"crawlgate_upstream_failures_total{origin="shop.example",reason="connect_refused",server="2"} 1"#,
        r#"crawlgate_upstream_failures_total{origin="none",reason="no_origin",server="none"} 1"#,
        r#"crawlgate_upstream_seconds_count{origin="*",status="5xx"} 1"#,
        r#"crawlgate_upstream_seconds_count{origin="shop.example",status="5xx"} 0"#,
        r#"crawlgate_queue_seconds_count{origin="shop.example"} 1"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}");
    }
}

/// A request that was answered 200 before it was judged. `change` changes what the client sent.
fn request_record(target: &[u8], change: impl FnOnce(&mut HeadFields<'_>)) -> RequestRecord {
    let mut head = HeadFields {
        method: b"GET",
        host: b"shop.example",
        target,
        http: "1.1",
        ..HeadFields::default()
    };
    change(&mut head);
    let arrived = std::time::UNIX_EPOCH + Duration::from_millis(1_765_000_000_007);
    let address = Some([192, 0, 2, 1].into());
    let mut record = RequestRecord::unjudged(RequestCopy::for_test(&head, address, arrived));
    record.response.status = 200;
    record.response.body_bytes = 5;
    record
}

#[test]
fn access_log_names_the_server_and_its_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = open_log(&file, AccessFormat::Json);
    let mut record = request_record(b"/", |_| {});
    log.record(&record);
    record.response.server = Some("10.0.0.1:8080".into());
    record.response.origin_elapsed = Some(Duration::from_micros(1_500));
    log.record(&record);
    log.flush(Duration::from_secs(10));
    let text = std::fs::read_to_string(&file).expect("read");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(lines[0].get("server").is_none() && lines[0].get("origin_milliseconds").is_none());
    assert_eq!(lines[1]["server"], "10.0.0.1:8080");
    assert_eq!(lines[1]["origin_milliseconds"], 1.5);
}

fn open_log(file: &Path, format: AccessFormat) -> AccessLog {
    let destination = LogDestination::File(file.to_owned());
    AccessLog::open(&destination, format, AddressDetail::Full).expect("opened")
}

#[test]
fn lines_go_into_the_new_file_after_rotation() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = open_log(&file, AccessFormat::Json);
    log.record(&request_record(b"/one\n\"quoted\"", |_| {}));
    log.flush(Duration::from_secs(10));
    let rotated = directory.path().join("access.log.1");
    std::fs::rename(&file, &rotated).expect("rotated");
    log.reopen();
    log.record(&request_record(b"/two", |_| {}));
    log.flush(Duration::from_secs(10));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).expect("read");
    let line: serde_json::Value = serde_json::from_str(&read(&rotated)).expect("one line of JSON");
    assert_eq!(line["target"], "/one\n\"quoted\"");
    assert_eq!(
        (&line["time"], &line["client"]),
        (&"2025-12-06T05:46:40.007Z".into(), &"192.0.2.1".into())
    );
    assert!(read(&file).contains("/two"));
    assert_eq!(log.dropped(), 0);
}

#[test]
fn series_cap_outlasts_scrapes() {
    let metrics = Metrics::new();
    for round in 0..3 {
        metrics.set_sites(&[site_gauges("site")], 1);
        for crawler in 0..10_000 {
            let token = format!("token-{round}-{crawler}");
            metrics.counts.count(&passed_request("site", &token));
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
    metrics.count_robots_txt("site", "late", 200, Some(5));
    assert!(
        !metrics.render().contains(r#"crawler="late""#),
        "one cap for all, the time of the last fetch included"
    );
    metrics.set_sites(&[site_gauges("other")], 1);
    metrics.counts.count(&passed_request("other", "late"));
    assert!(
        metrics
            .render()
            .contains(r#"crawler="late",identity="unverified",kind="allowed",site="other""#),
        "what went makes room"
    );
}

#[test]
fn full_queue_drops_and_counts_lines_and_still_flushes() {
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
    let log = open_log(&file, AccessFormat::Json);
    let target = "/".repeat(2_000);
    while log.dropped() == 0 {
        log.record(&request_record(target.as_bytes(), |_| {}));
    }
    std::fs::rename(&file, directory.path().join("access.log.1")).expect("rotated");
    log.reopen();
    let drain = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    log.flush(Duration::from_secs(20));
    assert!(
        file.exists(),
        "the new file is there though the queue was full"
    );
    log.record(&request_record(b"/after", |_| {}));
    log.flush(Duration::from_secs(20));
    assert!(
        std::fs::read_to_string(&file)
            .expect("read")
            .contains("/after")
    );
    drop((log, drain));
}

#[test]
fn log_problem_ends_without_another_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("events.log");
    let log = log_writer::LogWriter::open("event-log", &LogDestination::File(file.clone()))
        .expect("opened");
    std::fs::rename(&file, directory.path().join("events.log.1")).expect("renamed");
    std::fs::create_dir(&file).expect("in the way");
    log.write(&1);
    log.flush(Duration::from_secs(20));
    assert_eq!(log.problem().expect("a problem").id, "event-log");
    std::fs::remove_dir(&file).expect("out of the way");
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while log.problem().is_some() {
        assert!(std::time::Instant::now() < end, "{:?}", log.problem());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(log.dropped(), 1);
}

#[test]
fn vhost_combined_line_begins_with_host_and_port() {
    use crate::logs::{LineFormat, LogLine};
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = open_log(&file, AccessFormat::VhostCombined);
    let hosts: [&[u8]; 4] = [
        b"shop.example",
        b"shop.example:8080",
        b"[2001:db8::1]",
        b"a b\"\n",
    ];
    for host in hosts {
        log.record(&request_record(b"/one", |head| head.host = host));
    }
    let mut encrypted = request_record(b"/one", |_| {});
    encrypted.request.tls = Some("1.3");
    log.record(&encrypted);
    log.record(&request_record(b"/one", |head| head.host = b""));
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
    let Ok(LogLine::Request(read)) =
        LineFormat::Detect.parse(text.lines().next().expect("a line").as_bytes())
    else {
        panic!("{text}");
    };
    assert_eq!(
        (read.host.as_deref(), read.client.as_deref()),
        (Some(&b"shop.example:80"[..]), Some(&b"192.0.2.1"[..]))
    );
}

/// What a client can send that could end a field or a line, or be another byte.
const HOSTILE_BYTES: &[u8] = b"/a \"b\\x41\\\xff\x00\x1b[31m\r\n\t\x7f - \xe2\x80\xae [x] HTTP/1.1";

#[test]
fn combined_line_equals_nginx_and_is_read_back() {
    use crate::logs::{LineFormat, LogLine};
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = open_log(&file, AccessFormat::Combined);
    log.record(&request_record(b"/one?a=b", |head| {
        head.user_agent = Some(b"GPTBot/1.2")
    }));
    let mut unanswered = request_record(b"/one?a=b", |head| head.http = "2");
    unanswered.request.logged = None;
    unanswered.response.status = 0;
    log.record(&unanswered);
    log.record(&request_record(HOSTILE_BYTES, |head| {
        head.user_agent = Some(HOSTILE_BYTES);
        head.referer = Some(HOSTILE_BYTES);
    }));
    let mut unread = request_record(b"", |head| head.method = b"");
    unread.response.status = 400;
    log.record(&unread);
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
    let read = |line: &'static str| match LineFormat::Detect.parse(line.as_bytes()) {
        Ok(LogLine::Request(read)) => read,
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
        (HOSTILE_BYTES, Some(HOSTILE_BYTES))
    );
    assert!(matches!(
        LineFormat::Detect.parse(lines[3].as_bytes()),
        Ok(LogLine::NoRequest)
    ));
}

#[test]
fn hidden_characters_are_escaped_in_lines_of_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("access.log");
    let log = open_log(&file, AccessFormat::Json);
    let target = "/\u{9b}2J\u{202e}\u{7f}\u{e9}";
    log.record(&request_record(target.as_bytes(), |_| {}));
    log.flush(Duration::from_secs(10));
    let text = std::fs::read_to_string(&file).expect("read");
    assert!(
        !text.contains(['\u{9b}', '\u{202e}', '\u{7f}']) && text.contains('\u{e9}'),
        "{text:?}"
    );
    let line: serde_json::Value = serde_json::from_str(&text).expect("one line of JSON");
    assert_eq!(line["target"], target);
}
