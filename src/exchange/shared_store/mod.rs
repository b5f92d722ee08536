//! [`SharedStore`]: the client of the Valkey or Redis server through which several crawlgate
//! instances exchange facts. It implements `exchange::ExchangeStore`. Calls block, and come one at
//! a time.
//!
//! A call without a connection first connects, and checks that the server can be used. An error
//! closes the connection.

mod connection;
mod errors;
mod redis_connection;
mod store;

pub use connection::SharedStore;
pub use store::EncodedCounts;
