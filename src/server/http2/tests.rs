use super::super::connection::Connection;
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A client, and its connection as the server has it.
async fn pair() -> (TcpStream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("its address")).await.expect("a connection");
    let (stream, peer) = listener.accept().await.expect("a connection");
    (client, Box::new(Connection::new(stream, peer, None)))
}

#[tokio::test]
async fn silent_client_is_closed_after_the_limit() {
    let (_stop, stop) = watch::channel(false);
    for (first, speaks) in [
        (b"".as_slice(), None),
        (b"PRI * HTTP", None),
        (&PREFACE[..23], None),
        (PREFACE, Some(true)),
        (b"PRI * HTTP/1.1", Some(false)),
        (b"G", Some(false)),
    ] {
        let (mut client, mut stream) = pair().await;
        client.write_all(first).await.expect("written");
        // Long where the answer does not wait for it: the machine may be busy.
        let limit = Duration::from_millis(if speaks.is_none() { 50 } else { 30_000 });
        assert_eq!(begins_with_preface(&mut stream, &stop, limit).await, speaks, "{first:?}");
        client.shutdown().await.expect("closed");
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.expect("read");
        assert_eq!(read, first, "what was looked at is still there");
    }
}

#[tokio::test]
async fn stop_does_not_wait_for_a_silent_client() {
    let (say, stop) = watch::channel(false);
    let (mut client, mut stream) = pair().await;
    client.write_all(&PREFACE[..5]).await.expect("written");
    let waiting =
        tokio::spawn(async move { begins_with_preface(&mut stream, &stop, Duration::from_secs(3_600)).await });
    say.send_replace(true);
    assert_eq!(waiting.await.expect("no panic"), None);
}

#[tokio::test]
async fn client_that_leaves_at_once_ends_the_connection() {
    let (_stop, stop) = watch::channel(false);
    let (client, mut stream) = pair().await;
    drop(client);
    assert_eq!(begins_with_preface(&mut stream, &stop, Duration::from_secs(3_600)).await, None);
}
