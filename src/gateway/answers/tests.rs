use super::*;

fn request(accept: &str) -> RequestHeader {
    let mut request = RequestHeader::build("GET", b"/", None).unwrap();
    request.insert_header(header::ACCEPT, accept).unwrap();
    request
}

fn reason() -> Reason {
    Reason {
        crawler: "GPTBot".to_string(),
        rule: Some("Disallow: /<script>alert(1)</script>&'\"".to_string()),
        group: Some("GPTBot, <b>".to_string()),
        kind: Kind::Unproven,
        retry_after: None,
    }
}

fn refused() -> Answer {
    Answer { status: 403, retry_after: None, body: None }
}

fn field(reply: &Reply, name: &str) -> String {
    reply.header.headers.get(name).map(|value| value.to_str().unwrap().to_string()).unwrap_or_default()
}

fn body(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.body).unwrap()
}

#[test]
fn a_block_names_the_rule_and_points_to_robots_txt_in_every_form() {
    for (accept, content_type) in [
        ("*/*", "text/plain; charset=utf-8"),
        ("text/html", "text/html; charset=utf-8"),
        ("application/json", "application/json"),
    ] {
        let reply = block(&refused(), &reason(), &request(accept)).unwrap();
        assert_eq!(reply.header.status, 403);
        assert_eq!(field(&reply, "content-type"), content_type);
        assert_eq!(field(&reply, "cache-control"), "no-store");
        assert_eq!(field(&reply, "server"), "crawlgate");
        assert_eq!(field(&reply, "content-length"), reply.body.len().to_string());
        assert!(body(&reply).contains("Disallow: /") && body(&reply).contains("/robots.txt"), "{}", body(&reply));
    }
}

#[test]
fn nothing_from_a_policy_gets_into_html_unescaped() {
    let reply = block(&refused(), &reason(), &request("text/html")).unwrap();
    assert!(!body(&reply).contains("<script>") && !body(&reply).contains("<b>"), "{}", body(&reply));
    assert!(body(&reply).contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&quot;"));
}

#[test]
fn json_can_be_read_by_a_program() {
    let answer = Answer { status: 503, retry_after: Some(60), body: None };
    let reply = block(&answer, &reason(), &request("application/json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(json["status"], 503);
    assert_eq!(json["error"], "disallowed_by_robots_txt");
    assert_eq!(json["crawler"], "GPTBot");
    assert_eq!(json["retry_after"], 60);
    assert_eq!(field(&reply, "retry-after"), "60");
}

#[test]
fn the_owners_own_body_is_sent_as_it_is_written() {
    for (text, content_type) in
        [("Write to us.", "text/plain; charset=utf-8"), ("\n<p>Write to us.", "text/html; charset=utf-8")]
    {
        let answer = Answer { status: 403, retry_after: None, body: Some(text.into()) };
        let reply = block(&answer, &reason(), &request("application/json")).unwrap();
        assert_eq!(body(&reply), text);
        assert_eq!(field(&reply, "content-type"), content_type);
    }
}

#[test]
fn a_pause_says_when_to_come_back() {
    let reply = pause(1800, &request("*/*")).unwrap();
    assert_eq!(reply.header.status, 503);
    assert_eq!(field(&reply, "retry-after"), "1800");
    assert_eq!(field(&reply, "cache-control"), "no-store");
}

#[test]
fn a_wrong_method_is_told_the_right_ones() {
    let reply = refusal(Refusal::Trace, &request("*/*")).unwrap();
    assert_eq!(reply.header.status, 405);
    assert!(field(&reply, "allow").contains("GET") && !field(&reply, "allow").contains("TRACE"));
}

#[test]
fn tags_are_field_lines_of_their_own() {
    let mut header = ResponseHeader::build(200, None).unwrap();
    append_lines(&mut header, &["noindex".to_string(), "bad\nline".to_string(), "googlebot: nofollow".to_string()])
        .unwrap();
    let lines: Vec<_> = header.headers.get_all("x-robots-tag").iter().collect();
    assert_eq!(lines, ["noindex", "googlebot: nofollow"]);
}
