//! Decodes `limits`: sizes in octets, rates, durations and counts.

use super::super::Limits;
use super::{HOUR, MILLISECOND, SECOND, number, within};
use crate::yaml::{Decoder, Fields, Node};
use std::ops::RangeInclusive;

/// The largest body that can be set as a limit: 1 TiB.
const LARGEST_BODY: usize = 1 << 40;

pub(super) fn limits(fields: &mut Fields<'_>) -> Limits {
    let mut limits = Limits::DEFAULT;
    for (name, bounds, into) in [
        ("handshake", MILLISECOND..=HOUR, &mut limits.handshake),
        ("head", MILLISECOND..=HOUR, &mut limits.head),
        ("idle", SECOND..=HOUR, &mut limits.idle),
        ("stall", MILLISECOND..=HOUR, &mut limits.stall),
        ("drain", SECOND..=HOUR, &mut limits.drain),
    ] {
        fields.set(name, into, within(bounds));
    }
    for (name, bounds, into) in [
        ("target", 256..=65_536, &mut limits.target),
        ("headers", 1_024..=1_048_576, &mut limits.headers),
        ("buffers", 16_384..=LARGEST_BODY, &mut limits.buffers),
        ("buffers_per_address", 16_384..=LARGEST_BODY, &mut limits.buffers_per_address),
    ] {
        fields.set(name, into, size(bounds));
    }
    fields.set("body_rate", &mut limits.body_rate, rate);
    limits.body = fields.get("body", size(1..=LARGEST_BODY)).and_then(|body| u64::try_from(body).ok());
    for (name, into) in
        [("connections", &mut limits.connections), ("connections_per_address", &mut limits.connections_per_address)]
    {
        fields.set(name, into, number(1..=10_000_000, "a number of connections"));
    }
    fields.set("fields", &mut limits.fields, number(10..=256, "a number of header fields"));
    fields.set("streams", &mut limits.streams, number(1..=10_000, "a number of requests"));
    limits
}

/// Octets a second: `1KiB/s`; `off` for any.
fn rate(decoder: &mut Decoder, node: &Node) -> Option<usize> {
    let read = |text: &str| match text {
        "off" => Some(0),
        text => text.strip_suffix("/s").and_then(octets).filter(|octets| (1..=1_048_576).contains(octets)),
    };
    let help = "write octets a second, from `1/s` to `1MiB/s`, or `off`";
    let mistake = ("bad-value", "is not a rate that is accepted here", help);
    decoder.parsed(node, "octets a second, like 1KiB/s", read, mistake)
}

/// Reads a size within bounds.
fn size(bounds: RangeInclusive<usize>) -> impl FnOnce(&mut Decoder, &Node) -> Option<usize> {
    move |decoder, node| {
        let read = |text: &str| octets(text).filter(|octets| bounds.contains(octets));
        let (least, most) = (in_units(*bounds.start()), in_units(*bounds.end()));
        let help = format!("from {least} to {most}, as `16KiB`, or octets, as `16384`");
        decoder.parsed(node, "a size, like 16KiB", read, ("bad-value", "is not a size that is accepted here", &help))
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

/// The size in the largest unit that divides it.
fn in_units(octets: usize) -> String {
    let units = [(1_073_741_824, "GiB"), (1_048_576, "MiB"), (1_024, "KiB")];
    match units.into_iter().find(|(unit, _)| octets >= *unit && octets.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", octets / unit),
        None => format!("{octets} octets"),
    }
}
