//! [`ProcessChannel`]: a channel between two processes of crawlgate for messages that may carry
//! file descriptors. A message is sent as its length and then its JSON; file descriptors are sent
//! with the first byte of the message.

use crate::locks::lock;
use ChannelError::*;
use rustix::io::{FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most descriptors in a message. Linux allows 253 (`SCM_MAX_FD`).
pub const MAX_DESCRIPTORS: usize = 64;
/// Crawl rates and proven fetches of full tables have 6 MiB.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// How long sending waits for the other process to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// One end of the channel.
pub struct ProcessChannel {
    stream: UnixStream,
    /// Locked while a message is sent: two threads may send.
    send_lock: Arc<Mutex<()>>,
}

/// Why no message was sent or received.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other process has ended, or closed its end.
    #[error("it ended")]
    Ended,
    /// The other process did not answer in time.
    #[error("it took too long")]
    TimedOut,
    /// The other process sent an unknown or unexpected message.
    #[error(
        "its answer was not understood; it may be another version of crawlgate, or another program: {0}"
    )]
    Unexpected(String),
    /// Another system error.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> ChannelError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => TimedOut,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ended,
            _ => Io(error),
        }
    }
}

impl ProcessChannel {
    /// A new channel. The second end is for the other process.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn pair() -> io::Result<(ProcessChannel, OwnedFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((ProcessChannel::from_fd(own.into())?, other.into()))
    }

    /// The end that another process passed.
    ///
    /// # Errors
    /// The descriptor is not a socket.
    pub fn from_fd(descriptor: OwnedFd) -> io::Result<ProcessChannel> {
        let stream = UnixStream::from(descriptor);
        stream.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(ProcessChannel {
            stream,
            send_lock: Arc::default(),
        })
    }

    /// The same end, for another thread.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn try_clone(&self) -> io::Result<ProcessChannel> {
        Ok(ProcessChannel {
            stream: self.stream.try_clone()?,
            send_lock: self.send_lock.clone(),
        })
    }

    /// Sends a message with at most [`MAX_DESCRIPTORS`] descriptors.
    ///
    /// # Errors
    /// The other process has ended, or reads nothing for five seconds; or there are more
    /// descriptors.
    pub fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), ChannelError> {
        let body = serde_json::to_vec(message).map_err(io::Error::from)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let bytes = [&length.to_be_bytes()[..], &body].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(Io(io::Error::other("too many descriptors for a message")));
        }
        let _one = lock(&self.send_lock);
        let parts = [IoSlice::new(&bytes)];
        let sent =
            retry_on_intr(|| sendmsg(&self.stream, &parts, &mut ancillary, SendFlags::empty()))
                .map_err(io::Error::from)?;
        Ok((&self.stream).write_all(&bytes[sent..])?)
    }

    /// Waits for a message until `deadline`, or without one as long as it takes.
    ///
    /// # Errors
    /// See [`ChannelError`].
    pub fn receive<M: DeserializeOwned>(
        &self,
        deadline: Option<Instant>,
    ) -> Result<(M, Vec<OwnedFd>), ChannelError> {
        let mut length = [0; 4];
        let mut descriptors = Vec::new();
        self.read(&mut length, &mut descriptors, deadline)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_MESSAGE_BYTES {
            return Err(Unexpected(format!("a message of {length} bytes")));
        }
        let mut body = vec![0; length];
        self.read(&mut body, &mut descriptors, deadline)?;
        let message =
            serde_json::from_slice(&body).map_err(|error| Unexpected(error.to_string()))?;
        Ok((message, descriptors))
    }

    /// Fills `bytes` until `deadline`, and adds the descriptors that come with them.
    fn read(
        &self,
        bytes: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
        deadline: Option<Instant>,
    ) -> Result<(), ChannelError> {
        let mut read = 0;
        while read < bytes.len() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(TimedOut);
            }
            self.stream.set_read_timeout(left)?;
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let buffer = &mut [IoSliceMut::new(&mut bytes[read..])];
            let received =
                retry_on_intr(|| recvmsg(&self.stream, buffer, &mut ancillary, RecvFlags::empty()))
                    .map_err(io::Error::from)?;
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(passed) = message {
                    descriptors.extend(passed);
                }
            }
            for descriptor in descriptors.iter() {
                // Programs that are started later must not have them.
                fcntl_setfd(descriptor, FdFlags::CLOEXEC).map_err(io::Error::from)?;
            }
            if received.bytes == 0 {
                return Err(Ended);
            }
            read += received.bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    fn channel_ends() -> (ProcessChannel, ProcessChannel) {
        let (one, other) = ProcessChannel::pair().expect("a pair");
        (one, ProcessChannel::from_fd(other).expect("the other end"))
    }

    fn test_deadline() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(30))
    }

    #[test]
    fn descriptor_arrives_with_its_message() {
        let (one, other) = channel_ends();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"text").expect("written");
        file.rewind().expect("rewound");
        one.send(&"before", &[]).expect("sent");
        one.send(&"with", &[file.as_fd()]).expect("sent");
        let (message, descriptors): (String, _) =
            other.receive(test_deadline()).expect("a message");
        assert_eq!((message.as_str(), descriptors.len()), ("before", 0));
        let (message, mut descriptors): (String, Vec<OwnedFd>) =
            other.receive(test_deadline()).expect("a message");
        assert_eq!((message.as_str(), descriptors.len()), ("with", 1));
        let mut text = String::new();
        File::from(descriptors.remove(0))
            .read_to_string(&mut text)
            .expect("read");
        assert_eq!(text, "text");
    }

    #[test]
    fn closed_channel_is_an_error() {
        let (one, other) = channel_ends();
        drop(one);
        assert!(matches!(
            other.receive::<String>(test_deadline()),
            Err(Ended)
        ));
        assert!(matches!(other.send(&"x", &[]), Err(Ended)));
    }

    #[test]
    fn timeout_and_malformed_message_are_distinct() {
        let (one, other) = channel_ends();
        let late = other.receive::<String>(Some(Instant::now() + Duration::from_millis(5)));
        assert!(matches!(late, Err(TimedOut)), "{late:?}");
        one.send(&7, &[]).expect("sent");
        assert!(matches!(
            other.receive::<String>(test_deadline()),
            Err(Unexpected(_))
        ));
        (&one.stream)
            .write_all(b"HTTP/1.1 200 OK")
            .expect("written");
        assert!(matches!(
            other.receive::<String>(test_deadline()),
            Err(Unexpected(_))
        ));
    }
}
