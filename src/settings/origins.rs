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
use crate::yaml::{Decoder, Fields, Located, Node, Value};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The shortest time between two checks of a server.
const MOST_OFTEN: Duration = Duration::from_millis(100);
/// The largest weight of a server.
const HEAVIEST: u64 = 100;
const MAP: &str = "a map: hosts, paths, servers, host, resolvers, balance, timeouts, tls, health, ejection, \
                   connections, crawlers, exempt, queue";

/// A URL, a list of URLs (the servers of every host), or a list of maps with hosts and servers.
pub(super) fn origins(decoder: &mut Decoder, node: &Node) -> Vec<OriginSettings> {
    let mut origins: Vec<OriginSettings> = Vec::new();
    let mut bare: Vec<ServerSettings> = Vec::new();
    for item in list(
        decoder,
        node,
        "the URL of a server, like http://127.0.0.1:3000",
    ) {
        if !item.is_map() {
            bare.extend(server(decoder, item));
            continue;
        }
        let Some(origin) = decoder.map(item, MAP, origin).flatten() else {
            continue;
        };
        if let Some(other) = origins.iter().find_map(|other| overlap(other, &origin)) {
            let help = "name each host and path once, with all of its servers";
            decoder.error_with_help(
                "duplicate-origin",
                item.span,
                format!("{other} already has an origin"),
                help,
            );
        }
        origins.push(origin);
    }
    if !bare.is_empty() {
        if origins
            .iter()
            .any(|origin| origin.hosts.is_empty() && origin.paths.is_empty())
        {
            let message = "URLs and an origin without `hosts` are both for all other hosts";
            decoder.error("duplicate-origin", node.span, message);
        }
        origins.push(OriginSettings {
            servers: bare,
            ..OriginSettings::of([])
        });
    }
    origins
}

/// The host or path that two origins both have, in words.
fn overlap(one: &OriginSettings, other: &OriginSettings) -> Option<String> {
    // Lists without entries are both for everything else.
    let shared =
        |one: &[String], other: &[String]| match one.iter().find(|item| other.contains(item)) {
            Some(item) => Some(format!("`{item}`")),
            None => (one.is_empty() && other.is_empty()).then(String::new),
        };
    let path = shared(&one.paths, &other.paths)?;
    let host = match shared(&one.hosts, &other.hosts)? {
        host if host.is_empty() => "every other host".to_owned(),
        host => host,
    };
    Some(if path.is_empty() {
        host
    } else {
        format!("{path} of {host}")
    })
}

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
    let (servers, tls) = (&origin.servers, fields.take_with_key("tls"));
    fields.finish();
    let (decoder, span) = (&mut *fields.decoder, fields.span);
    if let Some((key, _)) =
        tls.filter(|_| servers.iter().all(|server| !server.address.tls) && !servers.is_empty())
    {
        let message = "`tls` is for servers with https, and this origin has none";
        let help = "write `https://` in the URLs of its servers, or remove `tls`";
        decoder.error_with_help("bad-value", key, message, help);
    }
    if servers.is_empty() {
        let help = "write `servers: http://127.0.0.1:3000`";
        decoder.error_with_help("missing-field", span, "an origin needs `servers`", help);
        return None;
    }
    if servers.iter().all(|server| server.is_backup) {
        let help =
            "leave `backup` out of at least one: backups are used only while no other server is up";
        decoder.error_with_help(
            "no-server",
            span,
            "every server of this origin is a backup",
            help,
        );
    }
    Some(origin)
}

fn hosts(decoder: &mut Decoder, node: &Node) -> Vec<String> {
    let help = "write `shop.example` or `\"*.shop.example\"`, without scheme and port";
    let mistake = ("bad-host", "is not a host name", help);
    distinct(
        decoder,
        node,
        ["a list of host names", "duplicate-host"],
        host_pattern,
        mistake,
    )
}

fn paths(decoder: &mut Decoder, node: &Node) -> Vec<String> {
    let read = |path: &str| {
        let is_plain = |octet: u8| octet.is_ascii_graphic() && !b"?#*".contains(&octet);
        (path.starts_with('/') && path.bytes().all(is_plain)).then(|| path.to_owned())
    };
    let help =
        "write `/api/`: every path that begins so is meant; `*` and queries are not for this list";
    let mistake = ("bad-path", "is not the beginning of a path", help);
    distinct(
        decoder,
        node,
        ["a list of paths, like /api/", "duplicate-path"],
        read,
        mistake,
    )
}

/// Values that stand in a list once; `id` is that of the error otherwise.
fn distinct(
    decoder: &mut Decoder,
    node: &Node,
    [wanted, id]: [&'static str; 2],
    read: impl Fn(&str) -> Option<String>,
    mistake: (&'static str, &str, &str),
) -> Vec<String> {
    let mut found = Vec::new();
    for item in decoder.one_or_many(node, wanted) {
        let Some(value) = decoder.parsed(item, wanted, &read, mistake) else {
            continue;
        };
        match found.contains(&value) {
            true => decoder.error(id, item.span, format!("`{value}` is listed twice")),
            false => found.push(value),
        }
    }
    found
}

/// A URL or a map, or a list of them.
fn servers(decoder: &mut Decoder, node: &Node) -> Vec<ServerSettings> {
    let items = list(decoder, node, "a list of URLs, like http://127.0.0.1:3000").iter();
    items.filter_map(|item| server(decoder, item)).collect()
}

fn server(decoder: &mut Decoder, node: &Node) -> Option<ServerSettings> {
    if !node.is_map() {
        let address = address(decoder, node)?;
        return Some(ServerSettings {
            span: Some(node.span),
            ..ServerSettings::from(address)
        });
    }
    decoder.map(node, "a map: url, weight, backup", |fields| {
        fields.required(
            "url",
            "a server needs `url`",
            "write `url: http://127.0.0.1:3000`",
        );
        let url = fields.located("url", address);
        let weight = fields
            .integer("weight", 1..=HEAVIEST, "a weight")
            .unwrap_or(1);
        let is_backup = fields.get("backup", Decoder::boolean).unwrap_or_default();
        let Located {
            value: address,
            span,
        } = url?;
        Some(ServerSettings {
            address,
            weight,
            is_backup,
            span: Some(span),
        })
    })?
}

fn address(decoder: &mut Decoder, node: &Node) -> Option<ServerAddress> {
    let text = decoder.text(node, "the URL of a server, like http://127.0.0.1:3000")?;
    ServerAddress::parse(text)
        .map_err(|error| decoder.error("bad-origin", node.span, error.to_string()))
        .ok()
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

fn tls(decoder: &mut Decoder, node: &Node) -> Option<OriginTls> {
    decoder.map(node, "a map: ca, server_name, client", |fields| OriginTls {
        ca: fields.get("ca", tls_file),
        server_name: fields.get("server_name", |decoder, node| {
            let help = "write the name that is in the certificates, like `app.internal`, without scheme and port";
            let mistake = ("bad-host", "is not a host name", help);
            decoder.parsed(node, "the name in the servers' certificates", host_name, mistake)
        }),
        client: fields.get("client", |decoder, node| {
            let [certificate, key] = super::listen::files(decoder, node, "a client certificate", tls_file)?;
            Some([certificate?, key?])
        }),
    })
}

fn tls_file(decoder: &mut Decoder, node: &Node) -> Option<TlsFile> {
    Some(TlsFile {
        path: path(decoder, node)?,
        span: node.span,
    })
}

fn ejection(decoder: &mut Decoder, node: &Node) -> Option<Ejection> {
    if let Value::Scalar { text, .. } = &node.value
        && !node.is_null()
    {
        let help = "write `off`, or `{ failures: 3, for: 10s, most: 5m }`";
        decoder.error_with_help(
            "bad-value",
            node.span,
            format!("`{text}` is neither `off` nor a map"),
            help,
        );
        return None;
    }
    decoder.map(node, "a map: failures, for, most, statuses; or off", |fields| {
        let mut ejection = Ejection::default();
        fields.set("failures", &mut ejection.failures, number(1..=1_000, "a number of failures"));
        fields.set("for", &mut ejection.time, within(SECOND..=HOUR));
        fields.set("most", &mut ejection.most, within(SECOND..=HOUR));
        if ejection.most < ejection.time {
            match fields.take("most") {
                Some(node) => {
                    let help = "`for` is how long the first ejection lasts, `most` how long the longest";
                    let message = "`most` is shorter than `for`";
                    fields.decoder.error_with_help("bad-value", node.span, message, help);
                }
                None => ejection.most = ejection.time,
            }
        }
        fields.set("statuses", &mut ejection.statuses, statuses(400..=599));
        ejection
    })
}

/// `connections`, and what belongs to it.
fn places(fields: &mut Fields<'_>) -> Option<PlaceSettings> {
    let wanted = "a number of requests at once";
    let (has_limit, most) = (
        fields.take("connections").is_some(),
        fields.integer("connections", 1..=1_000_000, wanted),
    );
    for name in ["crawlers", "exempt", "queue"] {
        if let (Some((key, _)), false) = (fields.take_with_key(name), has_limit) {
            let help =
                "write `connections: 100`: so many requests are in flight on each server at most";
            fields.decoder.error_with_help(
                "missing-field",
                key,
                format!("`{name}` needs `connections`"),
                help,
            );
        }
    }
    let mut places = PlaceSettings::of(most.unwrap_or(1));
    if let Some(crawlers) = fields.located("crawlers", number(1..=1_000_000, wanted)) {
        places.crawlers = crawlers.value;
        if let Some(most) = most.filter(|most| crawlers.value > *most) {
            let help = format!("`crawlers` is a part of the {most} places of each server");
            let message = "`crawlers` is more than `connections`";
            fields
                .decoder
                .error_with_help("bad-value", crawlers.span, message, help);
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

/// Crawlers of the registry, by token, id or name.
fn exempted(decoder: &mut Decoder, node: &Node) -> Vec<CrawlerIndex> {
    let help =
        "`crawlgate crawlers` lists the tokens; only a crawler that can be verified is exempt";
    let mistake = ("unknown-crawler", "is no crawler of the registry", help);
    let find = |text: &str| Registry::builtin().find(text);
    decoder.all_parsed(node, "a list of crawlers, like Googlebot", find, mistake)
}

/// A map with at least a path.
fn health(decoder: &mut Decoder, node: &Node) -> Option<HealthSettings> {
    let wanted = "a map: path, host, every, timeout, unhealthy_after, healthy_after, status";
    decoder.map(node, wanted, |fields| {
        let help = "write `path: /healthz`: what crawlgate asks each server for";
        fields.required("path", "`health` needs `path`", help);
        let mut health = HealthSettings::of(fields.get("path", health_path).unwrap_or_default());
        health.host = fields.get("host", host);
        fields.set("every", &mut health.every, within(MOST_OFTEN..=HOUR));
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

fn health_path(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let is_path = |text: &str| {
        text.starts_with('/')
            && text
                .bytes()
                .all(|octet| octet.is_ascii_graphic() && octet != b'#')
    };
    let read = |text: &str| is_path(text).then(|| text.to_owned());
    let help = "write `/healthz`; other characters than those of ASCII are written as %C3%A4";
    decoder.parsed(
        node,
        "a path, like /healthz",
        read,
        ("bad-path", "is not a path", help),
    )
}

/// A host with or without a port, as a Host field has it.
fn authority(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let help = "write `app.example`, `app.example:8080` or `\"[2001:db8::1]:8080\"`, without scheme, path and `*`";
    let mistake = ("bad-host", "is not a host with or without a port", help);
    decoder.parsed(
        node,
        "the Host that the servers want",
        host_authority,
        mistake,
    )
}

fn host(decoder: &mut Decoder, node: &Node) -> Option<String> {
    let read = |text: &str| host_pattern(text).filter(|host| !host.starts_with('*'));
    let help = "write `shop.example`, without scheme, port and `*`";
    decoder.parsed(
        node,
        "a host name",
        read,
        ("bad-host", "is not a host name", help),
    )
}

/// Reads statuses and ranges of them: `503`, `[502, 503]`, `200-399`.
fn statuses(
    bounds: RangeInclusive<u16>,
) -> impl FnOnce(&mut Decoder, &Node) -> Option<Vec<RangeInclusive<u16>>> {
    move |decoder, node| {
        let read = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last && bounds.contains(&first) && bounds.contains(&last))
                .then_some(first..=last)
        };
        let help = format!(
            "write a status or a range, from {} to {}",
            bounds.start(),
            bounds.end()
        );
        let mistake = ("bad-value", "is not a status that is accepted here", &*help);
        Some(decoder.all_parsed(
            node,
            "a list of statuses, like 503 or 500-504",
            read,
            mistake,
        ))
    }
}
