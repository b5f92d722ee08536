//! Decoders of values that several sections of the settings file `crawlgate.yaml` have: durations
//! and numbers within bounds, paths, addresses, lists, and `off`.

use crate::yaml::{NodeReader, NodeValue};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub const MILLISECOND: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3_600);
pub const DAY: Duration = Duration::from_secs(86_400);

/// One value or a list of distinct values. `wanted` is for messages, `id` is the error for a
/// duplicate, and `mistake` the error for a value that `parse` rejects. Leaves out mistakes.
pub fn decode_distinct(
    node: NodeReader<'_>,
    [wanted, id]: [&'static str; 2],
    parse: fn(&str) -> Option<String>,
    mistake: (&'static str, &str, &str),
) -> Vec<String> {
    let mut found = Vec::new();
    for item in node.one_or_many(wanted) {
        let Some(value) = item.parse_with(wanted, parse, mistake) else {
            continue;
        };
        if found.contains(&value) {
            item.error(id, format!("\"{value}\" is listed twice"));
        } else {
            found.push(value);
        }
    }
    found
}

/// A decoder of `off` (also `no` or `false`, unquoted), which gives `Some(None)`, or of `value`.
/// `None` after a mistake.
pub fn decode_or_off<T>(
    value: impl FnOnce(NodeReader<'_>) -> Option<T>,
) -> impl FnOnce(NodeReader<'_>) -> Option<Option<T>> {
    |node| match &node.value {
        NodeValue::Scalar { text, plain: true }
            if ["off", "no", "false"].contains(&text.to_ascii_lowercase().as_str()) =>
        {
            Some(None)
        }
        _ => value(node).map(Some),
    }
}

pub fn decode_address(node: NodeReader<'_>) -> Option<SocketAddr> {
    super::address::parse_listen_address(node.text("an address and port, like 127.0.0.1:9190")?)
        .map_err(|error| node.error("bad-address", error.to_string()))
        .ok()
}

/// A timeout of up to an hour.
pub fn decode_timeout(node: NodeReader<'_>) -> Option<Duration> {
    duration_within(MILLISECOND..=HOUR)(node)
}

/// A decoder of a duration within bounds.
pub fn duration_within(
    bounds: RangeInclusive<Duration>,
) -> impl FnOnce(NodeReader<'_>) -> Option<Duration> {
    move |node| {
        let help = format!("write {:?} to {:?}", bounds.start(), bounds.end());
        node.duration_within(
            bounds,
            "this duration is too short or too long",
            Some(&help),
        )
    }
}

/// A decoder of a whole number within bounds.
pub fn number_within<T: TryFrom<u64>>(
    bounds: RangeInclusive<u64>,
    wanted: &str,
) -> impl FnOnce(NodeReader<'_>) -> Option<T> {
    move |node| node.integer(bounds, wanted)
}

/// A file or directory. A relative path begins at the directory of the settings file.
pub fn decode_path(node: NodeReader<'_>) -> Option<PathBuf> {
    let text = node.text("a path")?;
    let is_path = !text.is_empty() && !text.contains('\0');
    if !is_path {
        node.error("bad-path", "this is not a path");
    }
    is_path.then(|| node.decoder.directory.join(text))
}

/// A path of ASCII without these bytes.
pub fn parse_plain_path(text: &str, without: &[u8]) -> Option<String> {
    let is_plain = text.starts_with('/')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !without.contains(&byte));
    is_plain.then(|| text.to_owned())
}
