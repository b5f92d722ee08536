//! Certificates by themselves: [`Acme`] gets certificates from an authority (RFC 8555) and renews them, [`Issued`] is what the
//! doors read of it: the certificates in use, and the answers to questions of the authority.
//!
//! Each host has an order of its own, so that one bad name hurts no other. A host is in one of these states:
//! - `Due`: it has no certificate, or its certificate is to be renewed. An attempt moves it to `Running`.
//! - `Running`: crawlgate asks its own token under the host, orders, answers the authority, and fetches the certificate. The
//!   order is stored before it is acted on: after a restart it goes on. The certificate moves the host to `Certified`, a
//!   failure to `Paused`.
//! - `Paused`: the last attempt failed. The pause is stored, and its end moves the host to `Due`.
//! - `Certified`: its certificate is in use. Two thirds of its life, or the window that the authority suggests (RFC 9773),
//!   move it to `Due`.
//!
//! In an upgrade the running process breaks its attempts off ([`Acme::hand_over`]) and passes the answers to open questions of
//! the authority. The next process gives the same answers, and goes on with the stored orders once it alone accepts
//! connections.

mod attempt;
mod authority;
mod certificate;
mod failure;
mod issued;
mod order;
mod progress;
mod reach;
mod renewal;
mod scheduler;
mod status;
mod storage;

pub use issued::{ALPN, Issued, PassedQuestions};
pub use reach::Ports;
pub use scheduler::{Acme, AcmeThread};
