//! Policy files for the commands that ask the engine without a server: read from disk, loaded, compared with each
//! other.

use super::origin_copy::OriginCopies;
use super::{Failure, say};
use crate::crawlers::Registry;
use crate::policy::planned_pause::planned_pause;
use crate::policy::site::shared_host;
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::verdict;
use crate::yaml::{Diagnostic, Diagnostics, Source};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The limit of the running crawlgate, too.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// One file and its result.
pub struct Loaded {
    pub name: String,
    pub source: Source,
    pub site: Option<Arc<Site>>,
    pub diagnostics: Diagnostics,
}

/// Loads files and the policies directly inside directories, in the order of their names, with what is known of their
/// origins, and holds them against each other.
pub fn load(paths: &[PathBuf], origins: &OriginCopies) -> Result<Vec<Loaded>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let kind = fs::metadata(path).map_err(|error| could_not_read(path, &error))?;
        if kind.is_dir() { files.extend(directory(path)?) } else { files.push(path.clone()) }
    }
    if files.is_empty() {
        let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(Failure::CouldNot(format!("found no policy (*.yaml) in {}", places.join(", "))));
    }
    let mut loaded = files.iter().map(|path| file(path, origins)).collect::<Result<Vec<_>, Failure>>()?;
    conflicts(&mut loaded);
    Ok(loaded)
}

/// The policies of a directory: `*.yaml` and `*.yml` directly inside, without hidden files.
fn directory(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| could_not_read(path, &error))? {
        let file = entry.map_err(|error| could_not_read(path, &error))?.path();
        let hidden = file.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        let policy = file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if policy && !hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn could_not_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::CouldNot(format!("cannot read {}: {error}", path.display()))
}

/// A file as text. What is too large or not UTF-8 is a finding about the file, not a failure to read it.
pub fn read_source(path: &Path) -> Result<(Source, Diagnostics), Failure> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| could_not_read(path, &error))?;
    let mut diagnostics = Diagnostics::default();
    if bytes.len() as u64 > MAX_FILE {
        diagnostics.push(Diagnostic::whole_file("too-large", "the file is larger than 4 MiB"));
        bytes.clear();
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        let place = error.utf8_error().valid_up_to();
        diagnostics.push(Diagnostic::whole_file("not-utf8", format!("the file is not UTF-8 (byte {place})")));
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    Ok((Source { name: path.display().to_string().into(), text: text.into() }, diagnostics))
}

fn file(path: &Path, origins: &OriginCopies) -> Result<Loaded, Failure> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let (source, diagnostics) = read_source(path)?;
    let (site, diagnostics) = match diagnostics.has_errors() {
        true => (None, diagnostics),
        false => verdict::load_with_origin(&name, &source, &origins.of(&name), Registry::builtin(), super::now()),
    };
    Ok(Loaded { name, source, site, diagnostics })
}

/// Two sites may share neither a name nor a host: the later of two such files is rejected.
fn conflicts(loaded: &mut [Loaded]) {
    for later in 1..loaded.len() {
        let (before, rest) = loaded.split_at_mut(later);
        let file = &mut rest[0];
        let mut found = Vec::new();
        if let Some(other) = before.iter().find(|other| other.name == file.name) {
            found.push(
                Diagnostic::whole_file("duplicate-site", format!("{} has the same site name", other.source.name))
                    .help("the site name is the file name: rename one of them"),
            );
        }
        if let Some(site) = &file.site {
            for (name, other) in before.iter().filter_map(|other| Some((&other.source.name, other.site.as_ref()?))) {
                found.extend(conflict(site, name, other));
            }
        }
        if !found.is_empty() {
            file.site = None;
            file.diagnostics.items.extend(found);
            file.diagnostics.sort();
        }
    }
}

fn conflict(site: &Site, name: &str, other: &Site) -> Option<Diagnostic> {
    if site.policy.hosts.is_empty() && other.policy.hosts.is_empty() {
        return Some(
            Diagnostic::whole_file("host-taken", format!("{name} is also for every other host"))
                .help("only one policy may leave out `hosts`"),
        );
    }
    let shared = shared_host(&site.policy, &other.policy)?;
    let place = site.policy.hosts.iter().find(|host| host.value == *shared)?;
    let written = site.policy.source.text.get(place.span.start..place.span.end).unwrap_or(&shared.name);
    Some(
        Diagnostic::error("host-taken", place.span, format!("{name} also claims the host {written}"))
            .help("a host belongs to one site; remove it from one of the two"),
    )
}

/// Shows the findings of files on standard error; for commands whose result is something else.
pub fn report(loaded: &[Loaded], errors_only: bool) {
    let colour = super::colour(&std::io::stderr());
    for file in loaded {
        for finding in &file.diagnostics.items {
            if !errors_only || finding.severity == crate::yaml::Severity::Error {
                say(&finding.render(&file.source, colour));
            }
        }
    }
}

/// The good sites as if they had come into force at `now`.
pub fn snapshot(loaded: &[Loaded], now: Timestamp) -> Snapshot {
    let entries = loaded.iter().filter_map(|file| file.site.as_ref()).map(|site| {
        // When the running crawlgate first saw the pause, and whether it was ended by hand, is not known here.
        let from = site.policy.pause.as_ref().and_then(|pause| pause.from).unwrap_or(now);
        let pauses = planned_pause(&site.policy, from).into_iter().collect();
        SiteEntry { pauses, ..SiteEntry::new(site.clone(), now) }
    });
    Snapshot::new(entries.collect(), 0)
}

/// The snapshot for a question about a host. When no good site claims it and a file is broken, the broken file may be
/// the one that does: then there is no answer.
pub fn for_host(directory: &Path, host: &str, origins: &OriginCopies, now: Timestamp) -> Result<Snapshot, Failure> {
    let mut loaded = default_sites(directory, origins);
    if loaded.is_empty() {
        loaded = load(&[directory.to_owned()], origins)?;
    }
    report(&loaded, true);
    let snapshot = snapshot(&loaded, now);
    let asked = snapshot.site_for_host(host.as_bytes()).map(|site| &*snapshot.sites()[site].site);
    origins.say_assumptions(asked.into_iter());
    let broken = loaded.iter().any(|file| file.site.is_none());
    if broken && snapshot.site_for_host(host.as_bytes()).is_none() {
        return Err(Failure::Found(format!("no valid policy is for {host}")));
    }
    Ok(snapshot)
}

/// The sites that a crawlgate without policies has, where something is known of their origins.
fn default_sites(directory: &Path, origins: &OriginCopies) -> Vec<Loaded> {
    if directory.exists() && !self::directory(directory).is_ok_and(|files| files.is_empty()) {
        return Vec::new();
    }
    let loaded = |site: crate::sites::DefaultSite| {
        let (name, source) = (site.name.clone(), site.source());
        let (site, diagnostics) =
            verdict::load_with_origin(&name, &source, &origins.of(&name), Registry::builtin(), super::now());
        Loaded { name, source, site, diagnostics }
    };
    origins.sites_without_policy().into_iter().map(loaded).collect()
}

#[cfg(test)]
mod tests {
    use super::{load, snapshot};
    use crate::cli::origin_copy::OriginCopies;
    use crate::crawlers::Registry;
    use crate::sites::{KnownOrigins, SiteManager, SiteOptions};
    use crate::time::Timestamp;

    /// When the pause of this policy ends, for the server that starts now and for the commands without a server.
    fn ends(text: &str, now: Timestamp) -> [Option<Timestamp>; 2] {
        let directory = tempfile::tempdir().expect("a directory");
        let policies = directory.path().to_owned();
        let text = format!("hosts: a.example\nrobots: {{ origin: replace }}\n{text}");
        std::fs::write(policies.join("a.yaml"), text).expect("a policy");
        let loaded =
            load(std::slice::from_ref(&policies), &OriginCopies::default()).unwrap_or_else(|_| panic!("a good policy"));
        let offline = snapshot(&loaded, now);
        let origins = KnownOrigins::default();
        let options = SiteOptions { policies, state: None, strict: false, may_be_missing: false, origins };
        let server = SiteManager::start(options, Registry::builtin(), now).unwrap_or_else(|error| panic!("{error}"));
        [&*server.snapshot(), &offline].map(|snapshot| Some(snapshot.sites()[0].pauses.first()?.until))
    }

    #[test]
    fn server_and_commands_agree_on_the_end_of_a_planned_pause() {
        let now = Timestamp::parse("2026-12-01T00:00:00Z").expect("a moment");
        let hours = |hours: i64| Timestamp(now.0 + hours * 3_600);
        for (pause, end) in [
            ("pause: { until: 2026-12-20T00:00:00Z }\n", hours(36)),
            ("pause: { until: 2026-12-20T00:00:00Z }\nacknowledge: long_pause\n", hours(19 * 24)),
            ("pause: { until: 2026-12-01T20:00:00Z }\n", hours(20)),
            ("pause: { audience: everyone }\n", hours(12)),
            ("pause: { from: 2026-12-02T00:00:00Z }\n", hours(24 + 12)),
        ] {
            assert_eq!(ends(pause, now), [Some(end); 2], "{pause}");
        }
    }
}
