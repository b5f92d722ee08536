//! Sends the cases through two crawlgates, one with the forwarder and one without, and compares what the
//! origins and the clients see.

use super::cases::Case;
use super::http2::Http2;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a case is tried that only Pingora fails in.
const TRIES: u8 = 3;
/// How long a response may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The policy of the host that the requests are for.
pub const POLICY: &str = "\
hosts: a.example
enforcement: { mode: enforce }
robots:
  origin: replace
  groups:
    - { agents: '*', allow: / }
    - { agents: GPTBot, disallow: '/*private' }
indexing:
  - { paths: '/*.pdf', tag: noindex }
  - { types: application/pdf, tag: noarchive }
  - { status: 404, tags: { '*': nosnippet, googlebot: noindex } }
";

const REQUEST_ID: &[u8] = b"X-Request-Id:";

/// Requests as an origin got them: head and body.
type Received = Mutex<HashMap<u64, (Vec<u8>, Vec<u8>)>>;

/// An origin that answers each case as the case says, and remembers the requests that it got.
pub struct Origin {
    pub address: SocketAddr,
    received: Arc<Received>,
}

impl Origin {
    pub fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let received = Arc::new(Received::default());
        let log = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = log.clone();
                std::thread::spawn(move || serve(stream, &log));
            }
        });
        Origin { address, received }
    }

    /// The request that it got in this case: the request line, the field lines in their
    /// alphabetical order, and the body. Only the forwarder passes Trailer on, and a body in chunks that
    /// is empty, and it frames a body anew that may have trailers. Each request has an id of its
    /// own.
    fn take(&self, number: u64, may_have_trailers: bool) -> Option<Vec<Vec<u8>>> {
        let (head, body) = self
            .received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&number)?;
        let mut lines: Vec<Vec<u8>> = head
            .split(|byte| *byte == b'\n')
            .map(|line| line.trim_ascii_end().to_vec())
            .collect();
        let is = |line: &[u8], name: &[u8]| {
            line.get(..name.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        };
        lines.retain(|line| !line.is_empty() && !is(line, b"Trailer:"));
        lines.retain(|line| !body.is_empty() || !is(line, b"Transfer-Encoding:"));
        lines.retain(|line| {
            !may_have_trailers || !is(line, b"Content-Length:") && !is(line, b"Transfer-Encoding:")
        });
        for line in &mut lines {
            if is(line, REQUEST_ID) {
                line.truncate(REQUEST_ID.len());
            }
        }
        lines[1..].sort();
        lines.push(body);
        Some(lines)
    }
}

fn serve(mut stream: TcpStream, log: &Received) {
    let _ = stream.set_nodelay(true);
    let Ok(reader) = stream.try_clone() else {
        return;
    };
    let mut reader = BufReader::new(reader);
    loop {
        let mut head = Vec::new();
        loop {
            let before = head.len();
            match reader.read_until(b'\n', &mut head) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            if head.len() - before <= 2 {
                break;
            }
        }
        let Some(number) = number(&head) else {
            // crawlgate's own request for robots.txt.
            let _ = stream.write_all(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
            return;
        };
        let Some(body) = body(&mut reader, &head) else {
            return;
        };
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(number, (head, body));
        let answer = Case::new(number).answer;
        for piece in answer.pieces {
            if stream.write_all(&piece).is_err() {
                return;
            }
            std::thread::yield_now();
        }
        if answer.closes {
            return;
        }
    }
}

/// The body of a request with this head; `None` if it does not come whole.
fn body(reader: &mut BufReader<TcpStream>, head: &[u8]) -> Option<Vec<u8>> {
    let fields: Vec<Vec<u8>> = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.trim_ascii_end().to_vec())
        .collect();
    let mut seen = Seen::default();
    if value(&fields, b"transfer-encoding").is_some() {
        chunks(reader, &mut seen)?;
    } else if let Some(length) = value(&fields, b"content-length") {
        let length: u64 = String::from_utf8(length).ok()?.parse().ok()?;
        reader
            .by_ref()
            .take(length)
            .read_to_end(&mut seen.body)
            .ok()?;
        seen.is_whole = seen.body.len() as u64 == length;
        seen.is_whole.then_some(())?;
    }
    Some(seen.body)
}

/// The value of a field; the first line is none.
fn value(lines: &[Vec<u8>], name: &[u8]) -> Option<Vec<u8>> {
    lines[1..].iter().find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        line[..colon]
            .eq_ignore_ascii_case(name)
            .then(|| line[colon + 1..].trim_ascii().to_vec())
    })
}

fn number(head: &[u8]) -> Option<u64> {
    let target = head
        .split(|byte| *byte == b' ')
        .nth(1)?
        .strip_prefix(b"/c/")?;
    let digits = target
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    std::str::from_utf8(&target[..digits]).ok()?.parse().ok()
}

/// What a client sees of a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Status lines and field lines, of informational responses too; the fields in alphabetical
    /// order, without Date.
    heads: Vec<Vec<Vec<u8>>>,
    pub body: Vec<u8>,
    /// Whether the body ended as it should.
    pub is_whole: bool,
}

impl Seen {
    /// Whether both were broken off, and this one has what the other has. Pingora may not send what
    /// it has gathered, or answer 502 if head and break come together.
    fn is_broken_off_like(&self, other: &Seen, case: &Case) -> bool {
        if !self.is_whole && other.is_bad_gateway() {
            return case.answer.breaks;
        }
        let is_broken_off = !self.is_whole && !other.is_whole;
        is_broken_off && self.heads.starts_with(&other.heads) && self.body.starts_with(&other.body)
    }

    /// Begins a response over HTTP/2, with its fields but for Date.
    pub fn begin(&mut self, status: u16, mut fields: Vec<Vec<u8>>) {
        fields.sort();
        fields.insert(0, format!("HTTP/1.1 {status} ").into_bytes());
        self.heads.push(fields);
    }

    /// The same without the id of the request, which is in the head and in error pages.
    fn without_id(mut self) -> Seen {
        let lines = self.heads.iter_mut().flatten();
        let is_id = |line: &[u8]| {
            line.get(..REQUEST_ID.len())
                .is_some_and(|name| name.eq_ignore_ascii_case(REQUEST_ID))
        };
        for line in lines.filter(|line| is_id(line)) {
            let id = line.split_off(REQUEST_ID.len()).trim_ascii().to_vec();
            while let Some(at) = self
                .body
                .windows(id.len())
                .position(|bytes| bytes == id)
                .filter(|_| !id.is_empty())
            {
                self.body.drain(at..at + id.len());
            }
        }
        self
    }

    fn is_bad_gateway(&self) -> bool {
        self.status().starts_with(b"HTTP/1.1 502 ")
    }

    fn status(&self) -> &[u8] {
        self.heads
            .last()
            .and_then(|head| head.first())
            .map_or(b"", |line| line.as_slice())
    }
}

/// A client of one crawlgate.
struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    fn ask(&mut self, case: &Case) -> Seen {
        for is_last in [false, true] {
            let is_new = self.connection.is_none();
            let mut connection = self
                .connection
                .take()
                .unwrap_or_else(|| connect(self.address));
            let sent = connection.get_mut().write_all(&case.request);
            let mut seen = Seen::default();
            let goes_on = sent.is_ok() && read(&mut connection, case.is_head, &mut seen).is_some();
            // A connection that was kept may be closed at any time between two requests.
            if seen.heads.is_empty() && !is_new && !is_last {
                continue;
            }
            if goes_on {
                self.connection = Some(connection);
            }
            return seen;
        }
        Seen::default()
    }
}

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).expect("crawlgate listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    BufReader::new(stream)
}

/// Reads a response. `Some` if the connection goes on.
fn read(connection: &mut BufReader<TcpStream>, is_head: bool, seen: &mut Seen) -> Option<()> {
    let fields = loop {
        let fields = head(connection)?;
        let status = fields[0].get(9..12)?.to_vec();
        let mut sorted: Vec<Vec<u8>> = fields
            .iter()
            .filter(|line| !line.starts_with(b"Date:"))
            .cloned()
            .collect();
        sorted[1..].sort();
        seen.heads.push(sorted);
        if status.first() != Some(&b'1') {
            break fields;
        }
    };
    let value = |name: &[u8]| value(&fields, name);
    let status = &fields[0][9..12];
    if is_head || matches!(status, b"204" | b"304") {
        seen.is_whole = true;
    } else if value(b"transfer-encoding").is_some() {
        chunks(connection, seen)?;
    } else if let Some(length) = value(b"content-length") {
        let length: u64 = String::from_utf8(length).ok()?.parse().ok()?;
        connection
            .by_ref()
            .take(length)
            .read_to_end(&mut seen.body)
            .ok()?;
        seen.is_whole = seen.body.len() as u64 == length;
    } else {
        connection.read_to_end(&mut seen.body).ok()?;
        seen.is_whole = true;
        return None;
    }
    let closes = value(b"connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"));
    (seen.is_whole && !closes).then_some(())
}

fn head(connection: &mut BufReader<TcpStream>) -> Option<Vec<Vec<u8>>> {
    let mut lines = Vec::new();
    loop {
        let line = line(connection)?;
        if line.is_empty() {
            return (!lines.is_empty()).then_some(lines);
        }
        lines.push(line);
    }
}

/// A line that ends as it should.
fn line(connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    connection.read_until(b'\n', &mut line).ok()?;
    Some(line.strip_suffix(b"\r\n")?.to_vec())
}

fn chunks(connection: &mut BufReader<TcpStream>, seen: &mut Seen) -> Option<()> {
    loop {
        let size = usize::from_str_radix(std::str::from_utf8(&line(connection)?).ok()?, 16).ok()?;
        let before = seen.body.len();
        connection
            .by_ref()
            .take(size as u64)
            .read_to_end(&mut seen.body)
            .ok()?;
        if seen.body.len() - before < size {
            return None;
        }
        if size == 0 {
            // Trailers.
            while !line(connection)?.is_empty() {}
            seen.is_whole = true;
            return Some(());
        }
        if !line(connection)?.is_empty() {
            return None;
        }
    }
}

/// Two crawlgates and their origins.
pub struct Pair {
    /// The addresses: with the forwarder, without.
    pub gates: [SocketAddr; 2],
    pub origins: [Origin; 2],
}

/// What one worker has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Cases that came out alike.
    pub alike: u64,
    /// Cases that only Pingora passed on, as documented.
    pub stricter: u64,
    /// Cases in which Pingora did not reach the origin, as documented.
    pub never_asked: u64,
}

impl Pair {
    /// Sends the cases through both, until there are no more.
    ///
    /// # Errors
    /// The first difference that is not documented.
    pub fn compare(&self, cases: impl Iterator<Item = u64>) -> Result<Count, String> {
        let mut clients = self.gates.map(|address| {
            (
                Client {
                    address,
                    connection: None,
                },
                Http2::new(address),
            )
        });
        let mut count = Count::default();
        for number in cases {
            let case = Case::new(number);
            let mut tries = 0;
            loop {
                tries += 1;
                match self.once(&mut clients, number, &case)? {
                    Outcome::Alike => count.alike += 1,
                    Outcome::Stricter => count.stricter += 1,
                    Outcome::NeverAsked => count.never_asked += 1,
                    Outcome::PingoraFailed(_) if tries < TRIES => continue,
                    Outcome::PingoraFailed(difference) => return Err(difference),
                }
                break;
            }
        }
        Ok(count)
    }

    fn once(
        &self,
        clients: &mut [(Client, Http2); 2],
        number: u64,
        case: &Case,
    ) -> Result<Outcome, String> {
        let [(forwarder, forwarder_took), (pingora, pingora_took)] =
            clients.each_mut().map(|(http1, http2)| {
                let began = Instant::now();
                let seen = if case.is_http2 {
                    http2.ask(case)
                } else {
                    http1.ask(case)
                };
                (seen.without_id(), began.elapsed())
            });
        if forwarder_took.max(pingora_took) >= PATIENCE {
            let [forwarder, pingora] = [(forwarder_took, forwarder), (pingora_took, pingora)];
            let took = |(took, seen): (Duration, Seen)| format!("after {took:?}: {seen}");
            return Err(difference(number, case, &took(forwarder), &took(pingora)));
        }
        let [from_forwarder, from_pingora] = self
            .origins
            .each_ref()
            .map(|origin| origin.take(number, case.announces_trailers));
        if case.is_malformed {
            return self.malformed(
                number,
                case,
                (forwarder, from_forwarder),
                (pingora, from_pingora),
            );
        }
        if !case.may_repeat && from_forwarder.is_none() && forwarder.is_bad_gateway() {
            // The origin closed a kept connection at the same moment, and the request is not sent
            // twice.
            return Ok(Outcome::NeverAsked);
        }
        let has_pingora_failed = pingora.is_bad_gateway();
        // What does not fit the forwarder went through Pingora twice.
        let is_pingoras =
            !case.fits_forwarder && (forwarder.is_bad_gateway() || has_pingora_failed);
        if is_pingoras || from_pingora.is_none() && has_pingora_failed {
            // Both of its tries went to kept connections that the origin had closed.
            return Ok(Outcome::NeverAsked);
        }
        if from_forwarder != from_pingora {
            let shown = |(lines, seen): (Option<Vec<Vec<u8>>>, Seen)| {
                format!(
                    "the origin got {}; the client {seen}",
                    all_shown(&lines.unwrap_or_default())
                )
            };
            return Err(difference(
                number,
                case,
                &shown((from_forwarder, forwarder)),
                &shown((from_pingora, pingora)),
            ));
        }
        if forwarder == pingora
            || forwarder.is_broken_off_like(&pingora, case)
            || pingora.is_broken_off_like(&forwarder, case)
        {
            return Ok(Outcome::Alike);
        }
        if case.answer.stricter.is_some() && forwarder.is_bad_gateway() && forwarder.is_whole {
            return Ok(Outcome::Stricter);
        }
        let difference = difference(number, case, &forwarder.to_string(), &pingora.to_string());
        if has_pingora_failed {
            Ok(Outcome::PingoraFailed(difference))
        } else {
            Err(difference)
        }
    }
}

/// What came of a case through one crawlgate: what its client saw, and the request that the origin
/// got.
type Side = (Seen, Option<Vec<Vec<u8>>>);

/// How a case came out.
enum Outcome {
    Alike,
    Stricter,
    NeverAsked,
    /// Only Pingora did not pass the response on. It may have taken what an origin had sent too
    /// much before.
    PingoraFailed(String),
}

fn difference(number: u64, case: &Case, forwarder: &str, pingora: &str) -> String {
    let pieces: Vec<String> = case
        .answer
        .pieces
        .iter()
        .map(|piece| shown(piece))
        .collect();
    format!(
        "case {number}\nrequest: {}\nanswer: {pieces:?}, closes: {}, stricter: {:?}\nforwarder: {forwarder}\npingora: {pingora}",
        shown(&case.request),
        case.answer.closes,
        case.answer.stricter,
    )
}

/// The beginning of bytes.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(600)].escape_ascii().to_string()
}

fn all_shown(lines: &[Vec<u8>]) -> String {
    lines
        .iter()
        .map(|line| shown(line))
        .collect::<Vec<_>>()
        .join(" | ")
}

impl Pair {
    /// A malformed body never reaches the origin whole. The forwarder answers 400; Pingora ends the
    /// connection.
    fn malformed(
        &self,
        number: u64,
        case: &Case,
        forwarder: Side,
        pingora: Side,
    ) -> Result<Outcome, String> {
        let is_refused =
            |seen: &Seen| seen.status().starts_with(b"HTTP/1.1 4") || seen.is_bad_gateway();
        let is_broken = |seen: &Seen| !seen.is_whole || is_refused(seen);
        let is_forwarder_right = if case.fits_forwarder {
            is_refused(&forwarder.0)
        } else {
            is_broken(&forwarder.0)
        };
        if is_forwarder_right
            && is_broken(&pingora.0)
            && forwarder.1.is_none()
            && pingora.1.is_none()
        {
            return Ok(Outcome::Stricter);
        }
        Err(difference(
            number,
            case,
            &forwarder.0.to_string(),
            &pingora.0.to_string(),
        ))
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let heads: Vec<String> = self.heads.iter().map(|head| all_shown(head)).collect();
        let end = if self.is_whole { "whole" } else { "broken off" };
        write!(
            formatter,
            "{} || {} bytes, {end}: {}",
            heads.join(" || "),
            self.body.len(),
            shown(&self.body)
        )
    }
}
