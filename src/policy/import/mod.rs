//! [`import`] turns an existing robots.txt into a policy, for a site that begins to use crawlgate.
//! The policy is written as a person would write it, with the comments of the file. It allows and
//! disallows the same URLs for every user-agent token, except for the parts that it leaves out.
//! [`Imported::notes`] lists each of these as a [`LeftOut`]. In a group, an unknown line or a
//! statement about the use of content that is left out also becomes a comment.

mod comments;
mod groups;
mod left_out;
mod signals;
mod writing;
mod yaml;

use super::{compile, lint, read};
use crate::crawlers::Registry;
use crate::robots::{Dialect, File, Key, Reading};
use crate::yaml::{Diagnostics, Source};
use comments::Carried;
use groups::take_purposes;
pub use left_out::LeftOut;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The options of an import.
#[derive(Default)]
pub struct ImportOptions<'a> {
    /// The host that the file is for.
    pub host: Option<&'a str>,
    /// Write `purposes` where every crawler of a purpose is shut out whole. New crawlers of it will
    /// be, too.
    pub purposes: bool,
}

/// The result of an import.
#[derive(Default)]
pub struct Imported {
    /// The policy.
    pub text: String,
    /// The parts that were left out, with the number of the line in the robots.txt.
    pub notes: Vec<(usize, LeftOut)>,
}

/// Writes the policy of a robots.txt.
///
/// ```
/// use crawlgate::{crawlers::Registry, internals::policy::import, robots::File};
/// let file = File::parse(*b"# No training, please.\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n");
/// let imported = import::import(&file, &import::ImportOptions::default(), Registry::builtin());
/// assert!(imported.text.contains("# No training, please.\n    - agents: [GPTBot, CCBot]\n      disallow: /\n"));
/// ```
pub fn import(file: &File, options: &ImportOptions<'_>, registry: &'static Registry) -> Imported {
    let spaced = registry.tokens_with_blanks();
    let reading = Reading::new(file, Dialect::Rfc9309, &spaced);
    let mut import = Import {
        file,
        reading,
        notes: Vec::new(),
    };
    let mut drafts = import.drafts(registry);
    let purposes = if options.purposes {
        take_purposes(&mut drafts, registry)
    } else {
        BTreeMap::new()
    };
    let carried = Carried::of(file, &drafts);
    let mut text = import.text(options, &drafts, &purposes, &carried);
    if keeps_search_engines_out(&text, registry) {
        text.push_str("\n# Googlebot may fetch nothing. If that is meant:\n# acknowledge: [site_disallowed]\n");
        import.note(1, LeftOut::Acknowledgement);
    }
    if options.purposes && purposes.is_empty() {
        import.note(1, LeftOut::Purposes);
    }
    let mut notes = import.notes;
    notes.sort();
    notes.dedup();
    Imported { text, notes }
}

/// A file while it is imported, and the notes so far.
struct Import<'a> {
    file: &'a File,
    reading: Reading,
    notes: Vec<(usize, LeftOut)>,
}

impl Import<'_> {
    /// Adds a note about a line, which counts from 1. Notes about the whole file are at line 1.
    fn note(&mut self, line: usize, what: LeftOut) {
        self.notes.push((line, what));
    }

    /// The values of all lines with this key in the part of the file that crawlers read, with the
    /// numbers of the lines.
    fn values(&self, key: Key) -> Vec<(usize, String)> {
        let records = self
            .file
            .lines_read()
            .filter_map(|line| Some((line.number, line.record.as_ref()?)))
            .filter(|(_, record)| record.key == key);
        records
            .map(|(line, record)| (line, self.file.text(&record.value).into_owned()))
            .collect()
    }
}

/// Whether the policy would be refused for keeping Googlebot out. Only the owner knows whether that
/// is meant. False where the policy is refused for another reason.
fn keeps_search_engines_out(text: &str, registry: &'static Registry) -> bool {
    let source = Source {
        name: "import".into(),
        text: text.into(),
    };
    let Some(site) = read("import", &source)
        .0
        .and_then(|policy| compile(Arc::new(policy), registry).ok())
    else {
        return false;
    };
    let mut findings = Diagnostics::default();
    lint::lint(&site, registry, &mut findings);
    findings
        .items
        .iter()
        .any(|finding| finding.id == lint::catalogue::SITE_DISALLOWED.id)
}
