//! [`is_server_message`] recognises messages about start and errors, which servers write into the
//! same output as their access log.

use super::prefixes::compile;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// The beginnings of messages. A blank is `\x20`.
const MESSAGE: &str = r#"(?xs-u)^(?:
    # The image of nginx, and nginx and Apache before they have opened a log.
    /docker-entrypoint\.sh:\x20 | 10-listen-on-ipv6-by-default\.sh:\x20 | nginx:\x20\[ | AH0
    # nginx: 2026/11/22 10:00:00 [error] 12#12: ; Caddy in its format for people, which has tabs.
    | \d{4}/\d\d/\d\d\x20\d\d:\d\d:\d\d (?:\x20\[ | \..*\t)
    # Apache: [Sun Nov 22 10:00:00.123456 2026] [core:error] [pid 1]
    | \[[A-Za-z]{3}\x20.*\]
    # HAProxy, also about one of its proxies or servers: haproxy[14389]: Proxy http-in started.
    | \[(?:NOTICE|WARNING|ALERT)\]\x20
    | (?:haproxy\[\d*\]:\x20)? (?:Proxy | Server | Health\x20check)\x20
    # Traefik 2.
    | time="
    # docker compose and journalctl.
    | Attaching\x20to\x20 | --\x20
    # systemd, and the levels that crawlgate and Traefik 3 write after a time.
    | (?:<\d{1,3}>)?
      (?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:+Z-]*\x20 | [A-Za-z]{3}\x20.\d\x20\d\d:\d\d:\d\d\x20)
      \s*
      (?:(?:TRACE|DEBUG|INFO|WARN|ERROR|TRC|DBG|INF|WRN|ERR|FTL)(?:\x20|$) | [^\x20]*\x20systemd\[)
)"#;

/// Whether a line is a message of a known server. An access log of Caddy in its format for people is
/// none: it must be reported as unreadable.
pub fn is_server_message(line: &[u8]) -> bool {
    static FINDER: LazyLock<Regex> = LazyLock::new(|| compile(MESSAGE));
    FINDER.is_match(line) && memchr::memmem::find(line, b"http.log.access").is_none()
}
