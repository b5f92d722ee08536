//! crawlgate: the gate that crawlers go through.
//!
//! A site owner writes one YAML policy. crawlgate publishes it as `/robots.txt`, attaches it as `X-Robots-Tag` to what
//! it forwards, holds crawlers to it, and shows which crawlers obeyed.
//!
//! # The map of the house
//!
//! A room imports only from floors below its own. `verdict` and the engine's rooms below it have no runtime, no proxy, no
//! clock and no I/O; time and facts are arguments. The engine builds alone with `default-features = false`.
//!
//! | floor | room | what lives there |
//! |---|---|---|
//! | 9 | `main.rs`, `cli`, `server` | one file per command; assembly of the running server |
//! | 9 | `upgrade` | the hand-over to the next process: messages, descriptors, inherited listeners |
//! | 8 | `edge` | a connection before it is Pingora's: admission, PROXY protocol, TLS, limits, HTTP/2, answers that need no origin, and the lane |
//! | 8 | `gateway` | the Pingora proxy, one file per phase: translates between Pingora and the rooms below, decides nothing |
//! | 8 | `decisions` | the decision service: nginx, Caddy, Traefik, Envoy and HAProxy ask whether a request may pass |
//! | 8 | `audit` | access logs in, compliance report out |
//! | 8 | `diff` | two sets of rules compared: verdicts, answers, tags |
//! | 8 | `admin` | metrics endpoint, read API, control socket, dashboard |
//! | 8 | `middleware` | the gate in an application: a tower layer |
//! | 7 | `requests` | the sequence that all doors share: head, challenge, redirect, judging, answer; the record of what was sent |
//! | 6 | `upkeep` | what keeps a judge up to date beside the requests: opening, reloads, planned changes, gauges |
//! | 6 | `acme` | certificates by themselves: orders at an authority, renewal, the answers to its questions |
//! | 6 | `answers` | a decision turned into a complete answer: robots.txt, refusal, slow-down, pause, licence, TDMRep, errors |
//! | 6 | `forwarding` | what is written into a request on its way to the origin and into a response on its way back |
//! | 5 | `judge` | claim, identity, cached versions, behaviour and decision of a request; the recording of its outcome |
//! | 4 | `upstreams` | the servers of origins: addresses, choice, ejection, retries, bounds and the queue of people |
//! | 4 | `origin` | the origin's own robots.txt |
//! | 4 | `sites` | the policy directory made into the snapshot in force: plan, apply, publish; pauses |
//! | 5 | `shared_store` | the Valkey or Redis where instances meet, as `exchange` asks it |
//! | 4 | `exchange` | what several instances tell each other: facts that merge, members, the store where they meet |
//! | 4 | `ledger` | which versions were served to which crawler on which host; crawl rate; marked clients |
//! | 4 | `identity` | proof that a crawler is the one that it claims to be: published networks, reverse DNS, signatures |
//! | 3 | `evidence` | a log that a third party can check: hash chains, signed checkpoints, cases |
//! | 3 | `dns` | questions to name servers: names of addresses, addresses of names and how long they count |
//! | 3 | `export` | a policy as native configuration of nginx, HAProxy, Caddy and Apache |
//! | 3 | `telemetry` | metrics, access log, event log, tracing |
//! | 3 | `state` | everything that outlasts a restart: facts in one SQLite file, and one thread that writes |
//! | 2 | `history` | what was published on which host, and when; which superseded versions a host has |
//! | 2 | [`verdict`] | `decide`, pure and allocation-free; `explain` beside it |
//! | 1 | [`policy`] | the language: decoding, checks, lint, compile to a `Snapshot` |
//! | 1 | `settings` | the server's own file, `crawlgate.yaml` |
//! | 0 | [`crawlers`] | the registry of known crawlers, identification from a user agent |
//! | 0 | `heads` | heads of requests and responses read as every door reads them: host, target, content type |
//! | 0 | `html` | robots metas and marks written into a page on its way |
//! | -1 | `logs` | lines of access logs as requests |
//! | -1 | [`robots`] | RFC 9309: targets, patterns, rule sets, rendering. Knows bytes only |
//! | -1 | [`indexing`] | X-Robots-Tag: directives, field grammar, combination, emission |
//! | -1 | [`yaml`] | YAML as a tree that knows where everything stands; mistakes shown in their place |
//! | -1 | `bounded` | a table by hash that holds so much at the most; not part of the engine |
//! | -1 | `clock` | what time it is, and how much was lived through; not part of the engine |
//! | -2 | [`time`] | a moment and its spellings: the ground that every floor stands on |
//!
//! A request, in order: over HTTP/1 `edge::head` reads it and `edge::desk` hands it to `requests::Requests::receive`;
//! over HTTP/2 `edge::http2` does, in an application `middleware::visit`, for another proxy `decisions::service`.
//! `receive` refuses it, answers it, or has it forwarded: it asks `judge::Judge`, which asks the ledger and
//! [`verdict::decide`], and takes the answer from `answers::Answers`. A request that passes goes through `edge::lane`, or
//! through `gateway::peer`, `gateway::forward`, `gateway::response` and `gateway::body`; `requests::Forward` writes the
//! heads. `requests::Ticket::finish` records what was sent, through `judge::Recorder`.
//!
//! Where to begin with a question:
//!
//! | question | file |
//! |---|---|
//! | may this crawler still have an older version? | `ledger/cached_versions.rs`, from the [`policy::HostHistory`] that `history/timeline.rs` computes |
//! | what happens to a policy file with a mistake? | `sites/plan.rs`; the states of a file are in `sites/policy_file.rs` |
//! | what is stored when, and what does the next start believe? | `sites/publisher.rs` and `state/mod.rs`; `state/previous_run.rs` |
//! | where does the body of a 403 come from? | `answers/refusal.rs` |
//! | where would a new kind of request be added? | `Kind` in `verdict/decision.rs`, decided in `verdict/decide.rs` |
//! | where a new lint? | `policy/lint/catalogue.rs`, then the file of its subject beside it |
//! | where a new door? | a room on floor 8 that calls `requests::Requests::receive`, and `requests::Ticket::finish` when the octets were written; `examples/toy_door.rs` is one in 80 lines |
//!
//! # What other crates may use
//!
//! `middleware`, with the feature `tower`, is crawlgate inside an application. The engine is for programs of your own:
//! [`crawlers`], [`indexing`], [`policy`], [`robots`], [`time`], [`verdict`] and [`yaml`]. `tests/it/public-api.txt`
//! lists every item of these modules. All other modules are parts of the proxy: their documentation is in the source, and
//! they change without notice.
//!
//! Times are [`time::Timestamp`]s (whole seconds since 1970) and [`std::time::Duration`]s. User agents, hosts and targets
//! are octets as they came; no function fails because of what they hold. Functions that read what an operator wrote return
//! [`yaml::Diagnostics`], each with its place.
//!
//! ```
//! use crawlgate::crawlers::{Claim, Registry};
//!
//! let registry = Registry::builtin();
//! let Claim::Known(crawler) = registry.identify(b"Mozilla/5.0 (compatible; GPTBot/1.2)") else { panic!() };
//! assert_eq!(registry.get(crawler).id, "gptbot");
//! assert_eq!(registry.identify(b"MySpider/1.0 (+https://spider.example)"), Claim::Other);
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod crawlers;
#[doc(hidden)]
pub mod history;
pub mod indexing;
#[doc(hidden)]
pub mod logs;
pub mod policy;
pub mod robots;
pub mod time;
pub mod verdict;
pub mod yaml;

#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod acme;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod admin;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod answers;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod audit;
#[cfg(feature = "gate")]
mod bounded;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod clock;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod decisions;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod diff;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod dns;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod edge;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod evidence;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod exchange;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod export;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod forwarding;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod gateway;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod heads;
#[cfg(feature = "html")]
#[doc(hidden)]
pub mod html;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod identity;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod judge;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod ledger;
#[cfg(feature = "tower")]
pub mod middleware;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod origin;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod requests;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod server;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod settings;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod shared_store;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod sites;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod state;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod telemetry;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod upgrade;
#[cfg(feature = "gate")]
#[doc(hidden)]
pub mod upkeep;
#[cfg(feature = "proxy")]
#[doc(hidden)]
pub mod upstreams;

/// The code in docs/library.md, which the tests of the documentation compile.
#[cfg(all(doctest, feature = "tower"))]
#[doc = include_str!("../docs/library.md")]
struct LibraryPage;
