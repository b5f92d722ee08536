//! The origin of the command `demo`: a small HTTP/1.1 web server that serves the built-in sample
//! site on a free port of this machine. It treats all clients alike. So if crawlers and visitors
//! get different responses in the demo, crawlgate made the difference.

use super::site::{self, SiteFile};
use crate::threads::spawn;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const MAX_HEAD: usize = 32 * 1024;
/// Bodies are discarded. A connection with a larger one is closed.
const MAX_BODY: u64 = 1024 * 1024;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the server in its own threads, and returns its address.
///
/// # Errors
/// No port of this machine can be listened on.
pub fn start_origin() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    spawn("demo-origin", move || {
        for stream in listener.incoming() {
            let served =
                stream.and_then(|stream| spawn("demo-origin", || drop(serve_connection(stream))));
            // Probably out of file descriptors or threads: wait until others end.
            if served.is_err() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    })?;
    Ok(address)
}

/// Answers the request of one connection, and closes it. A malformed request, and one with too large
/// a body, gets 400.
fn serve_connection(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
    let mut input = BufReader::new(stream.try_clone()?);
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let left = MAX_HEAD.saturating_sub(bytes.len()) as u64;
        if input.by_ref().take(left).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
    }
    let Some(head) = DemoRequestHead::parse(&bytes) else {
        return write_response(&mut stream, 400, &site::NOT_FOUND, false);
    };
    io::copy(&mut input.take(head.body), &mut io::sink())?;
    let (status, page) = match site::find_file(&head.target) {
        Some(page) => (200, page),
        None => (404, &site::NOT_FOUND),
    };
    write_response(&mut stream, status, page, head.method == "HEAD")
}

struct DemoRequestHead {
    method: String,
    target: String,
    body: u64,
}

impl DemoRequestHead {
    /// `None` if the head is malformed, has a `Transfer-Encoding`, a target that does not begin with
    /// `/`, or too large a body.
    fn parse(bytes: &[u8]) -> Option<DemoRequestHead> {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(bytes).ok()?;
        let mut head = DemoRequestHead {
            method: request.method?.to_owned(),
            target: request.path?.to_owned(),
            body: 0,
        };
        for httparse::Header { name, value } in request.headers {
            let value = str::from_utf8(value).ok()?.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.body = value.parse().ok()?,
                // The sample site takes no uploads, so chunked bodies are not decoded.
                "transfer-encoding" => return None,
                _ => {}
            }
        }
        (head.target.starts_with('/') && head.body <= MAX_BODY).then_some(head)
    }
}

/// Writes a response. `head_only` leaves out the body, but not its length.
fn write_response(
    stream: &mut TcpStream,
    status: u16,
    page: &SiteFile,
    head_only: bool,
) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        _ => "Bad Request",
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        page.content_type(),
        page.body.len()
    );
    let body = if head_only { b"" } else { page.body };
    stream.write_all(&[head.as_bytes(), body].concat())
}
