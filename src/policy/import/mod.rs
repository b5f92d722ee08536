//! A robots.txt that exists already, as a policy: written as a person would write it, with its comments, and with the
//! same verdict for every token and target.
//!
//! Text in, text out: knows no file system. What a policy cannot say is said in a comment in its place and in the
//! notes.

mod comments;
mod groups;
mod left_out;
mod signals;
mod writing;
mod yaml;

use super::{compile, lint, read};
use crate::crawlers::Registry;
use crate::robots::{Dialect, File, Line, Reading};
use crate::yaml::{Diagnostics, Source};
use comments::Carried;
use groups::{Groups, take_purposes};
pub use left_out::{LeftOut, SignalLimit, UnfitToken};
use std::collections::BTreeMap;
use std::sync::Arc;
use writing::Writing;

/// How to import.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The host that the file is for.
    pub host: Option<&'a str>,
    /// Write `purposes` where every crawler of a purpose is shut out whole. New crawlers of it will be, too.
    pub purposes: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The policy.
    pub text: String,
    /// What could not be carried over, with the number of its line in the robots.txt.
    pub notes: Vec<(usize, LeftOut)>,
}

/// Writes the policy of a robots.txt.
///
/// ```
/// use crawlgate::{crawlers::Registry, policy::import, robots::File};
/// let file = File::parse(*b"# No training, please.\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n");
/// let imported = import::import(&file, &import::ImportOptions::default(), Registry::builtin());
/// assert!(imported.text.contains("# No training, please.\n    - agents: [GPTBot, CCBot]\n      disallow: /\n"));
/// ```
pub fn import(file: &File, options: &ImportOptions<'_>, registry: &'static Registry) -> Imported {
    let spaced = registry.tokens_with_blanks();
    let reading = Reading::new(file, Dialect::Rfc9309, &spaced);
    let mut notes = Vec::new();
    let mut drafts = Groups { file, reading: &reading, notes: &mut notes }.drafts(registry);
    let purposes = if options.purposes { take_purposes(&mut drafts, registry) } else { BTreeMap::new() };
    let carried = Carried::of(file, &drafts);
    let mut writing = Writing { file, reading: &reading, notes: &mut notes };
    let mut text = writing.text(options, &drafts, &purposes, &carried);
    if keeps_search_engines_out(&text, registry) {
        text.push_str("\nacknowledge: [site_disallowed]   # the robots.txt keeps search engines off the whole site\n");
    }
    notes.sort();
    notes.dedup();
    Imported { text, notes }
}

/// Whether the policy would be refused for keeping search engines out: the file did so before, and is meant.
fn keeps_search_engines_out(text: &str, registry: &'static Registry) -> bool {
    let source = Source { name: "import".into(), text: text.into() };
    let Some(site) = read("import", &source).0.and_then(|policy| compile(Arc::new(policy), registry).ok()) else {
        return false;
    };
    let mut findings = Diagnostics::default();
    lint::lint(&site, registry, &mut findings);
    findings.items.iter().any(|finding| finding.id == lint::catalogue::SITE_DISALLOWED.id)
}

/// A line without its comment.
fn content(line: &Line) -> std::ops::Range<usize> {
    match &line.record {
        Some(record) => record.name.start..record.value.end.max(record.name.end),
        None => line.text.clone(),
    }
}
