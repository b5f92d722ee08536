//! Connects to a Unix socket in the place of an address: [`UnixConnector`].

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// The shortest limit: the system takes none for zero.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest limit.
const LONGEST: Duration = Duration::from_secs(60);

/// Connects to this socket, whatever the URL says.
#[derive(Debug)]
pub(super) struct UnixConnector(pub PathBuf);

impl<In: Transport> Connector<In> for UnixConnector {
    type Out = UnixTransport;

    fn connect(&self, details: &ConnectionDetails, _: Option<In>) -> Result<Option<UnixTransport>, ureq::Error> {
        let stream = UnixStream::connect(&self.0)?;
        let config = &details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(UnixTransport { stream, buffers }))
    }
}

/// A connection over a Unix socket.
#[derive(Debug)]
pub(super) struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.set_write_timeout(Some(limit(&timeout)))?;
        let sent = self.stream.write_all(&self.buffers.output()[..amount]);
        sent.map_err(|error| of_transfer(error, &timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_read_timeout(Some(limit(&timeout)))?;
        let count = self.stream.read(self.buffers.input_append_buf()).map_err(|error| of_transfer(error, &timeout))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        // No connection is used twice.
        false
    }
}

fn limit(timeout: &NextTimeout) -> Duration {
    Duration::clamp(*timeout.after, SHORTEST, LONGEST)
}

fn of_transfer(error: io::Error, timeout: &NextTimeout) -> ureq::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ureq::Error::Timeout(timeout.reason),
        _ => ureq::Error::Io(error),
    }
}
