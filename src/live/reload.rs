//! Loading and reloading, per site: one site's mistake keeps that site's old policy and touches no other.

use super::files::{self, Found};
use super::state::{Memory, State};
use super::{LiveOptions, StartError};
use crate::crawlers::Registry;
use crate::policy::compiled::{Held, TagAges, shared_host};
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::verdict;
use crate::yaml::{Diagnostics, Severity, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What a reload came to, per site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Sites in the order of their names.
    pub sites: Vec<SiteReload>,
    /// What is wrong with the directory itself.
    pub problem: Option<String>,
}

impl ReloadReport {
    /// Whether every file is in force as it stands.
    pub fn is_whole(&self) -> bool {
        self.problem.is_none()
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
struct Loaded {
    /// `None` when the file was refused and nothing else is there.
    entry: Option<SiteEntry>,
    /// The file as it was last seen, refused or not.
    seen: Found,
    /// Whether the file as it was last seen is in force.
    accepted: bool,
    last_good_copy: bool,
    findings: Vec<String>,
    rendered: String,
}

/// All sites, by name.
pub struct Sites {
    policies: PathBuf,
    registry: &'static Registry,
    state: State,
    pub(super) memory: Memory,
    loaded: BTreeMap<String, Loaded>,
    generation: u64,
    pub(super) last_reload: Timestamp,
}

impl Sites {
    pub fn start(options: LiveOptions, registry: &'static Registry, now: Timestamp) -> Result<Sites, StartError> {
        let (state, memory) = State::open(options.state).map_err(StartError::Io)?;
        let mut sites = Sites {
            policies: options.policies,
            registry,
            state,
            memory,
            loaded: BTreeMap::new(),
            generation: 0,
            last_reload: now,
        };
        let report = sites.reload(now);
        if let Some(problem) = report.problem {
            return Err(StartError::Io(problem));
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

    pub fn reload(&mut self, now: Timestamp) -> ReloadReport {
        self.last_reload = now;
        let found = match files::policies(&self.policies) {
            Ok(found) => found,
            // A directory that cannot be read is no reason to forget the sites.
            Err(error) => {
                let problem = format!("the policy directory {} cannot be read: {error}", self.policies.display());
                return ReloadReport { sites: Vec::new(), problem: Some(problem) };
            }
        };
        let mut report = ReloadReport { sites: Vec::new(), problem: None };
        let gone: Vec<String> = self.loaded.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
        for name in gone {
            self.loaded.remove(&name);
            self.state.forget(&name);
            self.memory.since.remove(&name);
            self.memory.superseded.remove(&name);
            self.memory.tag_rules.remove(&name);
            self.memory.tag_rule_removed.remove(&name);
            report.sites.push(SiteReload { site: name, outcome: Outcome::Removed, findings: Vec::new() });
        }
        for (name, file) in found {
            let outcome = self.load(&name, file, now);
            let findings = self.loaded.get(&name).map(|loaded| loaded.findings.clone()).unwrap_or_default();
            report.sites.push(SiteReload { site: name, outcome, findings });
        }
        report.sites.sort_by(|one, other| one.site.cmp(&other.site));
        self.remember(now);
        report
    }

    /// Loads one file.
    fn load(&mut self, name: &str, file: Found, now: Timestamp) -> Outcome {
        if let Some(loaded) = self.loaded.get(name)
            && loaded.seen == file
            && (loaded.accepted || !self.may_be_free_now(name))
        {
            return if loaded.accepted {
                Outcome::Unchanged
            } else if loaded.entry.is_some() {
                Outcome::Kept
            } else {
                Outcome::Refused
            };
        }
        let (site, findings, rendered) = self.read(name, &file);
        let before = self.loaded.remove(name);
        let first_time = before.is_none();
        let (mut entry, mut last_good_copy) =
            before.map(|before| (before.entry, before.last_good_copy)).unwrap_or_default();
        let accepted = site.is_some();
        let outcome = match site {
            Some(site) => {
                if let Ok(source) = &file {
                    self.state.keep(name, source);
                }
                let outcome = if entry.is_some() { Outcome::Replaced } else { Outcome::Added };
                entry = Some(self.succeed(entry, site, now));
                last_good_copy = false;
                outcome
            }
            None => {
                if entry.is_none() && first_time {
                    // The copy passed every check when it was kept; hosts may have been given to others since.
                    let copy = self.state.last_good(name).and_then(|source| self.read(name, &Ok(source)).0);
                    last_good_copy = copy.is_some();
                    entry = copy.map(|site| self.succeed(None, site, now));
                }
                if entry.is_some() { Outcome::Kept } else { Outcome::Refused }
            }
        };
        self.loaded.insert(name.to_owned(), Loaded { entry, seen: file, accepted, last_good_copy, findings, rendered });
        outcome
    }

    /// A refused site whose hosts were taken may have its turn when another one went.
    fn may_be_free_now(&self, name: &str) -> bool {
        self.loaded
            .get(name)
            .is_some_and(|loaded| loaded.findings.iter().any(|finding| finding.contains("error[host-taken]")))
    }

    /// Everything that stands between a file and its use, other sites included.
    fn read(&self, name: &str, file: &Found) -> (Option<Arc<Site>>, Vec<String>, String) {
        let source = match file {
            Ok(source) => source,
            Err(problem) => return (None, vec![problem.clone()], format!("error: {problem}\n")),
        };
        let (mut site, mut diagnostics) = verdict::load(name, source, self.registry);
        if let Some(loaded) = &site
            && let Some(diagnostic) = self.host_taken(loaded)
        {
            diagnostics.push(diagnostic);
            site = None;
        }
        (site, one_liners(&diagnostics, source), render(&diagnostics, source))
    }

    fn host_taken(&self, site: &Site) -> Option<crate::yaml::Diagnostic> {
        use crate::yaml::{Diagnostic, Span};
        let others = self.loaded.iter().filter(|(name, _)| **name != site.name);
        for (name, other) in others {
            let Some(entry) = &other.entry else { continue };
            let theirs = &entry.site.policy;
            if theirs.hosts.is_empty() && site.policy.hosts.is_empty() {
                let message = format!("this policy and the one of `{name}` are both for every other host");
                return Some(
                    Diagnostic::error("host-taken", Span { line: 1, column: 1, ..Span::default() }, message)
                        .help("write `hosts` in one of them"),
                );
            }
            if let Some(shared) = shared_host(&site.policy, theirs) {
                let span = site
                    .policy
                    .hosts
                    .iter()
                    .find(|host| host.value == *shared)
                    .map(|host| host.span)
                    .unwrap_or_default();
                let message = format!("the site `{name}` is for this host already");
                return Some(
                    Diagnostic::error("host-taken", span, message)
                        .help("a host belongs to one policy; remove it from one of the two files"),
                );
            }
        }
        None
    }

    /// Puts a site in the place of its former version, which crawlers may still hold.
    fn succeed(&mut self, before: Option<SiteEntry>, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        let version = site.robots_txt.version;
        self.memory.pauses.note(&site, now);
        let tag_ages = self.tag_ages(&site, now);
        let Some(before) = before else {
            let remembered = self.memory.since.get(&site.name).cloned();
            let same = remembered.as_ref().filter(|(known, _)| *known == version.to_string());
            let since = same.map_or(now, |(_, since)| *since);
            if remembered.is_some() && same.is_none() {
                self.memory.superseded.insert(site.name.clone(), now);
            }
            // What came before a restart is not there any more, and may be held all the same.
            let superseded = self.memory.superseded.get(&site.name);
            let forgotten_until = superseded.map(|moment| moment.plus(site.grace)).filter(|until| now < *until);
            return SiteEntry { forgotten_until, tag_ages, ..SiteEntry::new(site, since) };
        };
        let mut held = before.held;
        let mut forgotten_until = before.forgotten_until.filter(|until| now < *until);
        let unchanged = before.site.robots_txt.version == version;
        let since = if unchanged { before.since } else { now };
        if !unchanged {
            self.memory.superseded.insert(site.name.clone(), now);
        }
        // The same bytes may bind crawlers otherwise (a registry token named under `enforcement`, say): a policy that
        // changed is kept, whether its bytes did or not. One copy per version is enough.
        held.retain(|older| older.site.robots_txt.version != before.site.robots_txt.version);
        held.insert(0, Held { site: before.site, superseded_at: now });
        let longest = held.iter().map(|held| held.site.grace).max().unwrap_or_default().max(site.grace);
        held.retain(|held| now.since(held.superseded_at) <= longest);
        for dropped in held.drain(SiteEntry::MAX_HELD.min(held.len())..) {
            let until = dropped.superseded_at.plus(longest);
            forgotten_until = Some(forgotten_until.map_or(until, |known| known.max(until)));
        }
        SiteEntry { site, since, held, forgotten_until, tag_ages, pauses: Vec::new() }
    }

    /// Since when the site's tag rules are in force, through restarts; without a memory, since now.
    fn tag_ages(&mut self, site: &Site, now: Timestamp) -> TagAges {
        let before = self.memory.tag_rules.remove(&site.name).unwrap_or_default();
        let since = |identity: u64| before.get(&identity).copied().unwrap_or(now);
        let rules: Vec<u64> = site.tags.identities().collect();
        let known: BTreeMap<u64, Timestamp> = rules.iter().map(|identity| (*identity, since(*identity))).collect();
        if before.keys().any(|identity| !known.contains_key(identity)) {
            self.memory.tag_rule_removed.insert(site.name.clone(), now);
        }
        self.memory.tag_rules.insert(site.name.clone(), known);
        TagAges {
            since: rules.into_iter().map(since).collect(),
            removed: self.memory.tag_rule_removed.get(&site.name).copied(),
        }
    }

    /// The sites as requests see them.
    pub fn snapshot(&self, _now: Timestamp) -> Snapshot {
        let entries = self.loaded.values().filter_map(|loaded| loaded.entry.as_ref());
        let entries =
            entries.map(|entry| SiteEntry { pauses: self.memory.pauses.of(&entry.site), ..entry.clone() }).collect();
        Snapshot::new(entries, self.generation)
    }

    /// Writes down what must survive a restart, and counts the change.
    pub(super) fn remember(&mut self, now: Timestamp) {
        self.generation += 1;
        self.memory.pauses.prune(now);
        for (name, loaded) in &self.loaded {
            if let Some(entry) = &loaded.entry {
                self.memory.since.insert(name.clone(), (entry.site.robots_txt.version.to_string(), entry.since));
            }
        }
        self.state.remember(&self.memory);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.loaded.iter().filter(|(_, loaded)| loaded.entry.is_some()).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn site(&self, name: &str) -> Option<Arc<Site>> {
        self.loaded.get(name)?.entry.as_ref().map(|entry| entry.site.clone())
    }

    /// Name, whether the file is in force, whether a copy is, findings.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, bool, bool, &[String])> {
        self.loaded
            .iter()
            .map(|(name, loaded)| (name.as_str(), loaded.accepted, loaded.last_good_copy, loaded.findings.as_slice()))
    }

    pub(super) fn warning(&self) -> Option<&str> {
        self.state.warning.as_deref()
    }
}

fn one_liners(diagnostics: &Diagnostics, source: &Source) -> Vec<String> {
    diagnostics.items.iter().map(|item| item.one_line(source)).collect()
}

fn render(diagnostics: &Diagnostics, source: &Source) -> String {
    let errors = diagnostics.items.iter().filter(|item| item.severity == Severity::Error);
    errors.map(|item| item.render(source, false) + "\n").collect()
}
