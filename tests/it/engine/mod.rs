//! The engine through its library: no program, no network, no clock. What needs no feature runs
//! where none is chosen: `cargo test --no-default-features --test it`, the first step of `./test`.

mod fuzz_corpora;
#[cfg(not(feature = "proxy"))]
mod import;
pub(crate) mod links;
#[cfg(not(feature = "proxy"))]
mod no_alloc;
#[cfg(not(feature = "proxy"))]
mod public_api;
#[cfg(not(feature = "proxy"))]
mod source_rules;
#[cfg(not(feature = "proxy"))]
mod verdict_is_rfc9309;
#[cfg(not(feature = "proxy"))]
mod zoo;
