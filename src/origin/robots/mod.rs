//! The origin's own robots.txt, fetched in the background and stored. [`FetchState`] decides what to make of an answer and
//! is pure. [`ask()`] speaks HTTP. [`StoredCopy`] is what the state store remembers. Must not know policies.

mod ask;
mod fetch_result;
mod fetch_state;
mod fetched_copy;
mod public_addresses;
mod server_of_name;
mod stored_copy;
mod unix_connector;

pub use ask::{Question, Target, Targets, ask};
pub use fetch_result::{FetchFailure, FetchResult};
pub use fetch_state::FetchState;
pub use fetched_copy::FetchedCopy;
pub use stored_copy::{DamagedCopy, StoredCopies, StoredCopy};

#[cfg(test)]
mod tests;
