//! The tests of the crate from outside, a module per behaviour: the engine through its library, crawlgate as a running
//! process.
//!
//! Modules without `proxy` need the engine alone and run with `--no-default-features` too.

mod fuzz_corpora;
mod house;
mod import;
mod no_alloc;
mod public_api;
mod verdict_is_rfc9309;
mod zoo;

#[cfg(feature = "proxy")]
mod agreement;
#[cfg(feature = "proxy")]
mod audit;
#[cfg(feature = "proxy")]
mod cli_offline;
#[cfg(feature = "proxy")]
mod cli_running;
#[cfg(feature = "proxy")]
mod completions_and_man;
#[cfg(feature = "proxy")]
mod dashboard;
#[cfg(feature = "proxy")]
mod decisions;
#[cfg(feature = "proxy")]
mod deploy;
#[cfg(feature = "proxy")]
mod diff;
#[cfg(feature = "proxy")]
mod docs;
#[cfg(all(feature = "proxy", feature = "tower"))]
mod doors;
#[cfg(feature = "proxy")]
mod edge;
#[cfg(feature = "proxy")]
mod events;
#[cfg(feature = "proxy")]
mod examples;
#[cfg(feature = "proxy")]
mod export;
#[cfg(feature = "proxy")]
mod first_day;
#[cfg(feature = "proxy")]
mod forged;
#[cfg(feature = "proxy")]
mod gateway_lifecycle;
#[cfg(feature = "proxy")]
mod gateway_policy;
#[cfg(feature = "proxy")]
mod gateway_requests;
#[cfg(feature = "proxy")]
mod holding;
#[cfg(feature = "proxy")]
mod html;
#[cfg(feature = "proxy")]
mod html_in_chromium;
#[cfg(feature = "proxy")]
mod http2;
#[cfg(feature = "proxy")]
mod https_origin;
#[cfg(feature = "proxy")]
mod identity;
#[cfg(feature = "proxy")]
mod lane;
#[cfg(feature = "proxy")]
mod many_agents;
#[cfg(all(feature = "proxy", feature = "tower"))]
mod middleware;
#[cfg(feature = "proxy")]
mod moved_hosts;
#[cfg(feature = "proxy")]
mod nginx_origin;
#[cfg(feature = "proxy")]
mod origin_robots;
#[cfg(feature = "proxy")]
mod reload;
#[cfg(feature = "proxy")]
mod running_status;
#[cfg(feature = "proxy")]
mod schema;
#[cfg(feature = "proxy")]
mod signals;
#[cfg(feature = "proxy")]
mod state_directory;
#[cfg(feature = "proxy")]
mod support;
#[cfg(feature = "proxy")]
mod tag_changes;
#[cfg(feature = "proxy")]
mod tags;
#[cfg(feature = "proxy")]
mod timelines;
#[cfg(feature = "proxy")]
mod wget;
#[cfg(feature = "proxy")]
mod zero_config;
