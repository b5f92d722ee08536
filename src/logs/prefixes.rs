//! [`strip_first_prefix`] removes the prefix that a log collector writes before a line of an access
//! log: CRI, Docker, syslog, docker compose or kubectl. A line may have several prefixes.

use super::FieldBytes;
use regex::bytes::Regex;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The known prefixes, each with an example. A blank is `\x20`.
const PREFIX: &str = r#"(?xs-u)^(?:
    # containerd and CRI-O: 2026-11-22T10:00:00.123456789Z stdout F
    \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:+Z-]*\x20 std(?:out|err)\x20 [FP](?::[^\x20]*)?\x20
    # RFC 3164 section 4.1, also with the times of rsyslog and journalctl, and without a host. A tag
    # ends with a colon, and a virtual host does not: <190>Nov 22 10:00:00 host nginx[12]:
    | (?:<\d{1,3}>)?
      (?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:+Z-]*\x20 | [A-Za-z]{3}\x20.\d\x20\d\d:\d\d:\d\d\x20)
      (?:[^\x20]*:\x20 | [^\x20]*[^\x20:]\x20[^\x20]*:\x20) \s*
    # RFC 5424 section 6, and a byte order mark. Quoted values may have an escaped bracket:
    # <165>1 2026-11-22T10:00:00.003Z host nginx - - [x@1 y="z"]
    | <\d{1,3}>1\x20 (?:[^\x20]+\x20){5}
      (?:- | \[(?:\\. | "(?:\\. | [^"\\])*" | [^"\\])*?\]\x20) \s* (?:\xef\xbb\xbf)?
    # --timestamps: 2026-11-22T10:00:00.123456789Z
    | \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:+Z-]*\x20
    # docker compose and docker service: web-1  |
    | [\w.@/-]+\x20\s*\|\x20?
    # kubectl logs --prefix: [pod/web-0/nginx]
    | \[pod/[^\x20]*\]\x20
)"#;

/// Compiles an expression of this program.
#[expect(
    clippy::expect_used,
    reason = "the expressions are part of the program"
)]
pub fn compile(expression: &str) -> Regex {
    Regex::new(expression).expect("an expression that is tested")
}

/// Removes the first prefix, or unwraps the JSON object of a collector. `None` if the line has
/// neither.
pub fn strip_first_prefix(line: &[u8]) -> Option<FieldBytes<'_>> {
    static FINDER: LazyLock<Regex> = LazyLock::new(|| compile(PREFIX));
    if line.starts_with(b"{") {
        return unwrap_json(line);
    }
    let prefix = FINDER.find(line)?;
    Some(Cow::Borrowed(&line[prefix.end()..]))
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
