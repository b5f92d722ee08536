//! Generated requests and the answers that an origin gives to them: good ones, odd ones and broken
//! ones. A [`Case`] follows from its number alone.

/// A request, and what the origin answers.
pub struct Case {
    pub request: Vec<u8>,
    pub is_head: bool,
    /// Whether it is sent over HTTP/2, without what HTTP/2 has not.
    pub is_http2: bool,
    /// The body of the request, without its framing.
    pub body: Vec<u8>,
    /// Whether a trailer follows over HTTP/2.
    pub has_trailers: bool,
    /// Whether the head says over HTTP/2 that one may follow.
    pub announces_trailers: bool,
    /// Whether the request may be sent to an origin that perhaps has it already.
    pub may_repeat: bool,
    /// Whether the body of the request is malformed.
    pub is_malformed: bool,
    /// Whether the request takes the forwarder, if there is one.
    pub fits_forwarder: bool,
    pub answer: Answer,
}

/// What an origin answers.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Bytes that are sent one after the other.
    pub pieces: Vec<Vec<u8>>,
    /// Whether the origin closes the connection afterwards.
    pub closes: bool,
    /// Whether the body ends before it should, or is framed wrongly.
    pub breaks: bool,
    /// Why the forwarder may refuse the answer where Pingora passes it on (docs/internals/direct-forwarding.md).
    pub stricter: Option<&'static str>,
}

/// Numbers that follow from the first one (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn is_one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<'t, T: ?Sized>(&mut self, choices: &[&'t T]) -> &'t T {
        choices[self.below(choices.len())]
    }
}

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "GET", "HEAD", "POST", "POST", "POST", "PUT", "PATCH", "DELETE",
    "OPTIONS", "PROPFIND",
];
const SUFFIXES: &[&[u8]] = &[
    b"",
    b"",
    b"?q=1",
    b"/report.pdf",
    b"//x/../y",
    b"/%2e%2e/%",
    b"/\xc3\xa9",
    b"/a;b=c?d=/e?f",
    b"/private/x",
];
const AGENTS: &[&str] = &[
    "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "curl/8.5.0",
];
const REQUEST_FIELDS: &[&[u8]] = &[
    b"Accept: text/html",
    b"Accept: application/json",
    b"Cookie: a=1",
    b"Cookie: b=2; c=3",
    b"If-None-Match: \"x\"",
    b"If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
    b"Range: bytes=0-1",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Connection: Keep-Alive, close",
    b"Connection: X-Drop",
    b"X-Drop: 1",
    b"Keep-Alive: timeout=5",
    b"Proxy-Connection: keep-alive",
    b"Proxy-Authorization: Basic eDp5",
    b"Proxy-Authenticate: Basic",
    b"X-Forwarded-For: 198.51.100.1",
    b"x-forwarded-for: 198.51.100.2, 203.0.113.4",
    b"Forwarded: for=198.51.100.1",
    b"X-Real-IP: 198.51.100.1",
    b"X-Forwarded-Proto: https",
    b"X-Forwarded-Host: other.example",
    b"TE: trailers",
    b"Trailer: X-Check",
    b"Upgrade: websocket",
    b"Content-Length: 0",
    b"HTTP2-Settings: AAMAAABkAAQAAP__",
    b"X-Odd: \xe9\xff",
    b"X-Empty:",
    b"X-Space:   a  b \t",
    b"x-lower: y",
    b"X-lOwEr: z",
    b"Referer: http://a.example/",
];
const STATUS_LINES: &[&[u8]] = &[
    b"200 OK",
    b"200 OK",
    b"200 OK",
    b"200 ",
    b"200",
    b"200 All is fine",
    b"204 No Content",
    b"206 Partial Content",
    b"301 Moved Permanently",
    b"304 Not Modified",
    b"404 Not Found",
    b"500 Internal Server Error",
    b"599 Odd",
    b"999 Request denied",
    b"101 Switching Protocols",
];
const ANSWER_FIELDS: &[&[u8]] = &[
    b"Content-Type: text/html; charset=utf-8",
    b"content-type: application/pdf",
    b"X-Robots-Tag: nofollow",
    b"X-Robots-Tag: googlebot: noarchive",
    b"Date: Thu, 01 Jan 1970 00:00:00 GMT",
    b"Server: origin/1",
    b"Connection: close",
    b"Connection: keep-alive",
    b"Keep-Alive: timeout=5",
    b"Set-Cookie: a=1",
    b"Set-Cookie: b=2",
    b"ETag: \"x\"",
    b"Link: </a.css>; rel=preload",
    b"Strict-Transport-Security: max-age=1",
    b"WwW-aUtHeNtIcAtE: Basic",
    b"Trailer: X-Check",
    b"Content-Signal: search=yes",
    b"Cache-Control: no-store",
    b"X-Odd: \xe9\xff",
    b"X-Empty:",
    b"X-Space:   a  b \t",
];
const AHEAD: &[&[u8]] = &[
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nLink: </b.css>\r\nX-A: \xff\r\n\r\n",
];

impl Case {
    /// The case with this number.
    pub fn new(number: u64) -> Case {
        let mut numbers = Numbers(number);
        let method = numbers.of(METHODS);
        let is_head = method == "HEAD";
        let mut request = format!("{method} /c/{number}").into_bytes();
        request.extend(numbers.of(SUFFIXES));
        request.extend(b" HTTP/1.1\r\n");
        let mut fields = vec![b"Host: a.example".to_vec()];
        fields.push([b"User-Agent: ", numbers.of(AGENTS).as_bytes()].concat());
        let has_body = numbers.is_one_in(if matches!(method, "POST" | "PUT" | "PATCH") {
            1
        } else {
            8
        });
        let body = if has_body {
            upload(&mut numbers)
        } else {
            Upload::default()
        };
        fields.extend(body.field.clone());
        for _ in 0..numbers.below(7) {
            let field = numbers.of(REQUEST_FIELDS).to_vec();
            let at = numbers.below(fields.len() + 1);
            // A second length is refused before it is forwarded; a switch of protocols has its own
            // tests.
            if !field.starts_with(b"Content-Length") || !fields.iter().any(|field| frames(field)) {
                fields.insert(at, field);
            }
        }
        if has_body && numbers.is_one_in(8) {
            fields.push(b"Expect: 100-continue".to_vec());
        }
        // Over HTTP/2 there are no chunks that could be malformed.
        let is_http2 = numbers.is_one_in(3) && !body.is_malformed;
        let expects = fields.iter().any(|field| field.starts_with(b"Expect:"));
        let fits_forwarder = if is_http2 {
            !expects || !body.data.is_empty() || body.has_trailers
        } else {
            fits_forwarder(&fields)
        };
        let announces_trailers =
            is_http2 && fields.iter().any(|field| field.starts_with(b"Trailer:"));
        for field in fields {
            request.extend(field);
            request.extend(b"\r\n");
        }
        request.extend(b"\r\n");
        request.extend(body.bytes);
        let may_repeat = !has_body && matches!(method, "GET" | "HEAD" | "OPTIONS");
        let is_malformed = body.is_malformed;
        Case {
            request,
            is_head,
            is_http2,
            body: body.data,
            has_trailers: body.has_trailers,
            announces_trailers,
            may_repeat,
            is_malformed,
            fits_forwarder,
            answer: answer(&mut numbers, is_head),
        }
    }
}

/// Whether a field says where a body ends.
fn frames(field: &[u8]) -> bool {
    field.starts_with(b"Content-Length:") || field.starts_with(b"Transfer-Encoding:")
}

/// The body of a request.
#[derive(Default)]
struct Upload {
    field: Option<Vec<u8>>,
    data: Vec<u8>,
    /// The data as HTTP/1.1 has it.
    bytes: Vec<u8>,
    has_trailers: bool,
    is_malformed: bool,
}

fn upload(numbers: &mut Numbers) -> Upload {
    let size = [0, 1, 5, 100, 1_000, 5_000, 20_000, 70_000, 300_000][numbers.below(9)];
    let body: Vec<u8> = (0..size)
        .map(|place: usize| b'A' + (place % 19) as u8)
        .collect();
    if numbers.is_one_in(2) {
        let field = format!("Content-Length: {size}").into_bytes();
        return Upload {
            field: Some(field),
            data: body.clone(),
            bytes: body,
            ..Upload::default()
        };
    }
    let mut bytes = Vec::new();
    let mut rest = body.as_slice();
    while !rest.is_empty() {
        let (chunk, after) =
            rest.split_at((1 + numbers.below(rest.len().min(9_000))).min(rest.len()));
        bytes.extend(
            format!(
                "{:x}{}\r\n",
                chunk.len(),
                numbers.of(&["", "", ";a=b", ";x=\"y\""])
            )
            .bytes(),
        );
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        rest = after;
    }
    let is_malformed = numbers.is_one_in(20);
    let end: &[&[u8]] = match is_malformed {
        false => &[
            b"0\r\n\r\n",
            b"0\r\n\r\n",
            b"000;a\r\n\r\n",
            b"0\r\nX-Check: 1\r\nHost: b.example\r\n\r\n",
        ],
        true => &[
            b"x\r\n",
            b"5 \r\nhello\r\n0\r\n\r\n",
            b"-1\r\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"0\r\n folded\r\n\r\n",
        ],
    };
    let end = numbers.of(end);
    bytes.extend(end);
    let has_trailers = end.starts_with(b"0\r\nX-Check");
    let field = numbers
        .of::<[u8]>(&[b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked"])
        .to_vec();
    Upload {
        field: Some(field),
        data: body,
        bytes,
        has_trailers,
        is_malformed,
    }
}

/// What docs/internals/direct-forwarding.md says of fields.
fn fits_forwarder(fields: &[Vec<u8>]) -> bool {
    let others: [&[u8]; 2] = [b"Upgrade:", b"HTTP2-Settings:"];
    // A length of 0 is no body.
    let has_body = fields
        .iter()
        .any(|field| frames(field) && field != b"Content-Length: 0");
    let expects = fields.iter().any(|field| field.starts_with(b"Expect:"));
    let mut connections = fields
        .iter()
        .filter(|field| field.starts_with(b"Connection:"));
    let is_simple = |field: &Vec<u8>| {
        matches!(
            field.as_slice(),
            b"Connection: close" | b"Connection: keep-alive"
        )
    };
    connections.next().is_none_or(is_simple)
        && connections.next().is_none()
        && (has_body || !expects)
        && !fields
            .iter()
            .any(|field| others.iter().any(|other| field.starts_with(other)))
}

fn answer(numbers: &mut Numbers, is_head: bool) -> Answer {
    match numbers.below(40) {
        0 => {
            return Answer {
                closes: true,
                ..Answer::default()
            };
        }
        1 => return broken_head(numbers),
        2 => return odd_head(numbers, is_head),
        _ => {}
    }
    let mut bytes = Vec::new();
    for _ in 0..[0, 0, 0, 0, 0, 0, 0, 1, 1, 2][numbers.below(10)] {
        bytes.extend(numbers.of(AHEAD));
    }
    let is_old = numbers.is_one_in(8);
    bytes.extend(if is_old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    let status = numbers.of(STATUS_LINES);
    bytes.extend(status);
    bytes.extend(b"\r\n");
    for _ in 0..numbers.below(6) {
        bytes.extend(numbers.of(ANSWER_FIELDS));
        bytes.extend(b"\r\n");
    }
    let has_body = !is_head && !status.starts_with(b"204") && !status.starts_with(b"304");
    let Body {
        bytes: framed,
        mut needs_close,
        has_surplus,
        breaks,
        mut stricter,
    } = body(numbers, has_body);
    if is_old
        && framed
            .to_ascii_lowercase()
            .windows(18)
            .any(|bytes| bytes == b"transfer-encoding:")
    {
        stricter = stricter.or(Some("a coding in HTTP/1.0"));
    }
    if status.starts_with(b"101") {
        stricter = Some("a switch of protocols that nobody asked for");
        needs_close = true;
    }
    bytes.extend(framed);
    // Surplus bytes that come late would be taken for the response to the next request, whatever
    // that is.
    let pieces = if has_surplus {
        vec![bytes]
    } else {
        split(numbers, bytes)
    };
    Answer {
        pieces,
        closes: needs_close || numbers.is_one_in(5),
        breaks,
        stricter,
    }
}

/// A body with what is around it.
struct Body {
    /// The fields that frame it, the end of the head, and the body.
    bytes: Vec<u8>,
    /// Whether the connection has to end behind it.
    needs_close: bool,
    /// Whether bytes follow that belong to nothing.
    has_surplus: bool,
    breaks: bool,
    stricter: Option<&'static str>,
}

fn body(numbers: &mut Numbers, has_body: bool) -> Body {
    let kind = numbers.below(24);
    let has_surplus = matches!(kind, 1 | 11);
    let sizes: &[usize] = &[0, 1, 5, 100, 1_000, 5_000, 20_000, 70_000];
    let size = sizes[numbers.below(if has_surplus { 5 } else { 8 })];
    let body: Vec<u8> = (0..size)
        .map(|place: usize| b'a' + (place % 23) as u8)
        .collect();
    let length = body.len();
    let (fields, body, needs_close, stricter) = match kind {
        0 => (format!("content-length: {}", length + 3), body, true, None),
        1 => (
            format!("Content-Length: {length}"),
            [body, b"surplus".to_vec()].concat(),
            true,
            None,
        ),
        2..=4 => (String::from("X-Until: close"), body, true, None),
        5..=9 => (
            "Transfer-Encoding: chunked".into(),
            chunked(numbers, &body, true),
            false,
            None,
        ),
        10 => (
            "transfer-encoding: Chunked".into(),
            chunked(numbers, &body, false),
            true,
            None,
        ),
        11 => (
            "Transfer-Encoding: chunked".into(),
            [chunked(numbers, &body, true), b"HTTP".to_vec()].concat(),
            true,
            None,
        ),
        12 => {
            let fields = format!("Transfer-Encoding: chunked\r\nContent-Length: {length}");
            (
                fields,
                chunked(numbers, &body, true),
                false,
                Some("length and coding"),
            )
        }
        13 => {
            let coding = numbers.of(&["gzip, chunked", "identity", "chunked, chunked", "x", ""]);
            let fields = format!("Transfer-Encoding: {coding}");
            (
                fields,
                chunked(numbers, &body, true),
                true,
                Some("another coding"),
            )
        }
        14 => {
            let fields = format!("Content-Length: {length}\r\nContent-Length: {length}");
            (fields, body, false, Some("two lengths"))
        }
        15 => (
            format!("Content-Length: {length}, {length}"),
            body,
            false,
            Some("two lengths"),
        ),
        16 => {
            let written = numbers.of(&[
                "+5",
                "-5",
                "five",
                "5 5",
                "",
                "0x5",
                "99999999999999999999999",
            ]);
            (format!("Content-Length: {written}"), body, true, None)
        }
        17 => (
            format!("Content-Length: {length}\r\nContent-Length: {}", length + 1),
            body,
            true,
            None,
        ),
        _ => (format!("Content-Length: {length}"), body, false, None),
    };
    let body = if has_body { body } else { Vec::new() };
    let bytes = [fields.as_bytes(), b"\r\n\r\n", &body].concat();
    Body {
        bytes,
        needs_close,
        has_surplus,
        breaks: has_body && matches!(kind, 0 | 10),
        stricter,
    }
}

fn chunked(numbers: &mut Numbers, body: &[u8], is_whole: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let count = (1 + numbers.below(rest.len().min(9_000))).min(rest.len());
        let (chunk, after) = rest.split_at(count);
        let extension = numbers.of(&["", "", "", ";a=b", "  ", " ;x"]);
        let size = if numbers.is_one_in(2) {
            format!("{count:x}")
        } else {
            format!("00{count:X}")
        };
        bytes.extend(format!("{size}{extension}\r\n").bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        rest = after;
    }
    let end: &[&[u8]] = match is_whole {
        true => &[
            b"0\r\n\r\n",
            b"0\r\n\r\n",
            b"0\r\nX-Check: 1\r\n\r\n",
            b"000;a\r\n\r\n",
        ],
        false => &[
            b"",
            b"0\r\n",
            b"5\r\nab",
            b"x\r\n",
            b"3\r\nabcd\r\n0\r\n\r\n",
            b"-1\r\n",
        ],
    };
    bytes.extend(numbers.of(end));
    bytes
}

fn broken_head(numbers: &mut Numbers) -> Answer {
    let bytes = numbers.of::<[u8]>(&[
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2000 High\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2 200\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: no name\r\nContent-Length: 0\r\n\r\n",
        b"\r\n",
        b"{}",
    ]);
    Answer {
        pieces: split(numbers, bytes.to_vec()),
        closes: true,
        ..Answer::default()
    }
}

fn odd_head(numbers: &mut Numbers, is_head: bool) -> Answer {
    let answers: [(&[u8], Option<&str>); 5] = [
        (
            b"HTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
            Some("a folded line"),
        ),
        (
            b"HTTP/1.1 200 OK\r\nX-Space : a\r\nContent-Length: 2\r\n\r\nok",
            Some("a space before a colon"),
        ),
        (b"HTTP/1.1 200 OK\nX-Bare: a\nContent-Length: 2\n\nok", None),
        (b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        (
            b"HTTP/1.1 200 OK\r\nX-Tab:\ta\tb\r\nContent-Length: 02\r\n\r\nok",
            None,
        ),
    ];
    let (bytes, stricter) = answers[numbers.below(answers.len())];
    // To HEAD the body is surplus.
    let pieces = if is_head {
        vec![bytes.to_vec()]
    } else {
        split(numbers, bytes.to_vec())
    };
    Answer {
        pieces,
        closes: numbers.is_one_in(2),
        stricter,
        ..Answer::default()
    }
}

fn split(numbers: &mut Numbers, bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = match numbers.below(4) {
        0 => (0..1 + numbers.below(3))
            .map(|_| numbers.below(bytes.len() + 1))
            .collect(),
        _ => Vec::new(),
    };
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut begin = 0;
    for cut in cuts {
        if begin < cut {
            pieces.push(bytes[begin..cut].to_vec());
        }
        begin = cut;
    }
    pieces
}
