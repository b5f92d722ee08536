//! Tests of the log formats of cloud services and load balancers. The sample lines have the form
//! that the service's documentation shows, with other values; the comment on each names the page.

use super::{
    ColumnHeader, KeyMap, KnownFormat, LineFormat, LineReader, LogFormatString, LogLine, LogRecord,
    UnreadableReason,
};
use UnreadableReason::{
    BadHost, BadNumber, BadRequest, BadTime, BadUserAgent, CutOff, NoHeader, NoUserAgent,
    OtherFormat,
};

/// Client, method, host, target, status, bytes, referer and user agent, after a check of the time.
fn summarize(record: &LogRecord<'_>) -> String {
    assert_eq!(record.time.to_string(), "2026-11-22T10:00:00Z");
    let text = |field: &Option<super::FieldBytes<'_>>| {
        let field = field.as_deref();
        field.map_or("none".to_owned(), |field| {
            String::from_utf8_lossy(field).into_owned()
        })
    };
    let [method, target] = [&record.method, &record.target].map(|field| text(&Some(field.clone())));
    format!(
        "{} {method} {} {target} {} {} {} {}",
        text(&record.client),
        text(&record.host),
        record.status,
        record.bytes,
        text(&record.referer),
        text(&record.user_agent)
    )
}

/// What the last of some lines says, or why it is unreadable.
fn read_last(lines: &str) -> String {
    let format = LineFormat::Detect;
    let mut reader = LineReader::new(&format, ColumnHeader::default());
    let results = lines
        .lines()
        .map(|line| match reader.parse(line.as_bytes()) {
            Ok(LogLine::Request(record)) => summarize(&record),
            Ok(LogLine::NoRequest) => "no request".to_owned(),
            Ok(LogLine::ServerMessage) => "message".to_owned(),
            Err(reason) => format!("{reason:?}"),
        });
    results.last().unwrap_or_default()
}

/// Checks that no beginning of a line is read as another request than the whole line, and that each
/// is unreadable up to the end of `needed`.
fn check_truncated(header: &str, line: &str, needed: &str) {
    let whole = read_last(&format!("{header}{line}"));
    let needed = line.find(needed).expect("the text is in the line") + needed.len();
    for end in 1..line.len() {
        let read = read_last(&format!("{header}{}", &line[..end]));
        let is_unreadable = !read.contains(' ');
        assert!(
            is_unreadable || (read == whole && end >= needed),
            "{}: {read}",
            &line[..end]
        );
    }
}

const ALB: &str = r#"https 2026-11-22T10:00:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://shop.example:443/a?b=c HTTP/1.1" "GPTBot/1.2 (x \x22y\x22)" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "shop.example" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2026-11-22T09:59:59.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-" TID_1234abcd5678ef90"#;

/// docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
#[test]
fn alb_lines_are_read() {
    assert_eq!(
        read_last(ALB),
        r#"192.0.2.7:2817 GET shop.example:443 /a?b=c 200 57 none GPTBot/1.2 (x "y")"#
    );
    let http2 = ALB
        .replace("https 2026", "h2 2026")
        .replace("/1.1\"", "/2.0\"");
    assert_eq!(read_last(&http2), read_last(ALB));
    let longer = format!(r#"{ALB} "shop.example" "/a" "TransformSuccess""#);
    assert_eq!(read_last(&longer), read_last(ALB));
    let malformed = ALB
        .replace(
            "GET https://shop.example:443/a?b=c HTTP/1.1",
            "- http://shop.example:80- -",
        )
        .replace(" 200 200 ", " 400 - ");
    assert_eq!(read_last(&malformed), "no request");
    assert_eq!(
        read_last(&malformed.replace(" 400 - ", " 200 - ")),
        "BadRequest"
    );
    for (from, to, reason) in [
        (" 200 200 ", " ok 200 ", BadNumber),
        ("2026-11-22T10:00:00.186641Z", "2026-11-22T", BadTime),
        (r"\x22y\x22", "\"y\"", OtherFormat),
        (
            "GPTBot/1.2 (x \\x22y\\x22)",
            "https://a.example",
            BadUserAgent,
        ),
        ("https 2026", "ftp 2026", OtherFormat),
    ] {
        assert_eq!(read_last(&ALB.replace(from, to)), format!("{reason:?}"));
    }
    check_truncated("", ALB, r#"58577259""#);
}

const CLOUDFRONT_HEADER: &str = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end\n";
const CLOUDFRONT: &str = "2026-11-22\t10:00:00\tLAX1\t57\t192.0.2.7\tGET\td111111abcdef8.cloudfront.net\t/a%2520b\t200\thttps://chatgpt.com/\tGPTBot/1.2%20(x%20%22y%22)\tc=%257Ed\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\tshop.example\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-";

/// docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
#[test]
fn cloudfront_lines_are_read_by_their_header() {
    let read = |line: &str| read_last(&format!("{CLOUDFRONT_HEADER}{line}"));
    assert_eq!(CLOUDFRONT.split('\t').count(), 33);
    assert_eq!(
        read(CLOUDFRONT),
        r#"192.0.2.7 GET shop.example /a%20b?c=%7Ed 200 57 https://chatgpt.com/ GPTBot/1.2 (x "y")"#
    );
    assert_eq!(read_last(CLOUDFRONT), "OtherFormat", "without a header");
    for (from, to, reason) in [
        ("10:00:00\t", "10:00\t", BadTime),
        ("2026-11-22", "2026-13-22", BadTime),
        ("\t200\t", "\tok\t", BadNumber),
        ("\tGET\t", "\tGET /\t", BadRequest),
        ("\tshop.example\t", "\t7\t", BadHost),
        ("\t/a%2520b\t", "\t\t", BadRequest),
        ("\tGET\t", "\t", CutOff),
        ("\tGET\t", "\tGET\tGET\t", OtherFormat),
    ] {
        assert_eq!(read(&CLOUDFRONT.replace(from, to)), format!("{reason:?}"));
    }
    check_truncated(CLOUDFRONT_HEADER, CLOUDFRONT, "\t78\t-\t");
}

const IIS_HEADER: &str = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-11-22 09:59:58\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n";
const IIS: &str = "2026-11-22 10:00:00 10.0.0.1 GET /a b=c 443 - 192.0.2.7 Mozilla/5.0+(compatible;+GPTBot/1.2) https://chatgpt.com/ 200 0 0 46";

/// learn.microsoft.com/en-us/windows/win32/http/w3c-logging
#[test]
fn iis_lines_are_read_by_their_header() {
    let expected =
        "192.0.2.7 GET none /a?b=c 200 0 https://chatgpt.com/ Mozilla/5.0 (compatible; GPTBot/1.2)";
    assert_eq!(read_last(&format!("{IIS_HEADER}{IIS}")), expected);
    assert_eq!(read_last(&format!("\u{feff}{IIS_HEADER}{IIS}")), expected);
    // The columns were changed, and the server began a new header.
    let later = "#Fields: date time c-ip cs-method cs-host cs-uri-stem sc-status sc-bytes\n2026-11-22 10:00:00 192.0.2.7 GET shop.example /a 200 57";
    assert_eq!(
        read_last(&format!("{IIS_HEADER}{IIS}\n{later}")),
        "192.0.2.7 GET shop.example /a 200 57 none none"
    );
    assert_eq!(
        read_last(&format!("{IIS_HEADER}{later}\n{IIS}")),
        "OtherFormat"
    );
    assert_eq!(read_last(&format!("{IIS_HEADER}# a comment")), "CutOff");
    assert_eq!(read_last(IIS_HEADER), "message");
    check_truncated(IIS_HEADER, IIS, " 200 0 0 4");
}

#[test]
fn durations_have_their_unit_or_are_not_known() {
    let read = |header: &str, line: &str| {
        let mut columns = ColumnHeader::default();
        columns.update(header.as_bytes());
        match LineReader::new(&LineFormat::Detect, columns).parse(line.as_bytes()) {
            Ok(LogLine::Request(record)) => record.milliseconds,
            _ => panic!("{line}"),
        }
    };
    let only_taken = CLOUDFRONT_HEADER.replace("time-to-first-byte", "x-other");
    let line = |taken: &str| CLOUDFRONT.replacen("\t0.001\t", &format!("\t{taken}\t"), 1);
    assert_eq!(read(CLOUDFRONT_HEADER, &line("0.25")), Some(1));
    assert_eq!(read(&only_taken, &line("0.25")), Some(250));
    for unknown in ["-", "-1", "nan", "inf"] {
        assert_eq!(read(&only_taken, &line(unknown)), None, "{unknown}");
    }
    let taken = IIS.rsplit(' ').next().and_then(|taken| taken.parse().ok());
    assert_eq!(read(IIS_HEADER, IIS), taken);
}

#[test]
fn header_travels_with_a_chunk() {
    let format = LineFormat::Detect;
    let mut header = ColumnHeader::default();
    header.update(format!("{IIS_HEADER}{IIS}\n").as_bytes());
    // Neither is at the beginning of a line.
    header.update(b"2026 #Fields: date\nx\t#Fields: time\n");
    let mut reader = LineReader::new(&format, header);
    assert!(matches!(
        reader.parse(IIS.as_bytes()),
        Ok(LogLine::Request(_))
    ));
    let mut header = ColumnHeader::default();
    header.update(format!("#Fields: date\n2026\n#Fields:{}\n", " x".repeat(20_000)).as_bytes());
    let result = LineReader::new(&format, header).parse(IIS.as_bytes()).err();
    assert_eq!(result, Some(OtherFormat), "a header that is too long");
}

const GOOGLE: &str = r#"{"httpRequest":{"latency":"0.018s","referer":"https://chatgpt.com/","remoteIp":"192.0.2.7","requestMethod":"GET","requestSize":"142","requestUrl":"https://shop.example/a?b=c","responseSize":"57","serverIp":"10.0.0.1","status":200,"userAgent":"GPTBot/1.2 (x)"},"insertId":"1uyqv7ffn5q8t","jsonPayload":{"@type":"type.googleapis.com/google.cloud.loadbalancing.type.LoadBalancerLogEntry","statusDetails":"response_sent_by_backend"},"logName":"projects/p/logs/requests","receiveTimestamp":"2026-11-22T10:00:01.5Z","resource":{"labels":{"project_id":"p"},"type":"http_load_balancer"},"severity":"INFO","spanId":"d1d9ffcb4ea5d7ff","timestamp":"2026-11-22T10:00:00.257926Z","trace":"projects/p/traces/1"}"#;

/// cloud.google.com/load-balancing/docs/https/https-logging-monitoring
#[test]
fn google_cloud_lines_are_read() {
    assert_eq!(
        read_last(GOOGLE),
        "192.0.2.7 GET shop.example /a?b=c 200 57 https://chatgpt.com/ GPTBot/1.2 (x)"
    );
    let without_agent = GOOGLE.replace(r#","userAgent":"GPTBot/1.2 (x)""#, "");
    assert!(read_last(&without_agent).ends_with("https://chatgpt.com/ "));
    let without_url = GOOGLE.replace("requestUrl", "x");
    assert_eq!(read_last(&without_url), "BadRequest");
    let reset = without_url.replace("\"status\":200", "\"status\":0");
    assert_eq!(read_last(&reset), "no request");
    assert_eq!(
        read_last(&GOOGLE.replace("\"timestamp\"", "\"x\"")),
        "BadTime"
    );
    assert_eq!(
        read_last(&GOOGLE.replace("200,", "true,")),
        read_last(GOOGLE).replace("200", "0")
    );
    check_truncated("", GOOGLE, "}");
}

const ENVOY: &str = r#"[2026-11-22T10:00:00.310Z] "GET /a?b=c HTTP/2" 200 - 154 57 226 100 "192.0.2.7" "GPTBot/1.2 (x)" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "shop.example" "tcp://10.0.2.1:80""#;
const ISTIO: &str = r#"[2026-11-22T10:00:00.409Z] "GET /a?b=c HTTP/1.1" 200 - via_upstream - "-" 0 57 4 4 "192.0.2.7" "GPTBot/1.2 (x)" "84961386-6d84-929d-98bd-c5aee93b5c88" "shop.example" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652 10.0.45.184:8000 192.0.2.7:46520 - default"#;

/// www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage and
/// istio.io/latest/docs/tasks/observability/logs/access-log
#[test]
fn envoy_and_istio_text_is_read() {
    let expected = " GET shop.example /a?b=c 200 57 none GPTBot/1.2 (x)";
    assert_eq!(read_last(ENVOY), format!("192.0.2.7{expected}"));
    assert_eq!(read_last(ISTIO), format!("192.0.2.7:46520{expected}"));
    // The client chooses X-Forwarded-For.
    let forged = ISTIO.replacen("\"192.0.2.7\"", "\"unknown\"", 1);
    assert_eq!(read_last(&forged), read_last(ISTIO));
    let prefixed = format!("[pod/web-0/istio-proxy] {ISTIO}");
    assert_eq!(read_last(&prefixed), read_last(ISTIO));
    for line in [ENVOY, ISTIO] {
        for (from, to, reason) in [
            // Envoy does not escape quotes.
            ("GPTBot/1.2 (x)", r#"a"b"#, OtherFormat),
            (
                "GPTBot/1.2 (x)",
                r#"GPTBot/1.2" "1" "evil.example"#,
                OtherFormat,
            ),
            (" 200 ", " OK ", BadNumber),
            ("T10:00:00", "T25:00:00", BadTime),
            ("GET /a?b=c HTTP", "GET HTTP", BadRequest),
        ] {
            let read = read_last(&line.replace(from, to));
            let is_expected = read == format!("{reason:?}") || read == "BadHost";
            assert!(is_expected, "{to}: {read}");
        }
    }
    // A connection without HTTP.
    let tcp = ISTIO
        .replace("GET /a?b=c HTTP/1.1", "- - -")
        .replace(" 200 ", " 0 ");
    assert_eq!(read_last(&tcp), "no request");
    check_truncated("", ENVOY, r#""tcp://10.0.2.1:80"#);
    check_truncated("", ISTIO, " - d");
}

const ISTIO_JSON: &str = r#"{"authority":"shop.example","bytes_received":0,"bytes_sent":57,"connection_termination_details":null,"downstream_local_address":"10.0.45.184:8000","downstream_remote_address":"192.0.2.7:46520","duration":4,"method":"GET","path":"/a?b=c","protocol":"HTTP/1.1","request_id":"84961386","requested_server_name":null,"response_code":200,"response_code_details":"via_upstream","response_flags":"-","route_name":"default","start_time":"2026-11-22T10:00:00.409Z","upstream_cluster":"outbound|8000||httpbin","upstream_host":"10.44.1.27:80","upstream_local_address":"10.44.1.23:37652","upstream_service_time":"4","upstream_transport_failure_reason":null,"user_agent":"GPTBot/1.2 (x)","x_forwarded_for":"192.0.2.7"}"#;

/// istio.io/latest/docs/tasks/observability/logs/access-log and
/// gateway.envoyproxy.io/docs/tasks/observability/proxy-accesslog
#[test]
fn envoy_json_is_read() {
    let expected = "192.0.2.7:46520 GET shop.example /a?b=c 200 57 none GPTBot/1.2 (x)";
    assert_eq!(read_last(ISTIO_JSON), expected);
    let gateway = ISTIO_JSON
        .replace("\"authority\"", "\":authority\"")
        .replace("\"path\"", "\"x-envoy-origin-path\"")
        .replace("\"user_agent\"", "\"user-agent\"")
        .replace("\"x_forwarded_for\"", "\"x-forwarded-for\"");
    assert_eq!(read_last(&gateway), expected);
    let no_agent = ISTIO_JSON.replace("\"GPTBot/1.2 (x)\"", "null");
    assert!(read_last(&no_agent).ends_with(" 57 none "));
    let tcp = ISTIO_JSON
        .replace("\"/a?b=c\"", "null")
        .replace(":200", ":0");
    assert_eq!(read_last(&tcp), "no request");
    assert_eq!(
        read_last(&ISTIO_JSON.replace("\"user_agent\"", "\"x\"")),
        format!("{NoUserAgent:?}")
    );
    check_truncated("", ISTIO_JSON, "}");
}

const CLOUDFLARE: &str = r#"{"ClientIP":"192.0.2.7","ClientRequestHost":"shop.example","ClientRequestMethod":"GET","ClientRequestReferer":"https://chatgpt.com/","ClientRequestURI":"/a?b=c","ClientRequestUserAgent":"GPTBot/1.2 (x)","EdgeEndTimestamp":"2026-11-22T10:00:01Z","EdgeResponseBytes":57,"EdgeResponseStatus":200,"EdgeStartTimestamp":"2026-11-22T10:00:00Z","RayID":"41ddf1740f67442d"}"#;

/// developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests
#[test]
fn cloudflare_lines_are_read_with_any_time() {
    for time in [
        r#""2026-11-22T10:00:00Z""#,
        "1795341600",
        "1795341600999",
        "1795341600999999999",
    ] {
        let line = CLOUDFLARE.replace(r#""2026-11-22T10:00:00Z""#, time);
        assert_eq!(
            read_last(&line),
            "192.0.2.7 GET shop.example /a?b=c 200 57 https://chatgpt.com/ GPTBot/1.2 (x)",
            "{time}"
        );
    }
    let without = |key: &str| read_last(&CLOUDFLARE.replace(&format!("\"{key}\""), "\"x\""));
    assert_eq!(without("ClientRequestUserAgent"), "NoUserAgent");
    assert_eq!(without("ClientRequestURI"), "BadRequest");
    assert_eq!(read_last(&CLOUDFLARE.replace("Timestamp", "x")), "BadTime");
    check_truncated("", CLOUDFLARE, "}");
}

const HAPROXY: &str = r#"haproxy[14389]: 192.0.2.7:33317 [22/Nov/2026:10:00:00.655] http-in static/srv1 10/0/30/69/109 200 57 - - ---- 1/1/1/1/0 0/0 {shop.example|GPTBot/1.2 (x #22y#22)|https://chatgpt.com/} {} "GET /a?b=c HTTP/1.1""#;

/// docs.haproxy.org, chapter 8.2.3 of the configuration manual
#[test]
fn haproxy_lines_are_read() {
    let expected =
        r#"192.0.2.7:33317 GET shop.example /a?b=c 200 57 https://chatgpt.com/ GPTBot/1.2 (x "y")"#;
    assert_eq!(read_last(HAPROXY), expected);
    for prefix in [
        "",
        "Nov 22 10:00:00 localhost haproxy[14389]: ",
        "<134>Nov 22 10:00:00 haproxy[1]: ",
    ] {
        let line = HAPROXY.replace("haproxy[14389]: ", prefix);
        assert_eq!(read_last(&line), expected, "{prefix}");
    }
    let asap = HAPROXY.replace(" 57 ", " +57 ").replace("/109 ", "/+109 ");
    assert_eq!(read_last(&asap), expected);
    assert_eq!(read_last(&HAPROXY.replace(" {} ", " ")), expected);
    let secure = HAPROXY.to_owned() + " 0/0000000000000000/0/0/0 -/TLSv1.3/TLS_AES_128_GCM_SHA256";
    assert_eq!(read_last(&secure), expected);
    let captures = "{shop.example|GPTBot/1.2 (x #22y#22)|https://chatgpt.com/} {}";
    assert_eq!(
        read_last(&HAPROXY.replace(captures, "{} {nginx/1.25}")),
        "192.0.2.7:33317 GET none /a?b=c 200 57 none none"
    );
    assert_eq!(
        read_last(&HAPROXY.replace(captures, "{text/html|de|80} {}")),
        "192.0.2.7:33317 GET none /a?b=c 200 57 none none"
    );
    // Which one is the user agent is not certain.
    assert_eq!(
        read_last(&HAPROXY.replace(captures, "{a/1|b/2} {}")),
        "BadUserAgent"
    );
    for (from, to, expected) in [
        (
            "http-in static/srv1",
            "http-in/1: SSL handshake failure",
            "no request",
        ),
        (" 200 57 ", " -1 0 ", expected),
        ("GET /a?b=c HTTP/1.1", "<BADREQ>", "BadRequest"),
        ("10/0/30/69/109 200", "0/0/5007", "OtherFormat"),
        ("Nov/2026:10:00:00", "Nov/2026:25:00:00", "BadTime"),
        ("GET /a?b=c", "GET /a\"b", "OtherFormat"),
    ] {
        let read = read_last(&HAPROXY.replace(from, to));
        assert!(
            read == expected || to == " -1 0 " && read.contains(" 0 0 "),
            "{to}: {read}"
        );
    }
    let refused = HAPROXY
        .replace("GET /a?b=c HTTP/1.1", "<BADREQ>")
        .replace(" 200 ", " 400 ");
    assert_eq!(read_last(&refused), "no request");
    check_truncated("", HAPROXY, "HTTP/1.1");
}

#[test]
fn junk_is_of_no_format() {
    for line in [
        "http ",
        "h2 2026-11-22T",
        "[2026-11-22T10:00:00.310Z]",
        "[2026-11-22T10:00:00.310Z] \"",
        "1.2.3.4:5 [22/Nov/2026:10:00:00.655]",
        "#Fields",
        "# Fields: date",
        "{\"httpRequest\":7}",
        "{\"response_flags\":{}}",
        "{\"ClientRequestMethod\":[]}",
        "\t\t\t",
        "\u{feff}",
        "https",
    ] {
        let read = read_last(line);
        assert!(!read.contains("GET"), "{line}: {read}");
    }
    let lines: Vec<u8> = "GET / x"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        LineFormat::Detect.parse(&lines),
        Err(UnreadableReason::Utf16)
    );
}

#[test]
fn named_format_reads_only_its_lines() {
    let lines = [
        ("alb", ALB),
        ("envoy", ENVOY),
        ("haproxy", HAPROXY),
        ("google-cloud", GOOGLE),
        ("cloudflare", CLOUDFLARE),
        ("envoy-json", ISTIO_JSON),
    ];
    for (name, _) in lines {
        let format = LineFormat::Known(KnownFormat::find(name).expect("a format"));
        for (of, line) in lines {
            let is_request = matches!(format.parse(line.as_bytes()), Ok(LogLine::Request(_)));
            assert_eq!(is_request, name == of, "{name}: {line}");
        }
    }
    let w3c = LineFormat::Known(KnownFormat::find("w3c").expect("a format"));
    assert_eq!(w3c.parse(IIS.as_bytes()), Err(NoHeader));
    assert!(KnownFormat::find("clf").is_none());
}

#[test]
fn mapped_keys_are_read_alone() {
    let read = |map: &str, line: &str| {
        let format = LineFormat::Mapped(KeyMap::parse(map).expect("keys"));
        match format.parse(line.as_bytes()) {
            Ok(LogLine::Request(record)) => summarize(&record),
            other => format!("{other:?}"),
        }
    };
    let line = r#"{"at":1795341600,"http":{"ua":"GPTBot/1.2","url":"/a"},"path":"/b","request":"GET /c HTTP/1.1","user_agent":"x","addr":"192.0.2.7","peer.name":"shop.example","status":200,"size":57,"from":"https://chatgpt.com/"}"#;
    assert_eq!(
        read(
            "time=at,user_agent=http.ua,path=http.url,client=addr,host=peer.name,referer=from",
            line
        ),
        "192.0.2.7  shop.example /a 200 57 https://chatgpt.com/ GPTBot/1.2"
    );
    for map in [
        "user_agent=agent,time=at",
        "path=http.no,time=at",
        "path=http.ua.x,time=at",
        "path=http.url,time=no",
    ] {
        assert!(read(map, line).contains("MissingKey"), "{map}");
    }
    assert!(read("path=http.url,time=from,referer=no", line).contains("BadTime"));
    assert!(read("path=http.url", ALB).contains("OtherFormat"));
    for (map, error) in [
        (
            "agent=ua",
            super::json::KeyMapError::UnknownField("agent".into()),
        ),
        (
            "user_agent",
            super::json::KeyMapError::NoKey("user_agent".into()),
        ),
        ("path=", super::json::KeyMapError::NoKey("path=".into())),
        (
            "path=a,path=b",
            super::json::KeyMapError::Twice("path".into()),
        ),
    ] {
        assert_eq!(KeyMap::parse(map), Err(error));
    }
    assert!(LogFormatString::parse("alb").is_err());
}
