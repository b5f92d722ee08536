//! Keeps a copy of the robots.txt that an origin (a web server behind crawlgate) serves itself. The
//! copy is fetched in the background, and stored for the next start. [`fetch_from_origin`] sends
//! the requests. [`FetchState`] decides whether an answer becomes the new copy. [`StoredCopy`] is
//! the copy in the state database.

mod connections;
mod fetch_result;
mod fetch_state;
mod request;
mod stored_copy;

pub use fetch_result::{FetchFailure, FetchResult, find_defect, truncate_body};
pub use fetch_state::{FetchState, FetchedCopy};
pub use request::{OriginTarget, OriginTargets, RobotsRequest, fetch_from_origin};
pub use stored_copy::{StoredCopies, StoredCopy};

#[cfg(test)]
mod tests;
