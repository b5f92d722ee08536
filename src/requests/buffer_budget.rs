//! [`BufferBudget`] limits the memory in which requests and responses are buffered, for each client
//! and in total. A [`BufferReservation`] reserves the most memory that a request or a response may
//! need, and releases this memory when the last byte is sent. So a client that does not read its
//! responses uses no more than its share.

use super::admission::{AdmissionLimiter, AdmissionPermit, LimitReached};
use crate::forwarding::EditableHead;
use crate::heads::is_event_stream;
use crate::settings::Limits;
use crate::telemetry::{LogThrottle, Metrics};
use http::header;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Heads and bodies up to this length need no reservation: they fit the buffers that every request
/// has.
pub const MAX_UNRESERVED: usize = 8 * 1024;
/// The number of copies of a head in memory, at most.
const HEAD_COPIES: usize = 4;
/// The least time between two log lines about the same.
pub const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The limits, and the space in use.
pub struct BufferBudget {
    admission: Arc<AdmissionLimiter>,
    metrics: Arc<Metrics>,
    /// The lines about missing space.
    throttle: LogThrottle,
    began: Instant,
}

/// Bytes of memory to reserve for a head of this size: 0 up to [`MAX_UNRESERVED`], else its size
/// for each of its copies.
pub fn head_reservation(bytes: usize) -> usize {
    if bytes > MAX_UNRESERVED {
        HEAD_COPIES * bytes
    } else {
        0
    }
}

/// Bytes of memory to reserve for the body of a response with this head: its Content-Length, at
/// most `max`; `max` without a length. A body up to [`MAX_UNRESERVED`] needs none, and server-sent
/// events need [`MAX_UNRESERVED`], because they come one by one.
pub fn body_reservation(head: &impl EditableHead, max: usize) -> usize {
    let length = head.lines(header::CONTENT_LENGTH).next();
    let length = length.and_then(|length| {
        std::str::from_utf8(length)
            .ok()?
            .trim()
            .parse::<usize>()
            .ok()
    });
    match length {
        Some(length) if length <= MAX_UNRESERVED => 0,
        Some(length) => length.min(max),
        None if head.lines(header::CONTENT_TYPE).any(is_event_stream) => MAX_UNRESERVED,
        None => max,
    }
}

impl BufferBudget {
    /// Space within `limits.buffers` and `limits.buffers_per_address`.
    pub fn new(limits: &Limits, metrics: Arc<Metrics>) -> BufferBudget {
        let admission = AdmissionLimiter::new(limits.buffers, limits.buffers_per_address);
        BufferBudget {
            admission,
            metrics,
            throttle: LogThrottle::default(),
            began: Instant::now(),
        }
    }

    /// Reserves `bytes` bytes for a client, until the result is dropped. Without a client, only
    /// the total is limited.
    ///
    /// # Errors
    /// There is no space. The metrics count that, and the log says so at most once a minute.
    pub fn reserve(
        &self,
        bytes: usize,
        client: Option<IpAddr>,
    ) -> Result<BufferReservation, LimitReached> {
        let admitted = self.admission.admit(bytes).and_then(|mut admitted| {
            if let Some(client) = client {
                admitted.admit_address(client)?;
            }
            Ok(admitted)
        });
        match admitted {
            Ok(admitted) => {
                self.metrics.edge.buffers.add(bytes as i64);
                Ok(BufferReservation {
                    admitted,
                    metrics: self.metrics.clone(),
                })
            }
            Err(full) => {
                self.metrics.count_rejected_request("buffers");
                self.log_limit_reached(full, client);
                Err(full)
            }
        }
    }

    /// Logs that a limit is reached, and which one, at most once a minute.
    fn log_limit_reached(&self, full: LimitReached, client: Option<IpAddr>) {
        if self
            .throttle
            .admit_after(LOG_INTERVAL, self.began.elapsed())
            .is_none()
        {
            return;
        }
        let limit = match full {
            LimitReached::Total => "limits.buffers",
            LimitReached::Address => "limits.buffers_per_address",
        };
        let client = client.map(tracing::field::display);
        tracing::warn!(
            client,
            "{limit} is reached: clients read their responses slowly, or ask for very many at once. crawlgate answers \
             503 to further requests. If the client is a proxy of yours, add it to trusted_proxies. If the machine \
             has the memory, raise the limit"
        );
    }
}

/// Bytes that are reserved until this is dropped.
pub struct BufferReservation {
    admitted: AdmissionPermit,
    metrics: Arc<Metrics>,
}

impl BufferReservation {
    /// Releases a part, at most all of it.
    pub fn release(&mut self, part: usize) {
        let part = part.min(self.admitted.amount);
        self.admitted.release(part);
        self.metrics.edge.buffers.sub(part as i64);
    }
}

impl Drop for BufferReservation {
    fn drop(&mut self) {
        self.metrics.edge.buffers.sub(self.admitted.amount as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};

    fn space(buffers: usize, buffers_per_address: usize) -> BufferBudget {
        BufferBudget::new(
            &Limits {
                buffers,
                buffers_per_address,
                ..Limits::default()
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
    fn space_is_limited_for_each_client_and_in_total() {
        let space = space(100, 60);
        let held = space.reserve(60, client(1));
        assert!(held.is_ok() && space.reserve(1, client(1)).is_err());
        assert!(space.reserve(41, client(2)).is_err());
        drop(held);
        assert!(space.reserve(60, client(1)).is_ok());
        assert!(space.reserve(100, None).is_ok() && space.reserve(101, None).is_err());
    }

    #[test]
    fn body_reservation_is_its_length_within_bounds() {
        let memory = |name, value| body_reservation(&head(name, value), 100_000);
        assert_eq!(memory(header::CONTENT_LENGTH, "8192"), 0);
        assert_eq!(memory(header::CONTENT_LENGTH, "8193"), 8_193);
        assert_eq!(memory(header::CONTENT_LENGTH, "5000000"), 100_000);
        assert_eq!(body_reservation(&HeaderMap::new(), 100_000), 100_000);
        assert_eq!(
            memory(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            8_192
        );
        assert_eq!(
            (head_reservation(8_192), head_reservation(8_193)),
            (0, 4 * 8_193)
        );
    }
}
