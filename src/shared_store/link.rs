//! [`Link`]: a connection to the store whose answers are bounded in time and size. Commands, values
//! and the parser are those of the crate redis. Its connection has a time limit for each read
//! alone, none for the size of an answer, and takes no stream of ours.

use super::refusal::{of_error, unreadable};
use crate::exchange::{Deadline, StoreError};
use crate::files;
use crate::locks::lock;
use crate::settings::{StoreSettings, StoreUrl};
use crate::threads::spawn;
use crate::upstreams::trusting;
use redis::{Cmd, ErrorKind, FromRedisValue, Parser, RedisResult, Value};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long connecting may take, with the name, TLS and the password; and how long the store may
/// say nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer may take in all. Each [`SLOWEST`] bytes that are transferred add a second.
const ANSWER: Duration = Duration::from_secs(10);
const SLOWEST: u64 = 64 * 1024;
/// How soon a stop is noticed.
const SLICE: Duration = Duration::from_millis(100);
/// Bytes of an answer, and of all answers to one call. Each line counts [`VALUE`] bytes more: a
/// value takes one at the least, and `*1000000` with a million empty values is short.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
const MAX_CALL: usize = 256 * 1024 * 1024;
const VALUE: usize = 64;
/// Bytes without an end of a line: an entry of 2,000 facts has fewer. The parser begins a line anew
/// with each part of it that comes.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// A connection.
pub(super) struct Link {
    stream: Bounded,
    parser: Parser,
    limits: Arc<Mutex<Limits>>,
}

/// A stream that is read up to a size.
struct Bounded {
    stream: Box<dyn Duplex>,
    left_of_answer: usize,
    left_of_call: usize,
    /// Since the last end of a line.
    line: usize,
}

trait Duplex: Read + Write + Send {}

impl<S: Read + Write + Send> Duplex for S {}

/// Until when an exchange may take, and how long the store may say nothing in it.
struct Limits {
    end: Instant,
    patience: Duration,
}

/// A socket that keeps to the limits.
struct Socket {
    stream: TcpStream,
    limits: Arc<Mutex<Limits>>,
    deadline: Deadline,
}

impl Link {
    /// Connects and logs in, within `PATIENCE`. The files with the password and the authorities
    /// are read each time, because they are replaced now and then.
    pub(super) fn open(settings: &StoreSettings, deadline: &Deadline) -> Result<Link, StoreError> {
        let StoreSettings {
            url,
            password_file,
            ca,
            ..
        } = settings;
        let password = match password_file {
            Some(path) => {
                let text = String::from_utf8_lossy(&read(path)?)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                if text.is_empty() {
                    return Err(unreadable(path, "it is empty"));
                }
                Some(text)
            }
            None => url.password.as_ref().map(|password| password.0.clone()),
        };
        let authorities = ca.as_deref().map(read).transpose()?;
        let link = Link::connect(url, authorities, deadline).and_then(|mut link| {
            link.log_in(url, password)?;
            Ok(link)
        });
        link.map_err(|error| of_error(&error, url))
    }

    /// Connects, with TLS if the URL says so. Does not log in.
    fn connect(
        url: &StoreUrl,
        authorities: Option<Vec<u8>>,
        deadline: &Deadline,
    ) -> RedisResult<Link> {
        let limits = Arc::new(Mutex::new(Limits {
            end: Instant::now() + PATIENCE,
            patience: PATIENCE,
        }));
        let socket = Socket {
            stream: reach(url, &limits)?,
            limits: limits.clone(),
            deadline: deadline.clone(),
        };
        let stream: Box<dyn Duplex> = if url.tls {
            Box::new(encrypt(socket, url, authorities)?)
        } else {
            Box::new(socket)
        };
        Ok(Link::new(stream, limits))
    }

    fn new(stream: Box<dyn Duplex>, limits: Arc<Mutex<Limits>>) -> Link {
        let stream = Bounded {
            stream,
            left_of_answer: MAX_ANSWER,
            left_of_call: MAX_CALL,
            line: 0,
        };
        Link {
            stream,
            parser: Parser::new(),
            limits,
        }
    }

    /// Sends the password, if there is one, and selects the database, if it is not 0. Goes on
    /// within the time for connecting, which `Link::send` would begin anew.
    fn log_in(&mut self, url: &StoreUrl, password: Option<String>) -> RedisResult<()> {
        if let Some(password) = password {
            self.write(
                &redis::cmd("AUTH")
                    .arg(&url.user)
                    .arg(password)
                    .get_packed_command(),
            )?;
            self.receive()
                .map_err(|error| (ErrorKind::AuthenticationFailed, "AUTH", error.to_string()))?;
        }
        // The user may lack the right for a command that is not needed.
        if url.database != 0 {
            self.write(&redis::cmd("SELECT").arg(url.database).get_packed_command())?;
            self.receive()?;
        }
        Ok(())
    }

    /// Begins a call, of which all answers together may take `MAX_CALL` bytes.
    pub(super) fn begin_call(&mut self) {
        self.stream.left_of_call = MAX_CALL;
    }

    /// Sends commands, and begins the time for their answers.
    pub(super) fn send(&mut self, commands: &[u8]) -> RedisResult<()> {
        // What was written is on its way while the first answer is waited for.
        let patience = PATIENCE + time_of(commands.len());
        *lock(&self.limits) = Limits {
            end: Instant::now() + ANSWER,
            patience,
        };
        self.write(commands)
    }

    /// Writes and flushes bytes, without beginning a new time for answers.
    fn write(&mut self, commands: &[u8]) -> RedisResult<()> {
        let stream = &mut self.stream.stream;
        stream.write_all(commands)?;
        Ok(stream.flush()?)
    }

    /// Reads the answer to one command. An answer that is an error of the store is an error here.
    pub(super) fn receive(&mut self) -> RedisResult<Value> {
        self.stream.left_of_answer = MAX_ANSWER;
        self.parser.parse_value(&mut self.stream)?.extract_error()
    }

    /// Sends a command and reads the answer.
    pub(super) fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        self.send(&command.get_packed_command())?;
        Ok(T::from_redis_value(self.receive()?)?)
    }
}

impl Read for Bounded {
    /// Reads from the stream, and counts each byte and each line. An error if the answer, all
    /// answers of the call, or a line is larger than its limit.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        let mut lines = buffer[..count].rsplit(|byte| *byte == b'\n');
        let rest = lines.next().map_or(0, <[u8]>::len);
        let lines = lines.count();
        self.line = if lines == 0 { self.line + rest } else { rest };
        let bytes = count + lines * VALUE;
        if self.line > MAX_LINE || bytes > self.left_of_answer || bytes > self.left_of_call {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its answer is too large",
            ));
        }
        self.left_of_answer -= bytes;
        self.left_of_call -= bytes;
        Ok(count)
    }
}

impl Socket {
    /// Tries `act` on the socket until it succeeds or its time is over: that of the answer, the
    /// longest silence, or the deadline of a stop, which is noticed within 100 ms. Each byte that
    /// it transfers gives the answer more time.
    fn transfer(&self, mut act: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let silence_ends = Instant::now() + lock(&self.limits).patience;
        loop {
            let end = lock(&self.limits).end.min(silence_ends);
            let end = self
                .deadline
                .get()
                .map_or(end, |deadline| deadline.min(end));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "its answer takes too long",
                ));
            }
            self.stream.set_read_timeout(Some(left.min(SLICE)))?;
            self.stream.set_write_timeout(Some(left.min(SLICE)))?;
            match act(&self.stream) {
                Ok(count) => {
                    lock(&self.limits).end += time_of(count);
                    return Ok(count);
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.transfer(|mut stream| stream.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.transfer(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long so many bytes take on the slowest line (`SLOWEST` bytes a second).
fn time_of(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * (1_000_000_000 / SLOWEST))
}

/// Resolves the name and connects to the first of its addresses that answers, within the time for
/// connecting. The error is that of the last address.
fn reach(url: &StoreUrl, limits: &Mutex<Limits>) -> io::Result<TcpStream> {
    let name = (url.host.clone(), url.port);
    let (found, resolved) = channel();
    // Nothing bounds the resolver of the system.
    spawn("store-name", move || {
        drop(found.send(name.to_socket_addrs().map(Vec::from_iter)))
    })?;
    let resolved = resolved.recv_timeout(time_left(limits));
    let late = "its name is not resolved in time";
    let addresses: Vec<SocketAddr> =
        resolved.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, late))??;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, time_left(limits)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The time that is left, and a moment at least.
fn time_left(limits: &Mutex<Limits>) -> Duration {
    let end = lock(limits).end;
    end.saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}

/// TLS, verified against these authorities or those of the system.
fn encrypt(
    socket: Socket,
    url: &StoreUrl,
    authorities: Option<Vec<u8>>,
) -> io::Result<StreamOwned<ClientConnection, Socket>> {
    let authorities = authorities
        .map(|pem| CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>())
        .transpose()
        .map_err(io::Error::other)?;
    let config = trusting(authorities.as_deref())
        .map_err(io::Error::other)?
        .with_no_client_auth();
    let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(client, socket))
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    files::read(path).map_err(|error| unreadable(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn received(answer: &str) -> RedisResult<Value> {
        let limits = Arc::new(Mutex::new(Limits {
            end: Instant::now(),
            patience: PATIENCE,
        }));
        Link::new(Box::new(Cursor::new(answer.as_bytes().to_vec())), limits).receive()
    }

    #[test]
    fn answer_that_is_too_large_or_nested_is_an_error() {
        let large = format!("$62914560\r\n{}\r\n", "a\n".repeat(31_457_280));
        let many = format!("*1000000\r\n{}", "_\r\n".repeat(1_000_000));
        let line = format!("+{}", "a".repeat(MAX_LINE));
        let nested = "*1\r\n".repeat(1_000_000);
        let maps = "%4000000000000000000\r\n".repeat(1_000_000);
        for answer in [
            &large,
            &many,
            &line,
            &nested,
            &maps,
            "$9223372036854775807\r\n",
            "*1000000000000\r\n:1\r\n",
            "x",
            "",
        ] {
            assert!(
                received(answer).is_err(),
                "{}",
                &answer[..answer.len().min(32)]
            );
        }
        assert_eq!(
            received("-NOAUTH no\r\n").expect_err("an error").code(),
            Some("NOAUTH")
        );
        assert_eq!(
            received("*2\r\n+OK\r\n$-1\r\n").expect("a value"),
            Value::Array(vec![Value::Okay, Value::Nil])
        );
    }
}
