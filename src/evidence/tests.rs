//! A log that is written, exported and checked, and everything that somebody could change in a case.

use super::canonical::Hash;
use super::case::CaseSpan;
use super::commands::{forget, rotate_key, write_case};
use super::database::{Appended, EvidenceDatabase, ProofRecord, Record, Writing};
use super::entry::{ChainName, Entry, hash_of, time_text};
use super::examine::{examine, verify};
use super::findings::Findings;
use super::manifest;
use super::note::SigningKey;
use super::opening::{OpenLog, open, open_existing, write_runs};
use super::proofs::WrittenProofs;
use super::tar::{self, Files};
use super::{Bounds, Evidence};
use crate::settings::AddressDetail;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

const STRICT: &[u8] = b"User-agent: GPTBot\nDisallow: /private/\n\nUser-agent: *\nAllow: /\n";
const LENIENT: &[u8] = b"User-agent: *\nAllow: /\n";

fn moment(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000 + seconds)
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn published(file: &[u8]) -> Record {
    let hash = Hash::of(&[file]).to_string();
    let data = fields(json!({"version": hash[..16], "sha256": hash, "hosts": ["shop.example"], "answer": 200}));
    Record { kind: "published", data, documents: vec![Arc::from(file)], ..Record::default() }
}

fn served(file: &[u8], at: SystemTime) -> Record {
    let hash = Hash::of(&[file]).to_string();
    let data = fields(json!({
        "arrived": time_text(at), "host": "shop.example", "status": 200, "version": hash[..16], "sha256": hash,
        "identity": "verified", "proof": "list", "if_none_match": "\"0123456789abcdef\"",
    }));
    Record {
        kind: "served",
        data,
        personal: vec![("client", "203.0.113.5".into())],
        documents: vec![Arc::from(file)],
        proof: None,
    }
}

fn request(file: &[u8], target: &str, at: SystemTime) -> Record {
    let hash = Hash::of(&[file]).to_string();
    let data = fields(json!({
        "arrived": time_text(at), "host": "shop.example", "method": "GET", "kind": "violation", "status": 403,
        "version": hash[..16], "sha256": hash, "held_sha256": [], "tokens": ["GPTBot"], "binds": "star",
        "identity": "verified", "proof": "list", "rule": "Disallow: /private/", "action": "block",
    }));
    let personal = vec![("client", "203.0.113.5".to_owned()), ("target", target.to_owned())];
    Record { kind: "request", data, personal, documents: Vec::new(), proof: None }
}

fn append(log: &mut OpenLog, chain: &ChainName, record: Record, at: SystemTime) {
    log.database.write(|writing| writing.append(chain, record, &time_text(at))).expect("appended");
}

fn checkpoint(log: &mut OpenLog, at: SystemTime) {
    let OpenLog { database, key, .. } = log;
    database.write(|writing| writing.checkpoint(key, &time_text(at))).expect("a checkpoint");
}

const LIST: &[u8] = br#"{"prefixes": [{"ipv4Prefix": "203.0.113.0/24"}]}"#;

/// That the client of [`request`] is in a published list.
fn proof() -> ProofRecord {
    let hash = Hash::of(&[LIST]).to_string();
    let list =
        json!({"source": "https://lists.example/gptbot.json", "sha256": hash, "checked": "2026-11-18T11:06:40Z"});
    let data = fields(json!({"identity": "verified", "means": "list", "address": "whole", "lists": [list]}));
    ProofRecord { data, personal: vec![("client", "203.0.113.5".into())], documents: vec![Arc::from(LIST)] }
}

/// Appends a request with its proof.
fn append_proven(log: &mut OpenLog, proofs: &mut WrittenProofs, proof: ProofRecord, at: SystemTime) {
    let chain = ChainName::of_crawler("shop", "gptbot");
    let mut record = request(STRICT, "/private/proven", at);
    let write = |writing: &Writing<'_>| {
        let Appended { number, hash } = proofs.write(writing, &chain, proof, &time_text(at))?;
        record.data.insert("proof_entry".into(), json!({"number": number, "sha256": hash.to_string()}));
        writing.append(&chain, record, &time_text(at))
    };
    log.database.write(write).expect("appended");
}

/// A log in which a crawler breaks a rule that it was served, three times, with a checkpoint before the last one.
fn log(directory: &Path) -> OpenLog {
    let mut log = open(directory, moment(0)).expect("a log");
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append(&mut log, &ChainName::of_log(), Record { kind: "start", ..Record::default() }, moment(1));
    append(&mut log, &ChainName::of_site("shop"), published(LENIENT), moment(2));
    append(&mut log, &ChainName::of_crawler("shop", "other"), served(LENIENT, moment(3)), moment(3));
    append(&mut log, &ChainName::of_site("shop"), published(STRICT), moment(4));
    append(&mut log, &gptbot, served(STRICT, moment(10)), moment(10));
    append(&mut log, &gptbot, request(STRICT, "/private/a", moment(20)), moment(20));
    append(&mut log, &gptbot, request(STRICT, "/private/b", moment(30)), moment(30));
    checkpoint(&mut log, moment(40));
    append(&mut log, &gptbot, request(STRICT, "/private/c", moment(50)), moment(50));
    log
}

fn span() -> CaseSpan {
    CaseSpan { site: "shop".into(), crawler: "gptbot".into(), from: moment(5), to: moment(60) }
}

/// A case with the log that it is of.
struct Case {
    _directory: tempfile::TempDir,
    log: OpenLog,
    archive: Vec<u8>,
}

impl Case {
    fn new() -> Case {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path());
        let (archive, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
        assert_eq!(findings.faults, Vec::<String>::new());
        Case { _directory: directory, log, archive }
    }

    fn verify(&self, archive: &[u8]) -> Findings {
        verify(archive, &self.log.key.verify_key())
    }

    /// What the check finds when the files are changed and the manifest is signed anew: by the operator, who has the key.
    fn forged(&self, change: impl FnOnce(&mut Files)) -> Vec<String> {
        let mut files = tar::read(&self.archive).expect("files");
        change(&mut files);
        files.remove(manifest::FILE);
        manifest::add(&mut files, &self.log.key);
        self.verify(&tar::write(&files)).faults
    }
}

fn lines(files: &Files, path: &str) -> Vec<String> {
    String::from_utf8_lossy(&files[path]).lines().map(str::to_owned).collect()
}

fn put(files: &mut Files, path: &str, lines: &[String]) {
    files.insert(path.to_owned(), lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes());
}

/// The same entries in another form, each with the hash of the one before it again.
fn relinked(lines: &[String], mut change: impl FnMut(usize, &mut Entry)) -> Vec<String> {
    let (mut previous, mut relinked): (Option<Hash>, Vec<String>) = (None, Vec::new());
    for (place, line) in lines.iter().enumerate() {
        let mut entry = Entry::read(line).expect("an entry");
        change(place, &mut entry);
        entry.previous = previous.unwrap_or(entry.previous);
        previous = Some(hash_of(&entry.line()));
        relinked.push(entry.line());
    }
    relinked
}

const CRAWLER: &str = "chains/crawler.jsonl";

#[test]
fn a_case_says_who_broke_which_rule_that_it_had_fetched() {
    let case = Case::new();
    let findings = case.verify(&case.archive);
    assert_eq!(findings.faults, Vec::<String>::new());
    assert_eq!(findings.requests.len(), 3);
    for request in &findings.requests {
        assert_eq!(request.rejudged, "disallowed");
        assert_eq!(request.served_at.as_deref(), Some(time_text(moment(10)).as_str()));
        assert!(request.remark.as_deref().is_some_and(|remark| remark.contains("published since")), "{request:?}");
    }
    assert_eq!(findings.served[0].if_none_match.as_deref(), Some("\"0123456789abcdef\""));
    assert_eq!(findings.published.len(), 2);
    let files = tar::read(&case.archive).expect("files");
    assert!(!String::from_utf8_lossy(&files["checkpoints/000000.json"]).contains("other"), "another crawler is shown");
    assert!(String::from_utf8_lossy(&files["report.html"]).contains("/private/a"));
}

#[test]
fn a_case_is_that_of_its_own_key_alone() {
    let (case, other) = (Case::new(), Case::new());
    assert!(!verify(&case.archive, &other.log.key.verify_key()).faults.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn each_changed_octet_of_a_case_is_noticed(place in any::<prop::sample::Index>(), change in 1u8..=255) {
        static CASE: LazyLock<(Vec<u8>, super::VerifyKey)> = LazyLock::new(|| {
            let case = Case::new();
            (case.archive.clone(), case.log.key.verify_key())
        });
        let (archive, key) = &*CASE;
        let mut changed = archive.clone();
        let place = place.index(changed.len());
        changed[place] ^= change;
        prop_assert!(!verify(&changed, key).faults.is_empty(), "octet {}", place);
    }
}

/// Without the manifest: the chains, proofs and hashes notice each octet that says anything themselves.
#[test]
fn each_changed_octet_of_a_covered_file_is_noticed_without_the_manifest() {
    let case = Case::new();
    let (files, key) = (tar::read(&case.archive).expect("files"), case.log.key.verify_key());
    for (path, bytes) in
        files.iter().filter(|(path, _)| !["report.html", "manifest.txt", "case.json"].contains(&path.as_str()))
    {
        for place in (0..bytes.len()).step_by(7) {
            let mut changed = files.clone();
            changed.get_mut(path).expect("the file")[place] ^= 1;
            assert!(!examine(&changed, &key).faults.is_empty(), "{path}: octet {place}");
        }
    }
}

#[test]
fn a_shortened_chain_is_noticed() {
    let faults = Case::new().forged(|files| {
        let all = lines(files, CRAWLER);
        put(files, CRAWLER, &all[..all.len() - 1]);
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_removed_entry_is_noticed_though_all_others_are_linked_anew() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.remove(1);
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn an_added_entry_is_noticed() {
    let faults = Case::new().forged(|files| {
        let mut all = lines(files, CRAWLER);
        all.push(all[all.len() - 1].clone());
        let relinked = relinked(&all, |place, entry| entry.number = place as u64);
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_changed_entry_is_noticed_by_the_checkpoints() {
    let faults = Case::new().forged(|files| {
        let all = lines(files, CRAWLER);
        let relinked = relinked(&all, |place, entry| {
            if place == 1 {
                entry.data.insert("identity".into(), "impostor".into());
            }
        });
        put(files, CRAWLER, &relinked);
    });
    assert!(!faults.is_empty());
}

#[test]
fn an_entry_dated_before_a_checkpoint_that_does_not_cover_it_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    // The holder of the key writes an entry by hand, with a time from before the checkpoint.
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append(&mut log, &gptbot, request(STRICT, "/private/d", moment(35)), moment(55));
    let connection = rusqlite::Connection::open(directory.path().join("evidence.db")).expect("the file");
    let (id, number, line): (i64, i64, String) = connection
        .query_row(
            "SELECT chain, number, line FROM entries WHERE kind = 'request' ORDER BY number DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .expect("the entry");
    let mut entry = Entry::read(&line).expect("an entry");
    entry.time = time_text(moment(50));
    let as_if = entry.line();
    let head = hash_of(&as_if);
    connection
        .execute("UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3", (&as_if, id, number))
        .expect("forged");
    connection.execute("UPDATE chains SET head = ?1 WHERE id = ?2", (head.0.as_slice(), id)).expect("forged");
    let (_, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
    assert!(findings.faults.is_empty(), "later than the checkpoint, it cannot be told: {:?}", findings.faults);
    entry.time = time_text(moment(39));
    let last = |connection: &rusqlite::Connection, entry: &Entry| {
        connection
            .execute("UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3", (entry.line(), id, number))
            .expect("forged");
        connection
            .execute("UPDATE chains SET head = ?1 WHERE id = ?2", (hash_of(&entry.line()).0.as_slice(), id))
            .expect("forged");
    };
    last(&connection, &entry);
    // Before it, an entry of 50 stands; the forger dates that one back too.
    let before: String = connection
        .query_row("SELECT line FROM entries WHERE chain = ?1 AND number = ?2", (id, number - 1), |row| row.get(0))
        .expect("the entry before");
    let mut before = Entry::read(&before).expect("an entry");
    before.time = time_text(moment(38));
    entry.previous = hash_of(&before.line());
    connection
        .execute("UPDATE entries SET line = ?1 WHERE chain = ?2 AND number = ?3", (before.line(), id, number - 1))
        .expect("forged");
    last(&connection, &entry);
    let far = CaseSpan { to: moment(100), ..span() };
    let (_, findings) = write_case(&mut log, &far, moment(100)).expect("a case");
    assert!(findings.faults.iter().any(|fault| fault.contains("other side of a checkpoint")), "{:?}", findings.faults);
}

#[test]
fn a_robots_txt_that_is_left_out_or_changed_is_noticed() {
    let lenient = format!("robots/{}.txt", Hash::of(&[LENIENT]));
    let case = Case::new();
    assert!(
        tar::read(&case.archive).expect("files").contains_key(&lenient),
        "published in the window before the request"
    );
    assert!(!case.forged(|files| drop(files.remove(&lenient))).is_empty());
    assert!(!case.forged(|files| drop(files.insert(lenient.clone(), STRICT.to_vec()))).is_empty());
}

#[test]
fn a_checkpoint_that_is_left_out_is_noticed() {
    let faults = Case::new().forged(|files| {
        files.remove("checkpoints/000001.note");
        files.remove("checkpoints/000001.json");
    });
    assert!(!faults.is_empty());
}

#[test]
fn a_violation_that_a_robots_txt_of_the_case_allows_is_a_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    append(&mut log, &ChainName::of_crawler("shop", "gptbot"), request(STRICT, "/public", moment(55)), moment(55));
    let (_, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
    assert_eq!(findings.requests.last().map(|request| request.rejudged), Some("allowed"));
    assert_eq!(findings.faults.len(), 1, "{:?}", findings.faults);
}

#[test]
fn a_proof_is_written_once_and_checked_with_the_requests_that_name_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut log, mut proofs) = (log(directory.path()), WrittenProofs::default());
    append_proven(&mut log, &mut proofs, proof(), moment(51));
    append_proven(&mut log, &mut proofs, proof(), moment(52));
    // The span begins after the proof, and with a copy of robots.txt, so that it does not reach back to the proof.
    append(&mut log, &ChainName::of_crawler("shop", "gptbot"), served(STRICT, moment(53)), moment(53));
    append_proven(&mut log, &mut proofs, proof(), moment(54));
    let all = write_case(&mut log, &span(), moment(60)).expect("a case").1;
    assert_eq!(all.faults, Vec::<String>::new());
    let proven: Vec<_> = all.requests.iter().filter_map(|request| request.proof_entry).collect();
    assert_eq!((proven.len(), all.proofs.len(), all.proofs[0].requests), (3, 1, 3));
    assert!(proven.iter().all(|entry| *entry == all.proofs[0].number));
    assert!(all.proofs[0].says[0].contains("203.0.113.0/24"), "{:?}", all.proofs);

    let late = CaseSpan { from: moment(53), ..span() };
    let (archive, findings) = write_case(&mut log, &late, moment(60)).expect("a case");
    assert_eq!((findings.faults.len(), findings.proofs[0].requests), (0, 1), "{:?}", findings.faults);
    let files = tar::read(&archive).expect("files");
    assert_eq!(lines(&files, "proofs.jsonl").len(), 1);
    assert_eq!(files[&format!("lists/{}", Hash::of(&[LIST]))], LIST);
    let page = String::from_utf8_lossy(&files["report.html"]).into_owned();
    assert!(page.contains("the address is in the network 203.0.113.0/24"), "{page}");
    let case = Case { _directory: directory, log, archive };
    assert!(!case.forged(|files| drop(files.remove(&format!("lists/{}", Hash::of(&[LIST]))))).is_empty());
    let forged = case.forged(|files| {
        let mut all = lines(files, "proofs.jsonl");
        all[0] = all[0].replace("verified", "impostor");
        put(files, "proofs.jsonl", &all);
    });
    assert!(!forged.is_empty());
}

#[test]
fn a_proof_that_its_list_or_signature_does_not_bear_is_a_fault() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let base = "\"@authority\": shop.example";
    let key = URL_SAFE_NO_PAD.encode(pair.public_key());
    let directory: Arc<[u8]> = Arc::from(format!("{{\"keys\": [{{\"x\": \"{key}\"}}]}}").as_bytes());
    let signed = |signature: &[u8]| ProofRecord {
        data: fields(json!({
            "identity": "verified", "means": "signature", "key": key, "signature": URL_SAFE_NO_PAD.encode(signature),
            "lists": [{"source": "https://agent.example", "sha256": Hash::of(&[&directory]).to_string()}],
        })),
        personal: vec![("signature_base", base.to_owned())],
        documents: vec![directory.clone()],
    };
    let elsewhere = ProofRecord { personal: vec![("client", "198.51.100.1".into())], ..proof() };
    let good = pair.sign(base.as_bytes());
    let wrong = pair.sign(b"another text");
    for (record, holds) in [(elsewhere, false), (signed(good.as_ref()), true), (signed(wrong.as_ref()), false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path());
        append_proven(&mut log, &mut WrittenProofs::default(), record, moment(51));
        let (_, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
        assert_eq!(findings.faults.is_empty(), holds, "{:?}", findings.faults);
    }
}

#[test]
fn withdrawn_values_leave_a_chain_that_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let address = "203.0.113.5".parse().ok();
    assert_eq!(forget(&mut log, address, None, moment(55)).expect("forgotten"), 8);
    let (archive, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
    assert_eq!(findings.faults, Vec::<String>::new());
    assert_eq!(findings.withdrawn, 7);
    assert!(findings.requests.iter().all(|request| request.rejudged == "not judged" && request.target.is_none()));
    assert!(!archive.windows(11).any(|octets| octets == b"203.0.113.5"));
    let on_disk = std::fs::read(directory.path().join("evidence.db")).expect("the file");
    assert!(!on_disk.windows(11).any(|octets| octets == b"203.0.113.5"));
}

#[test]
fn what_is_too_old_is_deleted_and_the_rest_verifies() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    log.database.write(|writing| writing.prune(&time_text(moment(25)))).expect("pruned");
    let (_, findings) = write_case(&mut log, &span(), moment(60)).expect("a case");
    assert_eq!(findings.faults, Vec::<String>::new());
    assert_eq!(findings.requests.len(), 2);
    // What is still published stays.
    assert_eq!(findings.published.len(), 1);
}

#[test]
fn a_log_with_a_new_key_is_checked_by_the_old_and_the_new_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = log(directory.path());
    let first = log.key.verify_key();
    let second = rotate_key(directory.path(), &mut log, moment(52)).expect("a new key");
    append(&mut log, &ChainName::of_crawler("shop", "gptbot"), request(STRICT, "/private/d", moment(55)), moment(55));
    drop(log);
    // A crash may leave the new key beside the old one, after the database names it.
    let file = |name: &str| directory.path().join(name);
    std::fs::rename(file("evidence.key"), file("evidence.key.new")).expect("renamed");
    let mut log = open(directory.path(), moment(56)).expect("the log");
    assert_eq!((log.begun_anew, log.key.verify_key()), (None, second.clone()));
    let (archive, _) = write_case(&mut log, &span(), moment(60)).expect("a case");
    for key in [&first, &second] {
        let findings = verify(&archive, key);
        assert_eq!((findings.faults, findings.requests.len()), (Vec::new(), 4));
    }
    // The old key signs no checkpoint after its time.
    let old = SigningKey::parse(&log.key.line()).expect("a key").successor().expect("a key");
    let mut files = tar::read(&archive).expect("files");
    let name = files.keys().rfind(|file| file.ends_with(".note") && file.starts_with("checkpoints/")).cloned();
    let note = files.get_mut(&name.expect("a checkpoint")).expect("the file");
    let text = second.open(std::str::from_utf8(note).expect("text")).expect("signed").to_owned();
    *note = old.sign(&text).into_bytes();
    assert!(!examine(&files, &first).faults.is_empty());
}

#[test]
fn an_older_copy_of_the_database_begins_a_new_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = open(directory.path(), moment(0)).expect("a log");
    let id = first.state.id.clone();
    drop(first);
    write_runs(directory.path(), 3).expect("written");
    let again = open(directory.path(), moment(1)).expect("a log");
    assert!(again.begun_anew.is_some() && again.state.id != id);
    drop(again);
    std::fs::remove_file(directory.path().join("evidence.key")).expect("removed");
    assert!(open(directory.path(), moment(2)).expect("a log").begun_anew.is_some());
}

#[test]
fn a_run_is_recorded_from_its_start_to_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = Bounds { keep: Duration::from_secs(86_400), octets: 1 << 30 };
    for _ in 0..2 {
        let evidence = Evidence::open(directory.path(), bounds, AddressDetail::Full, &[]);
        let now = SystemTime::now();
        evidence.published("shop", published(STRICT));
        evidence.record("shop", "gptbot", now, || served(STRICT, now));
        evidence.record("shop", "gptbot", now, || request(STRICT, "/private/x", now));
        evidence.close();
        assert_eq!((evidence.entries(), evidence.lost(), evidence.problem()), (3, 0, None));
    }
    let mut log = open_existing(directory.path()).expect("the log");
    assert!(log.state.clean && log.state.runs == 2);
    let from = SystemTime::now() - Duration::from_secs(3_600);
    let span = CaseSpan { from, to: SystemTime::now(), ..span() };
    let (_, findings) = write_case(&mut log, &span, SystemTime::now()).expect("a case");
    assert_eq!((findings.faults.len(), findings.requests.len()), (0, 2), "{:?}", findings.faults);
    assert!(findings.unknown.iter().any(|gap| gap.contains("was stopped")));
}

#[test]
fn a_log_that_cannot_be_opened_is_a_problem_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let bounds = Bounds { keep: Duration::from_secs(86_400), octets: 1 << 30 };
    let evidence = Evidence::open(&directory.path().join("missing"), bounds, AddressDetail::Full, &[]);
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, || served(STRICT, now));
    assert_eq!(evidence.lost(), 1);
    assert!(evidence.problem().is_some());
    evidence.close();
}

#[test]
fn a_log_that_is_full_says_how_many_entries_it_lacks() {
    let directory = tempfile::tempdir().expect("a directory");
    let keep = Duration::from_secs(86_400);
    let evidence = Evidence::open(directory.path(), Bounds { keep, octets: 1 }, AddressDetail::Full, &[]);
    let now = SystemTime::now();
    evidence.record("shop", "gptbot", now, || served(STRICT, now));
    evidence.close();
    assert_eq!(evidence.lost(), 1);
    assert!(evidence.problem().is_some());
    let database = EvidenceDatabase::open(directory.path(), false).expect("the log");
    assert_eq!(database.chain(&ChainName::of_crawler("shop", "gptbot")).expect("read"), None);
}
