//! [`Outcome`]: the response that a request got, in plain values that every door has.

use std::time::Duration;

/// What was sent and how it ended; in borrowed octets, or in octets of its own.
#[derive(Clone, Debug, Default)]
pub struct Outcome<'a, B = &'a [u8]> {
    /// The status that was sent; 0 where no response was begun.
    pub status: u16,
    /// The lines of X-Robots-Tag that were sent.
    pub x_robots_tag: &'a [&'a [u8]],
    /// Octets of the body that were sent.
    pub body_octets: u64,
    /// From the arrival until now.
    pub elapsed: Duration,
    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// The version of TLS that the connection speaks; `None` in clear text.
    pub tls: Option<&'static str>,
    /// The Referer field of the request.
    pub referer: Option<B>,
    /// Whether the client got a whole copy of robots.txt, or the word that its own copy is good.
    pub is_copy: bool,
    /// The validator that it sent for its own copy.
    pub if_none_match: Option<B>,
    /// The id of the request.
    pub request_id: B,
    /// The trace that it belongs to.
    pub trace_id: Option<B>,
    /// The error that ended the request.
    pub error: Option<&'static str>,
}

/// An outcome that is kept after the end of its request, for a record that waits.
pub(super) type KeptOutcome = Outcome<'static, Box<[u8]>>;

impl<B> Outcome<'_, B> {
    /// The outcome with other octets, without the lines of X-Robots-Tag.
    pub(super) fn map<'b, 'c, C>(&'b self, octets: impl Fn(&'b B) -> C) -> Outcome<'c, C> {
        Outcome::<'c, C> {
            status: self.status,
            x_robots_tag: &[],
            body_octets: self.body_octets,
            elapsed: self.elapsed,
            http: self.http,
            tls: self.tls,
            referer: self.referer.as_ref().map(&octets),
            is_copy: self.is_copy,
            if_none_match: self.if_none_match.as_ref().map(&octets),
            request_id: octets(&self.request_id),
            trace_id: self.trace_id.as_ref().map(&octets),
            error: self.error,
        }
    }
}
