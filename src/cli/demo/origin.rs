//! The server of the sample site: HTTP/1.1 with keep-alive, GET and HEAD, on a free port of this
//! machine. It treats all clients alike, so that the demo shows what crawlgate does.

use super::site::{self, Page};
use crate::threads::spawn;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Bytes of a request's head; more is refused.
const MAX_HEAD: usize = 32 * 1024;
/// A request's body is read and forgotten up to here; a connection that sends more is closed.
const MAX_BODY: u64 = 1024 * 1024;
/// Longer than the time for which the proxy keeps an unused connection, so that the proxy closes it
/// first.
const IDLE: Duration = Duration::from_secs(120);

/// Starts serving in threads of its own, one for each connection, until the process ends. Returns
/// where.
///
/// # Errors
/// No port of this machine can be listened on.
pub fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    spawn("demo-origin", move || {
        for stream in listener.incoming() {
            let served = stream.and_then(|stream| spawn("demo-origin", || drop(serve(stream))));
            // Out of file descriptors or threads, most likely: others will end in a while.
            if served.is_err() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    })?;
    Ok(address)
}

/// Answers requests of one connection until the client is done, says nothing for too long, or goes
/// away. Closes it after a request that cannot be read (400) or has too large a body (413).
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let mut input = BufReader::new(stream.try_clone()?);
    loop {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let left = MAX_HEAD.saturating_sub(bytes.len()) as u64;
            if input.by_ref().take(left).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(());
            }
        }
        let Some(head) = Head::parse(&bytes) else {
            return respond(&mut stream, 400, &site::NOT_FOUND, false, true);
        };
        if head.body > MAX_BODY {
            return respond(&mut stream, 413, &site::NOT_FOUND, false, true);
        }
        io::copy(&mut input.by_ref().take(head.body), &mut io::sink())?;
        let (status, page) = match (head.method.as_str(), site::find(&head.target)) {
            ("GET" | "HEAD", Some(page)) => (200, page),
            ("GET" | "HEAD", None) => (404, &site::NOT_FOUND),
            _ => (405, &site::NOT_FOUND),
        };
        respond(&mut stream, status, page, head.method == "HEAD", head.close)?;
        if head.close {
            return Ok(());
        }
    }
}

struct Head {
    method: String,
    target: String,
    body: u64,
    close: bool,
}

impl Head {
    /// Reads the head of a request. `None` if it is malformed, has a `Transfer-Encoding`, or a
    /// target that does not begin with `/`.
    fn parse(bytes: &[u8]) -> Option<Head> {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(bytes).ok()?;
        let method = request.method?.to_owned();
        let target = request.path?.to_owned();
        let mut head = Head {
            method,
            target,
            body: 0,
            close: request.version == Some(0),
        };
        for httparse::Header { name, value } in request.headers {
            let value = str::from_utf8(value).ok()?.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.body = value.parse().ok()?,
                // The sample site takes no uploads: refusing is safer than reading frames half
                // right.
                "transfer-encoding" => return None,
                "connection" => {
                    head.close |= value
                        .split(',')
                        .any(|option| option.trim().eq_ignore_ascii_case("close"));
                }
                _ => {}
            }
        }
        head.target.starts_with('/').then_some(head)
    }
}

/// Writes a response with this page. `head_only` leaves out the body, but not its length. `close`
/// only says in Connection that the caller closes. A status other than 200, 404, 405 and 413 is
/// called Bad Request.
fn respond(
    stream: &mut TcpStream,
    status: u16,
    page: &Page,
    head_only: bool,
    close: bool,
) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        _ => "Bad Request",
    };
    let allow = if status == 405 {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let connection = if close { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: {connection}\r\n\r\n",
        page.content_type(),
        page.body.len()
    );
    let body = if head_only { b"" } else { page.body };
    stream.write_all(&[head.as_bytes(), body].concat())
}
