//! [`origins`] decodes the setting `origins`: the servers behind crawlgate by host and path, and
//! how crawlgate balances, checks and protects them.

use super::address::{host_authority, host_name, host_pattern};
use super::identity::resolvers;
use super::values::{HOUR, MILLISECOND, MINUTE, SECOND, list, number, or_off, path, within};
use super::{
    Ejection, HealthSettings, OriginSettings, OriginTimeouts, OriginTls, PlaceSettings,
    ServerAddress, ServerSettings, TlsFile,
};
use crate::crawlers::{CrawlerIndex, Registry};
use crate::yaml::{Fields, Reader, Value};
use std::ops::RangeInclusive;

const MAP: &str = "a map: hosts, paths, servers, host, resolvers, balance, timeouts, tls, health, ejection, \
                   connections, crawlers, exempt, queue";

/// A URL, a list of URLs (the servers of every host), or a list of maps with hosts and servers. All
/// URLs together are one origin, the last one, for every other host. Two origins for the same host
/// and path are a mistake.
pub(super) fn origins(node: Reader<'_>) -> Vec<OriginSettings> {
    let mut origins: Vec<OriginSettings> = Vec::new();
    let mut bare: Vec<ServerSettings> = Vec::new();
    let wanted = "the URL of a server, like http://127.0.0.1:3000";
    for item in list(node, wanted) {
        if !item.is_map() {
            bare.extend(server(item));
            continue;
        }
        let Some(origin) = item.map(MAP, origin).flatten() else {
            continue;
        };
        if let Some(other) = origins.iter().find_map(|other| overlap(other, &origin)) {
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
                "URLs and an origin without `hosts` are both for all other hosts",
            );
        }
        origins.push(OriginSettings {
            servers: bare,
            ..OriginSettings::of([])
        });
    }
    origins
}

/// The host and path that two origins both have, in words; `None` if there is none. Two origins
/// without hosts share every other host, and two without paths every path.
fn overlap(one: &OriginSettings, other: &OriginSettings) -> Option<String> {
    let path = shared(&one.paths, &other.paths)?;
    let host = match shared(&one.hosts, &other.hosts)? {
        "" => "every other host".to_owned(),
        host => format!("`{host}`"),
    };
    Some(match path {
        "" => host,
        path => format!("`{path}` of {host}"),
    })
}

/// What stands in both lists. Two lists without entries are both for everything else: `""`.
fn shared<'a>(one: &'a [String], other: &[String]) -> Option<&'a str> {
    if one.is_empty() && other.is_empty() {
        return Some("");
    }
    one.iter()
        .find(|item| other.contains(item))
        .map(String::as_str)
}

/// Reads a map of an origin. `None` without servers. Reports `tls` without a server that speaks it,
/// and servers that are all backups.
fn origin(fields: &mut Fields<'_>) -> Option<OriginSettings> {
    let origin = OriginSettings {
        hosts: fields.get_or_default("hosts", hosts),
        paths: fields.get_or_default("paths", paths),
        servers: fields.get_or_default("servers", servers),
        host: fields.get("host", authority),
        resolvers: fields.get_or_default("resolvers", resolvers),
        balance: fields
            .variant("balance", "a way to choose a server")
            .unwrap_or_default(),
        timeouts: fields.section(
            "timeouts",
            "a map of durations: connect, read, write, idle",
            timeouts,
        ),
        ejection: fields
            .get("ejection", or_off(ejection))
            .unwrap_or_else(|| Some(Ejection::default())),
        health: fields.get("health", health),
        places: places(fields),
        tls: fields.get("tls", tls),
    };
    let tls = fields.take_with_key("tls");
    fields.finish();
    let servers = &origin.servers;
    let decoder = fields.decoder;
    if servers.is_empty() {
        decoder.error_with_help(
            "missing-field",
            fields.span,
            "an origin needs `servers`",
            "write `servers: http://127.0.0.1:3000`",
        );
        return None;
    }
    if let Some((key, _)) = tls
        && !servers.iter().any(|server| server.address.tls)
    {
        key.error_with_help(
            "bad-value",
            "`tls` is for servers with https, and this origin has none",
            "write `https://` in the URLs of its servers, or remove `tls`",
        );
    }
    if servers.iter().all(|server| server.is_backup) {
        decoder.error_with_help(
            "no-server",
            fields.span,
            "every server of this origin is a backup",
            "leave `backup` out of at least one: backups are used only while no other server is up",
        );
    }
    Some(origin)
}

/// One host pattern or a list, each once, in punycode and lower case.
fn hosts(node: Reader<'_>) -> Vec<String> {
    distinct(
        node,
        ["a list of host names", "duplicate-host"],
        host_pattern,
        (
            "bad-host",
            "is not a host name",
            "write `shop.example` or `\"*.shop.example\"`, without scheme and port",
        ),
    )
}

/// One beginning of a path or a list, each once: with `/` at the beginning, and without query,
/// fragment and `*`.
fn paths(node: Reader<'_>) -> Vec<String> {
    distinct(
        node,
        ["a list of paths, like /api/", "duplicate-path"],
        |path| plain_path(path, b"?#*"),
        (
            "bad-path",
            "is not the beginning of a path",
            "write `/api/`: every path that begins so is meant; `*` and queries are not for this list",
        ),
    )
}

/// A path of ASCII without these bytes.
fn plain_path(text: &str, without: &[u8]) -> Option<String> {
    let is_plain = text.starts_with('/')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !without.contains(&byte));
    is_plain.then(|| text.to_owned())
}

/// One value or a list of values that may each stand there once. `wanted` says in messages what is
/// expected; `id` is the id of the error for a repetition, `mistake` the error for a value that
/// `read` does not accept. Mistakes are left out.
fn distinct(
    node: Reader<'_>,
    [wanted, id]: [&'static str; 2],
    read: fn(&str) -> Option<String>,
    mistake: (&'static str, &str, &str),
) -> Vec<String> {
    let mut found = Vec::new();
    for item in node.one_or_many(wanted) {
        let Some(value) = item.parsed(wanted, read, mistake) else {
            continue;
        };
        if found.contains(&value) {
            item.error(id, format!("`{value}` is listed twice"));
        } else {
            found.push(value);
        }
    }
    found
}

/// A URL or a map, or a list of them.
fn servers(node: Reader<'_>) -> Vec<ServerSettings> {
    list(node, "a list of URLs, like http://127.0.0.1:3000")
        .into_iter()
        .filter_map(server)
        .collect()
}

/// A URL, or a map with `url`, `weight` (1 without it) and `backup`. Keeps the place in the file.
fn server(node: Reader<'_>) -> Option<ServerSettings> {
    if !node.is_map() {
        let address = address(node)?;
        return Some(ServerSettings {
            span: Some(node.span),
            ..ServerSettings::from(address)
        });
    }
    node.map("a map: url, weight, backup", |fields| {
        fields.required(
            "url",
            "a server needs `url`",
            "write `url: http://127.0.0.1:3000`",
        );
        let url = fields.located("url", address);
        Some(ServerSettings {
            weight: fields.integer("weight", 1..=100, "a weight").unwrap_or(1),
            is_backup: fields.get("backup", Reader::boolean).unwrap_or_default(),
            span: Some(url.as_ref()?.span),
            address: url?.value,
        })
    })?
}

fn address(node: Reader<'_>) -> Option<ServerAddress> {
    let text = node.text("the URL of a server, like http://127.0.0.1:3000")?;
    let address = ServerAddress::parse(text)
        .map_err(|error| node.error("bad-origin", error.to_string()))
        .ok()?;
    let socket = address.socket.map(|path| node.decoder.directory.join(path));
    Some(ServerAddress { socket, ..address })
}

fn timeouts(fields: &mut Fields<'_>) -> OriginTimeouts {
    let mut timeouts = OriginTimeouts::default();
    for (name, timeout) in [
        ("connect", &mut timeouts.connect),
        ("read", &mut timeouts.read),
        ("write", &mut timeouts.write),
        ("idle", &mut timeouts.idle),
    ] {
        fields.set(name, timeout, within(MILLISECOND..=HOUR));
    }
    timeouts
}

/// A map with `ca`, `server_name` and `client`, which has a certificate and its key.
fn tls(node: Reader<'_>) -> Option<OriginTls> {
    node.map("a map: ca, server_name, client", |fields| OriginTls {
        ca: fields.get("ca", tls_file),
        server_name: fields.get("server_name", |node| {
            node.parsed("the name in the servers' certificates",
                host_name,
                (
                    "bad-host",
                    "is not a host name",
                    "write the name that is in the certificates, like `app.internal`, without scheme and port",
                ),
            )
        }),
        client: fields.get("client", |node| {
            let [certificate, key] = super::listen::files(node, "a client certificate", tls_file)?;
            Some([certificate?, key?])
        }),
    })
}

fn tls_file(node: Reader<'_>) -> Option<TlsFile> {
    Some(TlsFile {
        path: path(node)?,
        span: node.span,
    })
}

/// A map with `failures`, `for`, `most` and `statuses`; the caller reads `off`. If `for` is longer
/// than the default of `most`, `most` is as long; one that is written and shorter is a mistake.
fn ejection(node: Reader<'_>) -> Option<Ejection> {
    if let Value::Scalar { text, .. } = &node.value
        && !node.is_null()
    {
        node.error_with_help(
            "bad-value",
            format!("`{text}` is neither `off` nor a map"),
            "write `off`, or `{ failures: 3, for: 10s, most: 5m }`",
        );
        return None;
    }
    node.map("a map: failures, for, most, statuses; or off", |fields| {
        let mut ejection = Ejection::default();
        fields.set(
            "failures",
            &mut ejection.failures,
            number(1..=1_000, "a number of failures"),
        );
        fields.set("for", &mut ejection.time, within(SECOND..=HOUR));
        fields.set("most", &mut ejection.most, within(SECOND..=HOUR));
        if ejection.most < ejection.time {
            match fields.take("most") {
                Some(node) => node.error_with_help(
                    "bad-value",
                    "`most` is shorter than `for`",
                    "`for` is how long the first ejection lasts, `most` how long the longest",
                ),
                None => ejection.most = ejection.time,
            }
        }
        fields.set("statuses", &mut ejection.statuses, statuses(400..=599));
        ejection
    })
}

/// Reads `connections`, and what belongs to it: `crawlers`, `exempt`, `queue`. `None` without
/// `connections`; then each of these is a mistake.
fn places(fields: &mut Fields<'_>) -> Option<PlaceSettings> {
    let wanted = "a number of requests at once";
    let has_limit = fields.take("connections").is_some();
    let most = fields.integer("connections", 1..=1_000_000, wanted);
    for name in ["crawlers", "exempt", "queue"] {
        if let Some((key, _)) = fields.take_with_key(name)
            && !has_limit
        {
            key.error_with_help(
                "missing-field",
                format!("`{name}` needs `connections`"),
                "write `connections: 100`: so many requests are in flight on each server at most",
            );
        }
    }
    let mut places = PlaceSettings::of(most.unwrap_or(1));
    if let Some(crawlers) = fields.located("crawlers", number(1..=1_000_000, wanted)) {
        places.crawlers = crawlers.value;
        if let Some(most) = most
            && crawlers.value > most
        {
            fields.decoder.error_with_help(
                "bad-value",
                crawlers.span,
                "`crawlers` is more than `connections`",
                format!("`crawlers` is a part of the {most} places of each server"),
            );
        }
    }
    places.exempt = fields.get_or_default("exempt", exempted);
    fields.section("queue", "a map: length, wait", |fields| {
        fields.set(
            "length",
            &mut places.length,
            number(0..=1_000_000, "a number of requests"),
        );
        fields.set("wait", &mut places.wait, within(MILLISECOND..=MINUTE));
    });
    most.map(|_| places)
}

/// Crawlers of the registry, by token, id or name. An unknown one is reported and left out.
fn exempted(node: Reader<'_>) -> Vec<CrawlerIndex> {
    node.all_parsed(
        "a list of crawlers, like Googlebot",
        |text| Registry::builtin().find(text),
        (
            "unknown-crawler",
            "is no crawler of the registry",
            "`crawlgate crawlers` lists the tokens; only a crawler that can be verified is exempt",
        ),
    )
}

/// A map with at least a path.
fn health(node: Reader<'_>) -> Option<HealthSettings> {
    let wanted = "a map: path, host, every, timeout, unhealthy_after, healthy_after, status";
    node.map(wanted, |fields| {
        fields.required(
            "path",
            "`health` needs `path`",
            "write `path: /healthz`: what crawlgate asks each server for",
        );
        let mut health = HealthSettings::of(fields.get("path", health_path).unwrap_or_default());
        health.host = fields.get("host", host);
        fields.set("every", &mut health.every, within(100 * MILLISECOND..=HOUR));
        fields.set("timeout", &mut health.timeout, within(MILLISECOND..=MINUTE));
        fields.set(
            "unhealthy_after",
            &mut health.unhealthy_after,
            number(1..=1_000, "a number of checks"),
        );
        fields.set(
            "healthy_after",
            &mut health.healthy_after,
            number(1..=1_000, "a number of checks"),
        );
        fields.set("status", &mut health.statuses, statuses(200..=599));
        health
    })
}

/// A path with a query if it has one: `/` at the beginning, ASCII without blanks and `#`.
fn health_path(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "a path, like /healthz",
        |text| plain_path(text, b"#"),
        (
            "bad-path",
            "is not a path",
            "write `/healthz`; other characters than those of ASCII are written as %C3%A4",
        ),
    )
}

/// A host with or without a port, as a Host field has it.
fn authority(node: Reader<'_>) -> Option<String> {
    node.parsed("the Host that the servers want",
        host_authority,
        (
            "bad-host",
            "is not a host with or without a port",
            "write `app.example`, `app.example:8080` or `\"[2001:db8::1]:8080\"`, without scheme, path and `*`",
        ),
    )
}

fn host(node: Reader<'_>) -> Option<String> {
    node.parsed(
        "a host name",
        |text| host_pattern(text).filter(|host| !host.starts_with('*')),
        (
            "bad-host",
            "is not a host name",
            "write `shop.example`, without scheme, port and `*`",
        ),
    )
}

/// A reader of statuses and ranges of them within bounds: `503`, `[502, 503]`, `200-399`.
fn statuses(
    bounds: RangeInclusive<u16>,
) -> impl FnOnce(Reader<'_>) -> Option<Vec<RangeInclusive<u16>>> {
    move |node| {
        let help = format!(
            "write a status or a range, from {} to {}",
            bounds.start(),
            bounds.end()
        );
        Some(node.all_parsed(
            "a list of statuses, like 503 or 500-504",
            |text| {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let first = first.trim().parse().ok()?;
                let last = last.trim().parse().ok()?;
                (first <= last && bounds.contains(&first) && bounds.contains(&last))
                    .then_some(first..=last)
            },
            ("bad-value", "is not a status that is accepted here", &help),
        ))
    }
}
