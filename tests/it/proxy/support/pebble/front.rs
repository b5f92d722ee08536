//! A front for an authority that says what a test wants, and passes everything else on.

use crate::proxy::support::{Authority, PATIENCE, TlsConnection};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// Says what to answer to a request, by its method and path; `None` passes it on.
type Hook = Box<dyn FnMut(&str, &str) -> Option<Vec<u8>> + Send>;

/// A server in front of an authority.
pub struct Front {
    pub address: SocketAddr,
    hook: Arc<Mutex<Hook>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Front {
    /// In front of an authority that listens there, with its certificate.
    pub fn of(authority: SocketAddr, transport: &Authority, files: &Path) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let chain = CertificateDer::pem_file_iter(files.join("pebble.pem")).expect("a chain");
        let chain = chain.collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(files.join("pebble.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("a version")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate");
        let (config, client) = (Arc::new(config), transport.client(&["http/1.1"], &[&TLS13]));
        let hook: Arc<Mutex<Hook>> = Arc::new(Mutex::new(Box::new(|_, _| None)));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (of_thread, said) = (hook.clone(), asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, client, hook, said) = (config.clone(), client.clone(), of_thread.clone(), said.clone());
                // A client that goes away is none of the front's business.
                thread::spawn(move || drop(serve(stream, &config, (authority, &client), &hook, &said)));
            }
        });
        Front { address, hook, asked }
    }

    /// Answers so from now on.
    pub fn says(&self, hook: impl FnMut(&str, &str) -> Option<Vec<u8>> + Send + 'static) {
        *self.hook.lock().expect("unpoisoned") = Box::new(hook);
    }

    /// How often a path that contains this was asked for.
    pub fn asked(&self, part: &str) -> usize {
        self.asked.lock().expect("unpoisoned").iter().filter(|path| path.contains(part)).count()
    }
}

/// An answer that ends its connection.
pub fn answer(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// One request of a connection.
fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    (authority, client): (SocketAddr, &Arc<ClientConfig>),
    hook: &Mutex<Hook>,
    asked: &Mutex<Vec<String>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let request = request(&mut stream)?;
    let line = request.lines().next().unwrap_or_default().to_owned();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    asked.lock().expect("unpoisoned").push(path.to_owned());
    let own = (hook.lock().expect("unpoisoned"))(method, path);
    let answer = match own {
        Some(answer) => answer,
        None => pass_on(&request, authority, client)?,
    };
    stream.write_all(&answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// A head with its body, as text.
fn request(stream: &mut impl Read) -> io::Result<String> {
    let (mut text, mut octet) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut octet)?;
        text.push(octet[0]);
    }
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    text.extend(body);
    String::from_utf8(text).map_err(io::Error::other)
}

/// The authority builds its URLs from the Host field, which stays.
fn pass_on(request: &str, authority: SocketAddr, client: &Arc<ClientConfig>) -> io::Result<Vec<u8>> {
    let mut connection = TlsConnection::open(authority, "127.0.0.1", client)?;
    connection.send(&request.replacen("\r\n", "\r\nConnection: close\r\n", 1));
    connection.rest()
}
