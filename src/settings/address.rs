//! Addresses as people write them: the URL of a server, a network.

use super::ServerAddress;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

impl ServerAddress {
    /// Reads the URL of a server: `http://127.0.0.1:3000`, `https://origin.example`.
    ///
    /// ```
    /// use crawlgate::settings::ServerAddress;
    /// let server = ServerAddress::parse("https://origin.example").expect("a URL");
    /// assert_eq!((server.tls, server.host.as_str(), server.port), (true, "origin.example", 443));
    /// assert!(ServerAddress::parse("origin.example").is_err());
    /// ```
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn parse(url: &str) -> Result<ServerAddress, String> {
        let wrong = |why: &str| format!("`{url}` is not the URL of a server: {why}");
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(wrong("write it with its scheme, like `http://127.0.0.1:3000`"));
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("only http and https are spoken")),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err(wrong("requests keep their own path, so the URL ends after the port"));
        }
        if authority.contains('@') {
            return Err(wrong("names and passwords are not sent to an origin"));
        }
        let default = if tls { 443 } else { 80 };
        let (host, port) = host_and_port(authority).ok_or_else(|| wrong("the host or port cannot be read"))?;
        let port = port.unwrap_or(default);
        if port == 0 {
            return Err(wrong("there is no port 0"));
        }
        Ok(ServerAddress { tls, host: host_name(host).ok_or_else(|| wrong("this is not a host name"))?, port })
    }
}

/// Splits `name:port`, `[v6]:port`, or either without the port.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            match rest {
                "" => (host, None),
                rest => (host, Some(rest.strip_prefix(':')?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
    };
    Some((host, port))
}

/// A name in punycode and lower case, or an address.
fn host_name(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = idna::domain_to_ascii(host).ok()?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (!name.is_empty() && name.len() <= 253 && name.split('.').all(label)).then(|| name.to_owned())
}

/// A host pattern as a policy writes it: `shop.example`, `*.shop.example`, in punycode and lower case.
pub fn host_pattern(written: &str) -> Option<String> {
    match written.strip_prefix("*.") {
        Some(name) => Some(format!("*.{}", host_name(name)?)),
        None => host_name(written.trim_start_matches('[').trim_end_matches(']')),
    }
}

/// An address to serve on: `0.0.0.0:80`, `[::]:80`.
pub fn listen_address(written: &str) -> Result<SocketAddr, String> {
    written.parse().map_err(|_| {
        let port = written.strip_prefix(':').unwrap_or(written);
        let example = if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) {
            format!("127.0.0.1:{port}` or `0.0.0.0:{port}")
        } else {
            "127.0.0.1:8080` or `[::]:80".to_owned()
        };
        format!("`{written}` is not an address to listen on: write an IP address and a port, like `{example}`")
    })
}
