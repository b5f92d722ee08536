//! [`decode_origins`] decodes the setting `origins`: the servers behind crawlgate by host and path,
//! with load balancing, health checks and limits.

use super::address::{normalize_authority, normalize_host, normalize_host_pattern};
use super::identity::decode_resolvers;
use super::server_health::{EjectionSettings, decode_ejection, decode_health};
use super::values::{
    MILLISECOND, MINUTE, decode_distinct, decode_or_off, decode_path, duration_within,
    number_within, parse_plain_path,
};
use super::{
    CapacitySettings, OriginServerAddress, OriginSettings, OriginTimeouts, OriginTls,
    ServerSettings, TlsFile,
};
use crate::crawlers::{CrawlerIndex, Registry};
use crate::yaml::{MapFields, NodeReader};

const ORIGIN_FIELDS: &str = "a map: hosts, paths, servers, host, resolvers, balance, timeouts, \
                             tls, health, ejection, connections, crawlers, exempt, queue";

/// A URL, a list of URLs, or a list of maps with hosts and servers. All URLs together are one
/// origin, the last one, for every other host. Reports two origins for the same host and path.
pub fn decode_origins(node: NodeReader<'_>) -> Vec<OriginSettings> {
    let mut origins: Vec<OriginSettings> = Vec::new();
    let mut bare: Vec<ServerSettings> = Vec::new();
    for item in node.one_or_many("the URL of a server, like http://127.0.0.1:3000") {
        if !item.is_map() {
            bare.extend(decode_server(item));
            continue;
        }
        let Some(origin) = item.decode_map(ORIGIN_FIELDS, decode_origin).flatten() else {
            continue;
        };
        if let Some(other) = origins
            .iter()
            .find_map(|other| common_host_and_path(other, &origin))
        {
            item.error_with_help(
                "duplicate-origin",
                format!("{other} already has an origin"),
                "name each host and path once, with all of its servers",
            );
        }
        origins.push(origin);
    }
    if !bare.is_empty() {
        if origins
            .iter()
            .any(|origin| origin.hosts.is_empty() && origin.paths.is_empty())
        {
            node.error(
                "duplicate-origin",
                "a URL and an origin without \"hosts\" are both for all other hosts",
            );
        }
        origins.push(OriginSettings {
            servers: bare,
            ..OriginSettings::with_servers([])
        });
    }
    origins
}

/// The host and path that two origins have in common, for a message. Two origins without hosts have
/// every other host in common, and two without paths every path.
fn common_host_and_path(one: &OriginSettings, other: &OriginSettings) -> Option<String> {
    let path = first_overlap(&one.paths, &other.paths)?;
    let host = match first_overlap(&one.hosts, &other.hosts)? {
        "" => "all other hosts".to_owned(),
        host => format!("\"{host}\""),
    };
    Some(match path {
        "" => host,
        path => format!("\"{path}\" of {host}"),
    })
}

/// The first common entry, or `""` for two empty lists, which both mean everything else.
fn first_overlap<'a>(one: &'a [String], other: &[String]) -> Option<&'a str> {
    if one.is_empty() && other.is_empty() {
        return Some("");
    }
    one.iter()
        .find(|item| other.contains(item))
        .map(String::as_str)
}

/// A map of an origin. `None` without servers. Reports `tls` without a server that speaks it, and
/// servers that are all backups.
fn decode_origin(fields: &mut MapFields<'_>) -> Option<OriginSettings> {
    let origin = OriginSettings {
        hosts: fields.get_or_default("hosts", decode_hosts),
        paths: fields.get_or_default("paths", decode_paths),
        servers: fields.get_or_default("servers", |node| {
            node.one_or_many("a list of URLs, like http://127.0.0.1:3000")
                .filter_map(decode_server)
                .collect()
        }),
        host: fields.get("host", decode_authority),
        resolvers: fields.get_or_default("resolvers", decode_resolvers),
        balance: fields
            .variant("balance", "a value of \"balance\"")
            .unwrap_or_default(),
        timeouts: fields.section(
            "timeouts",
            "a map of durations: connect, read, write, idle",
            OriginTimeouts::decode,
        ),
        ejection: fields
            .get("ejection", decode_or_off(decode_ejection))
            .unwrap_or_else(|| Some(EjectionSettings::default())),
        health: fields.get("health", decode_health),
        capacity: decode_capacity(fields),
        tls: fields.get("tls", decode_origin_tls),
    };
    let tls = fields.field_with_key("tls");
    fields.report_unknown();
    let servers = &origin.servers;
    let decoder = fields.decoder;
    if servers.is_empty() {
        decoder.error_with_help(
            "missing-field",
            fields.span,
            "an origin needs \"servers\"",
            "write \"servers: http://127.0.0.1:3000\"",
        );
        return None;
    }
    if let Some((key, _)) = tls
        && !servers.iter().any(|server| server.address.tls)
    {
        key.error_with_help(
            "bad-value",
            "\"tls\" is for servers with https, but this origin has none",
            "write \"https://\" in the URLs of its servers, or remove \"tls\"",
        );
    }
    if servers.iter().all(|server| server.is_backup) {
        decoder.error_with_help(
            "no-server",
            fields.span,
            "all servers of this origin are backups",
            "remove \"backup\" from at least one: a backup gets requests only while no other \
             server is up",
        );
    }
    Some(origin)
}

/// One host pattern or a list, each once, in punycode and lower case.
fn decode_hosts(node: NodeReader<'_>) -> Vec<String> {
    decode_distinct(
        node,
        ["a list of host names", "duplicate-host"],
        normalize_host_pattern,
        (
            "bad-host",
            "is not a host name",
            "write \"shop.example\" or \"*.shop.example\", without scheme and port",
        ),
    )
}

/// One path prefix or a list of distinct ones, without query, fragment and `*`.
fn decode_paths(node: NodeReader<'_>) -> Vec<String> {
    decode_distinct(
        node,
        ["a list of paths, like /api/", "duplicate-path"],
        |path| parse_plain_path(path, b"?#*"),
        (
            "bad-path",
            "cannot begin a path",
            "write \"/api/\" for all paths that begin with it, without \"*\" and query",
        ),
    )
}

/// A URL, or a map with `url`, `weight` and `backup`.
fn decode_server(node: NodeReader<'_>) -> Option<ServerSettings> {
    if !node.is_map() {
        let address = decode_server_address(node)?;
        return Some(ServerSettings {
            span: Some(node.span),
            ..ServerSettings::from(address)
        });
    }
    node.decode_map("a map: url, weight, backup", |fields| {
        fields.required_field(
            "url",
            "a server needs \"url\"",
            "write \"url: http://127.0.0.1:3000\"",
        );
        let url = fields.located("url", decode_server_address);
        Some(ServerSettings {
            weight: fields.integer("weight", 1..=100, "a weight").unwrap_or(1),
            is_backup: fields
                .get("backup", NodeReader::boolean)
                .unwrap_or_default(),
            span: Some(url.as_ref()?.span),
            address: url?.value,
        })
    })?
}

fn decode_server_address(node: NodeReader<'_>) -> Option<OriginServerAddress> {
    let text = node.text("the URL of a server, like http://127.0.0.1:3000")?;
    let address = OriginServerAddress::parse(text)
        .map_err(|error| node.error("bad-origin", error.to_string()))
        .ok()?;
    let socket = address.socket.map(|path| node.decoder.directory.join(path));
    Some(OriginServerAddress { socket, ..address })
}

/// A map with `ca`, `server_name` and `client`, which has a certificate and its key.
fn decode_origin_tls(node: NodeReader<'_>) -> Option<OriginTls> {
    node.decode_map("a map: ca, server_name, client", |fields| OriginTls {
        ca: fields.get("ca", decode_tls_file),
        server_name: fields.get("server_name", |node| {
            node.parse_with(
                "the name in the servers' certificates",
                normalize_host,
                (
                    "bad-host",
                    "is not a host name",
                    "write the name in the certificates, like \"app.internal\", without scheme \
                     and port",
                ),
            )
        }),
        client: fields.get("client", |node| {
            let [certificate, key] =
                super::listen::decode_cert_and_key(node, "a client certificate", decode_tls_file)?;
            Some([certificate?, key?])
        }),
    })
}

fn decode_tls_file(node: NodeReader<'_>) -> Option<TlsFile> {
    Some(TlsFile {
        path: decode_path(node)?,
        span: node.span,
    })
}

/// `connections`, with `crawlers`, `exempt` and `queue`. `None` without `connections`; then the
/// other fields are reported.
fn decode_capacity(fields: &mut MapFields<'_>) -> Option<CapacitySettings> {
    let wanted = "a number of requests at once";
    let has_limit = fields.field("connections").is_some();
    let most = fields.integer("connections", 1..=1_000_000, wanted);
    for name in ["crawlers", "exempt", "queue"] {
        if let Some((key, _)) = fields.field_with_key(name)
            && !has_limit
        {
            key.error_with_help(
                "missing-field",
                format!("\"{name}\" needs \"connections\""),
                "write \"connections: 100\": at most so many requests at once go to each server",
            );
        }
    }
    let mut capacity = CapacitySettings::with_connections(most.unwrap_or(1));
    if let Some(crawlers) = fields.located("crawlers", number_within(1..=1_000_000, wanted)) {
        capacity.crawlers = crawlers.value;
        if let Some(most) = most
            && crawlers.value > most
        {
            fields.decoder.error_with_help(
                "bad-value",
                crawlers.span,
                "\"crawlers\" is more than \"connections\"",
                format!(
                    "\"crawlers\" is the part of the {most} places of each server that \
                         crawlers may use"
                ),
            );
        }
    }
    capacity.exempt = fields.get_or_default("exempt", decode_exempt_crawlers);
    fields.section("queue", "a map: length, wait", |fields| {
        fields.get_into(
            "length",
            &mut capacity.queue_length,
            number_within(0..=1_000_000, "a number of requests"),
        );
        fields.get_into(
            "wait",
            &mut capacity.queue_timeout,
            duration_within(MILLISECOND..=MINUTE),
        );
    });
    most.map(|_| capacity)
}

/// Crawlers of the registry, by token, id or name. Reports and leaves out unknown ones.
fn decode_exempt_crawlers(node: NodeReader<'_>) -> Vec<CrawlerIndex> {
    node.parse_all_with(
        "a list of crawlers, like Googlebot",
        |text| Registry::builtin().find(text),
        (
            "unknown-crawler",
            "is not a known crawler",
            "\"crawlgate crawlers\" lists the tokens; only crawlers that can be verified are \
             exempt",
        ),
    )
}

/// A host with an optional port.
fn decode_authority(node: NodeReader<'_>) -> Option<String> {
    node.parse_with(
        "the Host that the servers expect",
        normalize_authority,
        (
            "bad-host",
            "is not a host, with or without a port",
            "write \"app.example\", \"app.example:8080\" or \"[2001:db8::1]:8080\", without \
             scheme, path and \"*\"",
        ),
    )
}
