//! Tests of the evidence log, and of cases (excerpts of the log as one file): they write a log,
//! export a case, check it, and find changes to it. This file has the shared fixtures.

use super::Hash;
use super::commands::rotate_key;
use super::database::{NewEntry, WriteTransaction};
use super::entry::{ChainName, EntryRef, format_time};
use super::findings::{CaseFindings, LogFindings};
use super::manifest;
use super::opening::{OpenEvidenceLog, open_for_writing};
use super::proofs::WrittenProofs;
use super::tar::{self, CaseFiles};
use super::verify::verify_case;
use super::{CaseScope, build_case};
use crate::finding::{Finding, finding_ids};
use crate::record::RecordField;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod by_hand;
mod changed;
mod changed_bytes;
mod lifetime;
mod other_implementation;
mod proofs;
mod several;

const STRICT_ROBOTS: &[u8] =
    b"User-agent: GPTBot\nDisallow: /private/\n\nUser-agent: *\nAllow: /\n";
const LENIENT_ROBOTS: &[u8] = b"User-agent: *\nAllow: /\n";

fn time_at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000 + seconds)
}

fn json_object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn published_entry(file: &[u8]) -> NewEntry {
    let hash = Hash::digest(&[file]).to_string();
    let data = json_object(
        json!({"version": hash[..16], "sha256": hash, "hosts": ["shop.example"], "answer": 200}),
    );
    NewEntry {
        kind: "published",
        data,
        documents: vec![Arc::from(file)],
        ..NewEntry::default()
    }
}

fn served_entry(file: &[u8], at: SystemTime) -> NewEntry {
    let hash = Hash::digest(&[file]).to_string();
    let data = json_object(json!({
        "arrived": format_time(at), "host": "shop.example", "status": 200, "version": hash[..16], "sha256": hash,
        "identity": "verified", "proof": "list", "if_none_match": "\"0123456789abcdef\"",
    }));
    NewEntry {
        kind: "served",
        data,
        personal: vec![("client", "203.0.113.5".into())],
        documents: vec![Arc::from(file)],
        proof: None,
    }
}

fn request_entry(file: &[u8], target: &str, at: SystemTime) -> NewEntry {
    let hash = Hash::digest(&[file]).to_string();
    let data = json_object(json!({
        "arrived": format_time(at), "host": "shop.example", "method": "GET", "kind": "violation", "status": 403,
        "version": hash[..16], "sha256": hash, "cached_sha256": [], "tokens": ["GPTBot"], "binds": "star",
        "identity": "verified", "proof": "list", "rule": "Disallow: /private/", "action": "block",
    }));
    let personal = vec![
        ("client", "203.0.113.5".to_owned()),
        ("target", target.to_owned()),
    ];
    NewEntry {
        kind: "request",
        data,
        personal,
        documents: Vec::new(),
        proof: None,
    }
}

fn append_entry(log: &mut OpenEvidenceLog, chain: &ChainName, record: NewEntry, at: SystemTime) {
    log.database
        .write(|writing| writing.append(chain, record, &format_time(at)))
        .expect("appended");
}

fn add_checkpoint(log: &mut OpenEvidenceLog, at: SystemTime) {
    let OpenEvidenceLog { database, key, .. } = log;
    database
        .write(|writing| writing.create_checkpoint(key, &format_time(at)))
        .expect("a checkpoint");
}

const NETWORK_LIST: &[u8] = br#"{"prefixes": [{"ipv4Prefix": "203.0.113.0/24"}]}"#;

/// The client of [`request_entry`] is in a published list.
fn proof_by_list() -> NewEntry {
    let hash = Hash::digest(&[NETWORK_LIST]).to_string();
    let list = json!({"source": "https://lists.example/gptbot.json", "sha256": hash, "checked": "2026-11-18T11:06:40Z"});
    let data = json_object(
        json!({"identity": "verified", "means": "list", "address": "whole", "lists": [list]}),
    );
    NewEntry {
        kind: "proof",
        data,
        personal: vec![("client", "203.0.113.5".into())],
        documents: vec![Arc::from(NETWORK_LIST)],
        proof: None,
    }
}

/// Reverse DNS confirmed the client.
fn proof_by_dns() -> NewEntry {
    let dns = json!({"leads_back": true, "at": format_time(time_at(50))});
    let data = json_object(json!({"identity": "verified", "means": "reverse_dns", "dns": dns}));
    NewEntry {
        kind: "proof",
        data,
        personal: vec![("name", "crawl.example".into())],
        ..NewEntry::default()
    }
}

/// The signature base of a request.
const SIGNED_BASE: &str = "\"@authority\": shop.example";

/// A key of a directory signed this text.
fn proof_by_signature(text: &str) -> NewEntry {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let key = URL_SAFE_NO_PAD.encode(pair.public_key());
    let signature = URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes()));
    let directory: Arc<[u8]> =
        Arc::from(format!("{{\"keys\": [{{\"x\": \"{key}\"}}]}}").as_bytes());
    let lists = json!([{"source": "https://agent.example", "sha256": Hash::digest(&[&directory]).to_string()}]);
    let data = json!({"identity": "verified", "means": "signature", "key": key, "signature": signature, "lists": lists});
    NewEntry {
        kind: "proof",
        data: json_object(data),
        personal: vec![("signature_base", SIGNED_BASE.into())],
        documents: vec![directory],
        proof: None,
    }
}

/// Appends a request with its proof.
fn append_proven_request(
    log: &mut OpenEvidenceLog,
    proofs: &mut WrittenProofs,
    proof: NewEntry,
    at: SystemTime,
) {
    let chain = ChainName::of_crawler("shop", "gptbot");
    let mut record = request_entry(STRICT_ROBOTS, "/private/proven", at);
    let write = |writing: &WriteTransaction<'_>| {
        let EntryRef { number, hash } =
            proofs.write_once(writing, &chain, proof, &format_time(at))?;
        record.data.insert(
            "proof_entry".into(),
            json!({"number": number, "sha256": hash.to_string()}),
        );
        writing.append(&chain, record, &format_time(at))
    };
    log.database.write(write).expect("appended");
}

/// A log with three violations of a served robots.txt, and a checkpoint before the last one.
fn sample_log(directory: &Path) -> OpenEvidenceLog {
    let mut log = open_for_writing(directory, time_at(0)).expect("a log");
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append_entry(
        &mut log,
        &ChainName::of_log(),
        NewEntry {
            kind: "start",
            ..NewEntry::default()
        },
        time_at(1),
    );
    append_entry(
        &mut log,
        &ChainName::of_site("shop"),
        published_entry(LENIENT_ROBOTS),
        time_at(2),
    );
    append_entry(
        &mut log,
        &ChainName::of_crawler("shop", "other"),
        served_entry(LENIENT_ROBOTS, time_at(3)),
        time_at(3),
    );
    append_entry(
        &mut log,
        &ChainName::of_site("shop"),
        published_entry(STRICT_ROBOTS),
        time_at(4),
    );
    append_entry(
        &mut log,
        &gptbot,
        served_entry(STRICT_ROBOTS, time_at(10)),
        time_at(10),
    );
    append_entry(
        &mut log,
        &gptbot,
        request_entry(STRICT_ROBOTS, "/private/a", time_at(20)),
        time_at(20),
    );
    append_entry(
        &mut log,
        &gptbot,
        request_entry(STRICT_ROBOTS, "/private/b", time_at(30)),
        time_at(30),
    );
    add_checkpoint(&mut log, time_at(40));
    append_entry(
        &mut log,
        &gptbot,
        request_entry(STRICT_ROBOTS, "/private/c", time_at(50)),
        time_at(50),
    );
    log
}

fn sample_scope() -> CaseScope {
    CaseScope {
        site: "shop".into(),
        crawler: "gptbot".into(),
        from: time_at(5),
        to: time_at(60),
    }
}

/// A case of one log, with its findings.
fn export_case(
    log: &mut OpenEvidenceLog,
    span: &CaseScope,
    at: SystemTime,
) -> (Vec<u8>, LogFindings) {
    let (archive, mut findings) =
        build_case(std::slice::from_mut(log), Vec::new(), span, at).expect("a case");
    (archive, findings.logs.remove(0))
}

/// A case with its log.
struct CaseFixture {
    _directory: tempfile::TempDir,
    log: OpenEvidenceLog,
    archive: Vec<u8>,
}

impl CaseFixture {
    fn new() -> CaseFixture {
        let directory = tempfile::tempdir().expect("a directory");
        let log = sample_log(directory.path());
        CaseFixture::export(directory, log, &sample_scope())
    }

    /// A case with one request, and its proof from before the span.
    fn one_request() -> CaseFixture {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = open_for_writing(directory.path(), time_at(0)).expect("a log");
        let mut proofs = WrittenProofs::default();
        append_entry(
            &mut log,
            &ChainName::of_site("shop"),
            published_entry(STRICT_ROBOTS),
            time_at(4),
        );
        append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(5));
        append_entry(
            &mut log,
            &ChainName::of_crawler("shop", "gptbot"),
            served_entry(STRICT_ROBOTS, time_at(10)),
            time_at(10),
        );
        append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(20));
        CaseFixture::export(
            directory,
            log,
            &CaseScope {
                from: time_at(15),
                ..sample_scope()
            },
        )
    }

    /// A case with proofs in its span and before it, and two keys.
    fn with_everything() -> CaseFixture {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = sample_log(directory.path());
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        let mut proofs = WrittenProofs::default();
        append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(51));
        append_entry(
            &mut log,
            &gptbot,
            served_entry(STRICT_ROBOTS, time_at(52)),
            time_at(52),
        );
        append_proven_request(&mut log, &mut proofs, proof_by_list(), time_at(53));
        append_proven_request(&mut log, &mut proofs, proof_by_dns(), time_at(54));
        append_proven_request(
            &mut log,
            &mut proofs,
            proof_by_signature(SIGNED_BASE),
            time_at(54),
        );
        rotate_key(directory.path(), &mut log, time_at(55)).expect("a new key");
        append_entry(
            &mut log,
            &gptbot,
            request_entry(STRICT_ROBOTS, "/private/d", time_at(56)),
            time_at(56),
        );
        CaseFixture::export(
            directory,
            log,
            &CaseScope {
                from: time_at(52),
                ..sample_scope()
            },
        )
    }

    fn export(
        directory: tempfile::TempDir,
        mut log: OpenEvidenceLog,
        span: &CaseScope,
    ) -> CaseFixture {
        let (archive, findings) = export_case(&mut log, span, time_at(60));
        assert_eq!(findings.faults, Vec::<Finding>::new());
        CaseFixture {
            _directory: directory,
            log,
            archive,
        }
    }

    fn verify_case(&self, archive: &[u8]) -> CaseFindings {
        verify_case(archive, &[self.log.key.verify_key()])
    }

    fn files(&self) -> CaseFiles {
        tar::read_archive(&self.archive).expect("files")
    }

    /// The changed files, with a new manifest that is signed by the key.
    fn resigned_files(&self, change: impl FnOnce(&mut CaseFiles)) -> CaseFiles {
        let mut files = self.files();
        change(&mut files);
        files.remove(manifest::MANIFEST_FILE);
        manifest::add_manifest(&mut files, &self.log.key);
        files
    }

    /// The faults of the changed and newly signed case.
    fn faults_after(&self, change: impl FnOnce(&mut CaseFiles)) -> Vec<Finding> {
        self.verify_case(&tar::write_archive(&self.resigned_files(change)))
            .faults
    }
}

fn file_lines(files: &CaseFiles, path: &str) -> Vec<String> {
    String::from_utf8_lossy(&files[path])
        .lines()
        .map(str::to_owned)
        .collect()
}

fn put_lines(files: &mut CaseFiles, path: &str, lines: &[String]) {
    files.insert(
        path.to_owned(),
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
            .into_bytes(),
    );
}

#[test]
fn case_has_violations_after_served_robots_txt() {
    let case = CaseFixture::new();
    let findings = case.verify_case(&case.archive).logs.remove(0);
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.requests.len(), 3);
    for request in &findings.requests {
        assert_eq!(request.rejudged, "disallowed");
        assert_eq!(
            request.served_at.as_deref(),
            Some(format_time(time_at(10)).as_str())
        );
        assert_eq!(request.served_to.as_deref(), Some("203.0.113.5"));
        let strict = Hash::digest(&[STRICT_ROBOTS]);
        let line = format!("robots/{strict}.txt line 2");
        assert_eq!(request.rule_in_case, Some(line));
        let lenient = Hash::digest(&[LENIENT_ROBOTS]).to_string();
        assert!(
            request
                .remark
                .as_deref()
                .is_some_and(|remark| remark.contains(&lenient)),
            "{request:?}"
        );
    }
    assert_eq!(
        findings.served[0].if_none_match.as_deref(),
        Some("\"0123456789abcdef\"")
    );
    assert_eq!(findings.published.len(), 2);
    let files = case.files();
    assert!(
        !String::from_utf8_lossy(&files["checkpoints/000000.json"]).contains("other"),
        "another crawler is shown"
    );
    assert!(String::from_utf8_lossy(&files["report.html"]).contains("/private/a"));
}

#[test]
fn pause_is_published_from_its_own_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    for (answer, second) in [(503, 51), (200, 55)] {
        let mut entry = published_entry(STRICT_ROBOTS);
        let since = format_time(time_at(4));
        entry.data.insert("since".into(), since.into());
        entry.data.insert("answer".into(), answer.into());
        append_entry(
            &mut log,
            &ChainName::of_site("shop"),
            entry,
            time_at(second),
        );
    }
    let (_, findings) = export_case(&mut log, &sample_scope(), time_at(60));
    let published = findings.published.into_iter();
    assert_eq!(
        published.map(|one| one.since).collect::<Vec<_>>(),
        [2, 4, 51, 55].map(|second| format_time(time_at(second)))
    );
}

#[test]
fn case_is_rejected_under_another_key() {
    let case = CaseFixture::new();
    let other = CaseFixture::new();
    assert!(finding_ids(&other.verify_case(&case.archive).faults).contains(&"other-log"));
}

#[test]
fn declared_file_is_in_the_findings() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = sample_log(directory.path());
    let before = b"User-agent: *\nDisallow: /\n";
    let hash = Hash::digest(&[before]);
    let mut request = request_entry(STRICT_ROBOTS, "/private/d", time_at(51));
    request.data.insert("history".into(), "declared".into());
    let cached = json!([hash, Hash::digest(&[LENIENT_ROBOTS])]);
    request.data.insert("cached_sha256".into(), cached);
    request.data.insert("kind".into(), "unproven".into());
    request.documents = vec![Arc::from(before.as_slice())];
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append_entry(&mut log, &gptbot, request, time_at(51));
    let case = CaseFixture::export(directory, log, &sample_scope());
    let findings = case.verify_case(&case.archive);
    assert_eq!(findings.logs[0].declared, [hash]);
    let page = String::from_utf8_lossy(&case.files()["report.html"]).into_owned();
    assert!(page.contains(&hash.to_string()));
}

#[test]
fn file_that_was_answered_with_503_allows_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open_for_writing(directory.path(), time_at(0)).expect("a log");
    let mut unavailable = published_entry(LENIENT_ROBOTS);
    unavailable.data.insert("answer".into(), 503.into());
    let site = ChainName::of_site("shop");
    append_entry(&mut log, &site, unavailable, time_at(2));
    append_entry(&mut log, &site, published_entry(STRICT_ROBOTS), time_at(4));
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    let request = request_entry(STRICT_ROBOTS, "/private/a", time_at(20));
    append_entry(&mut log, &gptbot, request, time_at(20));
    let mut declared = request_entry(LENIENT_ROBOTS, "/private/b", time_at(21));
    declared.data.insert("history".into(), "declared".into());
    declared.data.insert("kind".into(), "unproven".into());
    append_entry(&mut log, &gptbot, declared, time_at(21));
    let case = CaseFixture::export(directory, log, &sample_scope());
    let findings = case.verify_case(&case.archive).logs.remove(0);
    assert!(findings.declared.is_empty(), "{:?}", findings.declared);
    assert_eq!(findings.requests[0].rejudged, "disallowed");
    assert_eq!(findings.requests[0].remark, None);
    assert_eq!(findings.published.len(), 2);
    let page = String::from_utf8_lossy(&case.files()["report.html"]).into_owned();
    assert_eq!(
        page.matches("503 (try again later), without a file")
            .count(),
        1,
        "{page}"
    );
}

#[test]
fn copy_without_an_address_may_be_that_of_the_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = open_for_writing(directory.path(), time_at(0)).expect("a log");
    let site = ChainName::of_site("shop");
    append_entry(&mut log, &site, published_entry(STRICT_ROBOTS), time_at(4));
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    let mut unknown = served_entry(STRICT_ROBOTS, time_at(10));
    unknown.personal.clear();
    append_entry(&mut log, &gptbot, unknown, time_at(10));
    let mut other = served_entry(STRICT_ROBOTS, time_at(11));
    other.personal = vec![("client", "203.0.113.9".into())];
    append_entry(&mut log, &gptbot, other, time_at(11));
    let request = request_entry(STRICT_ROBOTS, "/private/a", time_at(20));
    append_entry(&mut log, &gptbot, request, time_at(20));
    let case = CaseFixture::export(directory, log, &sample_scope());
    let findings = case.verify_case(&case.archive).logs.remove(0);
    let served = findings.requests[0].served_at.as_deref();
    assert_eq!(served, Some(format_time(time_at(10)).as_str()));
    let page = String::from_utf8_lossy(&case.files()["report.html"]).into_owned();
    let part = "and it is not known whether the address had been sent this robots.txt";
    assert!(page.contains(part), "{page}");
}

#[test]
fn word_of_the_operator_is_reported() {
    let unknown = |field: &str, value: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        let mut log = sample_log(directory.path());
        let mut declared = request_entry(STRICT_ROBOTS, "/private/d", time_at(51));
        declared.data.insert(field.into(), value.into());
        append_entry(&mut log, &gptbot, declared, time_at(51));
        let findings = CaseFixture::export(directory, log, &sample_scope());
        let findings = findings.verify_case(&findings.archive).logs.remove(0);
        let rests_on_it = finding_ids(&findings.unknown).contains(&"word-of-operator");
        let request = findings.requests.last().expect("the request");
        (
            request
                .field_text_or_empty(RecordField::History)
                .into_owned(),
            rests_on_it,
        )
    };
    assert_eq!(unknown("history", "observed"), ("observed".into(), false));
    assert_eq!(unknown("history", "declared"), ("declared".into(), true));
    assert_eq!(unknown("proof", "networks"), (String::new(), true));
}
