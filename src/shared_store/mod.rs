//! [`SharedStore`]: the Valkey or Redis server through which several instances of crawlgate
//! exchange facts (`exchange`). Each call blocks, and one caller has it at a time.
//!
//! A connection is in one of two states: there is none, or there is one to a server that was
//! examined. Each call without one makes one and examines the server; each error ends it.

mod connection;
mod link;
mod refusal;
mod store;

pub use connection::SharedStore;
pub use store::CountsOfPeriod;
