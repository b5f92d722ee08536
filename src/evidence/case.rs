//! [`build_case`] makes a case: one file for a third party, with what the evidence logs say about
//! one crawler on one site in a span of time. The entries of a log form hash chains: each entry has
//! the hash of the entry before it, so a missing entry is noticed. A case has an unbroken range of
//! each of three chains: what the crawler did, which robots.txt the site published, and what
//! happened to the log itself.
//!
//! Each instance of crawlgate has its own log. [`build_case`] reads the logs on this machine, and
//! adds logs of other machines. [`read_exported_logs`] reads the logs of other machines from cases
//! that were made there. [`build_case`] may add a checkpoint (a signed summary of the log) to a log
//! on this machine. So it must never work on a copy of a log: the original log would lack this
//! checkpoint.

use super::canonical::canonical_line;
use super::case_layout::{REPORT_FILE, SCRIPTS, join_logs};
use super::database::ChainRange;
use super::entry::parse_time;
use super::{
    ArchiveError, CHAIN_FILES, CaseFiles, CaseFindings, CaseScope, ChainHead, ChainName,
    DatabaseError, DocumentRef, EvidenceDatabase, EvidenceEntry, Hash, HeadProof, LogKeys,
    OpenEvidenceLog, StoredChain, VerifyKey, duplicate_log, examine_logs, file_text, format_time,
    manifest, merkle, named_proof, proofs, read_logs, report, tar,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use CaseError::*;

/// The most entries of a case.
const MAX_ENTRIES: u64 = 500_000;
/// The most entries before the span that are added to reach the last robots.txt that the crawler was
/// served.
const MAX_ENTRIES_BEFORE: u64 = 10_000;

/// The program that makes a case.
pub const SOFTWARE: &str = concat!("crawlgate ", env!("CARGO_PKG_VERSION"));

/// Why no case was made.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The log cannot be read.
    #[error("cannot read the evidence log: {0}")]
    Database(#[from] DatabaseError),
    /// The log has nothing of this time.
    #[error(
        "log {0} has no entries of this time: it began later, ended earlier, or has deleted them. \"crawlgate evidence \
         status\" shows what it has"
    )]
    NotCovered(String),
    /// The span has more than `MAX_ENTRIES`.
    #[error(
        "the case would have more than {MAX_ENTRIES} entries; choose a shorter time with --from and --to"
    )]
    TooLarge,
    /// A checkpoint in the log cannot be read.
    #[error("the evidence log is damaged: checkpoint {0} cannot be read")]
    Checkpoint(u64),
    /// The key changes in the log do not follow each other.
    #[error("the evidence log is damaged: its key changes cannot be read")]
    DamagedKeys,
    /// A file to join is not a case.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A log to join has no readable key.
    #[error("the key of log {0} in it cannot be read")]
    NoKey(usize),
    /// The logs are about different crawlers or sites, or one is there twice.
    #[error("the logs are not of one case: {0}")]
    Mismatch(String),
}

/// Shortens a span to the time between the first entry of the log, or the time before which it
/// deleted entries, and its last transaction. A log that is full or was stopped lacks all later entries.
/// Returns also the time of the last entry about a gap that began before the end, or the end.
///
/// # Errors
/// The log cannot be read, or covers nothing of the span.
fn covered_span(
    database: &EvidenceDatabase,
    scope: &CaseScope,
) -> Result<(CaseScope, SystemTime), CaseError> {
    let state = database.state()?.ok_or(DatabaseError::NoLog)?;
    let mut span = scope.clone();
    if let Some(end) = parse_time(&state.complete_until) {
        // The end of a span is exclusive.
        span.to = span.to.min(end + Duration::from_millis(1));
    }
    let to = format_time(span.to);
    let mut gap_recorded = span.to;
    if let Some(chain) = database.chain(&ChainName::of_log())? {
        let all = ChainRange {
            id: chain.id,
            numbers: chain.first_number..chain.head.entries,
        };
        database.for_each_line(&all, |line| {
            let Some(entry) = EvidenceEntry::parse(line) else {
                return;
            };
            // The last entry of each chain stays, whatever its age.
            if let Some(begin) = entry.complete_since() {
                span.from = span.from.max(begin);
            }
            if entry.time >= to
                && entry
                    .data_text("from")
                    .is_some_and(|from| from < to.as_str())
            {
                gap_recorded = parse_time(&entry.time).unwrap_or(gap_recorded);
            }
        })?;
    }
    if span.from < span.to {
        return Ok((span, gap_recorded));
    }
    Err(NotCovered(state.id))
}

/// The files of one log for a case, without report and manifest. Makes a checkpoint unless there is
/// one after the end of the span. If the log deleted the beginning of the span, the checkpoints go up
/// to now: the entry about the deletion is later than the span. They also include the entry about a
/// gap that the span ends in.
fn export_log(
    log: &mut OpenEvidenceLog,
    scope: &CaseScope,
    now: SystemTime,
) -> Result<CaseFiles, CaseError> {
    let names = CaseScope::chain_names(&scope.site, &scope.crawler);
    let (scope, gap_recorded) = covered_span(&log.database, scope)?;
    let scope = &scope;
    let to = if is_beginning_deleted(&log.database, scope, &names)? {
        now.max(gap_recorded)
    } else {
        gap_recorded
    };
    let extended = CaseScope {
        to,
        ..scope.clone()
    };
    let checkpoints = ensure_checkpoints(log, &extended, now)?;
    let key = log.key.verify_key();
    let database = &log.database;
    let last = checkpoints.last().map_or(0, |(number, _)| *number);
    let ranges = case_ranges(database, scope, &names, &database.checkpoint_heads(last)?)?;
    let mut files = CaseFiles::new();
    let mut put = |path: &str, bytes: Vec<u8>| files.insert(path.to_owned(), bytes);
    let mut named = ReferencedData::default();
    for ((path, name), range) in CHAIN_FILES.iter().zip(&names).zip(&ranges) {
        put(
            path,
            export_chain(database, name, range, &mut named)?.into_bytes(),
        );
    }
    let ChainRange { id, numbers } = &ranges[0];
    let earlier: Vec<u64> = named.proofs.range(..numbers.start).copied().collect();
    let mut proofs = String::new();
    for number in earlier {
        let range = ChainRange {
            id: *id,
            numbers: number..number + 1,
        };
        proofs += &export_chain(database, &names[0], &range, &mut named)?;
    }
    put(proofs::EARLIER_PROOFS_FILE, proofs.into_bytes());
    put("personal.jsonl", named.personal.into_bytes());
    for (path, script) in SCRIPTS {
        put(path, script.as_bytes().to_vec());
    }
    put(
        "case.json",
        canonical_line(&case_description(scope, &key.name, now)).into_bytes(),
    );
    put("key.vkey", format!("{}\n", key.to_line()).into_bytes());
    put("key.pem", key.to_pem().into_bytes());
    for (number, note) in (1..).zip(database.key_change_notes()?) {
        put(&format!("keys/{number:06}.note"), note.into_bytes());
    }
    for (number, note) in checkpoints {
        let proofs = canonical_line(&head_proofs(&database.checkpoint_heads(number)?, &names));
        put(
            &format!("checkpoints/{number:06}.json"),
            proofs.into_bytes(),
        );
        put(&format!("checkpoints/{number:06}.note"), note.into_bytes());
        for (place, response) in (0..).zip(database.checkpoint_timestamps(number)?) {
            put(&format!("timestamps/{number:06}-{place}.tsr"), response);
        }
    }
    for document in named.documents {
        if let Some(bytes) = database.document(document.hash)? {
            put(&document.case_path(), bytes);
        }
    }
    Ok(files)
}

/// The content of `case.json`.
fn case_description(scope: &CaseScope, log: &str, now: SystemTime) -> serde_json::Value {
    json!({
        "crawler": scope.crawler, "site": scope.site, "from": format_time(scope.from), "to": format_time(scope.to),
        "log": log, "made": format_time(now), "software": SOFTWARE,
        "format": 1,
    })
}

/// The numbers and signed notes of the checkpoints from the last one before the span to the first
/// one after it. If there is none after it, one is made now.
///
/// # Errors
/// The log cannot be read or written.
pub fn ensure_checkpoints(
    log: &mut OpenEvidenceLog,
    scope: &CaseScope,
    now: SystemTime,
) -> Result<Vec<(u64, String)>, CaseError> {
    let OpenEvidenceLog { key, database, .. } = log;
    let from = format_time(scope.from);
    let to = format_time(scope.to);
    let checkpoints = database.checkpoints_around(&from, &to)?;
    let notes = database.key_change_notes()?;
    let keys = LogKeys::from_notes(&key.verify_key(), notes.iter().map(String::as_str))
        .map_err(|_| DamagedKeys)?;
    if let Some((number, note)) = checkpoints.last()
        && keys
            .verify_checkpoint(note)
            .ok_or(Checkpoint(*number))?
            .time
            >= to
    {
        return Ok(checkpoints);
    }
    database.write(|log| log.create_checkpoint(key, &format_time(now)))?;
    Ok(database.checkpoints_around(&from, &to)?)
}

/// Whether the log deleted entries of one of the chains that the case would need: the oldest kept
/// entry is not the first of its chain, and is not from before the span.
fn is_beginning_deleted(
    database: &EvidenceDatabase,
    scope: &CaseScope,
    names: &[ChainName; 3],
) -> Result<bool, DatabaseError> {
    for (name, since) in names.iter().zip(CaseScope::chain_starts(scope.from)) {
        let Some(chain) = database.chain(name)? else {
            continue;
        };
        if chain.first_number > 0
            && database.first_entry_since(chain.id, &since)? == Some(chain.first_number)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The range of each chain in the case. It ends with the head of the last checkpoint (`heads`). It
/// begins with an entry from before the span, which shows that the beginning was not cut off: with the
/// last entry of its kind (`served`, `published`, `start`) if that is within 10,000 entries, else with
/// the one before the span.
fn case_ranges(
    database: &EvidenceDatabase,
    scope: &CaseScope,
    names: &[ChainName; 3],
    heads: &[ChainHead],
) -> Result<[ChainRange; 3], CaseError> {
    let mut ranges = <[ChainRange; 3]>::default();
    for (place, (kind, since)) in ["served", "published", "start"]
        .into_iter()
        .zip(CaseScope::chain_starts(scope.from))
        .enumerate()
    {
        let head = heads.iter().find(|head| head.chain == names[place]);
        let (Some(head), Some(chain)) = (head, database.chain(&names[place])?) else {
            continue;
        };
        let StoredChain {
            id, first_number, ..
        } = chain;
        let begins = database
            .first_entry_since(id, &since)?
            .unwrap_or(head.entries)
            .min(head.entries);
        let before = database
            .last_entry_of_kind(id, kind, begins + 1)?
            .filter(|before| begins - before <= MAX_ENTRIES_BEFORE)
            .unwrap_or(begins)
            .min(begins.saturating_sub(1));
        ranges[place] = ChainRange {
            id,
            numbers: before.max(first_number).min(head.entries)..head.entries,
        };
    }
    let entries: u64 = ranges
        .iter()
        .map(|range| range.numbers.end - range.numbers.start)
        .sum();
    if entries > MAX_ENTRIES {
        Err(TooLarge)
    } else {
        Ok(ranges)
    }
}

/// What the entries of a case refer to.
#[derive(Default)]
struct ReferencedData {
    documents: BTreeSet<DocumentRef>,
    /// The numbers of proofs.
    proofs: BTreeSet<u64>,
    /// The file of personal values.
    personal: String,
}

/// The lines of a range of a chain, as a file of the case. Adds to `named` what they refer to.
fn export_chain(
    database: &EvidenceDatabase,
    chain: &ChainName,
    range: &ChainRange,
    named: &mut ReferencedData,
) -> Result<String, DatabaseError> {
    let mut text = String::new();
    database.for_each_line(range, |line| {
        if let Some(entry) = EvidenceEntry::parse(line) {
            named.documents.extend(DocumentRef::named_by(&entry));
            named
                .proofs
                .extend(named_proof(&entry).map(|proof| proof.number));
        }
        text.push_str(line);
        text.push('\n');
    })?;
    named.personal.extend(
        database
            .personal_values(chain, range)?
            .iter()
            .map(canonical_line),
    );
    Ok(text)
}

/// The heads of these chains in a checkpoint, each with its inclusion proof. `heads` are all heads
/// of the checkpoint.
fn head_proofs(heads: &[ChainHead], names: &[ChainName]) -> Vec<HeadProof> {
    let leaves: Vec<Hash> = heads.iter().map(ChainHead::leaf_hash).collect();
    names
        .iter()
        .filter_map(|name| heads.iter().position(|head| head.chain == *name))
        .map(|place| HeadProof {
            head: heads[place].clone(),
            place,
            path: merkle::inclusion_path(&leaves, place),
        })
        .collect()
}

/// The files of one log of a case.
pub struct ExportedLog {
    files: CaseFiles,
    key: VerifyKey,
}

/// The logs of a case that another machine exported, with the keys in it. Whoever verifies a case
/// uses the keys from the site instead.
///
/// # Errors
/// The file is not a case.
pub fn read_exported_logs(archive: &[u8]) -> Result<Vec<ExportedLog>, CaseError> {
    (1..)
        .zip(read_logs(archive)?.logs)
        .map(|(number, files)| {
            let key = file_text(&files, "key.vkey").and_then(|key| VerifyKey::parse(key).ok());
            Ok(ExportedLog {
                key: key.ok_or(NoKey(number))?,
                files,
            })
        })
        .collect()
}

/// The bytes of a case with the logs of this machine and those that other machines exported
/// (`joined`), and what its check finds. May add a checkpoint to the logs.
///
/// # Errors
/// See [`CaseError`].
pub fn build_case(
    logs: &mut [OpenEvidenceLog],
    joined: Vec<ExportedLog>,
    scope: &CaseScope,
    now: SystemTime,
) -> Result<(Vec<u8>, CaseFindings), CaseError> {
    let mut exported = Vec::new();
    let mut alone = CaseFindings::default();
    for log in logs {
        let mut files = export_log(log, scope, now)?;
        let key = log.key.verify_key();
        alone = CaseFindings::from_logs(examine_logs(&[(&files, &key)]));
        files.insert(
            REPORT_FILE.to_owned(),
            report::render_case_page(&alone).into_bytes(),
        );
        manifest::add_manifest(&mut files, &log.key);
        exported.push(ExportedLog { files, key });
    }
    exported.extend(joined);
    let findings = match exported.as_slice() {
        [_] => alone,
        several => CaseFindings::from_logs(examine_logs(
            &several
                .iter()
                .map(|log| (&log.files, &log.key))
                .collect::<Vec<_>>(),
        )),
    };
    check_same_subject(&findings)?;
    let files = exported.into_iter().map(|log| log.files).collect();
    Ok((
        tar::write_archive(&join_logs(files, report::render_case_page(&findings))),
        findings,
    ))
}

/// Rejects logs of different crawlers or sites, and a log that is there twice.
fn check_same_subject(findings: &CaseFindings) -> Result<(), CaseError> {
    let Some(first) = findings.logs.first() else {
        return Ok(());
    };
    for log in &findings.logs {
        if (&log.site, &log.crawler) != (&first.site, &first.crawler) {
            return Err(Mismatch(format!(
                "one is about {} on {}, one about {} on {}",
                first.crawler, first.site, log.crawler, log.site
            )));
        }
    }
    duplicate_log(&findings.logs).map_or(Ok(()), |log| {
        Err(Mismatch(format!("the log {log} is there twice")))
    })
}
