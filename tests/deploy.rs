//! What `deploy/` ships works: Prometheus, systemd and Kubernetes accept it, it fits together, every settings and
//! policy file in it starts the real binary, and every metric it asks for is there.
#![cfg(feature = "proxy")]

mod support;

#[path = "deploy/containers.rs"]
mod containers;
#[path = "deploy/files.rs"]
mod files;
#[path = "deploy/kubernetes.rs"]
mod kubernetes;
#[path = "deploy/monitoring.rs"]
mod monitoring;
#[path = "deploy/running.rs"]
mod running;
#[path = "deploy/schema.rs"]
mod schema;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "deploy/service.rs"]
mod service;
