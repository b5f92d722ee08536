//! Tests of the HTTP responses that crawlgate makes from a policy, down to their bytes.

use super::field::REQUEST_ID;
use super::*;
use crate::crawlers::{Claim, Registry};
use crate::heads::X_ROBOTS_TAG;
use crate::policy::origin::OriginRobotsAvailability;
use crate::policy::{IncludedFiles, SiteEntry, Snapshot};
use crate::record::SiteJudgement;
use crate::time::Timestamp;
use crate::verdict::{
    Action, CachedVersions, Decision, DecisionScratch, Identity, PolicyDependencies, RequestFacts,
    SiteClaim, decide, load_site, load_site_at,
};
use crate::yaml::SourceFile;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(784_111_777);
const DATE: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const GPTBOT: &str = "GPTBot/1.0";
const POLICY: &str = "robots:\n  origin: replace\n  groups: [{ agents: '*', disallow: [\"/a&'b\"] }]\n\
                      enforcement: { mode: enforce }\ntdm:\n  - { reservation: yes }\n\
                      indexing:\n  - { paths: [/robots.txt, '/a'], tag: noindex }\n";

struct World {
    snapshot: Arc<Snapshot>,
    answers: AnswerCache,
}

impl World {
    fn from_policy(text: &str) -> World {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let (site, findings) = load_site("shop", &source, Registry::builtin());
        let site = site.unwrap_or_else(|| panic!("{findings:?}"));
        let snapshot = Arc::new(Snapshot::new(vec![SiteEntry::new(site, NOW)], 1));
        World {
            snapshot,
            answers: AnswerCache::default(),
        }
    }

    fn decision(&self, target: &str) -> Decision {
        let facts = RequestFacts {
            host: b"shop.example",
            target: target.as_bytes(),
            method: b"GET",
            user_agent: GPTBOT.as_bytes(),
            client: None,
            identity: Identity::Unverified,
            now: NOW,
        };
        let claimant =
            SiteClaim::find(&self.snapshot, Registry::builtin(), &facts).expect("a site");
        let cached_versions = CachedVersions::for_any_crawler(claimant, NOW);
        decide(
            &self.snapshot,
            Registry::builtin(),
            &facts,
            &cached_versions,
            &mut DecisionScratch::default(),
        )
        .expect("a site")
    }

    fn answer_to(&self, decision: &Decision, method: &Method, headers: &HeaderMap) -> Answer {
        let judged = SiteJudgement {
            may_confirm_by_date: true,
            ..SiteJudgement::for_test(decision.clone(), self.snapshot.clone())
        };
        let context = AnswerContext {
            registry: Registry::builtin(),
            judged: &judged,
            now: NOW,
        };
        self.answers
            .answer(&context, &RequestToAnswer { method, headers })
            .expect("an answer")
    }

    fn get(&self, target: &str, headers: &HeaderMap) -> Answer {
        self.answer_to(&self.decision(target), &Method::GET, headers)
    }
}

fn header_map(fields: &[(HeaderName, &str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
        .collect()
}

fn accept(value: &str) -> HeaderMap {
    header_map(&[(header::ACCEPT, value)])
}

fn http1_text(answer: &Answer) -> String {
    let mut out = Vec::new();
    answer.write_http1(DATE, true, &mut out);
    String::from_utf8(out).unwrap()
}

fn field_value(answer: &Answer, field: HeaderName) -> &str {
    answer
        .values(field)
        .next()
        .map_or("", |value| value.to_str().unwrap())
}

fn body_text(answer: &Answer) -> &str {
    std::str::from_utf8(answer.body()).unwrap()
}

#[test]
fn robots_txt_answer_has_the_exact_bytes() {
    let world = World::from_policy(POLICY);
    let answer = world.get("/robots.txt", &HeaderMap::new());
    let file = &world.snapshot.sites()[0].site.robots_txt;
    let expected = format!(
        "HTTP/1.1 200 OK\r\nServer: crawlgate\r\nETag: {}\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Cache-Control: {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         X-Robots-Tag: noindex\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\r\n{}",
        file.etag,
        file.cache_control,
        file.body.len(),
        std::str::from_utf8(&file.body).unwrap()
    );
    assert_eq!(http1_text(&answer), expected);
    assert_eq!(
        answer.body().as_ptr(),
        file.body.as_ptr(),
        "the bytes of the snapshot, not a copy"
    );
}

impl World {
    /// With these pages beside the policy.
    fn with_pages(text: &str, pages: &[(&str, &str)]) -> World {
        let source = SourceFile {
            name: "shop.yaml".into(),
            text: text.into(),
        };
        let files = pages
            .iter()
            .map(|(name, html)| ((*name).to_owned(), html.as_bytes().into()));
        let surroundings = PolicyDependencies {
            origin: &OriginRobotsAvailability::Missing,
            files: &IncludedFiles(files.collect()),
        };
        let (site, findings) =
            load_site_at("shop", &source, surroundings, Registry::builtin(), NOW);
        let site = site.unwrap_or_else(|| panic!("{findings:?}"));
        let snapshot = Arc::new(Snapshot::new(vec![SiteEntry::new(site, NOW)], 1));
        World {
            snapshot,
            answers: AnswerCache::default(),
        }
    }

    fn pause_answer(&self, claim: Claim, headers: &HeaderMap) -> Answer {
        let decision = Decision {
            action: Action::Pause { retry_after: 1_800 },
            claim,
            ..self.decision("/")
        };
        self.answer_to(&decision, &Method::GET, headers)
    }

    fn failure_answer(&self, status: u16, headers: &HeaderMap) -> Answer {
        let decision = self.decision("/");
        let judged = Some((&decision, &self.snapshot.sites()[0]));
        let request = &RequestToAnswer {
            method: &Method::GET,
            headers,
        };
        origin_failure(
            status,
            &UnansweredRequest {
                request,
                judged,
                request_id: b"id-1",
            },
        )
    }
}

#[test]
fn pages_for_visitors_do_not_mention_crawlers() {
    let world = World::from_policy(POLICY);
    for format in ["text/html", "text/plain", "application/json"] {
        let headers = accept(format);
        let answers = [
            world.pause_answer(Claim::Visitor, &headers),
            world.failure_answer(502, &headers),
            world.failure_answer(504, &headers),
        ];
        for answer in answers {
            let text = body_text(&answer).to_ascii_lowercase();
            assert!(
                !text.contains("crawler") && !text.contains("robots"),
                "{format}: {text}"
            );
            assert!(text.contains("please"), "{format}: {text}");
        }
        let crawler = world.pause_answer(world.decision("/").claim, &headers);
        assert!(body_text(&crawler).contains("/robots.txt"), "{format}");
    }
    assert!(
        body_text(&world.pause_answer(Claim::Visitor, &accept("text/html")))
            .contains("come back in 30 min.")
    );
}

#[test]
fn own_pages_replace_only_html() {
    let policy =
        format!("{POLICY}answers: {{ pause: p.html, failure: f.html, refusal: r.html }}\n");
    let pages = [
        ("p.html", "<h1>Back soon</h1>"),
        ("f.html", "<h1>{{status}}</h1><p>{{reason}}"),
        ("r.html", "No: {{reason}}"),
    ];
    let world = World::with_pages(&policy, &pages);
    let html = accept("text/html");
    for claim in [Claim::Visitor, world.decision("/").claim] {
        let paused = world.pause_answer(claim, &html);
        assert_eq!(
            (
                body_text(&paused),
                field_value(&paused, header::RETRY_AFTER)
            ),
            ("<h1>Back soon</h1>", "1800")
        );
        assert_eq!(
            field_value(&paused, header::CONTENT_TYPE),
            "text/html; charset=utf-8"
        );
    }
    let failed = world.failure_answer(502, &html);
    assert!(
        body_text(&failed)
            .strip_prefix("<h1>502 Bad Gateway</h1><p>")
            .is_some_and(|reason| !reason.is_empty() && !reason.contains("{{")),
        "{}",
        body_text(&failed)
    );
    assert_eq!(
        world.failure_answer(504, &html).status(),
        StatusCode::GATEWAY_TIMEOUT
    );
    let refused = world.get("/a&'b", &html);
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let reason = body_text(&refused)
        .strip_prefix("No: ")
        .expect("the own page");
    assert!(
        reason.contains("GPTBot") && !reason.contains('<'),
        "{reason}"
    );
    for other in ["application/json", "*/*"] {
        assert!(
            !body_text(&world.get("/a&'b", &accept(other))).starts_with("No: "),
            "{other}"
        );
        assert!(
            !body_text(&world.failure_answer(502, &accept(other))).contains("<h1>"),
            "{other}"
        );
    }
}

#[test]
fn missing_own_page_leaves_crawlgates_page() {
    let world = World::with_pages(&format!("{POLICY}answers: {{ refusal: r.html }}\n"), &[]);
    assert!(body_text(&world.get("/a&'b", &accept("text/html"))).contains("Rule:"));
}

#[test]
fn head_gets_the_head_of_get() {
    let world = World::from_policy(POLICY);
    let decision = world.decision("/robots.txt");
    let get = http1_text(&world.answer_to(&decision, &Method::GET, &HeaderMap::new()));
    let head = http1_text(&world.answer_to(&decision, &Method::HEAD, &HeaderMap::new()));
    assert_eq!(head, get[..get.find("\r\n\r\n").unwrap() + 4]);
    let block = world.answer_to(&world.decision("/a&'b"), &Method::HEAD, &HeaderMap::new());
    assert!(block.body().is_empty() && field_value(&block, header::CONTENT_LENGTH) != "0");
}

#[test]
fn not_modified_has_validators_and_no_length() {
    let world = World::from_policy(POLICY);
    let file = &world.snapshot.sites()[0].site.robots_txt;
    for condition in [
        header_map(&[(header::IF_NONE_MATCH, &file.etag)]),
        header_map(&[(header::IF_MODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT")]),
    ] {
        let answer = world.get("/robots.txt", &condition);
        assert_eq!(
            http1_text(&answer),
            format!(
                "HTTP/1.1 304 Not Modified\r\nServer: crawlgate\r\nETag: {}\r\n\
                 Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: {}\r\n\
                 X-Robots-Tag: noindex\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n\r\n",
                file.etag, file.cache_control
            )
        );
    }
}

#[test]
fn other_methods_get_405_with_allow() {
    let world = World::from_policy(POLICY);
    let answer = world.answer_to(
        &world.decision("/robots.txt"),
        &Method::POST,
        &HeaderMap::new(),
    );
    assert_eq!(
        (answer.status(), field_value(&answer, header::ALLOW)),
        (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD")
    );
    let request = RequestToAnswer {
        method: &Method::TRACE,
        headers: &HeaderMap::new(),
    };
    let trace = rejection_answer(Rejection::Method, &request);
    assert_eq!(trace.status(), 405);
    assert!(
        field_value(&trace, header::ALLOW).contains("GET")
            && !field_value(&trace, header::ALLOW).contains("TRACE")
    );
}

#[test]
fn refusal_names_the_rule_in_every_format() {
    let world = World::from_policy(POLICY);
    for (format, content_type) in [
        ("*/*", "text/plain; charset=utf-8"),
        ("text/html", "text/html; charset=utf-8"),
        ("application/json", "application/json"),
    ] {
        let answer = world.get("/a&'b", &accept(format));
        assert_eq!(answer.status(), 403);
        assert_eq!(field_value(&answer, header::CONTENT_TYPE), content_type);
        assert_eq!(field_value(&answer, header::CACHE_CONTROL), "no-store");
        assert_eq!(field_value(&answer, X_ROBOTS_TAG), "noindex");
        assert_eq!(
            field_value(&answer, header::CONTENT_LENGTH),
            answer.body().len().to_string()
        );
        assert!(
            body_text(&answer).contains("GPTBot") && body_text(&answer).contains("/robots.txt"),
            "{}",
            body_text(&answer)
        );
        let again = world.get("/a&'b", &accept(format));
        assert_eq!(
            again.body().as_ptr(),
            answer.body().as_ptr(),
            "prepared and sent again"
        );
    }
    let html = world.get("/a&'b", &accept("text/html"));
    assert!(
        body_text(&html).contains("<code>Disallow: /a&amp;&#39;b</code> for <code>*</code>"),
        "{}",
        body_text(&html)
    );
    let text = world.get("/a&'b", &HeaderMap::new());
    assert!(
        body_text(&text).contains("\nRule:  Disallow: /a&'b\nGroup: *\n"),
        "{}",
        body_text(&text)
    );
}

#[test]
fn cached_refusals_belong_to_their_snapshot() {
    let mut world = World::from_policy(POLICY);
    let first = world.get("/a&'b", &HeaderMap::new());
    let other = World::from_policy(
        "enforcement: { mode: enforce, disallowed: { status: 404, body: Gone. } }\n\
                           robots: { origin: replace, groups: [{ agents: '*', disallow: [/a] }] }\n",
    );
    world.snapshot = other.snapshot;
    let second = world.get("/a", &HeaderMap::new());
    assert_eq!(
        (
            first.status().as_u16(),
            second.status().as_u16(),
            body_text(&second)
        ),
        (403, 404, "Gone.")
    );
}

#[test]
fn slow_down_and_pause_have_retry_after() {
    let world = World::from_policy(POLICY);
    let mut decision = world.decision("/");
    for (action, status, seconds) in [
        (Action::Pause { retry_after: 1800 }, 503, "1800"),
        (Action::Pause { retry_after: 1799 }, 503, "1799"),
        (
            Action::Slow {
                answer: 0,
                retry_after: 7,
            },
            403,
            "7",
        ),
        (
            Action::Slow {
                answer: 0,
                retry_after: 6,
            },
            403,
            "6",
        ),
    ] {
        decision.action = action;
        let answer = world.answer_to(&decision, &Method::GET, &accept("application/json"));
        let json: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!(
            (
                answer.status().as_u16(),
                field_value(&answer, header::RETRY_AFTER)
            ),
            (status, seconds)
        );
        assert_eq!(json["retry_after"].to_string(), seconds);
        assert!(http1_text(&answer).contains(&format!("\r\nRetry-After: {seconds}\r\n")));
    }
}

#[test]
fn owners_body_is_sent_as_it_is_written() {
    for (text, content_type) in [
        ("Write to us.", "text/plain; charset=utf-8"),
        ("<p>Write to us.", "text/html; charset=utf-8"),
    ] {
        let world = World::from_policy(&format!(
            "enforcement: {{ mode: enforce, disallowed: {{ status: 403, body: \"{text}\" }} }}\n\
             robots: {{ origin: replace, groups: [{{ agents: '*', disallow: [/a] }}] }}\n"
        ));
        let answer = world.get("/a", &accept("application/json"));
        assert_eq!(
            (
                body_text(&answer),
                field_value(&answer, header::CONTENT_TYPE)
            ),
            (text, content_type)
        );
    }
}

#[test]
fn licence_demand_has_a_challenge() {
    let world = World::from_policy(POLICY);
    let decision = Decision {
        action: Action::License { status: 402 },
        ..world.decision("/")
    };
    let answer = world.answer_to(&decision, &Method::GET, &HeaderMap::new());
    assert_eq!(answer.status(), 402);
    assert!(field_value(&answer, header::WWW_AUTHENTICATE).starts_with("License error="));
}

#[test]
fn tdmrep_has_an_entity_tag() {
    let world = World::from_policy(POLICY);
    let whole = world.get("/.well-known/tdmrep.json", &HeaderMap::new());
    assert_eq!(
        (
            whole.status().as_u16(),
            field_value(&whole, header::CONTENT_TYPE)
        ),
        (200, "application/json")
    );
    let condition = header_map(&[(header::IF_NONE_MATCH, field_value(&whole, header::ETAG))]);
    let fresh = world.get("/.well-known/tdmrep.json", &condition);
    assert_eq!((fresh.status().as_u16(), fresh.body().len()), (304, 0));
}

#[test]
fn failures_close_the_connection_and_carry_tags_and_ids() {
    let world = World::from_policy("indexing: [{ status: [5xx], tag: noindex }]\n");
    let decision = world.decision("/");
    let judged = Some((&decision, &world.snapshot.sites()[0]));
    let headers = HeaderMap::new();
    for (status, sent) in [(400, 400), (502, 502), (504, 504), (500, 500), (0, 500)] {
        let request = &RequestToAnswer {
            method: &Method::GET,
            headers: &headers,
        };
        let answer = origin_failure(
            status,
            &UnansweredRequest {
                request,
                judged,
                request_id: b"id-1",
            },
        );
        assert_eq!(
            (answer.status().as_u16(), field_value(&answer, REQUEST_ID)),
            (sent, "id-1")
        );
        assert!(
            answer.closes_connection() && http1_text(&answer).contains("\r\nConnection: close\r\n")
        );
        assert_eq!(
            field_value(&answer, X_ROBOTS_TAG),
            if sent >= 500 { "noindex" } else { "" }
        );
    }
}

#[test]
fn answer_converts_into_a_response() {
    let world = World::from_policy(POLICY);
    let answer = world.get("/a&'b", &HeaderMap::new());
    let response: Response<Bytes> = answer.clone().into();
    assert_eq!(
        (response.status(), response.body()),
        (answer.status(), answer.body())
    );
    let sent: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let expected: Vec<_> = answer
        .fields()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    assert_eq!(sent, expected);
}
