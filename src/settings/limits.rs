//! [`Limits`]: bounds on the size, number and duration of requests and connections. The defaults
//! suit a public site. [`limits`] decodes them: sizes in octets, rates, durations and counts.

use super::values::{HOUR, MILLISECOND, SECOND, number, within};
use crate::yaml::{Fields, Reader};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The largest body that can be set as a limit: 1 TiB.
const LARGEST_BODY: usize = 1 << 40;

/// Bounds on requests and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Open connections of all clients.
    pub connections: usize,
    /// Open connections of one client: an IPv4 address, or a /64 of IPv6.
    pub connections_per_address: usize,
    /// How long a TLS handshake, and a header of the PROXY protocol, may take.
    pub handshake: Duration,
    /// How long the head of a request may take, from its first octet; 408 after that.
    pub head: Duration,
    /// How long a connection is kept without a request.
    pub idle: Duration,
    /// How long a client may take nothing of a response, or send nothing of a body.
    pub stall: Duration,
    /// Octets a second that a request body has to arrive with on average, once `stall` has passed;
    /// 408 below.
    pub body_rate: usize,
    /// Octets of a request body; 413 above. Without a limit, the origin decides.
    pub body: Option<u64>,
    /// Octets of a request target; 414 above.
    pub target: usize,
    /// Octets of all header fields; 431 above.
    pub headers: usize,
    /// Header fields; 431 above.
    pub fields: usize,
    /// Concurrent requests on an HTTP/2 connection.
    pub streams: u32,
    /// Octets of requests and responses that may wait in buffers, of all clients; 503 above.
    pub buffers: usize,
    /// Octets of requests and responses of one client that may wait in buffers; 503 above.
    pub buffers_per_address: usize,
    /// How long a graceful stop waits for the last request.
    pub drain: Duration,
}

impl Limits {
    /// The limits that hold unless the settings say otherwise.
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

/// Reads the section `limits`. Each field has its own bounds, and its default where it is left out
/// or wrong.
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
        (
            "buffers_per_address",
            16_384..=LARGEST_BODY,
            &mut limits.buffers_per_address,
        ),
    ] {
        fields.set(name, into, size(bounds));
    }
    fields.set("body_rate", &mut limits.body_rate, rate);
    limits.body = fields
        .get("body", size(1..=LARGEST_BODY))
        .and_then(|body| u64::try_from(body).ok());
    for (name, into) in [
        ("connections", &mut limits.connections),
        (
            "connections_per_address",
            &mut limits.connections_per_address,
        ),
    ] {
        fields.set(
            name,
            into,
            number(1..=10_000_000, "a number of connections"),
        );
    }
    fields.set(
        "fields",
        &mut limits.fields,
        number(10..=256, "a number of header fields"),
    );
    fields.set(
        "streams",
        &mut limits.streams,
        number(1..=10_000, "a number of requests"),
    );
    limits
}

/// Bytes a second: `1KiB/s`. `off` gives 0, which accepts any rate.
fn rate(node: Reader<'_>) -> Option<usize> {
    node.parsed(
        "octets a second, like 1KiB/s",
        |text| match text {
            "off" => Some(0),
            text => {
                octets(text.strip_suffix("/s")?).filter(|octets| (1..=1_048_576).contains(octets))
            }
        },
        (
            "bad-value",
            "is not a rate that is accepted here",
            "write octets a second, from `1/s` to `1MiB/s`, or `off`",
        ),
    )
}

/// A reader of a size in bytes within bounds.
fn size(bounds: RangeInclusive<usize>) -> impl FnOnce(Reader<'_>) -> Option<usize> {
    move |node| {
        let help = format!(
            "from {} to {}, as `16KiB`, or octets, as `16384`",
            in_units(*bounds.start()),
            in_units(*bounds.end())
        );
        node.parsed(
            "a size, like 16KiB",
            |text| octets(text).filter(|octets| bounds.contains(octets)),
            ("bad-value", "is not a size that is accepted here", &help),
        )
    }
}

/// Reads a number of bytes: `16384`, `16KiB`, `16k`, `1MiB`, `1GiB`. `None` for other units, and
/// for a number that is too large.
fn octets(text: &str) -> Option<usize> {
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
fn in_units(octets: usize) -> String {
    let units = [(1_073_741_824, "GiB"), (1_048_576, "MiB"), (1_024, "KiB")];
    match units
        .into_iter()
        .find(|(unit, _)| octets.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", octets / unit),
        None => format!("{octets} octets"),
    }
}
