//! Everything that crawlgate answers itself: robots.txt, refusals, slow-downs, pauses, requests for a licence, the file
//! of TDMRep, errors. [`Answers`] turns a decision into a complete [`Answer`]; every door sends it as it is. Must not
//! know how a decision is made, nor through which door the answer leaves.

mod answer;
mod challenge;
mod conditional;
mod errors;
mod field;
mod negotiate;
mod page;
mod passed;
mod prepared;
mod redirect;
mod refusal;
mod ruling;
mod served_file;
mod tags;

pub use answer::Answer;
pub use challenge::challenge;
pub use errors::{Rejection, Unanswered, failure, full, no_origin, rejection};
pub use field::Field;
pub use passed::{led_back, led_to, misasked, not_here, passed, referred, retry_later};
pub use prepared::Answers;
pub use redirect::redirect;
pub use ruling::{Asked, Ruling};

#[cfg(test)]
mod tests;
