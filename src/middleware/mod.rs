//! crawlgate inside an application: [`GateLayer`], a tower layer for axum, hyper, tonic and every
//! other `Service<http::Request<_>>`. It needs no proxy and no second process. It serves
//! robots.txt, blocks crawlers or slows them down, answers them with 503 during a pause, adds
//! X-Robots-Tag lines to responses by their real content type, and writes robots metas into pages.
//!
//! ```no_run
//! use crawlgate::middleware::GateLayer;
//!
//! # fn main() -> Result<(), crawlgate::middleware::OpenError> {
//! let gate = GateLayer::open("policies")?;
//! // With axum: Router::new().route("/", get(page)).layer(gate)
//! # drop(gate);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/library.md` describes what the application has to know.

mod body;
mod layer;
mod pages;
mod request;
mod service;
mod state;

pub use body::GateBody;
pub use layer::{GateBuilder, GateLayer, OpenError, RemoveSiteError};
pub use request::CrawlerRequest;
pub use service::{Gate, GateFuture};

#[cfg(test)]
mod tests;
