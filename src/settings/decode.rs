//! [`decode_settings`] decodes `crawlgate.yaml`, the settings of the server. It reports all
//! mistakes in one run, each with its place in the file.

use super::address::normalize_host;
use super::client_address_field::decode_client_address;
use super::decisions::decode_decisions;
use super::evidence::decode_evidence;
use super::identity::decode_identity;
use super::limits::Limits;
use super::listen::decode_listeners;
use super::origins::decode_origins;
use super::store::decode_store;
use super::values::{
    DAY, SECOND, decode_address, decode_distinct, decode_or_off, decode_path, duration_within,
    number_within,
};
use super::{LogDestination, LogSettings, Settings};
use crate::yaml::{Diagnostics, MapFields, NodeReader, NodeValue, SourceFile};
use std::path::{Path, PathBuf};

/// Decodes a settings file, with `defaults` for missing fields. Relative paths begin at `directory`,
/// where the file is, wherever crawlgate is started. Returns no settings if the file has mistakes.
pub fn decode_settings(
    source: &SourceFile,
    directory: &Path,
    defaults: Settings,
) -> (Option<Settings>, Diagnostics) {
    crate::yaml::decode_file(source, directory, |_, root| match root {
        None => Some(defaults),
        Some(root) => root.decode_map("a map of settings, like \"listen: 0.0.0.0:80\"", |fields| {
            decode_fields(fields, defaults)
        }),
    })
}

/// The control socket that a settings file names, else `default`, whatever the other mistakes of the
/// file. Commands then still reach the running process. `None` if the file is no YAML map, or if
/// `control` is wrong or misspelt: the default socket may be that of another crawlgate.
pub fn decode_control(
    source: &SourceFile,
    directory: &Path,
    default: Option<PathBuf>,
) -> Option<Option<PathBuf>> {
    let mut control = None;
    crate::yaml::decode_file(source, directory, |_, root| {
        root?.decode_map("", |fields| {
            control = match fields.field("control") {
                Some(written) => decode_or_off(decode_path)(written),
                None if source.text.lines().any(|line| line.starts_with("cont")) => None,
                None => Some(default),
            };
        })
    });
    control
}

const LIMIT_NAMES: &str = "a map: connections, connections_per_address, handshake, head, idle, \
                           stall, body_rate, body, target, headers, fields, streams, buffers, \
                           buffers_per_address, drain";

/// Replaces the defaults in `settings` by the fields of the file. Reports unknown fields, and fields
/// that need or exclude each other.
fn decode_fields(fields: &mut MapFields<'_>, mut settings: Settings) -> Settings {
    settings.threads = fields.integer("threads", 1..=1_024, "a number of threads");
    fields.section("logs", "a map: access, events", |fields| {
        decode_logs(fields, &mut settings.logs)
    });
    fields.section("privacy", "a map: logs, history, evidence", |fields| {
        for (name, detail) in [
            ("logs", &mut settings.logs.addresses),
            ("history", &mut settings.history_addresses),
            ("evidence", &mut settings.evidence_addresses),
        ] {
            fields.get_into(name, detail, |node| {
                node.variant("a way to record addresses")
            });
        }
    });
    fields.section("history", "a map: paths", |fields| {
        fields.get_into("paths", &mut settings.history_paths, NodeReader::boolean);
    });
    settings.listen = fields.get_or_default("listen", decode_listeners);
    settings.decisions = fields.get("decisions", decode_decisions);
    settings.origins = fields.get_or_default("origins", decode_origins);
    fields.get_into("policies", &mut settings.policies, decode_path);
    if fields.field("policies").is_some() {
        settings.policies_may_be_missing = false;
    }
    fields.get_into("admin", &mut settings.admin, decode_or_off(decode_address));
    settings.admin_hosts = fields.get_or_default("admin_hosts", |node| {
        decode_distinct(
            node,
            ["a list of host names", "duplicate-host"],
            normalize_host,
            (
                "bad-host",
                "is not a host name",
                "write \"crawlgate.internal\", without scheme, port and \"*\"",
            ),
        )
    });
    fields.get_into("control", &mut settings.control, decode_or_off(decode_path));
    fields.get_into("state", &mut settings.state, decode_or_off(decode_path));
    settings.trusted_proxies =
        fields.get_or_default("trusted_proxies", crate::crawlers::decode_networks);
    fields.get_into(
        "client_address",
        &mut settings.client_address,
        decode_client_address,
    );
    settings.identity = fields.section(
        "identity",
        "a map: outgoing, lists, resolvers, signatures",
        decode_identity,
    );
    settings.acme_webroot = fields.get("acme_webroot", decode_path);
    settings.limits = fields.section("limits", LIMIT_NAMES, Limits::decode);
    fields.section("upgrade", "a map: drain", |fields| {
        fields.get_into(
            "drain",
            &mut settings.upgrade_drain,
            duration_within(SECOND..=DAY),
        );
    });
    fields.get_into(
        "direct_forwarding",
        &mut settings.direct_forwarding,
        NodeReader::boolean,
    );
    settings.evidence = fields.get("evidence", decode_evidence);
    settings.store = fields.get("store", decode_store);
    fields.get_into("strict", &mut settings.strict, NodeReader::boolean);
    fields.report_unknown();
    check_combinations(fields, &settings);
    settings
}

/// Reports settings that need or exclude each other: `proxy_protocol` without `trusted_proxies`,
/// `evidence` or `store` with `state: off`, and `acme` with `store`.
fn check_combinations(fields: &mut MapFields<'_>, settings: &Settings) {
    if fields.field("trusted_proxies").is_none()
        && settings
            .listen
            .iter()
            .any(|listener| listener.proxy_protocol)
    {
        fields.decoder.error(
            "missing-field",
            fields.span,
            "\"proxy_protocol\" needs \"trusted_proxies\": the proxies to believe",
        );
    }
    let is_state_off = fields.field("state").is_some() && settings.state.is_none();
    if is_state_off
        && settings.evidence.is_some()
        && let Some(node) = fields.field("evidence")
    {
        node.error_with_help(
            "missing-field",
            "\"evidence\" needs a state directory, and \"state\" is off",
            "in \"state\", name a directory that survives restarts",
        );
    }
    let Some(store) = fields.field("store") else {
        return;
    };
    if is_state_off {
        store.error_with_help(
            "missing-field",
            "\"store\" needs a state directory, and \"state\" is off",
            "in \"state\", name a directory that survives restarts: it has the id of this instance",
        );
    }
    if settings.acme().is_some() {
        store.error_with_help(
            "bad-value",
            "\"acme\" cannot be used with \"store\": the certificate authority may reach another \
             instance",
            "get certificates with another program, and name their files in \"certificates\"",
        );
    }
}

/// `access` (with `format`) and `events` (with `rate`) of `logs`.
fn decode_logs(fields: &mut MapFields<'_>, logs: &mut LogSettings) {
    fields.get_into("access", &mut logs.access, |node| {
        decode_log(node, ["a map: to, format", "the access log"], |fields| {
            logs.access_format = fields
                .variant("format", "a format of the access log")
                .unwrap_or_default();
        })
    });
    fields.get_into("events", &mut logs.events.destination, |node| {
        decode_log(node, ["a map: to, rate", "the log of events"], |fields| {
            fields.get_into(
                "rate",
                &mut logs.events.rate,
                number_within(1..=100_000, "a number of events a second"),
            );
        })
    });
}

/// `off`, a file, `-`, or a map with one of these in `to` and with fields for `decode_more`. `wanted`
/// and `name` are for messages.
fn decode_log(
    node: NodeReader<'_>,
    [wanted, name]: [&str; 2],
    decode_more: impl FnOnce(&mut MapFields<'_>),
) -> Option<LogDestination> {
    if !node.is_map() {
        return decode_destination(node);
    }
    node.decode_map(wanted, |fields| {
        let to = fields.required_field(
            "to",
            &format!("{name} needs \"to\": a file, or \"-\""),
            None,
        );
        decode_more(fields);
        decode_destination(to?)
    })?
}

fn decode_destination(node: NodeReader<'_>) -> Option<LogDestination> {
    use LogDestination::*;
    if matches!(&node.value, NodeValue::Scalar { text, .. } if text == "-" || text == "stdout") {
        return Some(Stdout);
    }
    Some(decode_or_off(decode_path)(node)?.map_or(Off, File))
}
