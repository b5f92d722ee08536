//! `limits` decoded, and sizes in octets.

use super::super::Limits;
use super::{HOUR, MILLISECOND, SECOND, duration};
use crate::yaml::{Decoder, Fields, Node};
use std::ops::RangeInclusive;

/// The largest body that can be set as a limit: 1 TiB.
const LARGEST_BODY: usize = 1 << 40;

pub(super) fn limits(node: &Node, decoder: &mut Decoder<'_>) -> Limits {
    let mut limits = Limits::default();
    let wanted = "a map: connections, connections_per_address, handshake, head, idle, stall, body_rate, body, target, \
                  headers, fields, streams, buffers, buffers_per_address, drain";
    let Some(mut fields) = decoder.fields(node, wanted) else { return limits };
    for (name, bounds, into) in [
        ("handshake", MILLISECOND..=HOUR, &mut limits.handshake),
        ("head", MILLISECOND..=HOUR, &mut limits.head),
        ("idle", SECOND..=HOUR, &mut limits.idle),
        ("stall", MILLISECOND..=HOUR, &mut limits.stall),
        ("drain", SECOND..=HOUR, &mut limits.drain),
    ] {
        if let Some(node) = fields.take(name) {
            duration(node, bounds, into, decoder);
        }
    }
    for (name, bounds, into) in [
        ("target", 256..=65_536, &mut limits.target),
        ("headers", 1_024..=1_048_576, &mut limits.headers),
        ("buffers", 16_384..=LARGEST_BODY, &mut limits.buffers),
        ("buffers_per_address", 16_384..=LARGEST_BODY, &mut limits.buffers_per_address),
    ] {
        if let Some(node) = fields.take(name) {
            size(node, bounds, into, decoder);
        }
    }
    if let Some(node) = fields.take("body_rate") {
        rate(node, &mut limits.body_rate, decoder);
    }
    if let Some(node) = fields.take("body") {
        let mut body = 0;
        size(node, 1..=LARGEST_BODY, &mut body, decoder);
        limits.body = u64::try_from(body).ok();
    }
    numbers(&mut fields, &mut limits, decoder);
    fields.finish(decoder);
    limits
}

fn numbers(fields: &mut Fields<'_>, limits: &mut Limits, decoder: &mut Decoder<'_>) {
    let mut number = |name, bounds: RangeInclusive<u64>, what| {
        fields
            .take(name)
            .and_then(|node| decoder.integer(node, bounds, what))
            .and_then(|found| usize::try_from(found).ok())
    };
    if let Some(connections) = number("connections", 1..=10_000_000, "a number of connections") {
        limits.connections = connections;
    }
    if let Some(connections) = number("connections_per_address", 1..=10_000_000, "a number of connections") {
        limits.connections_per_address = connections;
    }
    if let Some(fields) = number("fields", 10..=256, "a number of header fields") {
        limits.fields = fields;
    }
    if let Some(streams) =
        number("streams", 1..=10_000, "a number of requests").and_then(|streams| u32::try_from(streams).ok())
    {
        limits.streams = streams;
    }
}

/// Octets a second: `1KiB/s`; `off` for any.
fn rate(node: &Node, into: &mut usize, decoder: &mut Decoder<'_>) {
    let Some(text) = decoder.text(node, "octets a second, like 1KiB/s") else { return };
    if text == "off" {
        *into = 0;
        return;
    }
    match text.strip_suffix("/s").and_then(octets).filter(|octets| (1..=1_048_576).contains(octets)) {
        Some(octets) => *into = octets,
        None => {
            decoder.error("bad-value", node.span, format!("`{text}` is not a rate that is accepted here")).help =
                Some("write octets a second, from `1/s` to `1MiB/s`, or `off`".into());
        }
    }
}

fn size(node: &Node, bounds: RangeInclusive<usize>, into: &mut usize, decoder: &mut Decoder<'_>) {
    let Some(text) = decoder.text(node, "a size, like 16KiB") else { return };
    match octets(text).filter(|octets| bounds.contains(octets)) {
        Some(octets) => *into = octets,
        None => {
            decoder.error("bad-value", node.span, format!("`{text}` is not a size that is accepted here")).help =
                Some(format!(
                    "from {} to {}, as `16KiB`, or octets, as `16384`",
                    in_units(*bounds.start()),
                    in_units(*bounds.end())
                ));
        }
    }
}

/// Octets: `16384`, `16KiB`, `16k`, `1MiB`, `1GiB`.
fn octets(text: &str) -> Option<usize> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let unit: usize = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1_024,
        "m" | "mib" => 1_048_576,
        "g" | "gib" => 1_073_741_824,
        _ => return None,
    };
    text[..digits].parse::<usize>().ok()?.checked_mul(unit)
}

/// As people write it.
fn in_units(octets: usize) -> String {
    let units = [(1_073_741_824, "GiB"), (1_048_576, "MiB"), (1_024, "KiB")];
    match units.into_iter().find(|(unit, _)| octets >= *unit && octets.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", octets / unit),
        None => format!("{octets} octets"),
    }
}
