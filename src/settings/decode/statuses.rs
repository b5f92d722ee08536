//! Statuses of answers decoded.

use crate::yaml::{Decoder, Node};
use std::ops::RangeInclusive;

/// Statuses and ranges of them: `503`, `[502, 503]`, `200-399`.
pub(super) fn statuses(
    node: &Node,
    bounds: RangeInclusive<u16>,
    decoder: &mut Decoder<'_>,
) -> Vec<RangeInclusive<u16>> {
    let mut statuses = Vec::new();
    for written in decoder.texts(node, "a list of statuses, like 503 or 500-504") {
        let text = written.value.as_str();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last && bounds.contains(&first) && bounds.contains(&last) => {
                statuses.push(first..=last);
            }
            _ => {
                decoder
                    .error("bad-value", written.span, format!("`{text}` is not a status that is accepted here"))
                    .help = Some(format!("write a status or a range, from {} to {}", bounds.start(), bounds.end()));
            }
        }
    }
    statuses
}
