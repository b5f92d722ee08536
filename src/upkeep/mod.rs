//! The background work that keeps a running crawlgate ([`Instance`]) up to date. [`InstanceInputs`]
//! opens an instance with what the previous process left in the state database. [`InstanceUpkeep`]
//! reloads policies, puts planned changes into force and updates metrics. [`UpkeepThreads`] are the
//! threads that reload changed policies and store the ledger (which robots.txt was served to which
//! crawler).

mod instance;
mod reload;
mod threads;

pub use instance::{Instance, InstanceInputs};
pub use reload::InstanceUpkeep;
pub use threads::{RepeatingThread, UpkeepThreads, store_everything};
