//! An origin that says whatever a test wants it to say, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as the origin got it.
#[derive(Clone, Debug)]
pub struct Received {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether it is crawlgate's own, which asks for the origin's robots.txt in the background.
    pub fn is_own(&self) -> bool {
        self.field("user-agent")
            .is_some_and(|agent| agent.starts_with("crawlgate/"))
    }

    /// The request target.
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// A running origin; its threads end with the test's process.
pub struct Origin {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Origin {
    /// Answers each request with what `answer` writes; the connection goes on while that returns
    /// true.
    pub fn start(
        answer: impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Origin {
        Origin::on(
            TcpListener::bind("127.0.0.1:0").expect("a free port"),
            answer,
        )
    }

    /// The same on this listener.
    pub fn on(
        listener: TcpListener,
        answer: impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Origin {
        let address = listener.local_addr().expect("its address");
        let received = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), received.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, log) = (answer.clone(), log.clone());
                thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Origin { address, received }
    }

    /// Answers every request with the same bytes.
    pub fn saying(response: &'static str) -> Origin {
        Origin::start(move |_, stream| stream.write_all(response.as_bytes()).is_ok())
    }

    /// An ordinary page for every request.
    pub fn plain() -> Origin {
        Origin::saying(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
        )
    }

    /// An address where nothing listens.
    pub fn nowhere() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("its address")
    }

    /// What it was asked so far on behalf of clients.
    pub fn received(&self) -> Vec<Received> {
        self.all()
            .into_iter()
            .filter(|request| !request.is_own())
            .collect()
    }

    /// How crawlgate last asked for the origin's robots.txt for itself.
    pub fn last_own(&self) -> Received {
        self.all()
            .into_iter()
            .rfind(Received::is_own)
            .expect("a request")
    }

    /// How crawlgate first asked for this target for itself.
    pub fn own_for(&self, target: &str) -> Received {
        self.all()
            .into_iter()
            .find(|request| request.is_own() && request.target() == target)
            .expect("a request")
    }

    /// Whether crawlgate asked for the origin's robots.txt for itself.
    pub fn was_asked_for_robots_txt(&self) -> bool {
        self.all()
            .iter()
            .any(|request| request.is_own() && request.target() == "/robots.txt")
    }

    /// Whether anything was asked of it.
    pub fn was_asked(&self) -> bool {
        !self.all().is_empty()
    }

    /// What it was asked so far, by crawlgate itself too.
    pub fn all(&self) -> Vec<Received> {
        self.received
            .lock()
            .expect("nobody panics while writing")
            .clone()
    }

    /// The last request.
    pub fn last(&self) -> Received {
        self.received().pop().expect("a request")
    }
}

fn serve(
    stream: TcpStream,
    answer: &(impl Fn(&Received, &mut TcpStream) -> bool + Send + Sync),
    log: &Mutex<Vec<Received>>,
) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut reader = BufReader::new(stream);
    while let Some(request) = receive(&mut reader) {
        log.lock()
            .expect("nobody panics while writing")
            .push(request.clone());
        if !answer(&request, &mut writer) {
            return;
        }
    }
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let line = self::line(reader)?;
    let mut headers = Vec::new();
    loop {
        let line = self::line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((
            name.to_string(),
            value.trim_matches([' ', '\t']).to_string(),
        ));
    }
    let mut request = Received {
        line,
        headers,
        body: Vec::new(),
    };
    if request.field("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(self::line(reader)?.trim(), 16).ok()?;
            let mut chunk = vec![0; size];
            reader.read_exact(&mut chunk).ok()?;
            request.body.extend(chunk);
            if size == 0 {
                while !self::line(reader)?.is_empty() {}
                return Some(request);
            }
            self::line(reader)?;
        }
    }
    if let Some(length) = request
        .field("content-length")
        .and_then(|length| length.parse().ok())
    {
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
    }
    Some(request)
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end_matches(['\r', '\n']).to_string()),
    }
}
