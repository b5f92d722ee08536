//! [`BufferSpace`] limits the bytes of requests and responses in buffers, for each client and in
//! total. A request over HTTP/2 or through Pingora and the body of a larger response reserve the
//! most that they may need, as a [`Held`], until the last byte has left; the body of a request does
//! until the origin has it. So a client that reads nothing takes no more than its share.

use super::admission::{Admission, Admitted, Full};
use crate::forwarding::Head;
use crate::heads::is_event_stream;
use crate::locks::lock;
use crate::settings::Limits;
use crate::telemetry::Metrics;
use http::header;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Heads and bodies up to this length are not counted: they are in the buffers that every request
/// has.
pub const SMALL: usize = 8 * 1024;
/// The number of copies of a head in memory, at most.
const COPIES: usize = 4;
/// The least time between two log lines about missing space.
const PAUSE: Duration = Duration::from_secs(60);

/// The limits, and the space in use.
pub struct BufferSpace {
    admission: Arc<Admission>,
    metrics: Arc<Metrics>,
    /// When the log last told of missing space.
    told: Mutex<Option<Instant>>,
}

/// Bytes of memory to reserve for a head of this size: 0 up to [`SMALL`], else its size for each of
/// its copies.
pub fn memory_of_head(bytes: usize) -> usize {
    if bytes > SMALL { COPIES * bytes } else { 0 }
}

/// Bytes of memory to reserve for the body of a response with this head: its Content-Length, at
/// most `most`; `most` without a length. A body up to [`SMALL`] needs nothing, and server-sent
/// events need [`SMALL`], because they come one by one.
pub fn memory_of_body(head: &impl Head, most: usize) -> usize {
    let length = head.lines(header::CONTENT_LENGTH).next();
    let length = length.and_then(|length| {
        std::str::from_utf8(length)
            .ok()?
            .trim()
            .parse::<usize>()
            .ok()
    });
    match length {
        Some(length) if length <= SMALL => 0,
        Some(length) => length.min(most),
        None if head.lines(header::CONTENT_TYPE).any(is_event_stream) => SMALL,
        None => most,
    }
}

/// There is no space for a request or its response.
#[derive(Debug, thiserror::Error)]
#[error("no space in buffers")]
pub struct NoSpace;

impl BufferSpace {
    /// Space within `limits.buffers` and `limits.buffers_per_address`.
    pub fn new(limits: &Limits, metrics: Arc<Metrics>) -> BufferSpace {
        let admission = Admission::new(limits.buffers, limits.buffers_per_address);
        BufferSpace {
            admission,
            metrics,
            told: Mutex::default(),
        }
    }

    /// Reserves `octets` bytes for a client, until the result is dropped. Without a client, only
    /// the total is limited.
    ///
    /// # Errors
    /// There is no space. The metrics count that, and the log says so at most once a minute.
    pub fn hold(&self, octets: usize, client: Option<IpAddr>) -> Result<Held, NoSpace> {
        let admitted = self.admission.admit(octets).and_then(|mut admitted| {
            if let Some(client) = client {
                admitted.admit_address(client)?;
            }
            Ok(admitted)
        });
        match admitted {
            Ok(admitted) => Ok(Held::new(admitted, octets, self.metrics.clone())),
            Err(full) => {
                self.metrics.request_rejected("buffers");
                self.tell(full, client);
                Err(NoSpace)
            }
        }
    }

    /// Logs that a limit is reached, and which one, at most once a minute.
    fn tell(&self, full: Full, client: Option<IpAddr>) {
        let mut told = lock(&self.told);
        if told.is_some_and(|told| told.elapsed() < PAUSE) {
            return;
        }
        *told = Some(Instant::now());
        let limit = match full {
            Full::Total => "limits.buffers",
            Full::Address => "limits.buffers_per_address",
        };
        let client = client.map(tracing::field::display);
        tracing::warn!(
            client,
            "`{limit}` is reached: clients take their responses slowly, or ask for very many at once; crawlgate answers 503 to \
             further requests. If the client is a proxy, name it in `trusted_proxies`. If the clients are in order and the \
             memory is there, raise the limit"
        );
    }
}

/// Reserved bytes, until this is dropped.
pub struct Held {
    admitted: Admitted,
    bytes: usize,
    metrics: Arc<Metrics>,
}

impl Held {
    /// Space that was admitted. The metrics count its bytes until they are given back.
    fn new(admitted: Admitted, bytes: usize, metrics: Arc<Metrics>) -> Held {
        metrics.edge.buffers.add(bytes as i64);
        Held {
            admitted,
            bytes,
            metrics,
        }
    }

    /// Gives a part back, at most all that is left.
    pub fn release(&mut self, part: usize) {
        let part = part.min(self.bytes);
        self.bytes -= part;
        self.admitted.release(part);
        self.metrics.edge.buffers.sub(part as i64);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.metrics.edge.buffers.sub(self.bytes as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn space(buffers: usize, buffers_per_address: usize) -> BufferSpace {
        BufferSpace::new(
            &Limits {
                buffers,
                buffers_per_address,
                ..Limits::DEFAULT
            },
            Metrics::new(),
        )
    }

    fn client(last: u8) -> Option<IpAddr> {
        Some([192, 0, 2, last].into())
    }

    fn head(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn client_holds_its_share_and_all_together_the_whole() {
        let space = space(100, 60);
        let held = space.hold(60, client(1));
        assert!(held.is_ok() && space.hold(1, client(1)).is_err());
        assert!(space.hold(41, client(2)).is_err());
        drop(held);
        assert!(space.hold(60, client(1)).is_ok());
        assert!(space.hold(100, None).is_ok() && space.hold(101, None).is_err());
    }

    #[test]
    fn body_takes_its_length_or_the_most_and_a_small_one_nothing() {
        let memory = |name, value| memory_of_body(&head(name, value), 100_000);
        assert_eq!(memory(header::CONTENT_LENGTH, "8192"), 0);
        assert_eq!(memory(header::CONTENT_LENGTH, "8193"), 8_193);
        assert_eq!(memory(header::CONTENT_LENGTH, "5000000"), 100_000);
        assert_eq!(memory_of_body(&HeaderMap::new(), 100_000), 100_000);
        assert_eq!(
            memory(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            8_192
        );
        assert_eq!(
            (memory_of_head(8_192), memory_of_head(8_193)),
            (0, 4 * 8_193)
        );
    }
}
