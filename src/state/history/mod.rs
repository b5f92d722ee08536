//! The history: counts of requests by hour, day and week, and samples of requests against the rules. It is for people to look
//! at; nothing is judged by it. [`HistoryBatch`] is added in the same transaction as the facts. [`HistoryReader`] reads the
//! history, also while another process writes.
//!
//! Counts are kept for each site, crawler and identity, and for all sites (an empty site) and all crawlers (an empty crawler),
//! so that an overview need not add them up. Hours are kept for 7 days, days for 130 days and weeks for 400 days, within bounds
//! of rows: a page reads tens of periods, however far back it goes.

mod counted;
mod counts;
mod read;
mod step;
mod tables;

pub use counted::Told;
pub use counts::{ByIdentity, Counts, HistoryBatch, Sample};
pub(super) use read::Memory;
pub use read::{HistoryError, HistoryReader, SampleFilter, SampleGroup};
pub use step::Step;
pub(super) use tables::{prepare, write};

/// Seconds of an hour.
pub const HOUR: i64 = 3_600;
/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// Samples of one site, crawler, kind, rule, identity and day.
pub const SAMPLES_EACH: usize = 20;
