//! The second half of an exchange: the body goes to the client as it comes, and the connection to the server is kept if it
//! may be used again. What has come is sent before anything is waited for.

use super::{Exchange, Origin};
use crate::edge::chunks::{BadChunk, Chunks};
use crate::edge::lane::response::{Framing, ResponseHead};
use crate::edge::lane::wire::{self, of_client, of_origin};
use pingora_core::{ErrorType, Result};
use std::io::Write;

/// Octets that are gathered before they are sent.
const GATHERED: usize = 16 * 1024;

impl Exchange<'_> {
    /// Passes the body on. The head is in the output.
    pub(super) async fn relay(&mut self, mut origin: Origin, head: ResponseHead) -> Result<()> {
        match head.framing {
            Framing::None => {}
            Framing::Length(length) => self.relay_length(&mut origin, length).await?,
            Framing::Chunked => self.relay_chunks(&mut origin).await?,
            Framing::UntilClose => self.relay_until_close(&mut origin).await?,
        }
        // After octets that belong to no response, nothing is known about the next ones.
        let is_clean = self.read == self.request.buffers.input.len();
        if head.keeps_alive && is_clean && head.framing != Framing::UntilClose {
            let Origin { stream, route, .. } = origin;
            self.lane.pool.keep(route.key, stream, route.timeouts.idle);
        }
        self.send().await
    }

    async fn relay_length(&mut self, origin: &mut Origin, mut left: u64) -> Result<()> {
        loop {
            let waiting = self.request.buffers.input.len() - self.read;
            let count = usize::try_from(left).map_or(waiting, |left| left.min(waiting));
            self.pass(count).await?;
            left -= count as u64;
            if left == 0 {
                return Ok(());
            }
            self.more(origin).await?;
        }
    }

    async fn relay_chunks(&mut self, origin: &mut Origin) -> Result<()> {
        let mut chunks = Chunks::of_response();
        loop {
            while self.read < self.request.buffers.input.len() && !chunks.is_over() {
                let buffers = &mut self.request.buffers;
                let (data, count) = chunks.piece(&buffers.input[self.read..]).map_err(|BadChunk| {
                    of_origin(ErrorType::InvalidHTTPHeader, "the response has a malformed chunk")
                })?;
                write_chunk(data, &mut buffers.output);
                self.read += count;
                self.body_octets += data.len() as u64;
                if buffers.output.len() > GATHERED {
                    self.send().await?;
                }
            }
            if chunks.is_over() {
                break;
            }
            self.more(origin).await?;
        }
        self.request.buffers.output.extend_from_slice(b"0\r\n\r\n");
        Ok(())
    }

    async fn relay_until_close(&mut self, origin: &mut Origin) -> Result<()> {
        loop {
            let buffers = &mut self.request.buffers;
            let data = &buffers.input[self.read..];
            write_chunk(data, &mut buffers.output);
            self.body_octets += data.len() as u64;
            self.read = buffers.input.len();
            if buffers.output.len() > GATHERED {
                self.send().await?;
            }
            if self.read_more(origin).await? == 0 {
                break;
            }
        }
        self.request.buffers.output.extend_from_slice(b"0\r\n\r\n");
        Ok(())
    }

    /// Reads more of a body that has not ended.
    async fn more(&mut self, origin: &mut Origin) -> Result<()> {
        match self.read_more(origin).await? {
            0 => Err(of_origin(ErrorType::ConnectionClosed, "the origin closed before the end of its response")),
            _ => Ok(()),
        }
    }

    /// Reads more in the place of what was read; 0 is the end. What waits for the client is sent if nothing is there yet.
    async fn read_more(&mut self, origin: &mut Origin) -> Result<usize> {
        self.request.buffers.input.clear();
        self.read = 0;
        if !self.request.buffers.output.is_empty() {
            if let Some(count) = wire::read_now(&mut origin.stream, &mut self.request.buffers.input).await? {
                return Ok(count);
            }
            self.send().await?;
        }
        let limit = origin.route.timeouts.read;
        wire::read(&mut origin.stream, &mut self.request.buffers.input, self.client, limit).await
    }

    /// Passes so many octets of the input on. Few of them wait for more.
    async fn pass(&mut self, count: usize) -> Result<()> {
        let buffers = &mut self.request.buffers;
        let octets = &buffers.input[self.read..self.read + count];
        self.read += count;
        self.body_octets += count as u64;
        if buffers.output.len() + count <= GATHERED {
            buffers.output.extend_from_slice(octets);
            return Ok(());
        }
        let sent = self.client.send(&buffers.output, octets).await;
        buffers.output.clear();
        sent.map_err(|error| of_client(ErrorType::WriteError, error))
    }

    /// Sends what waits.
    pub(super) async fn send(&mut self) -> Result<()> {
        let output = &mut self.request.buffers.output;
        if output.is_empty() {
            return Ok(());
        }
        let sent = self.client.send(output, &[]).await;
        output.clear();
        sent.map_err(|error| of_client(ErrorType::WriteError, error))
    }
}

fn write_chunk(data: &[u8], output: &mut Vec<u8>) {
    // An empty chunk would be the last one.
    if !data.is_empty() {
        // Writing to memory does not fail.
        let _ = write!(output, "{:X}\r\n", data.len());
        output.extend_from_slice(data);
        output.extend_from_slice(b"\r\n");
    }
}
