//! [`Outcome`]: what became of a request, in plain values that every door can tell.

use std::time::Duration;

/// What was sent, and how it went.
#[derive(Clone, Debug, Default)]
pub struct Outcome<'a> {
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
    pub referer: Option<&'a [u8]>,
    /// Whether the client got a whole copy of robots.txt, or the word that its own copy is good.
    pub is_copy: bool,
    /// The validator that it sent for its own copy.
    pub if_none_match: Option<&'a [u8]>,
    /// The id of the request.
    pub request_id: &'a [u8],
    /// The trace that it belongs to.
    pub trace_id: Option<&'a [u8]>,
    /// The error that ended the request.
    pub error: Option<&'a str>,
}

/// An outcome that is kept after the end of its request, for a record that waits.
#[derive(Clone, Debug)]
pub(super) struct KeptOutcome {
    status: u16,
    x_robots_tag: Vec<Box<[u8]>>,
    body_octets: u64,
    elapsed: Duration,
    http: &'static str,
    tls: Option<&'static str>,
    referer: Option<Box<[u8]>>,
    is_copy: bool,
    if_none_match: Option<Box<[u8]>>,
    request_id: Box<[u8]>,
    trace_id: Option<Box<[u8]>>,
    error: Option<Box<str>>,
}

impl KeptOutcome {
    pub(super) fn of(outcome: &Outcome<'_>) -> Self {
        Self {
            status: outcome.status,
            x_robots_tag: outcome.x_robots_tag.iter().map(|line| Box::from(*line)).collect(),
            body_octets: outcome.body_octets,
            elapsed: outcome.elapsed,
            http: outcome.http,
            tls: outcome.tls,
            referer: outcome.referer.map(Into::into),
            is_copy: outcome.is_copy,
            if_none_match: outcome.if_none_match.map(Into::into),
            request_id: outcome.request_id.into(),
            trace_id: outcome.trace_id.map(Into::into),
            error: outcome.error.map(Into::into),
        }
    }

    /// The lines of X-Robots-Tag that were sent.
    pub(super) fn x_robots_tag(&self) -> Vec<&[u8]> {
        self.x_robots_tag.iter().map(|line| &**line).collect()
    }
}

impl<'a> Outcome<'a> {
    /// An outcome that was kept, with its [`KeptOutcome::x_robots_tag`].
    pub(super) fn kept(kept: &'a KeptOutcome, x_robots_tag: &'a [&'a [u8]]) -> Self {
        Self {
            status: kept.status,
            x_robots_tag,
            body_octets: kept.body_octets,
            elapsed: kept.elapsed,
            http: kept.http,
            tls: kept.tls,
            referer: kept.referer.as_deref(),
            is_copy: kept.is_copy,
            if_none_match: kept.if_none_match.as_deref(),
            request_id: &kept.request_id,
            trace_id: kept.trace_id.as_deref(),
            error: kept.error.as_deref(),
        }
    }
}

/// Why a request was answered before it was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// It is no proper request.
    Refused,
    /// An authority asks for the proof that a host is the operator's.
    Challenged,
    /// The listener leads every request to another one.
    Redirected,
}

impl Unjudged {
    /// Its name in metrics and logs.
    pub fn action(self) -> &'static str {
        match self {
            Unjudged::Refused => "refuse",
            Unjudged::Challenged => "challenge",
            Unjudged::Redirected => "redirect",
        }
    }
}
