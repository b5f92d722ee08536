//! The input of an answer. [`Ruling`] is the decision about a request, with the site and the
//! snapshot (all compiled sites at a moment) that it was made with. [`Asked`] has the parts of the
//! request that shape the answer.

use crate::crawlers::Registry;
use crate::policy::{SiteEntry, Snapshot};
use crate::record::Judged;
use crate::time::Timestamp;
use crate::verdict::Decision;
use http::{HeaderMap, Method, header};
use std::sync::Arc;

/// A decision about a request to a site.
#[derive(Clone, Copy)]
pub struct Ruling<'a> {
    /// Known crawlers.
    pub registry: &'a Registry,
    /// The snapshot that the decision was made with.
    pub snapshot: &'a Arc<Snapshot>,
    /// The site in that snapshot.
    pub entry: &'a SiteEntry,
    /// The decision.
    pub decision: &'a Decision,
    /// When the request arrived.
    pub now: Timestamp,
    /// Whether a date alone may say that the client's copy is good: see
    /// [`crate::record::Judged::may_confirm_by_date`].
    pub may_confirm_by_date: bool,
    /// Whether robots.txt is answered 503: see [`crate::record::Judged::is_silent`].
    pub is_silent: bool,
}

impl<'a> Ruling<'a> {
    /// The ruling for a judgement. `now` is when the request arrived.
    pub fn new(judged: &'a Judged, registry: &'a Registry, now: Timestamp) -> Ruling<'a> {
        Ruling {
            registry,
            snapshot: &judged.snapshot,
            entry: judged.entry(),
            decision: &judged.decision,
            now,
            may_confirm_by_date: judged.may_confirm_by_date,
            is_silent: judged.is_silent,
        }
    }
}

/// The parts of a request that shape an answer to it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a Method,
    /// The fields. Those for which [`Asked::reads`] is true are enough.
    pub headers: &'a HeaderMap,
}

impl Asked<'_> {
    /// Whether an answer may depend on the field with this name: Accept, If-None-Match or
    /// If-Modified-Since, in any case.
    pub fn reads(name: &str) -> bool {
        [
            header::ACCEPT,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
        ]
        .iter()
        .any(|read| read.as_str().eq_ignore_ascii_case(name))
    }
}
