//! `audit` on the logs of ten services and servers, without a flag: each has the same requests, and
//! gives the numbers that a few lines here count from them.

use super::audit::{BINGBOT, BROWSER, Case, GPTBOT, count, crawler};
use serde_json::{Value, json};
use std::fmt::Write;

/// 2026-11-22T10:00:00Z.
const BEGIN: i64 = 1_795_341_600;

struct Request {
    second: i64,
    client: String,
    target: String,
    status: u16,
    bytes: u64,
    referer: &'static str,
    user_agent: &'static str,
}

impl Request {
    fn clock(&self) -> String {
        format!("10:{:02}:{:02}", self.second / 60, self.second % 60)
    }

    fn rfc3339(&self) -> String {
        format!("2026-11-22T{}", self.clock())
    }

    fn referer_or_dash(&self) -> &str {
        if self.referer.is_empty() {
            "-"
        } else {
            self.referer
        }
    }

    fn is_disallowed(&self) -> bool {
        match self.user_agent {
            GPTBOT => true,
            BINGBOT => self.target.starts_with("/cart/"),
            _ => false,
        }
    }
}

/// Requests that differ in every field.
fn requests() -> Vec<Request> {
    let requests = (0..600).map(|number: i64| Request {
        second: number,
        client: format!("192.0.2.{}", number % 250),
        target: match number % 4 {
            0 => format!("/cart/{number}"),
            1 => format!("/page?q={number}"),
            _ => format!("/products/{number}"),
        },
        status: [200, 301, 404, 503][(number % 7 % 4) as usize],
        bytes: (number * 37 % 5_000) as u64,
        referer: ["", "https://chatgpt.com/"][(number % 2) as usize],
        user_agent: [GPTBOT, BINGBOT, BROWSER][(number % 3) as usize],
    });
    requests.collect()
}

fn combined(request: &Request) -> String {
    let Request {
        client,
        target,
        status,
        bytes,
        user_agent,
        ..
    } = request;
    let clock = request.clock();
    let referer = request.referer_or_dash();
    format!(
        r#"{client} - - [22/Nov/2026:{clock} +0000] "GET {target} HTTP/1.1" {status} {bytes} "{referer}" "{user_agent}""#
    )
}

fn own(request: &Request) -> String {
    json!({"time": request.rfc3339() + "Z", "client": request.client, "method": "GET", "host": "shop.example", "target": request.target, "status": request.status, "bytes": request.bytes, "referer": request.referer, "user_agent": request.user_agent}).to_string()
}

fn alb(request: &Request) -> String {
    let Request {
        client,
        target,
        status,
        bytes,
        user_agent,
        ..
    } = request;
    let time = request.rfc3339();
    format!(
        r#"h2 {time}.186641Z app/lb/50dc6c495c0c9188 {client}:2817 10.0.0.1:80 0.086 0.048 0.037 {status} {status} 321 {bytes} "GET https://shop.example:443{target} HTTP/2.0" "{user_agent}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:1:targetgroup/t/7 "Root=1-58337281" "shop.example" "arn:aws:acm:us-east-2:1:certificate/1" 1 {time}.364000Z "forward" "-" "-" "10.0.0.1:80" "{status}" "-" "-" TID_1"#
    )
}

/// Encodes what CloudFront encodes.
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte <= b' ' || byte >= 0x7f || b"<>\"#%{}|\\^~[]`'".contains(&byte) {
            write!(out, "%{byte:02X}").expect("room");
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

fn cloudfront(request: &Request) -> String {
    let (stem, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, "-"));
    let Request {
        client,
        status,
        bytes,
        ..
    } = request;
    let clock = request.clock();
    let agent = percent_encode(request.user_agent);
    let referer = request.referer_or_dash();
    format!(
        "2026-11-22\t{clock}\tLAX1\t{bytes}\t{client}\tGET\td1.cloudfront.net\t{stem}\t{status}\t{referer}\t{agent}\t{query}\t-\tHit\tSOX4xwn4==\tshop.example\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-"
    )
}

const CLOUDFRONT_HEADER: &str = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end\n";

fn iis(request: &Request) -> String {
    let (stem, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, "-"));
    let Request {
        client,
        status,
        bytes,
        ..
    } = request;
    let clock = request.clock();
    let agent = request.user_agent.replace(' ', "+");
    let referer = request.referer_or_dash();
    format!(
        "2026-11-22 {clock} 10.0.0.1 GET {stem} {query} 443 - {client} {agent} {referer} {status} 0 0 {bytes} 46"
    )
}

const IIS_HEADER: &str = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status sc-bytes time-taken\n";

fn google_cloud(request: &Request) -> String {
    json!({"httpRequest": {"remoteIp": request.client, "requestMethod": "GET", "requestUrl": format!("https://shop.example{}", request.target), "responseSize": request.bytes.to_string(), "status": request.status, "referer": request.referer, "userAgent": request.user_agent, "latency": "0.1s"}, "insertId": "1", "severity": "INFO", "timestamp": request.rfc3339() + ".257926Z"}).to_string()
}

fn envoy(request: &Request) -> String {
    let Request {
        client,
        target,
        status,
        bytes,
        user_agent,
        ..
    } = request;
    let time = request.rfc3339();
    format!(
        r#"[{time}.310Z] "GET {target} HTTP/2" {status} - 154 {bytes} 226 100 "{client}" "{user_agent}" "cc21d9b0" "shop.example" "10.0.2.1:80""#
    )
}

fn istio_json(request: &Request) -> String {
    json!({"authority": "shop.example", "bytes_received": 1, "bytes_sent": request.bytes, "downstream_remote_address": format!("{}:46520", request.client), "method": "GET", "path": request.target, "protocol": "HTTP/1.1", "response_code": request.status, "response_flags": "-", "start_time": request.rfc3339() + ".409Z", "user_agent": request.user_agent, "x_forwarded_for": null}).to_string()
}

fn cloudflare(request: &Request) -> String {
    json!({"ClientIP": request.client, "ClientRequestHost": "shop.example", "ClientRequestMethod": "GET", "ClientRequestReferer": request.referer, "ClientRequestURI": request.target, "ClientRequestUserAgent": request.user_agent, "EdgeResponseBytes": request.bytes, "EdgeResponseStatus": request.status, "EdgeStartTimestamp": (BEGIN + request.second) * 1_000_000_000 + 7, "RayID": "41dd"}).to_string()
}

fn haproxy(request: &Request) -> String {
    let Request {
        client,
        target,
        status,
        bytes,
        user_agent,
        referer,
        ..
    } = request;
    let clock = request.clock();
    format!(
        r#"Nov 22 {clock} lb haproxy[14389]: {client}:33317 [22/Nov/2026:{clock}.655] http-in static/srv1 10/0/30/69/109 {status} {bytes} - - ---- 1/1/1/1/0 0/0 {{shop.example|{user_agent}|{referer}}} {{}} "GET {target} HTTP/1.1""#
    )
}

/// The numbers of a crawler: requests, violations, bytes, and 4xx statuses.
fn numbers(report: &Value, id: &str) -> [u64; 4] {
    let row = crawler(report, id);
    ["requests", "violation", "bytes", "status_4xx"].map(|name| count(row, name))
}

#[test]
fn ten_logs_of_ten_services_give_the_truth() {
    type Service = (&'static str, &'static str, fn(&Request) -> String);
    const SERVICES: [Service; 10] = [
        ("combined", "", combined),
        ("own", "", own),
        ("alb", "", alb),
        ("cloudfront", CLOUDFRONT_HEADER, cloudfront),
        ("iis", IIS_HEADER, iis),
        ("google-cloud", "", google_cloud),
        ("envoy", "", envoy),
        ("istio", "", istio_json),
        ("cloudflare", "", cloudflare),
        ("haproxy", "", haproxy),
    ];
    let requests = requests();
    let truth = |user_agent: &str| {
        let all = || requests.iter().filter(|made| made.user_agent == user_agent);
        let disallowed = all().filter(|made| made.is_disallowed()).count() as u64;
        let not_found = all().filter(|made| made.status == 404).count() as u64;
        let bytes: u64 = all().map(|made| made.bytes).sum();
        [all().count() as u64, disallowed, bytes, not_found]
    };
    let visits = requests.iter().filter(|made| {
        made.user_agent == BROWSER && !made.referer.is_empty() && made.status == 200
    });
    let visits = visits.count() as u64;
    let case = Case::new(&[]);
    for (name, header, write) in SERVICES {
        let mut log = header.to_owned();
        for (number, request) in requests.iter().enumerate() {
            let line = write(request);
            log.push_str(&line);
            log.push('\n');
            if number % 300 == 299 {
                // The header comes again, a line is junk, and another one is cut off.
                log.push_str(header);
                log.push_str("no line of an access log\n");
                log.push_str(&line[..60]);
                log.push('\n');
            }
        }
        case.write(name, log.as_bytes());
        let report = case.json(&["--robots", "robots.txt", name]);
        for (id, user_agent) in [("gptbot", GPTBOT), ("bingbot", BINGBOT)] {
            assert_eq!(numbers(&report, id), truth(user_agent), "{name} {id}");
        }
        assert_eq!(report["visitors"], 200, "{name}");
        assert_eq!(report["log"]["unreadable"], 4, "{name}: {}", report["log"]);
        assert_eq!(report["from"], "2026-11-22T10:00:00Z", "{name}");
        assert_eq!(report["to"], "2026-11-22T10:09:59Z", "{name}");
        let has_referers = !["alb", "envoy", "istio"].contains(&name);
        let chatgpt = report["traffic"]["services"]
            .as_array()
            .and_then(|services| services.iter().find(|sent| sent["service"] == "chatgpt"));
        let counted = chatgpt.map(|sent| sent["visits"].as_u64().unwrap_or_default());
        assert_eq!(counted, has_referers.then_some(visits), "{name}");
    }
    let named = ["--robots", "robots.txt", "--log-format", "w3c", "iis"];
    assert_eq!(numbers(&case.json(&named), "gptbot"), truth(GPTBOT));
    let output = case.run(&[
        "--robots",
        "robots.txt",
        "--log-format",
        "apache",
        "combined",
    ]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn report_is_that_of_any_order_of_logs() {
    let case = Case::new(&[]);
    let requests = requests();
    std::fs::create_dir(case.path("logs")).expect("a directory");
    let mut names = Vec::new();
    for (number, part) in requests.chunks(150).enumerate() {
        let lines: Vec<String> = part.iter().map(combined).collect();
        // The names are in another order than the times.
        let name = format!("logs/{}.log", 9 - number);
        case.write(
            &name,
            format!("junk {number}\n{}\n", lines.join("\n")).as_bytes(),
        );
        names.push(name);
    }
    case.write("logs/9.log.swp", b"left by an editor\n");
    let audit = |logs: &[&str]| case.json(&[&["--robots", "robots.txt"], logs].concat());
    let by_directory = audit(&["logs"]);
    assert_eq!(by_directory["log"]["lines"], 604);
    assert_eq!(by_directory["log"]["examples"][0]["text"], "junk 3");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let reversed: Vec<&str> = names.iter().rev().copied().collect();
    for logs in [&names, &reversed] {
        assert_eq!(audit(logs), by_directory);
    }
    // A file of the directory counts once.
    assert_eq!(audit(&["logs/9.log", "logs"]), by_directory);
}

#[test]
fn audit_is_limited_to_site_crawler_and_time() {
    let requests = requests();
    let log: String = requests.iter().map(|made| own(made) + "\n").collect();
    let case = Case::new(&[("access.log", log.as_bytes())]);
    let audit = |options: &[&str]| {
        case.json(&[&["--robots", "robots.txt", "access.log"], options].concat())
    };
    let one = audit(&["--crawler", "GPTBot", "--site", "shop.example"]);
    assert_eq!(one["crawlers"].as_array().map(Vec::len), Some(1));
    assert_eq!(numbers(&one, "gptbot")[0], 200);
    assert_eq!(one["visitors"], 0);
    let two = audit(&["--crawler", "GPTBot", "--crawler", "bingbot"]);
    assert_eq!(two["crawlers"].as_array().map(Vec::len), Some(2));
    let other = [
        "--robots",
        "robots.txt",
        "--site",
        "other.example",
        "access.log",
    ];
    assert_eq!(case.run(&other).status.code(), Some(3));
    // The log is of a day that is past.
    let today = audit(&["--since", "1h"]);
    let before = today["log"]["outside_period"].as_u64();
    assert_eq!((before, &today["visitors"]), (Some(600), &json!(0)));
    let unknown = [
        "--robots",
        "robots.txt",
        "--crawler",
        "gtpbot",
        "access.log",
    ];
    assert_eq!(case.run(&unknown).status.code(), Some(2));
    for (map, code) in [
        ("agent=ua", 2),
        ("user_agent=ua", 3),
        ("user_agent=user_agent", 0),
    ] {
        let output = case.run(&["--robots", "robots.txt", "--map", map, "access.log"]);
        assert_eq!(output.status.code(), Some(code), "{map}");
    }
}

#[test]
fn log_in_utf16_is_unreadable_for_that_reason() {
    let text = format!("\u{feff}{}\r\n", combined(&requests()[0]));
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let case = Case::new(&[("access.log", &bytes)]);
    let output = case.run(&["--robots", "robots.txt", "--json", "access.log"]);
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["log"]["unreadable_reasons"]["utf16"].as_u64() > Some(0));
}
