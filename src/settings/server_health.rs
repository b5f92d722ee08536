//! [`EjectionSettings`] and [`HealthSettings`]: the settings `ejection` and `health` of an origin.
//! One of the origin's servers gets no requests for a while if requests to it fail (`ejection`), or
//! if its health checks fail (`health`).

use super::address::normalize_host_pattern;
use super::section::section;
use super::values::{
    HOUR, MILLISECOND, MINUTE, SECOND, duration_within, number_within, parse_plain_path,
};
use crate::yaml::{NodeReader, NodeValue};
use std::ops::RangeInclusive;
use std::time::Duration;

section! {
    /// When a server that fails gets no more requests for a while.
    #[derive(Clone, Debug, PartialEq)]
    EjectionSettings {
        /// The failures in a row that eject a server.
        "failures" => failures: u32 = 3, number_within(1..=1_000, "a number of failures");
        /// The duration of the first ejection. It doubles with each further one.
        "for" => initial_time: Duration = 10 * SECOND, duration_within(SECOND..=HOUR);
        /// The longest ejection.
        "most" => max_time: Duration = 300 * SECOND, duration_within(SECOND..=HOUR);
        /// The statuses that count as failures.
        "statuses" => statuses: Vec<RangeInclusive<u16>> = Vec::new(), statuses_within(400..=599);
    }
}

section! {
    /// The health checks of each server of an origin.
    #[derive(Clone, Debug, PartialEq)]
    HealthSettings {
        /// Path and query of the request.
        "path" => path: String = String::new(), decode_health_path;
        /// Its Host; `None` for the first host of the origin.
        "host" => host: Option<String> = None, |node| decode_host(node).map(Some);
        /// The interval of the checks.
        "every" => every: Duration = 5 * SECOND, duration_within(100 * MILLISECOND..=HOUR);
        /// How long a check may take.
        "timeout" => timeout: Duration = 2 * SECOND, duration_within(MILLISECOND..=MINUTE);
        /// The failed checks in a row after which a server is down.
        "unhealthy_after" => unhealthy_after: u32 = 3, number_within(1..=1_000, "a number of checks");
        /// The successful checks in a row after which it is up again.
        "healthy_after" => healthy_after: u32 = 2, number_within(1..=1_000, "a number of checks");
        /// The statuses of a server that is up.
        "status" => statuses: Vec<RangeInclusive<u16>> = vec![200..=399], statuses_within(200..=599);
    }
}

/// A map with `failures`, `for`, `most` and `statuses`; the caller decodes `off`. Reports a `most`
/// that is shorter than `for`. If only `for` is written, `most` is at least as long.
pub fn decode_ejection(node: NodeReader<'_>) -> Option<EjectionSettings> {
    if let NodeValue::Scalar { text, .. } = &node.value
        && !node.is_null()
    {
        node.error_with_help(
            "bad-value",
            format!("\"{text}\" is neither \"off\" nor a map"),
            "write \"off\", or \"{ failures: 3, for: 10s, most: 5m }\"",
        );
        return None;
    }
    node.decode_map("a map: failures, for, most, statuses; or off", |fields| {
        let mut ejection = EjectionSettings::decode(fields);
        if ejection.max_time < ejection.initial_time {
            match fields.field("most") {
                Some(node) => node.error_with_help(
                    "bad-value",
                    "\"most\" is shorter than \"for\"",
                    "\"for\" is the length of the first ejection, \"most\" that of the longest",
                ),
                None => ejection.max_time = ejection.initial_time,
            }
        }
        ejection
    })
}

/// A map with at least a path.
pub fn decode_health(node: NodeReader<'_>) -> Option<HealthSettings> {
    let wanted = "a map: path, host, every, timeout, unhealthy_after, healthy_after, status";
    node.decode_map(wanted, |fields| {
        fields.required_field(
            "path",
            "\"health\" needs \"path\"",
            "write \"path: /healthz\": the path that crawlgate requests from each server",
        );
        HealthSettings::decode(fields)
    })
}

/// A path with an optional query, in ASCII without `#`.
fn decode_health_path(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "a path, like /healthz",
        |text| parse_plain_path(text, b"#"),
        (
            "bad-path",
            "is not a path",
            "write a path, like \"/healthz\"; percent-encode characters outside ASCII, like %C3%A4",
        ),
    )
}

fn decode_host(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "a host name",
        |text| normalize_host_pattern(text).filter(|host| !host.starts_with('*')),
        (
            "bad-host",
            "is not a host name",
            "write \"shop.example\", without scheme, port and \"*\"",
        ),
    )
}

/// A decoder of statuses and ranges within bounds: `503`, `[502, 503]`, `200-399`.
fn statuses_within(
    bounds: RangeInclusive<u16>,
) -> impl FnOnce(NodeReader<'_>) -> Option<Vec<RangeInclusive<u16>>> {
    move |node| {
        let help = format!(
            "write a status or a range, from {} to {}",
            bounds.start(),
            bounds.end()
        );
        Some(node.parse_all_with(
            "a list of statuses, like 503 or 500-504",
            |text| {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let first = first.trim().parse().ok()?;
                let last = last.trim().parse().ok()?;
                (first <= last && bounds.contains(&first) && bounds.contains(&last))
                    .then_some(first..=last)
            },
            ("bad-value", "is not a valid status", &help),
        ))
    }
}
