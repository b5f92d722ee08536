//! One request as everything after its answer sees it: `RequestRecord` is made when a request
//! arrives, is judged and answered, and is then given to every sink (metrics, logs, evidence,
//! history). [`Counts`] are the numbers of requests that metrics, history, reports and audits share;
//! [`CountTable`] counts the requests of a running crawlgate.

mod count_table;
mod counts;
mod names;

pub use count_table::{CountTable, CountedRequest, MAX_SERIES, OVERFLOW, cut_label};
pub use counts::{ByIdentity, Counts};
pub use names::{CountedAction, RecordedKind, ViolationKind, identity_name};
