//! [`Limits`]: the section `limits` of `crawlgate.yaml`, with bounds on the size, number and
//! duration of requests and connections. The defaults suit a public site.

use super::section::section;
use super::values::{HOUR, SECOND, decode_timeout, duration_within, number_within};
use crate::yaml::NodeReader;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest body that can be set as a limit: 1 TiB.
const MAX_BODY: usize = 1 << 40;

section! {
    /// Bounds on requests and connections. The defaults suit a public site.
    #[derive(Clone, Copy, Debug, PartialEq)]
    Limits {
        /// Open connections of all clients.
        "connections" => connections: usize = 10_000, connections_within();
        /// Open connections of one client: an IPv4 address, or a /64 of IPv6.
        "connections_per_address" => connections_per_address: usize = 100, connections_within();
        /// How long a TLS handshake, and a header of the PROXY protocol, may take.
        "handshake" => handshake: Duration = 10 * SECOND, decode_timeout;
        /// How long the head of a request may take, from its first byte; 408 after that.
        "head" => head: Duration = 10 * SECOND, decode_timeout;
        /// How long a connection is kept without a request.
        "idle" => idle: Duration = 60 * SECOND, duration_within(SECOND..=HOUR);
        /// How long a client may neither receive bytes of a response nor send bytes of a body.
        "stall" => stall: Duration = 60 * SECOND, decode_timeout;
        /// The lowest average rate of a request body in bytes a second, once `stall` has passed;
        /// 408 below.
        "body_rate" => body_rate: usize = 1024, decode_rate;
        /// Bytes of a request body; 413 above. Without a limit, the origin decides.
        "body" => body: Option<u64> = None, |node| Some(size_within(1..=MAX_BODY)(node));
        /// Bytes of a request target; 414 above.
        "target" => target: usize = 16 * 1024, size_within(256..=65_536);
        /// Bytes of all header fields; 431 above.
        "headers" => headers: usize = 64 * 1024, size_within(1_024..=1_048_576);
        /// Header fields; 431 above.
        "fields" => fields: usize = 100, number_within(10..=256, "a number of header fields");
        /// Concurrent requests on an HTTP/2 connection.
        "streams" => streams: u32 = 100, number_within(1..=10_000, "a number of requests");
        /// Bytes of requests and responses that may wait in buffers, of all clients; 503 above.
        "buffers" => buffers: usize = 512 * 1024 * 1024, size_within(16_384..=MAX_BODY);
        /// Bytes of requests and responses of one client that may wait in buffers; 503 above.
        "buffers_per_address" => buffers_per_address: usize = 64 * 1024 * 1024, size_within(16_384..=MAX_BODY);
        /// How long a graceful stop waits for the last request.
        "drain" => drain: Duration = 30 * SECOND, duration_within(SECOND..=HOUR);
    }
}

/// A decoder of a number of connections.
fn connections_within() -> impl FnOnce(NodeReader<'_>) -> Option<usize> {
    number_within(1..=10_000_000, "a number of connections")
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
fn size_within<T: TryFrom<usize>>(
    bounds: RangeInclusive<usize>,
) -> impl FnOnce(NodeReader<'_>) -> Option<T> {
    move |node| {
        let help = format!(
            "write {} to {}, like \"16KiB\", or bytes, like \"16384\"",
            format_bytes(*bounds.start()),
            format_bytes(*bounds.end())
        );
        node.parse_with(
            "a size, like 16KiB",
            |text| {
                let bytes = parse_bytes(text).filter(|bytes| bounds.contains(bytes))?;
                T::try_from(bytes).ok()
            },
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
