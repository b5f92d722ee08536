//! A client that asks over HTTP/2 for what a case asks for over HTTP/1.1.

use super::cases::Case;
use super::drive::{PATIENCE, Seen};
use bytes::Bytes;
use futures_util::future::join;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use std::future::poll_fn;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Fields that HTTP/2 has none of (RFC 9113 section 8.2.2), or that are written another way.
const OF_HTTP1: [&str; 7] = [
    "connection",
    "http2-settings",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// A client of one crawlgate.
pub struct Http2 {
    address: SocketAddr,
    runtime: Runtime,
    sender: Option<SendRequest<Bytes>>,
}

impl Http2 {
    pub fn new(address: SocketAddr) -> Http2 {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Http2 {
            address,
            runtime,
            sender: None,
        }
    }

    pub fn ask(&mut self, case: &Case) -> Seen {
        let Http2 {
            address,
            runtime,
            sender,
        } = self;
        let asked = async { timeout(PATIENCE, ask(*address, sender, case)).await };
        runtime.block_on(asked).unwrap_or_default()
    }
}

/// The head of a request.
fn request(bytes: &[u8]) -> Request<()> {
    let lines: Vec<&[u8]> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .collect();
    let words: Vec<&[u8]> = lines[0].split(|byte| *byte == b' ').collect();
    let uri = [b"http://a.example", words[1]].concat();
    let mut request = Request::builder().method(words[0]).uri(uri);
    for line in lines[1..].iter().take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').expect("a field");
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        if !OF_HTTP1.contains(&name.as_str()) {
            request = request.header(name, line[colon + 1..].trim_ascii());
        }
    }
    request.body(()).expect("a request")
}

async fn ask(address: SocketAddr, kept: &mut Option<SendRequest<Bytes>>, case: &Case) -> Seen {
    let mut sender = match kept.take() {
        Some(sender) => sender.ready().await.ok(),
        None => None,
    };
    if sender.is_none() {
        sender = connect(address).await;
    }
    let Some(mut sender) = sender else {
        return Seen::default();
    };
    let ends = case.body.is_empty() && !case.has_trailers;
    let Ok((response, stream)) = sender.send_request(request(&case.request), ends) else {
        return Seen::default();
    };
    *kept = Some(sender);
    let mut seen = Seen::default();
    // An answer may come before the end of the body, which is sent nevertheless.
    let (_, read) = join(send(stream, case, ends), read(response, &mut seen)).await;
    seen.is_whole = read.is_ok();
    seen
}

/// Sends the body of a request, as there is room for it. `None` if crawlgate does not want the
/// rest.
async fn send(mut stream: SendStream<Bytes>, case: &Case, ends: bool) -> Option<()> {
    let mut rest = Bytes::copy_from_slice(&case.body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = poll_fn(|context| stream.poll_capacity(context))
            .await?
            .ok()?;
        let piece = rest.split_to(room.min(rest.len()));
        stream
            .send_data(piece, rest.is_empty() && !case.has_trailers)
            .ok()?;
    }
    if case.has_trailers && !ends {
        stream
            .send_trailers(HeaderMap::from_iter([(
                HeaderName::from_static("x-check"),
                HeaderValue::from_static("1"),
            )]))
            .ok()?;
    }
    Some(())
}

async fn connect(address: SocketAddr) -> Option<SendRequest<Bytes>> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (sender, connection) = h2::client::handshake(stream).await.ok()?;
    tokio::spawn(connection);
    sender.ready().await.ok()
}

async fn read(response: ResponseFuture, seen: &mut Seen) -> Result<(), h2::Error> {
    let (head, mut body) = response.await?.into_parts();
    seen.begin(head.status.as_u16(), lines(&head.headers));
    while let Some(piece) = body.data().await {
        let piece = piece?;
        let _ = body.flow_control().release_capacity(piece.len());
        seen.body.extend(piece);
    }
    Ok(())
}

fn lines(fields: &HeaderMap) -> Vec<Vec<u8>> {
    // Only the forwarder passes trailers on, and the field that names them.
    let lines = fields
        .iter()
        .filter(|(name, _)| *name != "date" && *name != "trailer");
    lines
        .map(|(name, value)| [name.as_str().as_bytes(), b": ", value.as_bytes()].concat())
        .collect()
}
