//! [`read_header`] reads the header of the PROXY protocol, version 1 or 2
//! (haproxy.org/download/3.0/doc/proxy-protocol.txt). A load balancer in front of crawlgate sends
//! this header as the first bytes of a connection, to pass on the client's address. No byte after
//! the header is read.

use ProxyHeaderError::{Malformed, Missing};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The first bytes of version 2.
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of the longest line of version 1, with its end.
const MAX_V1_LINE: usize = 107;
/// The most bytes that are read behind the fixed part of version 2: addresses, and what proxies add
/// about certificates.
const MAX_V2_REST: usize = 4 * 1024;

/// Why a header could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProxyHeaderError {
    #[error("the connection does not begin with a PROXY protocol header")]
    Missing,
    #[error("the PROXY protocol header is malformed")]
    Malformed,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a header. Returns the client that it names, or `None` if the proxy speaks for itself or
/// for a client without an address.
///
/// # Errors
/// The connection does not begin with a header, or broke.
pub async fn read_header(stream: &mut TcpStream) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut first = [0; 1];
    if stream.peek(&mut first).await? == 0 {
        return Err(Missing);
    }
    match first {
        [b'P'] => read_v1(stream).await,
        [b'\r'] => read_v2(stream).await,
        _ => Err(Missing),
    }
}

/// Reads a header of version 1, to the end of its line and no further. A line that does not end
/// within `MAX_V1_LINE` is malformed.
async fn read_v1(stream: &mut TcpStream) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut line = [0; MAX_V1_LINE];
    let mut length = 0;
    while length < MAX_V1_LINE {
        let peeked = stream.peek(&mut line[length..]).await?;
        if peeked == 0 {
            return Err(Malformed);
        }
        let from = length.saturating_sub(1);
        let end = line[from..length + peeked]
            .windows(2)
            .position(|window| window == b"\r\n")
            .map(|index| from + index + 2);
        let upto = end.unwrap_or(length + peeked);
        stream.read_exact(&mut line[length..upto]).await?;
        length = upto;
        if end.is_some() {
            return parse_v1(&line[..length]);
        }
    }
    Err(Malformed)
}

/// Reads a header of version 2. `Missing` if it does not begin with `V2_SIGNATURE`, `Malformed` if
/// its rest is longer than `MAX_V2_REST`.
async fn read_v2(stream: &mut TcpStream) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).await?;
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    if head[..12] != *V2_SIGNATURE {
        return Err(Missing);
    }
    if length > MAX_V2_REST {
        return Err(Malformed);
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    parse_v2(head[12], head[13], &rest)
}

/// The client's address in a header of version 1, a whole line with its end. `None` for `UNKNOWN`.
///
/// # Errors
/// The bytes are not such a header.
pub fn parse_v1(line: &[u8]) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let line = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.strip_suffix("\r\n"));
    let line = line
        .and_then(|line| line.strip_prefix("PROXY "))
        .ok_or(Missing)?;
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Ok(None);
    }
    let words: Vec<&str> = line.split(' ').collect();
    let [family, source, destination, port, to_port] = words[..] else {
        return Err(Malformed);
    };
    let named = socket_address(family, source, port);
    if named.is_none() || socket_address(family, destination, to_port).is_none() {
        return Err(Malformed);
    }
    Ok(named)
}

fn socket_address(family: &str, address: &str, port: &str) -> Option<SocketAddr> {
    let address = match family {
        "TCP4" => address.parse::<Ipv4Addr>().ok()?.into(),
        "TCP6" => address.parse::<Ipv6Addr>().ok()?.into(),
        _ => return None,
    };
    // `parse` takes a sign.
    let is_number = port.bytes().all(|digit| digit.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_number)?;
    Some(SocketAddr::new(address, port))
}

/// The client's address in a header of version 2. The arguments are what follows its signature: the
/// byte of version and command, the byte of family and transport, and the rest. `None` for LOCAL
/// (the proxy speaks for itself), an unspecified family, and Unix sockets.
///
/// # Errors
/// The bytes are not such a header.
pub fn parse_v2(
    command: u8,
    family: u8,
    rest: &[u8],
) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    match command {
        // LOCAL.
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err(Malformed),
    }
    let (address, ports) = match family {
        // TCP or UDP over IPv4: two addresses of 4 bytes, two ports.
        0x11 | 0x12 => (
            rest.first_chunk::<4>()
                .map(|address| IpAddr::from(*address)),
            rest.get(8..12),
        ),
        // Over IPv6: two addresses of 16 bytes, two ports.
        0x21 | 0x22 => (
            rest.first_chunk::<16>()
                .map(|address| IpAddr::from(*address)),
            rest.get(32..36),
        ),
        // Unspecified, and Unix sockets.
        0x00 | 0x31 | 0x32 => return Ok(None),
        _ => return Err(Malformed),
    };
    match (address, ports) {
        (Some(address), Some([high, low, ..])) => Ok(Some(SocketAddr::new(
            address,
            u16::from_be_bytes([*high, *low]),
        ))),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Option<String>, ()> {
        parse_v1(text.as_bytes())
            .map(|client| client.map(|client| client.to_string()))
            .map_err(drop)
    }

    #[test]
    fn version_1_names_the_client() {
        assert_eq!(
            line("PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\n"),
            Ok(Some("192.0.2.1:4711".into()))
        );
        assert_eq!(
            line("PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n"),
            Ok(Some("[2001:db8::1]:1".into()))
        );
        assert_eq!(line("PROXY UNKNOWN\r\n"), Ok(None));
        assert_eq!(line("PROXY UNKNOWN ffff:f::1 ::1 1 2\r\n"), Ok(None));
        for wrong in [
            "PROXY\r\n",
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "proxy TCP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 65536\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 2\r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2 3\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 1 2\n",
            "GET / HTTP/1.1\r\n",
            "PROXY TCP4 192.0.2.01 198.51.100.1 1 2\r\n",
            "PROXY UNKNOWNX\r\n",
        ] {
            assert_eq!(line(wrong), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn version_2_names_the_client() {
        let parse = |command, family, rest: &[u8]| {
            parse_v2(command, family, rest)
                .map(|client| client.map(|client| client.to_string()))
                .map_err(drop)
        };
        let v4 = [192, 0, 2, 1, 198, 51, 100, 1, 0x12, 0x34, 1, 187];
        assert_eq!(parse(0x21, 0x11, &v4), Ok(Some("192.0.2.1:4660".into())));
        assert_eq!(
            parse(0x21, 0x11, &[&v4[..], b"more"].concat()),
            Ok(Some("192.0.2.1:4660".into()))
        );
        let mut v6 = [0; 36];
        (v6[0], v6[1], v6[15], v6[33]) = (0x20, 0x01, 1, 80);
        assert_eq!(parse(0x21, 0x21, &v6), Ok(Some("[2001::1]:80".into())));
        assert_eq!(parse(0x20, 0x11, &v4), Ok(None));
        assert_eq!(parse(0x21, 0x00, &[]), Ok(None));
        assert_eq!(parse(0x21, 0x31, &[0; 216]), Ok(None));
        for (command, family, rest) in [
            (0x21, 0x11, &v4[..11]),
            (0x21, 0x21, &v6[..35]),
            (0x22, 0x11, &v4),
            (0x11, 0x11, &v4),
            (0x21, 0x41, &v4),
        ] {
            assert_eq!(
                parse(command, family, rest),
                Err(()),
                "{command:x} {family:x}"
            );
        }
    }
}
