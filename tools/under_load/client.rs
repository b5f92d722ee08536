//! A client with a kept connection and an address of its own.

use socket2::{Domain, Socket, Type};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client gets.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    pub status: u16,
    /// In seconds.
    pub retry_after: Option<u64>,
}

pub struct Client {
    server: SocketAddr,
    own: Ipv4Addr,
    agent: &'static str,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub fn new(server: SocketAddr, own: Ipv4Addr, agent: &'static str) -> Client {
        Client {
            server,
            own,
            agent,
            connection: None,
        }
    }

    /// Asks for a page. The connection is kept, unless the server ends it.
    pub fn ask(&mut self, method: &str, target: &str) -> io::Result<Reply> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let body = if method == "POST" {
            "Content-Length: 3\r\n\r\nabc"
        } else {
            "\r\n"
        };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {}\r\n{body}",
            self.agent
        );
        connection.get_mut().write_all(head.as_bytes())?;
        let (reply, is_kept) = read(&mut connection, method == "HEAD")?;
        self.connection = is_kept.then_some(connection);
        Ok(reply)
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((self.own, 0)).into())?;
        socket.connect(&self.server.into())?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(BufReader::new(stream))
    }
}

/// Reads a response. Says whether another one may follow.
fn read(from: &mut impl BufRead, is_head: bool) -> io::Result<(Reply, bool)> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    let (mut length, mut retry_after, mut is_kept) = (None, None, true);
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok(),
            "retry-after" => retry_after = value.trim().parse().ok(),
            "connection" => is_kept = !value.trim().eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    match length {
        _ if is_head => {}
        Some(length) => {
            let read = io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
            if read < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        None => {
            io::copy(from, &mut io::sink())?;
            is_kept = false;
        }
    }
    Ok((
        Reply {
            status,
            retry_after,
        },
        is_kept,
    ))
}
