//! Two servers, of which one is gone every other second, under a mixed load.

use super::client::Client;
use super::program::Program;
use super::server::Mortal;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: u8 = 16;
/// Between two requests of a client.
const PAUSE: Duration = Duration::from_millis(2);
const FLAP: Duration = Duration::from_secs(1);
const AGENT: &str = "curl/8.5.0";
/// How the origin is set up.
const SETTINGS: [(&str, &str); 3] = [
    ("as it is", ""),
    (
        "with `health`",
        ", health: { path: /, every: 1s, timeout: 500ms }",
    ),
    ("`ejection: off`", ", ejection: off"),
];

/// Requests, and those among them without a proper answer: such as may be sent twice, and others.
#[derive(Clone, Copy, Default)]
struct Counted {
    requests: usize,
    failed: usize,
    failed_posts: usize,
}

pub fn run(time: Duration) -> io::Result<()> {
    println!(
        "| | requests | failed GET and HEAD | failed POST | resident KiB after a tenth | at the end | descriptors after a tenth | at the end |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, rules) in SETTINGS {
        let (steady, flapping) = (Mortal::new()?, Mortal::new()?);
        let origins = format!(
            "{{ servers: [http://{}, http://{}]{rules} }}",
            steady.address, flapping.address
        );
        let program = Program::crawlgate(&origins)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, is_over) = (program.address, is_over.clone());
                thread::spawn(move || ask(address, number, &is_over))
            })
            .collect();
        let (ends, mut first) = (Instant::now() + time, None);
        let early = ends - time.mul_f64(0.9);
        let mut is_there = true;
        while Instant::now() < ends {
            thread::sleep(FLAP.min(ends.saturating_duration_since(Instant::now())));
            if is_there {
                flapping.go();
            } else {
                flapping.come()?;
            }
            is_there = !is_there;
            if first.is_none() && Instant::now() >= early {
                first = Some((program.resident()?, program.descriptors()?));
            }
        }
        let (resident, descriptors) = (program.resident()?, program.descriptors()?);
        is_over.store(true, Ordering::Relaxed);
        let mut sum = Counted::default();
        for counted in clients.into_iter().filter_map(|client| client.join().ok()) {
            sum.requests += counted.requests;
            sum.failed += counted.failed;
            sum.failed_posts += counted.failed_posts;
        }
        let (before, before_descriptors) = first.unwrap_or((resident, descriptors));
        println!(
            "| {name} | {} | {} | {} | {before} | {resident} | {before_descriptors} | {descriptors} |",
            sum.requests, sum.failed, sum.failed_posts
        );
    }
    Ok(())
}

/// Mostly GETs. A POST that was on its way when its server went may have been done: it is not sent
/// again.
fn ask(address: SocketAddr, number: u8, is_over: &AtomicBool) -> Counted {
    let mut client = Client::new(address, Ipv4Addr::new(127, 1, 0, number), AGENT);
    let mut counted = Counted::default();
    while !is_over.load(Ordering::Relaxed) {
        let method = match counted.requests % 10 {
            3 => "HEAD",
            7 => "POST",
            _ => "GET",
        };
        let has_failed = !client
            .ask(method, "/page")
            .is_ok_and(|reply| reply.status == 200);
        counted.requests += 1;
        match method {
            "POST" => counted.failed_posts += usize::from(has_failed),
            _ => counted.failed += usize::from(has_failed),
        }
        thread::sleep(PAUSE);
    }
    counted
}
