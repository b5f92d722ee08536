//! Decodes `health` of an origin: the checks whether its servers are up.

use super::super::HealthSettings;
use super::super::address::host_pattern;
use super::{HOUR, MILLISECOND, MINUTE, number, within};
use crate::yaml::{Decoder, Node};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The shortest time between two checks.
const MOST_OFTEN: Duration = Duration::from_millis(100);

/// A map with at least a path.
pub(super) fn health(decoder: &mut Decoder, node: &Node) -> Option<HealthSettings> {
    let wanted = "a map: path, host, every, timeout, unhealthy_after, healthy_after, status";
    decoder.map(node, wanted, |fields| {
        let help = "write `path: /healthz`: what crawlgate asks each server for";
        fields.required("path", "`health` needs `path`", help);
        let mut health = HealthSettings::of(fields.get("path", path).unwrap_or_default());
        health.host = fields.get("host", host);
        fields.set("every", &mut health.every, within(MOST_OFTEN..=HOUR));
        fields.set("timeout", &mut health.timeout, within(MILLISECOND..=MINUTE));
        fields.set("unhealthy_after", &mut health.unhealthy_after, number(1..=1_000, "a number of checks"));
        fields.set("healthy_after", &mut health.healthy_after, number(1..=1_000, "a number of checks"));
        fields.set("status", &mut health.statuses, statuses(200..=599));
        health
    })
}

fn path(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let is_path =
        |text: &str| text.starts_with('/') && text.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'#');
    let read = |text: &str| is_path(text).then(|| text.to_owned());
    let help = "write `/healthz`; other characters than those of ASCII are written as %C3%A4";
    decoder.parsed(node, "a path, like /healthz", read, ("bad-path", "is not a path", help))
}

fn host(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let read = |text: &str| host_pattern(text).filter(|host| !host.starts_with('*'));
    let help = "write `shop.example`, without scheme, port and `*`";
    decoder.parsed(node, "a host name", read, ("bad-host", "is not a host name", help))
}

/// Reads statuses and ranges of them: `503`, `[502, 503]`, `200-399`.
pub(super) fn statuses(
    bounds: RangeInclusive<u16>,
) -> impl FnOnce(&mut Decoder, &Node) -> Option<Vec<RangeInclusive<u16>>> {
    move |decoder, node| {
        let read = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && bounds.contains(&first) && bounds.contains(&last)).then_some(first..=last)
        };
        let help = format!("write a status or a range, from {} to {}", bounds.start(), bounds.end());
        let mistake = ("bad-value", "is not a status that is accepted here", &*help);
        Some(decoder.all_parsed(node, "a list of statuses, like 503 or 500-504", read, mistake))
    }
}
