//! [`examine`] checks the logs of a case (an excerpt of one evidence log or several, as one file)
//! by their files and public keys alone, and adds a finding for each fault. It relies on the
//! signed checkpoints in the case, and not on the case's manifest, which the owner of the key could
//! sign anew after a change.

use super::canonical::read_canonical;
use super::entry::{parse_time, read_chain};
use super::requests::{AllLogs, RobotsFiles, tell};
use super::{
    CHAINS, CaseSpan, ChainName, Checkpoint, Document, Entry, Files, Findings, Hash, Head,
    HeadProof, Keys, Link, Personal, PersonalLine, VerifyKey, commitment, hash_of, merkle, proofs,
    text_of, timestamp,
};
use crate::finding::Finding;
use crate::hash::parse_hex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A checkpoint of the case, with the heads that it proves.
struct Proven {
    checkpoint: Checkpoint,
    heads: Vec<Head>,
}

impl Proven {
    /// The head of this chain that the checkpoint proves; `None` if the case has no proof of it.
    fn head(&self, chain: &ChainName) -> Option<&Head> {
        self.heads.iter().find(|head| head.chain == *chain)
    }
}

/// A log of a case whose structure was checked.
#[derive(Default)]
struct Checked {
    chains: [Vec<Link>; 3],
    /// Proofs that are older than the span.
    earlier: Vec<Link>,
    personal: Personal,
    robots: BTreeMap<Hash, Vec<u8>>,
    findings: Findings,
}

/// Checks the files of each log of a case by the log's key, but not its manifest and report.
/// Returns the findings about each log, in the same order. A request is judged by the robots.txt
/// files and publications of all logs together.
pub fn examine(logs: &[(&Files, &VerifyKey)]) -> Vec<Findings> {
    let mut checked: Vec<Checked> = logs.iter().map(|(files, key)| check(files, key)).collect();
    let robots = checked
        .iter_mut()
        .flat_map(|log| std::mem::take(&mut log.robots))
        .collect();
    let chains = checked
        .iter()
        .map(|log| (&log.chains, log.findings.log.as_str()));
    let all = AllLogs::new(RobotsFiles::new(robots), chains);
    let mut findings = Vec::new();
    for (log, (files, _)) in checked.into_iter().zip(logs) {
        let mut found = log.findings;
        tell(&log.chains, &log.personal, &all, &mut found);
        proofs::tell(
            &log.chains[0],
            &log.earlier,
            &log.personal,
            files,
            &mut found,
        );
        findings.push(found);
    }
    findings
}

/// Checks the structure of a log: keys, hashes, numbers, times, and that all files are those that
/// entries name. If `case.json` or the keys cannot be read, the result has only that fault.
fn check(files: &Files, key: &VerifyKey) -> Checked {
    let mut findings = Findings::default();
    let Some(about) = about(files) else {
        findings.add_fault("unreadable-case", "case.json cannot be read");
        return Checked {
            findings,
            ..Checked::default()
        };
    };
    for (name, value) in [
        ("site", &mut findings.site),
        ("crawler", &mut findings.crawler),
        ("from", &mut findings.from),
        ("to", &mut findings.to),
        ("log", &mut findings.log),
    ] {
        let said = about.get(name).and_then(Value::as_str);
        said.unwrap_or_default().clone_into(value);
    }
    if findings.log != key.name {
        findings.add_fault(
            "other-log",
            format!(
                "the case is of the log {}, and the key is that of {}",
                findings.log, key.name
            ),
        );
    }
    let keys = match keys(files, key) {
        Ok(keys) => keys,
        Err(fault) => {
            findings.faults.push(fault);
            return Checked {
                findings,
                ..Checked::default()
            };
        }
    };
    check_keys(files, &keys, &mut findings);
    let names = CaseSpan::chains(&findings.site, &findings.crawler);
    let chains = chains(files, &names, key, &mut findings);
    let checkpoints = checkpoints(files, &names, &keys, &mut findings);
    for ((chain, name), file) in chains.iter().zip(&names).zip(CHAINS) {
        check_heads(chain, name, &checkpoints, file, &mut findings);
    }
    check_beginnings(&chains, &names, &checkpoints, &mut findings);
    timestamps(files, &checkpoints, &mut findings);
    let earlier = proofs::read_earlier(files, &chains[0], &mut findings);
    let entries = || chains.iter().flatten().chain(&earlier);
    let personal = personal(files, entries(), &mut findings);
    let robots = documents(files, entries(), &mut findings);
    Checked {
        chains,
        earlier,
        personal,
        robots,
        findings,
    }
}

/// Adds to the findings how often the key was changed, and a fault if the files of the key do not
/// have the last one.
fn check_keys(files: &Files, keys: &Keys, findings: &mut Findings) {
    if keys.changes() > 0 {
        let times = if keys.changes() == 1 {
            "once".to_owned()
        } else {
            format!("{} times", keys.changes())
        };
        findings.add_check(
            "key-changes",
            format!(
                "the key was changed {times}, by the word of the old and the new key each time"
            ),
        );
    }
    let Some(last) = keys.last() else { return };
    for (file, expected) in [
        ("key.vkey", format!("{}\n", last.line())),
        ("key.pem", last.pem()),
    ] {
        if files.get(file).map(Vec::as_slice) != Some(expected.as_bytes()) {
            findings.add_fault("key-file", format!("{file} is not the key of the log"));
        }
    }
}

/// The name of the log that these files are of, as their `case.json` says, unchecked.
pub fn log_of(files: &Files) -> Option<String> {
    about(files)?.get("log")?.as_str().map(str::to_owned)
}

/// The keys of the log, by the notes about changes in the files. The trusted key must be one of
/// them.
///
/// # Errors
/// As for `Keys::read`.
pub fn keys(files: &Files, trusted: &VerifyKey) -> Result<Keys, Finding> {
    let notes = files.iter().filter(|(file, _)| file.starts_with("keys/"));
    Keys::read(
        trusted,
        notes.map(|(_, note)| str::from_utf8(note).unwrap_or_default()),
    )
}

/// What `case.json` says; `None` if it is missing or is no canonical JSON line.
fn about(files: &Files) -> Option<Map<String, Value>> {
    read_canonical(text_of(files, "case.json")?.strip_suffix('\n')?)
}

/// The entries of the three chains of the case. A chain that is missing, has a fault or is that of
/// something else is empty, and a fault is added to the findings.
fn chains(
    files: &Files,
    names: &[ChainName; 3],
    key: &VerifyKey,
    findings: &mut Findings,
) -> [Vec<Link>; 3] {
    let mut chains = <[Vec<Link>; 3]>::default();
    for ((file, name), chain) in CHAINS.iter().zip(names).zip(&mut chains) {
        let Some(text) = text_of(files, file) else {
            findings.add_fault("missing-file", format!("{file} is missing or no text"));
            continue;
        };
        match read_chain(text) {
            Err(fault) => findings.faults.push(Finding {
                message: format!("{file}: {fault}"),
                ..fault
            }),
            Ok(links) => {
                let first = links.first().map(|link| &link.entry);
                if first.is_some_and(|entry| entry.chain != *name || entry.log != key.name) {
                    findings.add_fault(
                        "other-chain",
                        format!("{file} is the chain of something else"),
                    );
                } else {
                    findings.add_check(
                        "chain",
                        format!(
                            "{file}: {} entries, each with the hash of the one before it",
                            links.len()
                        ),
                    );
                    *chain = links;
                }
            }
        }
    }
    chains
}

/// The checkpoints of the case that the log's keys signed, in their order. Adds a fault for each
/// one that is not valid or does not follow the one before it, and if there is none at all. If the
/// checkpoints begin within the span, it is not known whether earlier entries were back-dated.
fn checkpoints(
    files: &Files,
    names: &[ChainName; 3],
    keys: &Keys,
    findings: &mut Findings,
) -> Vec<Proven> {
    let mut found: Vec<Proven> = Vec::new();
    let mut before: Option<(u64, Hash, String)> = None;
    for file in files
        .keys()
        .filter(|file| file.starts_with("checkpoints/") && file.ends_with(".note"))
    {
        match checkpoint(files, file, names, keys) {
            Err(fault) => findings.faults.push(Finding {
                message: format!("{file}: {fault}"),
                ..fault
            }),
            Ok((proven, hash)) => {
                let Checkpoint {
                    number,
                    previous,
                    time,
                    ..
                } = &proven.checkpoint;
                if let Some((last, last_hash, last_time)) = &before
                    && (last + 1 != *number || last_hash != previous || last_time > time)
                {
                    findings.add_fault(
                        "checkpoint-order",
                        format!("{file} does not follow the checkpoint before it"),
                    );
                }
                before = Some((*number, hash, time.clone()));
                found.push(proven);
            }
        }
    }
    if let Some(first) = found.first().map(|first| &first.checkpoint)
        && first.number > 0
        && first.time >= findings.from
    {
        findings.add_unknown(
            "no-earlier-checkpoint",
            format!(
                "whether entries that are dated before {} were written before it: earlier checkpoints are not in the case",
                first.time
            ),
        );
    }
    match found.last() {
        None => {
            findings.add_fault(
                "no-checkpoint",
                "there is no checkpoint that the key signed",
            );
        }
        Some(last) => {
            findings.add_check(
                "checkpoints",
                format!(
                    "{} checkpoints are signed by the key and follow each other; the last one is of {}",
                    found.len(),
                    last.checkpoint.time
                ),
            );
        }
    }
    found
}

/// Reads one checkpoint and checks its signature, its name and the proofs of its heads. Returns it
/// with the hash of its note, which the next checkpoint names.
///
/// # Errors
/// What does not hold, for a fault.
fn checkpoint(
    files: &Files,
    file: &str,
    names: &[ChainName; 3],
    keys: &Keys,
) -> Result<(Proven, Hash), Finding> {
    let note = text_of(files, file).ok_or(Finding::new("checkpoint-no-text", "this is no text"))?;
    let checkpoint = keys.checkpoint(note).ok_or(Finding::new(
        "checkpoint-unsigned",
        "this is no checkpoint, or the key of its time did not sign it",
    ))?;
    if keys.last().is_none_or(|key| checkpoint.origin != key.name)
        || *file != format!("checkpoints/{:06}.note", checkpoint.number)
    {
        return Err(Finding::new("other-checkpoint", "it is another checkpoint"));
    }
    let proofs =
        text_of(files, &file.replace(".note", ".json")).and_then(|text| text.strip_suffix('\n'));
    let proofs: Option<Vec<HeadProof>> = proofs.and_then(read_canonical);
    let mut heads = Vec::new();
    let unread = Finding::new("unreadable-head-proofs", "its proofs cannot be read");
    for HeadProof { head, place, path } in proofs.ok_or(unread)? {
        if merkle::root_by_path(head.leaf(), place, checkpoint.leaves, &path)
            != Some(checkpoint.root)
        {
            let message = "a proof does not lead to its root";
            return Err(Finding::new("head-proof-of-other-root", message));
        }
        if !names.contains(&head.chain)
            || heads.iter().any(|known: &Head| known.chain == head.chain)
        {
            let message = "a proof is of another chain";
            return Err(Finding::new("head-proof-of-other-chain", message));
        }
        heads.push(head);
    }
    Ok((Proven { checkpoint, heads }, hash_of(note)))
}

/// Checks that a chain is the one that the checkpoints cover: it ends with the last checkpoint's
/// head, the heads of earlier ones are its entries, and no entry's time is on the other side of a
/// checkpoint than its place. Adds a fault where this does not hold.
fn check_heads(
    chain: &[Link],
    name: &ChainName,
    checkpoints: &[Proven],
    file: &str,
    findings: &mut Findings,
) {
    let Some(last) = checkpoints.last() else {
        return;
    };
    let end = chain.last().map(|link| (link.entry.number + 1, link.hash));
    if last.head(name).map(|head| (head.entries, head.hash)) != end {
        findings.add_fault(
            "shortened",
            format!(
                "{file} does not end with the entry that the last checkpoint names: it was shortened"
            ),
        );
        return;
    }
    let mut proven_before = false;
    for proven in checkpoints {
        let head = proven.head(name);
        let time = &proven.checkpoint.time;
        // A checkpoint covers each chain that it or an earlier one was made after. Without its
        // proof nobody could say which entries were written later.
        let is_older = chain.iter().any(|link| link.entry.time < *time);
        if head.is_none() && (proven_before || is_older) {
            let number = proven.checkpoint.number;
            findings.add_fault(
                "checkpoint-without-proof",
                format!("{file}: checkpoint {number} has no proof of it"),
            );
        }
        proven_before |= head.is_some();
        let covered = head.map_or(0, |head| head.entries);
        for Link { entry, hash } in chain {
            if head.is_some_and(|head| head.entries == entry.number + 1 && head.hash != *hash) {
                findings.add_fault(
                    "other-entry",
                    format!(
                        "{file}: entry {} is not the one that a checkpoint names",
                        entry.number
                    ),
                );
            }
            let is_before = entry.number < covered;
            if (is_before && entry.time > *time)
                || (!is_before && entry.time < *time && head.is_some())
            {
                findings.add_fault(
                    "other-side-of-checkpoint",
                    format!(
                        "{file}: entry {} was dated to the other side of a checkpoint",
                        entry.number
                    ),
                );
            }
        }
    }
    if !chain.is_empty() {
        findings.add_check(
            "covered",
            format!("{file} ends with the entry that the last checkpoint covers"),
        );
    }
}

/// Checks that each chain has all entries since the beginning of its time. The hashes tie each
/// entry to the one before it, and the last checkpoint covers the end; the beginning could be cut
/// off, with a publication in it that allowed everything. Entries that the log deleted for their
/// age, by its own word, cannot be in a case.
fn check_beginnings(
    chains: &[Vec<Link>; 3],
    names: &[ChainName; 3],
    checkpoints: &[Proven],
    findings: &mut Findings,
) {
    let Some(beginnings) = parse_time(&findings.from).map(CaseSpan::beginnings) else {
        return findings.add_fault("no-time", "case.json does not say from which time on");
    };
    let deleted_before = chains[2].iter().filter_map(deleted_before).max();
    for (((chain, name), file), since) in chains.iter().zip(names).zip(CHAINS).zip(&beginnings) {
        let Some(first) = chain.first().map(|link| &link.entry) else {
            continue;
        };
        let is_covered = checkpoints.iter().any(|proven| {
            let head = proven.head(name);
            proven.checkpoint.time < *since && head.is_some_and(|head| head.entries >= first.number)
        });
        if first.number == 0 || first.time < *since || is_covered {
            continue;
        }
        let missing = format!(
            "{file} lacks {} entries from before {}",
            first.number, first.time
        );
        match deleted_before {
            Some(before) => {
                findings.add_unknown(
                    "deleted-for-age",
                    format!(
                        "{missing}: the log deleted those from before {before} for their age; whether later ones were left out"
                    ),
                );
            }
            None => {
                findings.add_fault(
                    "beginning-left-out",
                    format!(
                        "{missing}: entries since {since} were left out, and the log does not say that it deleted any"
                    ),
                );
            }
        }
    }
}

/// If this entry says that the log deleted old entries: up to which moment.
fn deleted_before(link: &Link) -> Option<&str> {
    let is_deletion = link.entry.kind == "gap" && link.entry.text("reason") == Some("too_old");
    link.entry.text("before").filter(|_| is_deletion)
}

/// Checks that each timestamp is of a checkpoint of the case, and adds what it says. Whether the
/// authority signed it is left open: openssl can check that.
fn timestamps(files: &Files, checkpoints: &[Proven], findings: &mut Findings) {
    let stamps: Vec<_> = files
        .iter()
        .filter(|(file, _)| file.starts_with("timestamps/"))
        .collect();
    if !stamps.is_empty() {
        let message =
            "whether the authorities signed the timestamps: `openssl ts -verify` checks it";
        findings.add_unknown("timestamp-signatures", message);
    } else if !checkpoints.is_empty() {
        let message =
            "no checkpoint of the case has a timestamp of an authority: the key alone says when";
        findings.add_unknown("no-timestamp", message);
    }
    for (file, response) in stamps {
        let note = file
            // The six digits after `timestamps/`.
            .get(11..17)
            .map(|number| format!("checkpoints/{number}.note"))
            .unwrap_or_default();
        let hash = files.get(&note).map(|note| Hash::of(&[note]));
        match timestamp::read(response).filter(|stamp| Some(stamp.hash) == hash) {
            None => {
                findings.add_fault(
                    "timestamp-mismatch",
                    format!("{file} is no timestamp of a checkpoint of the case"),
                );
            }
            Some(stamp) => {
                findings.add_check(
                    "timestamp",
                    format!(
                        "{file} is a timestamp of {note}, and says that it existed at {}",
                        stamp.shown()
                    ),
                );
            }
        }
    }
}

/// The personal values of the case. A value that its entry was not made with (by the commitment) is
/// left out and a fault. Counts as withdrawn the commitments without a value.
fn personal<'a>(
    files: &Files,
    entries: impl Iterator<Item = &'a Link>,
    findings: &mut Findings,
) -> Personal {
    let entries: BTreeMap<(&ChainName, u64), &Entry> = entries
        .map(|link| ((&link.entry.chain, link.entry.number), &link.entry))
        .collect();
    let mut values = Personal::new();
    let lines = text_of(files, "personal.jsonl");
    if lines.is_none_or(|lines| !lines.is_empty() && !lines.ends_with('\n')) {
        findings.add_fault("missing-file", "personal.jsonl is missing or cut off");
    }
    for (place, line) in lines.unwrap_or_default().split_terminator('\n').enumerate() {
        let known = read_canonical::<PersonalLine>(line).filter(|known| {
            let salt = parse_hex(&known.salt).filter(|salt| salt.len() == 16);
            let committed = entries
                .get(&(&known.chain, known.number))
                .and_then(|entry| entry.personal.get(&known.name));
            committed.is_some()
                && committed.copied() == salt.map(|salt| commitment(&salt, &known.value))
        });
        match known {
            Some(PersonalLine {
                chain,
                number,
                name,
                value,
                ..
            }) => drop(values.insert((chain, number, name), value)),
            None => {
                findings.add_fault(
                    "personal-value",
                    format!(
                        "personal.jsonl: line {} is not the value of its entry",
                        place + 1
                    ),
                );
            }
        }
    }
    let committed: usize = entries.values().map(|entry| entry.personal.len()).sum();
    findings.withdrawn = committed.saturating_sub(values.len()) as u64;
    if !values.is_empty() {
        findings.add_check(
            "personal-values",
            format!(
                "{} personal values are those that their entries were made with",
                values.len()
            ),
        );
    }
    values
}

/// The robots.txt files of the case, by their hash. Adds a fault for a file (list or robots.txt)
/// that is not stored under its hash, and for one that an entry names and that is missing.
fn documents<'a>(
    files: &Files,
    entries: impl Iterator<Item = &'a Link>,
    findings: &mut Findings,
) -> BTreeMap<Hash, Vec<u8>> {
    let mut known = BTreeMap::new();
    for (file, bytes) in files {
        let is_list = file.starts_with("lists/");
        if !is_list && !file.starts_with("robots/") {
            continue;
        }
        let hash = Hash::of(&[bytes]);
        if *file != (Document { is_list, hash }).path() {
            findings.add_fault(
                "changed-document",
                format!("{file} was changed: its SHA-256 is {hash}"),
            );
        } else if !is_list {
            known.insert(hash, bytes.clone());
        }
    }
    let named = entries
        .flat_map(|link| Document::all_of(&link.entry))
        .map(|document| document.path());
    let missing: BTreeSet<String> = named.filter(|path| !files.contains_key(path)).collect();
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
                "{} robots.txt files are there, each with the SHA-256 that entries name",
                known.len()
            ),
        );
    }
    known
}
