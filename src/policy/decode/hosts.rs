//! [`hosts`] decodes `hosts` of a policy. [`parse_host`] reads one host pattern as a person writes
//! it, and converts it to the form that clients send (lower case, Punycode).

use crate::policy::model::HostPattern;
use crate::yaml::{Located, Reader, is_word};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;

/// Decodes `hosts`: one host pattern or a list. A pattern that is not valid or is named twice is
/// left out with an error; an empty list is an error.
pub fn hosts(node: Reader<'_>) -> Vec<Located<HostPattern>> {
    let mut hosts: Vec<Located<HostPattern>> = Vec::new();
    if node.is_empty() {
        node.error_with_help(
            "bad-host",
            "`hosts` names no host",
            "leave out `hosts`: a policy without it is for every other host",
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
                    format!("`{written}` is named twice"),
                    "keep one of them",
                ),
                None => hosts.push(Located { value, span }),
            },
            Err(HostError { message, help }) => node
                .decoder
                .error_with_help("bad-host", span, message, help),
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

/// Reads a host pattern: a name or address, with `*.` for its subdomains and an optional port. The
/// name comes out in lower case and Punycode, without a last dot. IPv6 addresses stand in brackets;
/// an address has no `*.`.
///
/// # Errors
/// A text that is not a host pattern, such as a URL or a bare `*`.
pub fn parse_host(written: &str) -> Result<HostPattern, HostError> {
    let (message, help) = if written.contains('/') {
        let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        (
            format!("`{written}` is a URL, not a host"),
            format!("write only the host: `{host}`"),
        )
    } else if written == "*" {
        (
            "`*` is not a host".to_owned(),
            "leave out `hosts`: a policy without hosts is for every other host".to_owned(),
        )
    } else {
        match read_host(written) {
            Ok(host) => return Ok(host),
            Err(why) => (
                format!("`{written}` is not a host: {why}"),
                "write a name as it stands in the address bar: `shop.example`, `*.shop.example`, `shop.example:8443`".to_owned(),
            ),
        }
    };
    Err(HostError { message, help })
}

/// Reads a host pattern, or says why it is none.
fn read_host(written: &str) -> Result<HostPattern, &'static str> {
    let below = written.strip_prefix("*.");
    let rest = below.unwrap_or(written);
    let in_brackets = rest.strip_prefix('[');
    if in_brackets.is_none() && rest.matches(':').count() > 1 {
        return Err("an IPv6 address stands in brackets: `[2001:db8::1]`");
    }
    let (name, port) = match in_brackets {
        Some(inner) => inner.split_once(']').ok_or("`[` without `]`")?,
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => {
            let port = port.parse::<NonZeroU16>();
            let port = port.map_err(|_| "the port is not a number from 1 to 65535")?;
            Some(port.get())
        }
        None if port.is_empty() => None,
        None => return Err("something follows the brackets that is no port"),
    };
    let name = if in_brackets.is_some() {
        let address = name.parse::<Ipv6Addr>();
        address
            .map_err(|_| "what stands in the brackets is no IPv6 address")?
            .to_string()
    } else {
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.contains('*') {
            return Err("`*` stands only at the beginning, as `*.`");
        }
        idna::domain_to_ascii_strict(name)
            .ok()
            .or_else(|| underscored(name))
            .ok_or("it is no valid name")?
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

/// A name with an underscore, in lower case. RFC 952 does not allow it in host names, but clients
/// send such names. `None` for a name without an underscore, and where labels or the whole are not
/// of valid length or not of letters, digits, `-` and `_`.
fn underscored(name: &str) -> Option<String> {
    let valid = name.contains('_')
        && name.len() <= 253
        && name.split('.').all(|label| is_word(label, 63, "-_"));
    valid.then(|| name.to_ascii_lowercase())
}
