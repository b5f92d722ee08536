//! What the tower layer costs: an axum application alone, and the same one behind the gate. The
//! budget is 1.5 us a request.
//!
//! ```sh
//! cargo bench --no-default-features --features tower --bench middleware
//! ```

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use crawlgate::middleware::GateLayer;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::{Request, Response};
use http_body::Body as _;
use std::fmt::Write;
use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tower_service::Service;

const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36";
const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
const GPTBOT: &str = "GPTBot/1.2";

/// A policy with a thousand rules.
fn policy() -> String {
    let mut text = "purposes: { training: disallow }\nindexing: [{ types: application/pdf, tag: noindex }]\n\
        enforcement: { mode: enforce }\nrobots:\n  origin: replace\n  groups:\n    - agents: ['*']\n      disallow:\n"
        .to_owned();
    for rule in 0..1_000 {
        let _ = writeln!(text, "        - '/section-{rule}/private/'");
    }
    text
}

/// As a server hands it over.
fn request(user_agent: &str) -> Request<Body> {
    let mut request = Request::get("/articles/today")
        .header("host", "shop.example")
        .header("user-agent", user_agent)
        .header(
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        )
        .header("accept-encoding", "gzip, deflate, br")
        .header("accept-language", "en-GB,en;q=0.5")
        .body(Body::empty())
        .expect("a request");
    request
        .extensions_mut()
        .insert(IpAddr::from([192, 0, 2, 1]));
    request
}

/// One request through the application, to the end of the body.
fn serve(application: &mut Router, request: Request<Body>) -> u16 {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(response)) = pin!(Service::call(application, request)).poll(&mut context)
    else {
        panic!("the application waits");
    };
    let (head, body) = Response::into_parts(response);
    let mut body = pin!(body);
    while let Poll::Ready(Some(_)) = body.as_mut().poll_frame(&mut context) {}
    head.status.as_u16()
}

fn middleware(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("shop.yaml"), policy()).expect("a policy");
    let gate = GateLayer::builder(directory.path())
        .peer(|extensions| extensions.get::<IpAddr>().copied())
        .open()
        .expect("a gate");
    let application = || Router::new().route("/articles/today", get(|| async { "hello" }));
    let (mut alone, mut gated) = (application(), application().layer(gate));
    let mut group = criterion.benchmark_group("axum");
    for (name, user_agent, status) in [
        ("browser", BROWSER, 200),
        ("bingbot", BINGBOT, 200),
        ("refused-gptbot", GPTBOT, 403),
    ] {
        assert_eq!(serve(&mut gated, request(user_agent)), status);
        for (kind, application) in [("alone", &mut alone), ("behind-the-gate", &mut gated)] {
            group.bench_function(format!("{name}/{kind}"), |bencher| {
                let prepare = || request(user_agent);
                bencher.iter_batched(
                    prepare,
                    |request| serve(application, request),
                    BatchSize::SmallInput,
                );
            });
        }
    }
}

criterion_group!(benches, middleware);
criterion_main!(benches);
