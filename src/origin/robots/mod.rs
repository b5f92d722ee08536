//! The origin's own robots.txt: fetched in the background and stored. [`FetchState`] decides what to make of an answer
//! and is pure, [`ask()`] speaks HTTP, [`Store`] writes files. Must not know policies.

mod ask;
mod fetch_state;
mod store;

pub use ask::{Question, Target, Targets, ask};
pub use fetch_state::{Copy, FetchFailure, FetchResult, FetchState, State};
pub use store::{Kept, Store, Torn};

#[cfg(test)]
mod tests;
