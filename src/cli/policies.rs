//! [`load_policies`] reads and compiles policy files, for commands that work without a running
//! crawlgate. It rejects a file whose site name or host is already in an earlier file.

use super::origin_copy::OriginCopies;
use super::sources::{is_robots_txt, source_or_finding};
use super::{Result, file_failure};
use crate::crawlers::Registry;
use crate::policy::lint::FileFindings;
use crate::policy::{IncludedFiles, Site, SiteEntry, Snapshot};
use crate::printable::{join, printable_path};
use crate::sites::policy_directory::{
    self, PolicyText, UnreadableFile, UnreadableReason, duplicate_site_finding, is_link_outside,
    site_name,
};
use crate::time::Timestamp;
use crate::verdict::{self, PolicyDependencies};
use crate::yaml::Severity;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A policy file with its findings. Without a site it cannot be used.
pub struct LoadedPolicy {
    pub name: String,
    pub file: FileFindings,
    pub site: Option<Arc<Site>>,
}

/// Loads files, and the policies directly inside directories sorted by name. Fails if there is no
/// policy at all, or a file cannot be read.
pub fn load_policies(paths: &[PathBuf], origins: &OriginCopies) -> Result<Vec<LoadedPolicy>> {
    load_permitted(|_| true, paths, origins)
}

/// Like [`load_policies`], but follows no link out of the directory of a file. For commands that
/// check proposed policies.
pub fn load_proposed(paths: &[PathBuf], origins: &OriginCopies) -> Result<Vec<LoadedPolicy>> {
    load_permitted(|path| !is_link_outside(path), paths, origins)
}

/// Like [`load_policies`]. A file for which `may_read` is false gets a finding; such an included
/// file is missing.
fn load_permitted(
    may_read: fn(&Path) -> bool,
    paths: &[PathBuf],
    origins: &OriginCopies,
) -> Result<Vec<LoadedPolicy>> {
    let mut files = Vec::new();
    for path in paths {
        if fs::metadata(path)
            .map_err(file_failure("read", path))?
            .is_dir()
        {
            files.extend(policy_directory::list_policies(path).map_err(file_failure("read", path))?)
        } else if is_robots_txt(path) {
            let name = printable_path(path);
            fail!(
                Runtime,
                "{name} is a robots.txt, not a policy (*.yaml); \"crawlgate audit\" takes it with --robots"
            );
        } else {
            files.push(path.clone())
        }
    }
    if files.is_empty() {
        let places = join(paths.iter().map(printable_path), ", ");
        let help = if paths.iter().any(|path| path.join("robots.txt").is_file()) {
            "; to check the robots.txt there, name that file"
        } else {
            ""
        };
        fail!(Runtime, "there is no policy (*.yaml) in {places}{help}");
    }
    let mut included: BTreeMap<&Path, IncludedFiles> = BTreeMap::new();
    let mut loaded = Vec::new();
    for path in &files {
        let beside = crate::files::parent_directory(path);
        let beside = included.entry(beside).or_insert_with(|| {
            let mut files = policy_directory::read_included_files(beside);
            files.0.retain(|name, _| may_read(&beside.join(name)));
            files
        });
        let name = site_name(path);
        let surroundings = PolicyDependencies {
            origin: &origins.for_site(&name),
            files: beside,
        };
        let text = if may_read(path) {
            policy_directory::read_policy(path)
        } else {
            Err(UnreadableFile {
                path: printable_path(path),
                why: UnreadableReason::LinkOutside,
            })
        };
        loaded.push(compile_policy(text, name.clone(), surroundings)?);
    }
    reject_conflicts(&mut loaded);
    Ok(loaded)
}

/// Compiles a policy with its surroundings: the origin's file and the other files of the directory.
fn compile_policy(
    text: PolicyText,
    name: String,
    surroundings: PolicyDependencies<'_>,
) -> Result<LoadedPolicy> {
    let mut file = source_or_finding(text)?;
    let mut site = None;
    if !file.diagnostics.has_errors() {
        (site, file.diagnostics) = verdict::load_site_at(
            &name,
            &file.source,
            surroundings,
            Registry::builtin(),
            super::now(),
        );
    }
    Ok(LoadedPolicy { name, file, site })
}

/// Rejects each file that has the site name or a host of an earlier one: removes its site and adds
/// the findings.
fn reject_conflicts(loaded: &mut [LoadedPolicy]) {
    let mut names: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut owners = crate::sites::host_owners::HostOwners::default();
    for LoadedPolicy { name, file, site } in loaded {
        let duplicate = names.get(name).map(|other| duplicate_site_finding(other));
        let conflict = site
            .as_ref()
            .and_then(|site| Some(owners.find_conflict(site)?.diagnostic(site)));
        names
            .entry(name.clone())
            .or_insert_with(|| file.source.name.clone());
        if duplicate.is_some() || conflict.is_some() {
            *site = None;
            file.diagnostics.items.extend(duplicate);
            file.diagnostics.items.extend(conflict);
            file.diagnostics.sort();
        } else if let Some(site) = site {
            owners.insert_site(site);
        }
    }
}

/// Prints the errors in files on standard error.
pub fn print_errors(loaded: &[LoadedPolicy]) {
    for LoadedPolicy { file, .. } in loaded {
        let findings = file.diagnostics.items.iter();
        let errors = findings.filter(|finding| finding.severity == Severity::Error);
        super::print_findings(&file.source, errors);
    }
}

/// The sites of files without errors.
pub fn valid_sites(loaded: &[LoadedPolicy]) -> impl Iterator<Item = &Site> {
    loaded.iter().filter_map(|file| file.site.as_deref())
}

/// The valid sites without their planned pauses, because a diff or an audit is not about this time.
pub fn snapshot_without_pauses(loaded: Vec<LoadedPolicy>) -> Snapshot {
    let sites = loaded.into_iter().filter_map(|file| file.site);
    let entries = sites.map(|site| SiteEntry::new(site, super::now()));
    Snapshot::new(entries.collect(), 0)
}

/// The valid sites as if they had come into force at `now`, with the planned pauses that are not
/// over. A pause without a beginning begins now.
pub fn snapshot_with_pauses(loaded: &[LoadedPolicy], now: Timestamp) -> Snapshot {
    let entries = loaded
        .iter()
        .filter_map(|file| file.site.as_ref())
        .map(|site| {
            // Only the running crawlgate knows when it first saw the pause, and whether `resume`
            // ended it.
            let planned =
                crate::policy::planned_pause::planned_pauses(&site.policy, now, |_, from| {
                    Some(from.unwrap_or(now))
                });
            // As in a server that starts now, a pause that was over before has never been.
            let pauses = planned
                .into_iter()
                .map(|(_, pause)| pause)
                .filter(|pause| now < pause.until)
                .collect();
            SiteEntry::new(site.clone(), now).with_pauses(pauses, now)
        });
    Snapshot::new(entries.collect(), 0)
}

/// The policies of a directory, or default sites if it has none, for a question about a host. Fails
/// if no valid site has the host and a file has errors, because that file may have the host.
pub fn snapshot_for_host(
    directory: &Path,
    host: &str,
    origins: &OriginCopies,
    now: Timestamp,
) -> Result<Snapshot> {
    let mut loaded = load_default_sites(directory, origins)?;
    if loaded.is_empty() {
        loaded = load_policies(&[directory.to_owned()], origins)?;
    }
    print_errors(&loaded);
    let snapshot = snapshot_with_pauses(&loaded, now);
    let site = snapshot
        .site_for_host(host.as_bytes())
        .map(|site| &*snapshot.sites()[site].site);
    origins.print_assumptions(site);
    if site.is_none() && loaded.iter().any(|file| file.site.is_none()) {
        fail!(FindingsMessage, "no policy without mistakes is for {host}");
    }
    Ok(snapshot)
}

/// The default sites of known origins. Empty if the directory has policies.
fn load_default_sites(directory: &Path, origins: &OriginCopies) -> Result<Vec<LoadedPolicy>> {
    let mut loaded = Vec::new();
    if directory.exists()
        && !policy_directory::list_policies(directory).is_ok_and(|files| files.is_empty())
    {
        return Ok(loaded);
    }
    for site in origins.sites_without_policy() {
        let surroundings = PolicyDependencies {
            origin: &origins.for_site(&site.name),
            files: &IncludedFiles::default(),
        };
        loaded.push(compile_policy(
            Ok(site.policy_source()),
            site.name,
            surroundings,
        )?);
    }
    Ok(loaded)
}

/// Fails for a robots.txt that is a link out of its directory: anybody may propose one.
pub fn check_no_link_out(path: &Path) -> Result {
    if is_link_outside(path) {
        fail!(
            Runtime,
            "{} {}",
            printable_path(path),
            UnreadableReason::LinkOutside
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{load_policies, snapshot_with_pauses};
    use crate::cli::origin_copy::OriginCopies;
    use crate::sites::{InitialOriginRobots, SiteLoadOptions, SiteManager};
    use crate::state::StateStore;
    use crate::time::Timestamp;

    /// When the pause of this policy ends, for a starting server and for commands without a server.
    fn pause_ends(text: &str, now: Timestamp) -> [Option<Timestamp>; 2] {
        let directory = tempfile::tempdir().expect("a directory");
        let policies = directory.path().to_owned();
        let text = format!("hosts: a.example\nrobots: {{ origin: replace }}\n{text}");
        std::fs::write(policies.join("a.yaml"), text).expect("a policy");
        let loaded = load_policies(std::slice::from_ref(&policies), &OriginCopies::default())
            .unwrap_or_else(|_| panic!("a good policy"));
        let offline = snapshot_with_pauses(&loaded, now);
        let origins = InitialOriginRobots::default();
        let options = SiteLoadOptions {
            policies,
            origins,
            ..SiteLoadOptions::default()
        };
        let (store, remembered) = StateStore::in_memory_only();
        let server = SiteManager::start(options, &store, &remembered, now)
            .unwrap_or_else(|error| panic!("{error}"));
        [&*server.snapshot(), &offline]
            .map(|snapshot| Some(snapshot.sites()[0].pauses.first()?.until))
    }

    #[test]
    fn server_and_commands_agree_on_the_end_of_a_planned_pause() {
        let now = Timestamp::parse("2026-12-01T00:00:00Z").expect("a moment");
        let hours = |hours: i64| Timestamp(now.0 + hours * 3_600);
        for (pause, end) in [
            ("pause: { until: 2026-12-20T00:00:00Z }\n", hours(36)),
            (
                "pause: { until: 2026-12-20T00:00:00Z }\nacknowledge: long_pause\n",
                hours(19 * 24),
            ),
            ("pause: { until: 2026-12-01T20:00:00Z }\n", hours(20)),
            ("pause: { audience: everyone }\n", hours(12)),
            ("pause: { from: 2026-12-02T00:00:00Z }\n", hours(24 + 12)),
            (
                "pause: [{ daily: '00:30-02:30', zone: Europe/Berlin }]\n",
                Timestamp(now.0 + 5_400),
            ),
        ] {
            assert_eq!(pause_ends(pause, now), [Some(end); 2], "{pause}");
        }
    }
}
