//! One table of requests through every door: the lane, Pingora over HTTP/1, HTTP/2, the tower layer, and the decision
//! service. What the request is decided, how it is answered, what is counted and what is logged is the same, but for
//! [`BY_NATURE`].

mod odd;
mod table;
mod world;

use crate::support::eventually;
use std::collections::BTreeMap;
use table::{Row, rows};
use world::{Door, World};

/// The fields of a line of the access log that differ, with the reason.
const BY_NATURE: [(&str, &str); 4] = [
    ("time", "each door is asked in its turn"),
    ("milliseconds", "each door takes its own time"),
    ("http", "it is the version of the door"),
    ("tls", "no door of this test has it; the decision service never knows"),
];
/// What differs further where the decision service lets a request pass: another server answers it.
const OF_ANOTHER_SERVER: [&str; 2] = ["status", "bytes"];
/// What differs further where a response broke off: each client of an origin has its own word for it, and has passed on as
/// much as it had.
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
const COUNTED: [&str; 3] = ["crawlgate_requests_total", "crawlgate_violations_total", "crawlgate_robots_txt_total"];

/// What a client gets, and what is logged of it.
#[derive(Debug, PartialEq)]
struct Reply {
    status: u16,
    fields: BTreeMap<&'static str, Vec<String>>,
    body: Vec<u8>,
    logged: serde_json::Map<String, serde_json::Value>,
}

/// The reply of a door, without what differs by nature.
fn reply(world: &World, row: &Row) -> Reply {
    let lines = world.log().len();
    let response = world.ask(row);
    let logged = eventually(&format!("the line of {row:?} at {:?}", world.door), || world.log().get(lines).cloned());
    let mut logged = logged.as_object().expect("an object").clone();
    BY_NATURE.iter().for_each(|(name, _)| drop(logged.remove(*name)));
    if row.breaks {
        OF_A_BREAK.iter().for_each(|name| drop(logged.remove(*name)));
    }
    if world.door == Door::Decisions && logged["action"] == "pass" {
        OF_ANOTHER_SERVER.iter().for_each(|name| drop(logged.remove(*name)));
    }
    let lines = |name: &'static str| {
        let mut lines: Vec<String> = response.fields(name).into_iter().map(str::to_owned).collect();
        lines.sort();
        (name, lines)
    };
    let fields = COMPARED.into_iter().map(lines).filter(|(_, lines)| !lines.is_empty()).collect();
    Reply { status: response.status, fields, body: response.body, logged }
}

/// Asks two doors for the same.
fn agree(one: &World, other: &World, row: &Row) {
    let (expected, got) = (reply(one, row), reply(other, row));
    assert_eq!(expected.status, row.status, "{:?} {row:?}: {expected:?}", one.door);
    let what = format!("{:?} {row:?}", other.door);
    for (name, value) in &expected.logged {
        let is_of_another = other.door == Door::Decisions
            && expected.logged["action"] == "pass"
            && OF_ANOTHER_SERVER.contains(&name.as_str());
        if !is_of_another {
            assert_eq!(got.logged.get(name), Some(value), "{what}: {name}");
        }
    }
    // A decision to let a request pass is no response.
    if row.breaks || (other.door == Door::Decisions && expected.logged["action"] == "pass") {
        return;
    }
    assert_eq!((got.status, &got.fields), (expected.status, &expected.fields), "{what}");
    assert!(got.body == expected.body, "{what}: {}", String::from_utf8_lossy(&got.body));
}

/// The counters of a door, when they say so many requests.
fn counters(world: &World, requests: usize) -> Vec<String> {
    let counted = |line: &&str| COUNTED.iter().any(|name| line.starts_with(name));
    let total = |lines: &[String]| -> f64 {
        let requests = lines.iter().filter(|line| line.starts_with(COUNTED[0]));
        requests.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    eventually("all requests are counted", || {
        let mut lines: Vec<String> = world.metrics().lines().filter(counted).map(str::to_owned).collect();
        lines.sort();
        (total(&lines) >= requests as f64).then_some(lines)
    })
}

#[test]
fn every_door_decides_answers_counts_and_records_alike() {
    let robots = World::open(Door::Lane).ask(&rows("")[0]);
    let rows = rows(robots.field("etag").expect("one").to_owned().leak());
    assert!(rows.len() >= 60, "{} rows", rows.len());
    for door in [Door::Pingora, Door::Http2, Door::Tower, Door::Decisions] {
        let (lane, other) = (World::open(Door::Lane), World::open(door));
        let asked: Vec<&Row> = rows.iter().filter(|row| row.is_for(door)).collect();
        for row in &asked {
            agree(&lane, &other, row);
        }
        assert_eq!(counters(&lane, asked.len()), counters(&other, asked.len()), "{door:?}");
    }
}
