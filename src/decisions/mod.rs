//! The decision service, for sites behind another reverse proxy (nginx, Caddy, Traefik, Envoy or
//! HAProxy). The proxy asks about each of its requests. crawlgate says whether the request may
//! pass, and which header fields to add to the response. [`DecisionService`] is the service; a
//! listener of the module `edge` calls it. Each decision, and each robots.txt that the service
//! sends, is recorded in logs and metrics.
//!
//! Each proxy describes the original request in its own format. The module `query` reads these
//! formats; the module `service` answers.

mod query;
mod service;

pub use service::DecisionService;
