//! [`is_message`] knows lines that servers write beside their access log, into the same output:
//! their start and errors.

use super::moment::is_like;
use super::prefixes::syslog_time;

/// What such lines begin with.
const BEGINNINGS: &[&[u8]] = &[
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

/// Behind a time: crawlgate, Traefik 3, and systemd after its host.
const LEVELS: &[&[u8]] = &[
    b"TRACE", b"DEBUG", b"INFO", b"WARN", b"ERROR", b"TRC", b"DBG", b"INF", b"WRN", b"ERR", b"FTL",
];

/// Whether a line that could not be read is a message of a server that is known.
pub fn is_message(line: &[u8]) -> bool {
    BEGINNINGS
        .iter()
        .any(|beginning| line.starts_with(beginning))
        || is_nginx_or_caddy(line)
        || is_apache(line)
        || syslog_time(line).is_some_and(|rest| {
            let mut words = rest.trim_ascii_start().split(|byte| *byte == b' ');
            let is_level = words.next().is_some_and(|word| LEVELS.contains(&word));
            is_level || words.next().is_some_and(|tag| tag.starts_with(b"systemd["))
        })
}

/// Whether a line is a message of nginx, `2026/11/22 10:00:00 [error] 12#12: `, or one of Caddy's
/// for people, which have tabs. Not a line of Caddy's access log in that form, which cannot be
/// read.
fn is_nginx_or_caddy(line: &[u8]) -> bool {
    const SHAPE: &[u8] = b"0000/00/00 00:00:00";
    let Some((time, rest)) = line.split_at_checked(SHAPE.len()) else {
        return false;
    };
    let is_caddy = rest.starts_with(b".") && rest.contains(&b'\t');
    is_like(time, SHAPE)
        && (rest.starts_with(b" [")
            || is_caddy && memchr::memmem::find(rest, b"http.log.access").is_none())
}

/// Whether a line is a message of Apache,
/// `[Sun Nov 22 10:00:00.123456 2026] [core:error] [pid 1] `.
fn is_apache(line: &[u8]) -> bool {
    line.get(..5).is_some_and(|begin| is_like(begin, b"[aaa ")) && line.contains(&b']')
}
