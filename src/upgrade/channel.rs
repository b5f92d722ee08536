//! [`Channel`]: messages between two processes of crawlgate, which may carry file descriptors. A
//! message is its length and then JSON; its descriptors come with its first octet.

use crate::locks::lock;
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

/// The most descriptors of a message. Linux allows 253 (`SCM_MAX_FD`).
pub const MOST_DESCRIPTORS: usize = 64;
/// The longest message. Crawl rates and proven fetches of full tables come to 6 MiB.
const LONGEST: usize = 16 * 1024 * 1024;
/// How long the other process may read nothing while this one sends.
const SENDING: Duration = Duration::from_secs(5);

/// One end of a channel.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// Two threads may send.
    sending: Arc<Mutex<()>>,
}

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other process has ended, or has closed its end.
    #[error("it ended")]
    Ended,
    /// The other process said nothing in time.
    #[error("it took too long")]
    Late,
    /// The other process says something that this one does not understand.
    #[error(
        "it said something else than expected; it may be another version of crawlgate, or another program: {0}"
    )]
    Strange(String),
    /// The system refused something.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> ChannelError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ChannelError::Late,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ChannelError::Ended,
            _ => ChannelError::Io(error),
        }
    }
}

impl Channel {
    /// Both ends of a new channel. The second one is for the other process.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((Channel::given(own.into())?, other.into()))
    }

    /// The end that this process was given.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn given(descriptor: OwnedFd) -> io::Result<Channel> {
        let stream = UnixStream::from(descriptor);
        stream.set_write_timeout(Some(SENDING))?;
        Ok(Channel {
            stream,
            sending: Arc::default(),
        })
    }

    /// The same end, for another thread.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn try_clone(&self) -> io::Result<Channel> {
        Ok(Channel {
            stream: self.stream.try_clone()?,
            sending: self.sending.clone(),
        })
    }

    /// Sends a message with at most [`MOST_DESCRIPTORS`] descriptors.
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
        let octets = [&length.to_be_bytes()[..], &body].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(ChannelError::Io(io::Error::other(
                "too many descriptors for a message",
            )));
        }
        let _one = lock(&self.sending);
        let parts = [IoSlice::new(&octets)];
        let sent =
            retry_on_intr(|| sendmsg(&self.stream, &parts, &mut ancillary, SendFlags::empty()))
                .map_err(io::Error::from)?;
        Ok((&self.stream).write_all(&octets[sent..])?)
    }

    /// Waits for a message until a moment; without one, as long as it takes.
    ///
    /// # Errors
    /// See [`ChannelError`].
    pub fn receive<M: DeserializeOwned>(
        &self,
        until: Option<Instant>,
    ) -> Result<(M, Vec<OwnedFd>), ChannelError> {
        let mut length = [0; 4];
        let mut descriptors = Vec::new();
        self.read(&mut length, &mut descriptors, until)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LONGEST {
            return Err(ChannelError::Strange(format!(
                "a message of {length} octets"
            )));
        }
        let mut body = vec![0; length];
        self.read(&mut body, &mut descriptors, until)?;
        let message = serde_json::from_slice(&body)
            .map_err(|error| ChannelError::Strange(error.to_string()))?;
        Ok((message, descriptors))
    }

    /// Fills `octets` from the stream until a moment, and adds the descriptors that come with them
    /// to `descriptors`, closed in programs that are started later.
    fn read(
        &self,
        octets: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
        until: Option<Instant>,
    ) -> Result<(), ChannelError> {
        let mut read = 0;
        while read < octets.len() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ChannelError::Late);
            }
            self.stream.set_read_timeout(left)?;
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let buffer = &mut [IoSliceMut::new(&mut octets[read..])];
            let received =
                retry_on_intr(|| recvmsg(&self.stream, buffer, &mut ancillary, RecvFlags::empty()))
                    .map_err(io::Error::from)?;
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(passed) = message {
                    descriptors.extend(passed);
                }
            }
            for descriptor in descriptors.iter() {
                // A program that is started later must not have them.
                fcntl_setfd(descriptor, FdFlags::CLOEXEC).map_err(io::Error::from)?;
            }
            if received.bytes == 0 {
                return Err(ChannelError::Ended);
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

    fn ends() -> (Channel, Channel) {
        let (one, other) = Channel::pair().expect("a pair");
        (one, Channel::given(other).expect("the other end"))
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(30))
    }

    #[test]
    fn descriptor_arrives_with_its_message() {
        let (one, other) = ends();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"text").expect("written");
        file.rewind().expect("rewound");
        one.send(&"before", &[]).expect("sent");
        one.send(&"with", &[file.as_fd()]).expect("sent");
        let (message, descriptors): (String, _) = other.receive(soon()).expect("a message");
        assert_eq!((message.as_str(), descriptors.len()), ("before", 0));
        let (message, mut descriptors): (String, Vec<OwnedFd>) =
            other.receive(soon()).expect("a message");
        assert_eq!((message.as_str(), descriptors.len()), ("with", 1));
        let mut text = String::new();
        File::from(descriptors.remove(0))
            .read_to_string(&mut text)
            .expect("read");
        assert_eq!(text, "text");
    }

    #[test]
    fn end_of_the_other_process_is_no_message() {
        let (one, other) = ends();
        drop(one);
        assert!(matches!(
            other.receive::<String>(soon()),
            Err(ChannelError::Ended)
        ));
        assert!(matches!(other.send(&"x", &[]), Err(ChannelError::Ended)));
    }

    #[test]
    fn silence_and_nonsense_are_told_apart() {
        let (one, other) = ends();
        let late = other.receive::<String>(Some(Instant::now() + Duration::from_millis(5)));
        assert!(matches!(late, Err(ChannelError::Late)), "{late:?}");
        one.send(&7, &[]).expect("sent");
        assert!(matches!(
            other.receive::<String>(soon()),
            Err(ChannelError::Strange(_))
        ));
        (&one.stream)
            .write_all(b"HTTP/1.1 200 OK")
            .expect("written");
        assert!(matches!(
            other.receive::<String>(soon()),
            Err(ChannelError::Strange(_))
        ));
    }
}
