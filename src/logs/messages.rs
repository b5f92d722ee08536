//! [`is_server_message`] recognises messages about start and errors, which servers write into the
//! same output as their access log.

use super::haproxy::strip_tag;
use super::prefixes::strip_syslog_time;
use super::timestamps::matches_shape;

/// The beginnings of messages.
const MESSAGE_PREFIXES: &[&[u8]] = &[
    // The image of nginx, and nginx and Apache before they have opened a log.
    b"/docker-entrypoint.sh: ",
    b"10-listen-on-ipv6-by-default.sh: ",
    b"nginx: [",
    b"AH0",
    // HAProxy.
    b"[NOTICE] ",
    b"[WARNING] ",
    b"[ALERT] ",
    // Traefik 2.
    b"time=\"",
    // docker compose and journalctl.
    b"Attaching to ",
    b"-- ",
];

/// The levels that crawlgate and Traefik 3 write after a time.
const LOG_LEVELS: &[&[u8]] = &[
    b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"TRC", b"DBG", b"INF", b"WRN", b"ERR", b"FTL",
];

/// Whether a line is a message of a known server.
pub fn is_server_message(line: &[u8]) -> bool {
    MESSAGE_PREFIXES
        .iter()
        .any(|beginning| line.starts_with(beginning))
        || is_nginx_or_caddy_message(line)
        || is_apache_message(line)
        || is_haproxy_message(line)
        || strip_syslog_time(line).is_some_and(|rest| {
            let mut words = rest.trim_ascii_start().split(|byte| *byte == b' ');
            let is_level = words.next().is_some_and(|word| LOG_LEVELS.contains(&word));
            is_level || words.next().is_some_and(|tag| tag.starts_with(b"systemd["))
        })
}

/// Whether a line is a message of nginx, `2026/11/22 10:00:00 [error] 12#12: `, or one of Caddy in
/// its format for people, which has tabs. An access log of Caddy in that format is none: it must be
/// reported as unreadable.
fn is_nginx_or_caddy_message(line: &[u8]) -> bool {
    const SHAPE: &[u8] = b"0000/00/00 00:00:00";
    let Some((time, rest)) = line.split_at_checked(SHAPE.len()) else {
        return false;
    };
    let is_caddy = rest.starts_with(b".") && rest.contains(&b'\t');
    matches_shape(time, SHAPE)
        && (rest.starts_with(b" [")
            || is_caddy && memchr::memmem::find(rest, b"http.log.access").is_none())
}

/// Whether a line is a message of Apache,
/// `[Sun Nov 22 10:00:00.123456 2026] [core:error] [pid 1] `.
fn is_apache_message(line: &[u8]) -> bool {
    line.get(..5)
        .is_some_and(|begin| matches_shape(begin, b"[aaa "))
        && line.contains(&b']')
}

/// Whether a line is a message of HAProxy about one of its proxies or servers, with or without its
/// tag: `haproxy[14389]: Proxy http-in started.`
fn is_haproxy_message(line: &[u8]) -> bool {
    let message = strip_tag(line);
    [b"Proxy ".as_slice(), b"Server ", b"Health check "]
        .iter()
        .any(|beginning| message.starts_with(beginning))
}
