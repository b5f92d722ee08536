//! The tests of the crate from outside: the engine through its library, crawlgate as a running
//! process.
//!
//! `engine` needs the engine alone and runs with `--no-default-features`. `proxy` has a folder for
//! each room.

mod engine;
#[cfg(feature = "proxy")]
mod proxy;
