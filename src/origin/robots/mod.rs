//! The origin's own robots.txt, fetched in the background and stored. [`FetchState`] decides
//! whether an answer becomes the copy in use. [`ask()`] sends the requests. [`StoredCopy`] is the
//! copy in the state store.

mod ask;
mod connections;
mod fetch_result;
mod fetch_state;

pub use ask::{RobotsRequest, Target, Targets, ask};
pub use fetch_result::{FetchFailure, FetchResult, cut, defect};
pub use fetch_state::{FetchState, FetchedCopy, StoredCopies, StoredCopy};

#[cfg(test)]
mod tests;
