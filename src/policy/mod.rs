//! The policy language. The owner of a site writes one YAML file (the policy) about what crawlers
//! may do there.
//!
//! [`read`] checks the text of a policy and makes a [`Policy`] of it. [`compile()`] makes a
//! [`Site`] of a policy: the robots.txt to be served, the X-Robots-Tag lines, and how each crawler
//! is treated. A [`Snapshot`] holds all sites at one moment. Beside this path, `import` writes a
//! policy from an existing robots.txt, and `lint` finds mistakes in a compiled site. No code here
//! reads a file or the clock: callers pass in texts and times.

pub mod model;
pub mod site;

mod agent_names;
mod compile;
pub(crate) mod decode;
pub mod host_history;
pub mod import;
pub mod included;
pub mod lint;
pub mod origin;
mod parsed_version;
pub mod planned_pause;
mod regular_expression;
pub mod retire;
mod signal_lines;

pub use compile::{compile, compile_with_origin};
pub use decode::read;
#[cfg(feature = "internals")]
pub use host_history::HostHistories;
pub use host_history::HostHistory;
pub use included::IncludedFiles;
pub use model::{Kind, Policy, Verdict};
pub use site::{ParsedVersion, Site, SiteEntry, Snapshot, SupersededVersion, Version};

/// The JSON Schema of a policy, for editors. It accepts all that [`read`] accepts, except a bare
/// `true` or `false` as a name.
pub const SCHEMA: &str = include_str!("policy.schema.json");

#[cfg(test)]
mod tags_tests;
#[cfg(test)]
mod tests;
