//! The engine through its library: no program, no network, no clock.

mod fuzz_corpora;
mod house;
mod import;
mod no_alloc;
mod public_api;
mod verdict_is_rfc9309;
mod zoo;
