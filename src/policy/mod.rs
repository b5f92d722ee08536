//! The policy language: a site's owner writes one YAML file about what crawlers may do there.
//! [`read`] parses and checks that file and returns a [`Policy`]; [`compile()`] turns it into a
//! [`Site`], and a [`Snapshot`] holds all sites at one moment. `import` writes a policy from an
//! existing robots.txt, and `lint` finds mistakes. No code here reads a file or the clock: callers
//! pass in texts and times.

// Only `Kind` and `Verdict` are part of the public interface.
#![allow(missing_docs)]

pub mod model;
pub mod site;

mod agent_names;
mod compile;
pub(crate) mod decode;
pub mod import;
pub mod included;
pub mod lint;
pub mod origin;
mod parsed_robots_version;
pub mod planned_pause;
pub mod publication_history;
mod regular_expression;
pub mod retire;
mod signal_lines;

pub use compile::{compile, compile_with_origin};
pub use decode::read;
pub use included::IncludedFiles;
pub use model::{Kind, Policy, Verdict};
#[cfg(feature = "internals")]
pub use publication_history::PublicationHistories;
pub use publication_history::PublicationHistory;
pub use site::{
    ParsedRobotsVersion, RobotsVersionId, Site, SiteEntry, Snapshot, SupersededVersion,
};

/// The JSON Schema of a policy, for editors. It accepts what [`read`] accepts, except a bare `true`
/// or `false` as a name.
pub const SCHEMA: &str = include_str!("policy.schema.json");

#[cfg(test)]
mod tags_tests;
#[cfg(test)]
mod tests;
