//! The origin's own robots.txt, fetched in the background and stored. [`FetchState`] decides what to make of an answer and
//! is pure. [`ask()`] speaks HTTP. [`StoredCopy`] is what the state store remembers.

mod ask;
mod connections;
mod fetch_result;
mod fetch_state;
mod stored_copy;

pub use ask::{RobotsRequest, Target, Targets, ask};
pub use fetch_result::{FetchFailure, FetchResult};
pub use fetch_state::{FetchState, FetchedCopy};
pub use stored_copy::{StoredCopies, StoredCopy};

#[cfg(test)]
mod tests;
