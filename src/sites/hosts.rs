//! Files on their way into force, and whose the hosts are that they claim.

use super::files::Found;
use crate::policy::Site;
use crate::policy::model::HostPattern;
use crate::yaml::{Diagnostic, Diagnostics, Severity, Source};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Files that changed, by site.
pub type Candidates = BTreeMap<String, Candidate>;

/// Who has a host; `None` stands for every other host.
pub type Owners = HashMap<Option<HostPattern>, String>;

/// A file that was read.
pub struct Candidate {
    pub file: Found,
    /// What comes into force, unless somebody else has its hosts.
    pub site: Option<Arc<Site>>,
    /// The last good copy, in place of a file that cannot be used.
    pub copy: Option<Arc<Site>>,
    /// The file cannot be used: the copy has to be looked for.
    pub needs_copy: bool,
    /// What could come into force if its hosts were free, and what was said about it before they were not.
    pub waiting: Option<(Arc<Site>, Diagnostics)>,
    diagnostics: Diagnostics,
}

/// A host, and who has it.
pub struct Taken {
    host: Option<HostPattern>,
    owner: String,
}

impl Candidate {
    pub fn new(file: Found, site: Option<Arc<Site>>, diagnostics: Diagnostics) -> Candidate {
        let needs_copy = site.is_none();
        Candidate { file, site, copy: None, needs_copy, waiting: None, diagnostics }
    }

    /// Its hosts are taken.
    pub fn refuse(&mut self, taken: Taken) {
        let Some(site) = self.site.take() else { return };
        let Taken { host, owner } = taken;
        let place = host.and_then(|host| site.policy.hosts.iter().find(|claimed| claimed.value == host));
        let finding = match place {
            Some(place) => {
                let message = format!("the site `{owner}` is for the host {} already", place.value);
                Diagnostic::error("host-taken", place.span, message)
                    .help("a host belongs to one site: remove it from one of the two files")
            }
            None => {
                let message = format!("the site `{owner}` is for every other host already");
                Diagnostic::whole_file("host-taken", message).help("only one policy may leave out `hosts`")
            }
        };
        self.waiting = Some((site, self.diagnostics.clone()));
        self.diagnostics.push(finding);
        self.diagnostics.sort();
        self.needs_copy = true;
    }

    /// What is to be said: one line for each finding, and the errors at length. Notes, and what is beyond
    /// [`MAX_TOLD`], are left to `crawlgate check`: a log and a status are for what needs somebody.
    pub fn tell(&self) -> (Vec<String>, String) {
        let source: &Source = match &self.file {
            Ok(source) => source,
            Err(problem) => return (vec![problem.clone()], format!("error: {problem}\n")),
        };
        let items = &self.diagnostics.items;
        let errors = items.iter().filter(|item| item.severity == Severity::Error);
        let rendered = errors.map(|item| item.render(source, false) + "\n").collect();
        let mut worst: Vec<&Diagnostic> = items.iter().filter(|item| item.severity != Severity::Note).collect();
        worst.sort_by_key(|item| std::cmp::Reverse(item.severity));
        let more = worst.len().saturating_sub(MAX_TOLD);
        let mut told: Vec<String> = worst.iter().take(MAX_TOLD).map(|item| item.one_line(source)).collect();
        if more > 0 {
            told.push(format!("and {more} more: `crawlgate check` shows them all"));
        }
        (told, rendered)
    }

    /// Why it cannot be used, with what led to it and what helps: for whoever has no file to run `crawlgate check` on.
    pub fn refusals(&self) -> Vec<String> {
        let source: &Source = match &self.file {
            Ok(source) => source,
            Err(problem) => return vec![problem.clone()],
        };
        let errors = self.diagnostics.items.iter().filter(|item| item.severity == Severity::Error);
        let mut refusals: Vec<String> = errors.clone().take(MAX_TOLD).map(|item| item.with_help(source)).collect();
        match errors.count().saturating_sub(MAX_TOLD) {
            0 => {}
            more => refusals.push(format!("and {more} more")),
        }
        refusals
    }
}

/// Findings of one site that are told one by one.
const MAX_TOLD: usize = 20;

/// A host of the site that somebody else has.
pub fn find_taken(owners: &Owners, site: &Site) -> Option<Taken> {
    claims(site).into_iter().find_map(|host| Some(Taken { owner: owners.get(&host)?.clone(), host }))
}

/// Notes that the site has its hosts.
pub fn take_hosts(owners: &mut Owners, name: &str, site: &Site) {
    owners.extend(claims(site).into_iter().map(|host| (host, name.to_owned())));
}

fn claims(site: &Site) -> Vec<Option<HostPattern>> {
    match site.policy.hosts.as_slice() {
        [] => vec![None],
        hosts => hosts.iter().map(|host| Some(host.value.clone())).collect(),
    }
}
