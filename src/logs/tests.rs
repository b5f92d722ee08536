//! The formats of access logs: lines that are read, and damaged lines that are not.

use super::format::FormatError;
use super::{FormatString, Line, LineFormat, Record, moment};
use crate::time::Timestamp;

const AT: Timestamp = Timestamp(1_795_341_600); // 2026-11-22T10:00:00Z

fn record(line: &str) -> Record<'_> {
    match LineFormat::Detect.read(line.as_bytes()) {
        Some(Line::Request(record)) => record,
        other => panic!("{line}: {other:?}"),
    }
}

/// Host, target, status, bytes and user agent.
fn shown(record: &Record<'_>) -> String {
    assert_eq!(record.time, AT);
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    let host = record.host.as_deref().map_or("none".into(), text);
    let user_agent = record.user_agent.as_deref().map_or("none".into(), text);
    format!("{host} {} {} {} {} {user_agent}", text(&record.method), text(&record.target), record.status, record.bytes)
}

#[test]
fn combined_and_common_lines_with_and_without_a_host_are_read() {
    const TIME: &str = "[22/Nov/2026:12:00:00 +0200]";
    for (line, expected) in [
        (format!(r#"192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "GPTBot/1.2""#), "none GET /a 200 5 GPTBot/1.2"),
        (format!(r#"192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5"#), "none GET /a 200 5 none"),
        (
            format!(r#"a.example:443 192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 - "-" "x""#),
            "a.example:443 GET /a 200 0 x",
        ),
        (format!(r#"a.example 2001:db8::1 - - {TIME} "HEAD /a HTTP/2.0" 301 5"#), "a.example HEAD /a 301 5 none"),
        (format!(r#"192.0.2.7 - a b {TIME} "GET /a HTTP/1.1" 200 5 "-" "-""#), "none GET /a 200 5 "),
        (format!(r#"192.0.2.1 192.0.2.7 - - {TIME} "GET /a HTTP/1.1" 200 5 "-" "x""#), "192.0.2.1 GET /a 200 5 x"),
        (format!(r#"192.0.2.7 - [x] {TIME} "GET /a b HTTP/1.1" 200 5 "-" "x""#), "none GET /a b 200 5 x"),
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /\x22\"\\ HTTP/1.1" 200 5 "\"" "a\x22b" 7 "r""#),
            r#"none GET /""\ 200 5 a"b"#,
        ),
        (
            format!(r#"192.0.2.7 - - {TIME} "GET /a" 200 5 "-" "x" 12 "router" "http://10.0.0.1" 2ms"#),
            "none GET /a 200 5 x",
        ),
    ] {
        assert_eq!(shown(&record(&line)), expected, "{line}");
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
        assert_eq!(shown(&record(line)), "a.example GET /a?b 200 5 GPTBot/1.2", "{line}");
    }
    let latin = [br#"{"msec":"1795341600.1","request":"GET /caf"#.as_slice(), b"\xe9", br#" HTTP/1.1"}"#].concat();
    assert!(matches!(LineFormat::Detect.read(&latin), Some(Line::Request(_))));
}

#[test]
fn the_client_is_read_in_every_format() {
    for line in [
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"192.0.2.7 - a b [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"a.example 192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"198.51.100.1 192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5"#,
        r#"{"time":1795341600,"client":"192.0.2.7","target":"/"}"#,
        r#"{"ts":1795341600,"request":{"remote_ip":"198.51.100.1","client_ip":"192.0.2.7","uri":"/"}}"#,
        r#"{"time":1795341600,"ClientHost":"192.0.2.7","RequestPath":"/"}"#,
        r#"{"time":1795341600,"remote_addr":"192.0.2.7","uri":"/"}"#,
    ] {
        assert_eq!(record(line).client.as_deref(), Some(b"192.0.2.7".as_slice()), "{line}");
    }
    let pattern = FormatString::parse("$msec $remote_addr $request_uri $http_user_agent").expect("a format");
    let Some(Line::Request(read)) = LineFormat::FormatString(pattern).read(b"1795341600 192.0.2.7 / x") else {
        panic!("a request")
    };
    assert_eq!(read.client.as_deref(), Some(b"192.0.2.7".as_slice()));
}

#[test]
fn a_format_string_names_the_fields() {
    let read = |format: &str, line: &str| {
        let pattern = FormatString::parse(format).unwrap_or_else(|error| panic!("{format}: {error}"));
        match LineFormat::FormatString(pattern).read(line.as_bytes()) {
            Some(Line::Request(record)) => shown(&record),
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
        read("$msec ${request_method} $uri?$args $http_user_agent", "1795341600.9 GET /a?- GPTBot/1.2 (x)"),
        "none GET /a 0 0 GPTBot/1.2 (x)"
    );
    // The format has a host in front, and the line has none.
    assert_eq!(
        read(
            r#"$host $remote_addr [$time_local] "$request" $status $body_bytes_sent "$http_user_agent""#,
            r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "GPTBot/1.2""#,
        ),
        "None"
    );
    assert_eq!(FormatString::parse("$msec$status x").err(), Some(FormatError::NoSeparator("msec".into())));
    for format in ["$request $http_user_agent", "$msec $http_user_agent", "$msec $request"] {
        assert!(matches!(FormatString::parse(format), Err(FormatError::Missing(_))), "{format}");
    }
}

#[test]
fn damaged_lines_are_told_from_connections_without_a_request() {
    for line in [
        "",
        "hello",
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5 "-" "Mozilla/5.0 (com"#,
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HT"#,
        r#"192.0.2.7 - - [32/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200 5"#,
        r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" okay 5"#,
        r#"{"time":"2026-11-22T10:00:00Z","target":"/"#,
        r#"{"time":"soon","target":"/"}"#,
        r#"{"level":"info","ts":1795341600.25,"msg":"server running"}"#,
    ] {
        assert_eq!(LineFormat::Detect.read(line.as_bytes()), None, "{line}");
    }
    for request in ["-", "", r"\x16\x03\x01", "GET"] {
        let line = format!(r#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "{request}" 400 0 "-" "-""#);
        assert_eq!(LineFormat::Detect.read(line.as_bytes()), Some(Line::NoRequest), "{line}");
    }
}

#[test]
fn moments_are_the_same_in_every_spelling() {
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
        assert_eq!(moment::any(text), Some(AT), "{text}");
    }
    let leap = Timestamp::parse("2024-02-29T23:59:59Z");
    assert_eq!(moment::clf(b"29/Feb/2024:23:59:59 +0000"), leap);
    assert_eq!(moment::clf(b"01/Mar/2024:00:59:59 +0100"), leap);
    for text in ["", "yesterday", "1e40", "-5", "NaN", "2026-11-22", "22/Foo/2026:10:00:00 +0000"] {
        assert!(moment::any(text).is_none_or(|time| text == "2026-11-22" && time < AT), "{text}");
    }
}

#[test]
fn the_type_of_the_response_is_read_where_the_format_has_it() {
    let format = "[$time_iso8601] \"$request\" \"$sent_http_content_type\" \"$http_user_agent\"";
    let format = LineFormat::FormatString(FormatString::parse(format).expect("a format"));
    let types = |format: &LineFormat, line: &str| match format.read(line.as_bytes()) {
        Some(Line::Request(record)) => record.content_type.map(|media| String::from_utf8_lossy(&media).into_owned()),
        other => panic!("{line}: {other:?}"),
    };
    let json = |key: &str, media: &str| {
        format!(r#"{{"time":"2026-11-22T10:00:00Z","request":"GET /a HTTP/1.1","{key}":"{media}"}}"#)
    };
    let line = |media: &str| format!(r#"[2026-11-22T10:00:00Z] "GET /a HTTP/1.1" "{media}" "x""#);
    for (media, expected) in [("text/html; charset=x", Some("text/html; charset=x")), ("-", None), ("", None)] {
        let expected = expected.map(str::to_owned);
        assert_eq!(types(&format, &line(media)), expected);
        for key in ["sent_http_content_type", "downstream_Content-Type"] {
            assert_eq!(types(&LineFormat::Detect, &json(key, media)), expected, "{key}");
        }
        // nginx's `$content_type` is that of the request.
        assert_eq!(types(&LineFormat::Detect, &json("content_type", media)), None);
    }
}

#[test]
fn hidden_characters_are_made_visible_and_others_stay() {
    for hidden in ["\0", "\n", "\u{7f}", "\u{85}", "\u{9b}", "\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}"]
    {
        assert_eq!(super::printable(hidden.as_bytes()), "\u{fffd}", "{hidden:?}");
    }
    for hidden in ["\u{2028}", "\u{2029}", "\u{2066}", "\u{2069}", "\u{feff}"] {
        assert_eq!(super::printable(hidden.as_bytes()), "\u{fffd}", "{hidden:?}");
    }
    let shown = "a \u{e9}\u{5d0}\u{200d}\u{202f}\u{2065}\u{206a}";
    assert_eq!(super::printable(shown.as_bytes()), shown);
    assert_eq!(super::printable(b"a\xff"), "a\u{fffd}");
}
