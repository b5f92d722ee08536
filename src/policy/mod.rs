//! The policy language: YAML into a [`Policy`] (checked), and policies into a [`Snapshot`] (compiled).
//!
//! Text in, values out: this room reads no file and no clock.

pub mod compiled;
pub mod model;

mod check;
mod compile;
pub(crate) mod decode;
pub mod import;
pub mod lint;

pub use check::read;
pub use compile::{CompileError, compile};
pub use compiled::{Held, Site, SiteEntry, Snapshot, Version};
pub use model::Policy;

#[cfg(test)]
mod tests;
