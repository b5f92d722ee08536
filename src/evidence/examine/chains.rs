//! Checks the entries and checkpoints of a case (an excerpt of the evidence log, as one file). The
//! entries form hash chains, in which each entry has the hash of the entry before it. A checkpoint
//! is a signed summary of the log, and names the last entry of each chain. A chain must not be cut
//! off at its beginning, and must end with the entry that the last checkpoint names.

use crate::evidence::canonical::parse_canonical;
use crate::evidence::entry::{format_time, parse_chain, parse_time};
use crate::evidence::{
    CHAIN_FILES, CaseFiles, CaseScope, ChainHead, ChainName, Checkpoint, EvidenceEntry, Hash,
    HeadProof, LogFindings, LogKeys, VerifyKey, file_text, line_hash, merkle,
};
use crate::finding::Finding;

/// A checkpoint of the case, with the heads that it proves.
pub struct ProvenCheckpoint {
    pub checkpoint: Checkpoint,
    /// The hash of its note, which the next checkpoint names.
    hash: Hash,
    heads: Vec<ChainHead>,
}

impl ProvenCheckpoint {
    fn follows(&self, last: &ProvenCheckpoint) -> bool {
        let own = &self.checkpoint;
        own.number == last.checkpoint.number + 1
            && own.previous == last.hash
            && own.time >= last.checkpoint.time
    }

    fn head(&self, chain: &ChainName) -> Option<&ChainHead> {
        self.heads.iter().find(|head| head.chain == *chain)
    }
}

/// The entries of the three chains. A chain that is missing, has a fault or another name is empty,
/// and a fault is added.
pub fn read_chains(
    files: &CaseFiles,
    names: &[ChainName; 3],
    key: &VerifyKey,
    findings: &mut LogFindings,
) -> [Vec<EvidenceEntry>; 3] {
    let mut chains = <[Vec<EvidenceEntry>; 3]>::default();
    for ((file, name), chain) in CHAIN_FILES.iter().zip(names).zip(&mut chains) {
        let Some(text) = file_text(files, file) else {
            findings.add_fault("missing-file", format!("{file} is missing or not text"));
            continue;
        };
        match parse_chain(text) {
            Err(fault) => findings.add_file_fault(file, fault),
            Ok(entries)
                if entries
                    .first()
                    .is_some_and(|entry| entry.chain != *name || entry.log != key.name) =>
            {
                findings.add_fault(
                    "other-chain",
                    format!("{file} belongs to another site, crawler or log"),
                );
            }
            Ok(entries) => {
                findings.add_check(
                    "chain",
                    format!(
                        "{file}: each entry (of {}) has the hash of the one before it",
                        entries.len()
                    ),
                );
                *chain = entries;
            }
        }
    }
    chains
}

/// The valid checkpoints of the case, in their order. Adds a fault for each one that is invalid or
/// does not follow the one before it, and if there is none. If they begin within the span, it is
/// unknown whether earlier entries were back-dated.
pub fn read_checkpoints(
    files: &CaseFiles,
    names: &[ChainName; 3],
    keys: &LogKeys,
    findings: &mut LogFindings,
) -> Vec<ProvenCheckpoint> {
    let mut found: Vec<ProvenCheckpoint> = Vec::new();
    for file in files
        .keys()
        .filter(|file| file.starts_with("checkpoints/") && file.ends_with(".note"))
    {
        match read_checkpoint(files, file, names, keys) {
            Err(fault) => findings.add_file_fault(file, fault),
            Ok(proven) => {
                if found.last().is_some_and(|last| !proven.follows(last)) {
                    findings.add_fault(
                        "checkpoint-order",
                        format!("{file} does not follow the checkpoint before it"),
                    );
                }
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
                "whether entries with a time before {} were really written before it: the case has no earlier checkpoint",
                first.time
            ),
        );
    }
    match found.last() {
        None => {
            findings.add_fault(
                "no-checkpoint",
                "the case has no checkpoint that the key signed",
            );
        }
        Some(last) => {
            findings.add_check(
                "checkpoints",
                format!(
                    "checkpoints (signed summaries of the log): {}, each following the one before it; the last one was made at {}",
                    found.len(),
                    last.checkpoint.time
                ),
            );
        }
    }
    found
}

/// Reads a checkpoint, and checks its signature, its name and the proofs of its heads.
///
/// # Errors
/// The fault.
fn read_checkpoint(
    files: &CaseFiles,
    file: &str,
    names: &[ChainName; 3],
    keys: &LogKeys,
) -> Result<ProvenCheckpoint, Finding> {
    let note =
        file_text(files, file).ok_or(Finding::new("checkpoint-no-text", "it is not text"))?;
    let checkpoint = keys.verify_checkpoint(note).ok_or(Finding::new(
        "checkpoint-unsigned",
        "it is not a checkpoint, or the key of its time did not sign it",
    ))?;
    if keys
        .current()
        .is_none_or(|key| checkpoint.origin != key.name)
        || *file != format!("checkpoints/{:06}.note", checkpoint.number)
    {
        return Err(Finding::new("other-checkpoint", "it is another checkpoint"));
    }
    let proofs =
        file_text(files, &file.replace(".note", ".json")).and_then(|text| text.strip_suffix('\n'));
    let proofs: Option<Vec<HeadProof>> = proofs.and_then(parse_canonical);
    let mut heads = Vec::new();
    let unread = Finding::new("unreadable-head-proofs", "its proofs cannot be read");
    for HeadProof { head, place, path } in proofs.ok_or(unread)? {
        if merkle::root_from_path(head.leaf_hash(), place, checkpoint.leaves, &path)
            != Some(checkpoint.root)
        {
            return Err(Finding::new(
                "head-proof-of-other-root",
                "a chain in it does not match its root",
            ));
        }
        if !names.contains(&head.chain)
            || heads
                .iter()
                .any(|known: &ChainHead| known.chain == head.chain)
        {
            return Err(Finding::new(
                "head-proof-of-other-chain",
                "it names a chain of another site or crawler",
            ));
        }
        heads.push(head);
    }
    Ok(ProvenCheckpoint {
        checkpoint,
        hash: line_hash(note),
        heads,
    })
}

/// Checks a chain against the checkpoints: it ends with the head in the last one, the heads in
/// earlier ones are its entries, and entries that a checkpoint covers are not dated after it, nor
/// others before it.
pub fn check_heads(
    chain: &[EvidenceEntry],
    name: &ChainName,
    checkpoints: &[ProvenCheckpoint],
    file: &str,
    findings: &mut LogFindings,
) {
    let Some(last) = checkpoints.last() else {
        return;
    };
    let end = chain.last().map(|entry| (entry.number + 1, entry.hash()));
    if last.head(name).map(|head| (head.entries, head.hash)) != end {
        findings.add_fault(
            "shortened",
            format!(
                "{file} does not end with the entry that the last checkpoint names: entries were removed or added"
            ),
        );
        return;
    }
    let mut proven_before = false;
    for proven in checkpoints {
        let head = proven.head(name);
        let time = &proven.checkpoint.time;
        // A checkpoint covers all chains that existed. Without the proof of one, it is unknown which
        // of its entries were written later.
        let is_older = chain.iter().any(|entry| entry.time < *time);
        if head.is_none() && (proven_before || is_older) {
            let number = proven.checkpoint.number;
            findings.add_fault(
                "checkpoint-without-proof",
                format!("{file}: checkpoint {number} does not name this chain"),
            );
        }
        proven_before |= head.is_some();
        let covered = head.map_or(0, |head| head.entries);
        for entry in chain {
            if head
                .is_some_and(|head| head.entries == entry.number + 1 && head.hash != entry.hash())
            {
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
                        "{file}: the time of entry {} contradicts a checkpoint",
                        entry.number
                    ),
                );
            }
        }
    }
    if !chain.is_empty() {
        findings.add_check(
            "covered",
            format!("{file} ends with the entry that the last checkpoint names"),
        );
    }
}

/// Checks that no chain was cut off at its beginning, where a publication may have allowed
/// everything. It is no fault if the log says that it deleted old entries. A case that claims to
/// begin before the log is a fault.
pub fn check_beginnings(
    chains: &[Vec<EvidenceEntry>; 3],
    names: &[ChainName; 3],
    checkpoints: &[ProvenCheckpoint],
    findings: &mut LogFindings,
) {
    let Some(from) = parse_time(&findings.from) else {
        return findings.add_fault(
            "no-time",
            "case.json does not say when the time of the case begins",
        );
    };
    let begins = chains[2].iter().filter_map(EvidenceEntry::complete_since);
    if let Some(begin) = begins.max().filter(|begin| *begin > from) {
        let message = format!(
            "case.json says that the case begins at {}, but the log has all entries only since {}",
            findings.from,
            format_time(begin)
        );
        findings.add_fault("begins-before-log", message);
    }
    let beginnings = CaseScope::chain_starts(from);
    let deleted_before = chains[2].iter().filter_map(deleted_before).max();
    for (((chain, name), file), since) in chains.iter().zip(names).zip(CHAIN_FILES).zip(&beginnings)
    {
        let Some(first) = chain.first() else {
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
            "{file} does not have {} entries from before {}",
            first.number, first.time
        );
        match deleted_before {
            Some(before) => {
                findings.add_unknown(
                    "deleted-for-age",
                    format!(
                        "{missing}: the log deleted those from before {before} for their age; later ones may have been left out"
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

/// The time before which the log deleted entries, if this entry says so.
fn deleted_before(entry: &EvidenceEntry) -> Option<&str> {
    let is_deletion = entry.kind == "gap" && entry.data_text("reason") == Some("too_old");
    entry.data_text("before").filter(|_| is_deletion)
}
