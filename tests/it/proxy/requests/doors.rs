//! One table of requests through every door: the lane, Pingora's proxy (with `lane: off`, with
//! `html`, over HTTP/1.0, for WebSockets), HTTP/2, the tower layer, and the decision service. What
//! the request is decided, how it is answered, what is counted and what is logged is the same, but
//! for [`BY_NATURE`].

mod odd;
mod table;
mod world;

use crate::proxy::support::{Response, eventually};
use std::collections::BTreeMap;
use table::{Row, TARGETS, redirected, rows, visit};
use world::{Door, World};

/// The fields of a line of the access log that differ, with the reason.
const BY_NATURE: [(&str, &str); 5] = [
    ("request_id", "each request has its own"),
    ("time", "each door is asked in its turn"),
    ("milliseconds", "each door takes its own time"),
    ("http", "it is the version of the door"),
    (
        "tls",
        "no door of this test has it; the decision service never knows",
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

/// The reply of a door to a row, without what differs by nature.
fn reply(world: &World, row: &Row) -> Reply {
    let mut reply = answered(world, &format!("{row:?}"), || world.ask(row));
    if row.broken_by.is_some() {
        OF_A_BREAK
            .iter()
            .for_each(|name| drop(reply.logged.remove(*name)));
    }
    if world.door == Door::Decisions && reply.logged["action"] == "pass" {
        OF_ANOTHER_SERVER
            .iter()
            .for_each(|name| drop(reply.logged.remove(*name)));
    }
    if world.door == Door::Tower && (row.method, reply.status) == ("HEAD", 304) {
        // axum writes the length of the empty body (axum 0.8, routing/route.rs).
        assert_eq!(
            reply.fields.remove("content-length"),
            Some(vec!["0".to_owned()])
        );
    }
    reply
}

/// The reply of a door to what is asked. What is left of a wait counts in minutes: doors are asked
/// one after the other.
fn answered(world: &World, what: &str, ask: impl FnOnce() -> Response) -> Reply {
    let lines = world.log().len();
    let response = ask();
    let logged = eventually(&format!("the line of {what} at {:?}", world.door), || {
        world.log().get(lines).cloned()
    });
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
    // Each door has its policies in a directory of its own.
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

/// Asks two doors for the same, and says what differs.
fn differences(one: &World, other: &World, row: &Row) -> Vec<String> {
    let (expected, got) = (reply(one, row), reply(other, row));
    let what = format!(
        "{:?} {} {} {} {:?}",
        other.door, row.method, row.host, row.target, row.fields
    );
    let mut found = Vec::new();
    if expected.status != row.status {
        found.push(format!(
            "{what}: the lane answers {} instead of {}",
            expected.status, row.status
        ));
    }
    for (name, value) in &expected.logged {
        let is_of_another = other.door == Door::Decisions
            && expected.logged["action"] == "pass"
            && OF_ANOTHER_SERVER.contains(&name.as_str());
        // A proxy that asks names its client.
        let is_named = other.door == Door::Decisions && name == "client";
        if !is_of_another && !is_named && got.logged.get(name) != Some(value) {
            found.push(format!(
                "{what}: {name} is {value} and {:?}",
                got.logged.get(name)
            ));
        }
    }
    // A decision to let a request pass is no response.
    if row.broken_by.is_some()
        || (other.door == Door::Decisions && expected.logged["action"] == "pass")
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

/// The counters of a door, when they say so many requests.
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

/// What of the counters of two doors differs.
fn differently_counted(one: &World, other: &World, requests: usize) -> Vec<String> {
    let (expected, got) = (counters(one, requests), counters(other, requests));
    let lacks = |line: &&String| !got.contains(line);
    let missing = expected
        .iter()
        .filter(lacks)
        .map(|line| format!("{:?} lacks {line}", other.door));
    let more = got.iter().filter(|line| !expected.contains(line));
    missing
        .chain(more.map(|line| format!("{:?} has {line}", other.door)))
        .collect()
}

/// Asks each door and a lane of its own for all rows.
fn assert_alike(rows: &[Row], doors: &[Door], open: impl Fn(Door) -> World) {
    let mut found = Vec::new();
    for door in doors {
        let (lane, other) = (open(Door::Lane), open(*door));
        let asked: Vec<&Row> = rows.iter().filter(|row| row.is_for(*door)).collect();
        found.extend(asked.iter().flat_map(|row| differences(&lane, &other, row)));
        found.extend(differently_counted(&lane, &other, asked.len()));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_door_decides_answers_counts_and_records_alike() {
    let robots = World::open(Door::Lane).ask(&rows("")[0]);
    let rows = rows(robots.field("etag").expect("one").to_owned().leak());
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let of_a_process = [
        Door::Pingora,
        Door::Html,
        Door::Http10,
        Door::WebSocket,
        Door::Http2,
    ];
    assert_alike(
        &rows,
        &[&of_a_process[..], &[Door::Tower, Door::Decisions]].concat(),
        World::open,
    );
}

/// No other door has a listener that leads elsewhere: HTTP/2 is not spoken there.
#[test]
fn listener_that_leads_to_https_answers_and_records_alike() {
    assert_alike(
        &redirected(),
        &[Door::Pingora, Door::Http10, Door::WebSocket],
        World::leading_to_https,
    );
}

#[test]
fn odd_targets_reach_the_origin_alike_whichever_way_they_take() {
    for door in [
        Door::Lane,
        Door::Pingora,
        Door::Html,
        Door::Http10,
        Door::WebSocket,
    ] {
        let world = World::open(door);
        for (target, at_origin) in TARGETS {
            assert_eq!(world.ask(&visit(target)).status, 200, "{door:?} {target}");
            assert_eq!(world.target_at_origin(), at_origin, "{door:?} {target}");
        }
    }
}
