//! [`strip`] takes off what collectors of logs write before a line: CRI, Docker, syslog, docker
//! compose and kubectl. A prefix is one entry of [`PREFIXES`]. A line may have several, one behind
//! the other.

use super::Octets;
use super::moment::is_like;
use serde::Deserialize;
use std::borrow::Cow;

/// Returns what stands behind a prefix; `None` where a line does not have it.
type Strip = fn(&[u8]) -> Option<&[u8]>;

const PREFIXES: &[Strip] = &[cri, syslog_3164, syslog_5424, rfc3339, compose, kubectl];

/// Names of containers and pods are shorter (RFC 1123, with the names of a project and a node).
const MAX_NAME: usize = 256;

/// A line without its first prefix, or the line that stands in a JSON object of a collector. `None`
/// if it has neither.
pub fn strip(line: &[u8]) -> Option<Octets<'_>> {
    if line.starts_with(b"{") {
        return wrapped(line);
    }
    PREFIXES
        .iter()
        .find_map(|strip| strip(line))
        .map(Cow::Borrowed)
}

/// A line within JSON, of Docker's json-file (`log`) or of a collector.
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow, alias = "message", alias = "MESSAGE", alias = "msg")]
    log: Cow<'a, str>,
}

/// The line within a JSON object, in `log`, `message`, `MESSAGE` or `msg`, without its line end.
/// `None` if there is none, or an empty one.
fn wrapped(line: &[u8]) -> Option<Octets<'_>> {
    let Wrapped { log } = serde_json::from_slice(line).ok()?;
    let inner = log.trim_end_matches(['\n', '\r']);
    (!inner.is_empty()).then(|| Cow::Owned(inner.as_bytes().to_vec()))
}

/// What stands behind `2026-11-22T10:00:00.123456789Z stdout F `, of containerd and CRI-O.
fn cri(line: &[u8]) -> Option<&[u8]> {
    let (stream, rest) = word(rfc3339(line)?)?;
    let (tags, rest) = word(rest)?;
    let is_cri = matches!(stream, b"stdout" | b"stderr")
        && matches!(tags, [b'F' | b'P'] | [b'F' | b'P', b':', ..]);
    is_cri.then_some(rest)
}

/// What stands behind `Nov 22 10:00:00 host nginx[12]: ` (RFC 3164 section 4.1), also with the
/// times of RFC 3339 that rsyslog and journalctl write. The colon behind the tag tells it from a
/// virtual host; the host may be missing.
fn syslog_3164(line: &[u8]) -> Option<&[u8]> {
    let (first, rest) = word(syslog_time(line)?)?;
    let (tag, rest) = if first.ends_with(b":") {
        (first, rest)
    } else {
        word(rest)?
    };
    tag.ends_with(b":").then(|| rest.trim_ascii_start())
}

/// What stands behind the time at the beginning of a line, `Nov 22 10:00:00 ` or one of RFC 3339; a
/// priority (`<190>`) may stand before it. `None` without such a time.
pub fn syslog_time(line: &[u8]) -> Option<&[u8]> {
    let line = priority(line).unwrap_or(line);
    rfc3339(line).or_else(|| {
        const SHAPE: &[u8] = b"aaa ?0 00:00:00 ";
        let (time, rest) = line.split_at_checked(SHAPE.len())?;
        is_like(time, SHAPE).then_some(rest)
    })
}

/// What stands behind `<165>1 2026-11-22T10:00:00.003Z host nginx - - [x@1 y="z"] ` (RFC 5424
/// section 6), without a byte order mark.
fn syslog_5424(line: &[u8]) -> Option<&[u8]> {
    let mut rest = priority(line)?.strip_prefix(b"1 ")?;
    for _ in ["time", "host", "application", "process", "message"] {
        (_, rest) = word(rest)?;
    }
    let rest = match rest.strip_prefix(b"-") {
        Some(rest) => rest,
        None => structured_data(rest)?,
    };
    let rest = rest.trim_ascii_start();
    Some(rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest))
}

/// What stands behind the elements in brackets at the beginning of a text: behind the first `] `
/// that is not in quotes. Values stand in quotes and may hold `\]`. `None` if there is no such end.
fn structured_data(text: &[u8]) -> Option<&[u8]> {
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

/// What stands behind `web-1  | `, of docker compose and docker service.
fn compose(line: &[u8]) -> Option<&[u8]> {
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

/// What stands behind `[pod/web-0/nginx] `, of `kubectl logs --prefix`.
fn kubectl(line: &[u8]) -> Option<&[u8]> {
    let (name, rest) = word(line.strip_prefix(b"[pod/")?)?;
    name.ends_with(b"]").then_some(rest)
}

/// What stands behind a priority of syslog, such as `<190>`.
fn priority(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"<")?;
    let digits = rest
        .iter()
        .take(4)
        .position(|byte| !byte.is_ascii_digit())
        .filter(|digits| *digits > 0)?;
    rest[digits..].strip_prefix(b">")
}

/// What stands behind `2026-11-22T10:00:00.123456789Z `, of `--timestamps`. journalctl writes
/// `+0100` in place of `+01:00`.
fn rfc3339(line: &[u8]) -> Option<&[u8]> {
    let (time, rest) = word(line)?;
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let (second, fraction) = time.split_at_checked(SHAPE.len())?;
    let is_time = is_like(second, SHAPE)
        && fraction
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".,:+-Z".contains(byte));
    is_time.then_some(rest)
}

/// The word before the first blank, and what stands behind the blank. `None` if there is no blank,
/// or nothing before it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}
