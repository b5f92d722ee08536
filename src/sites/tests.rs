//! The policy directory over time: mistakes in files, reloads, pauses and restarts.

use super::default_sites::DEFAULT_SITE;
use super::*;
use crate::clock::Moment;
use crate::finding::ids;
use crate::policy::origin::OriginFile;
use crate::policy::{HostHistory, SiteEntry, SupersededVersion};
use std::fs;
use std::path::Path;
use std::time::Duration;

const DAY: i64 = 86_400;

fn policy(rule: &str) -> String {
    format!(
        "hosts: a.example\nrobots: {{ origin: replace, groups: [{{ agents: \"*\", disallow: [{rule}] }}] }}\n"
    )
}

fn write(directory: &Path, file: &str, text: &str) {
    fs::write(directory.join(file), text).expect("written");
}

fn options(policies: &Path) -> SiteOptions {
    SiteOptions {
        policies: policies.to_owned(),
        strict: false,
        may_be_missing: false,
        origins: Default::default(),
        published_proof: false,
    }
}

/// A store whose clock stands still.
fn open_state(directory: Option<&Path>, now: i64) -> (StateStore, Remembered) {
    let moment = Moment {
        now: Timestamp(now),
        lived: Duration::ZERO,
    };
    match directory {
        Some(directory) => StateStore::open(Some(directory), Arc::new(move || moment))
            .expect("one owner at a time"),
        None => StateStore::in_memory_only(),
    }
}

/// Starts with a state directory, if there is one. The run before must have been dropped.
pub(super) fn start_with(
    options: SiteOptions,
    state: Option<&Path>,
    now: i64,
) -> Result<Arc<SiteManager>, StartError> {
    let (store, remembered) = open_state(state, now);
    let live = SiteManager::start(options, (&store, &remembered), Timestamp(now))?;
    store.begin(Vec::new()).expect("begun");
    Ok(live)
}

pub(super) fn start(policies: &Path, state: Option<&Path>, now: i64) -> Arc<SiteManager> {
    start_with(options(policies), state, now).unwrap_or_else(|error| panic!("{error}"))
}

fn start_reading(policies: &Path, read: policy_file::Read) -> Result<Arc<SiteManager>, StartError> {
    let (store, remembered) = open_state(None, 0);
    let compiler = SiteCompiler {
        read,
        files: Default::default(),
        published_proof: false,
    };
    SiteManager::start_reading(
        options(policies),
        &store,
        &remembered,
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

fn served(live: &SiteManager, site: &str) -> String {
    let snapshot = live.snapshot();
    let index = snapshot.site_named(site).expect("the site");
    String::from_utf8_lossy(&snapshot.sites()[index].site.robots_txt.body).into_owned()
}

/// What the host of site `a` published before.
fn history(live: &SiteManager) -> HostHistory {
    live.snapshot().history(b"a.example").clone()
}

fn entry(live: &SiteManager) -> SiteEntry {
    live.snapshot().sites()[0].clone()
}

#[test]
fn mistake_of_one_site_touches_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    write(root, "a.yaml", &policy("/one"));
    write(
        root,
        "b.yml",
        &policy("/b").replace("a.example", "b.example"),
    );
    write(root, "notes.txt", "no policy");
    fs::create_dir(root.join("presets")).expect("a folder");
    write(&root.join("presets"), "c.yaml", "broken: [");
    let live = start(root, None, 0);
    assert_eq!(
        outcomes(&live.reload(Timestamp(1))),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Unchanged)
        ]
    );
    write(root, "a.yaml", "robots: { origin: replace, grops: [] }\n");
    write(
        root,
        "b.yml",
        &policy("/bb").replace("a.example", "b.example"),
    );
    let report = live.reload(Timestamp(2));
    assert_eq!(
        outcomes(&report),
        [("a", ReloadOutcome::Kept), ("b", ReloadOutcome::Replaced)]
    );
    let finding = &report.sites[0].findings[0];
    assert_eq!(finding.id, "unknown-field");
    assert!(finding.message.contains("a.yaml:1:28: "), "{finding}");
    assert!(served(&live, "a").contains("Disallow: /one"));
    assert!(served(&live, "b").contains("Disallow: /bb"));
    assert!(!live.status(Timestamp(2)).sites[0].reload_ok);
    fs::remove_file(root.join("b.yml")).expect("removed");
    write(root, "c.yaml", &policy("/a"));
    let report = live.reload(Timestamp(3));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Kept),
            ("b", ReloadOutcome::Missing),
            ("c", ReloadOutcome::Refused)
        ]
    );
    assert_eq!(ids(&report.sites[2].findings), ["host-taken"]);
    fs::remove_file(root.join("a.yaml")).expect("removed");
    assert_eq!(
        outcomes(&live.reload(Timestamp(4))),
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
    write(directory.path(), "a.yaml", &policy("/good"));
    drop(start(directory.path(), Some(state.path()), 0));
    write(directory.path(), "a.yaml", "robots: [\n");
    let live = start(directory.path(), Some(state.path()), 10);
    assert!(served(&live, "a").contains("Disallow: /good"));
    let status = live.status(Timestamp(10));
    assert!(status.sites[0].last_good_copy && !status.sites[0].reload_ok);
    drop(live);
    let strict = SiteOptions {
        strict: true,
        ..options(directory.path())
    };
    assert!(matches!(
        start_with(strict, Some(state.path()), 10),
        Err(StartError::Policies(_))
    ));
    let Err(StartError::Policies(shown)) = start_with(options(directory.path()), None, 10) else {
        panic!("there is no copy to run on")
    };
    assert!(shown.contains("a.yaml:1:9"), "{shown}");
}

#[test]
fn superseded_version_is_kept_as_long_as_it_may_be_cached() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    write(directory.path(), "a.yaml", &policy("/two"));
    live.reload(Timestamp(100));
    assert_eq!(
        (entry(&live).since, history(&live).superseded.len()),
        (Timestamp(100), 1)
    );
    assert_eq!(history(&live).superseded[0].superseded_at, Timestamp(100));
    write(directory.path(), "a.yaml", &policy("/three"));
    live.reload(Timestamp(100 + KEPT));
    assert_eq!(
        history(&live).superseded.len(),
        2,
        "some crawlers keep a copy for a week"
    );
    assert_eq!(
        (
            history(&live).superseded[0].since,
            history(&live).superseded[1].since
        ),
        (Timestamp(100), Timestamp(0))
    );
    write(directory.path(), "a.yaml", &policy("/four"));
    live.reload(Timestamp(101 + KEPT));
    assert_eq!(history(&live).superseded.len(), 2, "the first is over");
}

#[test]
fn more_versions_than_are_kept_count_as_allowing() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/0"));
    let live = start(directory.path(), None, 0);
    for version in 1..=65 {
        write(directory.path(), "a.yaml", &policy(&format!("/{version}")));
        live.reload(Timestamp(version));
    }
    assert_eq!(history(&live).superseded.len(), HostHistory::MAX_SUPERSEDED);
    assert_eq!(
        history(&live).unknown_until,
        Some(Timestamp(1)),
        "the first had to go"
    );
    for round in 0..100 {
        write(
            directory.path(),
            "a.yaml",
            &policy(if round % 2 == 0 { "/64" } else { "/65" }),
        );
        live.reload(Timestamp(100 + round));
    }
    assert_eq!(
        history(&live).superseded.len(),
        HostHistory::MAX_SUPERSEDED,
        "going back and forth makes no more versions"
    );
}

#[test]
fn since_when_a_version_is_in_force_survives_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(directory.path(), "a.yaml", &policy("/one"));
    drop(start(directory.path(), Some(state.path()), 50));
    assert_eq!(
        entry(&start(directory.path(), Some(state.path()), 500)).since,
        Timestamp(50)
    );
    write(directory.path(), "a.yaml", &policy("/two"));
    assert_eq!(
        entry(&start(directory.path(), Some(state.path()), 600)).since,
        Timestamp(600)
    );
}

#[test]
fn after_a_break_the_word_on_the_time_before_counts_no_more() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(
        directory.path(),
        "before.txt",
        "User-agent: *\nDisallow: /one\n",
    );
    let text = "hosts: [a.example]\nrobots: { origin: replace, previous: before.txt }\n";
    write(directory.path(), "a.yaml", text);
    let live = start(directory.path(), Some(state.path()), 50);
    assert!(history(&live).is_declared);
    live.history_was_broken(Timestamp(60));
    assert!(!history(&live).is_declared);
}

#[test]
fn switched_pause_outranks_the_file_and_survives_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let planned =
        "pause: { from: 1970-01-01T00:10:00Z, until: 1970-01-01T00:20:00Z, retry_after: 1m }\n";
    write(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy("/one")),
    );
    let live = start(directory.path(), Some(state.path()), 0);
    let request = PauseRequest {
        seconds: Some(3_600),
        retry_after: Some(7),
        ..PauseRequest::default()
    };
    assert_eq!(live.pause(&request, Timestamp(100)), Ok(Timestamp(3_700)));
    let pauses = entry(&live).pauses;
    assert_eq!(
        pauses
            .iter()
            .map(|pause| (pause.at_run_time, pause.retry_after))
            .collect::<Vec<_>>(),
        [(true, 7), (false, 60)]
    );
    drop(live);
    let live = start(directory.path(), Some(state.path()), 200);
    assert_eq!(
        live.status(Timestamp(200)).sites[0].paused_until,
        Some(Timestamp(3_700))
    );
    assert_eq!(live.status(Timestamp(3_700)).sites[0].paused_until, None);
    assert_eq!(
        live.resume(None, Timestamp(700)),
        Ok(vec!["a".to_owned()]),
        "both are ended"
    );
    assert_eq!(live.status(Timestamp(701)).sites[0].paused_until, None);
    drop(live);
    assert_eq!(
        start(directory.path(), Some(state.path()), 702)
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
    write(
        directory.path(),
        "a.yaml",
        &format!(
            "{}pause: {{ audience: everyone, robots_txt: pause }}\n",
            policy("/one")
        ),
    );
    drop(start(directory.path(), Some(state.path()), 1_000));
    let live = start(directory.path(), Some(state.path()), 20_000);
    assert_eq!(
        live.status(Timestamp(20_000)).sites[0].paused_until,
        Some(Timestamp(1_000 + DAY / 2))
    );
    assert_eq!(
        entry(&live).pauses[0].robots_txt_until,
        Some(Timestamp(1_000 + DAY / 2))
    );
}

#[test]
fn long_pause_needs_to_be_confirmed() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    let long = PauseRequest {
        seconds: Some(40 * 3_600),
        ..PauseRequest::default()
    };
    assert!(live.pause(&long, Timestamp(0)).is_err());
    assert!(
        live.pause(&PauseRequest { long: true, ..long }, Timestamp(0))
            .is_ok()
    );
    let nowhere = PauseRequest {
        site: Some("b".into()),
        ..PauseRequest::default()
    };
    assert_eq!(
        live.pause(&nowhere, Timestamp(0)),
        Err(PauseError::UnknownSite {
            site: "b".into(),
            sites: vec!["a".into()]
        })
    );
}

#[test]
fn files_that_are_no_text_or_too_large_are_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    fs::write(directory.path().join("b.yaml"), [0xff, 0xfe]).expect("written");
    fs::write(directory.path().join("c.yaml"), vec![b'#'; 5 * 1024 * 1024]).expect("written");
    let report = live.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Unchanged),
            ("b", ReloadOutcome::Refused),
            ("c", ReloadOutcome::Refused)
        ]
    );
    assert_eq!(ids(&report.sites[1].findings), ["not-utf8"]);
    assert_eq!(ids(&report.sites[2].findings), ["too-large"]);
}

/// The log and the status are for what an operator has to do: notes are left to `check`, and a
/// flood is cut.
#[test]
fn reload_reports_no_notes_and_cuts_a_flood() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/private/"));
    let mistakes: String = (0..100)
        .map(|number| format!("mistake{number}: 1\n"))
        .collect();
    write(
        directory.path(),
        "b.yaml",
        &(policy("/b").replace("a.example", "b.example") + &mistakes),
    );
    let live = start_with(options(directory.path()), None, 0);
    let Err(StartError::Policies(problem)) = live else {
        panic!("`b` has no copy to run on")
    };
    assert!(
        problem.contains("mistake99"),
        "at the start all that refuses a file is shown: {problem}"
    );
    fs::remove_file(directory.path().join("b.yaml")).expect("removed");
    let live = start(directory.path(), None, 0);
    assert!(
        live.status(Timestamp(0)).sites[0].findings.is_empty(),
        "{:?}",
        live.status(Timestamp(0))
    );
    write(
        directory.path(),
        "a.yaml",
        &(policy("/private/") + &mistakes),
    );
    let report = live.reload(Timestamp(1));
    assert_eq!(report.sites[0].findings.len(), 21);
    assert_eq!(report.sites[0].findings[20].id, "more");
}

#[test]
fn a_change_is_noticed_through_links_and_without_quiet() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("policies");
    fs::create_dir(&root).expect("a folder");
    write(&root, "a.yaml", &policy("/one"));
    let (heard, changes) = std::sync::mpsc::channel();
    let guard = watch(&root, Duration::from_millis(50), move || {
        let _ = heard.send(());
    })
    .expect("watched");
    let noticed = || changes.recv_timeout(Duration::from_secs(20)).is_ok();
    write(&root, "a.yaml", &policy("/two"));
    assert!(noticed());
    fs::rename(&root, directory.path().join("former")).expect("renamed");
    assert!(noticed(), "the directory itself was replaced");
    drop(guard);
    let ended = std::iter::from_fn(|| Some(changes.recv_timeout(Duration::from_secs(20))))
        .find_map(Result::err);
    assert_eq!(
        ended,
        Some(std::sync::mpsc::RecvTimeoutError::Disconnected),
        "the thread ends with its guard"
    );
}

#[test]
fn new_tags_are_new_for_thirty_days_through_restarts() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let rule = |path: &str| format!("  - {{ paths: [{path}], tag: noindex }}\n");
    let text = |rules: &str| format!("{}indexing:\n{rules}", policy("/one"));
    let new_for = |live: &SiteManager, path: &str, now: i64| {
        let entry = entry(live);
        let mut scratch = crate::robots::TargetScratch::default();
        entry.tags_are_new(
            &entry
                .site
                .tags
                .for_path(scratch.normalise(path.as_bytes()), &mut Vec::new()),
            Timestamp(now),
        )
    };
    write(directory.path(), "a.yaml", &text(&rule("/x/")));
    let live = start(directory.path(), Some(state.path()), 0);
    assert!(new_for(&live, "/x/", 29 * DAY));
    assert!(!new_for(&live, "/other", 0));
    drop(live);
    write(
        directory.path(),
        "a.yaml",
        &text(&(rule("/y/") + &rule("/x/"))),
    );
    let live = start(directory.path(), Some(state.path()), 30 * DAY);
    assert!(!new_for(&live, "/x/", 30 * DAY), "this one is old");
    assert!(new_for(&live, "/y/", 30 * DAY));
    write(directory.path(), "a.yaml", &text(&rule("/x/")));
    live.reload(Timestamp(31 * DAY));
    assert!(
        new_for(&live, "/y/", 31 * DAY),
        "a crawler may still remember what was said"
    );
    assert!(!new_for(&live, "/y/", 61 * DAY));
}

/// The longest that any crawler keeps a copy, and the hour that a slow answer may take.
const KEPT: i64 = 7 * DAY + 3_600;

#[test]
fn changed_html_rules_make_pages_new() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let text = |html: &str| format!("{}html: {html}\n", policy("/one"));
    let new = |live: &SiteManager, now: i64| {
        entry(live).tags_are_new(&Default::default(), Timestamp(now))
    };
    write(directory.path(), "a.yaml", &text("off"));
    let live = start(directory.path(), Some(state.path()), 0);
    assert!(!new(&live, 0), "nothing was written before");
    write(directory.path(), "a.yaml", &text("meta"));
    live.reload(Timestamp(DAY));
    assert!(new(&live, 30 * DAY) && !new(&live, 31 * DAY));
    drop(live);
    write(directory.path(), "a.yaml", &text("{ meta: yes }"));
    let live = start(directory.path(), Some(state.path()), 40 * DAY);
    assert!(!new(&live, 40 * DAY), "the same in other words");
    write(
        directory.path(),
        "a.yaml",
        &text("{ meta: yes, paths: /price/ }"),
    );
    live.reload(Timestamp(41 * DAY));
    assert!(new(&live, 41 * DAY));
}

#[test]
fn superseded_versions_survive_a_restart() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let held = |live: &Arc<SiteManager>| -> Vec<(String, i64, i64)> {
        let first_rule = |body: &[u8]| {
            let text = String::from_utf8_lossy(body).into_owned();
            text.lines()
                .find_map(|line| line.strip_prefix("Disallow: "))
                .unwrap_or_default()
                .to_owned()
        };
        let held = |held: &SupersededVersion| {
            (
                first_rule(&held.parsed.body),
                held.since.0,
                held.superseded_at.0,
            )
        };
        history(live).superseded.iter().map(held).collect()
    };
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), Some(state.path()), 0);
    assert_eq!(
        history(&live).unknown_until,
        None,
        "nothing came before the first"
    );
    write(directory.path(), "a.yaml", &policy("/two"));
    live.reload(Timestamp(100));
    drop(live);
    let live = start(directory.path(), Some(state.path()), 200);
    assert_eq!(held(&live), [("/one".to_owned(), 0, 100)]);
    assert_eq!(entry(&live).since, Timestamp(100));
    drop(live);
    write(directory.path(), "a.yaml", &policy("/three"));
    let live = start(directory.path(), Some(state.path()), 300);
    let both = [("/two".to_owned(), 100, 300), ("/one".to_owned(), 0, 100)];
    assert_eq!(
        (held(&live), history(&live).unknown_until),
        (both.to_vec(), None),
        "it changed while no crawlgate ran"
    );
    let one = history(&live).superseded[1].parsed.version;
    drop(live);
    // What is not the version that it is said to be is none.
    let file = rusqlite::Connection::open(state.path().join("state.db")).expect("the store");
    let torn = file.execute(
        "UPDATE versions SET bytes = ?1 WHERE id = ?2",
        (b"User-agent: *\n", one.to_string()),
    );
    assert_eq!(torn.expect("written"), 1);
    drop(file);
    let live = start(directory.path(), Some(state.path()), 400);
    assert_eq!(
        (held(&live), history(&live).unknown_until),
        (both[..1].to_vec(), Some(Timestamp(100)))
    );
    drop(live);
    let live = start(directory.path(), Some(state.path()), 301 + KEPT);
    assert_eq!((held(&live), history(&live).unknown_until), (vec![], None));
}

#[test]
fn a_version_is_on_disk_before_it_is_served() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), Some(state.path()), 0);
    for round in 1..5 {
        let file = rusqlite::Connection::open(state.path().join("state.db")).expect("the store");
        let version = entry(&live).site.robots_txt.version.to_string();
        let written = file.query_row(
            "SELECT bytes FROM versions WHERE id = ?1",
            [version],
            |row| row.get::<_, Vec<u8>>(0),
        );
        assert_eq!(
            written.expect("it is there"),
            &*entry(&live).site.robots_txt.body
        );
        write(directory.path(), "a.yaml", &policy(&format!("/{round}")));
        live.reload(Timestamp(round));
    }
}

#[test]
fn identity_epoch_survives_a_restart_and_ends_with_a_new_token() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), Some(state.path()), 10);
    assert_eq!(history(&live).identity_epoch, Timestamp(10));
    write(directory.path(), "a.yaml", &policy("/two"));
    live.reload(Timestamp(20));
    assert_eq!(history(&live).identity_epoch, Timestamp(10));
    drop(live);
    let live = start(directory.path(), Some(state.path()), 25);
    assert_eq!(history(&live).identity_epoch, Timestamp(10));
    write(
        directory.path(),
        "a.yaml",
        &format!(
            "{}enforcement: {{ agents: {{ HouseBot: {{ mode: enforce }} }} }}\n",
            policy("/two")
        ),
    );
    live.reload(Timestamp(40));
    assert_eq!(
        history(&live).identity_epoch,
        Timestamp(40),
        "what HouseBot was served before is in another's name"
    );
}

#[test]
fn a_host_moves_from_one_site_to_another_in_one_reload() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let hosts = |hosts: &str| policy("/one").replace("a.example", hosts);
    write(root, "a.yaml", &hosts("one.example"));
    write(root, "b.yaml", &hosts("[two.example, moved.example]"));
    let live = start(root, None, 0);
    write(root, "a.yaml", &hosts("[one.example, moved.example]"));
    write(root, "b.yaml", &hosts("two.example"));
    assert_eq!(
        outcomes(&live.reload(Timestamp(1))),
        [
            ("a", ReloadOutcome::Replaced),
            ("b", ReloadOutcome::Replaced)
        ]
    );
    write(root, "a.yaml", &hosts("two.example"));
    write(root, "b.yaml", &hosts("one.example"));
    assert_eq!(
        outcomes(&live.reload(Timestamp(2))),
        [
            ("a", ReloadOutcome::Replaced),
            ("b", ReloadOutcome::Replaced)
        ]
    );
    let snapshot = live.snapshot();
    assert_eq!(
        snapshot.site_for_host(b"one.example"),
        snapshot.site_named("b"),
        "they have changed places"
    );
}

#[test]
fn host_stays_with_the_site_in_force_else_the_earlier_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    write(root, "m.yaml", &policy("/m"));
    let live = start(root, None, 0);
    write(root, "b.yaml", "robots: { origin: replace }\n");
    write(root, "c.yaml", "robots: { origin: replace }\n");
    write(root, "a.yaml", &policy("/a"));
    let report = live.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [
            ("a", ReloadOutcome::Refused),
            ("b", ReloadOutcome::Added),
            ("c", ReloadOutcome::Refused),
            ("m", ReloadOutcome::Unchanged)
        ]
    );
    let owners = live.status(Timestamp(1)).sites;
    assert_eq!(owners[0].conflicts_with.as_deref(), Some("m"));
    assert_eq!(owners[2].conflicts_with.as_deref(), Some("b"));
    assert!(served(&live, "m").contains("/m"));
}

#[test]
fn change_with_the_same_bytes_makes_no_version() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    write(
        directory.path(),
        "a.yaml",
        &format!("{}enforcement: {{ mode: enforce }}\n", policy("/one")),
    );
    assert_eq!(
        outcomes(&live.reload(Timestamp(5))),
        [("a", ReloadOutcome::Replaced)]
    );
    assert_eq!(
        (history(&live).superseded.len(), entry(&live).since),
        (0, Timestamp(0))
    );
    write(directory.path(), "a.yaml", &policy("/two"));
    live.reload(Timestamp(6));
    write(directory.path(), "a.yaml", &policy("/one"));
    live.reload(Timestamp(7));
    assert_eq!(
        history(&live).superseded.len(),
        1,
        "the version in force is not held besides"
    );
}

#[test]
fn reload_without_changes_drops_expired_versions() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    write(directory.path(), "a.yaml", &policy("/two"));
    live.reload(Timestamp(10));
    let generation = live.snapshot().generation;
    live.reload(Timestamp(20));
    assert_eq!(
        live.snapshot().generation,
        generation,
        "nothing changed, nothing is replaced"
    );
    live.reload(Timestamp(11 + KEPT));
    assert_eq!(history(&live).superseded.len(), 0);
}

#[test]
fn unreadable_directory_keeps_all_sites() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("policies");
    fs::create_dir(&root).expect("a folder");
    write(&root, "a.yaml", &policy("/one"));
    let live = start(&root, None, 0);
    fs::rename(&root, directory.path().join("away")).expect("renamed");
    let report = live.reload(Timestamp(1));
    assert!(report.problem.is_some() && report.sites.is_empty());
    assert!(served(&live, "a").contains("/one"));
    let status = live.status(Timestamp(1));
    assert_eq!(ids(&status.warnings), ["policy-directory"]);
    assert!(!status.sites[0].reload_ok);
    fs::rename(directory.path().join("away"), &root).expect("renamed");
    live.reload(Timestamp(2));
    let status = live.status(Timestamp(2));
    assert!(status.warnings.is_empty() && status.sites[0].reload_ok);
}

#[test]
fn pipe_and_dangling_link_are_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let live = start(directory.path(), None, 0);
    let made = std::process::Command::new("mkfifo")
        .arg(directory.path().join("b.yaml"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    std::os::unix::fs::symlink("nowhere.yaml", directory.path().join("c.yaml")).expect("a link");
    let report = live.reload(Timestamp(1));
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
    write(
        directory.path(),
        "a.yaml",
        &format!(
            "{}pause: {{ from: 1970-01-02T00:00:00Z }}\n",
            policy("/one")
        ),
    );
    let live = start(directory.path(), None, 10 * DAY);
    assert_eq!(
        live.status(Timestamp(10 * DAY)).sites[0].paused_until,
        Some(Timestamp(10 * DAY + DAY / 2))
    );
}

#[test]
fn planned_pause_that_is_over_does_not_begin_again() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(
        directory.path(),
        "a.yaml",
        &format!("{}pause: {{ audience: everyone }}\n", policy("/one")),
    );
    let live = start(directory.path(), Some(state.path()), 0);
    live.reload(Timestamp(40 * DAY));
    drop(live);
    let live = start(directory.path(), Some(state.path()), 41 * DAY);
    assert_eq!(live.status(Timestamp(41 * DAY)).sites[0].paused_until, None);
    live.reload(Timestamp(80 * DAY));
    write(
        directory.path(),
        "a.yaml",
        &format!("{}pause: {{ audience: everyone }}\n", policy("/two")),
    );
    live.reload(Timestamp(81 * DAY));
    assert_eq!(live.status(Timestamp(81 * DAY)).sites[0].paused_until, None);
}

#[test]
fn planned_pause_ended_by_hand_stays_ended() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let planned = "pause: { from: 1970-01-01T00:00:00Z, until: 1970-03-15T00:00:00Z }\nacknowledge: long_pause\n";
    write(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy("/one")),
    );
    let live = start(directory.path(), Some(state.path()), 10);
    assert_eq!(
        live.resume(Some("a"), Timestamp(20)),
        Ok(vec!["a".to_owned()])
    );
    live.reload(Timestamp(40 * DAY));
    assert_eq!(live.status(Timestamp(40 * DAY)).sites[0].paused_until, None);
}

#[test]
fn recurring_pause_comes_again_and_is_ended_once() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let recurring = "pause: [{ daily: '02:00-03:00', zone: Etc/GMT-1 }]\n";
    write(
        directory.path(),
        "a.yaml",
        &format!("{}{recurring}", policy("/one")),
    );
    let at = |day: i64, minutes: i64| Timestamp(day * DAY + minutes * 60);
    let live = start(directory.path(), Some(state.path()), 10 * DAY);
    let paused_until = |live: &SiteManager, now| live.status(now).sites[0].paused_until;
    assert_eq!(paused_until(&live, at(10, 59)), None);
    assert_eq!(paused_until(&live, at(10, 60)), Some(at(10, 120)));
    assert_eq!(live.resume(Some("a"), at(10, 90)), Ok(vec!["a".to_owned()]));
    assert_eq!(paused_until(&live, at(10, 91)), None);
    for day in 11..40 {
        assert_eq!(
            paused_until(&live, at(day, 61)),
            Some(at(day, 120)),
            "{day}"
        );
        live.keep_time(at(day, 121));
        assert_eq!(paused_until(&live, at(day, 121)), None, "{day}");
    }
    drop(live);
    let live = start(directory.path(), Some(state.path()), 40 * DAY);
    assert_eq!(paused_until(&live, at(40, 60)), Some(at(40, 120)));
}

#[test]
fn pauses_before_the_policy_was_in_force_have_never_been() {
    let directory = tempfile::tempdir().expect("a directory");
    let planned = "pause: [{ daily: '02:00-03:00', zone: Etc/GMT }, { daily: '11:30-12:30', zone: Etc/GMT }, \
                   { from: 1970-01-10, until: 1970-01-10T01:00:00Z }]\n";
    write(
        directory.path(),
        "a.yaml",
        &format!("{}{planned}", policy("/one")),
    );
    let at = |day: i64, minutes: i64| Timestamp(day * DAY + minutes * 60);
    let live = start(directory.path(), None, at(10, 720).0);
    let begun = |now: Timestamp| {
        let snapshot = live.snapshot();
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
    live.keep_time(at(11, 240));
    assert_eq!(
        begun(at(11, 240)),
        [(at(10, 720), at(10, 750)), (at(11, 120), at(11, 180))]
    );
}

#[test]
fn a_directory_that_is_a_link_is_watched_through_a_swap() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    let (releases, site) = (root.join("releases"), root.join("site"));
    for release in ["1", "2"] {
        fs::create_dir_all(releases.join(release)).expect("a folder");
        write(
            &releases.join(release),
            "a.yaml",
            &policy(&format!("/{release}")),
        );
    }
    fs::create_dir(&site).expect("a folder");
    let link = site.join("policies");
    std::os::unix::fs::symlink(releases.join("1"), &link).expect("a link");
    let (heard, changes) = std::sync::mpsc::channel();
    let _guard = watch(&link, Duration::from_millis(50), move || {
        let _ = heard.send(());
    })
    .expect("watched");
    let noticed = || changes.recv_timeout(Duration::from_secs(20)).is_ok();
    std::os::unix::fs::symlink(releases.join("2"), site.join("new")).expect("a link");
    fs::rename(site.join("new"), &link).expect("swapped");
    assert!(noticed(), "the link leads elsewhere");
    write(&releases.join("2"), "a.yaml", &policy("/three"));
    assert!(noticed(), "what it leads to now is watched");
}

#[test]
fn panic_of_the_compiler_touches_no_other_site() {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let read: policy_file::Read = |name, source, surroundings, registry, at| {
        assert!(
            !source.text.contains("# fatal"),
            "a mistake in the compiler"
        );
        crate::verdict::load_with(name, source, surroundings, registry, at)
    };
    let live = start_reading(directory.path(), read).expect("started");
    write(directory.path(), "a.yaml", "# fatal\n");
    write(
        directory.path(),
        "b.yaml",
        &policy("/b").replace("a.example", "b.example"),
    );
    let report = live.reload(Timestamp(1));
    assert_eq!(
        outcomes(&report),
        [("a", ReloadOutcome::Kept), ("b", ReloadOutcome::Added)]
    );
    assert_eq!(ids(&report.sites[0].findings), ["internal-error"]);
}

#[test]
fn a_status_waits_for_no_reload() {
    use std::sync::mpsc::{Receiver, Sender, channel};
    static GATE: Mutex<Option<(Sender<()>, Receiver<()>)>> = Mutex::new(None);
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), "a.yaml", &policy("/one"));
    let read: policy_file::Read = |name, source, surroundings, registry, at| {
        if let Some((reading, go_on)) = GATE.lock().expect("no panic").take() {
            reading.send(()).expect("awaited");
            go_on.recv().expect("sent");
        }
        crate::verdict::load_with(name, source, surroundings, registry, at)
    };
    let live = start_reading(directory.path(), read).expect("started");
    let ((reading, is_reading), (go_on, may_go_on)) = (channel(), channel());
    *GATE.lock().expect("no panic") = Some((reading, may_go_on));
    write(directory.path(), "a.yaml", &policy("/two"));
    let reload = std::thread::spawn({
        let live = live.clone();
        move || live.reload(Timestamp(1))
    });
    is_reading.recv().expect("reading");
    assert_eq!(live.status(Timestamp(1)).last_reload, Timestamp(0));
    go_on.send(()).expect("waited for");
    assert_eq!(
        outcomes(&reload.join().expect("reloaded")),
        [("a", ReloadOutcome::Replaced)]
    );
    assert_eq!(live.status(Timestamp(1)).last_reload, Timestamp(1));
}

fn copy(text: &str) -> Arc<OriginFile> {
    Arc::new(OriginFile::new(
        "http://origin.test/robots.txt",
        text.as_bytes(),
    ))
}

#[test]
fn origins_file_is_observed_until_the_first_policy() {
    let directory = tempfile::tempdir().expect("a directory");
    let policies = directory.path().join("policies");
    let mut options = options(&policies);
    assert!(
        start_with(options.clone(), None, 0).is_err(),
        "an operator named the directory"
    );
    options.may_be_missing = true;
    let live = start_with(options, None, 0).unwrap_or_else(|error| panic!("{error}"));
    let status = live.status(Timestamp(0)).sites.remove(0);
    assert_eq!(
        (
            status.site.as_str(),
            status.mode.as_str(),
            status.hosts.len()
        ),
        (DEFAULT_SITE, "observe", 0)
    );
    assert!(
        entry(&live)
            .site
            .robots_txt
            .awaits_origin(Timestamp(0))
            .is_some()
    );
    live.origin_says(
        DEFAULT_SITE,
        copy("User-agent: *\nDisallow: /\n"),
        Timestamp(5),
    )
    .expect("passed on as it is");
    assert!(served(&live, DEFAULT_SITE).contains("Disallow: /\n"));
    live.origin_says(
        DEFAULT_SITE,
        copy("User-agent: *\nDisallow: /a/\n"),
        Timestamp(6),
    )
    .expect("fine");
    assert_eq!(
        history(&live).superseded.len(),
        1,
        "the file before it, and not the one that was never served"
    );
    // The first policy has the copy, and crawlers hold what they got before.
    fs::create_dir(&policies).expect("a folder");
    write(&policies, "shop.yaml", "purposes: { training: disallow }\n");
    assert_eq!(
        outcomes(&live.reload(Timestamp(7))),
        [("shop", ReloadOutcome::Added)]
    );
    assert_eq!(live.snapshot().sites().len(), 1);
    assert!(served(&live, "shop").contains("Disallow: /a/"));
    assert_eq!(
        (history(&live).superseded.len(), entry(&live).since),
        (2, Timestamp(7))
    );
    // And when it is gone, there is none again.
    fs::remove_file(policies.join("shop.yaml")).expect("removed");
    live.remove(&["shop".to_owned()], Timestamp(8))
        .expect("removed");
    assert_eq!(live.status(Timestamp(8)).sites[0].site, DEFAULT_SITE);
}

#[test]
fn a_refused_first_policy_leaves_the_site_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let live = start(directory.path(), None, 0);
    live.origin_says(
        DEFAULT_SITE,
        copy("User-agent: *\nDisallow: /\n"),
        Timestamp(1),
    )
    .expect("passed on");
    write(
        directory.path(),
        "shop.yaml",
        "purposes: { training: disallow }\n",
    );
    let report = live.reload(Timestamp(2));
    assert_eq!(outcomes(&report), [("shop", ReloadOutcome::Refused)]);
    assert!(
        report.sites[0].findings[0]
            .message
            .contains("http://origin.test/robots.txt:2"),
        "{report:?}"
    );
    assert!(
        served(&live, DEFAULT_SITE).contains("Disallow: /\n"),
        "nothing was opened"
    );
}

#[test]
fn a_copy_that_is_awaited_again_costs_no_version() {
    let (directory, state) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    write(directory.path(), "a.yaml", "hosts: a.example\n");
    let live = start(directory.path(), Some(state.path()), 0);
    live.origin_says("a", copy("User-agent: *\nDisallow: /a/\n"), Timestamp(10))
        .expect("fine");
    drop(live);
    // The copies are lost, the memory is not: the same file comes back, and nothing else was
    // served.
    let live = start(directory.path(), Some(state.path()), 100);
    live.origin_says("a", copy("User-agent: *\nDisallow: /a/\n"), Timestamp(110))
        .expect("fine");
    assert_eq!(
        (
            entry(&live).since,
            history(&live).superseded.len(),
            history(&live).unknown_until
        ),
        (Timestamp(10), 0, None)
    );
    drop(live);
    let live = start(directory.path(), Some(state.path()), 200);
    live.origin_says("a", copy("User-agent: *\nDisallow: /b/\n"), Timestamp(210))
        .expect("fine");
    let (held, forgotten) = (history(&live).superseded, history(&live).unknown_until);
    let held: Vec<_> = held
        .iter()
        .map(|held| (held.since, held.superseded_at))
        .collect();
    assert_eq!(
        (held, forgotten),
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
    write(directory.path(), "a.yaml", &policy);
    let live = start(directory.path(), Some(state.path()), 0);
    let version = |live: &SiteManager| entry(live).site.robots_txt.version;
    let held = |live: &SiteManager| -> Vec<_> {
        history(live)
            .superseded
            .iter()
            .map(|held| held.parsed.version)
            .collect()
    };

    live.origin_says("a", copy("User-agent: *\nDisallow: /a/\n"), Timestamp(10))
        .expect("fine");
    let first = version(&live);
    assert_eq!(held(&live), [], "no crawler has what was never served");
    live.origin_says(
        "a",
        copy("User-agent: *\nDisallow: /b/\n"),
        Timestamp(20 * DAY - 9),
    )
    .expect("fine");
    let second = version(&live);
    assert_eq!(held(&live), [first], "the origin changed its file");
    assert_eq!(live.keep_time(Timestamp(20 * DAY)), ["a"]);
    let third = version(&live);
    assert_eq!(
        held(&live),
        [second, first],
        "a path came to its next stage"
    );
    write(
        directory.path(),
        "a.yaml",
        &policy.replace(
            "hosts:",
            "robots: { content_signal: { search: yes } }\nhosts:",
        ),
    );
    live.reload(Timestamp(20 * DAY + 1));
    let fourth = version(&live);
    assert_eq!(held(&live), [third, second, first], "a signal");
    assert_eq!(
        [first, second, third, fourth]
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        4
    );
    // Each by its own bytes, through a restart, while the origin's copy is lost and nothing is
    // served at all.
    drop(live);
    let live = start(directory.path(), Some(state.path()), 20 * DAY + 2);
    assert!(
        entry(&live)
            .site
            .robots_txt
            .awaits_origin(Timestamp(20 * DAY + 2))
            .is_some()
    );
    assert_eq!(held(&live), [fourth, third, second, first]);
    live.origin_says(
        "a",
        copy("User-agent: *\nDisallow: /b/\n"),
        Timestamp(20 * DAY + 3),
    )
    .expect("fine");
    assert_eq!(
        (version(&live), held(&live)),
        (fourth, vec![third, second, first])
    );
}
