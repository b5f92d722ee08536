//! [`read`] decodes `crawlgate.yaml`. It reports all mistakes of the file in one run, each with its
//! place in the file.

use super::client_address::client_address;
use super::decisions::decisions;
use super::evidence::evidence;
use super::identity::identity;
use super::limits::limits;
use super::listen::listen;
use super::origins::origins;
use super::store::store;
use super::values::{DAY, SECOND, address, number, or_off, path, within};
use super::{LogDestination, Logs, Settings};
use crate::yaml::{Diagnostics, Fields, Reader, Source, Value};
use std::path::Path;

/// Reads the settings of a file that stands in `directory`, with `defaults` where it says nothing.
/// Its relative paths begin there, so that a file means the same wherever crawlgate is started.
/// There are settings only when nothing is wrong; an empty file says nothing and is fine.
pub fn read(
    source: &Source,
    directory: &Path,
    defaults: Settings,
) -> (Option<Settings>, Diagnostics) {
    crate::yaml::read(source, directory, |_, root| match root {
        None => Some(defaults),
        Some(root) => root.map("a map of settings, like `listen: 0.0.0.0:80`", |fields| {
            settings(fields, defaults)
        }),
    })
}

const LIMITS: &str = "a map: connections, connections_per_address, handshake, head, idle, stall, body_rate, body, target, \
                      headers, fields, streams, buffers, buffers_per_address, drain";

/// Reads all fields of the file, in place of the defaults in `said`, and reports unknown fields and
/// settings that need or exclude each other.
fn settings(fields: &mut Fields<'_>, mut said: Settings) -> Settings {
    said.threads = fields.integer("threads", 1..=1_024, "a number of threads");
    fields.section("logs", "a map: access, events", |fields| {
        logs(fields, &mut said.logs)
    });
    fields.section("privacy", "a map: logs, history, evidence", |fields| {
        for (name, detail) in [
            ("logs", &mut said.logs.addresses),
            ("history", &mut said.history_addresses),
            ("evidence", &mut said.evidence_addresses),
        ] {
            fields.set(name, detail, |node| node.variant("a way to keep addresses"));
        }
    });
    said.listen = fields.get_or_default("listen", listen);
    said.decisions = fields.get("decisions", decisions);
    said.origins = fields.get_or_default("origins", origins);
    fields.set("policies", &mut said.policies, path);
    if fields.take("policies").is_some() {
        said.policies_may_be_missing = false;
    }
    fields.set("admin", &mut said.admin, or_off(address));
    fields.set("control", &mut said.control, or_off(path));
    fields.set("state", &mut said.state, or_off(path));
    said.trusted_proxies = fields.get_or_default("trusted_proxies", crate::crawlers::read_networks);
    fields.set("client_address", &mut said.client_address, client_address);
    said.identity = fields.section(
        "identity",
        "a map: outgoing, lists, resolvers, signatures",
        identity,
    );
    said.acme_webroot = fields.get("acme_webroot", path);
    said.limits = fields.section("limits", LIMITS, limits);
    fields.section("upgrade", "a map: drain", |fields| {
        fields.set("drain", &mut said.upgrade_drain, within(SECOND..=DAY));
    });
    fields.set("lane", &mut said.lane, Reader::boolean);
    said.evidence = fields.get("evidence", evidence);
    said.store = fields.get("store", store);
    fields.set("strict", &mut said.strict, Reader::boolean);
    fields.finish();
    check_together(fields, &said);
    said
}

/// Reports settings that need or exclude each other: `proxy_protocol` without `trusted_proxies`,
/// `evidence` or `store` with `state: off` (a file without `state` has the default directory), and
/// `acme` with `store`. `said` are the settings as decoded from `fields`.
fn check_together(fields: &mut Fields<'_>, said: &Settings) {
    if fields.take("trusted_proxies").is_none()
        && said.listen.iter().any(|listener| listener.proxy_protocol)
    {
        fields.decoder.error(
            "missing-field",
            fields.span,
            "`proxy_protocol` needs `trusted_proxies`: the proxies to believe",
        );
    }
    let is_state_off = fields.take("state").is_some() && said.state.is_none();
    if is_state_off
        && said.evidence.is_some()
        && let Some(node) = fields.take("evidence")
    {
        node.error_with_help(
            "missing-field",
            "`evidence` needs a state directory, and `state` is off",
            "name a directory that outlasts the process in `state`",
        );
    }
    let Some(store) = fields.take("store") else {
        return;
    };
    if is_state_off {
        store.error_with_help(
            "missing-field",
            "`store` needs a state directory, and `state` is off",
            "name a directory that outlasts the process in `state`: it has the id of this instance",
        );
    }
    if said.acme().is_some() {
        store.error_with_help("bad-value",
            "`acme` and `store` exclude each other: an authority's question may reach another instance",
            "get certificates with another program, and name their files in `certificates`",
        );
    }
}

/// Reads `access` (with `format`) and `events` (with `rate`) of `logs`.
fn logs(fields: &mut Fields<'_>, logs: &mut Logs) {
    fields.set("access", &mut logs.access, |node| {
        log(node, ["a map: to, format", "the access log"], |fields| {
            logs.access_format = fields
                .variant("format", "a format of the access log")
                .unwrap_or_default();
        })
    });
    fields.set("events", &mut logs.events.destination, |node| {
        log(node, ["a map: to, rate", "the log of events"], |fields| {
            fields.set(
                "rate",
                &mut logs.events.rate,
                number(1..=100_000, "a number of events a second"),
            );
        })
    });
}

/// `off`, a file, `-`, or a map with it in `to`, and with the fields that `more` reads. `wanted`
/// and `name` are for the messages.
fn log(
    node: Reader<'_>,
    [wanted, name]: [&str; 2],
    more: impl FnOnce(&mut Fields<'_>),
) -> Option<LogDestination> {
    if !node.is_map() {
        return destination(node);
    }
    node.map(wanted, |fields| {
        let to = fields.required("to", &format!("{name} needs `to`: a file, or `-`"), None);
        more(fields);
        destination(to?)
    })?
}

fn destination(node: Reader<'_>) -> Option<LogDestination> {
    if matches!(&node.value, Value::Scalar { text, .. } if text == "-" || text == "stdout") {
        return Some(LogDestination::Stdout);
    }
    let path = or_off(path)(node)?;
    Some(path.map_or(LogDestination::Off, LogDestination::File))
}
