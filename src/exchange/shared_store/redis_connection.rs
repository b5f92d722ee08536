//! [`RedisConnection`]: a blocking connection to the Redis or Valkey server that several crawlgate
//! instances share. It limits the time and the size of each answer. The commands, values and parser
//! come from the crate `redis`. The connection type of that crate is not used, because it limits
//! only the time of single reads.

use super::errors::{from_redis_error, unreadable_file};
use crate::exchange::{StoreDeadline, StoreError};
use crate::files;
use crate::locks::lock;
use crate::settings::{StoreSettings, StoreUrl};
use crate::threads::spawn;
use crate::upstreams::client_config_builder;
use redis::{Cmd, ErrorKind, FromRedisValue, Parser, Pipeline, RedisResult, Value};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use std::io::{
    self,
    ErrorKind::{InvalidData, NotFound, TimedOut, WouldBlock},
    Read, Write,
};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time limit for connecting (with DNS, TLS and login), and for each silence of the store.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for a whole answer. Each [`MIN_BYTES_PER_SECOND`] transferred add a second.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_BYTES_PER_SECOND: u64 = 64 * 1024;
/// The longest single read or write, so that a stop is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The size limits of an answer and of all answers to one call. Each line counts
/// [`BYTES_PER_VALUE`] more, because a million empty values are short on the wire but not in
/// memory.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
const MAX_CALL_BYTES: usize = 256 * 1024 * 1024;
const BYTES_PER_VALUE: usize = 64;
/// The longest line; an entry of 2,000 facts is shorter. The parser scans a line again from its
/// beginning whenever more of it arrives.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// A connection that is logged in.
pub struct RedisConnection {
    stream: BoundedStream,
    parser: Parser,
    limits: Arc<Mutex<TimeLimits>>,
    /// `run_id` of `INFO server`; empty until the server was checked.
    pub run_id: String,
}

/// A stream that fails when an answer, a call or a line exceeds its size limit.
struct BoundedStream {
    stream: Box<dyn Duplex>,
    answer_bytes_left: usize,
    call_bytes_left: usize,
    /// Since the last end of a line.
    line_bytes: usize,
}

trait Duplex: Read + Write + Send {}

impl<S: Read + Write + Send> Duplex for S {}

/// When the present answer must be complete, and how long the store may be silent until then.
struct TimeLimits {
    end: Instant,
    max_silence: Duration,
}

/// A socket that enforces the time limits.
struct LimitedSocket {
    stream: TcpStream,
    limits: Arc<Mutex<TimeLimits>>,
    deadline: StoreDeadline,
}

impl RedisConnection {
    /// Connects and logs in, within `CONNECT_TIMEOUT`. Reads the files of the password and the
    /// certificate authorities each time, because they may be replaced.
    pub fn open(
        settings: &StoreSettings,
        deadline: &StoreDeadline,
    ) -> Result<RedisConnection, StoreError> {
        let StoreSettings {
            url,
            password_file,
            ca,
            ..
        } = settings;
        let password = match password_file {
            Some(path) => {
                let text = String::from_utf8_lossy(&read_file(path)?)
                    .trim_end_matches(['\r', '\n'])
                    .to_owned();
                if text.is_empty() {
                    return Err(unreadable_file(path, "it is empty"));
                }
                Some(text)
            }
            None => url.password.as_ref().map(|password| password.0.clone()),
        };
        let authorities = ca.as_deref().map(read_file).transpose()?;
        let link = RedisConnection::connect(url, authorities, deadline).and_then(|mut link| {
            link.log_in(url, password)?;
            Ok(link)
        });
        link.map_err(|error| from_redis_error(&error, url))
    }

    /// Connects, with TLS if the URL says so. Does not log in.
    fn connect(
        url: &StoreUrl,
        authorities: Option<Vec<u8>>,
        deadline: &StoreDeadline,
    ) -> RedisResult<RedisConnection> {
        let limits = Arc::new(Mutex::new(TimeLimits {
            end: Instant::now() + CONNECT_TIMEOUT,
            max_silence: CONNECT_TIMEOUT,
        }));
        let socket = LimitedSocket {
            stream: connect_tcp(url, &limits)?,
            limits: limits.clone(),
            deadline: deadline.clone(),
        };
        let stream: Box<dyn Duplex> = if url.tls {
            Box::new(connect_tls(socket, url, authorities)?)
        } else {
            Box::new(socket)
        };
        Ok(RedisConnection::new(stream, limits))
    }

    fn new(stream: Box<dyn Duplex>, limits: Arc<Mutex<TimeLimits>>) -> RedisConnection {
        let stream = BoundedStream {
            stream,
            answer_bytes_left: MAX_ANSWER_BYTES,
            call_bytes_left: MAX_CALL_BYTES,
            line_bytes: 0,
        };
        RedisConnection {
            stream,
            parser: Parser::new(),
            limits,
            run_id: String::new(),
        }
    }

    /// Sends the password, if there is one, and selects the database, if it is not 0. Uses `write`
    /// because `send` would restart the time limit for connecting.
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

    /// Resets the size limit for all answers of a call (`MAX_CALL_BYTES`).
    pub fn reset_answer_size_limit(&mut self) {
        self.stream.call_bytes_left = MAX_CALL_BYTES;
    }

    /// Sends commands, and starts the time limit for their answers.
    fn send(&mut self, commands: &[u8]) -> RedisResult<()> {
        // The commands may still be on their way while the first answer is awaited.
        let max_silence = CONNECT_TIMEOUT + transfer_time(commands.len());
        *lock(&self.limits) = TimeLimits {
            end: Instant::now() + ANSWER_TIMEOUT,
            max_silence,
        };
        self.write(commands)
    }

    /// Writes and flushes bytes, without restarting the time limit.
    fn write(&mut self, commands: &[u8]) -> RedisResult<()> {
        let stream = &mut self.stream.stream;
        stream.write_all(commands)?;
        Ok(stream.flush()?)
    }

    /// Reads the answer to one command. An error of the store is returned as an error.
    fn receive(&mut self) -> RedisResult<Value> {
        self.stream.answer_bytes_left = MAX_ANSWER_BYTES;
        self.parser.parse_value(&mut self.stream)?.extract_error()
    }

    /// Sends a command and reads the answer.
    pub fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        self.send(&command.get_packed_command())?;
        Ok(T::from_redis_value(self.receive()?)?)
    }

    /// Sends commands and reads their answers, in the order of the commands. Those of a transaction
    /// are `Nil` if it was not executed, because a watched key was written. Stops at the first error.
    pub fn query_all<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> RedisResult<T> {
        self.send(&pipeline.get_packed_pipeline())?;
        let answers = (0..pipeline.len())
            .map(|_| self.receive())
            .collect::<RedisResult<_>>()?;
        let mut answer = Value::Array(answers);
        if pipeline.is_transaction() {
            // It has one answer for its beginning and one for each queued command before the results.
            self.receive()?;
            answer = self.receive()?;
        }
        Ok(T::from_redis_value(answer)?)
    }
}

impl Read for BoundedStream {
    /// Reads from the stream, and counts bytes and lines. Fails if the answer, all answers of the
    /// call, or a line exceeds its limit.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        let mut lines = buffer[..count].rsplit(|byte| *byte == b'\n');
        let rest = lines.next().map_or(0, <[u8]>::len);
        let lines = lines.count();
        self.line_bytes = if lines == 0 {
            self.line_bytes + rest
        } else {
            rest
        };
        let bytes = count + lines * BYTES_PER_VALUE;
        if self.line_bytes > MAX_LINE_BYTES
            || bytes > self.answer_bytes_left
            || bytes > self.call_bytes_left
        {
            return Err(io::Error::new(InvalidData, "its answer is too large"));
        }
        self.answer_bytes_left -= bytes;
        self.call_bytes_left -= bytes;
        Ok(count)
    }
}

impl LimitedSocket {
    /// Calls `act` until it succeeds or a time limit ends: that of the answer, the longest silence,
    /// or the deadline of a stop, which is noticed within 100 ms. Each byte that is transferred
    /// extends the limit of the answer.
    fn transfer(&self, mut act: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let silence_ends = Instant::now() + lock(&self.limits).max_silence;
        loop {
            let end = lock(&self.limits).end.min(silence_ends);
            let end = self
                .deadline
                .get()
                .map_or(end, |deadline| deadline.min(end));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(TimedOut, "its answer takes too long"));
            }
            self.stream
                .set_read_timeout(Some(left.min(POLL_INTERVAL)))?;
            self.stream
                .set_write_timeout(Some(left.min(POLL_INTERVAL)))?;
            match act(&self.stream) {
                Ok(count) => {
                    lock(&self.limits).end += transfer_time(count);
                    return Ok(count);
                }
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for LimitedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.transfer(|mut stream| stream.read(buffer))
    }
}

impl Write for LimitedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.transfer(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long so many bytes take at `MIN_BYTES_PER_SECOND`.
fn transfer_time(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64 * (1_000_000_000 / MIN_BYTES_PER_SECOND))
}

/// Resolves the name and connects to its first address that answers, within the time limit. The
/// error is that of the last address.
fn connect_tcp(url: &StoreUrl, limits: &Mutex<TimeLimits>) -> io::Result<TcpStream> {
    let name = (url.host.clone(), url.port);
    let (found, resolved) = channel();
    // The system's resolver has no time limit, so it runs in a thread of its own.
    spawn("store-name", move || {
        drop(found.send(name.to_socket_addrs().map(Vec::from_iter)))
    })?;
    let resolved = resolved.recv_timeout(time_left(limits));
    let late = "its name did not resolve in time";
    let addresses: Vec<SocketAddr> = resolved.map_err(|_| io::Error::new(TimedOut, late))??;
    let mut last = io::Error::new(NotFound, "its name has no address");
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

/// The time that is left, at least a millisecond.
fn time_left(limits: &Mutex<TimeLimits>) -> Duration {
    let end = lock(limits).end;
    end.saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}

/// Starts TLS on the socket, verified against these certificate authorities or the system's.
fn connect_tls(
    socket: LimitedSocket,
    url: &StoreUrl,
    authorities: Option<Vec<u8>>,
) -> io::Result<StreamOwned<ClientConnection, LimitedSocket>> {
    let authorities = authorities
        .map(|pem| CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>())
        .transpose()
        .map_err(io::Error::other)?;
    let config = client_config_builder(authorities.as_deref())
        .map_err(io::Error::other)?
        .with_no_client_auth();
    let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(client, socket))
}

fn read_file(path: &Path) -> Result<Vec<u8>, StoreError> {
    files::read_bounded(path).map_err(|error| unreadable_file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn parse_answer(answer: &str) -> RedisResult<Value> {
        let limits = Arc::new(Mutex::new(TimeLimits {
            end: Instant::now(),
            max_silence: CONNECT_TIMEOUT,
        }));
        RedisConnection::new(Box::new(Cursor::new(answer.as_bytes().to_vec())), limits).receive()
    }

    #[test]
    fn too_large_or_nested_answer_is_an_error() {
        let large = format!("$62914560\r\n{}\r\n", "a\n".repeat(31_457_280));
        let many = format!("*1000000\r\n{}", "_\r\n".repeat(1_000_000));
        let line = format!("+{}", "a".repeat(MAX_LINE_BYTES));
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
                parse_answer(answer).is_err(),
                "{}",
                &answer[..answer.len().min(32)]
            );
        }
        assert_eq!(
            parse_answer("-NOAUTH no\r\n").expect_err("an error").code(),
            Some("NOAUTH")
        );
        assert_eq!(
            parse_answer("*2\r\n+OK\r\n$-1\r\n").expect("a value"),
            Value::Array(vec![Value::Okay, Value::Nil])
        );
    }
}
