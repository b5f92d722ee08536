//! Tests of the middleware (crawlgate inside an application). Some of the applications in these
//! tests behave unusually: they send a body in pieces or trailers, fail in the middle of a page, or
//! do not respond at all.

use super::{GateBody, GateBuilder, GateLayer, OpenError};
use crate::verdict::{ActionKind, Identity, Kind};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tempfile::TempDir;
use tower_layer::Layer;
use tower_service::Service;

const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const GPTBOT: &str = "GPTBot/1.2";

/// The body of an application: frames and errors, one after the other.
#[derive(Default)]
struct Pieces(VecDeque<Result<Frame<Bytes>, &'static str>>);

impl Pieces {
    fn from_texts(pieces: &[&'static str]) -> Pieces {
        Pieces(
            pieces
                .iter()
                .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))
                .collect(),
        )
    }

    fn then(mut self, last: Result<Frame<Bytes>, &'static str>) -> Pieces {
        self.0.push_back(last);
        self
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// A service made of a function.
struct FnService<F>(F);

impl<F, R, E> Service<Request<()>> for FnService<F>
where
    F: FnMut(Request<()>) -> Result<R, E>,
{
    type Response = R;
    type Error = E;
    type Future = std::future::Ready<Result<R, E>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        std::future::ready((self.0)(request))
    }
}

fn open_gate(policy: &str) -> (GateLayer, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("site.yaml"), policy).expect("a policy");
    (
        GateLayer::open(directory.path()).expect("a gate"),
        directory,
    )
}

fn request(target: &str, user_agent: &'static str) -> Request<()> {
    let request = Request::get(target)
        .header(header::HOST, "a.example")
        .header(header::USER_AGENT, user_agent);
    request.body(()).expect("a request")
}

/// The output of a future that never waits.
fn poll_ready_future<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// The frames of a body.
fn body_frames<B: Body<Data = Bytes>>(body: B) -> Vec<Result<Frame<Bytes>, B::Error>> {
    let (mut body, mut frames) = (pin!(body), Vec::new());
    while let Poll::Ready(Some(frame)) = body
        .as_mut()
        .poll_frame(&mut Context::from_waker(Waker::noop()))
    {
        frames.push(frame);
    }
    frames
}

fn body_text<B: Body<Data = Bytes>>(body: B) -> String {
    let data = body_frames(body)
        .into_iter()
        .filter_map(|frame| frame.ok()?.into_data().ok());
    String::from_utf8(data.flatten().collect()).expect("text")
}

/// The response of an application that sends this body as this type.
fn serve_page(
    gate: &GateLayer,
    content_type: &'static str,
    body: Pieces,
) -> Response<GateBody<Pieces>> {
    let mut body = Some(body);
    let mut service = gate.layer(FnService(|_| {
        let response = Response::builder().header(header::CONTENT_TYPE, content_type);
        Ok::<_, Infallible>(
            response
                .body(body.take().expect("one request"))
                .expect("a response"),
        )
    }));
    poll_ready_future(service.call(request("/page", BROWSER))).expect("a response")
}

const TAGGED: &str = "indexing: [{ paths: /page, tag: noindex }]\n";

#[test]
fn trailers_of_the_application_pass() {
    let (gate, _directory) = open_gate(TAGGED);
    let trailers = HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        HeaderValue::from(0),
    )]);
    let body = Pieces::from_texts(&["one", "two"]).then(Ok(Frame::trailers(trailers.clone())));
    let response = serve_page(&gate, "application/grpc", body);
    assert_eq!(response.headers()["x-robots-tag"], "noindex");
    let mut frames = body_frames(response.into_body());
    assert_eq!(
        frames
            .pop()
            .and_then(|last| last.ok()?.into_trailers().ok()),
        Some(trailers)
    );
    assert_eq!(frames.len(), 2);
}

#[cfg(feature = "html")]
#[test]
fn page_in_pieces_is_rewritten_and_its_trailers_follow() {
    let (gate, _directory) = open_gate(&format!("{TAGGED}html: meta\n"));
    let trailers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("x"))]);
    let body = Pieces::from_texts(&[
        "<!doctype html><he",
        "ad><title>A</ti",
        "tle></head><p>text",
    ]);
    let response = serve_page(
        &gate,
        "text/html",
        body.then(Ok(Frame::trailers(trailers.clone()))),
    );
    let mut frames = body_frames(response.into_body());
    assert_eq!(
        frames
            .pop()
            .and_then(|last| last.ok()?.into_trailers().ok()),
        Some(trailers)
    );
    let page: Vec<u8> = frames
        .into_iter()
        .filter_map(|frame| frame.ok()?.into_data().ok())
        .flatten()
        .collect();
    let page = String::from_utf8(page).expect("text");
    assert!(
        page.contains(r#"<meta name="robots" content="noindex">"#) && page.ends_with("<p>text"),
        "{page}"
    );
    assert!(
        gate.metrics()
            .contains(r#"crawlgate_html_pages_total{outcome="rewritten",site="site"} 1"#)
    );
}

#[cfg(feature = "html")]
#[test]
fn broken_off_page_loses_no_byte() {
    let (gate, _directory) = open_gate(&format!("{TAGGED}html: meta\n"));
    let response = serve_page(
        &gate,
        "text/html",
        Pieces::from_texts(&["<!doctype html>", "<p>te"]).then(Err("gone")),
    );
    let mut frames = body_frames(response.into_body());
    assert_eq!(frames.pop().and_then(Result::err), Some("gone"));
    let page: Vec<u8> = frames
        .into_iter()
        .filter_map(|frame| frame.ok()?.into_data().ok())
        .flatten()
        .collect();
    assert!(
        page.ends_with(b"<p>te"),
        "{}",
        String::from_utf8_lossy(&page)
    );
}

#[cfg(feature = "html")]
#[test]
fn application_gets_no_conditions_and_codings() {
    let (gate, _directory) = open_gate(&format!("{TAGGED}html: meta\n"));
    let mut service = gate.layer(FnService(|request: Request<()>| {
        assert_eq!(request.headers()[header::ACCEPT_ENCODING], "identity");
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let mut asked = request("/page", BROWSER);
    asked
        .headers_mut()
        .insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br"));
    poll_ready_future(service.call(asked)).expect("a response");
}

#[test]
fn error_of_the_application_passes_and_is_recorded() {
    let (gate, _directory) = open_gate(TAGGED);
    let mut service = gate.layer(FnService(|_| Err::<Response<Pieces>, _>("down")));
    assert_eq!(
        poll_ready_future(service.call(request("/", BROWSER))).err(),
        Some("down")
    );
    let counted = r#"crawlgate_requests_total{action="pass",crawler="none",identity="none",kind="not_a_crawler",site="site"} 1"#;
    assert!(gate.metrics().contains(counted), "{}", gate.metrics());
    assert!(
        gate.metrics().contains("crawlgate_requests_in_flight 0"),
        "{}",
        gate.metrics()
    );
}

#[test]
fn blocked_request_is_counted_when_its_body_was_taken() {
    let (gate, _directory) =
        open_gate("purposes: { training: disallow }\nenforcement: { mode: enforce }\n");
    let mut service = gate.layer(FnService(|_| -> Result<Response<Pieces>, Infallible> {
        panic!("it got through")
    }));
    let response = poll_ready_future(service.call(request("/", GPTBOT))).expect("a response");
    assert_eq!(response.status(), 403);
    assert!(
        gate.metrics().contains("crawlgate_requests_in_flight 1"),
        "{}",
        gate.metrics()
    );
    assert!(body_text(response.into_body()).contains("GPTBot"));
    assert!(
        gate.metrics()
            .contains(r#"action="block",crawler="gptbot""#),
        "{}",
        gate.metrics()
    );
    assert!(
        gate.metrics().contains("crawlgate_requests_in_flight 0"),
        "{}",
        gate.metrics()
    );
}

#[test]
fn own_rules_of_the_application_are_merged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(
        directory.path().join("site.yaml"),
        "purposes: { training: disallow }\n",
    )
    .expect("a policy");
    let own = "User-agent: *\nDisallow: /own/\n";
    let gate = GateLayer::builder(directory.path())
        .robots_txt(own)
        .open()
        .expect("a gate");
    let mut service = gate.layer(FnService(|_| -> Result<Response<Pieces>, Infallible> {
        panic!("it got through")
    }));
    let robots = body_text(
        poll_ready_future(service.call(request("/robots.txt", BROWSER)))
            .expect("a response")
            .into_body(),
    );
    assert!(
        robots.contains("Disallow: /own/") && robots.contains("User-agent: GPTBot"),
        "{robots}"
    );
    // A site that comes later has them too.
    fs::write(directory.path().join("other.yaml"), "hosts: [b.example]\n").expect("a policy");
    drop(gate);
    let gate = GateLayer::builder(directory.path())
        .robots_txt(own)
        .open()
        .expect("a gate");
    let mut service = gate.layer(FnService(|_| -> Result<Response<Pieces>, Infallible> {
        panic!("it got through")
    }));
    let mut asked = request("/robots.txt", BROWSER);
    asked
        .headers_mut()
        .insert(header::HOST, HeaderValue::from_static("b.example"));
    let robots = body_text(
        poll_ready_future(service.call(asked))
            .expect("a response")
            .into_body(),
    );
    assert!(robots.contains("Disallow: /own/"), "{robots}");
}

#[test]
fn address_of_the_client_is_found_behind_trusted_proxies() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("site.yaml"), TAGGED).expect("a policy");
    let log = directory.path().join("access.jsonl");
    let gate = GateLayer::builder(directory.path())
        .peer(|extensions| extensions.get::<IpAddr>().copied())
        .trusted_proxies(["10.0.0.0/8".parse().expect("a network")])
        .access_log(&log)
        .open()
        .expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::from_texts(&["page"])))
    }));
    for (peer, named) in [
        ("10.0.0.1", "198.51.100.7"),
        ("192.0.2.9", "198.51.100.7"),
        ("10.0.0.1", "unknown, 10.0.0.2"),
    ] {
        let mut asked = request("/page", BROWSER);
        asked
            .extensions_mut()
            .insert::<IpAddr>(peer.parse().expect("an address"));
        asked
            .headers_mut()
            .insert("x-forwarded-for", HeaderValue::from_static(named));
        drop(body_text(
            poll_ready_future(service.call(asked))
                .expect("a response")
                .into_body(),
        ));
    }
    drop((service, gate));
    let lines = fs::read_to_string(&log).expect("the log");
    let clients: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("a line of JSON")["client"]
                .clone()
        })
        .collect();
    assert_eq!(clients, ["198.51.100.7", "192.0.2.9", "10.0.0.1"]);
}

#[test]
fn deleted_policy_stays_until_the_site_is_removed() {
    let (gate, directory) = open_gate("robots: { origin: replace }\n");
    let version = "crawlgate_policy_info{site=\"site\"";
    let error = gate.remove_site("site").expect_err("its file is there");
    assert_eq!(format!("{error:?}"), error.to_string());
    fs::remove_file(directory.path().join("site.yaml")).expect("deleted");
    gate.0.upkeep.reload();
    assert!(gate.metrics().contains(version), "{}", gate.metrics());
    gate.remove_site("site").expect("removed");
    assert!(!gate.metrics().contains(version));
}

#[test]
fn second_gate_on_a_state_directory_is_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (policies, state) = (
        directory.path().join("policies"),
        directory.path().join("state"),
    );
    fs::create_dir(&policies).expect("a directory");
    fs::write(policies.join("site.yaml"), TAGGED).expect("a policy");
    let open = || GateLayer::builder(&policies).state(&state).open();
    let first = open().expect("a gate");
    assert!(matches!(open(), Err(super::OpenError::State(_))));
    drop(first);
    assert!(open().is_ok(), "the first gave the directory back");
}

#[test]
fn application_gets_the_id_that_is_logged() {
    let (gate, _directory) = open_gate(TAGGED);
    let ids = std::cell::RefCell::new(Vec::new());
    let mut service = gate.layer(FnService(|request: Request<()>| {
        ids.borrow_mut()
            .extend(request.headers().get_all("x-request-id").iter().cloned());
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let mut forged = request("/page", BROWSER);
    forged
        .headers_mut()
        .insert("x-request-id", HeaderValue::from_static("forged"));
    for request in [request("/page", BROWSER), forged] {
        poll_ready_future(service.call(request)).expect("a response");
    }
    let ids = ids.borrow();
    assert!(
        ids.len() == 2 && ids.iter().all(|id| id.len() == 32) && ids[0] != ids[1],
        "{ids:?}"
    );
}

#[test]
fn application_learns_which_crawler_asks() {
    let (gate, _directory) = open_gate("robots: { groups: { agents: '*', disallow: [/cart/] } }\n");
    let seen = std::cell::RefCell::new(Vec::new());
    let mut service = gate.layer(FnService(|request: Request<()>| {
        let crawler = request.extensions().get::<super::CrawlerRequest>();
        seen.borrow_mut().push(crawler.cloned());
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    for agent in [BROWSER, GPTBOT] {
        poll_ready_future(service.call(request("/cart/", agent))).expect("a response");
    }
    let seen = seen.take();
    let [None, Some(crawler)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (&*crawler.crawler, crawler.identity, crawler.kind),
        ("gptbot", Identity::Unverified, Kind::Unproven)
    );
    assert_eq!(
        (crawler.action, crawler.would),
        (ActionKind::Pass, Some(ActionKind::Block))
    );
    assert_eq!(crawler.site(), "site");
    assert_eq!(crawler.rule().as_deref(), Some("Disallow: /cart/"));
    let source = crawler.rule_source().expect("a line of the policy");
    assert!(source.contains("site.yaml:1:"), "{source}");
    assert_eq!(crawler.request_id().len(), 32);
    let response = poll_ready_future(service.call(request("/robots.txt", GPTBOT)));
    let response = response.expect("a response");
    let crawler = response.extensions().get::<super::CrawlerRequest>();
    assert_eq!(
        crawler.map(|crawler| crawler.action),
        Some(ActionKind::RobotsTxt)
    );
}

#[test]
fn blocked_answer_has_the_id_that_is_logged() {
    let (gate, _directory) =
        open_gate("purposes: { training: disallow }\nenforcement: { mode: enforce }\n");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let blocked = poll_ready_future(service.call(request("/", GPTBOT))).expect("a response");
    let crawler = blocked.extensions().get::<super::CrawlerRequest>();
    let id = crawler.expect("a crawler").request_id().to_owned();
    assert_eq!((blocked.status().as_u16(), id.len()), (403, 32));
    assert_eq!(blocked.headers()["x-request-id"], id);
    assert!(!blocked.headers().contains_key(header::SERVER));
    // A cache may store robots.txt.
    let robots = poll_ready_future(service.call(request("/robots.txt", GPTBOT)));
    let robots = robots.expect("a response");
    assert!(!robots.headers().contains_key("x-request-id"));
}

#[test]
fn unusable_log_and_state_are_problems_and_no_errors() {
    let (_, directory) = open_gate(TAGGED);
    let file = directory.path().join("site.yaml");
    let gate = GateLayer::builder(directory.path())
        .access_log(file.join("access.jsonl"))
        .state(file.join("state"))
        .open()
        .expect("a gate");
    let problem_ids = || -> Vec<String> {
        let problems = gate.problems().into_iter();
        problems.map(|problem| problem.id.into_owned()).collect()
    };
    assert_eq!(problem_ids(), ["state-directory", "access-log"]);
    let counts = |problem: &str, count: usize| {
        let series = format!("crawlgate_problems{{problem=\"{problem}\"}} {count}");
        assert!(gate.metrics().contains(&series), "{}", gate.metrics());
    };
    counts("warning", 2);
    fs::write(&file, "enforcement: { mode: enfroce }\n").expect("a policy");
    gate.0.upkeep.reload();
    assert!(problem_ids().contains(&"bad-value".to_owned()));
    counts("policy_rejected", 1);
    fs::remove_file(&file).expect("deleted");
    gate.0.upkeep.reload();
    assert!(problem_ids().contains(&"removed".to_owned()));
    counts("policy_rejected", 0);
    counts("policy_removed", 1);
}

#[test]
fn application_gets_the_record_of_each_request() {
    let (_, directory) = open_gate(TAGGED);
    let (sender, receiver) = std::sync::mpsc::channel();
    let gate = GateLayer::builder(directory.path())
        .peer(|_| Some(IpAddr::from([192, 0, 2, 9])))
        .on_record(move |record| sender.send(record.clone()).expect("a receiver"))
        .truncate_addresses();
    let gate = gate.open().expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::from_texts(&["page"])))
    }));
    let response = poll_ready_future(service.call(request("/page", GPTBOT))).expect("a response");
    assert!(receiver.try_recv().is_err(), "the request is not over");
    drop(body_frames(response.into_body()));
    let record = receiver.try_recv().expect("a record");
    assert_eq!(record["crawler"], "gptbot");
    assert_eq!(
        (&record["status"], &record["bytes"]),
        (&200.into(), &4.into())
    );
    assert_eq!(record["client"], "192.0.2.0");
    assert_ne!(record["milliseconds"], 0.0);
}

#[test]
fn directory_without_a_policy_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("notes.txt"), "hosts: [a.example]\n").expect("a file");
    let Err(error @ OpenError::Policies(_)) = GateLayer::open(directory.path()) else {
        panic!("it was opened");
    };
    let path = directory.path().display().to_string();
    assert!(error.to_string().contains(&path), "{error}");
}

#[test]
fn gate_without_directory_and_policy_names_the_method() {
    let builder = GateBuilder::default();
    for builder in [builder.clone(), builder.policy("defaults.yaml", TAGGED)] {
        let Err(error @ OpenError::Policies(_)) = builder.open() else {
            panic!("it was opened");
        };
        assert!(error.to_string().contains("GateBuilder::policy"), "{error}");
    }
}

#[test]
fn crawler_without_an_address_is_blocked_for_good() {
    let policy = "crawlers: [{ token: GPTBot, networks: 20.0.0.0/8 }]\n\
                  enforcement: { mode: enforce, unverified: refuse }\n";
    let gate = GateBuilder::default()
        .peer(|extensions| extensions.get::<IpAddr>().copied())
        .policy("shop.yaml", policy);
    let gate = gate.open().expect("a gate");
    assert!(gate.problems().is_empty(), "{:?}", gate.problems());
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    for agent in [GPTBOT, "curl/8.5"] {
        let answered = poll_ready_future(service.call(request("/", agent))).expect("a response");
        let crawler = answered.extensions().get::<super::CrawlerRequest>();
        let identity = crawler.map(|crawler| crawler.identity);
        assert_eq!(identity, Some(Identity::Unverified), "{agent}");
        assert!(agent != GPTBOT || answered.status() == 403);
    }
    let problems = gate.problems();
    assert_eq!(crate::finding::finding_ids(&problems), ["no-peer-address"]);
    let mut with_address = request("/", GPTBOT);
    let address = IpAddr::from([20, 0, 0, 1]);
    with_address.extensions_mut().insert(address);
    poll_ready_future(service.call(with_address)).expect("a response");
    assert!(gate.problems().is_empty());
}

#[test]
fn robots_txt_that_nobody_requests_is_a_problem() {
    let builder = GateBuilder::default().peer(|_| Some(IpAddr::from([192, 0, 2, 9])));
    let gate = builder.policy("shop.yaml", TAGGED).open();
    let gate = gate.expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let mut send = |path: &str, agent: &'static str| {
        drop(poll_ready_future(service.call(request(path, agent))));
    };
    for _ in 0..1_000 {
        assert!(gate.problems().is_empty(), "{:?}", gate.problems());
        send("/", "curl/8.5");
        send("/", GPTBOT);
    }
    let problems = gate.problems();
    assert_eq!(
        crate::finding::finding_ids(&problems),
        ["no-robots-txt-request"]
    );
    send("/robots.txt", BROWSER);
    assert!(gate.problems().is_empty(), "{:?}", gate.problems());
}

#[test]
fn only_a_paused_robots_txt_is_a_request_for_it() {
    let policy = "pause: { audience: everyone, retry_after: 30m, robots_txt: pause }\n";
    let builder = GateBuilder::default().peer(|_| Some(IpAddr::from([192, 0, 2, 9])));
    let gate = builder.policy("shop.yaml", policy).open();
    let gate = gate.expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let mut is_reported_after = |path: &str| {
        let paused = poll_ready_future(service.call(request(path, GPTBOT)));
        assert_eq!(paused.expect("a response").status(), 503, "{path}");
        let problems = gate.problems();
        crate::finding::finding_ids(&problems).contains(&"no-robots-txt-request")
    };
    for _ in 0..999 {
        assert!(!is_reported_after("/"));
    }
    assert!(is_reported_after("/"));
    assert!(!is_reported_after("/robots.txt"));
}

#[test]
fn policy_of_the_program_needs_no_directory() {
    let policy = "purposes: { training: disallow }\nenforcement: { mode: enforce }\n";
    let builder = GateBuilder::default().peer(|_| Some(IpAddr::from([192, 0, 2, 9])));
    let gate = builder.policy("shop.yaml", policy).open();
    let gate = gate.expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let blocked = poll_ready_future(service.call(request("/", GPTBOT))).expect("a response");
    let crawler = blocked.extensions().get::<super::CrawlerRequest>();
    let crawler = crawler.expect("a crawler");
    assert_eq!(
        (crawler.site(), crawler.action),
        ("shop", ActionKind::Block)
    );
    gate.0.upkeep.reload();
    assert!(gate.problems().is_empty(), "{:?}", gate.problems());
    let broken = GateBuilder::default().policy("shop.yaml", "host: a.example\n");
    let Err(OpenError::Policies(error)) = broken.open() else {
        panic!("it was opened");
    };
    assert!(error.to_string().contains("shop.yaml:1:1"), "{error}");
    assert!(!error.to_string().ends_with('\n'), "{error}");
}

#[test]
fn defaults_of_the_program_are_no_site() {
    let shared = "purposes: { training: disallow }\nenforcement: { mode: enforce }\n";
    let builder = GateBuilder::default().peer(|_| Some(IpAddr::from([192, 0, 2, 9])));
    let builder = builder.policy("defaults.yaml", shared);
    for (hosts, status) in [("a.example", 403), ("b.example", 200)] {
        let policy = format!("hosts: [{hosts}]\n");
        let gate = builder.clone().policy("shop.yaml", &policy).open();
        let mut service = gate.expect("a gate").layer(FnService(|_| {
            Ok::<_, Infallible>(Response::new(Pieces::default()))
        }));
        let response = poll_ready_future(service.call(request("/", GPTBOT))).expect("a response");
        assert_eq!(response.status(), status, "{hosts}");
    }
}

#[test]
fn strict_gate_needs_every_policy() {
    let builder = GateBuilder::default()
        .policy("a.yaml", "hosts: [a.example]\n")
        .policy("b.yaml", "host: b.example\n");
    assert!(builder.clone().open().is_ok());
    let opened = builder.strict().open();
    assert!(matches!(opened, Err(OpenError::Policies(_))));
}

#[test]
fn broken_response_is_an_error_of_the_application() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("site.yaml"), TAGGED).expect("a policy");
    let log = directory.path().join("access.jsonl");
    let gate = GateLayer::builder(directory.path()).access_log(&log);
    let gate = gate.open().expect("a gate");
    let mut service = gate.layer(FnService(|request: Request<()>| {
        if request.uri().path() == "/none" {
            return Err("broken");
        }
        Ok(Response::new(
            Pieces::from_texts(&["page"]).then(Err("broken")),
        ))
    }));
    for path in ["/none", "/half"] {
        if let Ok(response) = poll_ready_future(service.call(request(path, BROWSER))) {
            drop(body_frames(response.into_body()));
        }
    }
    drop((service, gate));
    let lines = fs::read_to_string(&log).expect("the log");
    assert_eq!(
        lines.matches("\"error\":\"application_error\"").count(),
        2,
        "{lines}"
    );
}

#[test]
fn clock_file_shifts_the_time_of_a_gate() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let now = crate::clock::Clock::default().moment().now;
    let policy = format!(
        "pause: {{ from: {}, until: {} }}\n",
        now.plus(HOUR),
        now.plus(HOUR * 3)
    );
    fs::write(directory.path().join("site.yaml"), policy).expect("a policy");
    let clock = directory.path().join("clock");
    for (shift, expected) in [("elapsed 0s", 200), ("elapsed 2h", 503)] {
        fs::write(&clock, shift).expect("a clock");
        let gate = GateLayer::builder(directory.path()).clock_file(&clock);
        let mut service = gate.open().expect("a gate").layer(FnService(|_| {
            Ok::<_, Infallible>(Response::new(Pieces::default()))
        }));
        let response = poll_ready_future(service.call(request("/", GPTBOT)));
        assert_eq!(response.expect("a response").status(), expected, "{shift}");
    }
    fs::write(&clock, "tomorrow").expect("a clock");
    let refused = GateLayer::builder(directory.path())
        .clock_file(&clock)
        .open();
    assert!(matches!(refused, Err(OpenError::Clock(_))));
}

/// The steps of docs/library.md, which end a site's first day.
#[test]
fn violations_count_after_a_first_day_with_requests() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let policy = "purposes: { training: disallow }\n";
    fs::write(directory.path().join("site.yaml"), policy).expect("a policy");
    let file = directory.path().join("clock");
    fs::write(&file, "elapsed 0s").expect("a clock");
    let gate = GateLayer::builder(directory.path()).clock_file(&file);
    let gate = gate.open().expect("a gate");
    let mut service = gate.layer(FnService(|_| {
        Ok::<_, Infallible>(Response::new(Pieces::default()))
    }));
    let clock = &gate.0.upkeep.instance.clock;
    let started = clock.moment().now;
    let kinds = [0, 13, 25].map(|hours| {
        fs::write(&file, format!("elapsed {hours}h")).expect("a clock");
        while clock.moment().now < started.plus(Duration::from_secs(hours * 3_600)) {
            std::thread::yield_now();
        }
        // Without `hosts`, the policy is also for requests without a host.
        let mut asked = request("/", GPTBOT);
        asked.headers_mut().remove(header::HOST);
        let response = poll_ready_future(service.call(asked)).expect("a response");
        let crawler = response.extensions().get::<super::CrawlerRequest>();
        crawler.expect("a crawler").kind
    });
    assert_eq!(kinds, [Kind::Unproven, Kind::Unproven, Kind::Violation]);
}

#[test]
fn start_logs_its_sites_first_day_and_unused_policies() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let policies = directory.path().join("policies");
    fs::create_dir(&policies).expect("a directory");
    fs::write(policies.join("site.yaml"), TAGGED).expect("a policy");
    let clock = directory.path().join("clock");
    let log = directory.path().join("log");
    let file = fs::File::create(&log).expect("a file");
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::sync::Arc::new(file))
        .finish();
    // With one subscriber alone, tracing-core 0.1 asks that of the thread which comes to a line
    // first, and a thread that has none turns the line off for all.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let levels = tracing::subscriber::with_default(subscriber, || {
        ["elapsed 0s", "elapsed 2h"].map(|shift| {
            fs::write(&clock, shift).expect("a clock");
            let builder = GateLayer::builder(&policies).policy("site.yaml", TAGGED);
            let builder = builder.state(directory.path().join("state"));
            drop(builder.clock_file(&clock).open().expect("a gate"));
            let lines = fs::read_to_string(&log).expect("lines");
            ["INFO", "WARN"].map(|level| lines.matches(level).count())
        })
    });
    assert_eq!(levels, [[1, 1], [2, 3]], "the second is another first day");
}
