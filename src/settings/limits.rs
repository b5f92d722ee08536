//! [`Limits`]: the section `limits` of `crawlgate.yaml`, with bounds on the size, number and
//! duration of requests and connections. The defaults suit a public site.

use super::values::{HOUR, MILLISECOND, SECOND, duration_within, number_within};
use crate::yaml::{MapFields, NodeReader};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest body that can be set as a limit: 1 TiB.
const MAX_BODY: usize = 1 << 40;

/// Bounds on requests and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Open connections of all clients.
    pub connections: usize,
    /// Open connections of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_address: usize,
    /// How long a TLS handshake, and a header of the PROXY protocol, may take.
    pub handshake: Duration,
    /// How long the head of a request may take, from its first byte; 408 after that.
    pub head: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long a client may neither receive bytes of a response nor send bytes of a body.
    pub stall: Duration,
    /// The lowest average rate of a request body in bytes a second, once `stall` has passed; 408
    /// below.
    pub body_rate: usize,
    /// Bytes of a request body; 413 above. Without a limit, the origin decides.
    pub body: Option<u64>,
    /// Bytes of a request target; 414 above.
    pub target: usize,
    /// Bytes of all header fields; 431 above.
    pub headers: usize,
    /// Header fields; 431 above.
    pub fields: usize,
    /// Concurrent requests on an HTTP/2 connection.
    pub streams: u32,
    /// Bytes of requests and responses that may wait in buffers, of all clients; 503 above.
    pub buffers: usize,
    /// Bytes of requests and responses of one client that may wait in buffers; 503 above.
    pub buffers_per_address: usize,
    /// How long a graceful stop waits for the last request.
    pub drain: Duration,
}

impl Limits {
    /// The limits without settings.
    pub const DEFAULT: Limits = Limits {
        connections: 10_000,
        connections_per_address: 100,
        handshake: Duration::from_secs(10),
        head: Duration::from_secs(10),
        idle: Duration::from_secs(60),
        stall: Duration::from_secs(60),
        body_rate: 1024,
        body: None,
        target: 16 * 1024,
        headers: 64 * 1024,
        fields: 100,
        streams: 100,
        buffers: 512 * 1024 * 1024,
        buffers_per_address: 64 * 1024 * 1024,
        drain: Duration::from_secs(30),
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// The section `limits`. Missing and wrong fields have their defaults.
pub fn decode_limits(fields: &mut MapFields<'_>) -> Limits {
    let mut limits = Limits::DEFAULT;
    for (name, bounds, into) in [
        ("handshake", MILLISECOND..=HOUR, &mut limits.handshake),
        ("head", MILLISECOND..=HOUR, &mut limits.head),
        ("idle", SECOND..=HOUR, &mut limits.idle),
        ("stall", MILLISECOND..=HOUR, &mut limits.stall),
        ("drain", SECOND..=HOUR, &mut limits.drain),
    ] {
        fields.get_into(name, into, duration_within(bounds));
    }
    for (name, bounds, into) in [
        ("target", 256..=65_536, &mut limits.target),
        ("headers", 1_024..=1_048_576, &mut limits.headers),
        ("buffers", 16_384..=MAX_BODY, &mut limits.buffers),
        (
            "buffers_per_address",
            16_384..=MAX_BODY,
            &mut limits.buffers_per_address,
        ),
    ] {
        fields.get_into(name, into, size_within(bounds));
    }
    fields.get_into("body_rate", &mut limits.body_rate, decode_rate);
    limits.body = fields
        .get("body", size_within(1..=MAX_BODY))
        .and_then(|body| u64::try_from(body).ok());
    for (name, into) in [
        ("connections", &mut limits.connections),
        (
            "connections_per_address",
            &mut limits.connections_per_address,
        ),
    ] {
        fields.get_into(
            name,
            into,
            number_within(1..=10_000_000, "a number of connections"),
        );
    }
    fields.get_into(
        "fields",
        &mut limits.fields,
        number_within(10..=256, "a number of header fields"),
    );
    fields.get_into(
        "streams",
        &mut limits.streams,
        number_within(1..=10_000, "a number of requests"),
    );
    limits
}

/// Bytes a second: `1KiB/s`. `off` gives 0, which allows any rate.
fn decode_rate(node: NodeReader<'_>) -> Option<usize> {
    node.parse_with(
        "bytes a second, like 1KiB/s",
        |text| match text {
            "off" => Some(0),
            text => parse_bytes(text.strip_suffix("/s")?)
                .filter(|bytes| (1..=1_048_576).contains(bytes)),
        },
        (
            "bad-value",
            "is not a valid rate",
            "write bytes a second, from \"1/s\" to \"1MiB/s\", or \"off\"",
        ),
    )
}

/// A decoder of a size in bytes within bounds.
fn size_within(bounds: RangeInclusive<usize>) -> impl FnOnce(NodeReader<'_>) -> Option<usize> {
    move |node| {
        let help = format!(
            "write {} to {}, like \"16KiB\", or bytes, like \"16384\"",
            format_bytes(*bounds.start()),
            format_bytes(*bounds.end())
        );
        node.parse_with(
            "a size, like 16KiB",
            |text| parse_bytes(text).filter(|bytes| bounds.contains(bytes)),
            ("bad-value", "is not a valid size", &help),
        )
    }
}

/// Parses a number of bytes: `16384`, `16KiB`, `16k`, `1MiB`, `1GiB`.
fn parse_bytes(text: &str) -> Option<usize> {
    let digits = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
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
fn format_bytes(bytes: usize) -> String {
    match [(1_073_741_824, "GiB"), (1_048_576, "MiB"), (1_024, "KiB")]
        .into_iter()
        .find(|(unit, _)| bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}
