//! Tests in which a dishonest owner of the private key changes a case (an excerpt of the evidence
//! log, as one file). The owner signs the case's list of files again, so that it fits the changed
//! files. The check must find each change.

use super::*;
use crate::evidence::canonical::canonical_json;
use crate::evidence::case::CaseError;
use crate::evidence::entry::{EvidenceEntry, line_hash};

const CRAWLER: &str = "chains/crawler.jsonl";

/// Changes entries, and renews the hashes between them.
fn relink(lines: &[String], mut change: impl FnMut(usize, &mut EvidenceEntry)) -> Vec<String> {
    let mut previous: Option<Hash> = None;
    let mut relinked = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let mut entry = EvidenceEntry::parse(line).expect("an entry");
        change(place, &mut entry);
        entry.previous = previous.unwrap_or(entry.previous);
        previous = Some(line_hash(&entry.to_line()));
        relinked.push(entry.to_line());
    }
    relinked
}

#[test]
fn shortened_chain_is_detected() {
    let faults = CaseFixture::new().faults_after(|files| {
        let all = file_lines(files, CRAWLER);
        put_lines(files, CRAWLER, &all[..all.len() - 1]);
    });
    assert!(finding_ids(&faults).contains(&"shortened"));
}

#[test]
fn removed_entry_in_relinked_chain_is_detected() {
    let faults = CaseFixture::new().faults_after(|files| {
        let mut all = file_lines(files, CRAWLER);
        all.remove(1);
        let relinked = relink(&all, |place, entry| entry.number = place as u64);
        put_lines(files, CRAWLER, &relinked);
    });
    assert!(finding_ids(&faults).contains(&"shortened"));
}

#[test]
fn added_entry_is_detected() {
    let faults = CaseFixture::new().faults_after(|files| {
        let mut all = file_lines(files, CRAWLER);
        all.push(all[all.len() - 1].clone());
        let relinked = relink(&all, |place, entry| entry.number = place as u64);
        put_lines(files, CRAWLER, &relinked);
    });
    assert!(finding_ids(&faults).contains(&"shortened"));
}

#[test]
fn changed_entry_contradicts_the_checkpoints() {
    let faults = CaseFixture::new().faults_after(|files| {
        let all = file_lines(files, CRAWLER);
        let relinked = relink(&all, |place, entry| {
            if place == 1 {
                entry.data.insert("identity".into(), "impostor".into());
            }
        });
        put_lines(files, CRAWLER, &relinked);
    });
    assert!(finding_ids(&faults).contains(&"shortened"));
}

/// Changes the database of a log.
struct DatabaseForger {
    connection: rusqlite::Connection,
    /// The row of the chain with requests.
    chain: i64,
}

impl DatabaseForger {
    fn new(directory: &Path) -> DatabaseForger {
        let file = directory.join("evidence.db");
        let connection = rusqlite::Connection::open(file).expect("the file");
        let query = "SELECT chain FROM entries WHERE kind = 'request'";
        let chain = connection.query_row(query, [], |row| row.get(0));
        DatabaseForger {
            chain: chain.expect("a request"),
            connection,
        }
    }

    fn entry(&self, number: u64) -> EvidenceEntry {
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number = ?2";
        let line: String = self
            .connection
            .query_row(query, (self.chain, number), |row| row.get(0))
            .expect("the entry");
        EvidenceEntry::parse(&line).expect("an entry")
    }

    fn put_entry(&self, entry: &EvidenceEntry) {
        let row = "UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3";
        self.connection
            .execute(row, (entry.to_line(), self.chain, entry.number))
            .expect("forged");
    }

    /// Replaces the last entry of the chain, and its head.
    fn put_last(&self, entry: &EvidenceEntry) {
        self.put_entry(entry);
        let head = line_hash(&entry.to_line());
        let row = "UPDATE chains SET head = ?1 WHERE id = ?2";
        self.connection
            .execute(row, (head.0.as_slice(), self.chain))
            .expect("forged");
    }
}

#[test]
fn entry_dated_back_before_a_checkpoint_is_detected() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    // The holder of the key writes an entry by hand, with a time from before the checkpoint.
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request_entry(STRICT_ROBOTS, "/private/d", time_at(35)),
        time_at(55),
    );
    let forger = DatabaseForger::new(directory.path());
    let mut last = forger.entry(4);
    last.time = format_time(time_at(50));
    forger.put_last(&last);
    let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
    assert!(
        findings.faults.is_empty(),
        "later than the checkpoint, it cannot be told: {:?}",
        findings.faults
    );
    // Before it, an entry of 50 stands; the forger dates that one back too.
    let mut before = forger.entry(3);
    before.time = format_time(time_at(38));
    forger.put_entry(&before);
    last.time = format_time(time_at(39));
    last.previous = line_hash(&before.to_line());
    forger.put_last(&last);
    let until = format_time(time_at(100));
    log.database
        .write(|writing| writing.set_complete_until(&until, None))
        .expect("written");
    let far = CaseScope {
        to: time_at(100),
        ..sample_scope()
    };
    let (_, findings) = export_case(&mut log, &far, time_at(100));
    assert!(finding_ids(&findings.faults).contains(&"other-side-of-checkpoint"));
}

#[test]
fn missing_or_changed_robots_txt_is_detected() {
    let lenient = format!("robots/{}.txt", Hash::digest(&[LENIENT_ROBOTS]));
    let case = CaseFixture::new();
    assert!(
        case.files().contains_key(&lenient),
        "published in the window before the request"
    );
    assert!(
        !case
            .faults_after(|files| drop(files.remove(&lenient)))
            .is_empty()
    );
    assert!(
        !case
            .faults_after(|files| drop(files.insert(lenient.clone(), STRICT_ROBOTS.to_vec())))
            .is_empty()
    );
}

#[test]
fn publication_missing_at_the_beginning_is_detected() {
    let case = CaseFixture::new();
    let lenient = format!("robots/{}.txt", Hash::digest(&[LENIENT_ROBOTS]));
    let faults = case.faults_after(|files| {
        put_lines(
            files,
            "chains/site.jsonl",
            &file_lines(files, "chains/site.jsonl")[1..],
        );
        files.remove(&lenient);
    });
    assert_eq!(finding_ids(&faults), ["beginning-left-out"]);
    assert!(faults[0].message.contains("chains/site.jsonl"));
}

#[test]
fn copy_missing_at_the_beginning_is_detected() {
    let faults = CaseFixture::new()
        .faults_after(|files| put_lines(files, CRAWLER, &file_lines(files, CRAWLER)[1..]));
    // The personal values of the entry are those of none any more.
    assert_eq!(
        finding_ids(&faults),
        ["beginning-left-out", "personal-value"]
    );
    assert!(faults[0].message.contains(CRAWLER));
}

/// An earlier entry, or a checkpoint, shows that the entries of the span are complete.
#[test]
fn later_span_begins_with_an_earlier_entry() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let late = CaseScope {
        from: time_at(25),
        ..sample_scope()
    };
    let (archive, findings) = export_case(&mut log, &late, time_at(60));
    assert_eq!((findings.faults, findings.requests.len()), (Vec::new(), 2));
    let files = tar::read_archive(&archive).expect("files");
    let case = CaseFixture {
        _directory: directory,
        log,
        archive,
    };
    let all = file_lines(&files, CRAWLER);
    assert_eq!(all.len(), 4, "back to the copy that was served before");
    let lacks = |number: usize| {
        let faults = case.faults_after(|files| put_lines(files, CRAWLER, &all[number..]));
        finding_ids(&faults).contains(&"beginning-left-out")
    };
    // Entries from before the window may be missing, those of the window may not.
    assert_eq!([1, 2, 3].map(lacks), [false, true, true]);
}

#[test]
fn checkpoint_without_a_head_proof_is_detected() {
    let faults = CaseFixture::new().faults_after(|files| {
        let proofs = String::from_utf8_lossy(&files["checkpoints/000000.json"]).into_owned();
        let mut proofs: Vec<Value> = serde_json::from_str(&proofs).expect("JSON");
        proofs.retain(|proof| proof["chain"]["crawler"] != "gptbot");
        files.insert(
            "checkpoints/000000.json".into(),
            format!("{}\n", canonical_json(&Value::from(proofs))).into_bytes(),
        );
    });
    assert!(finding_ids(&faults).contains(&"checkpoint-without-proof"));
}

#[test]
fn missing_checkpoint_is_detected() {
    let faults = CaseFixture::new().faults_after(|files| {
        files.remove("checkpoints/000001.note");
        files.remove("checkpoints/000001.json");
    });
    assert!(!faults.is_empty(), "what the last checkpoint covered");
}

#[test]
fn violation_that_a_robots_txt_allows_is_a_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "gptbot"),
        request_entry(STRICT_ROBOTS, "/public", time_at(55)),
        time_at(55),
    );
    let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
    assert_eq!(
        findings.requests.last().map(|request| request.rejudged),
        Some("allowed")
    );
    assert_eq!(finding_ids(&findings.faults), ["allowed-violation"]);
}

#[test]
fn changed_report_is_detected_although_it_is_signed() {
    let case = CaseFixture::new();
    let edit = |files: &mut CaseFiles| {
        let page = String::from_utf8_lossy(&files["report.html"]).into_owned();
        let edited = page.replace("203.0.113.5", "203.0.113.6");
        files.insert("report.html".to_owned(), edited.into_bytes());
    };
    assert_eq!(finding_ids(&case.faults_after(edit)), ["page-differs"]);
    assert_eq!(
        finding_ids(&case.faults_after(|files| drop(files.remove("report.html")))),
        ["page-differs"]
    );
    // Another version may write another page.
    let older = case.resigned_files(|files| {
        edit(files);
        let about =
            String::from_utf8_lossy(&files["case.json"]).replace("crawlgate ", "crawlgate 0.");
        files.insert("case.json".to_owned(), about.into_bytes());
    });
    let log = case.verify_case(&tar::write_archive(&older)).logs.remove(0);
    assert_eq!(log.faults, Vec::<Finding>::new());
    assert!(finding_ids(&log.unknown).contains(&"page-of-other-version"));
}

#[test]
fn beginning_before_the_log_is_detected() {
    for (from, to) in [
        ("2020-01-01T00:00:00.000Z", format_time(time_at(60))),
        (
            "2020-01-01T00:00:00.000Z",
            "2020-01-02T00:00:00.000Z".to_owned(),
        ),
    ] {
        let faults = CaseFixture::new().faults_after(|files| {
            let about = String::from_utf8_lossy(&files["case.json"]).into_owned();
            let about = about.replace(&format_time(time_at(5)), from);
            let about = about.replace(&format_time(time_at(60)), &to);
            files.insert("case.json".to_owned(), about.into_bytes());
        });
        assert!(finding_ids(&faults).contains(&"begins-before-log"), "{to}");
    }
}

#[test]
fn time_before_the_log_is_no_case() {
    let mut case = CaseFixture::new();
    let before = CaseScope {
        from: time_at(0) - Duration::from_secs(7_200),
        to: time_at(0) - Duration::from_secs(3_600),
        ..sample_scope()
    };
    let logs = std::slice::from_mut(&mut case.log);
    let made = build_case(logs, Vec::new(), &before, time_at(60));
    assert!(matches!(made, Err(CaseError::NotCovered(_))));
}
