//! The Valkey or Redis where several instances meet: [`SharedStore`] speaks to it for `exchange`. It blocks, and one
//! thread has it.
//!
//! A connection is in one of two states: there is none, or there is one to a server that was examined. Each call without one
//! makes one and examines the server (`examine`); each error ends it.

mod commands;
mod connection;
mod counts;
mod examine;
mod refusal;
mod store;

pub use connection::SharedStore;
pub use counts::CountsOfPeriod;
