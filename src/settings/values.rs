//! Decodes values that several sections of the settings have in common: durations and numbers
//! within bounds, paths, addresses, lists, and `off`.

use crate::yaml::{Reader, Value};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

pub const MILLISECOND: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3_600);
pub const DAY: Duration = Duration::from_secs(86_400);

/// A reader of `off` (also `no` or `false`, unquoted), which gives `Some(None)`, or of what `value`
/// reads. `None` after a mistake.
pub fn or_off<T>(
    value: impl FnOnce(Reader<'_>) -> Option<T>,
) -> impl FnOnce(Reader<'_>) -> Option<Option<T>> {
    |node| match &node.value {
        Value::Scalar { text, plain: true }
            if ["off", "no", "false"].contains(&text.to_ascii_lowercase().as_str()) =>
        {
            Some(None)
        }
        _ => value(node).map(Some),
    }
}

pub fn address(node: Reader<'_>) -> Option<SocketAddr> {
    let text = node.text("an address and port, like 127.0.0.1:9090")?;
    super::address::listen_address(text)
        .map_err(|error| node.error("bad-address", error.to_string()))
        .ok()
}

/// The entries of a list; a single value or map is a list of one. Nothing at all is reported, with
/// what is `wanted`.
pub fn list<'n>(node: Reader<'n>, wanted: &str) -> Vec<Reader<'n>> {
    if node.is_map() {
        vec![node]
    } else {
        node.one_or_many(wanted).collect()
    }
}

/// A reader of a duration within bounds.
pub fn within(bounds: RangeInclusive<Duration>) -> impl FnOnce(Reader<'_>) -> Option<Duration> {
    move |node| {
        let help = format!("from {:?} to {:?}", bounds.start(), bounds.end());
        node.duration_within(bounds, "this duration is out of bounds", Some(&help))
    }
}

/// A reader of a whole number within bounds.
pub fn number<T: TryFrom<u64>>(
    bounds: RangeInclusive<u64>,
    wanted: &str,
) -> impl FnOnce(Reader<'_>) -> Option<T> {
    move |node| node.integer(bounds, wanted)
}

/// A file or directory; relative ones are relative to the settings.
pub fn path(node: Reader<'_>) -> Option<PathBuf> {
    let text = node.text("a path")?;
    let is_path = !text.is_empty() && !text.contains('\0');
    if !is_path {
        node.error("bad-path", "this is not a path");
    }
    is_path.then(|| node.decoder.directory.join(text))
}
