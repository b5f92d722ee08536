//! What `deploy/` ships works: Prometheus, systemd and Kubernetes accept it, it fits together,
//! every settings and policy file in it starts the real binary, and every metric it asks for is
//! there.

mod containers;
mod files;
pub mod generated;
mod git;
mod instances;
mod kubernetes;
mod monitoring;
mod reference;
mod running;
mod schema;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod service;
