//! What [`Buffered`] gathers and flushes, and what can be looked at before it is read.

use super::*;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Takes at most so many octets a call, and counts the calls.
#[derive(Default)]
struct Reluctant {
    taken: Vec<u8>,
    calls: usize,
    at_most: usize,
}

impl AsyncWrite for Reluctant {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(octets)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.calls += 1;
        // Every other call has to wait.
        if this.calls % 2 == 1 && this.at_most < usize::MAX {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let octets: Vec<u8> = parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .take(this.at_most)
            .collect();
        this.taken.extend_from_slice(&octets);
        Poll::Ready(Ok(octets.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn head_and_body_leave_in_one_call() {
    for body in [1_000, 100_000] {
        let mut stream = Buffered::new(Reluctant {
            at_most: usize::MAX,
            ..Reluctant::default()
        });
        stream.write_all(&[b'h'; 200]).await.expect("written");
        assert_eq!(stream.stream.calls, 0, "it waits for the body");
        stream.write_all(&vec![b'b'; body]).await.expect("written");
        stream.flush().await.expect("flushed");
        assert_eq!(
            (stream.stream.calls, stream.stream.taken.len()),
            (1, 200 + body)
        );
    }
}

#[tokio::test]
async fn short_writes_lose_and_reorder_nothing() {
    for at_most in [1, 7, 199, 200, 201, 8_191, 8_193] {
        let mut stream = Buffered::new(Reluctant {
            at_most,
            ..Reluctant::default()
        });
        let mut sent = Vec::new();
        for (place, length) in [200, 8_000, 1, 9_000, 0, 3, 20_000, 5]
            .into_iter()
            .enumerate()
        {
            let piece: Vec<u8> = (0..length)
                .map(|octet| (octet % 251 + place) as u8)
                .collect();
            stream.write_all(&piece).await.expect("written");
            sent.extend(piece);
        }
        AsyncWriteExt::shutdown(&mut stream)
            .await
            .expect("shut down");
        assert!(stream.stream.taken == sent, "at most {at_most} a call");
    }
}

#[tokio::test]
async fn octets_that_were_seen_and_read_take_no_memory() {
    let mut stream = Buffered::new(b"GET / HTTP/1.1\r\n".as_slice());
    poll_fn(|context| stream.poll_see(context))
        .await
        .expect("octets");
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.expect("read");
    assert_eq!(
        (read.as_slice(), stream.seen.capacity()),
        (b"GET / HTTP/1.1\r\n".as_slice(), 0)
    );
}

#[tokio::test]
async fn octets_that_do_not_fit_leave_with_what_waits() {
    for at_most in [1, 199, 200, 201, 300, usize::MAX] {
        let mut stream = Buffered::new(Reluctant {
            at_most,
            ..Reluctant::default()
        });
        let (waits, large) = ([b'h'; 200], vec![b'b'; GATHERED]);
        for _ in 0..2 {
            stream.gather().extend_from_slice(&waits);
            stream.write_all(&large).await.expect("written");
            stream.flush().await.expect("flushed");
        }
        let sent = [waits.as_slice(), &large, &waits, &large].concat();
        assert!(stream.stream.taken == sent, "at most {at_most} a call");
        if at_most == usize::MAX {
            assert_eq!(
                stream.stream.calls, 2,
                "what waits and what follows leave together"
            );
        }
        assert_eq!(
            stream.waiting.capacity(),
            0,
            "what was written takes memory no more"
        );
    }
}
