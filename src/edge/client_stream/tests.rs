//! Tests of how Pingora reads and writes a client's connection, one request at a time.

use super::*;
use crate::edge::http2::PREFACE;
use crate::forwarding::ConnectionPeer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const STALL: Duration = Duration::from_secs(30);

/// A client's socket, and the server's stream of the same connection.
async fn pair(stall: Duration) -> (TcpStream, ClientStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("its address"))
        .await
        .expect("a connection");
    let (stream, address) = listener.accept().await.expect("a connection");
    let peer = ConnectionPeer {
        address: Some(address.ip()),
        ..ConnectionPeer::default()
    };
    let shared = ClientConnection::new(peer, None);
    (
        client,
        ClientStream::new(Box::new(stream), Some(address), shared, None, stall),
    )
}

/// What Pingora reads of a request with this body, when `wire` follows the head.
async fn read(body: BodyFraming, wire: &[u8]) -> (Vec<u8>, ClientStream, TcpStream) {
    let (mut client, mut connection) = pair(STALL).await;
    client.write_all(wire).await.expect("written");
    connection.let_pingora_read_request(b"head".to_vec(), body);
    let mut bytes = vec![0; 64];
    let mut read = Vec::new();
    while !connection.is_request_over() {
        let count = connection.read(&mut bytes).await.expect("bytes");
        read.extend_from_slice(&bytes[..count]);
    }
    (read, connection, client)
}

#[tokio::test]
async fn bytes_after_a_request_stay_for_the_next_one() {
    let chunks = b"5\r\nhello\r\n0\r\n\r\n";
    for (body, wire, length) in [
        (BodyFraming::None, b"GET /next".to_vec(), 0),
        (BodyFraming::Length(5), b"helloGET /next".to_vec(), 5),
        (
            BodyFraming::Length(300),
            [&[b'x'; 300], b"GET /next".as_slice()].concat(),
            300,
        ),
        (
            BodyFraming::Chunked,
            [chunks, b"GET /next".as_slice()].concat(),
            chunks.len(),
        ),
    ] {
        let (bytes, mut connection, client) = read(body, &wire).await;
        assert_eq!(bytes, [b"head", &wire[..length]].concat(), "{body:?}");
        // While it is answered, nothing more is given, and the client is not gone.
        let more = timeout(Duration::from_millis(20), connection.read(&mut [0; 16])).await;
        assert!(more.is_err(), "{body:?}: {more:?}");
        assert_eq!(connection.stream.read_buffer(), b"GET /next", "{body:?}");
        drop(client);
    }
}

#[tokio::test]
async fn client_that_leaves_ends_the_read() {
    let (_, mut connection, client) = read(BodyFraming::None, b"").await;
    drop(client);
    assert_eq!(connection.read(&mut [0; 16]).await.expect("the end"), 0);
}

#[tokio::test]
async fn everything_passes_after_a_switch_of_protocols() {
    let (_, mut connection, client) = read(BodyFraming::None, b"early").await;
    assert!(
        timeout(Duration::from_millis(20), connection.read(&mut [0; 16]))
            .await
            .is_err()
    );
    connection.client.mark_protocol_switched();
    let mut bytes = [0; 5];
    connection.read_exact(&mut bytes).await.expect("bytes");
    assert_eq!(&bytes, b"early");
    assert!(!connection.is_request_over());
    drop(client);
}

#[tokio::test]
async fn malformed_chunk_is_an_error() {
    let (mut client, mut connection) = pair(STALL).await;
    client.write_all(b"5 \r\nhello").await.expect("written");
    connection.let_pingora_read_request(Vec::new(), BodyFraming::Chunked);
    let mut bytes = Vec::new();
    let read = async {
        while connection.read_buf(&mut bytes).await? == 0 {}
        connection.read_buf(&mut bytes).await
    };
    let error = read.await.expect_err("a bad chunk");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[tokio::test]
async fn client_that_takes_nothing_is_given_up() {
    let (client, mut connection) = pair(Duration::from_millis(50)).await;
    let bytes = vec![0; 64 * 1024 * 1024];
    let error = connection
        .write_all(&bytes)
        .await
        .expect_err("the client reads nothing");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(client);
}

/// How many bytes it took to check for the preface, and everything that is read afterwards.
async fn check_preface(bytes: &[u8], at_a_time: usize) -> io::Result<(usize, Vec<u8>)> {
    let (mut near, far) = duplex(at_a_time);
    let client = ClientConnection::new(ConnectionPeer::default(), None);
    let mut connection = ClientStream::new(Box::new(far), None, client, None, STALL);
    connection.set_deadline(STALL);
    let bytes = bytes.to_vec();
    let writer = tokio::spawn(async move { near.write_all(&bytes).await });
    connection.begins_with(PREFACE).await?;
    let read_ahead = connection.stream.read_buffer().len();
    let mut read = Vec::new();
    connection.stream.read_to_end(&mut read).await?;
    writer.await.expect("ended").map(|()| (read_ahead, read))
}

#[tokio::test]
async fn first_byte_unlike_the_preface_decides() {
    for (text, needed) in [
        ("GET / HTTP/1.0\r\n\r\n", 1),
        ("POST / HTTP/1.1\r\n\r\n", 2),
        ("PRI * HTTP/1.1\r\n\r\n", 12),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand more", 24),
        ("PRI * HT", 8),
        ("P", 1),
    ] {
        assert_eq!(
            check_preface(text.as_bytes(), 1).await.unwrap(),
            (needed, text.as_bytes().to_vec()),
            "{text:?}"
        );
        for at_a_time in [2, 5, 23, 24, 4_096] {
            let (read_ahead, read) = check_preface(text.as_bytes(), at_a_time).await.unwrap();
            assert!(
                read_ahead >= needed && read == text.as_bytes(),
                "{text:?}, {at_a_time} at a time"
            );
        }
    }
}

#[tokio::test]
async fn stream_without_bytes_is_an_error() {
    assert_eq!(
        check_preface(b"", 1).await.unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
}

#[tokio::test]
async fn long_request_is_read_whole() {
    let long = [b"GET /".as_slice(), &[b'a'; 40_000], b" HTTP/1.1\r\n\r\n"].concat();
    assert_eq!(
        check_preface(&long, 40_000).await.unwrap(),
        (16 * 1024, long)
    );
}
