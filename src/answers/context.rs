//! What crawlgate needs to make the answer to an HTTP request: [`AnswerContext`] has the decision
//! about the request, and the compiled policies that led to this decision. [`RequestToAnswer`] has
//! the method and the header fields of the request.

use crate::crawlers::Registry;
use crate::policy::{SiteEntry, Snapshot};
use crate::record::SiteJudgement;
use crate::time::Timestamp;
use crate::verdict::Decision;
use http::{HeaderMap, Method, header};
use std::sync::Arc;

/// A decision about a request to a site, with everything that the answer needs.
#[derive(Clone, Copy)]
pub struct AnswerContext<'a> {
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
    /// Whether a date alone may confirm the client's copy: see
    /// [`crate::record::SiteJudgement::may_confirm_by_date`].
    pub may_confirm_by_date: bool,
    /// Whether robots.txt is answered 503: see
    /// [`crate::record::SiteJudgement::withholds_robots_txt`].
    pub withholds_robots_txt: bool,
}

impl<'a> AnswerContext<'a> {
    /// The context of a judgement. `now` is when the request arrived.
    pub fn new(
        judged: &'a SiteJudgement,
        registry: &'a Registry,
        now: Timestamp,
    ) -> AnswerContext<'a> {
        AnswerContext {
            registry,
            snapshot: &judged.snapshot,
            entry: judged.entry(),
            decision: &judged.decision,
            now,
            may_confirm_by_date: judged.may_confirm_by_date,
            withholds_robots_txt: judged.withholds_robots_txt,
        }
    }
}

/// The parts of a request that an answer to it depends on.
#[derive(Clone, Copy)]
pub struct RequestToAnswer<'a> {
    /// The method.
    pub method: &'a Method,
    /// The fields; those for which [`RequestToAnswer::may_affect_answer`] is true are enough.
    pub headers: &'a HeaderMap,
}

impl RequestToAnswer<'_> {
    /// Whether an answer may depend on the field with this name: Accept, If-None-Match or
    /// If-Modified-Since, in any case.
    pub fn may_affect_answer(name: &str) -> bool {
        [
            header::ACCEPT,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
        ]
        .iter()
        .any(|read| read.as_str().eq_ignore_ascii_case(name))
    }
}
