//! From the text of a policy file to a site and its findings. The main types are [`SiteCompiler`] and [`Candidate`].

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

/// Everything that stands between a file and its use, other sites aside: `verdict::load_with`.
pub type Read = fn(&str, &Source, Surroundings<'_>, &'static Registry, Timestamp) -> (Option<Arc<Site>>, Diagnostics);

/// Compiles policies.
pub struct SiteCompiler {
    /// How a file is read.
    pub read: Read,
    /// Known crawlers.
    pub registry: &'static Registry,
    /// The files beside the policies.
    pub files: IncludedFiles,
    /// Whether the settings allow proof by what the operators of crawlers publish.
    pub published_proof: bool,
}

impl SiteCompiler {
    /// Reads and compiles one file with what is known of its origin's robots.txt. A file on which the compiler itself
    /// fails is a mistake of one site, too, and touches no other.
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

    /// Why the file cannot be used, with what led to it and what helps: for an operator without a file to run
    /// `crawlgate check` on.
    pub fn refusals(&self) -> Vec<String> {
        FileReport::refusals(&self.source, &self.findings)
    }
}
