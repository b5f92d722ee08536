//! [`strip_first_prefix`] removes the prefix that a log collector writes before a line of an access
//! log: CRI, Docker, syslog, docker compose or kubectl. Each prefix is one function in
//! [`PREFIXES`]. A line may have several prefixes.

use super::FieldBytes;
use super::timestamps::matches_shape;
use serde::Deserialize;
use std::borrow::Cow;

/// Returns the rest of a line after the prefix. `None` if the line does not have it.
type PrefixStripper = fn(&[u8]) -> Option<&[u8]>;

const PREFIXES: &[PrefixStripper] = &[
    strip_cri,
    strip_syslog_3164,
    strip_syslog_5424,
    strip_rfc3339,
    strip_compose,
    strip_kubectl,
];

/// Names of containers and pods are shorter: RFC 1123, with the names of a project and a node.
const MAX_NAME: usize = 256;

/// Removes the first prefix, or unwraps the JSON object of a collector. `None` if the line has
/// neither.
pub fn strip_first_prefix(line: &[u8]) -> Option<FieldBytes<'_>> {
    if line.starts_with(b"{") {
        return unwrap_json(line);
    }
    PREFIXES
        .iter()
        .find_map(|strip| strip(line))
        .map(Cow::Borrowed)
}

/// The JSON object of Docker's json-file (`log`) or of a collector.
#[derive(Deserialize)]
struct WrappedLine<'a> {
    #[serde(borrow, alias = "message", alias = "MESSAGE", alias = "msg")]
    log: Cow<'a, str>,
}

/// The line within a JSON object, without its line end. `None` if it is missing or empty.
fn unwrap_json(line: &[u8]) -> Option<FieldBytes<'_>> {
    let WrappedLine { log } = serde_json::from_slice(line).ok()?;
    let inner = log.trim_end_matches(['\n', '\r']);
    (!inner.is_empty()).then(|| Cow::Owned(inner.as_bytes().to_vec()))
}

/// Strips `2026-11-22T10:00:00.123456789Z stdout F `, of containerd and CRI-O.
fn strip_cri(line: &[u8]) -> Option<&[u8]> {
    let (stream, rest) = split_word(strip_rfc3339(line)?)?;
    let (tags, rest) = split_word(rest)?;
    let is_cri = matches!(stream, b"stdout" | b"stderr")
        && matches!(tags, [b'F' | b'P'] | [b'F' | b'P', b':', ..]);
    is_cri.then_some(rest)
}

/// Strips `Nov 22 10:00:00 host nginx[12]: ` (RFC 3164 section 4.1), also with the times of RFC 3339
/// that rsyslog and journalctl write. A tag ends with a colon, and a virtual host does not. The host
/// may be missing.
fn strip_syslog_3164(line: &[u8]) -> Option<&[u8]> {
    let (first, rest) = split_word(strip_syslog_time(line)?)?;
    let (tag, rest) = if first.ends_with(b":") {
        (first, rest)
    } else {
        split_word(rest)?
    };
    tag.ends_with(b":").then(|| rest.trim_ascii_start())
}

/// Strips `Nov 22 10:00:00 ` or a time of RFC 3339, with the priority (`<190>`) that may come before
/// it.
pub fn strip_syslog_time(line: &[u8]) -> Option<&[u8]> {
    let line = strip_priority(line).unwrap_or(line);
    strip_rfc3339(line).or_else(|| {
        const SHAPE: &[u8] = b"aaa ?0 00:00:00 ";
        let (time, rest) = line.split_at_checked(SHAPE.len())?;
        matches_shape(time, SHAPE).then_some(rest)
    })
}

/// Strips `<165>1 2026-11-22T10:00:00.003Z host nginx - - [x@1 y="z"] ` (RFC 5424 section 6), and a
/// byte order mark after it.
fn strip_syslog_5424(line: &[u8]) -> Option<&[u8]> {
    let mut rest = strip_priority(line)?.strip_prefix(b"1 ")?;
    for _ in ["time", "host", "application", "process", "message"] {
        (_, rest) = split_word(rest)?;
    }
    let rest = match rest.strip_prefix(b"-") {
        Some(rest) => rest,
        None => strip_structured_data(rest)?,
    };
    let rest = rest.trim_ascii_start();
    Some(rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest))
}

/// Strips the elements in brackets at the beginning, up to the first `] ` that is not in quotes.
/// Quoted values may have `\]`.
fn strip_structured_data(text: &[u8]) -> Option<&[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (place, byte) in text.strip_prefix(b"[")?.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b' ' if !is_quoted && text[place] == b']' => return Some(&text[place + 1..]),
            _ => {}
        }
    }
    None
}

/// Strips `web-1  | `, of docker compose and docker service.
fn strip_compose(line: &[u8]) -> Option<&[u8]> {
    let name = line
        .iter()
        .take(MAX_NAME)
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"-._@/".contains(byte))
        .filter(|length| *length > 0)?;
    let rest = line[name..]
        .strip_prefix(b" ")?
        .trim_ascii_start()
        .strip_prefix(b"|")?;
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// Strips `[pod/web-0/nginx] `, of `kubectl logs --prefix`.
fn strip_kubectl(line: &[u8]) -> Option<&[u8]> {
    let (name, rest) = split_word(line.strip_prefix(b"[pod/")?)?;
    name.ends_with(b"]").then_some(rest)
}

/// Strips a priority of syslog, such as `<190>`.
fn strip_priority(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"<")?;
    let digits = rest
        .iter()
        .take(4)
        .position(|byte| !byte.is_ascii_digit())
        .filter(|digits| *digits > 0)?;
    rest[digits..].strip_prefix(b">")
}

/// Strips `2026-11-22T10:00:00.123456789Z `, of `--timestamps`. journalctl writes `+0100` for
/// `+01:00`.
fn strip_rfc3339(line: &[u8]) -> Option<&[u8]> {
    let (time, rest) = split_word(line)?;
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let (second, fraction) = time.split_at_checked(SHAPE.len())?;
    let is_time = matches_shape(second, SHAPE)
        && fraction
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".,:+-Z".contains(byte));
    is_time.then_some(rest)
}

/// Splits at the first blank. `None` if there is no blank, or nothing before it.
fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}
