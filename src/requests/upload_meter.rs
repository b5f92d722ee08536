//! [`UploadMeter`] counts the bytes of a request's body while crawlgate forwards the request, in
//! `edge/forwarder` or through Pingora's proxy (`gateway`). A body that is too large or too slow
//! ends with an [`UploadError`].

use crate::settings::Limits;
use UploadError::*;
use std::time::Instant;

/// Why crawlgate stops reading the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// It has more than `limits.body`.
    #[error("the body is larger than limits.body")]
    TooLarge,
    /// It comes more slowly than `limits.body_rate`.
    #[error("the body arrives more slowly than limits.body_rate")]
    TooSlow,
}

impl UploadError {
    /// Its name in the metrics and in the log.
    pub fn name(self) -> &'static str {
        match self {
            TooLarge => "body_too_large",
            TooSlow => "body_rate",
        }
    }

    /// The status of the answer to it.
    pub fn status(self) -> u16 {
        match self {
            TooLarge => 413,
            TooSlow => 408,
        }
    }
}

/// Counts the body of one request.
#[derive(Default)]
pub struct UploadMeter {
    bytes: u64,
    /// Why crawlgate stopped reading it.
    error: Option<UploadError>,
}

impl UploadMeter {
    pub fn error(&self) -> Option<UploadError> {
        self.error
    }

    /// Counts bytes of the body of a request that arrived at `started`. Fails if the body has more
    /// than `limits.body`, or comes more slowly than `limits.body_rate`; the error is kept.
    pub fn add_bytes(
        &mut self,
        bytes: usize,
        started: Instant,
        limits: &Limits,
    ) -> Result<(), UploadError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let result = self.check_limits(started, limits);
        self.error = result.err();
        result
    }

    /// Fails if the body is too large, or too slow: fewer bytes than `limits.body_rate` for each
    /// second since the request arrived, of which the time up to `limits.stall` does not count.
    fn check_limits(&self, started: Instant, limits: &Limits) -> Result<(), UploadError> {
        if limits.body.is_some_and(|most| self.bytes > most) {
            return Err(TooLarge);
        }
        // The time up to `limits.stall` is not measured, so that a short stop costs no client a
        // request.
        let late = started.elapsed().saturating_sub(limits.stall).as_secs();
        if (limits.body_rate as u64).saturating_mul(late) > self.bytes {
            Err(TooSlow)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn body_beyond_its_limit_is_too_large() {
        let limits = Limits {
            body: Some(10),
            body_rate: 0,
            stall: Duration::ZERO,
            ..Limits::default()
        };
        let mut upload = UploadMeter::default();
        let started = Instant::now();
        assert_eq!(upload.add_bytes(4, started, &limits), Ok(()));
        assert_eq!(upload.add_bytes(6, started, &limits), Ok(()));
        assert_eq!(
            upload.add_bytes(1, started, &limits),
            Err(UploadError::TooLarge)
        );
    }

    #[test]
    fn body_below_its_rate_after_the_stall_is_too_slow() {
        let limits = Limits {
            body: None,
            body_rate: 100,
            stall: Duration::from_secs(60),
            ..Limits::default()
        };
        let ago = |seconds| {
            Instant::now()
                .checked_sub(Duration::from_secs(seconds))
                .expect("the clock is older")
        };
        let count = |bytes, seconds| UploadMeter::default().add_bytes(bytes, ago(seconds), &limits);
        assert_eq!(
            (count(0, 60), count(1_000, 70), count(990, 70)),
            (Ok(()), Ok(()), Err(UploadError::TooSlow))
        );
    }
}
