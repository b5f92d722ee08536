//! Reads addresses as people write them in settings and flags. [`ServerAddress::parse`] reads the
//! URL of a server, [`host_name`] and [`host_pattern`] read a host, and [`listen_address`] reads an
//! address to listen on.

use super::ServerAddress;
use crate::yaml::is_word;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::PathBuf;

/// Why a text is no address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is no URL of a server.
    #[error("`{url}` is not the URL of a server: {mistake}")]
    NoServer {
        /// The text.
        url: String,
        /// The first mistake in it.
        mistake: &'static str,
    },
    /// It is no address to listen on.
    #[error(
        "`{written}` is not an address to listen on: write an IP address and a port, like {example}"
    )]
    NoListener {
        /// The text.
        written: String,
        /// What may be meant.
        example: String,
    },
}

impl ServerAddress {
    /// Reads the URL of a server: `http://127.0.0.1:3000`, `https://origin.example`,
    /// `unix:/run/app.sock`. Without a port it is 80 or 443. A path, a user and a password are
    /// mistakes.
    ///
    /// ```
    /// use crawlgate::internals::settings::ServerAddress;
    /// let server = ServerAddress::parse("https://origin.example").expect("a URL");
    /// assert_eq!((server.tls, server.host.as_str(), server.port), (true, "origin.example", 443));
    /// assert!(ServerAddress::parse("origin.example").is_err());
    /// ```
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(url: &str) -> Result<ServerAddress, AddressError> {
        ServerAddress::read(url).map_err(|mistake| AddressError::NoServer {
            url: url.to_owned(),
            mistake,
        })
    }

    /// `name:port`, with brackets around an IPv6 address. For a Unix socket it is `localhost:80`.
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.host_in_url(), self.port)
    }

    /// The host as a URL writes it: an IPv6 address in brackets.
    fn host_in_url(&self) -> String {
        match self.ip() {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => self.host.clone(),
        }
    }

    /// `name:port`, or the name alone for the scheme's own port.
    pub fn authority(&self) -> String {
        let host = self.host_in_url();
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The server as the settings write it.
    pub fn url(&self) -> String {
        if let Some(path) = &self.socket {
            return format!("unix:{}", path.display());
        }
        format!(
            "{}://{}",
            if self.tls { "https" } else { "http" },
            self.authority()
        )
    }

    /// The address, if the settings give one instead of a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether its addresses have to be looked up: it is neither a Unix socket nor an IP address.
    pub fn is_name(&self) -> bool {
        self.socket.is_none() && self.ip().is_none()
    }

    /// `ServerAddress::parse`, with the mistake alone as the error.
    fn read(url: &str) -> Result<ServerAddress, &'static str> {
        if let Some(path) = url.strip_prefix("unix:") {
            // An empty path is a socket without a name.
            let is_path = !path.is_empty() && UnixAddress::from_pathname(path).is_ok();
            let socket = is_path.then(|| PathBuf::from(path));
            let socket =
                socket.ok_or("the path of a socket has 1 to 107 octets, and no zero octet")?;
            return Ok(ServerAddress {
                tls: false,
                host: "localhost".into(),
                port: 80,
                socket: Some(socket),
            });
        }
        let no_scheme =
            "write it with its scheme, like `http://127.0.0.1:3000`, or as `unix:/run/app.sock`";
        let (scheme, rest) = url.split_once("://").ok_or(no_scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("only http, https and unix are supported"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("requests keep their own path, so the URL ends after the port");
        }
        if authority.contains('@') {
            return Err("names and passwords are not sent to an origin");
        }
        let (host, port) = host_and_port(authority).ok_or("the host or port cannot be read")?;
        let port = port.unwrap_or(if tls { 443 } else { 80 });
        if port == 0 {
            return Err("there is no port 0");
        }
        Ok(ServerAddress {
            tls,
            host: host_name(host).ok_or("this is not a host name")?,
            port,
            socket: None,
        })
    }
}

/// Splits `name:port`, `[v6]:port`, or either without the port, into the host without brackets and
/// the port. `None` if the brackets have no IPv6 address, or what follows the host is no port. Does
/// not check the name.
pub(super) fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if port.is_empty() {
        return Some((host, None));
    }
    let digits = port
        .strip_prefix(':')
        .filter(|port| port.bytes().all(|digit| digit.is_ascii_digit()))?;
    Some((host, Some(digits.parse().ok()?)))
}

/// A host in punycode and lower case, with its port if it has one. An IPv6 address stands in
/// brackets; it may be written without them if it has no port. `None` for port 0 and for what is no
/// host.
pub fn host_authority(written: &str) -> Option<String> {
    let is_bare_ipv6 = written.parse::<Ipv6Addr>().is_ok();
    let (host, port) = if is_bare_ipv6 {
        (written, None)
    } else {
        host_and_port(written)?
    };
    let host = host_name(host)?;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    match port {
        Some(0) => None,
        Some(port) => Some(format!("{host}:{port}")),
        None => Some(host),
    }
}

/// A name in punycode and lower case without a final dot, or an IP address (IPv6 without brackets).
/// `None` if it is neither; labels may have letters, digits, `-` and `_`.
pub fn host_name(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = idna::domain_to_ascii(host).ok()?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    (name.len() <= 253 && name.split('.').all(|label| is_word(label, 63, "-_")))
        .then(|| name.to_owned())
}

/// A host pattern as a policy writes it: `shop.example`, `*.shop.example`, in punycode and lower
/// case, or an IP address, from which brackets are removed. `None` for anything else.
pub fn host_pattern(written: &str) -> Option<String> {
    match written.strip_prefix("*.") {
        Some(name) => Some(format!("*.{}", host_name(name)?)),
        None => host_name(written.trim_start_matches('[').trim_end_matches(']')),
    }
}

/// An address to serve on: `0.0.0.0:80`, `[::]:80`.
///
/// # Errors
/// When it is not an IP address with a port. The message has an example; for a port alone, with
/// this port.
pub fn listen_address(written: &str) -> Result<SocketAddr, AddressError> {
    written.parse().map_err(|_| {
        let port = written.strip_prefix(':').unwrap_or(written);
        let example = if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) {
            format!("`127.0.0.1:{port}` or `0.0.0.0:{port}`")
        } else {
            "`127.0.0.1:8080` or `[::]:80`".to_owned()
        };
        AddressError::NoListener {
            written: written.to_owned(),
            example,
        }
    })
}
