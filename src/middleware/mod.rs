//! [`GateLayer`] runs crawlgate inside an application, without a proxy or a second process. It is a
//! tower layer for axum, hyper, tonic and every other `Service<http::Request<_>>`. It serves
//! robots.txt. It blocks crawlers, slows them down, or answers them with 503 during a pause that
//! the policy plans. It adds X-Robots-Tag lines to responses, and writes robots meta tags into HTML
//! pages.
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
mod record_sink;
mod request;
mod service;
mod state;

pub use crate::finding::Finding;
pub use body::GateBody;
pub use layer::{GateBuilder, GateLayer, OpenError, RemoveSiteError};
pub use request::CrawlerRequest;
pub use service::{Gate, GateFuture};

#[cfg(test)]
mod tests;
