//! [`import`] turns an existing robots.txt into a policy, for a site that begins to use crawlgate.
//! For every user-agent token, the policy allows and disallows the same URLs as the file. It keeps
//! the comments of the file. Parts of the file that a policy cannot express are left out, and
//! listed in [`ImportedPolicy::notes`].

mod comments;
mod groups;
mod import_note;
mod signals;
mod writing;
mod yaml;

use super::lint::catalogue::{
    FILE_TOO_LARGE, MISSING_COLON, MISSPELT_KEY, NOT_A_ROBOTS_TXT, PATH_WITHOUT_SLASH,
    SEVERAL_AGENTS,
};
use super::{compile, lint, read};
use crate::crawlers::Registry;
use crate::robots::{Dialect, DialectRules, RobotsFile, RobotsKey};
use crate::yaml::{Diagnostics, SourceFile};
use comments::ImportedComments;
pub use import_note::ImportNote;
use std::cell::RefCell;
use std::sync::Arc;
pub use yaml::{yaml_list, yaml_scalar};

/// The enforcement of a new policy.
pub const OBSERVE: &str = "enforcement:\n  mode: observe  # nothing is blocked; the report says what enforce would block\n";

/// The result of an import.
pub struct ImportedPolicy {
    /// The policy as YAML.
    pub text: String,
    /// Notes to the owner, each with a line of the robots.txt.
    pub notes: Vec<(usize, ImportNote)>,
}

/// Makes a policy of a robots.txt, for its host if that is known.
///
/// ```
/// use crawlgate::{crawlers::Registry, internals::policy::import, robots::RobotsFile};
/// let file = RobotsFile::parse(*b"# No training, please.\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n");
/// let imported = import::import(&file, None, Registry::builtin());
/// assert!(imported.text.contains("# No training, please.\n    - agents: [GPTBot, CCBot]\n      disallow: /\n"));
/// ```
pub fn import(
    file: &RobotsFile,
    host: Option<&str>,
    registry: &'static Registry,
) -> ImportedPolicy {
    let reading = DialectRules::new(file, Dialect::Rfc9309, &registry.tokens_with_blanks());
    let import = Importer {
        file,
        reading,
        notes: RefCell::default(),
    };
    for finding in lint::lint_file("", file, None, registry).diagnostics.items {
        // What is not in the policy as it is written.
        let noted = [
            FILE_TOO_LARGE,
            MISSING_COLON,
            MISSPELT_KEY,
            NOT_A_ROBOTS_TXT,
            PATH_WITHOUT_SLASH,
            SEVERAL_AGENTS,
        ];
        if noted.iter().any(|lint| lint.id == finding.id) {
            let line = finding.span.map_or(1, |span| span.line as usize);
            let help = finding.help_and_more().unwrap_or_default();
            import.add_note(
                line,
                ImportNote::Finding(format!("{}; {help}", finding.message)),
            );
        }
    }
    let drafts = import.groups();
    let comments = ImportedComments::collect(file, &drafts);
    let mut text = import.render(host, &drafts, &comments);
    if keeps_googlebot_out(&text, registry) {
        text.push_str(
            "\n# Googlebot may fetch nothing. If that is meant, remove the next #:\n# \
                       acknowledge: [site_disallowed]\n",
        );
        import.add_note(1, ImportNote::Acknowledgement);
    }
    let mut notes = import.notes.into_inner();
    notes.sort();
    notes.dedup();
    ImportedPolicy { text, notes }
}

/// An import in progress.
struct Importer<'a> {
    file: &'a RobotsFile,
    reading: DialectRules,
    notes: RefCell<Vec<(usize, ImportNote)>>,
}

impl Importer<'_> {
    /// Adds a note. Notes about the whole file are at line 1.
    fn add_note(&self, line: usize, what: ImportNote) {
        self.notes.borrow_mut().push((line, what));
    }

    /// The values of all lines with this key, with the numbers of the lines.
    fn values(&self, key: RobotsKey) -> Vec<(usize, String)> {
        self.file
            .lines_within_limit()
            .filter_map(|line| Some((line.number, line.key_value.as_ref()?)))
            .filter(|(_, record)| record.key == key)
            .map(|(line, record)| (line, self.file.text(&record.value).into_owned()))
            .collect()
    }
}

/// Whether crawlgate would reject the policy because it closes the site to Googlebot. Only the
/// owner knows whether that is meant.
fn keeps_googlebot_out(text: &str, registry: &'static Registry) -> bool {
    let source = SourceFile {
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
