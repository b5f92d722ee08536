//! The answers that crawlgate gives itself: robots.txt, refusals, slow-downs, pauses, requests for
//! a licence, the file of TDMRep, errors. [`Answers`] turns a decision into a complete [`Answer`],
//! which clients get as it is. The decision service adapts it to the proxy that asks, for example
//! with [`refused_for_nginx`].

mod answer;
mod conditional;
mod errors;
mod field;
mod negotiate;
mod page;
mod passed;
mod prepared;
mod refusal;
mod ruling;
mod served_file;

pub use answer::Answer;
pub use errors::{Rejection, Unanswered, challenge, failure, full, no_origin, redirect, rejection};
pub use field::Field;
pub use passed::{
    asked_in_a_loop, malformed_question, moved_to, not_served, passed, refused_for_nginx,
    retry_later,
};
pub use prepared::Answers;
pub use ruling::{Asked, Ruling};

#[cfg(test)]
mod tests;
