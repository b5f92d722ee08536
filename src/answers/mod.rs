//! The HTTP responses that crawlgate makes itself: robots.txt, blocks, slow-downs, pauses, demands
//! for a licence, tdmrep.json, errors. [`AnswerCache`] turns the decision about a request into a
//! complete [`Answer`]. Another reverse proxy can ask crawlgate whether a request may pass;
//! functions such as [`nginx_refusal`] adapt the answer to this proxy.

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

pub use answer::Answer;
pub use cache::AnswerCache;
pub use context::{AnswerContext, RequestToAnswer};
pub use errors::{
    Rejection, UnansweredRequest, challenge_answer, no_origin_answer, origin_failure, origin_full,
    redirect_answer, rejection_answer,
};
pub use field::AnswerField;
pub use proxy_answers::{
    envoy_refusal, healthy, loop_detected, malformed_query, nginx_refusal, not_found, pass_answer,
    redirect_to_file,
};

#[cfg(test)]
mod tests;
