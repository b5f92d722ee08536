//! The origins' own robots.txt ([`robots`]), and that of any other site (`fetch`). Must not know requests of clients,
//! policies or metrics.

mod fetch;
pub mod robots;
mod trust;

pub use fetch::{FetchError, Fetched, fetch};
