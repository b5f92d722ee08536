//! A DNS server of the tests' own, on loopback, over UDP and TCP: it says what a test wants it to
//! say.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A record of an answer: its owner is the name that was asked for, or that the record before
/// points to.
#[derive(Clone, Debug)]
pub enum Record {
    Ptr(String),
    Cname(String),
    Address(IpAddr),
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Reply {
    Records(Vec<Record>),
    /// The same, for so many seconds. All others count for 300.
    For(u8, Vec<Record>),
    /// Cut off over UDP, whole over TCP.
    Truncated(Vec<Record>),
    NxDomain,
    ServFail,
    /// No answer at all.
    Silence,
    /// So much later.
    Late(Duration, Vec<Record>),
}

/// A running server; its threads end with the test's process.
pub struct Dns {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

type Answers = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

impl Dns {
    /// Answers each question by its name, in lower case and without the last dot:
    /// `7.113.0.203.in-addr.arpa`.
    pub fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Dns {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            // The port may be taken for the other protocol.
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("its address")) {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().expect("its address");
        let (asked, answer): (Arc<Mutex<Vec<String>>>, Answers) =
            (Arc::default(), Arc::new(answer));
        let udp = Arc::new(udp);
        let (log, of_udp) = (asked.clone(), answer.clone());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((length, client)) = udp.recv_from(&mut buffer) {
                let (question, log, answer, udp) = (
                    buffer[..length].to_vec(),
                    log.clone(),
                    of_udp.clone(),
                    udp.clone(),
                );
                thread::spawn(move || {
                    if let Some(reply) = respond(&question, &*answer, &log, true) {
                        let _ = udp.send_to(&reply, client);
                    }
                });
            }
        });
        let log = asked.clone();
        thread::spawn(move || {
            for mut stream in tcp.incoming().map_while(Result::ok) {
                let (log, answer) = (log.clone(), answer.clone());
                thread::spawn(move || {
                    let mut length = [0; 2];
                    while stream.read_exact(&mut length).is_ok() {
                        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
                        if stream.read_exact(&mut question).is_err() {
                            return;
                        }
                        let Some(reply) = respond(&question, &*answer, &log, false) else {
                            return;
                        };
                        let length = u16::try_from(reply.len())
                            .expect("a short reply")
                            .to_be_bytes();
                        let _ = stream.write_all(&[&length[..], &reply].concat());
                    }
                });
            }
        });
        Dns { address, asked }
    }

    /// How often it was asked for a name.
    pub fn asked(&self, name: &str) -> usize {
        self.asked
            .lock()
            .expect("nobody panics while writing")
            .iter()
            .filter(|asked| *asked == name)
            .count()
    }

    /// How often it was asked for anything.
    pub fn questions(&self) -> usize {
        self.asked
            .lock()
            .expect("nobody panics while writing")
            .len()
    }
}

/// The name that stands for an address in reverse DNS.
pub fn reverse(address: &str) -> String {
    match address.parse().expect("an address") {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits: String = address
                .octets()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let labels: Vec<String> = digits.chars().rev().map(String::from).collect();
            format!("{}.ip6.arpa", labels.join("."))
        }
    }
}

fn respond(
    question: &[u8],
    answer: &(dyn Fn(&str) -> Reply + Send + Sync),
    log: &Mutex<Vec<String>>,
    is_udp: bool,
) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while let Some(length) = question.get(at).copied().filter(|length| *length > 0) {
        let label = question.get(at + 1..at + 1 + usize::from(length))?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        at += 1 + usize::from(length);
    }
    let name = labels.join(".");
    log.lock()
        .expect("nobody panics while writing")
        .push(name.clone());
    let asked = question.get(12..at + 5)?;
    let wanted = u16::from_be_bytes([*question.get(at + 1)?, *question.get(at + 2)?]);
    let mut ttl = [1, 44];
    let (code, truncated, records) = match answer(&name) {
        Reply::Records(records) => (0, false, records),
        Reply::For(seconds, records) => {
            ttl = [0, seconds];
            (0, false, records)
        }
        Reply::Truncated(records) if is_udp => (0, true, Vec::with_capacity(records.len())),
        Reply::Truncated(records) => (0, false, records),
        Reply::NxDomain => (3, false, Vec::new()),
        Reply::ServFail => (2, false, Vec::new()),
        Reply::Silence => return None,
        Reply::Late(time, records) => {
            thread::sleep(time);
            (0, false, records)
        }
    };
    let (mut body, mut count, mut owner) = (Vec::new(), 0u16, name);
    for record in records {
        let (kind, data, next) = match record {
            Record::Ptr(name) => (12, encoded(&name), None),
            Record::Cname(name) => (5, encoded(&name), Some(name)),
            Record::Address(IpAddr::V4(address)) => (1, address.octets().to_vec(), None),
            Record::Address(IpAddr::V6(address)) => (28, address.octets().to_vec(), None),
        };
        if u16::from(kind) != wanted && kind != 5u8 {
            continue;
        }
        count += 1;
        body.extend(encoded(&owner));
        body.extend([0, kind, 0, 1, 0, 0]);
        body.extend(ttl);
        body.extend(u16::try_from(data.len()).expect("short data").to_be_bytes());
        body.extend(data);
        owner = next.unwrap_or(owner);
    }
    let mut reply = question.get(..2)?.to_vec();
    reply.extend([0x81 | if truncated { 2 } else { 0 }, 0x80 | code, 0, 1]);
    reply.extend(count.to_be_bytes());
    reply.extend([0; 4]);
    reply.extend(asked);
    reply.extend(body);
    Some(reply)
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("a short label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
