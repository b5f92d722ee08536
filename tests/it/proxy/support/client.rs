//! A client that says exactly what it is told to say, and reads what comes.

use super::PATIENCE;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// A response as it came.
#[derive(Clone, Debug)]
pub struct Response {
    pub version: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).first().copied()
    }

    /// All field lines of this name, in their order.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let lines = self
            .headers
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_str()).collect()
    }

    /// The fields that say what may be done with the page.
    pub fn signals(&self) -> Vec<Vec<String>> {
        let names = [
            "content-signal",
            "content-usage",
            "link",
            "tdm-reservation",
            "tdm-policy",
        ];
        names
            .map(|name| self.fields(name).into_iter().map(str::to_owned).collect())
            .into()
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }
}

impl Connection {
    pub fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Connection {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream
            .get_mut()
            .write_all(bytes)
            .expect("the other side takes it");
    }

    /// The same connection for a thread that sends while this one reads.
    pub fn sender(&self) -> TcpStream {
        self.stream.get_ref().try_clone().expect("the same socket")
    }

    /// The other side sees the end of what is sent.
    pub fn finish_sending(&mut self) {
        self.stream
            .get_mut()
            .shutdown(Shutdown::Write)
            .expect("a half-closed connection");
    }

    /// Whether a response or the end of the connection comes before this has passed.
    pub fn says_something_within(&mut self, time: Duration) -> bool {
        let waits = |time| {
            self.stream
                .get_ref()
                .set_read_timeout(Some(time))
                .expect("a timeout")
        };
        waits(time);
        let read = self.stream.fill_buf().map(drop);
        self.stream
            .get_ref()
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout");
        !matches!(read, Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// What was sent, as far as the other side takes it now.
    pub fn try_send(&mut self, text: &str) -> bool {
        self.try_send_bytes(text.as_bytes())
    }

    /// The same of bytes.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// The end of what is sent, if the other side still listens.
    pub fn try_finish_sending(&mut self) {
        let _ = self.stream.get_mut().shutdown(Shutdown::Write);
    }

    /// Whether nothing comes but the end of the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.fill_buf(), Ok([]))
    }

    /// Whether the other side threw away what was sent to it.
    pub fn was_reset(&self) -> bool {
        self.stream
            .get_ref()
            .take_error()
            .expect("the state of the socket")
            .is_some()
    }

    /// Exactly so many bytes, as they come.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("enough bytes");
        bytes
    }

    /// The next response to a request with this method; informational ones too.
    pub fn response(&mut self, method: &str) -> Response {
        let mut response = self.head();
        let bodiless =
            method == "HEAD" || response.status < 200 || matches!(response.status, 204 | 304);
        response.body = if bodiless {
            Vec::new()
        } else {
            self.body(&response)
        };
        response
    }

    /// The next response that is not informational.
    pub fn final_response(&mut self, method: &str) -> Response {
        loop {
            let response = self.response(method);
            if response.status >= 200 {
                return response;
            }
        }
    }

    /// Status line and header.
    pub fn head(&mut self) -> Response {
        let status_line = self.line();
        let mut parts = status_line.splitn(3, ' ');
        let version = parts.next().unwrap_or_default().to_string();
        let status = parts.next().and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {status_line:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Response {
                    version,
                    status,
                    headers,
                    body: Vec::new(),
                };
            }
            let (name, value) = line
                .split_once(':')
                .unwrap_or_else(|| panic!("no field line: {line:?}"));
            headers.push((
                name.to_string(),
                value.trim_matches([' ', '\t']).to_string(),
            ));
        }
    }

    fn body(&mut self, response: &Response) -> Vec<u8> {
        if response
            .field("transfer-encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
        {
            return self.chunks();
        }
        match response
            .field("content-length")
            .map(|length| length.parse().expect("a length"))
        {
            Some(length) => self.bytes(length),
            None => {
                let mut body = Vec::new();
                self.stream
                    .read_to_end(&mut body)
                    .expect("a body up to the end of the connection");
                body
            }
        }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let size = line
                .split(';')
                .next()
                .and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
            match size.unwrap_or_else(|| panic!("no size of a chunk: {line:?}")) {
                0 => {
                    while !self.line().is_empty() {}
                    return body;
                }
                size => {
                    body.extend(self.bytes(size));
                    assert_eq!(self.bytes(2), b"\r\n");
                }
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).expect("a line");
        String::from_utf8_lossy(&line)
            .trim_end_matches(['\r', '\n'])
            .to_string()
    }
}
