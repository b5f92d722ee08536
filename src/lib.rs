//! crawlgate publishes a site's rules for crawlers, and enforces them.
//!
//! A site owner writes a policy in YAML. crawlgate publishes the policy as `/robots.txt`, adds its
//! `X-Robots-Tag` lines to responses, can block crawlers that break its rules, and shows which
//! crawlers obeyed. The program `crawlgate` does this as a reverse proxy. This library does it
//! inside your own program.
//!
//! # A decision
//!
//! [`Engine`] judges requests by a policy. It has no runtime, no clock and no I/O.
//!
//! ```
//! use crawlgate::{Engine, Request, Verdict};
//!
//! # fn main() -> Result<(), crawlgate::PolicyError> {
//! let engine = Engine::load("purposes: { training: disallow }\nenforcement: { mode: enforce }\n")?.engine;
//! let request = Request::get("shop.example", "/prices").user_agent("GPTBot/1.2");
//! let decided = engine.decide(request);
//! assert_eq!((decided.verdict, decided.action.status), (Verdict::Disallowed, Some(403)));
//! # Ok(())
//! # }
//! ```
//!
//! If a policy has mistakes, loading it fails with a [`PolicyError`], which shows each mistake and
//! its place in the text.
//!
//! # Features
//!
//! A plain `cargo add crawlgate` builds the proxy, too (features `proxy` and `tower`). With
//! `--no-default-features` you get this engine alone. Add what you need to it:
//!
//! | feature | adds |
//! |---|---|
//! | `tower` | the layer for an application |
//! | `html` | robots meta tags in pages |
//! | `metrics` | metrics of the layer for Prometheus |
//! | `state` | what must survive a restart of the layer (SQLite) |
//! | `signatures` | the check of signed requests; the layer cannot use it yet |
//!
//! # In an application
//!
//! With the feature `tower`, `middleware::GateLayer` puts crawlgate in front of an application of
//! axum, hyper or tonic. It serves robots.txt, can block crawlers that break the rules, adds
//! X-Robots-Tag lines to responses, and follows changes of the policies.
//!
#![cfg_attr(feature = "tower", doc = "```")]
#![cfg_attr(not(feature = "tower"), doc = "```ignore")]
//! use crawlgate::middleware::GateLayer;
//! use tower_layer::Layer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let policies = directory.path();
//! std::fs::write(policies.join("site.yaml"), "purposes: { training: disallow }\n")?;
//! let gate = GateLayer::open(policies)?;
//! # struct Application;
//! # let application = Application;
//! let service = gate.layer(application); // With axum: Router::new().layer(gate)
//! # drop(service);
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! | module | begin with |
//! |---|---|
//! | [`robots`] | [`robots::RobotsFile`], [`robots::DialectRules`]: parse any robots.txt, and ask what it allows |
//! | [`crawlers`] | [`crawlers::Registry`]: which crawler a user agent claims to be |
//! | [`indexing`] | [`indexing::parse_lines`]: parse lines of X-Robots-Tag into directives |
//! | [`yaml`] | [`yaml::Diagnostics`]: what is wrong with a policy, and where |
//!
//! Times are [`time::Timestamp`]s (whole seconds since 1970) and [`std::time::Duration`]s. User
//! agents, hosts and targets (path and query) are the bytes that the client sent. Any bytes are
//! accepted, and never cause an error.
//!
//! [library.md](https://github.com/OWNER/crawlgate/blob/main/docs/library.md) says more about
//! `GateLayer`. `docs/internals/architecture.md` has the map of the source.

#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![deny(clippy::expect_used, clippy::unwrap_used)]
// A build with some of the features uses a part of the shared modules. The whole build uses them all.
#![cfg_attr(
    not(all(feature = "proxy", feature = "tower")),
    allow(dead_code, unused_imports)
)]

/// Gives enums that strum has a word for the method `name`.
macro_rules! named {
    ($($enumeration:ty),+) => {
        $(
            impl $enumeration {
                /// Its name in policies, reports, logs and metrics.
                pub fn name(self) -> &'static str {
                    self.into()
                }
            }
        )+
    };
}

/// Shows errors by `Debug` as by `Display`, because `main` prints a returned error by `Debug`.
macro_rules! debug_as_display {
    ($($error:ty),+) => {
        $(
            impl std::fmt::Debug for $error {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    std::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}

// The modules by layer, from below. A module imports only from layers below its own. The map is in
// docs/internals/architecture.md.

// Layer: base.

#[cfg(feature = "gate")]
mod files;
#[cfg(feature = "gate")]
mod hash;
#[cfg(any(feature = "gate", feature = "html"))]
mod locks;
mod printable;
#[cfg(feature = "gate")]
mod threads;
pub mod time;

// Layer: formats.

#[cfg(feature = "gate")]
mod bounded;
#[cfg(feature = "gate")]
mod clock;
#[cfg(feature = "gate")]
mod finding;
pub mod indexing;
#[cfg(feature = "gate")]
mod local_pool;
mod numbers;
pub mod robots;
#[cfg(feature = "gate")]
mod scheduler;
#[cfg(feature = "gate")]
mod sketch;
pub mod yaml;

// Layer: recognition.

pub mod crawlers;
#[cfg(feature = "gate")]
mod heads;
#[cfg(feature = "html")]
mod html;
#[cfg(feature = "gate")]
mod referrals;

// Layer: language.

#[cfg(feature = "proxy")]
mod download;
mod logs;
mod policy;
#[cfg(feature = "gate")]
mod settings;

// Layer: decision.

mod publications;
mod verdict;

// Layer: records.

#[cfg(feature = "gate")]
mod facts;
#[cfg(feature = "gate")]
mod record;

// Layer: side effects.

#[cfg(feature = "proxy")]
mod dns;
#[cfg(feature = "gate")]
mod state;
#[cfg(feature = "gate")]
mod telemetry;

// Layer: knowledge.

#[cfg(feature = "gate")]
mod identity;
#[cfg(feature = "gate")]
mod ledger;
#[cfg(feature = "proxy")]
mod origin;
#[cfg(feature = "gate")]
mod peers;
#[cfg(feature = "proxy")]
mod report;
#[cfg(feature = "gate")]
mod sites;
#[cfg(feature = "proxy")]
mod upstreams;

// Layer: judging.

#[cfg(feature = "gate")]
mod judge;

// Layer: answers.

#[cfg(feature = "gate")]
mod answers;
#[cfg(feature = "gate")]
mod forwarding;
#[cfg(feature = "gate")]
mod upkeep;

// Layer: pipeline.

#[cfg(feature = "gate")]
mod requests;

// Layer: entry points.

#[cfg(feature = "proxy")]
mod admin;
#[cfg(feature = "proxy")]
mod edge;
mod engine;
#[cfg(feature = "proxy")]
mod gateway;

// Layer: add-ons.

#[cfg(feature = "proxy")]
mod acme;
#[cfg(feature = "proxy")]
mod audit;
#[cfg(feature = "proxy")]
mod decisions;
#[cfg(feature = "proxy")]
mod diff;
#[cfg(feature = "proxy")]
mod evidence;
#[cfg(feature = "proxy")]
mod exchange;
#[cfg(feature = "proxy")]
mod export;
#[cfg(feature = "tower")]
pub mod middleware;
#[cfg(feature = "proxy")]
mod sitemap;
#[cfg(feature = "proxy")]
mod upgrade;

// Layer: assembly.

#[cfg(feature = "proxy")]
mod cli;
/// What tests, benches and examples of crawlgate need beside the interface.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "proxy")]
mod server;

pub use engine::{Engine, EngineBuilder, EngineDecision, LoadedEngine, PolicyError, Request};
pub use policy::{Kind, Verdict};
pub use verdict::{
    ActionKind, ActionReport, CrawlerReport, EffectiveReport, Explanation, GroupReport, Identity,
    ResponseFacts, RuleReport,
};

/// The program `crawlgate`.
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub use cli::main;

/// The code in docs/library.md, which the tests of the documentation compile.
#[cfg(all(doctest, feature = "tower", feature = "metrics", feature = "state"))]
#[doc = include_str!("../docs/library.md")]
struct LibraryDocExamples;
