//! What the edge holds up against: how soon a client is answered while others are idle or slow, and
//! what TLS costs beside nginx. `cargo bench --bench edge`, with `ulimit -n 10000` or more. Prints
//! two tables; the ratios in them count.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const IDLE: usize = 2_000;
const SLOW: usize = 500;
const REQUESTS: usize = 5_000;
const HANDSHAKES: usize = 1_000;
const IDLE_TLS: usize = 500;

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(directory.path().join("a.pem"), cert.pem()).expect("written");
    fs::write(directory.path().join("a.key"), signing_key.serialize_pem()).expect("written");
    let gate = Gate::start(directory.path(), origin());
    let alone = latencies(gate.plain);
    let beside = beside_idle_and_slow(gate.plain);
    println!("a client's requests         p50 us    p99 us");
    for (what, of) in [("alone", &alone), ("beside idle and slow", &beside)] {
        println!(
            "{what:<26} {:>8} {:>9}",
            of[of.len() / 2].as_micros(),
            of[of.len() * 99 / 100].as_micros()
        );
    }
    println!(
        "ratio of p99: {:.2}",
        percentile(&beside).as_secs_f64() / percentile(&alone).as_secs_f64()
    );
    drop(gate);
    // New ones: memory that others have given back would serve the idle connections.
    let (gate, nginx) = (
        Gate::start(directory.path(), origin()),
        Nginx::start(directory.path()),
    );
    println!("\nTLS                        processor us a handshake    KiB an idle connection");
    for (what, pid, address) in [
        ("crawlgate", gate.child.id(), gate.tls),
        ("nginx", nginx.child.id(), nginx.address),
    ] {
        let (handshake, memory) = tls(pid, address);
        println!("{what:<26} {handshake:>24.0} {memory:>25.1}");
    }
}

fn percentile(latencies: &[Duration]) -> Duration {
    latencies[latencies.len() * 99 / 100]
}

/// Answers every request at once.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
                    if line == "\r\n"
                        && stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                            .is_err()
                    {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

struct Gate {
    child: Child,
    plain: SocketAddr,
    tls: SocketAddr,
}

impl Gate {
    fn start(directory: &Path, origin: SocketAddr) -> Gate {
        let (settings, root) = (directory.join("crawlgate.yaml"), directory.display());
        let text = format!(
            "listen: [127.0.0.1:0, {{ address: 127.0.0.1:0, tls: {{ certificates: {{ cert: {root}/a.pem, key: {root}/a.key }} }} }}]\n\
             origins: http://{origin}\nadmin: off\ncontrol: off\nstate: off\nthreads: 1\n\
             limits: {{ connections: 20000, connections_per_address: 20000, head: 10m, idle: 10m }}\n"
        );
        fs::write(&settings, text).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawlgate"));
        let mut child = command
            .args(["run", "--config"])
            .arg(&settings)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("crawlgate");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"))
            .lines()
            .map_while(Result::ok);
        let mut next = || {
            let line = lines.next().expect("where it listens");
            line.rsplit('/')
                .next()
                .expect("a URL")
                .parse()
                .expect("an address")
        };
        let (plain, tls) = (next(), next());
        Gate { child, plain, tls }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    fn start(directory: &Path) -> Nginx {
        let (address, root) = (
            TcpListener::bind("127.0.0.1:0")
                .and_then(|one| one.local_addr())
                .expect("a port"),
            directory.display(),
        );
        let text = format!(
            "daemon off; master_process off; pid {root}/pid; error_log stderr error;\nevents {{ worker_connections 4096; }}\n\
             http {{ access_log off; ssl_certificate {root}/a.pem; ssl_certificate_key {root}/a.key; ssl_session_cache off;\n\
             keepalive_timeout 600s; client_body_temp_path {root}; proxy_temp_path {root}; fastcgi_temp_path {root};\n\
             uwsgi_temp_path {root}; scgi_temp_path {root}; server {{ listen {address} ssl; return 200 ok; }} }}\n"
        );
        fs::write(directory.join("nginx.conf"), text).expect("written");
        let child = Command::new("nginx")
            .arg("-c")
            .arg(directory.join("nginx.conf"))
            .arg("-e")
            .arg("stderr")
            .spawn()
            .expect("nginx");
        while TcpStream::connect(address).is_err() {
            thread::yield_now();
        }
        Nginx { child, address }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long each of a client's requests takes, sorted.
fn latencies(address: SocketAddr) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let mut answer = [0; 1024];
    let mut taken: Vec<Duration> = (0..REQUESTS)
        .map(|_| {
            let began = Instant::now();
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
                .expect("written");
            let mut count = 0;
            while !answer[..count].ends_with(b"\r\n\r\nok") {
                count += stream.read(&mut answer[count..]).expect("an answer");
            }
            began.elapsed()
        })
        .collect();
    taken.sort();
    taken
}

fn beside_idle_and_slow(address: SocketAddr) -> Vec<Duration> {
    let open = |count| -> Vec<TcpStream> {
        (0..count)
            .map(|_| {
                TcpStream::connect(address).expect("files for the connections: ulimit -n 10000")
            })
            .collect()
    };
    let _idle = open(IDLE);
    let mut slow = open(SLOW);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut head = b"GET / HTTP/1.1\r\nX-Slow: "
                .iter()
                .chain([&b'a'; 1].into_iter().cycle());
            while !over.load(Ordering::Relaxed) {
                let byte = [*head.next().expect("an endless head")];
                for stream in &mut slow {
                    let _ = stream.write_all(&byte);
                }
                thread::sleep(Duration::from_millis(200));
            }
        });
        let taken = latencies(address);
        over.store(true, Ordering::Relaxed);
        taken
    })
}

/// Processor time of a handshake in microseconds, and memory of an idle connection in KiB.
fn tls(pid: u32, address: SocketAddr) -> (f64, f64) {
    let config = Arc::new(client());
    let connect = || {
        let connection = ClientConnection::new(
            config.clone(),
            ServerName::try_from("localhost").expect("a name"),
        )
        .expect("a client");
        let mut stream = StreamOwned::new(
            connection,
            TcpStream::connect(address).expect("a connection"),
        );
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .expect("written");
        assert!(stream.read(&mut [0; 1024]).expect("an answer") > 0);
        stream
    };
    drop(connect());
    let before = resident(pid);
    let open: Vec<_> = (0..IDLE_TLS).map(|_| connect()).collect();
    let memory = resident(pid).saturating_sub(before) as f64 / open.len() as f64;
    drop(open);
    let before = processor_time(pid);
    (0..HANDSHAKES).for_each(|_| drop(connect()));
    let handshake = (processor_time(pid) - before).as_secs_f64() * 1e6 / HANDSHAKES as f64;
    (handshake, memory)
}

fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("its state");
    let fields: Vec<u64> = stat
        .rsplit(") ")
        .next()
        .expect("fields")
        .split(' ')
        .filter_map(|field| field.parse().ok())
        .collect();
    // After the state: utime and stime are the 11th and 12th numbers, in hundredths of a second.
    Duration::from_millis((fields[10] + fields[11]) * 10)
}

fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("its state");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("KiB")
}

/// A client that believes every certificate, and takes up no session.
fn client() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config
}

#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
