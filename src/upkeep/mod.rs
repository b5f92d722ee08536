//! The work beside the requests that keeps a [`Judge`](crate::judge::Judge) up to date.
//! [`JudgeParts`] opens an [`Instance`] with the records that the previous process left. [`Upkeep`]
//! reads policies again, puts planned changes into force and sets gauges. [`UpkeepThreads`] does so
//! when it is due, and stores the ledger.

mod instance;
mod reload;
mod threads;

pub use instance::{Instance, JudgeParts};
pub use reload::Upkeep;
pub use threads::{Repeated, UpkeepThreads, keep_everything};
