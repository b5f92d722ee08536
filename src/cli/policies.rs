//! [`load`] reads and compiles policy files, for commands that work without a running crawlgate. It
//! rejects a file that has the name or a host of an earlier one.

use super::origin_copy::OriginCopies;
use super::{Failure, Result, cannot};
use crate::crawlers::Registry;
use crate::policy::{IncludedFiles, Site, SiteEntry, Snapshot};
use crate::printable::{join, printable_path};
use crate::sites::policy_directory::{
    self, PolicyText, Unread, Unreadable, leads_out, same_site_name, site_name,
};
use crate::time::Timestamp;
use crate::verdict::{self, Surroundings};
use crate::yaml::{Diagnostics, Severity, Source};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A policy file with its site or its mistakes.
pub struct Loaded {
    pub name: String,
    pub source: Source,
    pub site: Option<Arc<Site>>,
    pub diagnostics: Diagnostics,
}

/// Loads files and the policies directly inside directories, in the order of their names, with what
/// is known of their origins. Rejects a file that has the name or a host of an earlier one. Fails
/// if there is no policy at all, or a file cannot be read.
pub fn load(paths: &[PathBuf], origins: &OriginCopies) -> Result<Vec<Loaded>> {
    load_those(|_| true, paths, origins)
}

/// [`load`] that follows no link out of the directory of a file, for commands that check what
/// somebody proposes.
pub fn load_proposed(paths: &[PathBuf], origins: &OriginCopies) -> Result<Vec<Loaded>> {
    load_those(|path| !leads_out(path), paths, origins)
}

/// [`load`], with a finding in place of a file for which `may_read` is false. Included files that
/// may not be read are missing.
fn load_those(
    may_read: fn(&Path) -> bool,
    paths: &[PathBuf],
    origins: &OriginCopies,
) -> Result<Vec<Loaded>> {
    let mut files = Vec::new();
    for path in paths {
        let kind = fs::metadata(path).map_err(cannot("read", path))?;
        if kind.is_dir() {
            files.extend(policy_directory::policy_files(path).map_err(cannot("read", path))?)
        } else {
            files.push(path.clone())
        }
    }
    if files.is_empty() {
        let places = join(paths.iter().map(|path| printable_path(path)), ", ");
        return Err(Failure::CouldNot(format!(
            "found no policy (*.yaml) in {places}"
        )));
    }
    let mut included: BTreeMap<&Path, IncludedFiles> = BTreeMap::new();
    let mut loaded = Vec::new();
    for path in &files {
        let beside = crate::files::directory_of(path);
        let beside = included.entry(beside).or_insert_with(|| {
            let mut files = policy_directory::included_files(beside);
            files.0.retain(|name, _| may_read(&beside.join(name)));
            files
        });
        let name = site_name(path);
        let surroundings = Surroundings {
            origin: &origins.of(&name),
            files: beside,
        };
        let text = if may_read(path) {
            policy_directory::read(path)
        } else {
            Err(Unreadable {
                path: printable_path(path),
                why: Unread::LeadsOut,
            })
        };
        loaded.push(file(text, name.clone(), surroundings)?);
    }
    conflicts(&mut loaded);
    Ok(loaded)
}

/// A file as text. That it is too large or not UTF-8 is a finding about the file, not a failure to
/// read it.
pub fn read_source(path: &Path) -> Result<(Source, Diagnostics)> {
    source_or_finding(policy_directory::read(path))
}

/// The text of a policy file. A text that is too large, not UTF-8 or out of the directory gives an
/// empty text and the finding; a file that cannot be read fails.
fn source_or_finding(read: PolicyText) -> Result<(Source, Diagnostics)> {
    let unreadable = match read {
        Ok(source) => return Ok((source, Diagnostics::default())),
        Err(unreadable) => unreadable,
    };
    if let Unread::Io(_) | Unread::NotAFile = unreadable.why {
        return Err(unreadable.into());
    }
    let source = Source {
        name: unreadable.path.clone().into(),
        text: "".into(),
    };
    Ok((
        source,
        Diagnostics {
            items: vec![unreadable.diagnostic()],
        },
    ))
}

/// The policy compiled with what is around it (the origin's file, other files of the directory), or
/// the finding that there is no text to compile.
fn file(text: PolicyText, name: String, surroundings: Surroundings<'_>) -> Result<Loaded> {
    let (source, mut diagnostics) = source_or_finding(text)?;
    let mut site = None;
    if !diagnostics.has_errors() {
        (site, diagnostics) = verdict::load_with(
            &name,
            &source,
            surroundings,
            Registry::builtin(),
            super::now(),
        );
    }
    Ok(Loaded {
        name,
        source,
        site,
        diagnostics,
    })
}

/// Rejects each file that has the site name or a host of an earlier one: takes its site away and
/// adds the findings.
fn conflicts(loaded: &mut [Loaded]) {
    let mut names: BTreeMap<String, Arc<str>> = BTreeMap::new();
    let mut owners = crate::sites::host_owners::HostOwners::default();
    for file in loaded {
        let duplicate = names.get(&file.name).map(|other| same_site_name(other));
        let conflict = file
            .site
            .as_ref()
            .and_then(|site| Some(owners.conflict(site)?.diagnostic(site)));
        names
            .entry(file.name.clone())
            .or_insert_with(|| file.source.name.clone());
        if duplicate.is_some() || conflict.is_some() {
            file.site = None;
            file.diagnostics.items.extend(duplicate);
            file.diagnostics.items.extend(conflict);
            file.diagnostics.sort();
        } else if let Some(site) = &file.site {
            owners.add(site);
        }
    }
}

/// Shows the findings of files on standard error; for commands whose result is something else.
pub fn report(loaded: &[Loaded], errors_only: bool) {
    for file in loaded {
        let findings = file.diagnostics.items.iter();
        let shown = findings.filter(|finding| !errors_only || finding.severity == Severity::Error);
        super::say_findings(&file.source, shown);
    }
}

/// The good sites.
pub fn sites(loaded: &[Loaded]) -> impl Iterator<Item = &Site> {
    loaded.iter().filter_map(|file| file.site.as_deref())
}

/// The good sites, in force from now on, without their planned pauses: a diff or an audit is not
/// about this moment.
pub fn without_pauses(loaded: Vec<Loaded>) -> Snapshot {
    let sites = loaded.into_iter().filter_map(|file| file.site);
    Snapshot::new(
        sites
            .map(|site| SiteEntry::new(site, super::now()))
            .collect(),
        0,
    )
}

/// The good sites as if they had come into force at `now`, with the planned pauses that are not
/// over. A pause without a beginning begins now.
pub fn snapshot(loaded: &[Loaded], now: Timestamp) -> Snapshot {
    let entries = loaded
        .iter()
        .filter_map(|file| file.site.as_ref())
        .map(|site| {
            // When the running crawlgate first saw the pause, and whether it was ended by hand, is
            // not known here.
            let planned =
                crate::policy::planned_pause::planned_pauses(&site.policy, now, |_, from| {
                    Some(from.unwrap_or(now))
                });
            // As for the server that starts now: what was over before the policy was in force has
            // never been.
            let pauses = planned
                .into_iter()
                .map(|(_, pause)| pause)
                .filter(|pause| now < pause.until)
                .collect();
            SiteEntry::new(site.clone(), now).with_pauses(pauses, now)
        });
    Snapshot::new(entries.collect(), 0)
}

/// The snapshot for a question about a host: of the policies of a directory, or of default sites if
/// it has none. Fails if no good site has the host and a file is broken: that file may be the one.
pub fn for_host(
    directory: &Path,
    host: &str,
    origins: &OriginCopies,
    now: Timestamp,
) -> Result<Snapshot> {
    let mut loaded = default_sites(directory, origins)?;
    if loaded.is_empty() {
        loaded = load(&[directory.to_owned()], origins)?;
    }
    report(&loaded, true);
    let snapshot = snapshot(&loaded, now);
    let asked = snapshot
        .site_for_host(host.as_bytes())
        .map(|site| &*snapshot.sites()[site].site);
    origins.say_assumptions(asked);
    let broken = loaded.iter().any(|file| file.site.is_none());
    if broken && snapshot.site_for_host(host.as_bytes()).is_none() {
        return Err(Failure::Found(format!("no valid policy is for {host}")));
    }
    Ok(snapshot)
}

/// The sites that a crawlgate without policies has, where something is known of their origins.
/// Empty if the directory has policies.
fn default_sites(directory: &Path, origins: &OriginCopies) -> Result<Vec<Loaded>> {
    let mut loaded = Vec::new();
    if directory.exists()
        && !policy_directory::policy_files(directory).is_ok_and(|files| files.is_empty())
    {
        return Ok(loaded);
    }
    for site in origins.sites_without_policy() {
        let surroundings = Surroundings {
            origin: &origins.of(&site.name),
            files: &IncludedFiles::default(),
        };
        let source = site.source();
        loaded.push(file(Ok(source), site.name, surroundings)?);
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::{load, snapshot};
    use crate::cli::origin_copy::OriginCopies;
    use crate::sites::{KnownOrigins, SiteManager, SiteOptions};
    use crate::state::StateStore;
    use crate::time::Timestamp;

    /// When the pause of this policy ends, for the server that starts now and for the commands
    /// without a server.
    fn ends(text: &str, now: Timestamp) -> [Option<Timestamp>; 2] {
        let directory = tempfile::tempdir().expect("a directory");
        let policies = directory.path().to_owned();
        let text = format!("hosts: a.example\nrobots: {{ origin: replace }}\n{text}");
        std::fs::write(policies.join("a.yaml"), text).expect("a policy");
        let loaded = load(std::slice::from_ref(&policies), &OriginCopies::default())
            .unwrap_or_else(|_| panic!("a good policy"));
        let offline = snapshot(&loaded, now);
        let origins = KnownOrigins::default();
        let options = SiteOptions {
            policies,
            strict: false,
            may_be_missing: false,
            origins,
            published_proof: false,
        };
        let (store, remembered) = StateStore::in_memory_only();
        let server = SiteManager::start(options, (&store, &remembered), now)
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
            assert_eq!(ends(pause, now), [Some(end); 2], "{pause}");
        }
    }
}
