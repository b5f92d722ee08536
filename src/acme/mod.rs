//! Automatic TLS certificates by ACME (RFC 8555). [`AcmeScheduler`] gets certificates from a
//! certificate authority and renews them. [`IssuedCertificates`] has the certificates in use, and
//! the answers to the authority's open challenges.
//!
//! Each host has its own order, so that one bad name does not fail the others. A host is in one of
//! these states:
//! - Due: it has no certificate, or its certificate is to be renewed. An attempt moves it to
//!   running.
//! - Running: crawlgate checks that the host's DNS points to this machine, orders a certificate,
//!   answers the challenge, and fetches the certificate. The order is stored, so that it survives
//!   a restart. If the attempt succeeds, the host is certified. If it fails, the host
//!   is paused.
//! - Paused: the last attempt failed. If the host has a certificate, this stays in use. When the
//!   pause ends, the host is due.
//! - Certified: its certificate is in use. The host becomes due after two thirds of the
//!   certificate's lifetime, or in the window that the authority suggests (RFC 9773).
//!
//! In an upgrade a new process takes over from the running one. The running process stops its
//! attempts ([`AcmeScheduler::pause`]). The new process continues the stored orders once the old
//! process accepts no more connections.

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

pub use issued::IssuedCertificates;
pub use reach::ChallengeEndpoints;
pub use scheduler::AcmeScheduler;
