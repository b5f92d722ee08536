//! Automatic certificates. [`Acme`] gets certificates from an authority (RFC 8555) and renews them.
//! [`Issued`] holds the certificates in use and the answers to open challenges, for TLS handshakes
//! and requests.
//!
//! Each host has an order of its own, so that one bad name hurts no other. A host is in one of
//! these states:
//! - Due: it has no certificate, or its certificate is to be renewed. An attempt moves it to
//!   running.
//! - Running: crawlgate checks that the host leads to it, orders, answers the challenge, and
//!   fetches the certificate. The order is stored before crawlgate acts on it: a restart continues
//!   it. The certificate moves the host to certified, a failure to paused.
//! - Paused: the last attempt failed; a certificate that the host has stays in use. The pause is
//!   stored, and its end moves the host to due.
//! - Certified: its certificate is in use. Two thirds of its life, or the window that the authority
//!   suggests (RFC 9773), move the host to due.
//!
//! In an upgrade another process takes over from the running one. The running process stops its
//! attempts ([`Acme::hand_over`]) and passes the answers to open challenges to the next process,
//! which gives the same answers. The next process continues the stored orders once no other process
//! accepts connections.

mod attempt;
mod authority;
mod certificate;
mod failure;
mod issued;
mod progress;
mod reach;
mod renewal;
mod scheduler;
mod storage;

pub use issued::Issued;
pub use reach::{Ports, Reachable};
pub use scheduler::Acme;
