//! `health` of an origin decoded: how its servers are asked whether they are up.

use super::super::HealthSettings;
use super::super::address::host_pattern;
use super::statuses::statuses;
use super::{HOUR, MILLISECOND, MINUTE, duration};
use crate::yaml::{Decoder, Fields, Node};
use std::time::Duration;

/// The shortest time between two checks.
const MOST_OFTEN: Duration = Duration::from_millis(100);

/// A map with at least a path.
pub(super) fn health(node: &Node, decoder: &mut Decoder<'_>) -> Option<HealthSettings> {
    let mut fields =
        decoder.fields(node, "a map: path, host, every, timeout, unhealthy_after, healthy_after, status")?;
    let path = fields.take("path");
    if path.is_none() {
        decoder.error("missing-field", node.span, "`health` needs `path`").help =
            Some("write `path: /healthz`: what crawlgate asks each server for".into());
    }
    let mut health = HealthSettings::of(path.and_then(|node| self::path(node, decoder)).unwrap_or_default());
    health.host = fields.take("host").and_then(|node| host(node, decoder));
    if let Some(node) = fields.take("every") {
        duration(node, MOST_OFTEN..=HOUR, &mut health.every, decoder);
    }
    if let Some(node) = fields.take("timeout") {
        duration(node, MILLISECOND..=MINUTE, &mut health.timeout, decoder);
    }
    count(&mut fields, "unhealthy_after", &mut health.unhealthy_after, decoder);
    count(&mut fields, "healthy_after", &mut health.healthy_after, decoder);
    if let Some(node) = fields.take("status") {
        health.statuses = statuses(node, 200..=599, decoder);
    }
    fields.finish(decoder);
    Some(health)
}

fn path(node: &Node, decoder: &mut Decoder<'_>) -> Option<String> {
    let path = decoder.text(node, "a path, like /healthz")?;
    if path.starts_with('/') && path.bytes().all(|octet| octet.is_ascii_graphic() && octet != b'#') {
        return Some(path.to_owned());
    }
    decoder.error("bad-path", node.span, format!("`{path}` is not a path")).help =
        Some("write `/healthz`; other characters than those of ASCII are written as %C3%A4".into());
    None
}

fn host(node: &Node, decoder: &mut Decoder<'_>) -> Option<String> {
    let text = decoder.text(node, "a host name")?;
    let host = host_pattern(text).filter(|host| !host.starts_with('*'));
    if host.is_none() {
        decoder.error("bad-host", node.span, format!("`{text}` is not a host name")).help =
            Some("write `shop.example`, without scheme, port and `*`".into());
    }
    host
}

fn count(fields: &mut Fields<'_>, name: &'static str, count: &mut u32, decoder: &mut Decoder<'_>) {
    let said = fields.take(name).and_then(|node| decoder.integer(node, 1..=1_000, "a number of checks"));
    if let Some(said) = said.and_then(|said| u32::try_from(said).ok()) {
        *count = said;
    }
}
