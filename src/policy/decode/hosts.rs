//! [`hosts`] decodes `hosts` of a policy. [`parse_host`] reads one host pattern as a person writes
//! it, and converts it to the form that clients send (lower case, Punycode).

use crate::policy::model::HostPattern;
use crate::yaml::{Decoder, Diagnostic, Located, Node};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;

pub fn hosts(decoder: &mut Decoder, node: &Node) -> Vec<Located<HostPattern>> {
    let mut hosts: Vec<Located<HostPattern>> = Vec::new();
    if node.is_empty() {
        decoder.error_with_help(
            "bad-host",
            node.span,
            "`hosts` names no host",
            "leave out `hosts`: a policy without it is for every other host",
        );
    }
    for Located {
        value: written,
        span,
    } in decoder.texts(node, "a list of host names")
    {
        match parse_host(&written) {
            Ok(value) => match hosts.iter().find(|host| host.value == value) {
                Some(first) => {
                    let message = format!("`{written}` is named twice");
                    let error = Diagnostic::error("duplicate-host", span, message);
                    decoder
                        .diagnostics
                        .push(error.related(first.span, "first here"));
                }
                None => hosts.push(Located { value, span }),
            },
            Err(HostError { message, help }) => {
                decoder.error_with_help("bad-host", span, message, help)
            }
        }
    }
    hosts
}

/// The error for a text that is not a host pattern.
#[derive(Debug)]
pub struct HostError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Reads a host pattern: a name or address, with `*.` for its subdomains and an optional port.
///
/// # Errors
/// A text that is not a host pattern.
pub fn parse_host(written: &str) -> Result<HostPattern, HostError> {
    const EXAMPLE: &str = "write a name as it stands in the address bar: `shop.example`, `*.shop.example`, `shop.example:8443`";
    let error = |message: String, help: &str| HostError {
        message,
        help: help.to_owned(),
    };
    let wrong = |why: &str| error(format!("`{written}` is not a host: {why}"), EXAMPLE);
    if written.contains("://") || written.contains('/') {
        let host = written
            .split("://")
            .last()
            .unwrap_or("")
            .split('/')
            .next()
            .unwrap_or("");
        let help = format!("write only the host: `{host}`");
        return Err(error(format!("`{written}` is a URL, not a host"), &help));
    }
    if written == "*" {
        return Err(error(
            "`*` is not a host".into(),
            "leave out `hosts`: a policy without hosts is for every other host",
        ));
    }
    let (wildcard, rest) = written
        .strip_prefix("*.")
        .map_or((false, written), |rest| (true, rest));
    if let Some(inner) = rest.strip_prefix('[') {
        let (address, port) = in_brackets(inner).map_err(wrong)?;
        return if wildcard {
            Err(wrong("an address has no subdomains"))
        } else {
            Ok(HostPattern {
                wildcard,
                name: address.to_string(),
                port,
            })
        };
    }
    if rest.matches(':').count() > 1 {
        return Err(wrong("an IPv6 address stands in brackets: `[2001:db8::1]`"));
    }
    let (name, port) = match rest.split_once(':') {
        Some((name, port)) => match port.parse::<NonZeroU16>() {
            Ok(port) => (name, Some(port.get())),
            Err(_) => return Err(wrong("the port is not a number from 1 to 65535")),
        },
        None => (rest, None),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.contains('*') {
        return Err(wrong("`*` stands only at the beginning, as `*.`"));
    }
    let ascii = idna::domain_to_ascii_strict(name)
        .or_else(|_| underscored(name))
        .map_err(|_| wrong("it is no valid name"))?;
    if ascii.is_empty() {
        return Err(wrong("it is empty"));
    }
    if wildcard && ascii.parse::<IpAddr>().is_ok() {
        return Err(wrong("an address has no subdomains"));
    }
    Ok(HostPattern {
        wildcard,
        name: ascii,
        port,
    })
}

/// The address behind `[`, and a port where there is one.
fn in_brackets(inner: &str) -> Result<(Ipv6Addr, Option<u16>), &'static str> {
    let (address, port) = inner.split_once(']').ok_or("`[` without `]`")?;
    let address = address
        .parse()
        .map_err(|_| "what stands in the brackets is no IPv6 address")?;
    match port.strip_prefix(':') {
        Some(port) => Ok((
            address,
            Some(
                port.parse()
                    .map_err(|_| "the port is not a number from 1 to 65535")?,
            ),
        )),
        None if port.is_empty() => Ok((address, None)),
        None => Err("something follows the brackets that is no port"),
    }
}

/// A name with an underscore in lower case. RFC 952 does not allow it in host names, but clients
/// send such names.
fn underscored(name: &str) -> Result<String, ()> {
    let valid = name.contains('_')
        && name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        });
    valid.then(|| name.to_ascii_lowercase()).ok_or(())
}
