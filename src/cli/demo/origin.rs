//! The server of the sample site: HTTP/1.1 with keep-alive, GET and HEAD, on a free port of this machine. It knows
//! nothing of crawlers: that is the point.

use super::site::{self, Page};
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Bytes of a request's head; more is refused.
const MAX_HEAD: usize = 32 * 1024;
/// A request's body is read and forgotten up to here; a connection that sends more is closed.
const MAX_BODY: u64 = 1024 * 1024;
/// Longer than the time for which the proxy keeps an unused connection, so that the proxy closes it first.
const IDLE: Duration = Duration::from_secs(120);

/// Starts serving in a thread of its own, until the process ends. Returns where.
///
/// # Errors
/// No port of this machine can be listened on.
pub fn start() -> io::Result<SocketAddr> {
    let listener = StdListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("demo-origin".into()).spawn(move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::spawn(async move {
                            // A client that goes away is no event for a sample site.
                            let _ = serve(stream).await;
                        });
                    }
                    // Out of file descriptors, most likely: others will be closed in a while.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
    })?;
    Ok(address)
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer: Vec<u8> = Vec::with_capacity(4096);
    loop {
        let Some(end) = read_head(&mut stream, &mut buffer).await? else { return Ok(()) };
        let head = Head::parse(&buffer[..end]);
        buffer.drain(..end);
        let Some(head) = head else {
            return respond(&mut stream, 400, &site::NOT_FOUND, false, true).await;
        };
        if head.body > MAX_BODY {
            return respond(&mut stream, 413, &site::NOT_FOUND, false, true).await;
        }
        skip(&mut stream, &mut buffer, head.body).await?;
        let (status, page) = match (head.method.as_str(), site::find(&head.target)) {
            ("GET" | "HEAD", Some(page)) => (200, page),
            ("GET" | "HEAD", None) => (404, &site::NOT_FOUND),
            _ => (405, &site::NOT_FOUND),
        };
        respond(&mut stream, status, page, head.method == "HEAD", head.close).await?;
        if head.close {
            return Ok(());
        }
    }
}

/// Reads until the blank line; `None` when the client is done or says nothing for too long.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    loop {
        if let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            return Ok(Some(end + 4));
        }
        if buffer.len() > MAX_HEAD {
            return Ok(None);
        }
        let Ok(read) = timeout(IDLE, stream.read_buf(buffer)).await else { return Ok(None) };
        if read? == 0 {
            return Ok(None);
        }
    }
}

async fn skip(stream: &mut TcpStream, buffer: &mut Vec<u8>, mut body: u64) -> io::Result<()> {
    while body > 0 {
        if buffer.is_empty() && timeout(IDLE, stream.read_buf(buffer)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = buffer.len().min(usize::try_from(body).unwrap_or(usize::MAX));
        buffer.drain(..taken);
        body -= taken as u64;
    }
    Ok(())
}

struct Head {
    method: String,
    target: String,
    body: u64,
    close: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Head> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return None;
        }
        let mut head = Head { method: method.into(), target: target.into(), body: 0, close: version == "HTTP/1.0" };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.body = value.parse().ok()?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                // The sample site takes no uploads: refusing is safer than reading frames half right.
                return None;
            } else if name.eq_ignore_ascii_case("connection") {
                head.close |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
            }
        }
        Some(head)
    }
}

async fn respond(stream: &mut TcpStream, status: u16, page: &Page, head_only: bool, close: bool) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        _ => "Bad Request",
    };
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let connection = if close { "close" } else { "keep-alive" };
    let mut answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: {connection}\r\n\r\n",
        page.content_type,
        page.body.len()
    )
    .into_bytes();
    if !head_only {
        answer.extend_from_slice(page.body);
    }
    timeout(IDLE, stream.write_all(&answer)).await?
}
