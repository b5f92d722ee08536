//! Tests of the evidence log and of cases, which are excerpts of the log as one file: a log is
//! written, a case is exported and checked, and changes to it are found. This file has what the
//! tests share.

use super::Hash;
use super::commands::rotate_key;
use super::database::{Appended, Record, Writing};
use super::entry::{ChainName, time_text};
use super::findings::{CaseFindings, Findings};
use super::manifest;
use super::opening::{OpenLog, open};
use super::proofs::WrittenProofs;
use super::tar::{self, Files};
use super::verify::verify;
use super::{CaseSpan, write_case};
use crate::finding::{Finding, ids};
use crate::record::Field;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

mod by_hand;
mod changed;
mod lives;
mod octets;
mod other_implementation;
mod proofs;
mod several;

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
    let data = fields(
        json!({"version": hash[..16], "sha256": hash, "hosts": ["shop.example"], "answer": 200}),
    );
    Record {
        kind: "published",
        data,
        documents: vec![Arc::from(file)],
        ..Record::default()
    }
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
    let personal = vec![
        ("client", "203.0.113.5".to_owned()),
        ("target", target.to_owned()),
    ];
    Record {
        kind: "request",
        data,
        personal,
        documents: Vec::new(),
        proof: None,
    }
}

fn append(log: &mut OpenLog, chain: &ChainName, record: Record, at: SystemTime) {
    log.database
        .write(|writing| writing.append(chain, record, &time_text(at)))
        .expect("appended");
}

fn checkpoint(log: &mut OpenLog, at: SystemTime) {
    let OpenLog { database, key, .. } = log;
    database
        .write(|writing| writing.checkpoint(key, &time_text(at)))
        .expect("a checkpoint");
}

const LIST: &[u8] = br#"{"prefixes": [{"ipv4Prefix": "203.0.113.0/24"}]}"#;

/// That the client of [`request`] is in a published list.
fn proof() -> Record {
    let hash = Hash::of(&[LIST]).to_string();
    let list = json!({"source": "https://lists.example/gptbot.json", "sha256": hash, "checked": "2026-11-18T11:06:40Z"});
    let data = fields(
        json!({"identity": "verified", "means": "list", "address": "whole", "lists": [list]}),
    );
    Record {
        kind: "proof",
        data,
        personal: vec![("client", "203.0.113.5".into())],
        documents: vec![Arc::from(LIST)],
        proof: None,
    }
}

/// That reverse DNS led to the crawler and back.
fn proof_by_dns() -> Record {
    let dns = json!({"leads_back": true, "at": time_text(moment(50))});
    let data = fields(json!({"identity": "verified", "means": "reverse_dns", "dns": dns}));
    Record {
        kind: "proof",
        data,
        personal: vec![("name", "crawl.example".into())],
        ..Record::default()
    }
}

/// What a request signed.
const SIGNED: &str = "\"@authority\": shop.example";

/// That a key of a directory signed the request. It signed this text.
fn proof_by_signature(text: &str) -> Record {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key");
    let key = URL_SAFE_NO_PAD.encode(pair.public_key());
    let signature = URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes()));
    let directory: Arc<[u8]> =
        Arc::from(format!("{{\"keys\": [{{\"x\": \"{key}\"}}]}}").as_bytes());
    let lists =
        json!([{"source": "https://agent.example", "sha256": Hash::of(&[&directory]).to_string()}]);
    let data = json!({"identity": "verified", "means": "signature", "key": key, "signature": signature, "lists": lists});
    Record {
        kind: "proof",
        data: fields(data),
        personal: vec![("signature_base", SIGNED.into())],
        documents: vec![directory],
        proof: None,
    }
}

/// Appends a request with its proof.
fn append_proven(log: &mut OpenLog, proofs: &mut WrittenProofs, proof: Record, at: SystemTime) {
    let chain = ChainName::of_crawler("shop", "gptbot");
    let mut record = request(STRICT, "/private/proven", at);
    let write = |writing: &Writing<'_>| {
        let Appended { number, hash } = proofs.write(writing, &chain, proof, &time_text(at))?;
        record.data.insert(
            "proof_entry".into(),
            json!({"number": number, "sha256": hash.to_string()}),
        );
        writing.append(&chain, record, &time_text(at))
    };
    log.database.write(write).expect("appended");
}

/// A log in which a crawler breaks a rule that it was served, three times, with a checkpoint before
/// the last one.
fn log(directory: &Path) -> OpenLog {
    let mut log = open(directory, moment(0)).expect("a log");
    let gptbot = ChainName::of_crawler("shop", "gptbot");
    append(
        &mut log,
        &ChainName::of_log(),
        Record {
            kind: "start",
            ..Record::default()
        },
        moment(1),
    );
    append(
        &mut log,
        &ChainName::of_site("shop"),
        published(LENIENT),
        moment(2),
    );
    append(
        &mut log,
        &ChainName::of_crawler("shop", "other"),
        served(LENIENT, moment(3)),
        moment(3),
    );
    append(
        &mut log,
        &ChainName::of_site("shop"),
        published(STRICT),
        moment(4),
    );
    append(&mut log, &gptbot, served(STRICT, moment(10)), moment(10));
    append(
        &mut log,
        &gptbot,
        request(STRICT, "/private/a", moment(20)),
        moment(20),
    );
    append(
        &mut log,
        &gptbot,
        request(STRICT, "/private/b", moment(30)),
        moment(30),
    );
    checkpoint(&mut log, moment(40));
    append(
        &mut log,
        &gptbot,
        request(STRICT, "/private/c", moment(50)),
        moment(50),
    );
    log
}

fn span() -> CaseSpan {
    CaseSpan {
        site: "shop".into(),
        crawler: "gptbot".into(),
        from: moment(5),
        to: moment(60),
    }
}

/// A case of one log, and what its check finds.
fn written(log: &mut OpenLog, span: &CaseSpan, at: SystemTime) -> (Vec<u8>, Findings) {
    let (archive, mut findings) =
        write_case(std::slice::from_mut(log), Vec::new(), span, at).expect("a case");
    (archive, findings.logs.remove(0))
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
        let log = log(directory.path());
        Case::of(directory, log, &span())
    }

    /// A case with one request, and its proof from before the span.
    fn small() -> Case {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = open(directory.path(), moment(0)).expect("a log");
        let mut proofs = WrittenProofs::default();
        append(
            &mut log,
            &ChainName::of_site("shop"),
            published(STRICT),
            moment(4),
        );
        append_proven(&mut log, &mut proofs, proof(), moment(5));
        append(
            &mut log,
            &ChainName::of_crawler("shop", "gptbot"),
            served(STRICT, moment(10)),
            moment(10),
        );
        append_proven(&mut log, &mut proofs, proof(), moment(20));
        Case::of(
            directory,
            log,
            &CaseSpan {
                from: moment(15),
                ..span()
            },
        )
    }

    /// A case with everything that a case may have: a proof in its span and one before it, and two
    /// keys.
    fn rich() -> Case {
        let directory = tempfile::tempdir().expect("a directory");
        let mut log = log(directory.path());
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        let mut proofs = WrittenProofs::default();
        append_proven(&mut log, &mut proofs, proof(), moment(51));
        append(&mut log, &gptbot, served(STRICT, moment(52)), moment(52));
        append_proven(&mut log, &mut proofs, proof(), moment(53));
        append_proven(&mut log, &mut proofs, proof_by_dns(), moment(54));
        append_proven(
            &mut log,
            &mut proofs,
            proof_by_signature(SIGNED),
            moment(54),
        );
        rotate_key(directory.path(), &mut log, moment(55)).expect("a new key");
        append(
            &mut log,
            &gptbot,
            request(STRICT, "/private/d", moment(56)),
            moment(56),
        );
        Case::of(
            directory,
            log,
            &CaseSpan {
                from: moment(52),
                ..span()
            },
        )
    }

    fn of(directory: tempfile::TempDir, mut log: OpenLog, span: &CaseSpan) -> Case {
        let (archive, findings) = written(&mut log, span, moment(60));
        assert_eq!(findings.faults, Vec::<Finding>::new());
        Case {
            _directory: directory,
            log,
            archive,
        }
    }

    fn verify(&self, archive: &[u8]) -> CaseFindings {
        verify(archive, &[self.log.key.verify_key()])
    }

    fn files(&self) -> Files {
        tar::read(&self.archive).expect("files")
    }

    /// The files with a change, and a manifest that is signed anew: by the operator, who has the
    /// key.
    fn signed_anew(&self, change: impl FnOnce(&mut Files)) -> Files {
        let mut files = self.files();
        change(&mut files);
        files.remove(manifest::FILE);
        manifest::add(&mut files, &self.log.key);
        files
    }

    /// What the check finds in them.
    fn forged(&self, change: impl FnOnce(&mut Files)) -> Vec<Finding> {
        self.verify(&tar::write(&self.signed_anew(change))).faults
    }
}

fn lines(files: &Files, path: &str) -> Vec<String> {
    String::from_utf8_lossy(&files[path])
        .lines()
        .map(str::to_owned)
        .collect()
}

fn put(files: &mut Files, path: &str, lines: &[String]) {
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
fn a_case_says_who_broke_which_rule_that_it_had_fetched() {
    let case = Case::new();
    let findings = case.verify(&case.archive).logs.remove(0);
    assert_eq!(findings.faults, Vec::<Finding>::new());
    assert_eq!(findings.requests.len(), 3);
    for request in &findings.requests {
        assert_eq!(request.rejudged, "disallowed");
        assert_eq!(
            request.served_at.as_deref(),
            Some(time_text(moment(10)).as_str())
        );
        let lenient = Hash::of(&[LENIENT]).to_string();
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
fn a_case_is_that_of_its_own_key_alone() {
    let case = Case::new();
    let other = Case::new();
    assert!(ids(&other.verify(&case.archive).faults).contains(&"other-log"));
}

#[test]
fn what_rests_on_the_word_of_the_operator_is_told() {
    let unknown = |field: &str, value: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let gptbot = ChainName::of_crawler("shop", "gptbot");
        let mut log = log(directory.path());
        let mut declared = request(STRICT, "/private/d", moment(51));
        declared.data.insert(field.into(), value.into());
        append(&mut log, &gptbot, declared, moment(51));
        let findings = Case::of(directory, log, &span());
        let findings = findings.verify(&findings.archive).logs.remove(0);
        let rests_on_it = ids(&findings.unknown).contains(&"word-of-operator");
        let request = findings.requests.last().expect("the request");
        (request.shown(Field::History).into_owned(), rests_on_it)
    };
    assert_eq!(unknown("history", "observed"), ("observed".into(), false));
    assert_eq!(unknown("history", "declared"), ("declared".into(), true));
    assert_eq!(unknown("proof", "networks"), (String::new(), true));
}
