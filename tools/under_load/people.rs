//! People who browse a site that is being crawled, before an origin that can do twenty requests at
//! once.

use super::client::Client;
use super::program::Program;
use super::server;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the origin can do: 400 requests a second.
const PLACES: usize = 20;
const WORK: Duration = Duration::from_millis(50);
/// Connections of crawlers, each of which asks for the next page as soon as it has one.
const CRAWLERS: u8 = 200;
/// People, who read for so long before they ask for the next page: at most 100 requests a second.
const PEOPLE: u8 = 50;
const READING: Duration = Duration::from_millis(500);
/// How long a crawler waits that was turned away, whatever Retry-After says. Well-behaved ones wait
/// longer.
const IMPATIENCE: Duration = Duration::from_secs(1);
/// What comes before is not measured.
const WARM_UP: Duration = Duration::from_secs(2);

const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const CRAWLER: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";

/// What came of a run.
#[derive(Default)]
struct Counted {
    /// How long people waited.
    times: Vec<Duration>,
    failed: usize,
    crawled: usize,
    turned_away: usize,
}

pub fn run(time: Duration) -> io::Result<()> {
    println!(
        "| | people: p50 | p99 | requests a second | failed | crawlers: pages a second | turned away a second |"
    );
    println!("|---|---|---|---|---|---|---|");
    let origin = || server::busy(PLACES, WORK);
    let bound = |origin| format!("{{ servers: http://{origin}, connections: {PLACES} }}");
    measure(
        "crawlgate, nobody crawls",
        &Program::crawlgate(&format!("http://{}", origin()?))?,
        0,
        time,
    );
    measure(
        "crawlgate without a bound",
        &Program::crawlgate(&format!("http://{}", origin()?))?,
        CRAWLERS,
        time,
    );
    measure(
        "HAProxy, `maxconn 20`",
        &Program::haproxy(origin()?, PLACES)?,
        CRAWLERS,
        time,
    );
    measure(
        "crawlgate, `connections: 20`",
        &Program::crawlgate(&bound(origin()?))?,
        CRAWLERS,
        time,
    );
    Ok(())
}

fn measure(name: &str, program: &Program, crawlers: u8, time: Duration) {
    let counted = load(program.address, crawlers, time);
    let seconds = time.as_secs_f64();
    let rate = |count: usize| format!("{:.0}", count as f64 / seconds);
    let Counted {
        mut times,
        failed,
        crawled,
        turned_away,
    } = counted;
    times.sort_unstable();
    let at = |share: f64| {
        times
            .get((times.len() as f64 * share) as usize)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "| {name} | {:.0} ms | {:.0} ms | {} | {failed} | {} | {} |",
        at(0.50).as_secs_f64() * 1e3,
        at(0.99).as_secs_f64() * 1e3,
        rate(times.len()),
        rate(crawled),
        rate(turned_away)
    );
}

fn load(address: SocketAddr, crawlers: u8, time: Duration) -> Counted {
    let (begins, is_over) = (
        Instant::now() + WARM_UP.min(time),
        Arc::new(AtomicBool::new(false)),
    );
    let (crawled, turned_away) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let crawling: Vec<_> = (0..crawlers)
        .map(|number| {
            let (is_over, crawled, turned_away) =
                (is_over.clone(), crawled.clone(), turned_away.clone());
            let client = Client::new(address, Ipv4Addr::new(127, 2, 0, number), CRAWLER);
            thread::spawn(move || crawl(client, begins, &is_over, (&crawled, &turned_away)))
        })
        .collect();
    let reading: Vec<_> = (0..PEOPLE)
        .map(|number| {
            let is_over = is_over.clone();
            let client = Client::new(address, Ipv4Addr::new(127, 1, 0, number), BROWSER);
            // Not all at once.
            let first = READING.mul_f64(f64::from(number) / f64::from(PEOPLE));
            thread::spawn(move || browse(client, (first, begins), &is_over))
        })
        .collect();
    thread::sleep(begins.saturating_duration_since(Instant::now()) + time);
    is_over.store(true, Ordering::Relaxed);
    let mut counted = Counted {
        crawled: crawled.load(Ordering::Relaxed),
        turned_away: turned_away.load(Ordering::Relaxed),
        ..Counted::default()
    };
    for (times, failed) in reading.into_iter().filter_map(|thread| thread.join().ok()) {
        counted.times.extend(times);
        counted.failed += failed;
    }
    crawling.into_iter().for_each(|thread| drop(thread.join()));
    counted
}

/// One page after the other. A person who waits for a page does not read.
fn browse(
    mut client: Client,
    (first, begins): (Duration, Instant),
    is_over: &AtomicBool,
) -> (Vec<Duration>, usize) {
    let (mut times, mut failed) = (Vec::new(), 0);
    thread::sleep(first);
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let is_answered = client
            .ask("GET", "/article")
            .is_ok_and(|reply| reply.status == 200);
        if began >= begins {
            times.extend(is_answered.then(|| began.elapsed()));
            failed += usize::from(!is_answered);
        }
        thread::sleep(READING);
    }
    (times, failed)
}

fn crawl(
    mut client: Client,
    begins: Instant,
    is_over: &AtomicBool,
    counts: (&AtomicUsize, &AtomicUsize),
) {
    let (crawled, turned_away) = counts;
    while !is_over.load(Ordering::Relaxed) {
        let reply = client.ask("GET", "/article");
        let is_counted = Instant::now() >= begins && !is_over.load(Ordering::Relaxed);
        match reply {
            Ok(reply) if reply.status == 200 => {
                crawled.fetch_add(usize::from(is_counted), Ordering::Relaxed);
            }
            Ok(reply) => {
                turned_away.fetch_add(usize::from(is_counted), Ordering::Relaxed);
                thread::sleep(
                    reply
                        .retry_after
                        .map_or(IMPATIENCE, Duration::from_secs)
                        .min(IMPATIENCE),
                );
            }
            Err(_) => thread::sleep(IMPATIENCE),
        }
    }
}
