//! Tests of the evidence log over its lifetime: restarts, new keys, restored backups, deletion, a
//! full disk.

use super::*;
use crate::evidence::EvidenceRecorder;
use crate::evidence::commands::delete_personal_values;
use crate::evidence::database::{EvidenceDatabase, LogDamage, PruneResult, RunEnd};
use crate::evidence::examine::examine_logs;
use crate::evidence::note::SigningKey;
use crate::evidence::opening::{open_existing, write_run_count};
use crate::record::RecordField;
use crate::settings::{AddressDetail, EvidenceSettings};

fn keep_settings(keep: Duration, size: u64) -> EvidenceSettings {
    EvidenceSettings {
        keep,
        size,
        ..EvidenceSettings::default()
    }
}

#[test]
fn withdrawn_values_leave_a_chain_that_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let address = "203.0.113.5".parse().ok();
    assert_eq!(
        delete_personal_values(&mut log, address, None, time_at(55)).expect("forgotten"),
        8
    );
    let (archive, findings) = export_case(&mut log, &sample_scope(), time_at(60));
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.withdrawn, 7);
    assert!(
        findings
            .requests
            .iter()
            .all(|request| request.rejudged == "not judged"
                && request.field_text(RecordField::Target).is_none())
    );
    assert!(!archive.windows(11).any(|bytes| bytes == b"203.0.113.5"));
    let on_disk = std::fs::read(directory.path().join("evidence.db")).expect("the file");
    assert!(!on_disk.windows(11).any(|bytes| bytes == b"203.0.113.5"));
}

/// A process that keeps entries since a time opens and closes the log.
fn run_with_retention(directory: &Path, since: SystemTime) {
    let keep = SystemTime::now().duration_since(since).expect("it is past");
    EvidenceRecorder::open(
        directory,
        &keep_settings(keep, 1 << 30),
        AddressDetail::Full,
    )
    .close();
}

#[test]
fn old_entries_are_deleted_and_the_rest_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(sample_log(directory.path()));
    run_with_retention(directory.path(), time_at(25));
    let mut log = open_existing(directory.path()).expect("the log");
    let (archive, findings) = export_case(&mut log, &sample_scope(), SystemTime::now());
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.requests.len(), 2);
    // What is still published stays.
    assert_eq!(findings.published.len(), 1);
    let mut unknown = finding_ids(&findings.unknown);
    unknown.retain(|id| *id == "deleted-for-age");
    assert_eq!(unknown.len(), 3);
    // A window after that moment, whose first entry is the first that the log still has.
    let late = CaseScope {
        from: time_at(27),
        ..sample_scope()
    };
    assert_eq!(
        export_case(&mut log, &late, SystemTime::now()).1.faults,
        Vec::<Finding>::new()
    );
    // Without the word of the log it would be a case that was shortened.
    let mut files = tar::read_archive(&archive).expect("files");
    let all = file_lines(&files, "chains/log.jsonl");
    let others: Vec<String> = all
        .into_iter()
        .filter(|line| !line.contains("too_old"))
        .collect();
    put_lines(&mut files, "chains/log.jsonl", &others);
    let examined = examine_logs(&[(&files, &log.key.verify_key())]).remove(0);
    assert!(finding_ids(&examined.faults).contains(&"beginning-left-out"));
}

#[test]
fn last_entry_keeps_its_documents_without_personal_values() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(sample_log(directory.path()));
    run_with_retention(directory.path(), time_at(60));
    let mut log = open_existing(directory.path()).expect("the log");
    let other = CaseScope {
        crawler: "other".into(),
        from: time_at(0),
        to: SystemTime::now(),
        ..sample_scope()
    };
    let (archive, findings) = export_case(&mut log, &other, other.to);
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
        tar::read_archive(&archive)
            .expect("files")
            .contains_key(&format!("robots/{}.txt", Hash::digest(&[LENIENT_ROBOTS])))
    );
}

#[test]
fn old_entries_are_deleted_in_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open_for_writing(directory.path(), time_at(0)).expect("a log");
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        NewEntry::default(),
        time_at(1),
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
            .write(|writing| writing.prune(&format_time(time_at(2))))
            .expect("pruned")
    };
    assert_eq!(
        prune(),
        PruneResult {
            entries: 20_000,
            is_complete: false
        }
    );
    assert_eq!(
        prune(),
        PruneResult {
            entries: 4_999,
            is_complete: true
        }
    );
}

#[test]
fn log_with_a_rotated_key_is_verified_by_both_keys() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let first = log.key.verify_key();
    let second = rotate_key(directory.path(), &mut log, time_at(52)).expect("a new key");
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request_entry(STRICT_ROBOTS, "/private/d", time_at(55)),
        time_at(55),
    );
    drop(log);
    // A crash may leave the new key beside the old one, after the database names it.
    let file = |name: &str| directory.path().join(name);
    std::fs::rename(file("evidence.key"), file("evidence.key.new")).expect("renamed");
    let mut log = open_for_writing(directory.path(), time_at(56)).expect("the log");
    assert_eq!(
        (log.former_damage, log.key.verify_key()),
        (None, second.clone())
    );
    let (archive, _) = export_case(&mut log, &sample_scope(), time_at(60));
    for key in [&first, &second] {
        let findings = verify_case(&archive, std::slice::from_ref(key))
            .logs
            .remove(0);
        assert_eq!((findings.faults, findings.requests.len()), (Vec::new(), 4));
    }
    // The old key signs no checkpoint after its time.
    let old = SigningKey::parse(&log.key.to_line())
        .expect("a key")
        .generate_successor()
        .expect("a key");
    let mut files = tar::read_archive(&archive).expect("files");
    let name = files
        .keys()
        .rfind(|file| file.ends_with(".note") && file.starts_with("checkpoints/"))
        .cloned();
    let note = files
        .get_mut(&name.expect("a checkpoint"))
        .expect("the file");
    let text = second
        .open_note(str::from_utf8(note).expect("text"))
        .expect("signed")
        .to_owned();
    *note = old.sign_note(&text).into_bytes();
    assert!(!examine_logs(&[(&files, &first)])[0].faults.is_empty());
}

#[test]
fn older_copy_of_the_database_begins_a_new_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = open_for_writing(directory.path(), time_at(0)).expect("a log");
    let id = first.state.id.clone();
    drop(first);
    write_run_count(directory.path(), 3).expect("written");
    let again = open_for_writing(directory.path(), time_at(1)).expect("a log");
    assert_eq!(again.former_damage, Some(LogDamage::OlderCopy));
    assert_ne!(again.state.id, id);
    drop(again);
    std::fs::remove_file(directory.path().join("evidence.key")).expect("removed");
    let again = open_for_writing(directory.path(), time_at(2)).expect("a log");
    assert_eq!(again.former_damage, Some(LogDamage::KeyLost));
}

#[test]
fn damaged_last_entry_begins_a_new_log_with_a_problem() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(sample_log(directory.path()));
    let open = || {
        let settings = keep_settings(Duration::from_secs(86_400 * 4_000), 1 << 30);
        let evidence = EvidenceRecorder::open(directory.path(), &settings, AddressDetail::Full);
        evidence.close();
        evidence.problem().map(|problem| problem.id.into_owned())
    };
    assert_eq!(open(), None);
    let file = directory.path().join("evidence.db");
    let database = rusqlite::Connection::open(file).expect("the file");
    let damage = "UPDATE entries SET line = replace(line, 'gptbot', 'gptbox') WHERE (chain, number) IN (SELECT id, entries - 1 \
                  FROM chains WHERE crawler = 'gptbot')";
    assert_eq!(database.execute(damage, []).expect("damaged"), 1);
    drop(database);
    assert_eq!(open().as_deref(), Some("evidence-new-log"));
    assert_eq!(open(), None);
}

#[test]
fn run_is_recorded_from_start_to_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = keep_settings(Duration::from_secs(86_400), 1 << 30);
    for _ in 0..2 {
        let evidence = EvidenceRecorder::open(directory.path(), &bounds, AddressDetail::Full);
        let now = SystemTime::now();
        evidence.record_publication("shop", published_entry(STRICT_ROBOTS));
        evidence.record("shop", "gptbot", now, false, || {
            served_entry(STRICT_ROBOTS, now)
        });
        evidence.record("shop", "gptbot", now, false, || {
            request_entry(STRICT_ROBOTS, "/private/x", now)
        });
        evidence.close();
        assert_eq!(
            (
                evidence.written_count(),
                evidence.lost_count(),
                evidence.problem()
            ),
            (3, 0, None)
        );
    }
    let mut log = open_existing(directory.path()).expect("the log");
    assert_eq!(
        (log.state.last_end, log.state.run_count),
        (Some(RunEnd::Stopped), 2)
    );
    let from = SystemTime::now() - Duration::from_secs(3_600);
    let span = CaseScope {
        from,
        to: SystemTime::now(),
        ..sample_scope()
    };
    let (_, findings) = export_case(&mut log, &span, SystemTime::now());
    assert_eq!(
        (findings.faults.len(), findings.requests.len()),
        (0, 2),
        "{:?}",
        findings.faults
    );
    assert!(finding_ids(&findings.unknown).contains(&"gap-stop"));
    assert_eq!(findings.gaps, 1);
    // The log did not exist when the span began.
    assert!(findings.from > format_time(SystemTime::now() - Duration::from_secs(1_800)));
}

#[test]
fn case_of_a_full_log_ends_where_entries_are_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let keep = Duration::from_secs(86_400);
    let open = |size| {
        let bounds = keep_settings(keep, size);
        EvidenceRecorder::open(directory.path(), &bounds, AddressDetail::Full)
    };
    let visit = |evidence: &EvidenceRecorder| {
        let now = SystemTime::now();
        evidence.record("shop", "gptbot", now, false, || {
            request_entry(STRICT_ROBOTS, "/private/x", now)
        });
    };
    let export = |to: SystemTime| {
        let mut log = open_existing(directory.path()).expect("the log");
        let span = CaseScope {
            from: to - Duration::from_secs(3_600),
            to,
            ..sample_scope()
        };
        let (_, findings) = export_case(&mut log, &span, SystemTime::now());
        assert_eq!(findings.faults, Vec::<Finding>::new());
        findings
    };
    let fine = open(1 << 30);
    fine.record_publication("shop", published_entry(STRICT_ROBOTS));
    visit(&fine);
    fine.close();
    let full = open(1);
    let opened = format_time(SystemTime::now());
    wait_until(|| format_time(SystemTime::now()) > opened);
    let lost_at = SystemTime::now();
    visit(&full);
    full.record_publication("shop", published_entry(LENIENT_ROBOTS));
    wait_until(|| full.problem().is_some());
    let until = SystemTime::now();
    let before = export(until);
    assert!(before.to < format_time(lost_at), "{}", before.to);
    full.close();
    open(1 << 30).close();
    // The same span, now that the log has an entry about the missing ones.
    let after = export(until);
    let ids = finding_ids(&after.unknown);
    assert_eq!(after.to, format_time(until));
    assert!(
        ids.contains(&"gap-not-written") && !ids.contains(&"gap-crash"),
        "{ids:?}"
    );
    let gap = after.unknown.iter().find(|gap| gap.id == "gap-not-written");
    let message = gap.map_or("", |gap| gap.message.as_str());
    assert!(message.contains(": 1, because"), "{message}");
    assert_eq!(export(SystemTime::now()).published.len(), 2);
}

/// Seconds in which requests are left out, and at most two gaps: within half a minute, and at the end.
#[test]
fn half_full_log_has_few_gaps_about_passed_requests() {
    let directory = tempfile::tempdir().expect("a directory");
    let keep = Duration::from_secs(86_400);
    let open = |size| {
        let bounds = keep_settings(keep, size);
        EvidenceRecorder::open(directory.path(), &bounds, AddressDetail::Full)
    };
    open(1 << 30).close();
    let log = open_existing(directory.path()).expect("the log");
    let half_full = open(2 * log.database.size().expect("a size"));
    let [_, lost] = half_full.counters();
    for _ in 0..3 {
        let before = lost.get();
        wait_until(|| {
            let now = SystemTime::now();
            for is_passed in [true, false] {
                half_full.record("shop", "gptbot", now, is_passed, || {
                    request_entry(STRICT_ROBOTS, "/x", now)
                });
            }
            std::thread::sleep(Duration::from_millis(200));
            lost.get() > before
        });
    }
    half_full.close();
    let mut log = open_existing(directory.path()).expect("the log");
    let now = SystemTime::now();
    let span = CaseScope {
        from: now - Duration::from_secs(3_600),
        to: now,
        ..sample_scope()
    };
    let (_, findings) = export_case(&mut log, &span, now);
    let mut gaps = finding_ids(&findings.unknown);
    gaps.retain(|id| *id == "gap-half-full");
    assert!(matches!(gaps.len(), 1 | 2), "{gaps:?}");
}

#[test]
fn unopenable_log_is_only_a_problem() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = keep_settings(Duration::from_secs(86_400), 1 << 30);
    let evidence = EvidenceRecorder::open(
        &directory.path().join("missing"),
        &bounds,
        AddressDetail::Full,
    );
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, false, || {
        served_entry(STRICT_ROBOTS, now)
    });
    assert_eq!(evidence.lost_count(), 1);
    assert_eq!(evidence.problem().expect("a problem").id, "evidence");
    evidence.close();
}

#[test]
fn full_log_counts_lost_entries() {
    let directory = tempfile::tempdir().expect("a directory");
    let keep = Duration::from_secs(86_400);
    let evidence = EvidenceRecorder::open(
        directory.path(),
        &keep_settings(keep, 1),
        AddressDetail::Full,
    );
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, false, || {
        served_entry(STRICT_ROBOTS, now)
    });
    evidence.close();
    assert_eq!(evidence.lost_count(), 1);
    assert_eq!(evidence.problem().expect("a problem").id, "evidence");
    let database = EvidenceDatabase::open(directory.path(), false).expect("the log");
    assert_eq!(
        database
            .chain(&ChainName::of_crawler("shop", "gptbot"))
            .expect("read"),
        None
    );
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn failed_publication_is_written_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = keep_settings(Duration::from_secs(86_400), 1 << 30);
    let evidence = EvidenceRecorder::open(directory.path(), &bounds, AddressDetail::Full);
    let file = |name: &str| directory.path().join(name);
    std::fs::rename(file("evidence.db"), file("away")).expect("renamed");
    evidence.record_publication("shop", published_entry(STRICT_ROBOTS));
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, false, || {
        served_entry(STRICT_ROBOTS, now)
    });
    wait_until(|| evidence.problem().is_some());
    std::fs::rename(file("away"), file("evidence.db")).expect("renamed");
    wait_until(|| evidence.written_count() > 0);
    evidence.close();
    assert_eq!((evidence.written_count(), evidence.lost_count()), (1, 1));
    let database = EvidenceDatabase::open(directory.path(), false).expect("the log");
    assert!(
        database
            .chain(&ChainName::of_site("shop"))
            .expect("read")
            .is_some()
    );
}

#[test]
fn handed_over_log_has_entries_of_both_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = keep_settings(Duration::from_secs(86_400 * 365), 1 << 30);
    let open = || EvidenceRecorder::open(directory.path(), &bounds, AddressDetail::Full);
    let visit = |evidence: &EvidenceRecorder, target: &str| {
        let now = SystemTime::now();
        evidence.record("shop", "gptbot", now, false, || {
            request_entry(STRICT_ROBOTS, target, now)
        });
    };
    let from = SystemTime::now();
    let before = open();
    before.record_publication("shop", published_entry(STRICT_ROBOTS));
    visit(&before, "/private/1");
    before.hand_over();
    visit(&before, "/private/2");
    let next = open();
    visit(&next, "/private/3");
    before.close();
    next.close();
    let mut log = open_existing(directory.path()).expect("the log");
    assert_eq!(log.state.last_end, Some(RunEnd::Stopped));
    let span = CaseScope {
        from,
        to: SystemTime::now(),
        ..sample_scope()
    };
    let (_, findings) = export_case(&mut log, &span, SystemTime::now());
    let mut targets: Vec<_> = findings
        .requests
        .iter()
        .filter_map(|request| request.field_text(RecordField::Target))
        .collect();
    targets.sort_unstable();
    assert_eq!(
        (findings.faults.len(), targets.join(" ")),
        (0, "/private/1 /private/2 /private/3".to_owned())
    );
    let mut gaps = finding_ids(&findings.unknown);
    gaps.retain(|id| id.starts_with("gap"));
    assert_eq!(gaps, ["gap-upgrade"]);
}
