//! crawlgate: the gate that crawlers go through.
//!
//! A site owner writes one YAML policy. crawlgate publishes it as `/robots.txt`, attaches it as `X-Robots-Tag` to what
//! it forwards, holds crawlers to it, and shows who kept to it.
//!
//! # The map of the house
//!
//! A room imports only from floors below its own. Floors 0 to 3 are the **engine**: no runtime, no proxy, no clock and
//! no I/O; time and facts are arguments. It builds alone with `default-features = false`.
//!
//! | floor | room | what lives there |
//! |---|---|---|
//! | 6 | `main.rs`, [`cli`], [`server`] | one file per command; assembly of the running server |
//! | 5 | [`gateway`] | the Pingora proxy, one file per phase: translates between Pingora and the engine, decides nothing |
//! | 5 | [`admin`] | metrics endpoint, read API, control socket |
//! | 4 | [`origin`] | upstreams: addresses, background resolution, balancing; the origin's own robots.txt |
//! | 4 | [`sites`] | the policy directory made into the snapshot in force: reload, last good copies, pauses, superseded versions |
//! | 4 | [`ledger`] | what was served to whom on which host, and what a crawler may therefore hold; their pace, who stepped into a trap |
//! | 4 | [`telemetry`] | metrics, access log, tracing |
//! | 3 | [`verdict`] | `Facts`, `Holdings`, `decide`: pure and allocation-free; `explain` beside it |
//! | 3 | [`history`] | what was published on which host, and when: the past that requests are judged by |
//! | 2 | [`policy`] | the language: decoding, checks, lint, compile to a `Snapshot` |
//! | 2 | [`settings`] | the server's own file, `crawlgate.yaml` |
//! | 1 | [`crawlers`] | the registry of known crawlers, identification from a user agent |
//! | 1 | [`html`] | robots metas and marks written into a page on its way |
//! | 0 | [`robots`] | RFC 9309: targets, patterns, rule sets, rendering. Knows bytes only |
//! | 0 | [`indexing`] | X-Robots-Tag: directives, field grammar, combination, emission |
//! | 0 | [`yaml`] | YAML as a tree that knows where everything stands; mistakes shown in their place |
//! | 0 | [`durable`] | files written whole, so that a crash leaves the one before or the new one; not part of the engine |
//! | 0 | [`clock`] | what time it is, and how much was lived through; not part of the engine |
//! | -1 | [`time`] | a moment and its spellings: the ground that every floor stands on |
//!
//! A request, in order: `gateway::early` loads the snapshot and settles who is asking; `gateway::request` builds
//! [`verdict::Facts`] and asks [`verdict::decide`]; `gateway::peer` takes a prepared address from [`origin`];
//! `gateway::response` asks the policy's tag plan for lines; `gateway::body` has [`html`] write them into pages where
//! the policy wants it; `gateway::logging` counts and records.

#![forbid(unsafe_code)]

pub mod crawlers;
pub mod history;
pub mod indexing;
pub mod policy;
pub mod robots;
pub mod time;
pub mod verdict;
pub mod yaml;

#[cfg(feature = "proxy")]
pub mod admin;
#[cfg(feature = "proxy")]
pub mod cli;
#[cfg(feature = "proxy")]
pub mod clock;
#[cfg(feature = "proxy")]
pub mod durable;
#[cfg(feature = "proxy")]
pub mod gateway;
#[cfg(feature = "html")]
pub mod html;
#[cfg(feature = "proxy")]
pub mod ledger;
#[cfg(feature = "proxy")]
pub mod origin;
#[cfg(feature = "proxy")]
pub mod server;
#[cfg(feature = "proxy")]
pub mod settings;
#[cfg(feature = "proxy")]
pub mod sites;
#[cfg(feature = "proxy")]
pub mod telemetry;
