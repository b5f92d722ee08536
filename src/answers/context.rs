//! What crawlgate needs to make the answer to an HTTP request: [`AnswerContext`] has the decision
//! about the request, and the compiled policies that led to this decision. [`RequestToAnswer`] has
//! the method and the header fields of the request.

use crate::crawlers::Registry;
use crate::record::SiteJudgement;
use crate::time::Timestamp;
use http::{HeaderMap, Method, header};

/// A decision about a request to a site, with everything that the answer needs.
pub struct AnswerContext<'a> {
    /// Known crawlers.
    pub registry: &'a Registry,
    /// The decision, and the snapshot that it was made with.
    pub judged: &'a SiteJudgement,
    /// When the request arrived.
    pub now: Timestamp,
}

/// The parts of a request that an answer to it depends on.
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
