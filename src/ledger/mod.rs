//! What is remembered of crawlers from request to request: their pace, and who stepped into a trap.
//!
//! Knows sites, claims and addresses; knows no proxy, and no clock (`now` is an argument). Every table is bounded.

mod conduct;
mod pace;
mod traps;

pub use conduct::Conducts;
pub use pace::{Pace, gcra};
pub use traps::{Mark, Traps, TrapsError};

#[cfg(test)]
mod conduct_tests;
