//! Text into a checked policy: decoding, then what only the whole file shows.

use super::Policy;
use crate::yaml::{Diagnostics, Source};

/// Reads and checks one policy file, complaining about everything that is wrong with it in one run. There is a policy
/// only when no error was found; warnings leave it usable.
pub fn read(name: &str, source: &Source) -> (Option<Policy>, Diagnostics) {
    let _ = (name, source);
    todo!()
}
