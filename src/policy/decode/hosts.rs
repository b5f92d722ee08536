//! [`hosts`] decodes the policy field `hosts`. [`parse_host`] parses one host pattern, and converts
//! it to the form that clients send (lower case, Punycode).

use crate::policy::model::HostPattern;
use crate::yaml::{Located, NodeReader, is_plain_word};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;

/// Decodes one host pattern or a list. An empty list, and a pattern that is named twice, is an
/// error.
pub fn hosts(node: NodeReader<'_>) -> Vec<Located<HostPattern>> {
    let mut hosts: Vec<Located<HostPattern>> = Vec::new();
    if node.is_empty() {
        node.error_with_help(
            "bad-host",
            "\"hosts\" is empty",
            "omit \"hosts\": a policy without it is for all other hosts",
        );
    }
    for Located {
        value: written,
        span,
    } in node.texts("a list of host names")
    {
        match parse_host(&written) {
            Ok(value) => match hosts.iter().find(|host| host.value == value) {
                Some(first) => node.decoder.duplicate(
                    "duplicate-host",
                    [span, first.span],
                    format!("\"{written}\" is listed twice"),
                    "remove one of the two",
                ),
                None => hosts.push(Located { value, span }),
            },
            Err(HostPatternError { message, help }) => node
                .decoder
                .error_with_help("bad-host", span, message, help),
        }
    }
    hosts
}

/// The error for a text that is not a host pattern.
#[derive(Debug)]
pub struct HostPatternError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Parses a host pattern: a name or address, with `*.` for its subdomains and an optional port.
/// IPv6 addresses are in brackets. The name is converted to lower case and Punycode, without a last
/// dot.
///
/// # Errors
/// A text that is not a host pattern, such as a URL or a bare `*`.
pub fn parse_host(written: &str) -> Result<HostPattern, HostPatternError> {
    let (message, help) = if written.contains('/') {
        let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        (
            format!("\"{written}\" is a URL, not a host"),
            format!("write only the host: \"{host}\""),
        )
    } else if written == "*" {
        (
            "\"*\" is not a host".to_owned(),
            "omit \"hosts\": a policy without it is for all other hosts".to_owned(),
        )
    } else {
        match parse_host_parts(written) {
            Ok(host) => return Ok(host),
            Err(why) => (
                format!("\"{written}\" is not a host: {why}"),
                "write the name as in the address bar: \"shop.example\", \"*.shop.example\", \
                 \"shop.example:8443\""
                    .to_owned(),
            ),
        }
    };
    Err(HostPatternError { message, help })
}

/// Parses a host pattern that is no URL and not `*`. The error says what is wrong.
fn parse_host_parts(written: &str) -> Result<HostPattern, &'static str> {
    let below = written.strip_prefix("*.");
    let rest = below.unwrap_or(written);
    let in_brackets = rest.strip_prefix('[');
    if in_brackets.is_none() && rest.matches(':').count() > 1 {
        return Err("an IPv6 address needs brackets: \"[2001:db8::1]\"");
    }
    let (name, port) = match in_brackets {
        Some(inner) => inner.split_once(']').ok_or("\"[\" without \"]\"")?,
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(
            port.parse::<NonZeroU16>()
                .map_err(|_| "the port is not a number from 1 to 65535")?
                .get(),
        ),
        None if port.is_empty() => None,
        None => return Err("only a port may follow the brackets"),
    };
    let name = if in_brackets.is_some() {
        name.parse::<Ipv6Addr>()
            .map_err(|_| "the brackets do not contain an IPv6 address")?
            .to_string()
    } else {
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.contains('*') {
            return Err("\"*\" may only stand at the beginning, as \"*.\"");
        }
        idna::domain_to_ascii_strict(name)
            .ok()
            .or_else(|| name_with_underscore(name))
            .ok_or("it is not a valid name")?
    };
    if name.is_empty() {
        return Err("it is empty");
    }
    if below.is_some() && name.parse::<IpAddr>().is_ok() {
        return Err("an address has no subdomains");
    }
    Ok(HostPattern {
        wildcard: below.is_some(),
        name,
        port,
    })
}

/// A valid name with an underscore, in lower case. RFC 952 does not allow such host names, but
/// clients send them.
fn name_with_underscore(name: &str) -> Option<String> {
    let valid = name.contains('_')
        && name.len() <= 253
        && name.split('.').all(|label| is_plain_word(label, 63, "-_"));
    valid.then(|| name.to_ascii_lowercase())
}
