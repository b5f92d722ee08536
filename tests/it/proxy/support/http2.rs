//! A client that speaks HTTP/2 from the first byte on, and frames by hand for what no client of
//! good faith does.

use super::{Connection, PATIENCE, Response};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use tokio::runtime::{Builder, Handle};

/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS frame, which the preface ends with.
pub const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// The thread that drives the connections of a test file.
fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let (say, said) = channel();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            say.send(runtime.handle().clone()).expect("somebody waits");
            runtime.block_on(std::future::pending::<()>());
        });
        said.recv().expect("a runtime")
    })
}

/// Begun now, waited for when it is asked for.
pub struct Later<T>(Receiver<T>);

impl<T: Send + 'static> Later<T> {
    fn begin(future: impl Future<Output = T> + Send + 'static) -> Later<T> {
        let (say, said) = channel();
        runtime().spawn(async move {
            let _ = say.send(future.await);
        });
        Later(said)
    }

    pub fn wait(self) -> T {
        self.0.recv_timeout(PATIENCE).expect("it happens")
    }
}

fn now<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    Later::begin(future).wait()
}

/// A connection over HTTP/2.
pub struct Http2 {
    sender: SendRequest<Bytes>,
    end: Later<Result<(), h2::Error>>,
}

/// A request whose body is written by the test.
pub struct Upload {
    body: SendStream<Bytes>,
    response: Later<Result<Response, h2::Error>>,
}

impl Upload {
    /// One DATA frame.
    pub fn send(&mut self, bytes: &'static [u8], last: bool) {
        self.body
            .send_data(Bytes::from_static(bytes), last)
            .expect("a frame");
    }

    /// The end of the body as fields.
    pub fn send_trailers(&mut self, name: &'static str, value: &'static str) {
        let mut trailers = HeaderMap::new();
        trailers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        self.body.send_trailers(trailers).expect("trailers");
    }

    /// Nobody wants the answer any more.
    pub fn reset(mut self) {
        self.body.send_reset(Reason::CANCEL);
    }

    pub fn response(self) -> Response {
        self.response.wait().expect("a response")
    }
}

impl Http2 {
    pub fn open(address: SocketAddr) -> Http2 {
        let (sender, end) = now(async move {
            let stream = tokio::net::TcpStream::connect(address)
                .await
                .expect("a connection");
            let (sender, connection) = h2::client::handshake(stream)
                .await
                .expect("a connection over HTTP/2");
            (sender, Later::begin(connection))
        });
        Http2 { sender, end }
    }

    /// A request, with what follows it: the whole of the response, or how its stream broke.
    pub fn begin(
        &self,
        method: &str,
        uri: &str,
        fields: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Later<Result<Response, h2::Error>> {
        let (sender, request) = (self.sender.clone(), request(method, uri, fields));
        Later::begin(async move {
            let mut sender = sender.ready().await?;
            let (response, mut stream) = sender.send_request(request, body.is_none())?;
            let answer = answer(response);
            match body {
                Some(body) => beside(answer, upload(&mut stream, body)).await,
                None => answer.await,
            }
        })
    }

    /// A request without a body.
    pub fn ask(&self, method: &str, host: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        self.begin(method, &format!("http://{host}{target}"), fields, None)
            .wait()
            .expect("a response")
    }

    /// GET.
    pub fn get(&self, host: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        self.ask("GET", host, target, fields)
    }

    /// A request whose body is still to come.
    pub fn upload(&self, host: &str, target: &str, fields: &[(&str, &str)]) -> Upload {
        let (sender, request) = (
            self.sender.clone(),
            request("POST", &format!("http://{host}{target}"), fields),
        );
        let (response, body) = now(async move {
            let mut sender = sender.ready().await.expect("a stream");
            sender.send_request(request, false).expect("a stream")
        });
        Upload {
            body,
            response: Later::begin(answer(response)),
        }
    }

    /// How the connection ended: well when the other side said goodbye.
    pub fn end(self) -> Result<(), h2::Error> {
        self.end.wait()
    }
}

fn request(method: &str, uri: &str, fields: &[(&str, &str)]) -> Request<()> {
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

/// What the names of fields behind the body begin with.
pub const TRAILER: &str = "behind the body: ";

async fn answer(response: ResponseFuture) -> Result<Response, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        let _ = stream.flow_control().release_capacity(piece.len());
        body.extend(piece);
    }
    let trailers = stream.trailers().await?.unwrap_or_default();
    let line = |prefix: &str, (name, value): (&HeaderName, &HeaderValue)| {
        (
            format!("{prefix}{name}"),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    let headers = head.headers.iter().map(|field| line("", field));
    let headers = headers.chain(trailers.iter().map(|field| line(TRAILER, field)));
    Ok(Response {
        version: format!("{:?}", head.version),
        status: head.status.as_u16(),
        headers: headers.collect(),
        body,
    })
}

/// As much at a time as the other side takes. That it takes no more is no error while it answers.
async fn upload(stream: &mut SendStream<Bytes>, body: Vec<u8>) {
    let mut rest = Bytes::from(body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let Some(Ok(room)) = std::future::poll_fn(|context| stream.poll_capacity(context)).await
        else {
            return;
        };
        let piece = rest.split_to(room.min(rest.len()));
        if stream.send_data(piece, rest.is_empty()).is_err() {
            return;
        }
    }
}

/// The answer, while the body is being sent; what is not sent by then is not wanted.
async fn beside<T>(answer: impl Future<Output = T>, body: impl Future<Output = ()>) -> T {
    tokio::pin!(answer, body);
    tokio::select! {
        answer = &mut answer => return answer,
        () = &mut body => {}
    }
    answer.await
}

/// A literal field without indexing (RFC 7541 section 6.2.2).
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| {
        u8::try_from(text.len())
            .ok()
            .filter(|length| *length < 127)
            .expect("short")
    };
    [
        &[0, length(name)],
        name.as_bytes(),
        &[length(value)],
        value.as_bytes(),
    ]
    .concat()
}

/// What tests look at of a frame.
#[derive(Debug)]
pub struct Frame {
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS_FRAME: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// A frame as a client sends it.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Connection {
    /// The next frame that is of this kind; others are passed over.
    pub fn frame(&mut self, kind: u8) -> Frame {
        loop {
            let head = self.bytes(9);
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
            let payload = self.bytes(length as usize);
            if head[3] == kind {
                return Frame { stream, payload };
            }
        }
    }

    /// Everything up to the end of the connection.
    pub fn rest(&mut self) {
        while !self.is_closed() {
            self.bytes(1);
        }
    }

    /// A HEADERS frame that is a request of its own, from a block that was written by hand.
    pub fn send_headers(&mut self, stream: u8, block: &[u8]) {
        let length = u8::try_from(block.len()).expect("a short block");
        self.send_bytes(&[&[0, 0, length, HEADERS, 0x05, 0, 0, 0, stream], block].concat());
    }
}
