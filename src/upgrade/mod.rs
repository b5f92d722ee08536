//! The hand-over between processes: listeners that were bound by another one ([`Inherited`]). Must not know what is served.

mod inherited;

pub use inherited::{Inherited, Socket};
