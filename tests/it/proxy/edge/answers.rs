//! One implementation of each answer: over HTTP/1 the edge sends it, over HTTP/2 the gateway, and
//! both send the same.

use crate::proxy::support::{BINGBOT, BROWSER, GPTBOT, Gate, HOST, Http2, Origin, Response, Setup};

const POLICY: &str = r#"
robots:
  origin: replace
  license: https://shop.example/license.xml
  groups:
    - { agents: ["*"], disallow: [/cart/] }
    - { agents: [GPTBot], disallow: [/] }
    - { agents: [bingbot], disallow: [/cart/], crawl_delay: 1h }
enforcement:
  mode: enforce
  agents: { CCBot: { unlicensed: 402 } }
tdm: { paths: [/], reservation: yes }
indexing:
  - { paths: [/], status: [402, 403, 405, 429, 503], tag: noindex }
"#;

/// Fields that only one version of HTTP has, and the time.
const APART: [&str; 2] = ["connection", "date"];

fn fields(response: &Response) -> Vec<(String, String)> {
    let fields = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    fields
        .filter(|(name, _)| !APART.contains(&name.as_str()))
        .collect()
}

/// Asks at both entry points, and compares byte by byte.
fn both(gate: &Gate, http2: &Http2, method: &str, target: &str, asked: &[(&str, &str)]) -> u16 {
    let lines: String = asked
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let (edge, gateway) = (
        gate.ask(method, HOST, target, &lines),
        http2.ask(method, HOST, target, asked),
    );
    assert_eq!(edge.status, gateway.status, "{method} {target} {asked:?}");
    assert_eq!(
        fields(&edge),
        fields(&gateway),
        "{method} {target} {asked:?}"
    );
    assert!(edge.body == gateway.body, "{method} {target} {asked:?}");
    for (response, name) in [(&edge, "date"), (&edge, "connection"), (&gateway, "date")] {
        assert_eq!(
            response.fields(name).len(),
            1,
            "{name} of {method} {target}"
        );
    }
    edge.status
}

#[test]
fn edge_and_gateway_answer_alike() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("site", POLICY).start();
    let http2 = Http2::open(gate.address);
    let etag = gate
        .get(HOST, "/robots.txt", "")
        .field("etag")
        .expect("an entity tag")
        .to_owned();
    let mut seen = std::collections::BTreeMap::new();
    for method in ["GET", "HEAD", "POST", "OPTIONS"] {
        for target in [
            "/",
            "/cart/1",
            "/robots.txt",
            "/robots.txt?a",
            "/.well-known/tdmrep.json",
            "http://shop.example/cart/",
        ] {
            for agent in [GPTBOT, "CCBot/2.0", "Googlebot/2.1", BROWSER] {
                for accept in ["", "text/html", "application/json"] {
                    for condition in ["\"other\"", etag.as_str()] {
                        let asked = [
                            ("user-agent", agent),
                            ("accept", accept),
                            ("if-none-match", condition),
                        ];
                        // Over HTTP/2 a target has no absolute form.
                        if target.starts_with("http") {
                            continue;
                        }
                        *seen
                            .entry(both(&gate, &http2, method, target, &asked))
                            .or_insert(0) += 1;
                    }
                }
            }
        }
    }
    for status in [200, 304, 402, 403, 405] {
        assert!(seen.contains_key(&status), "{status} in {seen:?}");
    }
    assert!(
        gate.command(&["pause", "--for", "10m", "--retry-after", "90"])
            .status
            .success()
            || gate.command(&["pause", "--for", "10m"]).status.success()
    );
    assert_eq!(
        both(&gate, &http2, "GET", "/", &[("user-agent", BINGBOT)]),
        503
    );
    assert_eq!(
        both(
            &gate,
            &http2,
            "GET",
            "/robots.txt",
            &[("user-agent", BINGBOT)]
        ),
        200
    );
}

#[test]
fn each_request_is_judged_once_whichever_way_it_goes() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("site", POLICY).start();
    let agent = [("user-agent", BINGBOT)];
    let http1 = |target: &str| {
        gate.get(HOST, target, &format!("User-Agent: {BINGBOT}\r\n"))
            .status
    };
    let http2 = Http2::open(gate.address);
    assert_eq!(http1("/robots.txt"), 200);
    gate.wait_for_metric(
        "crawlgate_robots_txt_total{crawler=\"bingbot\",site=\"site\",status=\"200\"}",
        1.0,
    );
    // A second judgement of the first page would find it too fast.
    assert_eq!(http1("/a"), 200);
    assert_eq!(http1("/b"), 429);
    assert_eq!(http2.get(HOST, "/c", &agent).status, 429);
    gate.wait_for_metric(
        "crawlgate_requests_total{action=\"slow\",crawler=\"bingbot\",kind=\"unproven\",site=\"site\"}",
        2.0,
    );
}

#[test]
fn client_that_leaves_before_its_robots_txt_was_served_none() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).policy("site", POLICY).start();
    let mut connection = gate.connect();
    connection.send(&format!(
        "GET /robots.txt HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: {BINGBOT}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(connection.response("GET").status, 200);
    gate.wait_for_metric(
        "crawlgate_robots_txt_total{crawler=\"bingbot\",site=\"site\",status=\"200\"}",
        1.0,
    );
    gate.wait_for_metric("crawlgate_requests_in_flight", 0.0);
}
