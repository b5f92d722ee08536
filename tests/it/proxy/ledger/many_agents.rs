//! Endless user agents, addresses and hosts: memory stays flat and the series stay the same.

use crate::proxy::support::{Gate, Origin, PATIENCE, Setup};
use std::io::{BufRead, Write};
use std::net::TcpStream;

const POLICY: &str = "robots: { origin: replace, groups: [{ agents: ['*'], disallow: [/closed/] }, { agents: [HouseBot], disallow: [/] }] }
enforcement: { mode: enforce, behind_cache: no }
";

/// What each kind of them asks for, and its answer: an unlisted bot is only observed, and there is
/// no origin.
const PAGES: [(&str, u16); 3] = [("/closed/", 403), ("/", 403), ("/robots.txt", 200)];

/// Distinct user agents, each from an address of its own. `CRAWLGATE_AGENTS=1000000` makes it a
/// million in all.
fn agents() -> usize {
    std::env::var("CRAWLGATE_AGENTS")
        .ok()
        .and_then(|agents| agents.parse().ok())
        .unwrap_or(25_000)
}

#[test]
fn flood_of_agents_leaves_memory_and_series_bounded() {
    let gate = Setup::before(Origin::nowhere())
        .policy("site", POLICY)
        .settings("trusted_proxies: 127.0.0.1")
        .start();
    let part = agents() / 5;
    // By then every table is full, and was written once.
    flood(&gate, 0..2 * part);
    let (memory, series) = (gate.resident(), series(&gate));
    for round in 2..5 {
        flood(&gate, round * part..(round + 1) * part);
    }
    let (after, series_after) = (gate.resident(), self::series(&gate));
    println!(
        "{} agents: {memory} KiB after two fifths, {after} KiB after all, {} series",
        5 * part,
        series_after.len()
    );
    assert!(
        after < memory + 16 * 1024,
        "{memory} KiB became {after} KiB"
    );
    assert_eq!(series_after, series);
}

/// Names of series, without what says how often.
fn series(gate: &Gate) -> Vec<String> {
    let metrics = gate.metrics();
    let ours = metrics
        .lines()
        .filter(|line| line.starts_with("crawlgate_") && !line.contains("decision_seconds"));
    ours.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
        .collect()
}

/// Each agent asks for robots.txt and for a page, on a host of its own.
fn flood(gate: &Gate, agents: std::ops::Range<usize>) {
    let run = |agents: std::iter::StepBy<std::ops::Range<usize>>| {
        let stream = TcpStream::connect(gate.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.set_nodelay(true).expect("no delay");
        let (mut reader, mut writer) = (
            std::io::BufReader::new(stream.try_clone().expect("the same")),
            stream,
        );
        for number in agents {
            // A crawler of the registry, a token of the policy, a bot that no list knows.
            let name = ["bingbot", "HouseBot", "Crawler"][number % 3];
            let address = format!(
                "10.{}.{}.{}",
                number >> 16 & 255,
                number >> 8 & 255,
                number & 255
            );
            let (page, status) = PAGES[number % 3];
            for (method, target, expected) in [("GET", "/robots.txt", 200), ("HEAD", page, status)]
            {
                let request = format!(
                    "{method} {target} HTTP/1.1\r\nHost: host-{number}.example\r\nX-Forwarded-For: {address}\r\n\
                     User-Agent: Mozilla/5.0 (compatible; {name}/{number}; +http://a.example/bot)\r\n\r\n"
                );
                writer.write_all(request.as_bytes()).expect("sent");
                assert_eq!(skip(&mut reader, method == "GET"), expected);
            }
        }
    };
    const CONNECTIONS: usize = 8;
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let agents = (agents.start + first..agents.end).step_by(CONNECTIONS);
            let run = &run;
            scope.spawn(move || run(agents));
        }
    });
}

/// Reads one answer; its status.
fn skip(reader: &mut impl BufRead, with_body: bool) -> u16 {
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a line");
        if status == 0 {
            status = line
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .expect("a status");
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
    }
    if with_body {
        reader.read_exact(&mut vec![0; length]).expect("a body");
    }
    status
}
