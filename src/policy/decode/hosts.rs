//! `hosts`: names as people write them, kept as clients send them.

use crate::policy::model::HostPattern;
use crate::yaml::{Decoder, Located, Node, Value};
use std::net::{IpAddr, Ipv6Addr};

pub fn hosts(node: &Node, decoder: &mut Decoder<'_>) -> Vec<Located<HostPattern>> {
    let mut hosts: Vec<Located<HostPattern>> = Vec::new();
    if matches!(&node.value, Value::Sequence(items) if items.is_empty()) {
        decoder.error("bad-host", node.span, "`hosts` names no host").help =
            Some("leave out `hosts`: a policy without it is for every other host".into());
    }
    for written in decoder.texts(node, "a list of host names") {
        match parse_host(&written.value) {
            Ok(value) => {
                if let Some(first) = hosts.iter().find(|host| host.value == value) {
                    let span = first.span;
                    decoder
                        .error("duplicate-host", written.span, format!("`{}` is named twice", written.value))
                        .related
                        .push((span, "first here".into()));
                    continue;
                }
                hosts.push(Located { value, span: written.span });
            }
            Err((message, help)) => decoder.error("bad-host", written.span, message).help = Some(help),
        }
    }
    hosts
}

/// Reads a host pattern: a name or address, with `*.` for its subdomains and an optional port.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn parse_host(written: &str) -> Result<HostPattern, (String, String)> {
    let example = || {
        "write a name as it stands in the address bar: `shop.example`, `*.shop.example`, `shop.example:8443`".to_owned()
    };
    let wrong = |why: &str| (format!("`{written}` is not a host: {why}"), example());
    if written.contains("://") || written.contains('/') {
        let host = written.split("://").last().unwrap_or("").split('/').next().unwrap_or("");
        return Err((format!("`{written}` is a URL, not a host"), format!("write only the host: `{host}`")));
    }
    if written == "*" {
        return Err((
            "`*` is not a host".into(),
            "leave out `hosts`: a policy without hosts is for every other host".into(),
        ));
    }
    let (wildcard, rest) = match written.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    if let Some(inner) = rest.strip_prefix('[') {
        let (address, port) = inner.split_once(']').ok_or_else(|| wrong("`[` without `]`"))?;
        let address: Ipv6Addr = address.parse().map_err(|_| wrong("what stands in the brackets is no IPv6 address"))?;
        let port = match port.strip_prefix(':') {
            Some(port) => Some(port.parse().map_err(|_| wrong("the port is not a number from 1 to 65535"))?),
            None if port.is_empty() => None,
            None => return Err(wrong("something follows the brackets that is no port")),
        };
        return if wildcard {
            Err(wrong("an address has no subdomains"))
        } else {
            Ok(HostPattern { wildcard, name: address.to_string(), port })
        };
    }
    if rest.matches(':').count() > 1 {
        return Err(wrong("an IPv6 address stands in brackets: `[2001:db8::1]`"));
    }
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => {
            let port: u16 = port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| wrong("the port is not a number from 1 to 65535"))?;
            (name, Some(port))
        }
        None => (rest, None),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.contains('*') {
        return Err(wrong("`*` stands only at the beginning, as `*.`"));
    }
    let ascii =
        idna::domain_to_ascii_strict(name).or_else(|_| underscored(name)).map_err(|_| wrong("it is no valid name"))?;
    if ascii.is_empty() {
        return Err(wrong("it is empty"));
    }
    if wildcard && ascii.parse::<IpAddr>().is_ok() {
        return Err(wrong("an address has no subdomains"));
    }
    Ok(HostPattern { wildcard, name: ascii, port })
}

/// Names with an underscore are no host names by RFC 952, and clients send them all the same.
fn underscored(name: &str) -> Result<String, ()> {
    let valid = name.contains('_')
        && name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
    if valid { Ok(name.to_ascii_lowercase()) } else { Err(()) }
}
