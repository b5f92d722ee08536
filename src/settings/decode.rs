//! `crawlgate.yaml` decoded: every mistake of the file in one run, each in its place.

mod decisions;
mod health;
mod limits;
mod listen;
mod origins;
mod statuses;

use super::address::listen_address;
use super::evidence::evidence;
use super::identity::identity;
use super::paths::path;
use super::store::store;
use super::{
    AccessDestination, AccessFormat, AddressDetail, EventDestination, EventSettings, SettingsFile, UPGRADE_DRAIN,
};
use crate::crawlers::read_networks;
use crate::yaml::{Decoder, Diagnostics, Document, Fields, Node, Source, Value};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Reads the file. There are settings only when nothing is wrong; an empty file says nothing and is fine.
pub fn read(source: &Source) -> (Option<SettingsFile>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let settings = Document::parse(source, &mut diagnostics).and_then(|document| match document.root {
        None => Some(SettingsFile::default()),
        Some(root) => settings(&root, &mut Decoder { diagnostics: &mut diagnostics }),
    });
    diagnostics.sort();
    let usable = !diagnostics.has_errors();
    (settings.filter(|_| usable), diagnostics)
}

fn settings(root: &Node, decoder: &mut Decoder<'_>) -> Option<SettingsFile> {
    let mut fields = decoder.fields(root, "a map of settings, like `listen: 0.0.0.0:80`")?;
    let threads = fields.take("threads").and_then(|node| decoder.integer(node, 1..=1_024, "a number of threads"));
    let Logged { access, access_format, events } =
        fields.take("logs").map(|node| logs(node, decoder)).unwrap_or_default();
    let privacy = fields.take("privacy").map(|node| privacy(node, decoder)).unwrap_or_default();
    let (addresses, history_addresses) = (privacy.logs, privacy.history);
    let evidence_node = fields.take("evidence");
    let store_node = fields.take("store");
    let said = SettingsFile {
        listen: fields.take("listen").map(|node| listen::listen(node, decoder)).unwrap_or_default(),
        decisions: fields.take("decisions").and_then(|node| decisions::decisions(node, decoder)),
        origins: fields.take("origins").map(|node| origins::origins(node, decoder)).unwrap_or_default(),
        policies: fields.take("policies").and_then(|node| path(node, decoder)),
        admin: fields.take("admin").and_then(|node| or_off(node, decoder, address)),
        control: fields.take("control").and_then(|node| or_off(node, decoder, path)),
        state: fields.take("state").and_then(|node| or_off(node, decoder, path)),
        trusted_proxies: fields.take("trusted_proxies").map(|node| read_networks(node, decoder)),
        identity: fields.take("identity").map(|node| identity(node, decoder)),
        acme_webroot: fields.take("acme_webroot").and_then(|node| path(node, decoder)),
        limits: fields.take("limits").map(|node| limits::limits(node, decoder)).unwrap_or_default(),
        upgrade_drain: fields.take("upgrade").and_then(|node| upgrade(node, decoder)),
        access,
        access_format,
        events,
        addresses,
        lane: fields.take("lane").and_then(|node| decoder.boolean(node)),
        history_addresses,
        evidence: evidence_node.and_then(|node| evidence(node, decoder)),
        evidence_addresses: privacy.evidence,
        store: store_node.and_then(|node| store(node, decoder)),
        threads: threads.and_then(|threads| usize::try_from(threads).ok()),
        strict: fields.take("strict").and_then(|node| decoder.boolean(node)),
    };
    fields.finish(decoder);
    if said.listen.iter().any(|listener| listener.proxy_protocol) && said.trusted_proxies.is_none() {
        decoder.error("missing-field", root.span, "`proxy_protocol` needs `trusted_proxies`: the proxies to believe");
    }
    if let (Some(node), Some(Some(_)), Some(None)) = (evidence_node, &said.evidence, &said.state) {
        decoder.error("missing-field", node.span, "`evidence` needs a state directory, and `state` is off").help =
            Some("name a directory that outlasts the process in `state`".into());
    }
    store_node.iter().for_each(|node| together_with_store(node, &said, decoder));
    Some(said)
}

/// What several instances need, and what they cannot have.
fn together_with_store(node: &Node, said: &SettingsFile, decoder: &mut Decoder<'_>) {
    if let Some(None) = said.state {
        decoder.error("missing-field", node.span, "`store` needs a state directory, and `state` is off").help =
            Some("name a directory that outlasts the process in `state`: it has the id of this instance".into());
    }
    if said.listen.iter().any(|listener| listener.tls.as_ref().is_some_and(|tls| tls.acme.is_some())) {
        let message = "`acme` and `store` exclude each other: an authority's question may reach another instance";
        decoder.error("bad-value", node.span, message).help =
            Some("get certificates with another program, and name their files in `certificates`".into());
    }
}

/// `upgrade`: how long the process before answers requests.
fn upgrade(node: &Node, decoder: &mut Decoder<'_>) -> Option<Duration> {
    let mut fields = decoder.fields(node, "a map: drain")?;
    let said = fields.take("drain").map(|node| {
        let mut drain = UPGRADE_DRAIN;
        duration(node, SECOND..=DAY, &mut drain, decoder);
        drain
    });
    fields.finish(decoder);
    said
}

/// Refuses settings whose behaviour is still to come: what is accepted works.
fn later(fields: &mut Fields<'_>, names: &[&'static str], decoder: &mut Decoder<'_>) {
    for name in names {
        if let Some((key, _)) = fields.take_with_key(name) {
            decoder.error("not-supported-yet", key.span, format!("`{name}` is not supported yet")).help =
                Some("remove it: docs/settings.md lists the settings".into());
        }
    }
}

/// `off`, or a value.
fn or_off<T>(
    node: &Node,
    decoder: &mut Decoder<'_>,
    value: impl FnOnce(&Node, &mut Decoder<'_>) -> Option<T>,
) -> Option<Option<T>> {
    let off = matches!(&node.value, Value::Scalar { text, plain: true } if ["off", "no", "false"].contains(&text.to_ascii_lowercase().as_str()));
    if off { Some(None) } else { value(node, decoder).map(Some) }
}

fn address(node: &Node, decoder: &mut Decoder<'_>) -> Option<SocketAddr> {
    let text = decoder.text(node, "an address and port, like 127.0.0.1:9090")?;
    listen_address(text).map_err(|error| decoder.error("bad-address", node.span, error.to_string())).ok()
}

/// A list; a single value or map is a list of one.
fn list<'n>(node: &'n Node, decoder: &mut Decoder<'_>, wanted: &str) -> &'n [Node] {
    match node.value {
        Value::Mapping(_) => std::slice::from_ref(node),
        _ => decoder.one_or_many(node, wanted),
    }
}

fn duration(node: &Node, bounds: RangeInclusive<Duration>, into: &mut Duration, decoder: &mut Decoder<'_>) {
    match decoder.duration(node) {
        Some(duration) if bounds.contains(&duration) => *into = duration,
        Some(_) => {
            decoder.error("bad-value", node.span, "this duration is out of bounds").help =
                Some(format!("from {:?} to {:?}", bounds.start(), bounds.end()));
        }
        None => {}
    }
}

#[derive(Default)]
struct Logged {
    access: Option<AccessDestination>,
    access_format: Option<AccessFormat>,
    events: Option<EventSettings>,
}

fn logs(node: &Node, decoder: &mut Decoder<'_>) -> Logged {
    let Some(mut fields) = decoder.fields(node, "a map: access, events") else { return Logged::default() };
    let (access, access_format) = fields.take("access").map(|node| access(node, decoder)).unwrap_or_default();
    let events = fields.take("events").and_then(|node| events(node, decoder));
    if let Some((key, _)) = fields.take_foreign("addresses") {
        let message = "there is no field `addresses` here: it is `privacy.logs`";
        decoder.error("unknown-field", key.span, message).help =
            Some("write `privacy: { logs: network }` beside `logs`; the values are full, network and none".into());
    }
    fields.finish(decoder);
    Logged { access, access_format, events }
}

/// `off`, a file, `-`, or a map with more to say.
fn access(node: &Node, decoder: &mut Decoder<'_>) -> (Option<AccessDestination>, Option<AccessFormat>) {
    let (to, format) = if matches!(node.value, Value::Mapping(_)) {
        let Some(mut fields) = decoder.fields(node, "a map: to, format") else { return (None, None) };
        let to = log_place(&mut fields, node, "the access log", decoder);
        let formats = [
            ("json", AccessFormat::Json),
            ("combined", AccessFormat::Combined),
            ("vhost_combined", AccessFormat::VhostCombined),
        ];
        let format = fields.take("format").and_then(|node| decoder.word(node, &formats, "a format of the access log"));
        fields.finish(decoder);
        (to, format)
    } else {
        (or_off(node, decoder, path), None)
    };
    let destination = to.map(|to| match to {
        None => AccessDestination::Off,
        Some(path) if is_stdout(&path) => AccessDestination::Stdout,
        Some(path) => AccessDestination::File(path),
    });
    (destination, format)
}

/// `to`, of a map.
fn log_place(fields: &mut Fields<'_>, map: &Node, log: &str, decoder: &mut Decoder<'_>) -> Option<Option<PathBuf>> {
    match fields.take("to") {
        Some(node) => or_off(node, decoder, path),
        None => {
            decoder.error("missing-field", map.span, format!("{log} needs `to`: a file, or `-`"));
            None
        }
    }
}

/// How much of a client's address is kept, by where.
#[derive(Default)]
struct Privacy {
    logs: Option<AddressDetail>,
    history: Option<AddressDetail>,
    evidence: Option<AddressDetail>,
}

fn privacy(node: &Node, decoder: &mut Decoder<'_>) -> Privacy {
    let Some(mut fields) = decoder.fields(node, "a map: logs, history, evidence") else { return Privacy::default() };
    let details = [("full", AddressDetail::Full), ("network", AddressDetail::Network), ("none", AddressDetail::None)];
    let [logs, history, evidence] = ["logs", "history", "evidence"]
        .map(|name| fields.take(name).and_then(|node| decoder.word(node, &details, "a way to keep addresses")));
    fields.finish(decoder);
    Privacy { logs, history, evidence }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || path.as_os_str() == "stdout"
}

/// `off`, a file, `-`, or a map with more to say.
fn events(node: &Node, decoder: &mut Decoder<'_>) -> Option<EventSettings> {
    let mut rate = EventSettings::default().rate;
    let to = if matches!(node.value, Value::Mapping(_)) {
        let mut fields = decoder.fields(node, "a map: to, rate")?;
        let to = log_place(&mut fields, node, "the log of events", decoder);
        let given = fields.take("rate");
        let given = given.and_then(|node| decoder.integer(node, 1..=100_000, "a number of events a second"));
        if let Some(given) = given.and_then(|given| u32::try_from(given).ok()) {
            rate = given;
        }
        fields.finish(decoder);
        to?
    } else {
        or_off(node, decoder, path)?
    };
    let destination = match to {
        None => EventDestination::Off,
        Some(path) if is_stdout(&path) => EventDestination::Stdout,
        Some(path) => EventDestination::File(path),
    };
    Some(EventSettings { destination, rate })
}
