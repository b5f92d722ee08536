//! Policy files for the commands that ask the engine without a server: read from disk, loaded, compared with each
//! other.

use super::origin_copy::OriginCopies;
use super::{Failure, say};
use crate::crawlers::Registry;
use crate::policy::compiled::{ActivePause, shared_host};
use crate::policy::{Site, SiteEntry, Snapshot};
use crate::time::Timestamp;
use crate::verdict;
use crate::yaml::{Diagnostic, Diagnostics, Source};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
        let pauses = planned_pause(site, now).into_iter().collect();
        SiteEntry { pauses, ..SiteEntry::new(site.clone(), now) }
    });
    Snapshot::new(entries.collect(), 0)
}

/// The policy's pause; one without a beginning begins now, and one without an end lasts 12 hours. What the running
/// crawlgate remembers (when it began, whether it was ended by hand) is not known here.
fn planned_pause(site: &Site, now: Timestamp) -> Option<ActivePause> {
    const HALF_A_DAY: Duration = Duration::from_secs(12 * 3_600);
    let pause = site.policy.pause.as_ref()?;
    let from = pause.from.unwrap_or(now);
    Some(ActivePause {
        audience: pause.audience,
        from,
        until: pause.until.unwrap_or(from.plus(HALF_A_DAY)),
        retry_after: u32::try_from(pause.retry_after.as_secs()).unwrap_or(u32::MAX),
        robots_txt_until: pause.pause_robots_txt.then(|| from.plus(HALF_A_DAY)),
        at_run_time: false,
    })
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
