//! The origin's own robots.txt: asked for in the background, kept on disk, believed with care.
//!
//! `life.rs` decides and is pure, `ask.rs` speaks HTTP, `store.rs` writes files. Nothing here knows a policy.

mod ask;
mod fetch_state;
mod store;

pub use ask::{LOOP, Question, Target, Targets, ask};
pub use fetch_state::{Copy, FetchResult, FetchState, NOT_ASKED_YET, State};
pub use store::{Kept, Store, Torn};

#[cfg(test)]
mod tests;
