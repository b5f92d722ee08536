//! A front for an authority that says what a test wants, and passes everything else on.

use crate::proxy::support::{Authority, PATIENCE, TlsConnection};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// Says what to answer to a request, by its method and path; `None` passes it on.
type Hook = Box<dyn FnMut(&str, &str) -> Option<Vec<u8>> + Send>;

/// Changes what the authority answers to a request, by its path and its signed payload.
type Change = Box<dyn FnMut(&str, &Value, String) -> String + Send>;

/// What the threads of a front share.
struct Shared {
    hook: Mutex<Hook>,
    change: Mutex<Change>,
    /// The paths that were asked for, with the payloads.
    asked: Mutex<Vec<(String, Value)>>,
}

/// A server in front of an authority.
pub struct Front {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Front {
    /// In front of an authority that listens there, with its certificate.
    pub fn of(authority: SocketAddr, transport: &Authority, files: &Path) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let chain = CertificateDer::pem_file_iter(files.join("pebble.pem")).expect("a chain");
        let chain = chain.collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(files.join("pebble.key")).expect("a key");
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&TLS13])
                .expect("a version")
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .expect("a certificate");
        let (config, client) = (Arc::new(config), transport.client(&["http/1.1"], &[&TLS13]));
        let shared = Arc::new(Shared {
            hook: Mutex::new(Box::new(|_, _| None)),
            change: Mutex::new(Box::new(|_, _, answer| answer)),
            asked: Mutex::default(),
        });
        let of_thread = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, client, shared) = (config.clone(), client.clone(), of_thread.clone());
                // A client that goes away is none of the front's business.
                thread::spawn(move || drop(serve(stream, &config, (authority, &client), &shared)));
            }
        });
        Front { address, shared }
    }

    /// Answers so from now on.
    pub fn says(&self, hook: impl FnMut(&str, &str) -> Option<Vec<u8>> + Send + 'static) {
        *self.shared.hook.lock().expect("unpoisoned") = Box::new(hook);
    }

    /// Changes what the authority answers from now on.
    pub fn changes(&self, change: impl FnMut(&str, &Value, String) -> String + Send + 'static) {
        *self.shared.change.lock().expect("unpoisoned") = Box::new(change);
    }

    /// How often a path that contains this was asked for.
    pub fn asked(&self, part: &str) -> usize {
        self.payloads(part).len()
    }

    /// What was sent to paths that contain this, in its order.
    pub fn payloads(&self, part: &str) -> Vec<Value> {
        let asked = self.shared.asked.lock().expect("unpoisoned");
        asked
            .iter()
            .filter(|(path, _)| path.contains(part))
            .map(|(_, payload)| payload.clone())
            .collect()
    }

    /// The path that contains this and was asked for last.
    pub fn last_path(&self, part: &str) -> Option<String> {
        let asked = self.shared.asked.lock().expect("unpoisoned");
        asked
            .iter()
            .rev()
            .find(|(path, _)| path.contains(part))
            .map(|(path, _)| path.clone())
    }
}

/// An answer that ends its connection.
pub fn answer(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One request of a connection.
fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    (authority, client): (SocketAddr, &Arc<ClientConfig>),
    shared: &Shared,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let request = request(&mut stream)?;
    let line = request.lines().next().unwrap_or_default().to_owned();
    let mut words = line.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let payload = payload(&request).unwrap_or_default();
    shared
        .asked
        .lock()
        .expect("unpoisoned")
        .push((path.to_owned(), payload.clone()));
    let own = (shared.hook.lock().expect("unpoisoned"))(method, path);
    let answer = match own {
        Some(answer) => answer,
        None => {
            let said = pass_on(&request, authority, client)?;
            match String::from_utf8(said) {
                Ok(said) => {
                    (shared.change.lock().expect("unpoisoned"))(path, &payload, said).into_bytes()
                }
                Err(other) => other.into_bytes(),
            }
        }
    };
    stream.write_all(&answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// What a signed request says (RFC 7515 section 7.2.2).
fn payload(request: &str) -> Option<Value> {
    let (_, body) = request.split_once("\r\n\r\n")?;
    let signed: Value = serde_json::from_str(body).ok()?;
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(signed["payload"].as_str()?)
        .ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// A head with its body, as text.
fn request(stream: &mut impl Read) -> io::Result<String> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    text.extend(body);
    String::from_utf8(text).map_err(io::Error::other)
}

/// The authority builds its URLs from the Host field, which stays.
fn pass_on(
    request: &str,
    authority: SocketAddr,
    client: &Arc<ClientConfig>,
) -> io::Result<Vec<u8>> {
    let mut connection = TlsConnection::open(authority, "127.0.0.1", client)?;
    connection.send(&request.replacen("\r\n", "\r\nConnection: close\r\n", 1));
    connection.rest()
}
