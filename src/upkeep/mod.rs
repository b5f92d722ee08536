//! What keeps a [`Judge`](crate::judge::Judge) up to date beside the requests: it is opened with what the last run left,
//! policies are read again, planned changes come into force, the ledger is stored, and gauges are set. The main types are
//! [`JudgeParts`], [`Instance`], [`Upkeep`] and [`UpkeepThreads`]. The server and the
//! middleware use them.

mod exchange;
#[cfg(test)]
mod exchange_tests;
mod gauges;
mod history;
mod instance;
mod reload;
mod repeated;
mod threads;

pub use exchange::{ExchangeOptions, ExchangeThread};
pub use instance::{Instance, JudgeParts};
pub use reload::Upkeep;
pub use repeated::Repeated;
pub use threads::{UpkeepThreads, keep_everything};
