//! The decision service: nginx, Caddy, Traefik, Envoy or HAProxy asks about each of its requests,
//! and crawlgate says whether the request may pass and which fields the response gets.
//! [`Decisions`] is the service, behind a listener of the edge. It records decisions, and each
//! robots.txt that it serves.
//!
//! `question` reads the original request out of the fields of each proxy, `service` answers.

mod question;
mod service;

pub use service::Decisions;
