//! Requests with bodies in the forwarder, against origins and clients that do not wait for each other.

use crate::proxy::support::{Connection, Gate, Origin, PATIENCE, Setup, eventually, read};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// An origin that reads a head, and does with the connection what `serve` does. The connection ends
/// with it.
fn origin(serve: impl Fn(&str, &mut BufReader<TcpStream>) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || {
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let mut stream = BufReader::new(stream);
                let Some(head) = head(&mut stream) else {
                    return;
                };
                if head
                    .to_ascii_lowercase()
                    .contains("\r\nuser-agent: crawlgate/")
                {
                    let _ = stream
                        .get_mut()
                        .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
                } else {
                    serve(&head, &mut stream);
                }
            });
        }
    });
    address
}

fn head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        match stream.read_line(&mut head) {
            Ok(1..) if head.ends_with("\r\n\r\n") => return Some(head),
            Ok(1..) => {}
            Ok(0) | Err(_) => return None,
        }
    }
}

/// What comes until the connection ends.
fn rest(stream: &mut BufReader<TcpStream>) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn post(framing: &str) -> String {
    format!("POST /form HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n\r\n")
}

fn ask(gate: &Gate, request: &str) -> Connection {
    let mut connection = gate.connect();
    connection.send(request);
    connection
}

/// Bytes in chunks of many sizes.
fn chunked(body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest, mut size) = (Vec::new(), body, 1);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        bytes.extend(format!("{:x};a=b\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
        (rest, size) = (after, size * 3 % 30_011);
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

#[test]
fn bodies_of_every_size_reach_the_origin_as_they_are() {
    let origin = Origin::start(|request, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            request.body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&request.body))
            .is_ok()
    });
    let gate = Setup::before(origin.address).start();
    let mut connection = gate.connect();
    for (method, size) in [
        ("POST", 1),
        ("PUT", 5),
        ("PATCH", 4_000),
        ("DELETE", 16_384),
        ("GET", 70_001),
        ("PROPFIND", 3_000_000),
    ] {
        let body: Vec<u8> = (0..size).map(|place: usize| (place % 251) as u8).collect();
        for (framing, bytes) in [
            (format!("Content-Length: {size}"), body.clone()),
            ("Transfer-Encoding: Chunked".to_owned(), chunked(&body)),
        ] {
            let head = format!("{method} / HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n\r\n");
            connection.send_bytes(&[head.as_bytes(), &bytes].concat());
            let response = connection.response(method);
            assert!(
                response.status == 200 && response.body == body,
                "{method}, {framing}: {}",
                response.body.len()
            );
            let asked = origin.last();
            assert_eq!(
                asked.field("content-length").is_some(),
                framing.starts_with("Content"),
                "{framing}"
            );
            let coding = (!framing.starts_with("Content")).then_some("chunked");
            assert_eq!(asked.field("transfer-encoding"), coding, "{framing}");
        }
    }
}

#[test]
fn both_directions_move_at_the_same_time() {
    // Each piece comes back before the next one is sent.
    let origin = origin(|_, stream| {
        let _ = stream
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|count| count > 0) && line != "0\r\n" {
            let mut data = String::new();
            let _ = stream.read_line(&mut data);
            let _ = stream
                .get_mut()
                .write_all(format!("{line}{data}").as_bytes());
            line.clear();
        }
        let _ = stream.get_mut().write_all(b"0\r\n\r\n");
    });
    let gate = Setup::before(origin).start();
    let mut connection = ask(&gate, &post("Transfer-Encoding: chunked"));
    assert_eq!(connection.head().status, 200);
    for piece in ["3\r\none\r\n", "3\r\ntwo\r\n", "5\r\nthree\r\n"] {
        connection.send(piece);
        assert_eq!(connection.bytes(piece.len()), piece.as_bytes());
    }
    connection.send("0\r\n\r\n");
    assert_eq!(connection.bytes(5), b"0\r\n\r\n");
}

#[test]
fn answer_before_a_short_rest_of_the_body_keeps_the_connection() {
    let (seen, came) = channel();
    let seen = Mutex::new(seen);
    let origin = origin(move |head, stream| {
        let _ = stream.get_mut().write_all(OK.as_bytes());
        let _ = seen
            .lock()
            .expect("nobody panics while sending")
            .send(head.to_owned());
    });
    let gate = Setup::before(origin).start();
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut connection = ask(&gate, &post(&format!("Content-Length: {}", smuggled.len())));
    let response = connection.response("POST");
    assert_eq!(
        (response.text(), response.field("connection")),
        ("ok", Some("keep-alive"))
    );
    connection.send(&smuggled[..20]);
    connection.send(&smuggled[20..]);
    connection.send(GET);
    assert_eq!(connection.response("GET").text(), "ok");
    let heads: Vec<String> = (0..2)
        .map(|_| came.recv_timeout(PATIENCE).expect("a request"))
        .collect();
    assert!(
        heads[0].starts_with("POST /form ") && heads[1].starts_with("GET /next "),
        "{heads:?}"
    );
}

#[test]
fn answer_before_a_long_body_arrives_and_closes() {
    let origin = origin(|_, stream| {
        let _ = stream.get_mut().write_all(OK.as_bytes());
    });
    let gate = Setup::before(origin).start();
    for (framing, begin) in [
        ("Content-Length: 900000", ""),
        ("Transfer-Encoding: chunked", "80000\r\n"),
    ] {
        let mut connection = ask(&gate, &format!("{}{begin}", post(framing)));
        connection.try_send_bytes(&GET.repeat(12_000).into_bytes()[..400_000]);
        let response = connection.response("POST");
        assert_eq!(
            (response.text(), response.field("connection")),
            ("ok", Some("close")),
            "{framing}"
        );
        connection.try_finish_sending();
        assert!(connection.is_closed(), "{framing}");
    }
}

#[test]
fn answer_of_an_origin_that_closes_early_is_forwarded() {
    let origin = origin(|_, stream| {
        let _ = stream.get_mut().write_all(
            b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
        );
    });
    let gate = Setup::before(origin).start();
    for _ in 0..20 {
        let mut connection = ask(&gate, &post("Content-Length: 5000000"));
        for _ in 0..16 {
            connection.try_send_bytes(&[b'x'; 65_536]);
        }
        let response = connection.response("POST");
        assert_eq!((response.status, response.text()), (403, "no"));
    }
}

#[test]
fn origin_that_closes_without_an_answer_is_502() {
    let origin = origin(|_, stream| {
        let _ = stream.read_exact(&mut [0; 10]);
    });
    let gate = Setup::before(origin).start();
    let mut connection = ask(&gate, &post("Content-Length: 5000000"));
    for _ in 0..16 {
        connection.try_send_bytes(&[b'x'; 65_536]);
    }
    assert_eq!(connection.response("POST").status, 502);
}

#[test]
fn body_that_breaks_off_is_never_whole_for_the_origin() {
    let (seen, came) = channel();
    let seen = Mutex::new(seen);
    let origin = origin(move |_, stream| {
        let seen = seen.lock().expect("nobody panics while sending").clone();
        let _ = seen.send(String::from("begun"));
        let _ = seen.send(rest(stream));
    });
    let began = |gate: &Gate| {
        let connection = ask(gate, &post("Transfer-Encoding: chunked"));
        assert_eq!(came.recv_timeout(PATIENCE).as_deref(), Ok("begun"));
        connection
    };
    let settings = "limits: { body: 1KiB, stall: 300ms }\nlogs: { access: access.log }";
    let gate = Setup::before(origin).settings(settings).start();
    let large = format!("401\r\n{}\r\n0\r\n\r\n", "x".repeat(1025));
    for (body, status) in [
        ("5\r\nhello\r\n", 408),
        ("5\r\nhello\r\n5 \r\nhello\r\n0\r\n\r\n", 400),
        ("5\r\nhello\r\n-1\r\n\r\n0\r\n\r\n", 400),
        ("5\r\nhello\r\n5\nhello\n0\n\n", 400),
        ("5\r\nhello\r\n0\r\nno colon\r\n\r\n", 400),
        ("5\r\nhello\r\n0\r\n folded\r\n\r\n", 400),
        (&large, 413),
    ] {
        let mut connection = began(&gate);
        connection.send(body);
        let response = connection.response("POST");
        assert_eq!(
            (response.status, response.field("connection")),
            (status, Some("close")),
            "{body:?}"
        );
        let rest = came
            .recv_timeout(PATIENCE)
            .expect("the end of the connection");
        assert!(!rest.contains("0\r\n\r\n"), "{body:?}: {rest:?}");
    }
    // The client leaves.
    for body in ["5\r\nhello\r\n", "5\r\nhel"] {
        let mut connection = began(&gate);
        connection.send(body);
        drop(connection);
        let rest = came
            .recv_timeout(PATIENCE)
            .expect("the end of the connection");
        assert!(!rest.contains("0\r\n\r\n"), "{body:?}: {rest:?}");
    }
    eventually("each request in the access log", || {
        (read(&gate.path("access.log"))
            .matches("\"target\":\"/form\"")
            .count()
            == 9)
            .then_some(())
    });
}

#[test]
fn client_still_sending_gets_413() {
    let origin = Origin::plain();
    let gate = Setup::before(origin.address)
        .settings("limits: { body: 100KiB }")
        .start();
    let mut connection = ask(&gate, &post("Transfer-Encoding: chunked"));
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    for _ in 0..12 {
        connection.try_send(&chunk);
    }
    assert_eq!(connection.response("POST").status, 413);
    assert!(
        origin.received().is_empty(),
        "the origin never had a whole request"
    );
}

#[test]
fn client_gets_the_origins_100_once() {
    let origin = origin(|head, stream| {
        assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
        let _ = stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        let _ = stream.read_exact(&mut [0; 5]);
        let _ = stream.get_mut().write_all(OK.as_bytes());
    });
    let gate = Setup::before(origin).start();
    let mut connection = ask(&gate, &post("Content-Length: 5\r\nExpect: 100-continue"));
    assert_eq!(connection.response("POST").status, 100);
    connection.send("hello");
    let response = connection.response("POST");
    assert_eq!(
        (response.text(), response.field("connection")),
        ("ok", Some("keep-alive"))
    );
}

#[test]
fn client_gets_100_continue_when_the_origin_is_silent() {
    let origin = origin(|_, stream| {
        let _ = stream.read_exact(&mut [0; 5]);
        // Too late: the client has heard it.
        let _ = stream
            .get_mut()
            .write_all(format!("HTTP/1.1 100 Continue\r\n\r\n{OK}").as_bytes());
    });
    let gate = Setup::before(origin).start();
    let began = Instant::now();
    let mut connection = ask(&gate, &post("Content-Length: 5\r\nExpect: 100-Continue"));
    assert_eq!(connection.response("POST").status, 100);
    assert!(
        began.elapsed() >= Duration::from_millis(900),
        "the origin was given time"
    );
    connection.send("hello");
    assert_eq!(connection.response("POST").text(), "ok");
}

#[test]
fn refusal_in_place_of_a_100_ends_the_connection() {
    let origin = origin(|_, stream| {
        let _ = stream
            .get_mut()
            .write_all(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
        rest(stream);
    });
    let gate = Setup::before(origin).start();
    let mut connection = ask(&gate, &post("Content-Length: 5\r\nExpect: 100-continue"));
    let response = connection.response("POST");
    // Whether the client sends the body now, nobody can know.
    assert_eq!(
        (response.status, response.field("connection")),
        (417, Some("close"))
    );
    assert!(connection.is_closed());
}

#[test]
fn client_is_read_no_faster_than_the_origin_reads() {
    const SIZE: usize = 128 * 1024 * 1024;
    let (go_on, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let origin = origin(move |_, stream| {
        let _ = wait
            .lock()
            .expect("nobody panics while waiting")
            .recv_timeout(PATIENCE);
        let count = std::io::copy(&mut stream.by_ref().take(SIZE as u64), &mut std::io::sink())
            .unwrap_or_default();
        let body = count.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.get_mut().write_all(head.as_bytes());
    });
    let gate = Setup::before(origin).start();
    let mut stream = TcpStream::connect(gate.address).expect("a connection");
    stream
        .write_all(post(&format!("Content-Length: {SIZE}")).as_bytes())
        .expect("a request");
    stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout");
    let (mut sent, piece) = (0, vec![b'x'; 65_536]);
    while sent < SIZE {
        match stream.write(&piece[..piece.len().min(SIZE - sent)]) {
            Ok(count) => sent += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => panic!("after {sent}: {error}"),
        }
    }
    // What the sockets hold, and a little more.
    assert!(
        sent < SIZE / 2,
        "{sent} bytes were taken, and the origin has read none"
    );
    go_on.send(()).expect("the origin waits");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    while sent < SIZE {
        sent += stream
            .write(&piece[..piece.len().min(SIZE - sent)])
            .expect("the rest is taken");
    }
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut answer = BufReader::new(stream);
    assert!(head(&mut answer).is_some_and(|head| head.starts_with("HTTP/1.1 200 ")));
    let mut body = vec![0; SIZE.to_string().len()];
    answer.read_exact(&mut body).expect("a body");
    assert_eq!(body, SIZE.to_string().as_bytes());
}

#[test]
fn request_that_changes_something_is_never_sent_twice() {
    // Each connection answers once, and closes when it is used again.
    let requests = Arc::new(AtomicUsize::new(0));
    let changes = requests.clone();
    let origin = origin(move |first, stream| {
        let take = |head: &str, stream: &mut BufReader<TcpStream>| {
            if head.contains("Content-Length: 5") {
                let _ = stream.read_exact(&mut [0; 5]);
            }
            changes.fetch_add(usize::from(head.contains("/change")), Ordering::SeqCst);
        };
        take(first, stream);
        let _ = stream.get_mut().write_all(OK.as_bytes());
        if let Some(second) = head(stream) {
            take(&second, stream);
        }
    });
    let gate = Setup::before(origin).settings("threads: 1").start();
    let mut connection = gate.connect();
    let mut send = |request: &str| {
        connection.send(GET);
        assert_eq!(connection.response("GET").status, 200);
        let before = requests.load(Ordering::SeqCst);
        connection.send(request);
        let status = connection.response("POST").status;
        if status != 200 {
            connection = gate.connect();
        }
        (status, requests.load(Ordering::SeqCst) - before)
    };
    for (method, framing) in [
        ("POST", "Content-Length: 5"),
        ("PUT", "Content-Length: 5"),
        ("GET", "Content-Length: 5"),
    ] {
        let request =
            format!("{method} /change HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n\r\nhello");
        assert_eq!(send(&request), (502, 1), "{method}");
    }
    assert_eq!(
        send("DELETE /change HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (502, 1)
    );
    assert_eq!(
        send("POST /change HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n"),
        (502, 1)
    );
    assert_eq!(
        send("OPTIONS /change HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (200, 2)
    );
}

#[test]
fn server_that_refuses_connections_costs_no_body() {
    let origin = Origin::start(|request, stream| {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            request.body.len()
        );
        stream
            .write_all(answer.as_bytes())
            .and_then(|()| stream.write_all(&request.body))
            .is_ok()
    });
    let origins = format!(
        "origins: [http://{}, http://{}]",
        Origin::nowhere(),
        origin.address
    );
    let gate = Setup::before(origin.address).with_origins(&origins).start();
    for _ in 0..4 {
        let mut connection = ask(&gate, &format!("{}hello", post("Content-Length: 5")));
        assert_eq!(connection.response("POST").text(), "hello");
    }
}

#[test]
fn trailers_reach_the_origin_but_for_fields_of_heads() {
    let (seen, came) = channel();
    let seen = Mutex::new(seen);
    let origin = origin(move |head, stream| {
        let mut body = String::new();
        while !body.ends_with("\r\n\r\n")
            && stream.read_line(&mut body).is_ok_and(|count| count > 0)
        {}
        let _ = stream.get_mut().write_all(OK.as_bytes());
        let _ = seen
            .lock()
            .expect("nobody panics while sending")
            .send((head.to_owned(), body));
    });
    let gate = Setup::before(origin).start();
    let fields = "Transfer-Encoding: chunked\r\nTrailer: X-Check\r\nTE: trailers";
    let trailers = "X-Check: 1\r\nContent-Length: 9\r\nHost: b.example\r\nX_Forwarded_For: 192.0.2.1\r\nServer-Timing: a\r\n";
    let mut connection = ask(
        &gate,
        &format!("{}5;a=b\r\nhello\r\n00\r\n{trailers}\r\n", post(fields)),
    );
    assert_eq!(connection.response("POST").status, 200);
    let (head, body) = came.recv_timeout(PATIENCE).expect("a request");
    assert!(
        head.contains("Trailer: X-Check\r\n") && !head.contains("TE:"),
        "{head}"
    );
    assert_eq!(
        body,
        "5\r\nhello\r\n0\r\nX-Check: 1\r\nServer-Timing: a\r\n\r\n"
    );
}

#[test]
fn hundred_trailers_reach_the_origin_and_end_a_response() {
    let many: String = (0..100)
        .map(|number| format!("X-{number}: 1\r\n"))
        .collect();
    let response =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{many}\r\n");
    let (seen, came) = channel();
    let seen = Mutex::new(seen);
    let origin = origin(move |_, stream| {
        let mut body = String::new();
        while !body.ends_with("\r\n\r\n")
            && stream.read_line(&mut body).is_ok_and(|count| count > 0)
        {}
        let _ = stream.get_mut().write_all(response.as_bytes());
        let _ = seen.lock().expect("nobody panics while sending").send(body);
    });
    let gate = Setup::before(origin).start();
    let mut connection = ask(
        &gate,
        &format!("{}0\r\n{many}\r\n", post("Transfer-Encoding: chunked")),
    );
    assert_eq!(connection.response("POST").text(), "ok");
    assert_eq!(
        came.recv_timeout(PATIENCE).expect("a request"),
        format!("0\r\n{many}\r\n")
    );
}
