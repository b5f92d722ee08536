//! What the choice of a server costs a request: the place at a server, and the place given back;
//! with one server and with eight. And what the count of the server's answer costs beside it, which
//! one server alone needs as well. An address is chosen among in the same way whether servers are
//! given as addresses or by name.

use crawlgate::crawlers::Registry;
use crawlgate::internals::clock::Clock;
use crawlgate::internals::settings::{
    CapacitySettings, LoadBalancing, OriginServerAddress, OriginSettings,
};
use crawlgate::internals::telemetry::Metrics;
use crawlgate::internals::upstreams::{Attempts, RoutingFacts, Upstreams};
use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::FutureExt;
use std::hint::black_box;
use std::net::IpAddr;
use std::time::Duration;

fn upstreams(servers: usize, balance: LoadBalancing, connections: Option<usize>) -> Upstreams {
    let addresses = (1..=servers).map(|number| format!("http://127.0.0.{number}:8080"));
    let addresses = addresses.map(|url| OriginServerAddress::parse(&url).expect("a URL"));
    let origin = OriginSettings {
        balance,
        capacity: connections.map(CapacitySettings::with_connections),
        ..OriginSettings::with_servers(addresses)
    };
    Upstreams::new(&[origin], &Metrics::new(), Clock::default()).expect("no files")
}

fn choice(c: &mut Criterion) {
    // The registry is read before anything is measured.
    Registry::builtin();
    let cases = [
        ("one server", upstreams(1, LoadBalancing::RoundRobin, None)),
        (
            "eight servers, in turn",
            upstreams(8, LoadBalancing::RoundRobin, None),
        ),
        (
            "eight servers, the better of two",
            upstreams(8, LoadBalancing::LeastRequests, None),
        ),
        (
            "eight servers, by client",
            upstreams(8, LoadBalancing::Client, None),
        ),
        (
            "one server with a bound",
            upstreams(1, LoadBalancing::RoundRobin, Some(100)),
        ),
        (
            "eight servers with a bound",
            upstreams(8, LoadBalancing::RoundRobin, Some(100)),
        ),
    ];
    for (name, upstreams) in &cases {
        for is_answered in [false, true] {
            let name = if is_answered {
                format!("choice and answer: {name}")
            } else {
                format!("choice: {name}")
            };
            let mut number = 0u32;
            c.bench_function(&name, |b| {
                b.iter(|| {
                    number = number.wrapping_add(1);
                    request(upstreams, number, is_answered)
                });
            });
        }
    }
}

fn request(upstreams: &Upstreams, number: u32, is_answered: bool) {
    let facts = RoutingFacts {
        host: b"shop.example",
        target: b"/page",
        client: Some(IpAddr::from(number.to_be_bytes())),
        is_crawler: false,
        verified: None,
        is_search: false,
        is_repeatable: true,
        monotonic: Duration::ZERO,
    };
    let mut attempts = Attempts::default();
    let route = attempts
        .next_server(upstreams, &facts)
        .now_or_never()
        .expect("a place is free");
    black_box(route).expect("a server");
    if is_answered {
        attempts.record_response(upstreams, 200, Duration::ZERO, || false);
    }
    black_box(&attempts);
}

criterion_group!(benches, choice);
criterion_main!(benches);
