//! Servers that speak TLS: which authorities are trusted, for which name, what servers that ask are
//! shown, and that sessions resume.

use crate::proxy::support::{Authority, Gate, HOST, PATIENCE, Setup, eventually, sum_of};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

const WAYS: [&str; 2] = ["on", "off"];

/// A request as a server got it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    target: String,
    is_resumed: bool,
    has_client_certificate: bool,
}

/// A server that speaks TLS and closes each connection after one response.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// With the certificate `NAME.pem` of a directory. Where there are clients, it asks for a
    /// certificate of theirs.
    fn start(directory: &Path, name: &str, clients: Option<&Authority>) -> Server {
        let chain =
            CertificateDer::pem_file_iter(directory.join(format!("{name}.pem"))).expect("a file");
        let chain = chain.collect::<Result<_, _>>().expect("certificates");
        let key =
            PrivateKeyDer::from_pem_file(directory.join(format!("{name}.key"))).expect("a key");
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions();
        let builder = builder.expect("versions");
        let builder = match clients {
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                let pem = authority.pem();
                roots
                    .add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate"))
                    .expect("a root");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.expect("a verifier"))
            }
            None => builder.with_no_client_auth(),
        };
        let config = Arc::new(
            builder
                .with_single_cert(chain, key)
                .expect("a certificate with its key"),
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (address, seen) = (
            listener.local_addr().expect("its address"),
            Arc::new(Mutex::new(Vec::new())),
        );
        let log = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, log) = (config.clone(), log.clone());
                thread::spawn(move || serve(stream, config, &log));
            }
        });
        Server { address, seen }
    }

    /// The requests of clients.
    fn seen(&self) -> Vec<Seen> {
        let seen = self
            .seen
            .lock()
            .expect("nobody panics while writing")
            .clone();
        seen.into_iter()
            .filter(|seen| seen.target != "/robots.txt")
            .collect()
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, log: &Mutex<Vec<Seen>>) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let mut lines = BufReader::new(&mut stream).lines();
    let target = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    while !lines.next()?.ok()?.is_empty() {}
    drop(lines);
    let is_resumed = stream.conn.handshake_kind() == Some(HandshakeKind::Resumed);
    let has_client_certificate = stream.conn.peer_certificates().is_some();
    let body = if target == "/robots.txt" {
        "User-agent: *\nDisallow: /theirs/\n"
    } else {
        "ok"
    };
    log.lock().ok()?.push(Seen {
        target,
        is_resumed,
        has_client_certificate,
    });
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Before this server, with these lines of `tls`. Its files are in the directory of the settings.
fn setup(direct: &str, url: &str, tls: &str) -> Setup {
    let origins = format!("origins: {{ servers: [\"{url}\"], tls: {{ {tls} }} }}");
    Setup::before("")
        .with_origins(&origins)
        .settings(&format!("direct_forwarding: {direct}\nthreads: 1"))
}

fn directory(setup: &Setup) -> std::path::PathBuf {
    setup
        .policies()
        .parent()
        .expect("the directory of the settings")
        .to_owned()
}

fn status(gate: &Gate) -> u16 {
    gate.get(HOST, "/page", "").status
}

#[test]
fn host_that_servers_want_is_the_name_in_their_certificates() {
    for direct in WAYS {
        for (host, name, expected) in [
            ("app.example:8443", "", 200),
            ("a.example", "", 502),
            ("a.example", "app.example", 200),
        ] {
            let authority = Authority::new();
            let setup = setup(direct, "", "");
            let directory = directory(&setup);
            authority.certify(&directory, "server", &["app.example"], 2060);
            std::fs::write(directory.join("ca.pem"), authority.pem()).expect("written");
            let server = Server::start(&directory, "server", None);
            let name = if name.is_empty() {
                String::new()
            } else {
                format!(", server_name: {name}")
            };
            let gate = setup
                .with_origins(&format!(
                    "origins: {{ servers: ['https://{}'], host: {host}, tls: {{ ca: ca.pem{name} }} }}",
                    server.address
                ))
                .start();
            assert_eq!(status(&gate), expected, "{direct}, {host}");
            let published = gate
                .get(HOST, "/robots.txt", "")
                .text()
                .contains("Disallow: /theirs/");
            assert_eq!(published, expected == 200, "{direct}, {host}");
        }
    }
}

#[test]
fn own_authority_vouches_for_server_and_no_other_does() {
    for direct in WAYS {
        let (ours, theirs) = (Authority::new(), Authority::new());
        for (name, authority, host, until, expected) in [
            ("ours", &ours, "127.0.0.1", 2060, 200),
            ("theirs", &theirs, "127.0.0.1", 2060, 502),
            ("expired", &ours, "127.0.0.1", 2010, 502),
            ("another name", &ours, "app.internal", 2060, 502),
        ] {
            let files = tempfile::tempdir().expect("a directory");
            authority.certify(files.path(), "server", &[host], until);
            let server = Server::start(files.path(), "server", None);
            let setup = setup(direct, &format!("https://{}", server.address), "ca: ca.pem");
            std::fs::write(directory(&setup).join("ca.pem"), ours.pem()).expect("a file");
            let gate = setup.start();
            assert_eq!(
                status(&gate),
                expected,
                "{name}, direct_forwarding: {direct}"
            );
            assert_eq!(
                server.seen().len(),
                usize::from(expected == 200),
                "{name}, direct_forwarding: {direct}"
            );
            let failures = sum_of(
                &gate.metrics(),
                "crawlgate_upstream_failures_total{reason=\"tls\"}",
            );
            assert_eq!(
                failures.unwrap_or_default() > 0.0,
                expected == 502,
                "{name}, direct_forwarding: {direct}"
            );
        }
    }
}

#[test]
fn refused_certificate_costs_no_request() {
    for direct in WAYS {
        let (ours, theirs) = (Authority::new(), Authority::new());
        for (authority, until) in [(&theirs, 2060), (&ours, 2010)] {
            let files = tempfile::tempdir().expect("a directory");
            authority.certify(files.path(), "bad", &["127.0.0.1"], until);
            ours.certify(files.path(), "good", &["127.0.0.1"], 2060);
            let [bad, good] = ["bad", "good"].map(|name| Server::start(files.path(), name, None));
            let urls = format!("https://{}\", \"https://{}", bad.address, good.address);
            let setup = setup(direct, &urls, "ca: ca.pem");
            std::fs::write(directory(&setup).join("ca.pem"), ours.pem()).expect("a file");
            let gate = setup.start();
            (0..4).for_each(|_| {
                assert_eq!(
                    gate.ask("DELETE", HOST, "/page", "").status,
                    200,
                    "direct_forwarding: {direct}"
                )
            });
            assert_eq!(
                (bad.seen().len(), good.seen().len()),
                (0, 4),
                "direct_forwarding: {direct}"
            );
            let retries = sum_of(
                &gate.metrics(),
                "crawlgate_upstream_retries_total{reason=\"tls\"}",
            );
            assert!(
                retries >= Some(2.0),
                "direct_forwarding: {direct}: {retries:?}"
            );
        }
    }
}

#[test]
fn server_name_is_the_one_that_is_verified() {
    for direct in WAYS {
        let authority = Authority::new();
        let files = tempfile::tempdir().expect("a directory");
        authority.certify(files.path(), "server", &["app.internal"], 2060);
        let server = Server::start(files.path(), "server", None);
        let tls = "ca: ca.pem, server_name: app.internal";
        let setup = setup(direct, &format!("https://{}", server.address), tls).policy(
            "site",
            "robots: { origin: merge, groups: { agents: '*', disallow: /ours/ } }\n",
        );
        std::fs::write(directory(&setup).join("ca.pem"), authority.pem()).expect("a file");
        let gate = setup.start();
        assert_eq!(status(&gate), 200, "direct_forwarding: {direct}");
        eventually("the origin's rules, fetched over the same TLS", || {
            let answer = gate.get(HOST, "/robots.txt", "");
            (answer.status == 200 && answer.text().contains("/theirs/")).then_some(())
        });
    }
}

#[test]
fn server_that_asks_is_shown_the_client_certificate() {
    for direct in WAYS {
        let (authority, other) = (Authority::new(), Authority::new());
        let files = tempfile::tempdir().expect("a directory");
        authority.certify(files.path(), "server", &["127.0.0.1"], 2060);
        let server = Server::start(files.path(), "server", Some(&authority));
        let given = "ca: ca.pem, client: { cert: client.pem, key: client.key }";
        for (tls, issuer, expected) in [
            (given, &authority, 200),
            (given, &other, 502),
            ("ca: ca.pem", &authority, 502),
        ] {
            let setup = setup(direct, &format!("https://{}", server.address), tls);
            std::fs::write(directory(&setup).join("ca.pem"), authority.pem()).expect("a file");
            issuer.certify(&directory(&setup), "client", &["crawlgate.internal"], 2060);
            assert_eq!(
                status(&setup.start()),
                expected,
                "{tls}, direct_forwarding: {direct}"
            );
        }
        let seen = server.seen();
        assert!(
            seen.len() == 1 && seen[0].has_client_certificate,
            "direct_forwarding: {direct}: {seen:?}"
        );
    }
}

#[test]
fn sessions_resume_on_new_connections_of_the_forwarder() {
    let authority = Authority::new();
    let files = tempfile::tempdir().expect("a directory");
    authority.certify(files.path(), "server", &["127.0.0.1"], 2060);
    let server = Server::start(files.path(), "server", None);
    let setup = setup("on", &format!("https://{}", server.address), "ca: ca.pem");
    std::fs::write(directory(&setup).join("ca.pem"), authority.pem()).expect("a file");
    let gate = setup.start();
    (0..3).for_each(|_| assert_eq!(status(&gate), 200));
    let resumed: Vec<bool> = server.seen().iter().map(|seen| seen.is_resumed).collect();
    assert_eq!(resumed, [false, true, true]);
}

#[test]
fn changed_files_are_taken_without_a_restart() {
    for direct in WAYS {
        let (authority, other) = (Authority::new(), Authority::new());
        let files = tempfile::tempdir().expect("a directory");
        authority.certify(files.path(), "server", &["127.0.0.1"], 2060);
        let server = Server::start(files.path(), "server", Some(&authority));
        let tls = "ca: ca.pem, client: { cert: client.pem, key: client.key }";
        let setup = setup(direct, &format!("https://{}", server.address), tls);
        let directory = directory(&setup);
        let certify = |issuer: &Authority| {
            std::fs::write(directory.join("ca.pem"), issuer.pem()).expect("a file");
            issuer.certify(&directory, "client", &["crawlgate.internal"], 2060);
        };
        certify(&other);
        let gate = setup.start();
        assert_eq!(status(&gate), 502, "direct_forwarding: {direct}");
        certify(&authority);
        gate.signal("HUP");
        eventually("the renewed files", || (status(&gate) == 200).then_some(()));
        // The key of a renewal that is not whole yet.
        std::fs::write(directory.join("client.key"), "no key").expect("a file");
        gate.signal("HUP");
        let said = eventually("the refusal", || {
            let said = String::from_utf8(gate.command(&["status"]).stdout).expect("text");
            said.contains("(certificate)").then_some(said)
        });
        assert!(said.contains("client.key"), "{said}");
        assert_eq!(
            status(&gate),
            200,
            "the former files stay in use, direct_forwarding: {direct}"
        );
        certify(&authority);
        gate.signal("HUP");
        eventually("no problem any more", || {
            let said = String::from_utf8(gate.command(&["status"]).stdout).expect("text");
            (!said.contains("(certificate)")).then_some(())
        });
        assert_eq!(status(&gate), 200, "direct_forwarding: {direct}");
    }
}

#[test]
fn file_that_cannot_be_used_is_an_error_in_its_place() {
    let authority = Authority::new();
    for (tls, column) in [
        ("ca: missing.pem", 57),
        ("ca: one.key", 57),
        ("ca: one.pem, client: { cert: one.pem, key: two.key }", 96),
        ("ca: one.pem, client: { cert: one.pem, key: one.pem }", 96),
    ] {
        let setup = setup("on", "https://127.0.0.1:1", tls);
        authority.certify(&directory(&setup), "one", &["a.example"], 2060);
        authority.certify(&directory(&setup), "two", &["b.example"], 2060);
        let (said, code) = setup.fail();
        assert!(
            !code.success() && said.contains("bad-file"),
            "{tls}: {said}"
        );
        assert!(
            said.contains(&format!("crawlgate.yaml:2:{column}")),
            "{tls}: {said}"
        );
    }
}
