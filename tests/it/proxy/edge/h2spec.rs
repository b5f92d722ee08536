//! The cases of h2spec 2.6, by hand: frames that a client may send and frames that it may not, each
//! with what has to come. The sections are those of RFC 7540, as h2spec has them, and of HPACK (RFC
//! 7541).
//!
//! The cases say what the RFC asks for. What the `h2` crate does otherwise (h2 0.4.20),
//! [`OTHERWISE`] says, and why that is accepted.

use crate::proxy::support::http2::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, PUSH_PROMISE, RST_STREAM,
    SETTINGS, SETTINGS_FRAME, WINDOW_UPDATE, frame, literal,
};
use crate::proxy::support::{Connection, Gate, HOST, Http2, Origin, Setup};
use std::collections::BTreeMap;
use std::io::Read;

/// Codes of errors (RFC 7540 section 7).
const PROTOCOL: u8 = 1;
const FLOW_CONTROL: u8 = 3;
const CLOSED: u8 = 5;
const FRAME_SIZE: u8 = 6;
const REFUSED: u8 = 7;
const COMPRESSION: u8 = 9;

/// Flags of frames.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const WHOLE: u8 = END_STREAM | END_HEADERS;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 0x20;

/// What comes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// The end of the connection, with a GOAWAY of this code.
    Ends(u8),
    /// The end of the connection, with no error named.
    Closes,
    /// The end of a stream, with a RST_STREAM of this code.
    Resets(u8),
    /// An answer with status 200.
    Page,
    /// An answer with status 400.
    Refusal,
    /// Nothing: the connection goes on.
    Nothing,
}

use Comes::{Closes, Ends, Nothing, Page, Refusal, Resets};

/// What comes otherwise than the RFC asks, by the name of the case.
const OTHERWISE: &[(&str, &[&str], Comes)] = &[
    (
        "the connection ends, as the RFC has it, with a code that says less",
        &[
            "a block that is none",
            "RST_STREAM that is short",
            "SETTINGS with ACK and a payload",
            "SETTINGS that are cut",
            "a window beyond 2^31",
            "PING that is short",
            "WINDOW_UPDATE that is short",
            "an index beyond both tables",
            "a literal whose name is beyond both tables",
            "a size at the end of a block",
            "Huffman with more than seven bits of padding",
            "Huffman padded with zeros",
            "Huffman with EOS",
            "the index 0",
            "a size beyond the setting",
        ],
        Ends(PROTOCOL),
    ),
    (
        "the connection ends where the stream would do; no client of good faith sends it",
        &[
            "DATA, half-closed",
            "HEADERS, half-closed",
            "HEADERS after RST_STREAM",
            "PRIORITY that is short",
            "WINDOW_UPDATE of 0 for a stream",
            "a name in capitals",
            "a name with a space",
            "a name that is empty",
            "a value with a line break",
            "a value with NUL",
            "an unknown pseudo-field",
            "an unknown pseudo-field in trailers",
        ],
        Ends(PROTOCOL),
    ),
    (
        "h2 does not show it to crawlgate, and it goes nowhere",
        &["a pseudo-field in trailers"],
        Page,
    ),
    (
        "the client has said goodbye, and no request is open",
        &["GOAWAY with an unknown code"],
        Closes,
    ),
];

/// A case: its section, its name, the frames, and what comes.
type Case = (&'static str, &'static str, Vec<u8>, Comes);

/// GET or POST for / over http, with :authority a.
const GET: &[u8] = b"\x82\x86\x84\x41\x01a";
const POST: &[u8] = b"\x83\x86\x84\x41\x01a";

/// A whole request without a body.
fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, WHOLE, stream, GET)
}

/// The head of a request whose body follows.
fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, POST)
}

/// A whole request whose head goes on behind that of [`get`].
fn get_with(block: &[u8]) -> Vec<u8> {
    frame(HEADERS, WHOLE, 1, &[GET, block].concat())
}

/// A whole request with these fields and no others.
fn of(fields: &[(&str, &str)]) -> Vec<u8> {
    let lines: Vec<u8> = fields
        .iter()
        .flat_map(|(name, value)| literal(name, value))
        .collect();
    frame(HEADERS, WHOLE, 1, &lines)
}

/// A request with these fields behind its own.
fn with(fields: &[(&str, &str)]) -> Vec<u8> {
    let own = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a.example"),
    ];
    of(&[&own, fields].concat())
}

fn settings(identifier: u16, value: u32) -> Vec<u8> {
    frame(
        SETTINGS_FRAME,
        0,
        0,
        &[&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat(),
    )
}

fn update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn all(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.concat()
}

/// Frames and their order (sections 4 and 5).
fn streams() -> Vec<Case> {
    let priority = |stream, on: u8| frame(PRIORITY, 0, stream, &[0, 0, 0, on, 15]);
    let left = || frame(HEADERS, END_STREAM, 1, GET);
    vec![
        (
            "4.1",
            "a frame of an unknown type",
            frame(0xff, 0, 0, &[0; 8]),
            Nothing,
        ),
        (
            "4.1",
            "flags that PING has not",
            frame(PING, 0x16, 0, &[0; 8]),
            Nothing,
        ),
        (
            "4.1",
            "the reserved bit",
            frame(PING, 0, 1 << 31, &[0; 8]),
            Nothing,
        ),
        (
            "4.2",
            "DATA of 2^14 bytes",
            all(&[post(1), frame(DATA, END_STREAM, 1, &[0; 16_384])]),
            Page,
        ),
        (
            "4.2",
            "DATA of 2^14 bytes and one",
            all(&[post(1), frame(DATA, 1, 1, &[0; 16_385])]),
            Ends(FRAME_SIZE),
        ),
        (
            "4.2",
            "HEADERS of 2^14 bytes and one",
            frame(HEADERS, WHOLE, 1, &[0; 16_385]),
            Ends(FRAME_SIZE),
        ),
        (
            "4.3",
            "a block that is none",
            frame(HEADERS, WHOLE, 1, &[0xff; 8]),
            Ends(COMPRESSION),
        ),
        (
            "4.3",
            "PRIORITY within a block",
            all(&[left(), priority(1, 0)]),
            Ends(PROTOCOL),
        ),
        (
            "4.3",
            "HEADERS of another stream within a block",
            all(&[left(), get(3)]),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "PRIORITY of an idle stream",
            all(&[priority(1, 0), get(1)]),
            Page,
        ),
        (
            "5.1",
            "PRIORITY, then HEADERS of a lower stream",
            all(&[priority(5, 0), get(3)]),
            Page,
        ),
        (
            "5.1",
            "DATA of an idle stream",
            frame(DATA, END_STREAM, 1, b"x"),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "RST_STREAM of an idle stream",
            frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "WINDOW_UPDATE of an idle stream",
            update(1, 100),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "CONTINUATION of an idle stream",
            frame(CONTINUATION, END_HEADERS, 1, GET),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "DATA, half-closed",
            all(&[get(1), frame(DATA, END_STREAM, 1, b"x")]),
            Resets(CLOSED),
        ),
        (
            "5.1",
            "HEADERS, half-closed",
            all(&[get(1), get(1)]),
            Resets(CLOSED),
        ),
        (
            "5.1",
            "CONTINUATION, half-closed",
            all(&[get(1), frame(CONTINUATION, 4, 1, GET)]),
            Ends(PROTOCOL),
        ),
        (
            "5.1",
            "WINDOW_UPDATE, half-closed",
            all(&[get(1), update(1, 100)]),
            Page,
        ),
        (
            "5.1",
            "PRIORITY, half-closed",
            all(&[get(1), priority(1, 0)]),
            Page,
        ),
        (
            "5.1",
            "RST_STREAM, half-closed",
            all(&[get(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])]),
            Nothing,
        ),
        (
            "5.1",
            "DATA after RST_STREAM",
            all(&[post(1), reset(1), frame(DATA, 1, 1, b"x")]),
            Resets(CLOSED),
        ),
        (
            "5.1",
            "HEADERS after RST_STREAM",
            all(&[post(1), reset(1), get(1)]),
            Resets(CLOSED),
        ),
        (
            "5.1",
            "CONTINUATION after RST_STREAM",
            all(&[post(1), reset(1), frame(CONTINUATION, 4, 1, GET)]),
            Ends(PROTOCOL),
        ),
        ("5.1.1", "a stream of the server", get(2), Ends(PROTOCOL)),
        (
            "5.1.1",
            "a stream below the last one",
            all(&[get(5), get(3)]),
            Ends(PROTOCOL),
        ),
        (
            "5.1.2",
            "one stream more than the limit",
            (0..5).flat_map(|number| post(2 * number + 1)).collect(),
            Resets(REFUSED),
        ),
        (
            "5.3.1",
            "HEADERS that depend on themselves",
            frame(
                HEADERS,
                WHOLE | WITH_PRIORITY,
                1,
                &[b"\0\0\0\x01\x0f", GET].concat(),
            ),
            Resets(PROTOCOL),
        ),
        (
            "5.3.1",
            "PRIORITY of a stream on itself",
            all(&[post(1), priority(1, 1)]),
            Resets(PROTOCOL),
        ),
        (
            "5.4.1",
            "the connection ends after GOAWAY",
            frame(PING, 0, 1, &[0; 8]),
            Ends(PROTOCOL),
        ),
        (
            "5.5",
            "an unknown frame between two",
            all(&[frame(0xff, 0, 1, &[0; 8]), get(1)]),
            Page,
        ),
        (
            "5.5",
            "an unknown frame within a block",
            all(&[left(), frame(0xff, 0, 0, &[0; 8])]),
            Ends(PROTOCOL),
        ),
    ]
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

/// Each type of frame (section 6).
fn frames() -> Vec<Case> {
    let left = || frame(HEADERS, END_STREAM, 1, &GET[..2]);
    let more = |flags, stream| frame(CONTINUATION, flags, stream, &GET[2..]);
    vec![
        (
            "6.1",
            "DATA of no stream",
            frame(DATA, END_STREAM, 0, b"x"),
            Ends(PROTOCOL),
        ),
        (
            "6.1",
            "DATA with padding",
            all(&[post(1), frame(DATA, END_STREAM | PADDED, 1, b"\x02a\0\0")]),
            Page,
        ),
        (
            "6.1",
            "DATA with too much padding",
            all(&[post(1), frame(DATA, END_STREAM | PADDED, 1, b"\x09a")]),
            Ends(PROTOCOL),
        ),
        (
            "6.2",
            "HEADERS with padding",
            frame(
                HEADERS,
                WHOLE | PADDED,
                1,
                &[b"\x02", GET, b"\0\0"].concat(),
            ),
            Page,
        ),
        (
            "6.2",
            "HEADERS with priority",
            frame(
                HEADERS,
                WHOLE | WITH_PRIORITY,
                1,
                &[b"\0\0\0\0\x0f", GET].concat(),
            ),
            Page,
        ),
        ("6.2", "HEADERS of no stream", get(0), Ends(PROTOCOL)),
        (
            "6.2",
            "HEADERS with too much padding",
            frame(HEADERS, WHOLE | PADDED, 1, &[b"\x20", GET].concat()),
            Ends(PROTOCOL),
        ),
        (
            "6.3",
            "PRIORITY of no stream",
            frame(PRIORITY, 0, 0, &[0, 0, 0, 1, 15]),
            Ends(PROTOCOL),
        ),
        (
            "6.3",
            "PRIORITY that is short",
            all(&[post(1), frame(PRIORITY, 0, 1, &[0, 0, 0, 1])]),
            Resets(FRAME_SIZE),
        ),
        (
            "6.4",
            "RST_STREAM of no stream",
            frame(RST_STREAM, 0, 0, &[0; 4]),
            Ends(PROTOCOL),
        ),
        (
            "6.4",
            "RST_STREAM that is short",
            all(&[post(1), frame(RST_STREAM, 0, 1, &[0; 3])]),
            Ends(FRAME_SIZE),
        ),
        (
            "6.5",
            "SETTINGS with ACK and a payload",
            frame(SETTINGS_FRAME, ACK, 0, &[0; 6]),
            Ends(FRAME_SIZE),
        ),
        (
            "6.5",
            "SETTINGS of a stream",
            frame(SETTINGS_FRAME, 0, 1, &[]),
            Ends(PROTOCOL),
        ),
        (
            "6.5",
            "SETTINGS that are cut",
            frame(SETTINGS_FRAME, 0, 0, &[0; 3]),
            Ends(FRAME_SIZE),
        ),
        ("6.5.2", "ENABLE_PUSH of 2", settings(2, 2), Ends(PROTOCOL)),
        (
            "6.5.2",
            "a window beyond 2^31",
            settings(4, 1 << 31),
            Ends(FLOW_CONTROL),
        ),
        (
            "6.5.2",
            "frames below 2^14",
            settings(5, 16_383),
            Ends(PROTOCOL),
        ),
        (
            "6.5.2",
            "frames beyond 2^24",
            settings(5, 1 << 24),
            Ends(PROTOCOL),
        ),
        (
            "6.5.2",
            "a setting that is unknown",
            settings(0xff, 1),
            Nothing,
        ),
        (
            "6.7",
            "PING with ACK",
            frame(PING, ACK, 0, &[0; 8]),
            Nothing,
        ),
        (
            "6.7",
            "PING of a stream",
            frame(PING, 0, 1, &[0; 8]),
            Ends(PROTOCOL),
        ),
        (
            "6.7",
            "PING that is short",
            frame(PING, 0, 0, &[0; 6]),
            Ends(FRAME_SIZE),
        ),
        (
            "6.8",
            "GOAWAY of a stream",
            frame(GOAWAY, 0, 1, &[0; 8]),
            Ends(PROTOCOL),
        ),
        ("6.9", "WINDOW_UPDATE of 0", update(0, 0), Ends(PROTOCOL)),
        (
            "6.9",
            "WINDOW_UPDATE of 0 for a stream",
            all(&[post(1), update(1, 0)]),
            Resets(PROTOCOL),
        ),
        (
            "6.9",
            "WINDOW_UPDATE that is short",
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            Ends(FRAME_SIZE),
        ),
        (
            "6.9.1",
            "windows beyond 2^31",
            all(&[update(0, 0x7fff_ffff), update(0, 0x7fff_ffff)]),
            Ends(FLOW_CONTROL),
        ),
        (
            "6.9.1",
            "windows beyond 2^31 for a stream",
            all(&[post(1), update(1, 0x7fff_ffff), update(1, 0x7fff_ffff)]),
            Resets(FLOW_CONTROL),
        ),
        (
            "6.10",
            "CONTINUATION, several",
            all(&[
                frame(HEADERS, 1, 1, &GET[..1]),
                frame(CONTINUATION, 0, 1, &GET[1..2]),
                more(4, 1),
            ]),
            Page,
        ),
        (
            "6.10",
            "CONTINUATION after the end of a block",
            all(&[post(1), more(END_HEADERS, 1)]),
            Ends(PROTOCOL),
        ),
        (
            "6.10",
            "CONTINUATION of no stream",
            all(&[left(), more(END_HEADERS, 0)]),
            Ends(PROTOCOL),
        ),
        (
            "6.10",
            "CONTINUATION of another stream",
            all(&[left(), more(END_HEADERS, 3)]),
            Ends(PROTOCOL),
        ),
        (
            "6.10",
            "CONTINUATION after CONTINUATION with an end",
            all(&[left(), more(4, 1), more(4, 1)]),
            Ends(PROTOCOL),
        ),
        (
            "6.10",
            "CONTINUATION after DATA",
            all(&[post(1), frame(DATA, 0, 1, b"x"), more(4, 1)]),
            Ends(PROTOCOL),
        ),
        (
            "7",
            "GOAWAY with an unknown code",
            all(&[frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xff])]),
            Nothing,
        ),
        (
            "7",
            "RST_STREAM with an unknown code",
            all(&[post(1), frame(RST_STREAM, 0, 1, &[0, 0, 0, 0xff])]),
            Nothing,
        ),
    ]
}

/// Requests (section 8).
fn messages() -> Vec<Case> {
    let (method, scheme, path) = ((":method", "GET"), (":scheme", "http"), (":path", "/"));
    let end = |fields: &[(&str, &str)]| {
        let block: Vec<u8> = fields
            .iter()
            .flat_map(|(name, value)| literal(name, value))
            .collect();
        all(&[
            post(1),
            frame(DATA, 0, 1, b"x"),
            frame(HEADERS, WHOLE, 1, &block),
        ])
    };
    let sized = |length: &str, pieces: &[&[u8]]| {
        let head = frame(
            HEADERS,
            END_HEADERS,
            1,
            &[POST, &literal("content-length", length)].concat(),
        );
        let count = pieces.len();
        let data = pieces
            .iter()
            .enumerate()
            .flat_map(|(place, piece)| frame(DATA, u8::from(place + 1 == count), 1, piece));
        head.into_iter().chain(data).collect::<Vec<u8>>()
    };
    vec![
        ("8.1", "trailers", end(&[("x-sum", "1")]), Page),
        (
            "8.1",
            "a second HEADERS without the end",
            all(&[post(1), frame(HEADERS, END_HEADERS, 1, &literal("a", "b"))]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2",
            "a name in capitals",
            with(&[("X-A", "1")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2",
            "a name with a space",
            with(&[("a b", "1")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2",
            "a name that is empty",
            with(&[("", "1")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2",
            "a value with a line break",
            with(&[("a", "1\r\nb: 2")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2",
            "a value with NUL",
            with(&[("a", "\0")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.1",
            "an unknown pseudo-field",
            with(&[(":other", "1")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.1",
            "a pseudo-field of responses",
            with(&[(":status", "200")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.1",
            "a pseudo-field in trailers",
            end(&[(":method", "GET")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.1",
            "an unknown pseudo-field in trailers",
            end(&[(":other", "1")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.1",
            "a pseudo-field behind a field",
            of(&[method, scheme, ("a", "1"), path]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "Connection",
            with(&[("connection", "keep-alive")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "Keep-Alive",
            with(&[("keep-alive", "timeout=5")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "Proxy-Connection",
            with(&[("proxy-connection", "close")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "Transfer-Encoding",
            with(&[("transfer-encoding", "chunked")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "Upgrade",
            with(&[("upgrade", "h2c")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.2",
            "TE other than trailers",
            with(&[("te", "trailers, deflate")]),
            Resets(PROTOCOL),
        ),
        ("8.1.2.2", "TE: trailers", with(&[("te", "trailers")]), Page),
        (
            "8.1.2.3",
            "an empty path",
            of(&[method, scheme, (":authority", "a"), (":path", "")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "no method",
            of(&[scheme, (":authority", "a"), path]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "no scheme",
            of(&[method, (":authority", "a"), path]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "no path",
            of(&[method, scheme, (":authority", "a")]),
            Resets(PROTOCOL),
        ),
        ("8.1.2.3", "two methods", with(&[method]), Resets(PROTOCOL)),
        ("8.1.2.3", "two schemes", with(&[scheme]), Resets(PROTOCOL)),
        ("8.1.2.3", "two paths", with(&[path]), Resets(PROTOCOL)),
        (
            "8.1.2.3",
            "two authorities",
            with(&[(":authority", "b")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "a scheme that is not HTTP's",
            of(&[method, (":scheme", "ftp"), (":authority", "a"), path]),
            Refusal,
        ),
        (
            "8.1.2.3",
            "a scheme in capitals",
            of(&[method, (":scheme", "HTTPS"), (":authority", "a"), path]),
            Page,
        ),
        (
            "8.1.2.3",
            "no authority and no host",
            of(&[method, scheme, path]),
            Refusal,
        ),
        (
            "8.1.2.3",
            "a path with a space",
            of(&[method, scheme, (":authority", "a"), (":path", "/a b")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "a path with a line break",
            of(&[method, scheme, (":authority", "a"), (":path", "/\r\na: b")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.3",
            "a URL for a path",
            of(&[method, scheme, (":authority", "a"), (":path", "http://a/")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.6",
            "less than the length",
            sized("2", &[b"x"]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.6",
            "more than the length",
            sized("1", &[b"xy"]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.6",
            "less than the length in several DATA",
            sized("5", &[b"x", b"y", b"z"]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.6",
            "as much as the length in several DATA",
            sized("3", &[b"x", b"y", b"z"]),
            Page,
        ),
        (
            "8.1.2.6",
            "a length without a body",
            with(&[("content-length", "5")]),
            Resets(PROTOCOL),
        ),
        (
            "8.1.2.6",
            "a length that is none",
            with(&[("content-length", "5x")]),
            Resets(PROTOCOL),
        ),
        (
            "8.2",
            "PUSH_PROMISE",
            all(&[
                post(1),
                frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], GET].concat()),
            ]),
            Ends(PROTOCOL),
        ),
        (
            "8.3",
            "extended CONNECT",
            of(&[
                (":method", "CONNECT"),
                (":protocol", "websocket"),
                scheme,
                path,
                (":authority", "a"),
            ]),
            Resets(PROTOCOL),
        ),
        (
            "8.3",
            "CONNECT with a path",
            of(&[(":method", "CONNECT"), scheme, path, (":authority", "a")]),
            Resets(PROTOCOL),
        ),
    ]
}

/// Blocks of fields (HPACK).
fn blocks() -> Vec<Case> {
    vec![
        (
            "HPACK 2.3.3",
            "an index beyond both tables",
            get_with(&[0xff, 0x80, 0x01]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 2.3.3",
            "a literal whose name is beyond both tables",
            get_with(&[0x7f, 0x80, 0x01, 1, b'a']),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 4.2",
            "a size at the end of a block",
            get_with(&[0x20]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 4.2",
            "a size at the beginning of a block",
            frame(HEADERS, WHOLE, 1, &[b"\x3f\xe1\x01", GET].concat()),
            Page,
        ),
        (
            "HPACK 5.2",
            "Huffman with more than seven bits of padding",
            get_with(&[0, 1, b'a', 0x82, 0x1f, 0xff]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 5.2",
            "Huffman padded with zeros",
            get_with(&[0, 1, b'a', 0x81, 0x18]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 5.2",
            "Huffman with EOS",
            get_with(&[0, 1, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 6.1",
            "the index 0",
            get_with(&[0x80]),
            Ends(COMPRESSION),
        ),
        (
            "HPACK 6.1",
            "indexed fields alone",
            frame(HEADERS, WHOLE, 1, b"\x82\x86\x84\x41\x01a\xbe"),
            Resets(PROTOCOL),
        ),
        (
            "HPACK 6.2.1",
            "a literal that is indexed, and its index",
            get_with(b"\x40\x01a\x01b\xbe"),
            Page,
        ),
        (
            "HPACK 6.2.2",
            "a literal with a Huffman name",
            get_with(b"\0\x81\x1f\x01b"),
            Page,
        ),
        (
            "HPACK 6.2.3",
            "a literal that is never indexed",
            get_with(b"\x10\x01a\x01b"),
            Page,
        ),
        (
            "HPACK 6.3",
            "a size beyond the setting",
            frame(HEADERS, WHOLE, 1, &[b"\x3f\xe2\x1f", GET].concat()),
            Ends(COMPRESSION),
        ),
    ]
}

/// What comes of a case, or of several things the last one. An answer counts only where one is
/// expected: to a request before the frame in question it may come early or late.
fn outcome(gate: &Gate, frames: &[u8], expected: Comes) -> Comes {
    let mut connection = open(gate);
    let awaits_answer = matches!(expected, Page | Refusal);
    let ping = |number: u8| frame(PING, 0, 0, &[number; 8]);
    let first = if awaits_answer { Vec::new() } else { ping(1) };
    connection.try_send_bytes(&[frames, &first].concat());
    loop {
        if connection.is_closed() {
            return Closes;
        }
        let (kind, flags, payload) = next(&mut connection);
        match kind {
            GOAWAY if payload[7] != 0 => {
                let mut rest = connection.sender();
                while rest.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
                return Ends(payload[7]);
            }
            RST_STREAM => return Resets(payload[3]),
            HEADERS if awaits_answer && payload[0] == 0x88 => return Page,
            HEADERS if awaits_answer && payload[0] == 0x8c => return Refusal,
            HEADERS if awaits_answer => panic!("another status: {payload:?}"),
            // A reset is sent behind the first one, in the same turn.
            PING if flags == ACK && payload == [1; 8] => {
                assert!(connection.try_send_bytes(&ping(2)))
            }
            PING if flags == ACK && payload == [2; 8] => return Nothing,
            _ => {}
        }
    }
}

fn open(gate: &Gate) -> Connection {
    let mut connection = gate.connect();
    connection.send_bytes(&[PREFACE, &SETTINGS].concat());
    connection
}

/// The next frame: its type, its flags and its payload.
fn next(connection: &mut Connection) -> (u8, u8, Vec<u8>) {
    let head = connection.bytes(9);
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    (head[3], head[4], connection.bytes(length as usize))
}

#[test]
fn frames_have_the_outcome_that_the_rfc_asks_for() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { streams: 4 }")
        .start();
    let cases = [streams(), frames(), messages(), blocks()].concat();
    let mut otherwise: BTreeMap<&str, Comes> = OTHERWISE
        .iter()
        .flat_map(|(_, names, comes)| names.iter().map(|name| (*name, *comes)))
        .collect();
    let mut wrong = Vec::new();
    for (section, name, frames, asked) in &cases {
        let expected = otherwise.remove(name).unwrap_or(*asked);
        let came = outcome(&gate, frames, expected);
        if came != expected {
            wrong.push(format!(
                "{section}, {name}: {came:?} instead of {expected:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert!(otherwise.is_empty(), "these are no cases: {otherwise:?}");
    assert_eq!(Http2::open(gate.address).get(HOST, "/", &[]).status, 200);
}

/// Waits for the frame that ends a stream.
fn wait_for_end(connection: &mut Connection) {
    while !matches!(next(connection), (DATA, END_STREAM, _)) {}
}

#[test]
fn frames_for_a_stream_that_was_answered_open_nothing() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    for (name, frames, expected) in [
        // A stream that the client closed, RFC 7540 lets a server forget, and end the connection
        // (section 5.1).
        ("DATA", frame(DATA, END_STREAM, 1, b"x"), Resets(CLOSED)),
        ("HEADERS", get(1), Ends(PROTOCOL)),
        (
            "CONTINUATION",
            frame(CONTINUATION, END_HEADERS, 1, GET),
            Ends(PROTOCOL),
        ),
        ("WINDOW_UPDATE", update(1, 100), Page),
        ("PRIORITY", frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 15]), Page),
        ("RST_STREAM", reset(1), Page),
    ] {
        let mut connection = open(&gate);
        connection.send_bytes(&get(1));
        wait_for_end(&mut connection);
        connection.try_send_bytes(&all(&[frames, get(3)]));
        let came = loop {
            let (kind, _, payload) = next(&mut connection);
            match kind {
                GOAWAY => break Ends(payload[7]),
                RST_STREAM => break Resets(payload[3]),
                HEADERS => break Page,
                _ => {}
            }
        };
        assert_eq!(came, expected, "{name}");
    }
}

#[test]
fn settings_and_pings_are_answered_and_windows_kept() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    // Of two values the last one holds (section 6.5.3).
    let values = [[0, 4, 0, 0, 0, 9], [0, 4, 0, 0, 0, 1]].concat();
    connection.send_bytes(&all(&[
        PREFACE.to_vec(),
        frame(SETTINGS_FRAME, 0, 0, &values),
    ]));
    let (kind, flags, _) = next(&mut connection);
    assert_eq!(
        (kind, flags),
        (SETTINGS_FRAME, 0),
        "the first frame of a server (section 3.5)"
    );
    connection.frame(SETTINGS_FRAME);
    connection.send_bytes(&frame(PING, 0, 0, b"12345678"));
    assert_eq!(connection.frame(PING).payload, b"12345678");
    connection.send_bytes(&get(1));
    assert_eq!(connection.frame(DATA).payload, b"h");
    connection.send_bytes(&update(1, 2));
    assert_eq!(connection.frame(DATA).payload, b"el");
    // The window of the stream is below 0 now (section 6.9.2).
    connection.send_bytes(&all(&[settings(4, 0), update(1, 2)]));
    assert_eq!(connection.frame(DATA).payload, b"l");
    connection.send_bytes(&settings(4, 100));
    assert_eq!(connection.frame(DATA).payload, b"o");
}
