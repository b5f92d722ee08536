//! Tests of what [`BufferedStream`] gathers before it writes, when it flushes, and what it reads
//! ahead.

use super::*;
use std::future::poll_fn;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Takes at most `at_most` bytes a call, and counts the calls.
#[derive(Default)]
struct PartialWriter {
    taken: Vec<u8>,
    calls: usize,
    at_most: usize,
}

impl AsyncWrite for PartialWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
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
        let bytes: Vec<u8> = parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .take(this.at_most)
            .collect();
        this.taken.extend_from_slice(&bytes);
        Poll::Ready(Ok(bytes.len()))
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
        let mut stream = BufferedStream::new(PartialWriter {
            at_most: usize::MAX,
            ..PartialWriter::default()
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
        let mut stream = BufferedStream::new(PartialWriter {
            at_most,
            ..PartialWriter::default()
        });
        let mut sent = Vec::new();
        for (index, length) in [200, 8_000, 1, 9_000, 0, 3, 20_000, 5]
            .into_iter()
            .enumerate()
        {
            let piece: Vec<u8> = (0..length).map(|byte| (byte % 251 + index) as u8).collect();
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
async fn read_buffer_takes_no_memory_once_read() {
    let mut stream = BufferedStream::new(b"GET / HTTP/1.1\r\n".as_slice());
    poll_fn(|context| stream.poll_fill(context))
        .await
        .expect("bytes");
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.expect("read");
    assert_eq!(
        (read.as_slice(), stream.read_buffer.capacity()),
        (b"GET / HTTP/1.1\r\n".as_slice(), 0)
    );
}

#[tokio::test]
async fn large_write_leaves_with_the_write_buffer() {
    for at_most in [1, 199, 200, 201, 300, usize::MAX] {
        let mut stream = BufferedStream::new(PartialWriter {
            at_most,
            ..PartialWriter::default()
        });
        let buffered = [b'h'; 200];
        let large = vec![b'b'; WRITE_BUFFER_BYTES];
        for _ in 0..2 {
            stream.write_buffer().extend_from_slice(&buffered);
            stream.write_all(&large).await.expect("written");
            stream.flush().await.expect("flushed");
        }
        let sent = [buffered.as_slice(), &large, &buffered, &large].concat();
        assert!(stream.stream.taken == sent, "at most {at_most} a call");
        if at_most == usize::MAX {
            assert_eq!(
                stream.stream.calls, 2,
                "what waits and what follows leave together"
            );
        }
        assert_eq!(
            stream.write_buffer.capacity(),
            0,
            "what was written takes memory no more"
        );
    }
}
