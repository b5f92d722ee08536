//! Tests of the policy directory over time: mistakes in files, reloads, pauses and restarts.

use super::default_sites::DEFAULT_SITE_NAME;
use super::*;
use crate::clock::Moment;
use crate::finding::finding_ids;
use crate::policy::origin::OriginRobotsTxt;
use crate::policy::{PublicationHistory, SiteEntry, SupersededVersion};
use crate::yaml::SourceFile;
use std::fs;
use std::path::Path;
use std::time::Duration;

const DAY: i64 = 86_400;

fn policy_text(rule: &str) -> String {
    format!(
        "hosts: a.example\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{rule}] }}] }}\n"
    )
}

fn write_policy(directory: &Path, file: &str, text: &str) {
    fs::write(directory.join(file), text).expect("written");
}

fn site_options(policies: &Path) -> SiteLoadOptions {
    SiteLoadOptions {
        policies: policies.to_owned(),
        ..SiteLoadOptions::default()
    }
}

/// A store whose clock stands still.
fn open_state(directory: Option<&Path>, now: i64) -> (StateStore, RestoredState) {
    let moment = Moment {
        now: Timestamp(now),
        monotonic: Duration::ZERO,
    };
    match directory {
        Some(directory) => StateStore::open(Some(directory), Arc::new(move || moment))
            .expect("one owner at a time"),
        None => StateStore::in_memory_only(),
    }
}

/// Starts with a state directory, if there is one. The run before must have been dropped.
pub(super) fn start_with_options(
    options: SiteLoadOptions,
    state: Option<&Path>,
    now: i64,
) -> Result<Arc<SiteManager>, StartError> {
    let (store, restored) = open_state(state, now);
    let manager = SiteManager::start(options, &store, &restored, Timestamp(now))?;
    store.begin(Vec::new()).expect("begun");
    Ok(manager)
}

pub(super) fn start_manager(policies: &Path, state: Option<&Path>, now: i64) -> Arc<SiteManager> {
    start_with_options(site_options(policies), state, now).unwrap_or_else(|error| panic!("{error}"))
}

fn start_with_compile_fn(
    policies: &Path,
    compile: policy_file::CompileFn,
) -> Result<Arc<SiteManager>, StartError> {
    let (store, restored) = open_state(None, 0);
    let compiler = SiteCompiler {
        compile,
        files: Default::default(),
        published_proof: false,
    };
    SiteManager::start_with_compile_fn(
        site_options(policies),
        &store,
        &restored,
        compiler,
        Timestamp(0),
    )
}

fn outcomes(report: &ReloadReport) -> Vec<(&str, ReloadOutcome)> {
    report
        .sites
        .iter()
        .map(|site| (site.site.as_str(), site.outcome))
        .collect()
}

fn served_robots(manager: &SiteManager, site: &str) -> String {
    let snapshot = manager.snapshot();
    let index = snapshot.site_index(site).expect("the site");
    String::from_utf8_lossy(&snapshot.sites()[index].site.robots_txt.body).into_owned()
}

/// What the host of site `a` published before.
fn host_history(manager: &SiteManager) -> PublicationHistory {
    manager.snapshot().history(b"a.example").clone()
}

fn site_entry(manager: &SiteManager) -> SiteEntry {
    manager.snapshot().sites()[0].clone()
}

#[test]
fn mistake_of_one_site_touches_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    write_policy(root, "a.yaml", &policy_text("/one"));
    write_policy(
        root,
        "b.yml",
        &policy_text("/b").replace("a.example", "b.example"),
    );
    write_policy(root, "notes.txt", "no policy");
    fs::create_dir(root.join("presets")).expect("a folder");
    write_policy(&root.join("presets"), "c.yaml", "broken: [");
    let manager = start_manager(root, None, 0);
    assert_eq!(
        outcomes(&manager.reload(Timestamp(1))),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Unchanged)
        ]
    );
    write_policy(root, "a.yaml", "robots: { origin: replace, grops: [] }\n");
    write_policy(
        root,
        "b.yml",
        &policy_text("/bb").replace("a.example", "b.example"),
    );
    let report = manager.reload(Timestamp(2));
    assert_eq!(
        outcomes(&report),
        [("a", ReloadOutcome::Kept), ("b", ReloadOutcome::Replaced)]
    );
    let finding = &report.sites[0].findings[0];
    assert_eq!(finding.id, "unknown-field");
    assert!(finding.message.contains("a.yaml:1:28: "), "{finding}");
    assert!(served_robots(&manager, "a").contains("Disallow: /one"));
    assert!(served_robots(&manager, "b").contains("Disallow: /bb"));
    assert!(!manager.status(Timestamp(2)).sites[0].reload_ok);
    fs::remove_file(root.join("b.yml")).expect("removed");
    write_policy(root, "c.yaml", &policy_text("/a"));
    let report = manager.reload(Timestamp(3));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Kept),
            ("b", ReloadOutcome::Missing),
            ("c", ReloadOutcome::Refused)
        ]
    );
    assert_eq!(finding_ids(&report.sites[2].findings), ["host-taken"]);
    fs::remove_file(root.join("a.yaml")).expect("removed");
    assert_eq!(
        outcomes(&manager.reload(Timestamp(4))),
        [
            ("a", ReloadOutcome::Removed),
            ("b", ReloadOutcome::Missing),
            ("c", ReloadOutcome::Added)
        ],
        "the other file has its host"
    );
}

#[test]
fn broken_file_at_start_needs_a_last_good_policy() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/good"));
    drop(start_manager(directory.path(), Some(state.path()), 0));
    write_policy(directory.path(), "a.yaml", "robots: [\n");
    let manager = start_manager(directory.path(), Some(state.path()), 10);
    assert!(served_robots(&manager, "a").contains("Disallow: /good"));
    let status = manager.status(Timestamp(10));
    assert!(status.sites[0].last_good_copy && !status.sites[0].reload_ok);
    drop(manager);
    let strict = SiteLoadOptions {
        strict: true,
        ..site_options(directory.path())
    };
    assert!(matches!(
        start_with_options(strict, Some(state.path()), 10),
        Err(StartError::Policies(_))
    ));
    let Err(StartError::Policies(shown)) =
        start_with_options(site_options(directory.path()), None, 10)
    else {
        panic!("there is no copy to run on")
    };
    assert!(shown.contains("a.yaml:1:9"), "{shown}");
}

#[test]
fn new_broken_file_is_left_out_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/good"));
    write_policy(directory.path(), "b.yaml", "robots: [\n");
    let manager = start_manager(directory.path(), None, 0);
    assert!(served_robots(&manager, "a").contains("Disallow: /good"));
    let sites = manager.status(Timestamp(0)).sites;
    let states: Vec<(&str, bool, bool)> = sites
        .iter()
        .map(|site| (&*site.site, site.in_force, site.reload_ok))
        .collect();
    assert_eq!(states, [("a", true, true), ("b", false, false)]);
    assert_eq!(
        outcomes(&manager.reload(Timestamp(1))),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Refused)
        ],
        "as in the running process"
    );
    drop(manager);
    fs::remove_file(directory.path().join("a.yaml")).expect("removed");
    assert!(matches!(
        start_with_options(site_options(directory.path()), None, 2),
        Err(StartError::Policies(_))
    ));
}

#[test]
fn superseded_version_is_kept_as_long_as_it_may_be_cached() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    manager.reload(Timestamp(100));
    assert_eq!(
        (
            site_entry(&manager).since,
            host_history(&manager).superseded.len()
        ),
        (Timestamp(100), 1)
    );
    assert_eq!(
        host_history(&manager).superseded[0].superseded_at,
        Timestamp(100)
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/three"));
    manager.reload(Timestamp(100 + KEPT));
    assert_eq!(
        host_history(&manager).superseded.len(),
        2,
        "some crawlers keep a copy for a week"
    );
    assert_eq!(
        (
            host_history(&manager).superseded[0].since,
            host_history(&manager).superseded[1].since
        ),
        (Timestamp(100), Timestamp(0))
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/four"));
    manager.reload(Timestamp(101 + KEPT));
    assert_eq!(
        host_history(&manager).superseded.len(),
        2,
        "the first is over"
    );
}

#[test]
fn more_versions_than_are_kept_count_as_allowing() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/0"));
    let manager = start_manager(directory.path(), None, 0);
    for version in 1..=65 {
        write_policy(
            directory.path(),
            "a.yaml",
            &policy_text(&format!("/{version}")),
        );
        manager.reload(Timestamp(version));
    }
    assert_eq!(
        host_history(&manager).superseded.len(),
        PublicationHistory::MAX_SUPERSEDED
    );
    assert_eq!(
        host_history(&manager).unknown_until,
        Some(Timestamp(1)),
        "the first had to go"
    );
    for round in 0..100 {
        write_policy(
            directory.path(),
            "a.yaml",
            &policy_text(if round % 2 == 0 { "/64" } else { "/65" }),
        );
        manager.reload(Timestamp(100 + round));
    }
    assert_eq!(
        host_history(&manager).superseded.len(),
        PublicationHistory::MAX_SUPERSEDED,
        "going back and forth makes no more versions"
    );
}

#[test]
fn since_when_a_version_is_in_force_survives_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    drop(start_manager(directory.path(), Some(state.path()), 50));
    assert_eq!(
        site_entry(&start_manager(directory.path(), Some(state.path()), 500)).since,
        Timestamp(50)
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    assert_eq!(
        site_entry(&start_manager(directory.path(), Some(state.path()), 600)).since,
        Timestamp(600)
    );
}

#[test]
fn declaration_is_ignored_after_a_gap() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(
        directory.path(),
        "before.txt",
        "User-agent: *\nDisallow: /one\n",
    );
    let text = "hosts: [a.example]\nrobots: { origin: replace, previous: before.txt }\n";
    write_policy(directory.path(), "a.yaml", text);
    let manager = start_manager(directory.path(), Some(state.path()), 50);
    assert!(host_history(&manager).is_declared);
    manager.record_observation_gap(Timestamp(60));
    assert!(!host_history(&manager).is_declared);
}

#[test]
fn switched_pause_outranks_the_file_and_survives_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let planned =
        "pause: { from: 1970-01-01T00:10:00Z, until: 1970-01-01T00:20:00Z, retry_after: 1m }\n";
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy_text("/one")),
    );
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    let request = PauseRequest {
        seconds: Some(3_600),
        retry_after: Some(7),
        ..PauseRequest::default()
    };
    assert_eq!(
        manager.pause(&request, Timestamp(100)),
        Ok(Timestamp(3_700))
    );
    let pauses = site_entry(&manager).pauses;
    assert_eq!(
        pauses
            .iter()
            .map(|pause| (pause.at_run_time, pause.retry_after))
            .collect::<Vec<_>>(),
        [(true, 7), (false, 60)]
    );
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 200);
    assert_eq!(
        manager.status(Timestamp(200)).sites[0].paused_until,
        Some(Timestamp(3_700))
    );
    assert_eq!(manager.status(Timestamp(3_700)).sites[0].paused_until, None);
    assert_eq!(
        manager.resume(None, Timestamp(700)),
        Ok(vec!["a".to_owned()]),
        "both are ended"
    );
    assert_eq!(manager.status(Timestamp(701)).sites[0].paused_until, None);
    drop(manager);
    assert_eq!(
        start_manager(directory.path(), Some(state.path()), 702)
            .status(Timestamp(702))
            .sites[0]
            .paused_until,
        None
    );
}

#[test]
fn pause_without_an_end_lasts_twelve_hours() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(
        directory.path(),
        "a.yaml",
        &format!(
            "{}pause: {{ audience: everyone, robots_txt: pause }}\n",
            policy_text("/one")
        ),
    );
    drop(start_manager(directory.path(), Some(state.path()), 1_000));
    let manager = start_manager(directory.path(), Some(state.path()), 20_000);
    assert_eq!(
        manager.status(Timestamp(20_000)).sites[0].paused_until,
        Some(Timestamp(1_000 + DAY / 2))
    );
    assert_eq!(
        site_entry(&manager).pauses[0].robots_txt_until,
        Some(Timestamp(1_000 + DAY / 2))
    );
}

#[test]
fn long_pause_needs_to_be_confirmed() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    let long = PauseRequest {
        seconds: Some(40 * 3_600),
        ..PauseRequest::default()
    };
    assert!(manager.pause(&long, Timestamp(0)).is_err());
    assert!(
        manager
            .pause(&PauseRequest { long: true, ..long }, Timestamp(0))
            .is_ok()
    );
    let nowhere = PauseRequest {
        site: Some("b".into()),
        ..PauseRequest::default()
    };
    assert_eq!(
        manager.pause(&nowhere, Timestamp(0)),
        Err(PauseError::UnknownSite {
            site: "b".into(),
            sites: vec!["a".into()]
        })
    );
}

#[test]
fn pause_of_several_sites_needs_all() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    write_policy(
        directory.path(),
        "b.yaml",
        &policy_text("/one").replace("a.example", "b.example"),
    );
    let manager = start_manager(directory.path(), None, 0);
    let mut request = PauseRequest::default();
    assert_eq!(
        manager.pause(&request, Timestamp(0)),
        Err(PauseError::SeveralSites(vec!["a".into(), "b".into()]))
    );
    request.all = true;
    assert!(manager.pause(&request, Timestamp(0)).is_ok());
}

#[test]
fn files_that_are_no_text_or_too_large_are_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    fs::write(directory.path().join("b.yaml"), [0xff, 0xfe]).expect("written");
    fs::write(directory.path().join("c.yaml"), vec![b'#'; 5 * 1024 * 1024]).expect("written");
    let report = manager.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Refused),
            ("c", ReloadOutcome::Refused)
        ]
    );
    assert_eq!(finding_ids(&report.sites[1].findings), ["not-utf8"]);
    assert_eq!(finding_ids(&report.sites[2].findings), ["too-large"]);
}

/// The log and the status are for what an operator has to do: notes are left to `check`, and a
/// flood is cut.
#[test]
fn reload_reports_no_notes_and_cuts_a_flood() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/private/"));
    let mistakes: String = (0..100)
        .map(|number| format!("mistake{number}: 1\n"))
        .collect();
    write_policy(
        directory.path(),
        "b.yaml",
        &(policy_text("/b").replace("a.example", "b.example") + &mistakes),
    );
    let strict = SiteLoadOptions {
        strict: true,
        ..site_options(directory.path())
    };
    let Err(StartError::Policies(problem)) = start_with_options(strict, None, 0) else {
        panic!("`b` is broken")
    };
    assert!(
        problem.contains("mistake99"),
        "at the start all that refuses a file is shown: {problem}"
    );
    fs::remove_file(directory.path().join("b.yaml")).expect("removed");
    let manager = start_manager(directory.path(), None, 0);
    assert!(
        manager.status(Timestamp(0)).sites[0].findings.is_empty(),
        "{:?}",
        manager.status(Timestamp(0))
    );
    write_policy(
        directory.path(),
        "a.yaml",
        &(policy_text("/private/") + &mistakes),
    );
    let report = manager.reload(Timestamp(1));
    assert_eq!(report.sites[0].findings.len(), 21);
    assert_eq!(report.sites[0].findings[20].id, "more");
}

#[test]
fn changed_directory_is_reported_once_it_is_quiet() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("policies");
    fs::create_dir(&root).expect("a folder");
    write_policy(&root, "a.yaml", &policy_text("/one"));
    let mut watch = DirectoryWatch::new(&root);
    let mut polls = || [watch.poll(), watch.poll(), watch.poll()];
    let once = [false, true, false];
    assert_eq!(polls(), once, "it may have changed since the start");
    assert_eq!(polls(), [false; 3]);
    write_policy(&root, "a.yaml", &policy_text("/three"));
    assert_eq!(polls(), once);
    write_policy(&root, "b.yaml", &policy_text("/b"));
    fs::remove_file(root.join("b.yaml")).expect("there");
    assert_eq!(polls(), once, "a command may have read it in between");
    fs::rename(&root, directory.path().join("former")).expect("renamed");
    assert_eq!(polls(), once, "the directory is gone");
    fs::create_dir(&root).expect("a folder");
    assert_eq!(polls(), once, "it is back, and empty");
}

#[test]
fn restless_directory_is_reported_all_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut watch = DirectoryWatch::new(directory.path());
    let mut reports = Vec::new();
    for poll in 1..=60 {
        fs::write(directory.path().join("notes"), "x".repeat(poll)).expect("written");
        if watch.poll() {
            reports.push(poll);
        }
    }
    assert_eq!(reports, [30, 60]);
}

#[test]
fn new_tags_are_new_for_thirty_days_through_restarts() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let rule = |path: &str| format!("  - {{ paths: [{path}], tag: noindex }}\n");
    let text = |rules: &str| format!("{}indexing:\n{rules}", policy_text("/one"));
    let new_for = |manager: &SiteManager, path: &str, now: i64| {
        let entry = site_entry(manager);
        let mut scratch = crate::robots::TargetScratch::default();
        entry.has_new_tags(
            &entry
                .site
                .tags
                .for_path(scratch.normalise(path.as_bytes()), &mut Vec::new()),
            Timestamp(now),
        )
    };
    write_policy(directory.path(), "a.yaml", &text(&rule("/x/")));
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    assert!(new_for(&manager, "/x/", 29 * DAY));
    assert!(!new_for(&manager, "/other", 0));
    drop(manager);
    write_policy(
        directory.path(),
        "a.yaml",
        &text(&(rule("/y/") + &rule("/x/"))),
    );
    let manager = start_manager(directory.path(), Some(state.path()), 30 * DAY);
    assert!(!new_for(&manager, "/x/", 30 * DAY), "this one is old");
    assert!(new_for(&manager, "/y/", 30 * DAY));
    write_policy(directory.path(), "a.yaml", &text(&rule("/x/")));
    manager.reload(Timestamp(31 * DAY));
    assert!(
        new_for(&manager, "/y/", 31 * DAY),
        "a crawler may still remember what was said"
    );
    assert!(!new_for(&manager, "/y/", 61 * DAY));
}

/// The longest that any crawler keeps a copy, and the hour that a slow answer may take.
const KEPT: i64 = 7 * DAY + 3_600;

#[test]
fn changed_html_rules_make_pages_new() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let text = |html: &str| format!("{}html: {html}\n", policy_text("/one"));
    let new = |manager: &SiteManager, now: i64| {
        site_entry(manager).has_new_tags(&Default::default(), Timestamp(now))
    };
    write_policy(directory.path(), "a.yaml", &text("off"));
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    assert!(!new(&manager, 0), "nothing was written before");
    write_policy(directory.path(), "a.yaml", &text("meta"));
    manager.reload(Timestamp(DAY));
    assert!(new(&manager, 30 * DAY) && !new(&manager, 31 * DAY));
    drop(manager);
    write_policy(directory.path(), "a.yaml", &text("{ meta: yes }"));
    let manager = start_manager(directory.path(), Some(state.path()), 40 * DAY);
    assert!(!new(&manager, 40 * DAY), "the same in other words");
    write_policy(
        directory.path(),
        "a.yaml",
        &text("{ meta: yes, paths: /price/ }"),
    );
    manager.reload(Timestamp(41 * DAY));
    assert!(new(&manager, 41 * DAY));
}

#[test]
fn superseded_versions_survive_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let cached = |manager: &Arc<SiteManager>| -> Vec<(String, i64, i64)> {
        let first_rule = |body: &[u8]| {
            let text = String::from_utf8_lossy(body).into_owned();
            text.lines()
                .find_map(|line| line.strip_prefix("Disallow: "))
                .unwrap_or_default()
                .to_owned()
        };
        let as_row = |old: &SupersededVersion| {
            (
                first_rule(&old.parsed.body),
                old.since.0,
                old.superseded_at.0,
            )
        };
        host_history(manager)
            .superseded
            .iter()
            .map(as_row)
            .collect()
    };
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    assert_eq!(
        host_history(&manager).unknown_until,
        None,
        "nothing came before the first"
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    manager.reload(Timestamp(100));
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 200);
    assert_eq!(cached(&manager), [("/one".to_owned(), 0, 100)]);
    assert_eq!(site_entry(&manager).since, Timestamp(100));
    drop(manager);
    write_policy(directory.path(), "a.yaml", &policy_text("/three"));
    let manager = start_manager(directory.path(), Some(state.path()), 300);
    let both = [("/two".to_owned(), 100, 300), ("/one".to_owned(), 0, 100)];
    assert_eq!(
        (cached(&manager), host_history(&manager).unknown_until),
        (both.to_vec(), None),
        "it changed while no crawlgate ran"
    );
    let one = host_history(&manager).superseded[1].parsed.version;
    drop(manager);
    // What is not the version that it is said to be is none.
    let file = rusqlite::Connection::open(state.path().join("state.db")).expect("the store");
    let torn = file.execute(
        "UPDATE versions SET bytes = ?1 WHERE id = ?2",
        (b"User-agent: *\n", one.to_string()),
    );
    assert_eq!(torn.expect("written"), 1);
    drop(file);
    let manager = start_manager(directory.path(), Some(state.path()), 400);
    assert_eq!(
        (cached(&manager), host_history(&manager).unknown_until),
        (both[..1].to_vec(), Some(Timestamp(100)))
    );
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 301 + KEPT);
    assert_eq!(
        (cached(&manager), host_history(&manager).unknown_until),
        (vec![], None)
    );
}

#[test]
fn version_is_on_disk_before_it_is_served() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    for round in 1..5 {
        let file = rusqlite::Connection::open(state.path().join("state.db")).expect("the store");
        let version = site_entry(&manager).site.robots_txt.version.to_string();
        let written = file.query_row(
            "SELECT bytes FROM versions WHERE id = ?1",
            [version],
            |row| row.get::<_, Vec<u8>>(0),
        );
        assert_eq!(
            written.expect("it is there"),
            &*site_entry(&manager).site.robots_txt.body
        );
        write_policy(
            directory.path(),
            "a.yaml",
            &policy_text(&format!("/{round}")),
        );
        manager.reload(Timestamp(round));
    }
}

#[test]
fn identity_epoch_survives_a_restart_and_ends_with_a_new_token() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), Some(state.path()), 10);
    assert_eq!(host_history(&manager).identity_epoch, Timestamp(10));
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    manager.reload(Timestamp(20));
    assert_eq!(host_history(&manager).identity_epoch, Timestamp(10));
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 25);
    assert_eq!(host_history(&manager).identity_epoch, Timestamp(10));
    write_policy(
        directory.path(),
        "a.yaml",
        &format!(
            "{}enforcement: {{ agents: {{ HouseBot: {{ mode: enforce }} }} }}\n",
            policy_text("/two")
        ),
    );
    manager.reload(Timestamp(40));
    assert_eq!(
        host_history(&manager).identity_epoch,
        Timestamp(40),
        "what HouseBot was served before is in another's name"
    );
}

#[test]
fn host_moves_between_sites_in_one_reload() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let hosts = |hosts: &str| policy_text("/one").replace("a.example", hosts);
    write_policy(root, "a.yaml", &hosts("one.example"));
    write_policy(root, "b.yaml", &hosts("[two.example, moved.example]"));
    let manager = start_manager(root, None, 0);
    write_policy(root, "a.yaml", &hosts("[one.example, moved.example]"));
    write_policy(root, "b.yaml", &hosts("two.example"));
    assert_eq!(
        outcomes(&manager.reload(Timestamp(1))),
        [
            ("a", ReloadOutcome::Replaced),
            ("b", ReloadOutcome::Replaced)
        ]
    );
    write_policy(root, "a.yaml", &hosts("two.example"));
    write_policy(root, "b.yaml", &hosts("one.example"));
    assert_eq!(
        outcomes(&manager.reload(Timestamp(2))),
        [
            ("a", ReloadOutcome::Replaced),
            ("b", ReloadOutcome::Replaced)
        ]
    );
    let snapshot = manager.snapshot();
    assert_eq!(
        snapshot.site_for_host(b"one.example"),
        snapshot.site_index("b"),
        "they have changed places"
    );
}

#[test]
fn host_stays_with_the_site_in_force_else_the_earlier_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    write_policy(root, "m.yaml", &policy_text("/m"));
    let manager = start_manager(root, None, 0);
    write_policy(root, "b.yaml", "robots: { origin: replace }\n");
    write_policy(root, "c.yaml", "robots: { origin: replace }\n");
    write_policy(root, "a.yaml", &policy_text("/a"));
    let report = manager.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Refused),
            ("b", ReloadOutcome::Added),
            ("c", ReloadOutcome::Refused),
            ("m", ReloadOutcome::Unchanged)
        ]
    );
    let owners = manager.status(Timestamp(1)).sites;
    assert_eq!(owners[0].conflicts_with.as_deref(), Some("m"));
    assert_eq!(owners[2].conflicts_with.as_deref(), Some("b"));
    assert!(served_robots(&manager, "m").contains("/m"));
}

#[test]
fn change_with_the_same_bytes_makes_no_version() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}enforcement: {{ mode: enforce }}\n", policy_text("/one")),
    );
    let report = manager.reload(Timestamp(5));
    assert_eq!(outcomes(&report), [("a", ReloadOutcome::Replaced)]);
    assert!(report.sites[0].same_robots_txt);
    assert_eq!(
        (
            host_history(&manager).superseded.len(),
            site_entry(&manager).since
        ),
        (0, Timestamp(0))
    );
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    assert!(!manager.reload(Timestamp(6)).sites[0].same_robots_txt);
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    manager.reload(Timestamp(7));
    assert_eq!(
        host_history(&manager).superseded.len(),
        1,
        "the version in force is not held besides"
    );
    // A new host or a new name of a crawler is a new publication of the same bytes.
    let more_hosts = policy_text("/one").replace("a.example", "[a.example, b.example]");
    let named = format!("{more_hosts}crawlers: {{ token: OurBot, user_agent: ourbot }}\n");
    for (at, text) in [(8, more_hosts), (9, named)] {
        write_policy(directory.path(), "a.yaml", &text);
        let report = manager.reload(Timestamp(at));
        assert_eq!(outcomes(&report), [("a", ReloadOutcome::Replaced)]);
        assert!(!report.sites[0].same_robots_txt, "{text}");
    }
}

#[test]
fn mistake_in_defaults_is_the_same_finding_for_every_site() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for name in ["a", "b"] {
        let text = policy_text("/one").replace("a.example", &format!("{name}.example"));
        write_policy(root, &format!("{name}.yaml"), &text);
    }
    let manager = start_manager(root, None, 0);
    write_policy(root, "defaults.yaml", "enforcement: { mode: no-mode }\n");
    let report = manager.reload(Timestamp(1));
    let [a, b] = &report.sites[..] else {
        panic!("{report:?}");
    };
    assert_eq!(a.outcome, ReloadOutcome::Kept);
    assert_eq!(finding_ids(&a.findings), ["bad-value"]);
    assert_eq!(a.findings, b.findings);
    write_policy(root, "defaults.yaml", "# a comment\n");
    for site in manager.reload(Timestamp(2)).sites {
        assert_eq!(site.outcome, ReloadOutcome::Replaced);
        assert!(site.same_robots_txt);
    }
}

#[test]
fn reload_without_changes_drops_expired_versions() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    manager.reload(Timestamp(10));
    let generation = manager.snapshot().generation;
    manager.reload(Timestamp(20));
    assert_eq!(
        manager.snapshot().generation,
        generation,
        "nothing changed, nothing is replaced"
    );
    manager.reload(Timestamp(11 + KEPT));
    assert_eq!(host_history(&manager).superseded.len(), 0);
}

#[test]
fn unreadable_directory_keeps_all_sites() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("policies");
    fs::create_dir(&root).expect("a folder");
    write_policy(&root, "a.yaml", &policy_text("/one"));
    let manager = start_manager(&root, None, 0);
    fs::rename(&root, directory.path().join("away")).expect("renamed");
    let report = manager.reload(Timestamp(1));
    assert!(report.problem.is_some() && report.sites.is_empty());
    assert!(served_robots(&manager, "a").contains("/one"));
    let status = manager.status(Timestamp(1));
    assert_eq!(finding_ids(&status.warnings), ["policy-directory"]);
    assert!(!status.sites[0].reload_ok);
    fs::rename(directory.path().join("away"), &root).expect("renamed");
    manager.reload(Timestamp(2));
    let status = manager.status(Timestamp(2));
    assert!(status.warnings.is_empty() && status.sites[0].reload_ok);
}

#[test]
fn named_directory_without_a_policy_is_a_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = site_options(directory.path());
    let manager =
        start_with_options(options.clone(), None, 0).unwrap_or_else(|error| panic!("{error}"));
    let warnings = |now| finding_ids(&manager.status(Timestamp(now)).warnings).join(" ");
    assert_eq!(warnings(0), "no-policy");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    manager.reload(Timestamp(1));
    assert_eq!(warnings(1), "");
    fs::remove_file(directory.path().join("a.yaml")).expect("deleted");
    manager.reload(Timestamp(2));
    assert_eq!(warnings(2), "", "the last good policy is in force");
    options.without_directory = Some(Default::default());
    let unnamed = start_with_options(options, None, 0).unwrap_or_else(|error| panic!("{error}"));
    assert!(unnamed.status(Timestamp(0)).warnings.is_empty());
    // Nor after its only policy ended. Then it need not even be there.
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    unnamed.reload(Timestamp(1));
    fs::remove_dir_all(directory.path()).expect("deleted");
    let removed = unnamed.remove(&["a".to_owned()], Timestamp(2));
    removed.unwrap_or_else(|error| panic!("{error}"));
    assert!(unnamed.status(Timestamp(2)).warnings.is_empty());
}

#[test]
fn vanished_directory_keeps_the_live_policies() {
    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    fs::create_dir(&policies).expect("created");
    write_policy(&policies, "a.yaml", &policy_text("/live"));
    let mut options = site_options(&policies);
    let built_in = SourceFile {
        name: "a.yaml".into(),
        text: policy_text("/built-in").into(),
    };
    options.without_directory = Some([("a".to_owned(), Ok(built_in))].into());
    let manager = start_with_options(options, None, 0).unwrap_or_else(|error| panic!("{error}"));
    fs::remove_dir_all(&policies).expect("removed");
    let report = manager.reload(Timestamp(1));
    assert!(report.problem.is_some());
    assert!(served_robots(&manager, "a").contains("Disallow: /live\n"));
}

#[test]
fn unusable_state_directory_is_the_only_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    // No lock can be taken. The tests may run as root, who may write everywhere.
    fs::create_dir_all(state.join("lock")).expect("folders");
    let text = "hosts: a.example\nrobots: { origin: replace, previous: before.txt }\n";
    write_policy(directory.path(), "a.yaml", text);
    write_policy(
        directory.path(),
        "before.txt",
        "User-agent: *\nDisallow: /a/\n",
    );
    for (state, expected) in [
        (Some(&*state), "state-directory"),
        (None, "previous-without-state"),
    ] {
        let manager = start_manager(directory.path(), state, 0);
        assert_eq!(
            finding_ids(&manager.status(Timestamp(0)).warnings),
            [expected]
        );
    }
}

#[test]
fn version_is_cached_for_longer_by_few_crawlers() {
    let directory = tempfile::tempdir().expect("a directory");
    // Many crawlers keep copies for a day, whatever the policy says.
    for grace in ["", "enforcement: { grace: 1h }\n"] {
        let policy = |path| policy_text(path) + grace;
        write_policy(directory.path(), "a.yaml", &policy("/one"));
        let manager = start_manager(directory.path(), None, 0);
        write_policy(directory.path(), "a.yaml", &policy("/two"));
        manager.reload(Timestamp(10));
        let cached = |now| {
            let site = manager.status(Timestamp(now)).sites.remove(0);
            (site.cached_until.map(|until| until.0), site.cached_by_few)
        };
        assert_eq!(cached(10 + DAY), (Some(10 + DAY), false), "{grace}");
        assert_eq!(cached(11 + DAY), (Some(10 + KEPT), true), "{grace}");
        assert_eq!(cached(11 + KEPT).0, None);
    }
}

#[test]
fn command_for_a_relative_file_works_in_any_directory() {
    let here = std::env::current_dir().expect("a directory");
    for (file, directory) in [("policies/a.yaml", here.join("policies")), ("a.yaml", here)] {
        assert_eq!(
            policy_directory::check_command(file),
            format!("crawlgate check {}", directory.display())
        );
    }
}

#[test]
fn pipe_and_dangling_link_are_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let manager = start_manager(directory.path(), None, 0);
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("b.yaml"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    std::os::unix::fs::symlink("nowhere.yaml", directory.path().join("c.yaml")).expect("a link");
    let report = manager.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Refused),
            ("c", ReloadOutcome::Refused)
        ]
    );
    assert!(report.sites[1].findings[0].id == "unreadable", "{report:?}");
}

#[test]
fn planned_pause_with_a_past_beginning_begins_when_loaded() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(
        directory.path(),
        "a.yaml",
        &format!(
            "{}pause: {{ from: 1970-01-02T00:00:00Z }}\n",
            policy_text("/one")
        ),
    );
    let manager = start_manager(directory.path(), None, 10 * DAY);
    assert_eq!(
        manager.status(Timestamp(10 * DAY)).sites[0].paused_until,
        Some(Timestamp(10 * DAY + DAY / 2))
    );
}

#[test]
fn planned_pause_that_is_over_does_not_begin_again() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}pause: {{ audience: everyone }}\n", policy_text("/one")),
    );
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    manager.reload(Timestamp(40 * DAY));
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 41 * DAY);
    assert_eq!(
        manager.status(Timestamp(41 * DAY)).sites[0].paused_until,
        None
    );
    manager.reload(Timestamp(80 * DAY));
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}pause: {{ audience: everyone }}\n", policy_text("/two")),
    );
    manager.reload(Timestamp(81 * DAY));
    assert_eq!(
        manager.status(Timestamp(81 * DAY)).sites[0].paused_until,
        None
    );
}

#[test]
fn planned_pause_ended_by_hand_stays_ended() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let planned = "pause: { from: 1970-01-01T00:00:00Z, until: 1970-03-15T00:00:00Z }\nacknowledge: long_pause\n";
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy_text("/one")),
    );
    let manager = start_manager(directory.path(), Some(state.path()), 10);
    assert_eq!(
        manager.resume(Some("a"), Timestamp(20)),
        Ok(vec!["a".to_owned()])
    );
    manager.reload(Timestamp(40 * DAY));
    assert_eq!(
        manager.status(Timestamp(40 * DAY)).sites[0].paused_until,
        None
    );
}

#[test]
fn recurring_pause_comes_again_and_is_ended_once() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let recurring = "pause: [{ daily: '02:00-03:00', zone: Etc/GMT-1 }]\n";
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}{recurring}", policy_text("/one")),
    );
    let at = |day: i64, minutes: i64| Timestamp(day * DAY + minutes * 60);
    let manager = start_manager(directory.path(), Some(state.path()), 10 * DAY);
    let paused_until = |manager: &SiteManager, now| manager.status(now).sites[0].paused_until;
    assert_eq!(paused_until(&manager, at(10, 59)), None);
    assert_eq!(paused_until(&manager, at(10, 60)), Some(at(10, 120)));
    assert_eq!(
        manager.resume(Some("a"), at(10, 90)),
        Ok(vec!["a".to_owned()])
    );
    assert_eq!(paused_until(&manager, at(10, 91)), None);
    for day in 11..40 {
        assert_eq!(
            paused_until(&manager, at(day, 61)),
            Some(at(day, 120)),
            "{day}"
        );
        manager.apply_due_changes(at(day, 121));
        assert_eq!(paused_until(&manager, at(day, 121)), None, "{day}");
    }
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 40 * DAY);
    assert_eq!(paused_until(&manager, at(40, 60)), Some(at(40, 120)));
}

#[test]
fn pauses_before_the_policy_was_in_force_have_never_been() {
    let directory = tempfile::tempdir().expect("a directory");
    let planned = "pause: [{ daily: '02:00-03:00', zone: Etc/GMT }, { daily: '11:30-12:30', zone: Etc/GMT }, \
                   { from: 1970-01-10, until: 1970-01-10T01:00:00Z }]\n";
    write_policy(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy_text("/one")),
    );
    let at = |day: i64, minutes: i64| Timestamp(day * DAY + minutes * 60);
    let manager = start_manager(directory.path(), None, at(10, 720).0);
    let begun = |now: Timestamp| {
        let snapshot = manager.snapshot();
        let pauses = snapshot.sites()[0]
            .pauses
            .iter()
            .filter(|pause| pause.from <= now);
        let mut spans: Vec<_> = pauses.map(|pause| (pause.from, pause.until)).collect();
        spans.sort_unstable();
        spans
    };
    assert_eq!(
        begun(at(10, 720)),
        [(at(10, 720), at(10, 750))],
        "the one that was on"
    );
    manager.apply_due_changes(at(11, 240));
    assert_eq!(
        begun(at(11, 240)),
        [(at(10, 720), at(10, 750)), (at(11, 120), at(11, 180))]
    );
}

#[test]
fn directory_link_is_watched_through_a_swap() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let (releases, site) = (root.join("releases"), root.join("site"));
    for release in ["1", "2"] {
        fs::create_dir_all(releases.join(release)).expect("a folder");
        write_policy(
            &releases.join(release),
            "a.yaml",
            &policy_text(&format!("/{release}")),
        );
    }
    fs::create_dir(&site).expect("a folder");
    let link = site.join("policies");
    std::os::unix::fs::symlink(releases.join("1"), &link).expect("a link");
    let mut watch = DirectoryWatch::new(&link);
    let mut is_noticed = || [watch.poll(), watch.poll()] == [false, true];
    assert!(is_noticed());
    std::os::unix::fs::symlink(releases.join("2"), site.join("new")).expect("a link");
    fs::rename(site.join("new"), &link).expect("swapped");
    assert!(is_noticed(), "the link leads elsewhere");
    write_policy(&releases.join("2"), "a.yaml", &policy_text("/three"));
    assert!(is_noticed(), "what it leads to now is watched");
}

#[test]
fn panic_of_the_compiler_touches_no_other_site() {
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let compile: policy_file::CompileFn = |name, source, surroundings, registry, at| {
        assert!(
            !source.text.contains("# fatal"),
            "a mistake in the compiler"
        );
        crate::verdict::load_site_at(name, source, surroundings, registry, at)
    };
    let manager = start_with_compile_fn(directory.path(), compile).expect("started");
    write_policy(directory.path(), "a.yaml", "# fatal\n");
    write_policy(
        directory.path(),
        "b.yaml",
        &policy_text("/b").replace("a.example", "b.example"),
    );
    let report = manager.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [("a", ReloadOutcome::Kept), ("b", ReloadOutcome::Added)]
    );
    assert_eq!(finding_ids(&report.sites[0].findings), ["internal-error"]);
}

#[test]
fn status_waits_for_no_reload() {
    use std::sync::mpsc::{Receiver, Sender, channel};
    static GATE: Mutex<Option<(Sender<()>, Receiver<()>)>> = Mutex::new(None);
    let directory = tempfile::tempdir().expect("a directory");
    write_policy(directory.path(), "a.yaml", &policy_text("/one"));
    let compile: policy_file::CompileFn = |name, source, surroundings, registry, at| {
        if let Some((reading, go_on)) = GATE.lock().expect("no panic").take() {
            reading.send(()).expect("awaited");
            go_on.recv().expect("sent");
        }
        crate::verdict::load_site_at(name, source, surroundings, registry, at)
    };
    let manager = start_with_compile_fn(directory.path(), compile).expect("started");
    let ((reading, is_reading), (go_on, may_go_on)) = (channel(), channel());
    *GATE.lock().expect("no panic") = Some((reading, may_go_on));
    write_policy(directory.path(), "a.yaml", &policy_text("/two"));
    let reload = std::thread::spawn({
        let manager = manager.clone();
        move || manager.reload(Timestamp(1))
    });
    is_reading.recv().expect("reading");
    assert_eq!(manager.status(Timestamp(1)).last_reload, Timestamp(0));
    go_on.send(()).expect("waited for");
    assert_eq!(
        outcomes(&reload.join().expect("reloaded")),
        [("a", ReloadOutcome::Replaced)]
    );
    assert_eq!(manager.status(Timestamp(1)).last_reload, Timestamp(1));
}

fn origin_copy(text: &str) -> Arc<OriginRobotsTxt> {
    Arc::new(OriginRobotsTxt::new(
        "http://origin.test/robots.txt",
        text.as_bytes(),
    ))
}

#[test]
fn warnings_follow_the_copy_of_the_origins_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let policy = "robots: { origin: merge, groups: [{ agents: '*', allow: / }] }\n";
    write_policy(directory.path(), "shop.yaml", policy);
    let manager = start_manager(directory.path(), None, 0);
    for (time, text, is_reported) in [
        (1, "User-agent: *\nDisallow: /\n", true),
        (2, "User-agent: *\nDisallow: /cart/\n", false),
    ] {
        manager
            .set_origin_copy("shop", origin_copy(text), Timestamp(time))
            .expect("fine");
        let status = manager.status(Timestamp(time)).sites.remove(0);
        let ids = finding_ids(&status.findings);
        let is_found = ids.contains(&"origin-disallow-left-out");
        assert_eq!(is_found, is_reported, "{text}: {ids:?}");
    }
}

#[test]
fn origins_file_is_observed_until_the_first_policy() {
    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    let mut options = site_options(&policies);
    assert!(
        start_with_options(options.clone(), None, 0).is_err(),
        "an operator named the directory"
    );
    options.without_directory = Some(Default::default());
    let manager = start_with_options(options, None, 0).unwrap_or_else(|error| panic!("{error}"));
    let status = manager.status(Timestamp(0)).sites.remove(0);
    assert_eq!(
        (
            status.site.as_str(),
            status.mode.as_str(),
            status.hosts.len()
        ),
        (DEFAULT_SITE_NAME, "observe", 0)
    );
    assert!(
        site_entry(&manager)
            .site
            .robots_txt
            .origin_wait_seconds(Timestamp(0))
            .is_some()
    );
    manager
        .set_origin_copy(
            DEFAULT_SITE_NAME,
            origin_copy("User-agent: *\nDisallow: /\n"),
            Timestamp(5),
        )
        .expect("passed on as it is");
    assert!(served_robots(&manager, DEFAULT_SITE_NAME).contains("Disallow: /\n"));
    manager
        .set_origin_copy(
            DEFAULT_SITE_NAME,
            origin_copy("User-agent: *\nDisallow: /a/\n"),
            Timestamp(6),
        )
        .expect("fine");
    assert_eq!(
        host_history(&manager).superseded.len(),
        1,
        "the file before it, and not the one that was never served"
    );
    // The first policy has the copy, and crawlers hold what they got before.
    fs::create_dir(&policies).expect("a folder");
    write_policy(&policies, "shop.yaml", "purposes: { training: disallow }\n");
    assert_eq!(
        outcomes(&manager.reload(Timestamp(7))),
        [("shop", ReloadOutcome::Added)]
    );
    assert_eq!(manager.snapshot().sites().len(), 1);
    assert!(served_robots(&manager, "shop").contains("Disallow: /a/"));
    assert_eq!(
        (
            host_history(&manager).superseded.len(),
            site_entry(&manager).since
        ),
        (2, Timestamp(7))
    );
    // And when it is gone, there is none again.
    fs::remove_file(policies.join("shop.yaml")).expect("removed");
    manager
        .remove(&["shop".to_owned()], Timestamp(8))
        .expect("removed");
    assert_eq!(
        manager.status(Timestamp(8)).sites[0].site,
        DEFAULT_SITE_NAME
    );
}

#[test]
fn rejected_first_policy_leaves_the_site_unchanged() {
    let directory = tempfile::tempdir().expect("a directory");
    let manager = start_manager(directory.path(), None, 0);
    manager
        .set_origin_copy(
            DEFAULT_SITE_NAME,
            origin_copy("User-agent: *\nDisallow: /\n"),
            Timestamp(1),
        )
        .expect("passed on");
    write_policy(
        directory.path(),
        "shop.yaml",
        "purposes: { training: disallow }\n",
    );
    let report = manager.reload(Timestamp(2));
    assert_eq!(outcomes(&report), [("shop", ReloadOutcome::Refused)]);
    assert!(
        report.sites[0].findings[0]
            .message
            .contains("http://origin.test/robots.txt:2"),
        "{report:?}"
    );
    assert!(
        served_robots(&manager, DEFAULT_SITE_NAME).contains("Disallow: /\n"),
        "nothing was opened"
    );
}

#[test]
fn copy_that_is_awaited_again_makes_no_version() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write_policy(directory.path(), "a.yaml", "hosts: a.example\n");
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /a/\n"),
            Timestamp(10),
        )
        .expect("fine");
    drop(manager);
    // The copies are lost, the memory is not: the same file comes back, and nothing else was
    // served.
    let manager = start_manager(directory.path(), Some(state.path()), 100);
    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /a/\n"),
            Timestamp(110),
        )
        .expect("fine");
    assert_eq!(
        (
            site_entry(&manager).since,
            host_history(&manager).superseded.len(),
            host_history(&manager).unknown_until
        ),
        (Timestamp(10), 0, None)
    );
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 200);
    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /b/\n"),
            Timestamp(210),
        )
        .expect("fine");
    let (spans, forgotten) = (
        host_history(&manager).superseded,
        host_history(&manager).unknown_until,
    );
    let spans: Vec<_> = spans
        .iter()
        .map(|old| (old.since, old.superseded_at))
        .collect();
    assert_eq!(
        (spans, forgotten),
        (vec![(Timestamp(10), Timestamp(210))], None),
        "another was served before the restart"
    );
}

#[test]
fn every_change_of_the_bytes_makes_a_version() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let retire = "retire: [{ paths: [/old/], noindex_from: 1970-01-01, disallow_after: 20d }]\n";
    let policy = format!("hosts: a.example\n{retire}");
    write_policy(directory.path(), "a.yaml", &policy);
    let manager = start_manager(directory.path(), Some(state.path()), 0);
    let version = |manager: &SiteManager| site_entry(manager).site.robots_txt.version;
    let cached = |manager: &SiteManager| -> Vec<_> {
        host_history(manager)
            .superseded
            .iter()
            .map(|old| old.parsed.version)
            .collect()
    };

    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /a/\n"),
            Timestamp(10),
        )
        .expect("fine");
    let first = version(&manager);
    assert_eq!(cached(&manager), [], "no crawler has what was never served");
    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /b/\n"),
            Timestamp(20 * DAY - 9),
        )
        .expect("fine");
    let second = version(&manager);
    assert_eq!(cached(&manager), [first], "the origin changed its file");
    assert_eq!(manager.apply_due_changes(Timestamp(20 * DAY)), ["a"]);
    let third = version(&manager);
    assert_eq!(
        cached(&manager),
        [second, first],
        "a path came to its next stage"
    );
    write_policy(
        directory.path(),
        "a.yaml",
        &policy.replace(
            "hosts:",
            "robots: { content_signal: { search: yes } }\nhosts:",
        ),
    );
    manager.reload(Timestamp(20 * DAY + 1));
    let fourth = version(&manager);
    assert_eq!(cached(&manager), [third, second, first], "a signal");
    assert_eq!(
        [first, second, third, fourth]
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        4
    );
    // Each by its own bytes, through a restart, while the origin's copy is lost and nothing is
    // served at all.
    drop(manager);
    let manager = start_manager(directory.path(), Some(state.path()), 20 * DAY + 2);
    assert!(
        site_entry(&manager)
            .site
            .robots_txt
            .origin_wait_seconds(Timestamp(20 * DAY + 2))
            .is_some()
    );
    assert_eq!(cached(&manager), [fourth, third, second, first]);
    manager
        .set_origin_copy(
            "a",
            origin_copy("User-agent: *\nDisallow: /b/\n"),
            Timestamp(20 * DAY + 3),
        )
        .expect("fine");
    assert_eq!(
        (version(&manager), cached(&manager)),
        (fourth, vec![third, second, first])
    );
}
