//! The evidence log over its lifetime: restarts, new keys, restored copies, deletion, a full disk.

use super::*;
use crate::evidence::Evidence;
use crate::evidence::commands::forget;
use crate::evidence::database::{Damage, Deletion, EvidenceDatabase, RunEnd};
use crate::evidence::examine::examine;
use crate::evidence::note::SigningKey;
use crate::evidence::opening::{open_existing, write_runs};
use crate::record::Field;
use crate::settings::{AddressDetail, EvidenceSettings};

/// So much is kept, for so long.
fn kept(keep: Duration, size: u64) -> EvidenceSettings {
    EvidenceSettings {
        keep,
        size,
        ..EvidenceSettings::default()
    }
}

#[test]
fn withdrawn_values_leave_a_chain_that_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let address = "203.0.113.5".parse().ok();
    assert_eq!(
        forget(&mut log, address, None, moment(55)).expect("forgotten"),
        8
    );
    let (archive, findings) = written(&mut log, &span(), moment(60));
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.withdrawn, 7);
    assert!(
        findings.requests.iter().all(
            |request| request.rejudged == "not judged" && request.text(Field::Target).is_none()
        )
    );
    assert!(!archive.windows(11).any(|octets| octets == b"203.0.113.5"));
    let on_disk = std::fs::read(directory.path().join("evidence.db")).expect("the file");
    assert!(!on_disk.windows(11).any(|octets| octets == b"203.0.113.5"));
}

/// A process that keeps what is not older than a moment writes the log for a while.
fn run_that_keeps(directory: &Path, since: SystemTime) {
    let keep = SystemTime::now().duration_since(since).expect("it is past");
    Evidence::open(directory, &kept(keep, 1 << 30), AddressDetail::Full).close();
}

#[test]
fn what_is_too_old_is_deleted_and_the_rest_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(log(directory.path()));
    run_that_keeps(directory.path(), moment(25));
    let mut log = open_existing(directory.path()).expect("the log");
    let (archive, findings) = written(&mut log, &span(), SystemTime::now());
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.requests.len(), 2);
    // What is still published stays.
    assert_eq!(findings.published.len(), 1);
    let mut unknown = ids(&findings.unknown);
    unknown.retain(|id| *id == "deleted-for-age");
    assert_eq!(unknown.len(), 3);
    // A window after that moment, whose first entry is the first that the log still has.
    let late = CaseSpan {
        from: moment(27),
        ..span()
    };
    assert_eq!(
        written(&mut log, &late, SystemTime::now()).1.faults,
        Vec::<Finding>::new()
    );
    // Without the word of the log it would be a case that somebody shortened.
    let mut files = tar::read(&archive).expect("files");
    let all = lines(&files, "chains/log.jsonl");
    let others: Vec<String> = all
        .into_iter()
        .filter(|line| !line.contains("too_old"))
        .collect();
    put(&mut files, "chains/log.jsonl", &others);
    let examined = examine(&[(&files, &log.key.verify_key())]).remove(0);
    assert!(ids(&examined.faults).contains(&"beginning-left-out"));
}

#[test]
fn a_last_entry_stays_with_its_robots_txt_and_without_its_values() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(log(directory.path()));
    run_that_keeps(directory.path(), moment(60));
    let mut log = open_existing(directory.path()).expect("the log");
    let other = CaseSpan {
        crawler: "other".into(),
        from: moment(0),
        ..span()
    };
    let (archive, findings) = written(&mut log, &other, SystemTime::now());
    assert_eq!(
        (
            findings.faults.len(),
            findings.served.len(),
            findings.withdrawn
        ),
        (0, 1, 1),
        "{:?}",
        findings.faults
    );
    assert!(
        tar::read(&archive)
            .expect("files")
            .contains_key(&format!("robots/{}.txt", Hash::of(&[LENIENT])))
    );
}

#[test]
fn what_is_too_old_is_deleted_in_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open(directory.path(), moment(0)).expect("a log");
    append(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        Record::default(),
        moment(1),
    );
    let connection =
        rusqlite::Connection::open(directory.path().join("evidence.db")).expect("the file");
    connection
        .execute_batch(
            "WITH RECURSIVE later (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM later WHERE n < 24999) INSERT INTO entries \
             (chain, number, time, kind, line) SELECT chain, n, time, kind, line FROM entries, later; UPDATE chains SET \
             entries = 25000",
        )
        .expect("as if");
    let mut prune = || {
        log.database
            .write(|writing| writing.prune(&time_text(moment(2))))
            .expect("pruned")
    };
    assert_eq!(
        prune(),
        Deletion {
            entries: 20_000,
            is_complete: false
        }
    );
    assert_eq!(
        prune(),
        Deletion {
            entries: 4_999,
            is_complete: true
        }
    );
}

#[test]
fn a_log_with_a_new_key_is_checked_by_the_old_and_the_new_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let first = log.key.verify_key();
    let second = rotate_key(directory.path(), &mut log, moment(52)).expect("a new key");
    append(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request(STRICT, "/private/d", moment(55)),
        moment(55),
    );
    drop(log);
    // A crash may leave the new key beside the old one, after the database names it.
    let file = |name: &str| directory.path().join(name);
    std::fs::rename(file("evidence.key"), file("evidence.key.new")).expect("renamed");
    let mut log = open(directory.path(), moment(56)).expect("the log");
    assert_eq!(
        (log.begun_anew, log.key.verify_key()),
        (None, second.clone())
    );
    let (archive, _) = written(&mut log, &span(), moment(60));
    for key in [&first, &second] {
        let findings = verify(&archive, std::slice::from_ref(key)).logs.remove(0);
        assert_eq!((findings.faults, findings.requests.len()), (Vec::new(), 4));
    }
    // The old key signs no checkpoint after its time.
    let old = SigningKey::parse(&log.key.line())
        .expect("a key")
        .successor()
        .expect("a key");
    let mut files = tar::read(&archive).expect("files");
    let name = files
        .keys()
        .rfind(|file| file.ends_with(".note") && file.starts_with("checkpoints/"))
        .cloned();
    let note = files
        .get_mut(&name.expect("a checkpoint"))
        .expect("the file");
    let text = second
        .open(str::from_utf8(note).expect("text"))
        .expect("signed")
        .to_owned();
    *note = old.sign(&text).into_bytes();
    assert!(!examine(&[(&files, &first)])[0].faults.is_empty());
}

#[test]
fn an_older_copy_of_the_database_begins_a_new_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = open(directory.path(), moment(0)).expect("a log");
    let id = first.state.id.clone();
    drop(first);
    write_runs(directory.path(), 3).expect("written");
    let again = open(directory.path(), moment(1)).expect("a log");
    assert_eq!(again.begun_anew, Some(Damage::OlderCopy));
    assert_ne!(again.state.id, id);
    drop(again);
    std::fs::remove_file(directory.path().join("evidence.key")).expect("removed");
    let again = open(directory.path(), moment(2)).expect("a log");
    assert_eq!(again.begun_anew, Some(Damage::KeyLost));
}

#[test]
fn a_run_is_recorded_from_its_start_to_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = kept(Duration::from_secs(86_400), 1 << 30);
    for _ in 0..2 {
        let evidence = Evidence::open(directory.path(), &bounds, AddressDetail::Full);
        let now = SystemTime::now();
        evidence.published("shop", published(STRICT));
        evidence.record("shop", "gptbot", now, || served(STRICT, now));
        evidence.record("shop", "gptbot", now, || request(STRICT, "/private/x", now));
        evidence.close();
        assert_eq!(
            (evidence.entries(), evidence.lost(), evidence.problem()),
            (3, 0, None)
        );
    }
    let mut log = open_existing(directory.path()).expect("the log");
    assert_eq!((log.state.end, log.state.runs), (Some(RunEnd::Stopped), 2));
    let from = SystemTime::now() - Duration::from_secs(3_600);
    let span = CaseSpan {
        from,
        to: SystemTime::now(),
        ..span()
    };
    let (_, findings) = written(&mut log, &span, SystemTime::now());
    assert_eq!(
        (findings.faults.len(), findings.requests.len()),
        (0, 2),
        "{:?}",
        findings.faults
    );
    assert!(ids(&findings.unknown).contains(&"gap-stop"));
}

#[test]
fn a_log_that_cannot_be_opened_is_a_problem_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = kept(Duration::from_secs(86_400), 1 << 30);
    let evidence = Evidence::open(
        &directory.path().join("missing"),
        &bounds,
        AddressDetail::Full,
    );
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, || served(STRICT, now));
    assert_eq!(evidence.lost(), 1);
    assert_eq!(evidence.problem().expect("a problem").id, "evidence");
    evidence.close();
}

#[test]
fn a_log_that_is_full_says_how_many_entries_it_lacks() {
    let directory = tempfile::tempdir().expect("a directory");
    let keep = Duration::from_secs(86_400);
    let evidence = Evidence::open(directory.path(), &kept(keep, 1), AddressDetail::Full);
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, || served(STRICT, now));
    evidence.close();
    assert_eq!(evidence.lost(), 1);
    assert_eq!(evidence.problem().expect("a problem").id, "evidence");
    let database = EvidenceDatabase::open(directory.path(), false).expect("the log");
    assert_eq!(
        database
            .chain(&ChainName::of_crawler("shop", "gptbot"))
            .expect("read"),
        None
    );
}

fn eventually(mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_publication_that_could_not_be_written_is_written_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = kept(Duration::from_secs(86_400), 1 << 30);
    let evidence = Evidence::open(directory.path(), &bounds, AddressDetail::Full);
    let file = |name: &str| directory.path().join(name);
    std::fs::rename(file("evidence.db"), file("away")).expect("renamed");
    evidence.published("shop", published(STRICT));
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, || served(STRICT, now));
    eventually(|| evidence.problem().is_some());
    std::fs::rename(file("away"), file("evidence.db")).expect("renamed");
    eventually(|| evidence.entries() > 0);
    evidence.close();
    assert_eq!((evidence.entries(), evidence.lost()), (1, 1));
    let database = EvidenceDatabase::open(directory.path(), false).expect("the log");
    assert!(
        database
            .chain(&ChainName::of_site("shop"))
            .expect("read")
            .is_some()
    );
}

#[test]
fn a_log_that_is_handed_over_has_what_both_processes_recorded() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = kept(Duration::from_secs(86_400 * 365), 1 << 30);
    let open = || Evidence::open(directory.path(), &bounds, AddressDetail::Full);
    let visit = |evidence: &Evidence, target: &str| {
        let now = SystemTime::now();
        evidence.record("shop", "gptbot", now, || request(STRICT, target, now));
    };
    let from = SystemTime::now();
    let before = open();
    before.published("shop", published(STRICT));
    visit(&before, "/private/1");
    before.hand_over();
    visit(&before, "/private/2");
    let next = open();
    visit(&next, "/private/3");
    before.close();
    next.close();
    let mut log = open_existing(directory.path()).expect("the log");
    assert_eq!(log.state.end, Some(RunEnd::Stopped));
    let span = CaseSpan {
        from,
        to: SystemTime::now(),
        ..span()
    };
    let (_, findings) = written(&mut log, &span, SystemTime::now());
    let mut targets: Vec<_> = findings
        .requests
        .iter()
        .filter_map(|request| request.text(Field::Target))
        .collect();
    targets.sort_unstable();
    assert_eq!(
        (findings.faults.len(), targets.join(" ")),
        (0, "/private/1 /private/2 /private/3".to_owned())
    );
    let mut gaps = ids(&findings.unknown);
    gaps.retain(|id| id.starts_with("gap"));
    assert_eq!(gaps, ["gap-upgrade"]);
}
