//! The HTTP responses that crawlgate makes itself: robots.txt and tdmrep.json (rights for text and
//! data mining), responses in place of a page (blocks, slow-downs, pauses, demands for a licence),
//! and errors. [`AnswerCache`] turns the decision about a request into a complete [`Answer`].
//! Another reverse proxy can ask crawlgate whether a request may pass. Functions such as
//! [`nginx_refusal`] make an answer that the other proxy understands.

mod answer;
mod cache;
mod conditional;
mod context;
mod errors;
mod field;
mod negotiate;
mod page;
mod proxy_answers;
mod refusal;
mod served_file;

pub use answer::{Answer, http1_name};
pub use cache::AnswerCache;
pub use context::{AnswerContext, RequestToAnswer};
pub use errors::{
    Rejection, UnansweredRequest, challenge_answer, no_origin_answer, origin_failure, origin_full,
    redirect_answer, rejection_answer,
};
pub use field::{DECISION, STATUS};
pub use proxy_answers::{
    allow_answer, envoy_refusal, healthy, loop_detected, malformed_query, nginx_refusal, not_found,
    redirect_to_file,
};

#[cfg(test)]
mod tests;
