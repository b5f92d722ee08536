//! [`SiteCompiler`] compiles the text of a policy file. The result is a [`Candidate`]: the findings about the file, and the
//! site if the file has no mistake.

use super::host_owners::HostConflict;
use super::policy_directory::PolicyText;
use super::policy_file::FileReport;
use crate::crawlers::Registry;
use crate::policy::lint::allow_published_proof;
use crate::policy::origin::Origin;
use crate::policy::{IncludedFiles, Site};
use crate::time::Timestamp;
use crate::verdict::Surroundings;
use crate::yaml::{Diagnostic, Diagnostics, Source};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The function that decodes, checks and compiles a policy file: `verdict::load_with`.
pub type Read = fn(&str, &Source, Surroundings<'_>, &'static Registry, Timestamp) -> (Option<Arc<Site>>, Diagnostics);

/// Compiles policies.
pub struct SiteCompiler {
    /// Decodes, checks and compiles a file.
    pub read: Read,
    /// Known crawlers.
    pub registry: &'static Registry,
    /// The files in the policy directory that policies may name.
    pub files: IncludedFiles,
    /// Whether the settings allow proof by what the operators of crawlers publish.
    pub published_proof: bool,
}

impl SiteCompiler {
    /// Compiles one file with what is known of its origin's robots.txt. A panic of the compiler becomes a finding about this
    /// file, so that other sites still load.
    pub fn compile(&self, name: &str, text: &PolicyText, origin: &Origin, now: Timestamp) -> Candidate {
        let source = match text {
            Ok(source) => source,
            Err(unreadable) => {
                let source = Source { name: unreadable.path.clone().into(), text: "".into() };
                let findings = Diagnostics { items: vec![unreadable.diagnostic()] };
                return Candidate { source, site: None, findings };
            }
        };
        let surroundings = Surroundings { origin, files: &self.files };
        let read = AssertUnwindSafe(|| (self.read)(name, source, surroundings, self.registry, now));
        let (site, mut findings) = catch_unwind(read).unwrap_or_else(|_| {
            let finding = Diagnostic::whole_file("internal-error", "crawlgate itself fails on this file")
                .help("this is a mistake in crawlgate: please report it, with the file");
            (None, Diagnostics { items: vec![finding] })
        });
        if let Some(site) = site.as_ref().filter(|_| self.published_proof) {
            allow_published_proof(site, self.registry, &mut findings);
        }
        Candidate { source: source.clone(), site, findings }
    }
}

/// A file that was compiled.
pub struct Candidate {
    source: Source,
    /// The site, if the file has no mistake.
    pub site: Option<Arc<Site>>,
    findings: Diagnostics,
}

impl Candidate {
    /// Takes the site away, because another site has one of its hosts.
    pub fn refuse(&mut self, conflict: &HostConflict) {
        if let Some(site) = self.site.take() {
            self.findings.push(conflict.diagnostic(&site));
            self.findings.sort();
        }
    }

    /// The findings for the log and the status.
    pub fn report(&self) -> FileReport {
        FileReport::new(&self.source, &self.findings)
    }

    /// The errors with their help, for an operator who has no file to run `crawlgate check` on.
    pub fn refusals(&self) -> Vec<String> {
        FileReport::refusals(&self.source, &self.findings)
    }
}
