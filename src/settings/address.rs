//! Parses addresses in settings and command-line flags. [`OriginServerAddress::parse`] parses the
//! URL of a server, [`normalize_host`] a host, [`normalize_host_pattern`] a host pattern such as
//! `*.shop.example`, and [`parse_listen_address`] an address to listen on.

use super::OriginServerAddress;
use crate::yaml::is_plain_word;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::PathBuf;

/// Why a text is not an address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl OriginServerAddress {
    /// Parses the URL of a server: `http://127.0.0.1:3000`, `https://origin.example`,
    /// `unix:/run/app.sock`. The default port is 80 or 443. A path, a user and a password are
    /// mistakes.
    ///
    /// ```
    /// use crawlgate::internals::settings::OriginServerAddress;
    /// let server = OriginServerAddress::parse("https://origin.example").expect("a URL");
    /// assert_eq!((server.tls, server.host.as_str(), server.port), (true, "origin.example", 443));
    /// assert!(OriginServerAddress::parse("origin.example").is_err());
    /// ```
    ///
    /// # Errors
    /// The first mistake in the URL.
    pub fn parse(url: &str) -> Result<OriginServerAddress, AddressError> {
        OriginServerAddress::parse_parts(url).map_err(|mistake| {
            AddressError(format!("\"{url}\" is not the URL of a server: {mistake}"))
        })
    }

    /// Whether a connection to this server plainly reaches a listener at `listen`. Names but
    /// `localhost` are not looked up.
    pub fn is_at(&self, listen: SocketAddr) -> bool {
        let host = match self.host.as_str() {
            "localhost" => Some(IpAddr::from(Ipv4Addr::LOCALHOST)),
            host => host.parse().ok(),
        };
        let is_same_host = host.is_some_and(|host| {
            host == listen.ip() || host.is_loopback() && listen.ip().is_unspecified()
        });
        self.socket.is_none() && self.port == listen.port() && is_same_host
    }

    /// `name:port`, with brackets around an IPv6 address. For a Unix socket it is `localhost:80`.
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", url_host(&self.host), self.port)
    }

    /// `name:port`, or the name alone for the default port.
    pub fn authority(&self) -> String {
        let host = url_host(&self.host);
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The URL of the server, as in the settings.
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

    /// The IP address, if the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether its addresses must be resolved: it is neither a Unix socket nor an IP address.
    pub fn is_name(&self) -> bool {
        self.socket.is_none() && self.ip().is_none()
    }

    /// [`OriginServerAddress::parse`], with only the mistake as the error.
    fn parse_parts(url: &str) -> Result<OriginServerAddress, &'static str> {
        if let Some(path) = url.strip_prefix("unix:") {
            // An empty path would be an unnamed socket.
            let is_path = !path.is_empty() && UnixAddress::from_pathname(path).is_ok();
            let socket = is_path.then(|| PathBuf::from(path));
            let socket =
                socket.ok_or("the path of a socket must have 1 to 107 bytes and no zero byte")?;
            return Ok(OriginServerAddress {
                tls: false,
                host: "localhost".into(),
                port: 80,
                socket: Some(socket),
            });
        }
        let no_scheme =
            "write the scheme too, like \"http://127.0.0.1:3000\", or \"unix:/run/app.sock\"";
        let (scheme, rest) = url.split_once("://").ok_or(no_scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("only http, https and unix are supported"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("the URL must end after the port, because requests keep their own path");
        }
        if authority.contains('@') {
            return Err("crawlgate sends no name and password to an origin");
        }
        let (host, port) = parse_host_port(authority).ok_or("its host or port is not valid")?;
        let port = port.unwrap_or(if tls { 443 } else { 80 });
        if port == 0 {
            return Err("port 0 does not exist");
        }
        Ok(OriginServerAddress {
            tls,
            host: normalize_host(host).ok_or("its host is not a host name")?,
            port,
            socket: None,
        })
    }
}

/// Splits `name:port` or `[v6]:port` into the host without brackets and the port, which may be
/// missing. `None` if the brackets have no IPv6 address, or the port is malformed. The name is not
/// checked.
pub fn parse_host_port(authority: &str) -> Option<(&str, Option<u16>)> {
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

/// A host in punycode and lower case, with its port if it has one, and with brackets around an IPv6
/// address. `None` for port 0 and for anything that is not a host.
pub fn normalize_authority(written: &str) -> Option<String> {
    let is_bare_ipv6 = written.parse::<Ipv6Addr>().is_ok();
    let (host, port) = if is_bare_ipv6 {
        (written, None)
    } else {
        parse_host_port(written)?
    };
    let host = url_host(&normalize_host(host)?);
    match port {
        Some(0) => None,
        Some(port) => Some(format!("{host}:{port}")),
        None => Some(host),
    }
}

/// A name or an address as the host of a URL: IPv6 in brackets, everything else as it is.
pub fn url_host(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// A name in punycode and lower case without a final dot, or an IP address (IPv6 without brackets).
/// `None` for anything else. Labels may have letters, digits, `-` and `_`.
pub fn normalize_host(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = idna::domain_to_ascii(host).ok()?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    (name.len() <= 253 && name.split('.').all(|label| is_plain_word(label, 63, "-_")))
        .then(|| name.to_owned())
}

/// A host pattern as a policy writes it: `shop.example`, `*.shop.example`, in punycode and lower
/// case, or an IP address, from which brackets are removed. `None` for anything else.
pub fn normalize_host_pattern(written: &str) -> Option<String> {
    match written.strip_prefix("*.") {
        Some(name) => Some(format!("*.{}", normalize_host(name)?)),
        None => normalize_host(written.trim_start_matches('[').trim_end_matches(']')),
    }
}

/// Parses an address to listen on: `0.0.0.0:80`, `[::]:80`.
///
/// # Errors
/// The text is not an IP address with a port. The message has an example.
pub fn parse_listen_address(written: &str) -> Result<SocketAddr, AddressError> {
    written.parse().map_err(|_| {
        let port = written.strip_prefix(':').unwrap_or(written);
        let example = if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) {
            format!("\"127.0.0.1:{port}\" or \"0.0.0.0:{port}\"")
        } else {
            "\"127.0.0.1:8080\" or \"[::]:80\"".to_owned()
        };
        AddressError(format!(
            "\"{written}\" is not an address to listen on: write an IP address and a port, like \
             {example}"
        ))
    })
}
