//! `origins` decoded: servers by host and path.

use super::super::address::{host_name, host_pattern};
use super::super::identity::resolvers;
use super::super::{
    Balance, Ejection, OriginSettings, OriginTimeouts, OriginTls, PlaceSettings, ServerAddress, ServerSettings, TlsFile,
};
use super::health::health;
use super::statuses::statuses;
use super::{HOUR, MILLISECOND, MINUTE, SECOND, duration, list, or_off, path};
use crate::crawlers::{CrawlerIndex, Registry};
use crate::yaml::{Decoder, Fields, Node, Value};

/// The largest weight of a server.
const HEAVIEST: u64 = 100;

/// A URL, a list of URLs (the servers of every host), or a list of maps with hosts and servers.
pub(super) fn origins(node: &Node, decoder: &mut Decoder<'_>) -> Vec<OriginSettings> {
    let mut origins: Vec<OriginSettings> = Vec::new();
    let mut bare: Vec<ServerSettings> = Vec::new();
    for item in list(node, decoder, "the URL of a server, like http://127.0.0.1:3000") {
        if !matches!(item.value, Value::Mapping(_)) {
            bare.extend(server(item, decoder));
            continue;
        }
        let Some(origin) = origin(item, decoder) else { continue };
        if let Some(other) = origins.iter().find_map(|other| overlap(other, &origin)) {
            decoder.error("duplicate-origin", item.span, format!("{other} already has an origin")).help =
                Some("name each host and path once, with all of its servers".into());
        }
        origins.push(origin);
    }
    if !bare.is_empty() {
        if origins.iter().any(|origin| origin.hosts.is_empty() && origin.paths.is_empty()) {
            let message = "URLs and an origin without `hosts` are both for all other hosts";
            decoder.error("duplicate-origin", node.span, message);
        }
        origins.push(OriginSettings { servers: bare, ..OriginSettings::of([]) });
    }
    origins
}

/// What two origins are both for.
fn overlap(one: &OriginSettings, other: &OriginSettings) -> Option<String> {
    let path = match one.paths.iter().find(|path| other.paths.contains(path)) {
        Some(path) => Some(path.as_str()),
        None if one.paths.is_empty() && other.paths.is_empty() => None,
        None => return None,
    };
    let host = match one.hosts.iter().find(|host| other.hosts.contains(host)) {
        Some(host) => format!("`{host}`"),
        None if one.hosts.is_empty() && other.hosts.is_empty() => "every other host".to_owned(),
        None => return None,
    };
    Some(path.map_or(host.clone(), |path| format!("`{path}` of {host}")))
}

fn origin(node: &Node, decoder: &mut Decoder<'_>) -> Option<OriginSettings> {
    let mut fields = decoder.fields(
        node,
        "a map: hosts, paths, servers, resolvers, balance, timeouts, tls, health, ejection, connections, crawlers, exempt, queue",
    )?;
    let hosts = fields.take("hosts").map(|list| hosts(list, decoder)).unwrap_or_default();
    let paths = fields.take("paths").map(|list| paths(list, decoder)).unwrap_or_default();
    let servers: Vec<ServerSettings> = match fields.take("servers") {
        Some(list) => servers(list, decoder),
        None => Vec::new(),
    };
    let resolvers = resolvers(&mut fields, decoder);
    let balances =
        [("round_robin", Balance::RoundRobin), ("least_requests", Balance::LeastRequests), ("client", Balance::Client)];
    let balance = fields.take("balance").and_then(|node| decoder.word(node, &balances, "a way to choose a server"));
    let timeouts = fields.take("timeouts").map(|node| timeouts(node, decoder)).unwrap_or_default();
    let ejection = match fields.take("ejection") {
        Some(node) => or_off(node, decoder, ejection).unwrap_or_default(),
        None => Some(Ejection::default()),
    };
    let health = fields.take("health").and_then(|node| health(node, decoder));
    let places = places(&mut fields, decoder);
    let tls_field = fields.take_with_key("tls");
    let tls = tls_field.and_then(|(_, node)| tls(node, decoder));
    fields.finish(decoder);
    if let Some((key, _)) =
        tls_field.filter(|_| servers.iter().all(|server| !server.address.tls) && !servers.is_empty())
    {
        decoder.error("bad-value", key.span, "`tls` is for servers with https, and this origin has none").help =
            Some("write `https://` in the URLs of its servers, or remove `tls`".into());
    }
    if servers.is_empty() {
        decoder.error("missing-field", node.span, "an origin needs `servers`").help =
            Some("write `servers: http://127.0.0.1:3000`".into());
        return None;
    }
    if servers.iter().all(|server| server.is_backup) {
        decoder.error("no-server", node.span, "every server of this origin is a backup").help =
            Some("leave `backup` out of at least one: backups are used only while no other server is up".into());
    }
    let balance = balance.unwrap_or_default();
    Some(OriginSettings { hosts, paths, servers, resolvers, balance, timeouts, tls, health, ejection, places })
}

fn hosts(list: &Node, decoder: &mut Decoder<'_>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for written in decoder.texts(list, "a list of host names") {
        match host_pattern(&written.value) {
            Some(host) if hosts.contains(&host) => {
                decoder.error("duplicate-host", written.span, format!("`{host}` is listed twice"));
            }
            Some(host) => hosts.push(host),
            None => {
                decoder.error("bad-host", written.span, format!("`{}` is not a host name", written.value)).help =
                    Some("write `shop.example` or `\"*.shop.example\"`, without scheme and port".into());
            }
        }
    }
    hosts
}

fn paths(list: &Node, decoder: &mut Decoder<'_>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for written in decoder.texts(list, "a list of paths, like /api/") {
        let path = written.value;
        if paths.contains(&path) {
            decoder.error("duplicate-path", written.span, format!("`{path}` is listed twice"));
        } else if !path.starts_with('/')
            || !path.bytes().all(|octet| octet.is_ascii_graphic())
            || path.contains(['?', '#', '*'])
        {
            decoder.error("bad-path", written.span, format!("`{path}` is not the beginning of a path")).help =
                Some("write `/api/`: every path that begins so is meant; `*` and queries are not for this list".into());
        } else {
            paths.push(path);
        }
    }
    paths
}

/// A URL or a map, or a list of them.
fn servers(node: &Node, decoder: &mut Decoder<'_>) -> Vec<ServerSettings> {
    let list = list(node, decoder, "a list of URLs, like http://127.0.0.1:3000");
    list.iter().filter_map(|item| server(item, decoder)).collect()
}

fn server(node: &Node, decoder: &mut Decoder<'_>) -> Option<ServerSettings> {
    if !matches!(node.value, Value::Mapping(_)) {
        let address = address(node, decoder)?;
        return Some(ServerSettings { span: Some(node.span), ..ServerSettings::from(address) });
    }
    let mut fields = decoder.fields(node, "a map: url, weight, backup")?;
    let url = fields.take("url");
    if url.is_none() {
        decoder.error("missing-field", node.span, "a server needs `url`").help =
            Some("write `url: http://127.0.0.1:3000`".into());
    }
    let weight = fields.take("weight").and_then(|node| decoder.integer(node, 1..=HEAVIEST, "a weight"));
    let is_backup = fields.take("backup").and_then(|node| decoder.boolean(node)).unwrap_or_default();
    fields.finish(decoder);
    let address = url.and_then(|node| address(node, decoder))?;
    let weight = weight.and_then(|weight| u16::try_from(weight).ok()).unwrap_or(1);
    Some(ServerSettings { address, weight, is_backup, span: url.map(|node| node.span) })
}

fn address(node: &Node, decoder: &mut Decoder<'_>) -> Option<ServerAddress> {
    let text = decoder.text(node, "the URL of a server, like http://127.0.0.1:3000")?;
    ServerAddress::parse(text).map_err(|error| decoder.error("bad-origin", node.span, error.to_string())).ok()
}

fn timeouts(node: &Node, decoder: &mut Decoder<'_>) -> OriginTimeouts {
    let mut timeouts = OriginTimeouts::default();
    let Some(mut fields) = decoder.fields(node, "a map of durations: connect, read, write, idle") else {
        return timeouts;
    };
    for (name, timeout) in [
        ("connect", &mut timeouts.connect),
        ("read", &mut timeouts.read),
        ("write", &mut timeouts.write),
        ("idle", &mut timeouts.idle),
    ] {
        if let Some(node) = fields.take(name) {
            duration(node, MILLISECOND..=HOUR, timeout, decoder);
        }
    }
    fields.finish(decoder);
    timeouts
}

fn tls(node: &Node, decoder: &mut Decoder<'_>) -> Option<OriginTls> {
    let mut fields = decoder.fields(node, "a map: ca, server_name, client")?;
    let ca = fields.take("ca").and_then(|node| tls_file(node, decoder));
    let server_name = fields.take("server_name").and_then(|node| {
        let written = decoder.text(node, "the name in the servers' certificates")?;
        let name = host_name(written);
        if name.is_none() {
            decoder.error("bad-host", node.span, format!("`{written}` is not a host name")).help =
                Some("write the name that is in the certificates, like `app.internal`, without scheme and port".into());
        }
        name
    });
    let client = fields.take("client").and_then(|node| client_certificate(node, decoder));
    fields.finish(decoder);
    Some(OriginTls { ca, server_name, client })
}

fn client_certificate(node: &Node, decoder: &mut Decoder<'_>) -> Option<[TlsFile; 2]> {
    let mut fields = decoder.fields(node, "a map: cert, key")?;
    let files = ["cert", "key"].map(|name| match fields.take(name) {
        Some(node) => tls_file(node, decoder),
        None => {
            decoder.error("missing-field", node.span, format!("a client certificate needs `{name}`: a file in PEM"));
            None
        }
    });
    fields.finish(decoder);
    let [cert, key] = files;
    Some([cert?, key?])
}

fn tls_file(node: &Node, decoder: &mut Decoder<'_>) -> Option<TlsFile> {
    Some(TlsFile { path: path(node, decoder)?, span: node.span })
}

fn ejection(node: &Node, decoder: &mut Decoder<'_>) -> Option<Ejection> {
    let mut ejection = Ejection::default();
    if let Value::Scalar { text, .. } = &node.value
        && !node.is_null()
    {
        decoder.error("bad-value", node.span, format!("`{text}` is neither `off` nor a map")).help =
            Some("write `off`, or `{ failures: 3, for: 10s, most: 5m }`".into());
        return None;
    }
    let mut fields = decoder.fields(node, "a map: failures, for, most, statuses; or off")?;
    let failures = fields.take("failures").and_then(|node| decoder.integer(node, 1..=1_000, "a number of failures"));
    if let Some(failures) = failures.and_then(|failures| u32::try_from(failures).ok()) {
        ejection.failures = failures;
    }
    let (time, most) = (fields.take("for"), fields.take("most"));
    if let Some(node) = time {
        duration(node, SECOND..=HOUR, &mut ejection.time, decoder);
    }
    match most {
        Some(node) => duration(node, SECOND..=HOUR, &mut ejection.most, decoder),
        None => ejection.most = ejection.most.max(ejection.time),
    }
    if let Some(node) = most.filter(|_| ejection.most < ejection.time) {
        decoder.error("bad-value", node.span, "`most` is shorter than `for`").help =
            Some("`for` is how long the first ejection lasts, `most` how long the longest".into());
    }
    if let Some(node) = fields.take("statuses") {
        ejection.statuses = statuses(node, 400..=599, decoder);
    }
    fields.finish(decoder);
    Some(ejection)
}

/// `connections`, and what belongs to it.
fn places(fields: &mut Fields<'_>, decoder: &mut Decoder<'_>) -> Option<PlaceSettings> {
    let connections = fields.take("connections");
    let belonging = ["crawlers", "exempt", "queue"].map(|name| (name, fields.take_with_key(name)));
    let keys = belonging.map(|(name, field)| Some((name, field?.0)));
    let [crawlers, exempt, queue] = belonging.map(|(_, field)| field.map(|(_, node)| node));
    let most = connections.and_then(|node| number(node, decoder));
    let mut places = PlaceSettings::of(most.unwrap_or(1));
    if let Some((node, crawlers)) = crawlers.and_then(|node| Some((node, number(node, decoder)?))) {
        places.crawlers = crawlers;
        if let Some(most) = most.filter(|most| crawlers > *most) {
            decoder.error("bad-value", node.span, "`crawlers` is more than `connections`").help =
                Some(format!("`crawlers` is a part of the {most} places of each server"));
        }
    }
    if let Some(node) = exempt {
        places.exempt = exempted(node, decoder);
    }
    if let Some(node) = queue {
        self::queue(node, &mut places, decoder);
    }
    for (name, key) in keys.into_iter().flatten().filter(|_| connections.is_none()) {
        decoder.error("missing-field", key.span, format!("`{name}` needs `connections`")).help =
            Some("write `connections: 100`: so many requests are in flight on each server at most".into());
    }
    most.map(|_| places)
}

fn number(node: &Node, decoder: &mut Decoder<'_>) -> Option<usize> {
    let number = decoder.integer(node, 1..=1_000_000, "a number of requests at once");
    number.and_then(|number| usize::try_from(number).ok())
}

/// Crawlers of the registry, by token, id or name.
fn exempted(node: &Node, decoder: &mut Decoder<'_>) -> Vec<CrawlerIndex> {
    let registry = Registry::builtin();
    let mut exempt = Vec::new();
    for written in decoder.texts(node, "a list of crawlers, like Googlebot") {
        match registry.find(&written.value) {
            Some(crawler) => exempt.push(crawler),
            None => {
                let message = format!("`{}` is no crawler of the registry", written.value);
                decoder.error("unknown-crawler", written.span, message).help =
                    Some("`crawlgate crawlers` lists the tokens; only a crawler that can be verified is exempt".into());
            }
        }
    }
    exempt
}

fn queue(node: &Node, places: &mut PlaceSettings, decoder: &mut Decoder<'_>) {
    let Some(mut fields) = decoder.fields(node, "a map: length, wait") else { return };
    let length = fields.take("length").and_then(|node| decoder.integer(node, 0..=1_000_000, "a number of requests"));
    if let Some(length) = length.and_then(|length| usize::try_from(length).ok()) {
        places.length = length;
    }
    if let Some(node) = fields.take("wait") {
        duration(node, MILLISECOND..=MINUTE, &mut places.wait, decoder);
    }
    fields.finish(decoder);
}
