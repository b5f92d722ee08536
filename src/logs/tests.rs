//! Tests of parsing access logs in all formats: lines that are read, and damaged lines that are
//! rejected.

use super::format::FormatError;
use super::{
    LineFormat, LineResult, LogFormatString, LogLine, LogRecord, UnreadableReason, timestamps,
};
use crate::time::Timestamp;

const TEST_TIME: Timestamp = Timestamp(1_795_341_600); // 2026-11-22T10:00:00Z

fn parse_record(line: &str) -> LogRecord<'_> {
    match LineFormat::Detect.parse(line.as_bytes()) {
        Ok(LogLine::Request(record)) => record,
        other => panic!("{line}: {other:?}"),
    }
}

/// Host, target, status, bytes and user agent.
fn summarize_record(record: &LogRecord<'_>) -> String {
    assert_eq!(record.time, TEST_TIME);
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let host = record.host.as_deref().map_or("none".into(), text);
    let user_agent = record.user_agent.as_deref().map_or("none".into(), text);
    format!(
        "{host} {} {} {} {} {user_agent}",
        text(&record.method),
        text(&record.target),
        record.status,
        record.bytes
    )
}

#[test]
fn clf_lines_with_and_without_host_are_read() {
    const TIME: &str = "[22/Nov/2026:12:00:00 +0200]";
    for (line, expected) in [
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "GPTBot/1.2""#),
            "none GET /a 200 5 GPTBot/1.2",
        ),
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5"#),
            "none GET /a 200 5 none",
        ),
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 99999999999999999999"#),
            "none GET /a 200 1099511627776 none",
        ),
        (
            format!(r#"a.example:443 192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 - "-" "x""#),
            "a.example:443 GET /a 200 0 x",
        ),
        (
            format!(r#"a.example 2001:db8::1 - - {TIME} "HEAD /a HTTP/2.0" 301 5"#),
            "a.example HEAD /a 301 5 none",
        ),
        (
            format!(r#"192.0.2.7 - a b {TIME} "GET /a HTTP/1.1" 200 5 "-" "-""#),
            "none GET /a 200 5 ",
        ),
        (
            format!(r#"192.0.2.1 192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "x""#),
            "none GET /a 200 5 x",
        ),
        (
            format!(r#"192.0.2.7 - [x] {TIME} "GET /a b HTTP/1.1" 200 5 "-" "x""#),
            "none GET /a b 200 5 x",
        ),
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /\x22\"\\ HTTP/1.1" 200 5 "\"" "a\x22b" 7 "r""#),
            r#"none GET /""\ 200 5 a"b"#,
        ),
        (
            format!(
                r#"192.0.2.7 - - {TIME} "GET /a" 200 5 "-" "x" 12 "router" "http://10.0.0.1" 2ms"#
            ),
            "none GET /a 200 5 x",
        ),
    ] {
        assert_eq!(summarize_record(&parse_record(&line)), expected, "{line}");
    }
}

#[test]
fn json_lines_of_four_servers_are_read() {
    for line in [
        r#"{"time":"2026-11-22T10:00:00.123Z","client":"192.0.2.7","method":"GET","host":"a.example","target":"/a?b","http":"1.1","status":200,"bytes":5,"user_agent":"GPTBot/1.2","referer":null}"#,
        r#"{"level":"info","ts":1795341600.25,"logger":"http.log.access","request":{"remote_ip":"192.0.2.7","method":"GET","host":"a.example","uri":"/a?b","headers":{"User-Agent":["GPTBot/1.2"],"Accept":["*/*"]}},"size":5,"status":200,"resp_headers":{"Server":["Caddy"]}}"#,
        r#"{"ClientHost":"192.0.2.7","DownstreamContentSize":5,"DownstreamStatus":200,"RequestHost":"a.example","RequestMethod":"GET","RequestPath":"/a?b","StartUTC":"2026-11-22T10:00:00.1Z","request_User-Agent":"GPTBot/1.2","time":"2026-11-22T10:00:09Z"}"#,
        r#"{"time_local":"22/Nov/2026:10:00:00 +0000","request":"GET /a?b HTTP/1.1","uri":"/a?b","status":"200","body_bytes_sent":"5","host":"a.example","http_user_agent":"GPTBot/1.2"}"#,
        r#"{"@timestamp":"2026-11-22T10:00:00+00:00","request_method":"GET","request_uri":"/a?b","uri":"/index.php","status":"200","bytes_sent":"5","server_name":"_","http_host":"a.example","user_agent":"GPTBot\/1.2"}"#,
    ] {
        assert_eq!(
            summarize_record(&parse_record(line)),
            "a.example GET /a?b 200 5 GPTBot/1.2",
            "{line}"
        );
    }
    let latin = [
        br#"{"msec":"1795341600.1","http_user_agent":"x","request":"GET /caf"#.as_slice(),
        b"\xe9",
        br#" HTTP/1.1"}"#,
    ]
    .concat();
    assert!(matches!(
        LineFormat::Detect.parse(&latin),
        Ok(LogLine::Request(_))
    ));
}

#[test]
fn client_is_read_in_every_format() {
    for line in [
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"192.0.2.7 - a b [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"a.example 192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"198.51.100.1 192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"{"time":1795341600,"client":"192.0.2.7","target":"/","user_agent":"x"}"#,
        r#"{"ts":1795341600,"request":{"remote_ip":"198.51.100.1","client_ip":"192.0.2.7","uri":"/","headers":{}}}"#,
        r#"{"time":1795341600,"ClientHost":"192.0.2.7","RequestPath":"/","request_User-Agent":"x"}"#,
        r#"{"time":1795341600,"remote_addr":"192.0.2.7","uri":"/","http_user_agent":null}"#,
    ] {
        assert_eq!(
            parse_record(line).client.as_deref(),
            Some(b"192.0.2.7".as_slice()),
            "{line}"
        );
    }
    let pattern = LogFormatString::parse("$msec $remote_addr $request_uri $http_user_agent")
        .expect("a format");
    let Ok(LogLine::Request(read)) =
        LineFormat::FormatString(pattern).parse(b"1795341600 192.0.2.7 / x")
    else {
        panic!("a request")
    };
    assert_eq!(read.client.as_deref(), Some(b"192.0.2.7".as_slice()));
}

#[test]
fn referer_is_read_in_every_format() {
    const REFERER: &str = "https://chatgpt.com/c/1";
    for line in [
        format!(
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "{REFERER}" "x""#
        ),
        format!(r#"{{"time":1795341600,"target":"/","referer":"{REFERER}","user_agent":"x"}}"#),
        format!(
            r#"{{"ts":1795341600,"request":{{"uri":"/","headers":{{"Referer":["{REFERER}"]}}}}}}"#
        ),
        format!(
            r#"{{"time":1795341600,"RequestPath":"/","request_Referer":"{REFERER}","request_User-Agent":"x"}}"#
        ),
    ] {
        let referer = parse_record(&line).referer;
        assert_eq!(referer.as_deref(), Some(REFERER.as_bytes()), "{line}");
    }
    let none = parse_record(
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x""#,
    );
    assert_eq!(none.referer, None);
    let format = r#"$msec $uri "$http_referer" "$http_user_agent""#;
    let format = LineFormat::FormatString(LogFormatString::parse(format).expect("a format"));
    let line = format!(r#"1795341600 / "{REFERER}" "x""#);
    let Ok(LogLine::Request(read)) = format.parse(line.as_bytes()) else {
        panic!("a request")
    };
    assert_eq!(read.referer.as_deref(), Some(REFERER.as_bytes()));
}

#[test]
fn format_string_names_fields() {
    let read = |format: &str, line: &str| {
        let pattern =
            LogFormatString::parse(format).unwrap_or_else(|error| panic!("{format}: {error}"));
        match LineFormat::FormatString(pattern).parse(line.as_bytes()) {
            Ok(LogLine::Request(record)) => summarize_record(&record),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(
        read(
            r#"$host|$remote_addr|[$time_iso8601]|"$request"|$status|$bytes_sent|"$http_user_agent"|$request_time"#,
            r#"a.example|::1|[2026-11-22T11:00:00+01:00]|"GET /a HTTP/1.1"|200|5|"a\x22b"|0.1"#,
        ),
        r#"a.example GET /a 200 5 a"b"#
    );
    assert_eq!(
        read(
            "$msec ${request_method} $uri?$args $http_user_agent",
            "1795341600.9 GET /a?- GPTBot/1.2 (x)"
        ),
        "none GET /a 0 0 GPTBot/1.2 (x)"
    );
    // The format has a host in front, and the line has none.
    assert_eq!(
        read(
            r#"$host $remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent""#,
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "GPTBot/1.2""#,
        ),
        "Err(OtherFormat)"
    );
    assert_eq!(
        LogFormatString::parse("$msec$status x").err(),
        Some(FormatError::NoSeparator("msec".into()))
    );
    for format in [
        "$request $http_user_agent",
        "$msec $http_user_agent",
        "$msec $request",
    ] {
        assert!(
            matches!(LogFormatString::parse(format), Err(FormatError::Missing(_))),
            "{format}"
        );
    }
}

#[test]
fn damaged_lines_differ_from_no_request() {
    use UnreadableReason::{BadNumber, BadTime, CutOff, OtherFormat};
    for (line, reason) in [
        ("", OtherFormat),
        ("hello", OtherFormat),
        (
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0 (com"#,
            CutOff,
        ),
        (
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-""#,
            CutOff,
        ),
        (
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HT"#,
            CutOff,
        ),
        (
            r#"192.0.2.7 - - [32/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5"#,
            BadTime,
        ),
        (
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" okay 5"#,
            BadNumber,
        ),
        (
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 0.003 "-" "x""#,
            OtherFormat,
        ),
        (r#"{"time":"2026-11-22T10:00:00Z","target":"/"#, CutOff),
        (r#"{"time":"soon","target":"/","user_agent":"x"}"#, BadTime),
        (
            r#"{"time":"2026-11-22","target":"/","user_agent":"x"}"#,
            BadTime,
        ),
    ] {
        assert_eq!(
            LineFormat::Detect.parse(line.as_bytes()),
            Err(reason),
            "{line}"
        );
    }
    for request in [
        "-",
        "",
        r"\x16\x03\x01",
        "GET",
        "SSH-2.0-Go",
        "CONNECT a.example:443 HTTP/1.1",
    ] {
        let line =
            format!(r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "{request}" 400 0 "-" "-""#);
        assert_eq!(
            LineFormat::Detect.parse(line.as_bytes()),
            Ok(LogLine::NoRequest),
            "{line}"
        );
        let line = line.replace(" 400 ", " 200 ");
        let expected = if request.starts_with("CONNECT") {
            Ok(LogLine::NoRequest)
        } else {
            Err(UnreadableReason::BadRequest)
        };
        assert_eq!(
            LineFormat::Detect.parse(line.as_bytes()),
            expected,
            "the server answered: {line}"
        );
    }
}

/// Of a line: host, client, target and user agent.
fn summarize_result(reading: &LineResult<'_>) -> String {
    let Ok(LogLine::Request(record)) = reading else {
        return format!("{reading:?}");
    };
    let text = |field: Option<&[u8]>| {
        field.map_or("none".into(), |field| {
            String::from_utf8_lossy(field).into_owned()
        })
    };
    let [host, client, agent] = [
        record.host.as_deref(),
        record.client.as_deref(),
        record.user_agent.as_deref(),
    ]
    .map(text);
    format!("{host} {client} {} {agent}", text(Some(&record.target)))
}

#[test]
fn collector_prefixes_are_stripped() {
    const COMBINED: &str =
        r#"66.249.66.1 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "GPTBot/1.2""#;
    const JSON: &str = r#"{"time":"2026-11-22T10:00:00Z","client":"66.249.66.1","target":"/a","user_agent":"GPTBot/1.2"}"#;
    for prefix in [
        "",
        "2026-11-22T10:00:00.123456789Z stdout F ",
        "2026-11-22T10:00:00.123456789+01:00 stderr F ",
        "2026-11-22T10:00:00.123456789Z stdout F:x ",
        "Nov 22 10:00:00 web1 nginx: ",
        "Nov  2 10:00:00 web1 nginx[12]: ",
        "Nov 22 10:00:00 nginx: ",
        "<190>Nov 22 10:00:00 web1 nginx: ",
        "2026-11-22T10:00:00.123456+01:00 web1 nginx[12]: ",
        "2026-11-22T10:00:00+0100 web1 nginx[12]: ",
        "<190>1 2026-11-22T10:00:00.003Z web1 nginx - - - ",
        "<190>1 2026-11-22T10:00:00.003Z web1 nginx 12 ID4 [x@1 a=\"b\\\"] c\"][y@1] \u{feff}",
        "web-1  | ",
        "nginx_1                  | ",
        "web.1.x7k@node1    | ",
        "2026-11-22T10:00:00.123456789Z ",
        "web-1  | 2026-11-22T10:00:00.123456789Z ",
        "[pod/web-0/nginx] ",
        "[pod/web-0/nginx] 2026-11-22T10:00:00.123456789Z ",
        "Nov 22 10:00:00 node1 kubelet: 2026-11-22T10:00:00.1Z stdout F ",
    ] {
        for (line, expected) in [
            (COMBINED.to_owned(), "none 66.249.66.1 /a GPTBot/1.2"),
            (
                format!("shop.example:443 {COMBINED}"),
                "shop.example:443 66.249.66.1 /a GPTBot/1.2",
            ),
            (JSON.to_owned(), "none 66.249.66.1 /a GPTBot/1.2"),
        ] {
            let line = format!("{prefix}{line}");
            assert_eq!(
                summarize_result(&LineFormat::Detect.parse(line.as_bytes())),
                expected,
                "{line}"
            );
            let docker = serde_json::json!({"log": format!("{line}\n"), "stream": "stdout", "time": "2026-11-23T10:00:00Z"});
            assert_eq!(
                summarize_result(&LineFormat::Detect.parse(docker.to_string().as_bytes())),
                expected,
                "{docker}"
            );
        }
        let format = r#"$time_iso8601 $host $remote_addr "$request" "$http_user_agent""#;
        let format = LineFormat::FormatString(LogFormatString::parse(format).expect("a format"));
        let line = format!(
            r#"{prefix}2026-11-22T10:00:00Z shop.example 66.249.66.1 "GET /a HTTP/1.1" "GPTBot/1.2""#
        );
        assert_eq!(
            summarize_result(&format.parse(line.as_bytes())),
            "shop.example 66.249.66.1 /a GPTBot/1.2",
            "{line}"
        );
    }
    for prefix in [
        "Mar 12 web1 nginx: ",
        "Mar 12 06:56:28 web1 nginx ",
        "nginx: ",
        "web1 nginx ",
        "12345 ",
        "2026-11-22 10:00:00 ",
    ] {
        let line = format!("{prefix}{COMBINED}");
        assert!(LineFormat::Detect.parse(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn columns_before_time_are_read_for_certain() {
    use UnreadableReason::{BadClient, BadColumns, BadHost};
    for (head, expected) in [
        ("66.249.66.1 - -", Ok("none 66.249.66.1")),
        ("66.249.66.1 - a b", Ok("none 66.249.66.1")),
        ("66.249.66.1", Ok("none 66.249.66.1")),
        ("66.249.66.1:5432 - -", Ok("none 66.249.66.1:5432")),
        ("[2001:db8::1]:5432 - -", Ok("none [2001:db8::1]:5432")),
        ("[2001:db8::1] - -", Ok("none [2001:db8::1]")),
        ("\"66.249.66.1\" - -", Ok("none 66.249.66.1")),
        (
            "66.249.66.1, 104.16.1.1 - -",
            Ok("none 66.249.66.1, 104.16.1.1"),
        ),
        (
            "66.249.66.1,104.16.1.1 - -",
            Ok("none 66.249.66.1,104.16.1.1"),
        ),
        (
            "\"66.249.66.1, 104.16.1.1\" - -",
            Ok("none 66.249.66.1, 104.16.1.1"),
        ),
        ("unknown, 104.16.1.1 - -", Ok("none unknown, 104.16.1.1")),
        (
            "a.example 66.249.66.1, 104.16.1.1 - -",
            Ok("a.example 66.249.66.1, 104.16.1.1"),
        ),
        (
            "a.example:443 [2001:db8::1]:5 - u",
            Ok("a.example:443 [2001:db8::1]:5"),
        ),
        (
            "[2001:db8::2]:443 66.249.66.1 - -",
            Ok("[2001:db8::2]:443 66.249.66.1"),
        ),
        (
            "198.51.100.1:80 66.249.66.1 - -",
            Ok("198.51.100.1:80 66.249.66.1"),
        ),
        ("66.249.66.1 104.16.1.1 - -", Ok("none 104.16.1.1")),
        ("2001:db8::1 104.16.1.1 - a b", Ok("none 104.16.1.1")),
        ("66.249.66.1, 104.16.1.1 10.0.0.1 - -", Ok("none 10.0.0.1")),
        ("shop:443 66.249.66.1 - -", Ok("shop:443 66.249.66.1")),
        ("localhost 66.249.66.1 - -", Ok("localhost 66.249.66.1")),
        ("web1 66.249.66.1 - -", Ok("none 66.249.66.1")),
        ("web_1-a 66.249.66.1:80 - a b", Ok("none 66.249.66.1:80")),
        (
            "2026-11-25T10:00:00+01:00 web1 66.249.66.1 - -",
            Ok("none 66.249.66.1"),
        ),
        ("web1 a.example 66.249.66.1 - -", Err(BadColumns)),
        ("- 66.249.66.1 - -", Ok("none 66.249.66.1")),
        ("_ 66.249.66.1 - -", Ok("none 66.249.66.1")),
        ("- - -", Ok("none none")),
        ("a.example - - -", Ok("a.example none")),
        ("unix: - -", Ok("none none")),
        ("a.example unix: - -", Ok("a.example none")),
        ("crawl.example - a b", Ok("none none")),
        ("a.example crawl.example - -", Ok("a.example none")),
        ("66.249.66.1 a.example - -", Err(BadColumns)),
        ("66.249.66.1 -", Err(BadColumns)),
        ("a b c d", Err(BadColumns)),
        ("a|b 66.249.66.1 - -", Err(BadHost)),
        ("nginx: 66.249.66.1 - -", Err(BadHost)),
        ("a.example a|b - -", Err(BadClient)),
        ("", Err(BadColumns)),
    ] {
        let line = format!(r#"{head} [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x""#);
        let expected = expected
            .map(|read| format!("{read} / x"))
            .unwrap_or_else(|error| format!("Err({error:?})"));
        assert_eq!(
            summarize_result(&LineFormat::Detect.parse(line.as_bytes())),
            expected,
            "{line}"
        );
    }
}

#[test]
fn quick_ipv4_test_agrees_with_parser() {
    for word in [
        "192.0.2.7",
        "0.0.0.0",
        "255.255.255.255",
        "256.0.2.7",
        "1.2.3",
        "1.2.3.4.5",
        "1..2.3",
        "01.2.3.4",
        "1.2.3.",
        "",
    ] {
        assert_eq!(
            super::client::is_ipv4(word.as_bytes()),
            word.parse::<std::net::Ipv4Addr>().is_ok(),
            "{word}"
        );
    }
}

#[test]
fn extra_quoted_column_must_hold_addresses() {
    let read = |columns: &str| {
        let line =
            format!(r#"8.8.8.8 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 {columns}"#);
        let reading = LineFormat::Detect
            .parse(line.as_bytes())
            .map(LogLine::into_owned);
        reading.map(|line| match line {
            LogLine::Request(record) => record
                .x_forwarded_for
                .map(|list| String::from_utf8_lossy(&list).into_owned()),
            other => panic!("{columns}: {other:?}"),
        })
    };
    for (columns, expected) in [
        (r#""-" "x""#, None),
        (r#""-" "x" "-""#, None),
        (r#""-" "-" "-" "-""#, None),
        (r#""-" "x" "66.249.66.1""#, Some("66.249.66.1")),
        (
            r#""-" "x" "-" "2001:db8::1, unknown" 0.003 "HIT""#,
            Some("2001:db8::1, unknown"),
        ),
        (r#""-" "x" 12 "router" "http://10.0.0.1" 2ms"#, None),
    ] {
        assert_eq!(read(columns), Ok(expected.map(str::to_owned)), "{columns}");
    }
    for column in [
        "GB",
        "shop.example",
        "HIT",
        "gzip",
        "text/html",
        "TLSv1.3",
        "de",
        "GPTBot/1.2",
        "0.003",
        "unknown",
    ] {
        for columns in [
            format!(r#""-" "-" "{column}""#),
            format!(r#""-" "{column}" "GPTBot/1.2""#),
            format!(r#""{column}" "-" "GPTBot/1.2" "66.249.66.1""#),
            format!(r#""-" "GPTBot/1.2" "-" "{column}""#),
        ] {
            let is_number = columns.contains(r#""-" "0.003" "#);
            let expected = if is_number {
                UnreadableReason::BadUserAgent
            } else {
                UnreadableReason::OtherFormat
            };
            assert_eq!(read(&columns), Err(expected), "{columns}");
        }
    }
    assert_eq!(read(r#""-" "x" "66.249"#), Err(UnreadableReason::CutOff));
}

#[test]
fn x_forwarded_for_names_client_in_every_format() {
    let trusted = ["104.16.0.0/13".parse().expect("a network")];
    let clf = |client: &str, forwarded: &str| {
        format!(
            r#"{client} - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "x"{forwarded}"#
        )
    };
    let json = |fields: &str| {
        format!(
            r#"{{"time":1795341600,"uri":"/","remote_addr":"104.16.1.1","user_agent":"x",{fields}}}"#
        )
    };
    let caddy = |lines: &str| {
        let headers = format!(r#"{{"User-Agent":["x"],"X-Forwarded-For":[{lines}]}}"#);
        format!(
            r#"{{"ts":1795341600,"request":{{"remote_ip":"104.16.1.1","uri":"/","headers":{headers}}}}}"#
        )
    };
    let known = Some("66.249.66.1");
    for (line, untrusting, trusting) in [
        (clf("104.16.1.1", r#" "66.249.66.1""#), None, known),
        (
            clf("104.16.1.1", r#" "192.0.2.9, 66.249.66.1""#),
            None,
            known,
        ),
        (clf("104.16.1.1", r#" "66.249.66.1, unknown""#), None, None),
        (
            clf("104.16.1.1", r#" "104.16.1.1""#),
            Some("104.16.1.1"),
            Some("104.16.1.1"),
        ),
        (
            clf("104.16.1.1", r#" "-""#),
            Some("104.16.1.1"),
            Some("104.16.1.1"),
        ),
        (clf("66.249.66.1", r#" "66.249.66.1""#), known, known),
        (clf("66.249.66.1", r#" "192.0.2.9""#), None, known),
        (clf("-", r#" "66.249.66.1""#), None, None),
        (clf("66.249.66.1 104.16.1.1", ""), None, known),
        (
            clf("192.0.2.9, 66.249.66.1 104.16.1.1", r#" "192.0.2.9""#),
            None,
            known,
        ),
        (json(r#""http_x_forwarded_for":"66.249.66.1""#), None, known),
        (json(r#""x_forwarded_for":"66.249.66.1""#), None, known),
        (
            json(r#""request_X-Forwarded-For":"66.249.66.1""#),
            None,
            known,
        ),
        (
            json(r#""proxy_add_x_forwarded_for":"66.249.66.1, 104.16.1.1""#),
            None,
            known,
        ),
        (
            json(r#""http_x_forwarded_for":"-""#),
            Some("104.16.1.1"),
            Some("104.16.1.1"),
        ),
        (json(r#""http_x_forwarded_for":"nobody""#), None, None),
        (caddy(r#""66.249.66.1""#), None, known),
        (caddy(r#""192.0.2.9","66.249.66.1""#), None, known),
    ] {
        let read = |networks| {
            parse_record(&line)
                .client_address(networks)
                .map(|address| address.to_string())
        };
        assert_eq!(read(&[]).as_deref(), untrusting, "{line}");
        assert_eq!(read(&trusted).as_deref(), trusting, "{line}");
    }
}

#[test]
fn x_forwarded_for_of_log_format_names_client() {
    let trusted = ["104.16.0.0/13".parse().expect("a network")];
    let format =
        r#"$remote_addr [$time_iso8601] "$request" "$http_user_agent" "$http_x_forwarded_for""#;
    let format = LineFormat::FormatString(LogFormatString::parse(format).expect("a format"));
    let line = br#"104.16.1.1 [2026-11-22T10:00:00Z] "GET / HTTP/1.1" "x" "66.249.66.1""#;
    let Ok(LogLine::Request(read)) = format.parse(line) else {
        panic!("a request")
    };
    assert_eq!(read.client_address(&[]), None);
    assert_eq!(read.client_address(&trusted), "66.249.66.1".parse().ok());
}

#[test]
fn client_of_list_needs_trusted_proxies() {
    let networks = |written: &[&str]| {
        written
            .iter()
            .map(|network| network.parse().expect("a network"))
            .collect()
    };
    let none: Vec<ipnet::IpNet> = Vec::new();
    let trusted: Vec<ipnet::IpNet> = networks(&["104.16.0.0/13", "10.0.0.0/8"]);
    for (column, untrusting, trusting) in [
        ("66.249.66.1", Some("66.249.66.1"), Some("66.249.66.1")),
        ("66.249.66.1:80", Some("66.249.66.1"), Some("66.249.66.1")),
        ("[2001:db8::1]:80", Some("2001:db8::1"), Some("2001:db8::1")),
        ("\"66.249.66.1\"", Some("66.249.66.1"), Some("66.249.66.1")),
        (
            "::ffff:66.249.66.1",
            Some("66.249.66.1"),
            Some("66.249.66.1"),
        ),
        ("66.249.66.1, 104.16.1.1", None, Some("66.249.66.1")),
        (
            "192.0.2.9, 66.249.66.1,104.16.1.1, 10.0.0.1",
            None,
            Some("66.249.66.1"),
        ),
        ("66.249.66.1, 192.0.2.9", None, Some("192.0.2.9")),
        (
            "66.249.66.1, 66.249.66.1",
            Some("66.249.66.1"),
            Some("66.249.66.1"),
        ),
        ("unknown, 104.16.1.1", None, None),
        (", 104.16.1.1", None, None),
        ("104.16.1.1", Some("104.16.1.1"), Some("104.16.1.1")),
        ("crawl.example", None, None),
    ] {
        for (proxies, expected) in [(&none, untrusting), (&trusted, trusting)] {
            let line =
                format!(r#"{{"time":1795341600,"uri":"/","user_agent":"x","client":{column:?}}}"#);
            let read = parse_record(&line)
                .client_address(proxies)
                .map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{column} {proxies:?}");
        }
    }
}

#[test]
fn request_line_and_url_give_host_and_target() {
    let clf = |request: &str| {
        format!(r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "{request}" 200 5 "-" "x""#)
    };
    let json = |fields: &str| {
        format!(r#"{{"msec":1795341600,"status":200,"http_user_agent":"x",{fields}}}"#)
    };
    for (line, expected) in [
        (
            clf("GET http://u@shop.example:80/a?b HTTP/1.1"),
            "shop.example:80 192.0.2.7 /a?b x",
        ),
        (
            clf("GET https://shop.example HTTP/1.1"),
            "shop.example 192.0.2.7 / x",
        ),
        (
            clf("GET https://shop.example?b HTTP/1.1"),
            "shop.example 192.0.2.7 /?b x",
        ),
        (
            format!("a.example {}", clf("GET http://b.example/ HTTP/1.1")),
            "b.example 192.0.2.7 / x",
        ),
        (clf("/a"), "none 192.0.2.7 /a x"),
        (
            clf("GET //a.example/b HTTP/1.1"),
            "none 192.0.2.7 //a.example/b x",
        ),
        (clf("GET a HTTP/1.1"), "Err(BadRequest)"),
        (clf("GET http:///a HTTP/1.1"), "Err(BadRequest)"),
        (json(r#""request":"/a""#), "none none /a x"),
        (
            json(r#""request":"https://shop.example/a""#),
            "shop.example none /a x",
        ),
        (
            json(r#""url":"https://shop.example/a","host":"b.example""#),
            "shop.example none /a x",
        ),
        (json(r#""uri":"/a","args":"b=c""#), "none none /a?b=c x"),
        (json(r#""uri":"/a","args":"-""#), "none none /a x"),
        (
            json(r#""uri":"/a","query_string":"b=c""#),
            "none none /a?b=c x",
        ),
        (
            json(r#""uri":"/index.php","args":"q=/a","request":"GET /a HTTP/1.1""#),
            "none none /a x",
        ),
        (
            json(r#""uri":"/index.php","args":"q=/a","request_uri":"/a?b""#),
            "none none /a?b x",
        ),
        (
            json(r#""request":{"uri":"/a?b","host":"a.example"}"#),
            "a.example none /a?b x",
        ),
        (json(r#""request":"200""#), "Err(BadRequest)"),
        (json(r#""path":"a""#), "Err(BadRequest)"),
        (json(r#""server_name":"_","uri":"/a""#), "none none /a x"),
    ] {
        assert_eq!(
            summarize_result(&LineFormat::Detect.parse(line.as_bytes())),
            expected,
            "{line}"
        );
    }
}

#[test]
fn user_agent_of_another_column_is_rejected() {
    let clf = |agent: &str| {
        format!(
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "{agent}""#
        )
    };
    for agent in [
        "",
        "-",
        "GPTBot/1.2",
        "Mozilla/5.0 (x; +https://x.example/)",
        "1st Bot 2.0",
        "abc",
        "HTTP/1.1 bot",
    ] {
        assert!(
            matches!(
                LineFormat::Detect.parse(clf(agent).as_bytes()),
                Ok(LogLine::Request(_))
            ),
            "{agent}"
        );
    }
    for agent in [
        "200",
        "0.003",
        "https://shop.example/",
        "android-app://x",
        "192.0.2.7",
        "10.0.0.1:8080",
        "66.249.66.1, 10.0.0.1",
        "2001:db8::1",
        "22/Nov/2026:10:00:00 +0000",
        "GET / HTTP/1.1",
    ] {
        assert_eq!(
            LineFormat::Detect.parse(clf(agent).as_bytes()),
            Err(UnreadableReason::BadUserAgent),
            "{agent}"
        );
    }
    for (json, expected) in [
        (r#""user_agent":"x""#, "none none / x"),
        (r#""user_agent":null"#, "none none / "),
        (r#""user_agent":"-""#, "none none / "),
        (r#""request":{"headers":{"User-Agent":[]}}"#, "none none / "),
        (r#""request":{"headers":{}}"#, "none none / "),
        (r#""ua":"x""#, "Err(NoUserAgent)"),
        (r#""user_agent":"0.003""#, "Err(BadUserAgent)"),
    ] {
        let line = format!(r#"{{"time":1795341600,"target":"/",{json}}}"#);
        assert_eq!(
            summarize_result(&LineFormat::Detect.parse(line.as_bytes())),
            expected,
            "{line}"
        );
    }
}

#[test]
fn format_off_by_one_column_reads_nothing() {
    let line = r#"shop.example 66.249.66.1 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "https://r.example/" "GPTBot/1.2" 0.003"#;
    let read = |format: &str| {
        let format =
            LogFormatString::parse(format).unwrap_or_else(|error| panic!("{format}: {error}"));
        summarize_result(&LineFormat::FormatString(format).parse(line.as_bytes()))
    };
    let before = "$host $remote_addr - - [$time_local]";
    let right = format!(
        r#"{before} "$request" $status $bytes_sent "$http_referer" "$http_user_agent" $request_time"#
    );
    assert_eq!(read(&right), "shop.example 66.249.66.1 /a GPTBot/1.2");
    for (format, expected) in [
        (
            right
                .replace("_user_agent", "_x")
                .replace("_referer", "_user_agent"),
            "Err(BadUserAgent)",
        ),
        (
            right
                .replace("_user_agent", "_x")
                .replace("$request_time", "$http_user_agent"),
            "Err(BadUserAgent)",
        ),
        (
            right.replace("$host $remote_addr", "$remote_addr $host"),
            "Err(BadClient)",
        ),
        (
            right.replace("$host $remote_addr - -", "$host -"),
            "Err(BadHost)",
        ),
        (
            right
                .replace("$request", "$x")
                .replace("$http_referer", "$request"),
            "Err(BadRequest)",
        ),
        (
            right
                .replace("$status $bytes_sent", "$x $y")
                .replace("$request_time", "$status"),
            "Err(BadNumber)",
        ),
        (right.replace(" $request_time", ""), "Err(OtherFormat)"),
    ] {
        assert_eq!(read(&format), expected, "{format}");
    }
}

#[test]
fn server_messages_are_recognised() {
    for line in [
        "/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration",
        "10-listen-on-ipv6-by-default.sh: info: Getting the checksum of /etc/nginx/conf.d/default.conf",
        "2026/11/22 10:00:00 [notice] 1#1: using the \"epoll\" event method",
        "nginx: [warn] conflicting server name \"a.example\" on 0.0.0.0:80, ignored",
        "[Sun Nov 22 10:00:00.123456 2026] [core:error] [pid 12] (2)No such file or directory",
        "AH00558: httpd: Could not reliably determine the server's fully qualified domain name",
        "[NOTICE]   (1) : New worker (8) forked",
        "haproxy[14389]: Proxy http-in started.",
        "Server app/one is DOWN, reason: Layer4 timeout",
        "time=\"2026-11-22T10:00:00Z\" level=info msg=\"Configuration loaded\"",
        "2026-11-22T10:00:00Z INF Starting provider *file.Provider",
        "2026-11-22T10:00:00.123456Z  INFO crawlgate::server: listening on 127.0.0.1:8080",
        "2026/11/22 10:00:00.123\tINFO\tserving initial configuration",
        r#"{"level":"info","ts":1795341600.25,"msg":"server running"}"#,
        r#"{"level":"error","ts":1795341600.25,"logger":"http.log.error","msg":"x","request":{"uri":"/","headers":{}},"status":502}"#,
        r#"{"level":"info","message":"started","time":"2026-11-22T10:00:00Z"}"#,
        "Nov 22 10:00:00 web1 systemd[1]: Started nginx.service - A high performance web server.",
        "Attaching to web-1",
        "-- Boot 0123456789abcdef --",
    ] {
        for prefix in ["", "2026-11-22T10:00:00.123456789Z stderr F ", "web-1  | "] {
            let line = format!("{prefix}{line}");
            assert_eq!(
                LineFormat::Detect.parse(line.as_bytes()),
                Ok(LogLine::ServerMessage),
                "{line}"
            );
        }
    }
    for line in [
        "2026/11/22 10:00:00.123\tINFO\thttp.log.access\thandled request\t{\"request\": {}}",
        "Nov 22 10:00:00 web1 sshd[12]: Accepted publickey for root",
        r#"{"level":"info","RequestPath":"/","time":"2026-11-22T10:00:00Z"}"#,
        r#"{"level":"info","msg":"request","method":"GET","route":"/"}"#,
        r#"{"level":30,"time":1795341600000,"req":{"url":"/"},"msg":"request completed"}"#,
    ] {
        assert!(LineFormat::Detect.parse(line.as_bytes()).is_err(), "{line}");
    }
}

#[test]
fn times_are_equal_in_every_spelling() {
    for text in [
        "22/Nov/2026:10:00:00 +0000",
        "[22/Nov/2026:05:30:00 -0430]",
        "2026-11-22T10:00:00Z",
        "2026-11-22T11:00:00.5+01:00",
        "2026/11/22 10:00:00.000",
        "2026-11-22 10:00:00",
        "1795341600",
        "1795341600.999",
        "1795341600999",
        "1795341600999000000",
    ] {
        assert_eq!(
            timestamps::parse_any_time(text.as_bytes()),
            Some(TEST_TIME),
            "{text}"
        );
    }
    let leap = Timestamp::parse("2024-02-29T23:59:59Z");
    assert_eq!(
        timestamps::parse_clf_time(b"29/Feb/2024:23:59:59 +0000"),
        leap
    );
    assert_eq!(
        timestamps::parse_clf_time(b"01/Mar/2024:00:59:59 +0100"),
        leap
    );
    for text in [
        "",
        "yesterday",
        "1e40",
        "-5",
        "NaN",
        "22/Foo/2026:10:00:00 +0000",
    ] {
        assert_eq!(timestamps::parse_any_time(text.as_bytes()), None, "{text}");
    }
    // A day, a year and a duration are no moments.
    for text in [
        "2026-11-22",
        "2026/11/22",
        "22/Nov/2026",
        "2026",
        "20261122",
        "20261122100000",
        "0",
        "0.003",
    ] {
        assert_eq!(timestamps::parse_any_time(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn content_type_is_read_where_format_has_it() {
    let format = "[$time_iso8601] \"$request\" \"$sent_http_content_type\" \"$http_user_agent\"";
    let format = LineFormat::FormatString(LogFormatString::parse(format).expect("a format"));
    let types = |format: &LineFormat, line: &str| match format.parse(line.as_bytes()) {
        Ok(LogLine::Request(record)) => record
            .content_type
            .map(|media| String::from_utf8_lossy(&media).into_owned()),
        other => panic!("{line}: {other:?}"),
    };
    let json = |key: &str, media: &str| {
        format!(
            r#"{{"time":"2026-11-22T10:00:00Z","request":"GET /a HTTP/1.1","agent":"x","{key}":"{media}"}}"#
        )
    };
    let line = |media: &str| format!(r#"[2026-11-22T10:00:00Z] "GET /a HTTP/1.1" "{media}" "x""#);
    for (media, expected) in [
        ("text/html; charset=x", Some("text/html; charset=x")),
        ("-", None),
        ("", None),
    ] {
        let expected = expected.map(str::to_owned);
        assert_eq!(types(&format, &line(media)), expected);
        for key in ["sent_http_content_type", "downstream_Content-Type"] {
            assert_eq!(
                types(&LineFormat::Detect, &json(key, media)),
                expected,
                "{key}"
            );
        }
        // nginx's `$content_type` is that of the request.
        assert_eq!(
            types(&LineFormat::Detect, &json("content_type", media)),
            None
        );
    }
}
