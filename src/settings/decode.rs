//! [`read`] decodes `crawlgate.yaml`. It reports every mistake of the file in one run, each in its place.

mod decisions;
mod health;
mod limits;
mod listen;
mod origins;

use super::address::listen_address;
use super::evidence::evidence;
use super::identity::identity;
use super::paths::path;
use super::store::store;
use super::{AccessFormat, EventSettings, LogDestination, SettingsFile};
use crate::crawlers::read_networks;
use crate::yaml::{self, Decoder, Diagnostics, Fields, Node, Source, Value};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Reads the file. There are settings only when nothing is wrong; an empty file says nothing and is fine.
pub fn read(source: &Source) -> (Option<SettingsFile>, Diagnostics) {
    yaml::read(source, |decoder, root| match root {
        None => Some(SettingsFile::default()),
        Some(root) => decoder.map(root, "a map of settings, like `listen: 0.0.0.0:80`", settings),
    })
}

fn settings(fields: &mut Fields<'_>) -> SettingsFile {
    let threads = fields.integer("threads", 1..=1_024, "a number of threads");
    let ((access, access_format), events) = fields.section("logs", "a map: access, events", logs);
    let [addresses, history_addresses, evidence_addresses] =
        fields.section("privacy", "a map: logs, history, evidence", |fields| {
            ["logs", "history", "evidence"].map(|name| fields.variant(name, "a way to keep addresses"))
        });
    let (evidence_node, store_node) = (fields.take("evidence"), fields.take("store"));
    let limits = "a map: connections, connections_per_address, handshake, head, idle, stall, body_rate, body, target, \
                  headers, fields, streams, buffers, buffers_per_address, drain";
    let said = SettingsFile {
        listen: fields.get_or_default("listen", listen::listen),
        decisions: fields.get("decisions", decisions::decisions),
        origins: fields.get_or_default("origins", origins::origins),
        policies: fields.get("policies", path),
        admin: fields.get("admin", or_off(address)),
        control: fields.get("control", or_off(path)),
        state: fields.get("state", or_off(path)),
        trusted_proxies: fields.get("trusted_proxies", |decoder, node| Some(read_networks(decoder, node))),
        identity: fields.section("identity", "a map: outgoing, lists, resolvers, signatures", identity),
        acme_webroot: fields.get("acme_webroot", path),
        limits: fields.section("limits", limits, limits::limits),
        upgrade_drain: fields.section("upgrade", "a map: drain", |fields| fields.get("drain", within(SECOND..=DAY))),
        access,
        access_format,
        events,
        addresses,
        lane: fields.get("lane", Decoder::boolean),
        history_addresses,
        evidence: fields.get("evidence", evidence).flatten(),
        evidence_addresses,
        store: fields.get("store", store),
        threads,
        strict: fields.get("strict", Decoder::boolean),
    };
    fields.finish();
    let (decoder, span) = (&mut *fields.decoder, fields.span);
    if said.listen.iter().any(|listener| listener.proxy_protocol) && said.trusted_proxies.is_none() {
        decoder.error("missing-field", span, "`proxy_protocol` needs `trusted_proxies`: the proxies to believe");
    }
    if let (Some(node), Some(_), Some(None)) = (evidence_node, &said.evidence, &said.state) {
        let help = "name a directory that outlasts the process in `state`";
        let message = "`evidence` needs a state directory, and `state` is off";
        decoder.error_with_help("missing-field", node.span, message, help);
    }
    if let Some(node) = store_node {
        together_with_store(node, &said, decoder);
    }
    said
}

/// Checks `store` against the other settings: it needs `state`, and excludes `acme`.
fn together_with_store(node: &Node, said: &SettingsFile, decoder: &mut Decoder) {
    if let Some(None) = said.state {
        let message = "`store` needs a state directory, and `state` is off";
        let help = "name a directory that outlasts the process in `state`: it has the id of this instance";
        decoder.error_with_help("missing-field", node.span, message, help);
    }
    if said.listen.iter().any(|listener| listener.tls.as_ref().is_some_and(|tls| tls.acme.is_some())) {
        let message = "`acme` and `store` exclude each other: an authority's question may reach another instance";
        let help = "get certificates with another program, and name their files in `certificates`";
        decoder.error_with_help("bad-value", node.span, message, help);
    }
}

/// Reads `off`, or a value.
fn or_off<T>(
    value: impl FnOnce(&mut Decoder, &Node) -> Option<T>,
) -> impl FnOnce(&mut Decoder, &Node) -> Option<Option<T>> {
    |decoder, node| match &node.value {
        Value::Scalar { text, plain: true } if ["off", "no", "false"].contains(&text.to_ascii_lowercase().as_str()) => {
            Some(None)
        }
        _ => value(decoder, node).map(Some),
    }
}

fn address(decoder: &mut Decoder, node: &Node) -> Option<SocketAddr> {
    let text = decoder.text(node, "an address and port, like 127.0.0.1:9090")?;
    listen_address(text).map_err(|error| decoder.error("bad-address", node.span, error.to_string())).ok()
}

/// A list; a single value or map is a list of one.
fn list<'n>(decoder: &mut Decoder, node: &'n Node, wanted: &str) -> &'n [Node] {
    if node.is_map() { std::slice::from_ref(node) } else { decoder.one_or_many(node, wanted) }
}

/// Reads a duration within bounds.
fn within(bounds: RangeInclusive<Duration>) -> impl FnOnce(&mut Decoder, &Node) -> Option<Duration> {
    move |decoder, node| {
        let help = format!("from {:?} to {:?}", bounds.start(), bounds.end());
        decoder.duration_within(node, bounds, "this duration is out of bounds", Some(&help))
    }
}

/// Reads a whole number within bounds.
fn number<T: TryFrom<u64>>(bounds: RangeInclusive<u64>, wanted: &str) -> impl FnOnce(&mut Decoder, &Node) -> Option<T> {
    move |decoder, node| decoder.integer(node, bounds, wanted)
}

/// The access log with its format, and the log of events.
fn logs(fields: &mut Fields<'_>) -> ((Option<LogDestination>, Option<AccessFormat>), EventSettings) {
    let access = fields.get_or_default("access", |decoder, node| {
        log(decoder, node, ["a map: to, format", "the access log"], |fields| {
            fields.variant("format", "a format of the access log")
        })
    });
    let (destination, rate) = fields.get_or_default("events", |decoder, node| {
        log(decoder, node, ["a map: to, rate", "the log of events"], |fields| {
            fields.integer("rate", 1..=100_000, "a number of events a second")
        })
    });
    if let Some((key, _)) = fields.take_foreign("addresses") {
        let message = "there is no field `addresses` here: it is `privacy.logs`";
        let help = "write `privacy: { logs: network }` beside `logs`; the values are full, network and none";
        fields.decoder.error_with_help("unknown-field", key, message, help);
    }
    let events = EventSettings::default();
    let destination = destination.unwrap_or(events.destination);
    (access, EventSettings { destination, rate: rate.unwrap_or(events.rate) })
}

/// `off`, a file, `-`, or a map with it in `to`, and with what `more` takes.
fn log<T>(
    decoder: &mut Decoder,
    node: &Node,
    [wanted, name]: [&str; 2],
    more: impl FnOnce(&mut Fields<'_>) -> Option<T>,
) -> (Option<LogDestination>, Option<T>) {
    if !node.is_map() {
        return (destination(decoder, node), None);
    }
    let said = decoder.map(node, wanted, |fields| {
        let to = fields.required("to", &format!("{name} needs `to`: a file, or `-`"), None);
        (to.and_then(|node| destination(fields.decoder, node)), more(fields))
    });
    said.unwrap_or_default()
}

fn destination(decoder: &mut Decoder, node: &Node) -> Option<LogDestination> {
    Some(match or_off(path)(decoder, node)? {
        None => LogDestination::Off,
        Some(path) if path.as_os_str() == "-" || path.as_os_str() == "stdout" => LogDestination::Stdout,
        Some(path) => LogDestination::File(path),
    })
}
