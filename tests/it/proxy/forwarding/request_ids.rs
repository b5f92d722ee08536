//! Ids of requests and traces on their way: from the client or a trusted proxy, to the origin, the
//! logs and error pages.

use crate::proxy::support::{GPTBOT, Gate, HOST, Http2, Origin, Response, Setup, eventually, read};
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SETTINGS: &str = "logs: { access: access.log, events: events.log }";
const ENFORCED: &str = "\
hosts: [shop.example]
robots: { origin: replace, groups: [{ agents: GPTBot, disallow: / }] }
enforcement: { mode: enforce }
";

/// How a request comes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Forwarder,
    Pingora,
    Http2,
}
const WAYS: [Way; 3] = [Way::Forwarder, Way::Pingora, Way::Http2];

fn gate(origin: &Origin, way: Way, settings: &str) -> Gate {
    let direct = if matches!(way, Way::Pingora) {
        "off"
    } else {
        "on"
    };
    Setup::before(origin.address)
        .settings(&format!(
            "{SETTINGS}\ndirect_forwarding: {direct}\n{settings}"
        ))
        .start()
}

fn get(gate: &Gate, way: Way, fields: &[(&str, &str)]) -> Response {
    if matches!(way, Way::Http2) {
        return Http2::open(gate.address).get(HOST, "/", fields);
    }
    let lines: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    gate.get(HOST, "/", &lines)
}

/// The line of a log with this number.
fn line(gate: &Gate, log: &str, number: usize) -> Value {
    eventually("the line", || {
        serde_json::from_str(read(&gate.path(log)).lines().nth(number)?).ok()
    })
}

fn is_own(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[test]
fn id_of_a_client_is_replaced_and_origin_and_log_have_the_same() {
    for way in WAYS {
        let origin = Origin::plain();
        let gate = gate(&origin, way, "");
        let mut seen = Vec::new();
        for (number, fields) in [
            &[][..],
            &[("x-request-id", "forged")],
            &[("x-request-id", "a"), ("x_request_id", "b")],
        ]
        .into_iter()
        .enumerate()
        {
            let response = get(&gate, way, fields);
            assert_eq!(
                (response.status, response.field("x-request-id")),
                (200, None),
                "{way:?}"
            );
            let sent = origin.last();
            let ids: Vec<&String> = sent
                .headers
                .iter()
                .filter(|(name, _)| name.replace('_', "-").eq_ignore_ascii_case("x-request-id"))
                .map(|(_, value)| value)
                .collect();
            assert!(ids.len() == 1 && is_own(ids[0]), "{way:?}: {ids:?}");
            assert_eq!(
                line(&gate, "access.log", number)["request_id"],
                ids[0].as_str(),
                "{way:?}"
            );
            seen.push(ids[0].clone());
        }
        seen.dedup();
        assert_eq!(seen.len(), 3, "each request has its own: {way:?}");
    }
}

#[test]
fn id_of_a_trusted_proxy_is_taken_where_it_is_a_good_one() {
    for way in WAYS {
        let origin = Origin::plain();
        let gate = gate(&origin, way, "trusted_proxies: [127.0.0.0/8]");
        let long = "x".repeat(129);
        for (number, (said, is_taken)) in [
            ("Root=1-67891233-abcdef", true),
            ("<script>", false),
            ("two words", false),
            (&long, false),
        ]
        .into_iter()
        .enumerate()
        {
            get(&gate, way, &[("x-request-id", said)]);
            let sent = origin.last();
            let id = sent.field("x-request-id").expect("an id");
            assert!(
                if is_taken { id == said } else { is_own(id) },
                "{way:?}: {said}: {id}"
            );
            assert_eq!(
                line(&gate, "access.log", number)["request_id"],
                id,
                "{way:?}"
            );
        }
    }
}

#[test]
fn trace_is_passed_on_and_logged_and_a_malformed_one_is_dropped() {
    for way in WAYS {
        let origin = Origin::plain();
        let gate = gate(&origin, way, "");
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let state = ("tracestate", "congo=t61rcWkgMzE");
        get(&gate, way, &[("traceparent", &good), state]);
        let sent = origin.last();
        assert_eq!(
            (sent.field("traceparent"), sent.field("tracestate")),
            (Some(good.as_str()), Some(state.1)),
            "{way:?}"
        );
        assert_eq!(line(&gate, "access.log", 0)["trace_id"], TRACE, "{way:?}");
        let upper = good.to_ascii_uppercase();
        for (number, fields) in [
            &[("traceparent", "00-1"), state][..],
            &[("traceparent", &upper), state],
            &[("traceparent", &good), ("traceparent", &good), state],
        ]
        .into_iter()
        .enumerate()
        {
            get(&gate, way, fields);
            let sent = origin.last();
            assert_eq!(
                (sent.field("traceparent"), sent.field("tracestate")),
                (None, None),
                "{way:?}: {fields:?}"
            );
            assert_eq!(
                line(&gate, "access.log", number + 1).get("trace_id"),
                None,
                "{way:?}"
            );
        }
    }
}

#[test]
fn error_page_has_the_id_that_the_log_has() {
    for way in WAYS {
        let origin = Origin::plain();
        let direct = if matches!(way, Way::Pingora) {
            "off"
        } else {
            "on"
        };
        let gate = Setup::before(Origin::nowhere())
            .settings(&format!("{SETTINGS}\ndirect_forwarding: {direct}"))
            .start();
        for (number, accept) in ["text/html", "text/plain", "application/json"]
            .into_iter()
            .enumerate()
        {
            let response = get(&gate, way, &[("accept", accept)]);
            let id = response.field("x-request-id").expect("an id").to_owned();
            assert!(
                response.status == 502 && response.text().contains(&id),
                "{way:?}: {}",
                response.text()
            );
            assert_eq!(
                line(&gate, "access.log", number)["request_id"],
                id.as_str(),
                "{way:?}"
            );
        }
        drop(origin);
    }
}

#[test]
fn own_page_of_a_site_shows_the_id() {
    let setup = Setup::before(Origin::nowhere());
    std::fs::write(
        setup.policies().join("sorry.html"),
        "<p>{{status}} {{request_id}}",
    )
    .expect("a page");
    let gate = setup
        .policy(
            "site",
            "hosts: [shop.example]\nanswers: { failure: sorry.html }\n",
        )
        .start();
    let response = gate.get("shop.example", "/", "Accept: text/html\r\n");
    let id = response.field("x-request-id").expect("an id");
    assert_eq!(response.text(), format!("<p>502 Bad Gateway {id}"));
}

#[test]
fn refused_head_is_answered_and_logged_with_an_id() {
    let origin = Origin::plain();
    let gate = gate(&origin, Way::Forwarder, "trusted_proxies: [127.0.0.0/8]");
    let mut connection = gate.connect();
    connection.send("GET / HTTP/1.1\r\nX-Request-Id: of-the-proxy\r\n\r\n");
    let response = connection.response("GET");
    assert_eq!(
        (response.status, response.field("x-request-id")),
        (400, Some("of-the-proxy"))
    );
    assert_eq!(line(&gate, "access.log", 0)["request_id"], "of-the-proxy");
}

#[test]
fn event_names_the_request_and_its_trace_as_the_access_log_does() {
    let origin = Origin::plain();
    let setup = Setup::before(origin.address)
        .settings(SETTINGS)
        .policy("shop", ENFORCED);
    let gate = setup.start();
    let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let response = gate.get(
        "shop.example",
        "/",
        &format!("User-Agent: {GPTBOT}\r\ntraceparent: {trace}\r\n"),
    );
    let (access, event) = (line(&gate, "access.log", 0), line(&gate, "events.log", 0));
    assert_eq!(
        (&access["request_id"], &access["trace_id"]),
        (&event["request_id"], &event["trace_id"])
    );
    assert_eq!(event["trace_id"], TRACE);
    assert_eq!(response.status, access["status"]);
}
