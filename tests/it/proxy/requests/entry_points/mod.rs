//! One table of requests through every entry point: the forwarder, Pingora's proxy (with `direct_forwarding: off`, with
//! `html`, over HTTP/1.0, for WebSockets), HTTP/2, the tower layer, and the decision service. What
//! the request is decided, how it is answered, what is counted and what is logged is the same, but
//! for [`BY_NATURE`].

mod odd;
mod table;
mod world;

use crate::proxy::support::{Response, eventually};
use std::collections::BTreeMap;
use table::{Row, TARGETS, redirected, rows, visit};
use world::{EntryPoint, World};

/// The fields of a line of the access log that differ, with the reason.
const BY_NATURE: [(&str, &str); 7] = [
    ("request_id", "each request has its own"),
    ("time", "each entry point is asked in its turn"),
    ("milliseconds", "each entry point takes its own time"),
    (
        "origin_milliseconds",
        "each attempt takes its own time, and the layer has no origin",
    ),
    ("server", "the layer has no origin"),
    ("http", "it is the version of the entry point"),
    (
        "tls",
        "no entry point of this test has it; the decision service never knows",
    ),
];
/// What differs further where the decision service lets a request pass: another server answers it.
const OF_ANOTHER_SERVER: [&str; 2] = ["status", "bytes"];
/// What differs further where a response broke off: each client of an origin has its own word for
/// it, and has passed on as much as it had.
const OF_A_BREAK: [&str; 2] = ["error", "bytes"];
/// The fields of an answer that are compared. The others are those of a connection, and the date.
const COMPARED: [&str; 12] = [
    "allow",
    "cache-control",
    "content-length",
    "content-type",
    "etag",
    "link",
    "location",
    "retry-after",
    "vary",
    "www-authenticate",
    "content-signal",
    "x-robots-tag",
];
/// The series that are compared.
const COUNTED: [&str; 4] = [
    "crawlgate_requests_total",
    "crawlgate_requests_rejected_total",
    "crawlgate_violations_total",
    "crawlgate_robots_txt_total",
];

/// What a client gets, and what is logged of it.
#[derive(Debug, PartialEq)]
struct Reply {
    status: u16,
    fields: BTreeMap<&'static str, Vec<String>>,
    body: Vec<u8>,
    logged: serde_json::Map<String, serde_json::Value>,
}

/// The reply of an entry point to a row, without what differs by nature.
fn reply(world: &World, row: &Row) -> Reply {
    let mut reply = answered(world, &format!("{row:?}"), || world.ask(row));
    if row.broken_by.is_some() {
        OF_A_BREAK
            .iter()
            .for_each(|name| drop(reply.logged.remove(*name)));
    }
    if world.entry_point == EntryPoint::Decisions && reply.logged["action"] == "pass" {
        OF_ANOTHER_SERVER
            .iter()
            .for_each(|name| drop(reply.logged.remove(*name)));
    }
    if world.entry_point == EntryPoint::Tower && (row.method, reply.status) == ("HEAD", 304) {
        // axum writes the length of the empty body (axum 0.8, routing/route.rs).
        assert_eq!(
            reply.fields.remove("content-length"),
            Some(vec!["0".to_owned()])
        );
    }
    reply
}

/// The reply of an entry point to what is asked. What is left of a wait counts in minutes: entry points are asked
/// one after the other.
fn answered(world: &World, what: &str, ask: impl FnOnce() -> Response) -> Reply {
    let lines = world.log().len();
    let response = ask();
    let logged = eventually(
        &format!("the line of {what} at {:?}", world.entry_point),
        || world.log().get(lines).cloned(),
    );
    let mut logged = logged.as_object().expect("an object").clone();
    assert!(
        logged["request_id"]
            .as_str()
            .is_some_and(|id| !id.is_empty()),
        "{what}: {logged:?}"
    );
    BY_NATURE
        .iter()
        .for_each(|(name, _)| drop(logged.remove(*name)));
    // Each entry point has its policies in a directory of its own.
    if let Some(place) = logged
        .get_mut("rule_source")
        .filter(|place| place.is_string())
    {
        *place = place
            .as_str()
            .and_then(|place| place.rsplit('/').next())
            .map_or_else(Default::default, Into::into);
    }
    let lines = |name: &'static str| {
        let mut lines: Vec<String> = response
            .fields(name)
            .into_iter()
            .map(str::to_owned)
            .collect();
        lines.sort();
        (name, lines)
    };
    let mut fields: BTreeMap<_, _> = COMPARED
        .into_iter()
        .map(lines)
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let mut body = response.body;
    if let Some(seconds) = fields
        .get_mut("retry-after")
        .and_then(|lines| lines.first_mut())
    {
        let left: u64 = seconds.parse().expect("seconds");
        let minutes = (60 * left.div_ceil(60)).to_string();
        let text = String::from_utf8(body)
            .expect("text")
            .replace(seconds.as_str(), &minutes);
        (*seconds, body) = (minutes, text.into_bytes());
    }
    Reply {
        status: response.status,
        fields,
        body,
        logged,
    }
}

/// Asks two entry points for the same, and says what differs.
fn differences(one: &World, other: &World, row: &Row) -> Vec<String> {
    let (expected, got) = (reply(one, row), reply(other, row));
    let what = format!(
        "{:?} {} {} {} {:?}",
        other.entry_point, row.method, row.host, row.target, row.fields
    );
    let mut found = Vec::new();
    if expected.status != row.status {
        found.push(format!(
            "{what}: the forwarder answers {} instead of {}",
            expected.status, row.status
        ));
    }
    for (name, value) in &expected.logged {
        let is_of_another = other.entry_point == EntryPoint::Decisions
            && expected.logged["action"] == "pass"
            && OF_ANOTHER_SERVER.contains(&name.as_str());
        // A proxy that asks names its client.
        let is_named = other.entry_point == EntryPoint::Decisions && name == "client";
        if !is_of_another && !is_named && got.logged.get(name) != Some(value) {
            found.push(format!(
                "{what}: {name} is {value} and {:?}",
                got.logged.get(name)
            ));
        }
    }
    // A decision to let a request pass is no response.
    if row.broken_by.is_some()
        || (other.entry_point == EntryPoint::Decisions && expected.logged["action"] == "pass")
    {
        return found;
    }
    if (got.status, &got.fields) != (expected.status, &expected.fields) {
        found.push(format!(
            "{what}: {} {:?} and {} {:?}",
            expected.status, expected.fields, got.status, got.fields
        ));
    }
    if got.body != expected.body {
        found.push(format!(
            "{what}: the body is {}",
            String::from_utf8_lossy(&got.body)
        ));
    }
    found
}

/// The counters of an entry point, when they say so many requests.
fn counters(world: &World, requests: usize) -> Vec<String> {
    let counted = |line: &&str| COUNTED.iter().any(|name| line.starts_with(name));
    let total = |lines: &[String]| -> f64 {
        let requests = lines.iter().filter(|line| line.starts_with(COUNTED[0]));
        requests
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    eventually("all requests are counted", || {
        let mut lines: Vec<String> = world
            .metrics()
            .lines()
            .filter(counted)
            .map(str::to_owned)
            .collect();
        lines.sort();
        (total(&lines) >= requests as f64).then_some(lines)
    })
}

/// What of the counters of two entry points differs.
fn differently_counted(one: &World, other: &World, requests: usize) -> Vec<String> {
    let (expected, got) = (counters(one, requests), counters(other, requests));
    let lacks = |line: &&String| !got.contains(line);
    let missing = expected
        .iter()
        .filter(lacks)
        .map(|line| format!("{:?} lacks {line}", other.entry_point));
    let more = got.iter().filter(|line| !expected.contains(line));
    missing
        .chain(more.map(|line| format!("{:?} has {line}", other.entry_point)))
        .collect()
}

/// Asks each entry point and a forwarder of its own for all rows.
fn assert_alike(rows: &[Row], entry_points: &[EntryPoint], open: impl Fn(EntryPoint) -> World) {
    let mut found = Vec::new();
    for entry_point in entry_points {
        let (forwarder, other) = (open(EntryPoint::Forwarder), open(*entry_point));
        let asked: Vec<&Row> = rows.iter().filter(|row| row.is_for(*entry_point)).collect();
        found.extend(
            asked
                .iter()
                .flat_map(|row| differences(&forwarder, &other, row)),
        );
        found.extend(differently_counted(&forwarder, &other, asked.len()));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_entry_point_decides_answers_counts_and_records_alike() {
    let robots = World::open(EntryPoint::Forwarder).ask(&rows("")[0]);
    let rows = rows(robots.field("etag").expect("one").to_owned().leak());
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let of_a_process = [
        EntryPoint::Pingora,
        EntryPoint::Html,
        EntryPoint::Http10,
        EntryPoint::WebSocket,
        EntryPoint::Http2,
    ];
    assert_alike(
        &rows,
        &[
            &of_a_process[..],
            &[EntryPoint::Tower, EntryPoint::Decisions],
        ]
        .concat(),
        World::open,
    );
}

/// No other entry point has a listener that leads elsewhere: HTTP/2 is not spoken there.
#[test]
fn listener_that_leads_to_https_answers_and_records_alike() {
    assert_alike(
        &redirected(),
        &[
            EntryPoint::Pingora,
            EntryPoint::Http10,
            EntryPoint::WebSocket,
        ],
        World::leading_to_https,
    );
}

#[test]
fn odd_targets_reach_the_origin_alike_whichever_way_they_take() {
    for entry_point in [
        EntryPoint::Forwarder,
        EntryPoint::Pingora,
        EntryPoint::Html,
        EntryPoint::Http10,
        EntryPoint::WebSocket,
    ] {
        let world = World::open(entry_point);
        for (target, at_origin) in TARGETS {
            assert_eq!(
                world.ask(&visit(target)).status,
                200,
                "{entry_point:?} {target}"
            );
            assert_eq!(
                world.target_at_origin(),
                at_origin,
                "{entry_point:?} {target}"
            );
        }
    }
}
