//! Checks the files of a case (an excerpt of the evidence log, as one file) that are not log
//! entries. These are the personal values (such as addresses of clients), the robots.txt files, the
//! lists of crawlers' networks or keys, and the timestamps of checkpoints (signed summaries of the
//! log).

use super::chains::ProvenCheckpoint;
use crate::evidence::canonical::parse_canonical;
use crate::evidence::{
    CaseFiles, ChainName, CheckpointTimestamp, DocumentRef, EvidenceEntry, Hash, LogFindings,
    PersonalValueLine, PersonalValues, commitment, file_text, timestamp,
};
use crate::hash::parse_hex;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that each timestamp is of a checkpoint of the case. Its signature is left to openssl.
pub fn check_timestamps(
    files: &CaseFiles,
    checkpoints: &[ProvenCheckpoint],
    findings: &mut LogFindings,
) {
    let stamps: Vec<_> = files
        .iter()
        .filter(|(file, _)| file.starts_with("timestamps/"))
        .collect();
    if !stamps.is_empty() {
        let message = "whether the authorities signed the timestamps: openssl checks it (the script check.sh). The site chose them: decide whether you trust them";
        findings.add_unknown("timestamp-signatures", message);
    } else if !checkpoints.is_empty() {
        let message = "when the entries were written: without a timestamp of an authority, the times are the site's word";
        findings.add_unknown("no-timestamp", message);
    }
    for (file, response) in stamps {
        let note = file
            // The six digits after `timestamps/`.
            .get(11..17)
            .map(|number| format!("checkpoints/{number}.note"))
            .unwrap_or_default();
        let hash = files.get(&note).map(|note| Hash::digest(&[note]));
        match timestamp::parse_timestamp_response(response).filter(|stamp| Some(stamp.hash) == hash)
        {
            None => {
                findings.add_fault(
                    "timestamp-mismatch",
                    format!(
                        "{file} cannot be read, or is not a timestamp of a checkpoint in this case"
                    ),
                );
            }
            Some(stamp) => {
                let covering = checkpoints.iter().find(|proven| {
                    note == format!("checkpoints/{:06}.note", proven.checkpoint.number)
                });
                findings.add_check(
                    "timestamp",
                    format!(
                        "{file} is for {note}, and has the time {} and the authority {}",
                        stamp.time, stamp.authority
                    ),
                );
                // The files are in the order of checkpoints.
                findings
                    .timestamps
                    .extend(covering.map(|proven| CheckpointTimestamp {
                        covers_until: proven.checkpoint.time.clone(),
                        time: stamp.time,
                        authority: stamp.authority,
                    }));
            }
        }
    }
}

/// The personal values of the case. A value that does not match the commitment in its entry is a
/// fault. Commitments without a value count as withdrawn.
pub fn read_personal_values<'a>(
    files: &CaseFiles,
    entries: impl Iterator<Item = &'a EvidenceEntry>,
    findings: &mut LogFindings,
) -> PersonalValues {
    let entries: BTreeMap<(&ChainName, u64), &EvidenceEntry> = entries
        .map(|entry| ((&entry.chain, entry.number), entry))
        .collect();
    let mut values = PersonalValues::new();
    let mut wrong = Vec::new();
    let lines = file_text(files, "personal.jsonl");
    if lines.is_none_or(|lines| !lines.is_empty() && !lines.ends_with('\n')) {
        findings.add_fault("missing-file", "personal.jsonl is missing or cut off");
    }
    for (place, line) in lines.unwrap_or_default().split_terminator('\n').enumerate() {
        let known = parse_canonical::<PersonalValueLine>(line).filter(|known| {
            let salt = parse_hex(&known.salt).filter(|salt| salt.len() == 16);
            let committed = entries
                .get(&(&known.chain, known.number))
                .and_then(|entry| entry.personal.get(&known.name));
            committed.is_some()
                && committed.copied() == salt.map(|salt| commitment(&salt, &known.value))
        });
        match known {
            Some(PersonalValueLine {
                chain,
                number,
                name,
                value,
                ..
            }) => drop(values.insert((chain, number, name), value)),
            None => wrong.push(place + 1),
        }
    }
    findings.add_lines_fault(
        "personal-value",
        "personal.jsonl: these lines do not match their entries",
        wrong,
    );
    let committed: usize = entries.values().map(|entry| entry.personal.len()).sum();
    findings.withdrawn = committed.saturating_sub(values.len()) as u64;
    if !values.is_empty() {
        findings.add_check(
            "personal-values",
            format!(
                "personal values (such as addresses and URLs): {}, each matching the hash in its entry",
                values.len()
            ),
        );
    }
    values
}

/// The robots.txt files of the case by hash. A list or robots.txt that is not named by its hash is a
/// fault, and so is a missing one that an entry names.
pub fn read_documents<'a>(
    files: &CaseFiles,
    entries: impl Iterator<Item = &'a EvidenceEntry>,
    findings: &mut LogFindings,
) -> BTreeMap<Hash, Vec<u8>> {
    let mut known = BTreeMap::new();
    for (file, bytes) in files {
        let is_list = file.starts_with("lists/");
        if !is_list && !file.starts_with("robots/") {
            continue;
        }
        let hash = Hash::digest(&[bytes]);
        if *file != (DocumentRef { is_list, hash }).case_path() {
            findings.add_fault(
                "changed-document",
                format!("{file} was changed: its SHA-256 is now {hash}"),
            );
        } else if !is_list {
            known.insert(hash, bytes.clone());
        }
    }
    let missing: BTreeSet<String> = entries
        .flat_map(DocumentRef::named_by)
        .map(|document| document.case_path())
        .filter(|path| !files.contains_key(path))
        .collect();
    for path in &missing {
        findings.add_fault(
            "missing-document",
            format!("{path} is missing: an entry names it"),
        );
    }
    if missing.is_empty() {
        findings.add_check(
            "documents",
            format!(
                "robots.txt files: {}, each with the SHA-256 in the entries",
                known.len()
            ),
        );
    }
    known
}
