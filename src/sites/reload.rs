//! Loading and reloading, per site: one site's mistake keeps that site's old policy and touches no other.

use super::default_sites::DefaultSite;
use super::files::{self, Found};
use super::hosts::{Candidate, Candidates, Owners, find_taken, take_hosts};
use super::origins::OriginKnown;
use super::state::{Memory, State};
use super::status::{FileStatus, Files};
use super::waiting::WAITING;
use super::{SiteOptions, StartError};
use crate::crawlers::Registry;
use crate::history::{PublicationLog, VersionStore};
use crate::policy::origin::Origin;
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::yaml::{Diagnostic, Diagnostics, Source};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// What a reload came to, per site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
    /// What is wrong with the directory itself.
    pub problem: Option<String>,
    /// Why what is new is not in force yet, though nothing is wrong with it.
    #[serde(default)]
    pub waiting: Option<String>,
}

impl ReloadReport {
    /// Whether every file is in force as it stands.
    pub fn is_whole(&self) -> bool {
        self.problem.is_none()
            && self.waiting.is_none()
            && !self.sites.iter().any(|site| matches!(site.outcome, Outcome::Kept | Outcome::Refused))
    }
}

/// One site's outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteReload {
    /// The site.
    pub site: String,
    /// What came of it.
    pub outcome: Outcome,
    /// `file:line:column: error[id]: message`, in the order of the file.
    pub findings: Vec<String>,
}

/// What came of a site's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// New.
    Added,
    /// As before.
    Unchanged,
    /// The new policy is in force.
    Replaced,
    /// The file is refused; the old policy stays.
    Kept,
    /// Refused, and there is no old policy: the site is not served by a policy.
    Refused,
    /// The file is gone, and with it the site.
    Removed,
}

/// One site and the file it came from.
pub(super) struct Loaded {
    name: String,
    /// `None` when the file was refused and nothing else is there.
    pub(super) entry: Option<SiteEntry>,
    /// The file as it was last seen, refused or not.
    seen: Found,
    /// What the file would be if another site did not have its hosts.
    waiting: Option<(Arc<Site>, Diagnostics)>,
    /// Whether the file as it was last seen is in force.
    accepted: bool,
    last_good_copy: bool,
    /// Whether the copy came into force with this reload.
    copy_is_new: bool,
    findings: Vec<String>,
    rendered: String,
}

impl Loaded {
    fn outcome_when_unchanged(&self) -> Outcome {
        match (self.accepted, &self.entry) {
            (true, _) => Outcome::Unchanged,
            (false, Some(_)) => Outcome::Kept,
            (false, None) => Outcome::Refused,
        }
    }
}

/// All sites, by name.
pub struct Sites {
    pub(super) policies: PathBuf,
    pub(super) registry: &'static Registry,
    read: Read,
    pub(super) state: State,
    pub(super) memory: Memory,
    pub(super) loaded: BTreeMap<String, Loaded>,
    /// The sites that there are now because there is no policy.
    pub(super) default_sites: BTreeMap<String, SiteEntry>,
    /// Those that there are whenever there is none, in the order of the settings.
    pub(super) sites_without_policy: Vec<DefaultSite>,
    pub(super) origins: BTreeMap<String, OriginKnown>,
    /// What the hosts of the published snapshot published, now and before.
    pub(super) published_log: PublicationLog,
    pub(super) versions: VersionStore,
    /// The published snapshot.
    pub(super) published: Snapshot,
    /// When the first superseded version of the published snapshot can be forgotten.
    pub(super) forget_at: Option<Timestamp>,
    may_be_missing: bool,
    pub(super) generation: u64,
    last_reload: Timestamp,
    /// What is wrong with the directory itself.
    problem: Option<String>,
    /// Since when what is new waits: see [`super::waiting`].
    pub(super) waiting: Option<Timestamp>,
    /// The sites whose robots.txt was answered 503 before the start.
    pub(super) withheld_before: BTreeSet<String>,
}

/// Everything that stands between a file and its use, other sites aside: `verdict::load_with_origin`.
pub type Read = fn(&str, &Source, &Origin, &'static Registry, Timestamp) -> (Option<Arc<Site>>, Diagnostics);

impl Sites {
    pub fn start(
        options: SiteOptions,
        registry: &'static Registry,
        read: Read,
        now: Timestamp,
    ) -> Result<Sites, StartError> {
        let (state, memory) = State::open(options.state).map_err(StartError::Io)?;
        let mut sites = Sites {
            withheld_before: memory.withheld.clone(),
            policies: options.policies,
            registry,
            read,
            state,
            memory,
            loaded: BTreeMap::new(),
            default_sites: BTreeMap::new(),
            sites_without_policy: options.origins.default_sites,
            origins: options.origins.copies,
            published_log: PublicationLog::default(),
            versions: VersionStore::default(),
            published: Snapshot::default(),
            forget_at: None,
            may_be_missing: options.may_be_missing,
            generation: 0,
            last_reload: now,
            problem: None,
            waiting: None,
        };
        // What was said about pages meanwhile, and where, nobody knows.
        if sites.state.has_lost_track() || sites.state.is_incomplete() && !sites.memory.log.is_empty() {
            sites.memory.log.was_lost(now);
        }
        sites.recall_versions();
        sites.published_log = sites.memory.log.clone();
        let (report, _) = sites.reload(now);
        if let Some(problem) = report.problem {
            return Err(StartError::Io(problem));
        }
        if sites.state.witnesses().mislead(now) {
            let why = sites.state.warnings().collect::<Vec<_>>().join("; ");
            return Err(StartError::Io(format!("the state directory cannot be used: {why}")));
        }
        let mut broken = String::new();
        for (name, loaded) in &mut sites.loaded {
            if loaded.accepted {
                continue;
            }
            if loaded.entry.is_none() || options.strict {
                broken.push_str(&loaded.rendered);
                broken.push('\n');
            } else {
                tracing::error!(site = %name, findings = ?loaded.findings, "the policy is refused: running on its last good copy");
            }
        }
        if broken.is_empty() { Ok(sites) } else { Err(StartError::Policies(broken)) }
    }

    /// Loads what changed, and says whether the snapshot has to be replaced.
    pub fn reload(&mut self, now: Timestamp) -> (ReloadReport, bool) {
        self.last_reload = now;
        self.problem = None;
        let found = match files::policies(&self.policies) {
            Ok(found) => found,
            Err(error) if self.may_be_missing && error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            // A directory that cannot be read is no reason to forget the sites.
            Err(error) => {
                self.problem =
                    Some(format!("the policy directory {} cannot be read: {error}", self.policies.display()));
                return (ReloadReport { sites: Vec::new(), problem: self.problem.clone(), waiting: None }, false);
            }
        };
        let mut outcomes = BTreeMap::new();
        let gone: Vec<String> = self.loaded.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
        for name in gone {
            self.forget(&name);
            outcomes.insert(name, Outcome::Removed);
        }
        let mut candidates = Candidates::default();
        for (name, file) in found {
            match self.loaded.get(&name) {
                Some(loaded) if loaded.seen == file && loaded.waiting.is_none() => {
                    outcomes.insert(name, loaded.outcome_when_unchanged());
                }
                _ => {
                    let candidate = self.read(&name, file, now);
                    candidates.insert(name, candidate);
                }
            }
        }
        self.settle_hosts(&mut candidates, now);
        for (name, candidate) in candidates {
            let outcome = self.put(&name, candidate, now);
            outcomes.insert(name, outcome);
        }
        let switched = self.keep_time(now);
        let mut changed = self.settle_without_policy(now) | !switched.is_empty();
        changed |=
            outcomes.values().any(|outcome| matches!(outcome, Outcome::Added | Outcome::Replaced | Outcome::Removed));
        changed |= self.forget_at.is_some_and(|at| now > at);
        for loaded in self.loaded.values_mut() {
            changed |= std::mem::take(&mut loaded.copy_is_new);
            if let (true, Ok(source)) = (loaded.accepted, &loaded.seen) {
                self.state.keep(&loaded.name, &source.text);
            }
        }
        self.remember(now);
        let findings = |name: &String| self.loaded.get(name).map(|loaded| loaded.findings.clone()).unwrap_or_default();
        let sites = outcomes
            .into_iter()
            .map(|(site, outcome)| SiteReload { findings: findings(&site), site, outcome })
            .collect();
        (ReloadReport { sites, problem: None, waiting: None }, changed)
    }

    fn forget(&mut self, name: &str) {
        self.loaded.remove(name);
        self.state.forget(name);
        self.memory.forget(name);
    }

    /// Reads and compiles one file. What makes the compiler fail is a mistake of one site, too, and touches no other.
    fn read(&self, name: &str, file: Found, now: Timestamp) -> Candidate {
        let candidate = self.read_with(name, file, &self.origin_of_file(name, now));
        match candidate.site.as_ref().and_then(|site| self.inherited(site, now)) {
            Some(origin) => self.read_with(name, candidate.file, &origin),
            None => candidate,
        }
    }

    /// The same with this copy of the origin's robots.txt.
    pub(super) fn read_with(&self, name: &str, file: Found, origin: &Origin) -> Candidate {
        let Ok(source) = &file else { return Candidate::new(file, None, Diagnostics::default()) };
        let read = AssertUnwindSafe(|| (self.read)(name, source, origin, self.registry, self.last_reload));
        let (site, diagnostics) = catch_unwind(read).unwrap_or_else(|_| {
            let mut diagnostics = Diagnostics::default();
            diagnostics.push(
                Diagnostic::whole_file("internal-error", "crawlgate itself fails on this file")
                    .help("this is a mistake in crawlgate: please report it, with the file"),
            );
            (None, diagnostics)
        });
        Candidate::new(file, site, diagnostics)
    }

    /// A host belongs to one site. What is in force keeps its hosts, unless its own file gives them up; of two new
    /// claims the later name's is refused. A refused file leaves its site as it was, which may put others in the wrong,
    /// so this is repeated until nobody is.
    fn settle_hosts(&self, candidates: &mut Candidates, now: Timestamp) {
        loop {
            for (name, candidate) in candidates.iter_mut().filter(|(_, candidate)| candidate.needs_copy) {
                candidate.needs_copy = false;
                // The copy passed every check when it was kept.
                if !self.loaded.contains_key(name) {
                    candidate.copy =
                        self.state.last_good(name).and_then(|source| self.read(name, Ok(source), now).site);
                }
            }
            let mut owners = Owners::new();
            for (name, loaded) in &self.loaded {
                if candidates.get(name).is_none_or(|candidate| candidate.site.is_none())
                    && let Some(entry) = &loaded.entry
                {
                    take_hosts(&mut owners, name, &entry.site);
                }
            }
            let mut refused = Vec::new();
            for (name, candidate) in candidates.iter() {
                if let Some(site) = &candidate.site
                    && let Some(taken) = find_taken(&owners, site)
                {
                    refused.push((name.clone(), taken));
                } else if let Some(site) = &candidate.site {
                    take_hosts(&mut owners, name, site);
                }
            }
            if refused.is_empty() {
                // A copy may have what nobody else wants.
                for (name, candidate) in candidates.iter_mut().filter(|(_, candidate)| candidate.site.is_none()) {
                    match &candidate.copy {
                        Some(copy) if find_taken(&owners, copy).is_some() => candidate.copy = None,
                        Some(copy) => take_hosts(&mut owners, name, copy),
                        None => {}
                    }
                }
                return;
            }
            for (name, taken) in refused {
                if let Some(candidate) = candidates.get_mut(&name) {
                    candidate.refuse(taken);
                }
            }
        }
    }

    /// Puts what became of a file in its place.
    fn put(&mut self, name: &str, candidate: Candidate, now: Timestamp) -> Outcome {
        let (findings, rendered) = candidate.tell();
        let before = self.loaded.remove(name);
        let (mut entry, mut last_good_copy) =
            before.map(|before| (before.entry, before.last_good_copy)).unwrap_or_default();
        let accepted = candidate.site.is_some();
        let mut copy_is_new = false;
        let outcome = match (candidate.site, candidate.copy) {
            (Some(site), _) => {
                let outcome = if entry.is_some() { Outcome::Replaced } else { Outcome::Added };
                self.note_origin(&site, now);
                entry = Some(self.succeed(site, now));
                last_good_copy = false;
                outcome
            }
            (None, Some(copy)) => {
                self.note_origin(&copy, now);
                entry = Some(self.succeed(copy, now));
                (last_good_copy, copy_is_new) = (true, true);
                Outcome::Kept
            }
            (None, None) if entry.is_some() => Outcome::Kept,
            (None, None) => Outcome::Refused,
        };
        let loaded = Loaded {
            name: name.to_owned(),
            entry,
            seen: candidate.file,
            waiting: candidate.waiting,
            accepted,
            last_good_copy,
            copy_is_new,
            findings,
            rendered,
        };
        self.loaded.insert(name.to_owned(), loaded);
        outcome
    }

    /// The sites whose next stage has come.
    pub(super) fn due(&self, now: Timestamp) -> Vec<String> {
        let due = |loaded: &&Loaded| {
            loaded.entry.as_ref().and_then(|entry| entry.site.next_switch).is_some_and(|switch| switch <= now)
        };
        self.loaded.values().filter(due).map(|loaded| loaded.name.clone()).collect()
    }

    pub(super) fn take_entry(&mut self, name: &str) -> Option<SiteEntry> {
        self.loaded.get_mut(name)?.entry.take()
    }

    pub(super) fn put_entry(&mut self, name: &str, entry: SiteEntry) {
        if let Some(loaded) = self.loaded.get_mut(name) {
            loaded.entry = Some(entry);
        }
    }

    pub(super) fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// The sites as requests see them.
    pub fn snapshot(&mut self, now: Timestamp) -> Snapshot {
        self.published_log = self.memory.log.clone();
        let entries = self.entries().map(|entry| self.as_paused(entry)).collect();
        self.with_history(entries, now)
    }

    /// Whether something is to be published that is not, and waits for nothing.
    pub(super) fn has_news(&self) -> bool {
        self.waiting.is_none() && self.memory.log.has_more_than(&self.published_log)
    }

    /// A site with the pauses that there are now.
    pub(super) fn as_paused(&self, entry: &SiteEntry) -> SiteEntry {
        let pauses = self.memory.pauses.of(&entry.site);
        SiteEntry { pauses, ..entry.clone() }
    }

    /// Writes down what must survive a restart.
    pub(super) fn remember(&mut self, now: Timestamp) {
        self.record(now);
        let in_force =
            self.loaded.values().filter_map(|loaded| loaded.entry.as_ref()).chain(self.default_sites.values());
        self.memory.pauses.prune(in_force.map(|entry| &*entry.site), now);
        let paused = self.entries().map(|entry| self.as_paused(entry));
        let withheld = paused.filter(|entry| entry.withholds_robots_txt(now)).map(|entry| entry.site.name.clone());
        self.memory.withheld = withheld.collect();
        self.forget_versions(now);
        self.forget_origins();
        self.state.remember(&self.memory);
    }

    /// What is in force.
    pub(super) fn entries(&self) -> impl Iterator<Item = &SiteEntry> {
        self.loaded.values().filter_map(|loaded| loaded.entry.as_ref()).chain(self.default_sites.values())
    }

    pub(super) fn names(&self) -> Vec<String> {
        let named = self.loaded.iter().filter(|(_, loaded)| loaded.entry.is_some()).map(|(name, _)| name.clone());
        named.chain(self.default_sites.keys().cloned()).collect()
    }

    pub(super) fn site(&self, name: &str) -> Option<Arc<Site>> {
        self.entry(name).map(|entry| entry.site.clone())
    }

    pub(super) fn entry(&self, name: &str) -> Option<&SiteEntry> {
        let loaded = self.loaded.get(name).and_then(|loaded| loaded.entry.as_ref());
        loaded.or_else(|| self.default_sites.get(name))
    }

    pub(super) fn entry_mut(&mut self, name: &str) -> Option<&mut SiteEntry> {
        let loaded = self.loaded.get_mut(name).and_then(|loaded| loaded.entry.as_mut());
        loaded.or_else(|| self.default_sites.get_mut(name))
    }

    /// How the files stand, for the status.
    pub(super) fn files(&self) -> Files {
        let file = |loaded: &Loaded| FileStatus {
            site: loaded.name.clone(),
            in_force: loaded.accepted && self.problem.is_none(),
            last_good_copy: loaded.last_good_copy,
            findings: loaded.findings.clone(),
        };
        let without_file = |entry: &SiteEntry| FileStatus {
            site: entry.site.name.clone(),
            in_force: self.problem.is_none(),
            last_good_copy: false,
            findings: Vec::new(),
        };
        // A file of the same name that is refused has more to say.
        let without = self.default_sites.values().filter(|entry| !self.loaded.contains_key(&entry.site.name));
        let waiting = self.waiting.map(|_| WAITING);
        let warnings = self.problem.iter().map(String::as_str).chain(waiting).chain(self.state.warnings());
        Files {
            last_reload: self.last_reload,
            files: self.loaded.values().map(file).chain(without.map(without_file)).collect(),
            warnings: warnings.map(str::to_owned).collect(),
        }
    }
}
