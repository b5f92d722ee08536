//! Servers that are given by name: their addresses change, and their name server hangs.

use crate::proxy::support::dns::{Dns, Record, Reply};
use crate::proxy::support::{Gate, HOST, Origin, Setup, eventually};
use std::io::Write;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex};

const NAME: &str = "app.test";
const LOST: &str = "crawlgate_upstream_failures_total{reason=\"dns\"}";

fn ip(last: u8) -> IpAddr {
    [127, 0, 0, last].into()
}

/// Two addresses with one port; nothing listens there yet.
fn two_listeners() -> [TcpListener; 2] {
    loop {
        let one = TcpListener::bind((ip(1), 0)).expect("a free port");
        // The port may be taken at the other address.
        if let Ok(two) = TcpListener::bind((ip(2), one.local_addr().expect("its address").port())) {
            return [one, two];
        }
    }
}

fn saying(listener: TcpListener, word: &'static str) -> Origin {
    Origin::on(listener, move |_, stream| {
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{word}",
            word.len()
        )
        .is_ok()
    })
}

/// A name server with an answer that can be changed.
fn name_server(reply: Reply) -> (Dns, Arc<Mutex<Reply>>) {
    let reply = Arc::new(Mutex::new(reply));
    let said = reply.clone();
    let answer = move |name: &str| match name {
        NAME => said.lock().expect("nobody panics while writing").clone(),
        _ => Reply::NxDomain,
    };
    (Dns::start(answer), reply)
}

fn say(to: &Mutex<Reply>, reply: Reply) {
    *to.lock().expect("nobody panics while writing") = reply;
}

fn gate(direct: &str, dns: &Dns, port: u16) -> Gate {
    let origins = format!(
        "origins: {{ servers: 'http://{NAME}:{port}', resolvers: ['{}'] }}",
        dns.address
    );
    Setup::before("")
        .with_origins(&origins)
        .settings(&format!("direct_forwarding: {direct}"))
        .start()
}

#[test]
fn changed_address_is_used_and_survives_a_hanging_dns() {
    ["on", "off"].into_iter().for_each(changed_address_is_used);
}

fn changed_address_is_used(direct: &str) {
    let [one, two] = two_listeners();
    let port = one.local_addr().expect("its address").port();
    let (old, new) = (saying(one, "old"), saying(two, "new"));
    let (dns, reply) = name_server(Reply::For(1, vec![Record::Address(ip(1))]));
    let gate = gate(direct, &dns, port);
    assert_eq!(gate.get(HOST, "/", "").text(), "old");
    eventually("robots.txt is asked for where the name leads to", || {
        old.was_asked_for_robots_txt().then_some(())
    });
    say(&reply, Reply::For(5, vec![Record::Address(ip(2))]));
    eventually("the new address", || {
        (gate.get(HOST, "/", "").text() == "new").then_some(())
    });
    let before = old.received().len();
    say(&reply, Reply::Silence);
    eventually("the name server hangs", || {
        crate::proxy::support::sum_of(&gate.metrics(), LOST)
    });
    assert_eq!(
        gate.get(HOST, "/", "").text(),
        "new",
        "the last good answer stays"
    );
    assert_eq!(
        (old.received().len(), new.received().is_empty()),
        (before, false)
    );
}

#[test]
fn name_of_a_server_that_fails_is_looked_up_before_its_time() {
    let [one, two] = two_listeners();
    let port = one.local_addr().expect("its address").port();
    drop(one);
    let _new = saying(two, "new");
    // This answer counts for five minutes.
    let (dns, reply) = name_server(Reply::Records(vec![Record::Address(ip(1))]));
    let gate = gate("on", &dns, port);
    assert_eq!(gate.get(HOST, "/", "").status, 502);
    say(&reply, Reply::Records(vec![Record::Address(ip(2))]));
    eventually("the new address", || {
        (gate.get(HOST, "/", "").status == 200).then_some(())
    });
}

#[test]
fn name_that_comes_late_gets_requests_then() {
    let origin = Origin::plain();
    let (dns, reply) = name_server(Reply::NxDomain);
    let gate = gate("on", &dns, origin.address.port());
    assert_eq!(gate.get(HOST, "/", "").status, 502);
    say(&reply, Reply::Records(vec![Record::Address(ip(1))]));
    eventually("an address", || {
        (gate.get(HOST, "/", "").status == 200).then_some(())
    });
}
