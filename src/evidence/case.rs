//! [`write_case`] exports a case: one file with what one evidence log or several say about one
//! crawler on one site in a span of time. The file has whole spans of three hash chains (of the
//! crawler, of the site's publications, of the log itself), so a missing entry in the middle is
//! noticed.
//!
//! Each instance of crawlgate has a log of its own. [`write_case`] opens the logs on this machine.
//! Of a log on another machine it takes the case that was exported there ([`read_joined`]). It
//! takes no copy of that log: an export may sign a new checkpoint, so the copy would have another
//! one than the log itself.

use super::canonical::canonical_line;
use super::database::Part;
use super::parts::{REPORT, join};
use super::{
    CHAINS, CaseFindings, CaseSpan, Chain, ChainName, DatabaseError, Document, Entry,
    EvidenceDatabase, Files, Hash, Head, HeadProof, Keys, NotACase, OpenLog, VerifyKey, examine,
    manifest, merkle, named_proof, named_twice, proofs, read_logs, report, tar, text_of, time_text,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// Entries that a case may have.
const MAX_ENTRIES: u64 = 500_000;
/// So many entries before the span are taken to reach the robots.txt that the crawler was served
/// before it.
const MAX_BEFORE: u64 = 10_000;

/// Why there is no case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The log cannot be read.
    #[error("cannot read the evidence log: {0}")]
    Database(#[from] DatabaseError),
    /// Nothing was recorded.
    #[error(
        "the evidence log has nothing of crawler `{crawler}` on site `{site}` in this time; it has: {known}"
    )]
    Nothing {
        /// The crawler.
        crawler: String,
        /// The site.
        site: String,
        /// The chains that there are.
        known: String,
    },
    /// There is too much.
    #[error(
        "the case would have more than {MAX_ENTRIES} entries; choose a shorter time with --from and --to"
    )]
    TooLarge,
    /// A checkpoint in the log cannot be read.
    #[error("the evidence log is damaged: checkpoint {0} cannot be read")]
    Checkpoint(u64),
    /// The notes about changes of the key do not fit together.
    #[error("the evidence log is damaged: its changes of the key cannot be read")]
    Keys,
    /// A file to join is no case.
    #[error(transparent)]
    NotACase(#[from] NotACase),
    /// A log to join has no key.
    #[error("log {0} of it has no key that can be read")]
    NoKey(usize),
    /// The logs are about something else, or one is there twice.
    #[error("the logs are not of one case: {0}")]
    Other(String),
}

/// Takes a case from the log: all files but the report and the manifest, and whether the log has an
/// entry of the crawler in this time. A checkpoint is made now, unless there is one after the end
/// of the span. If the log deleted the beginning of the span, the checkpoints go up to now, because
/// the entry that says so is later than the span ends.
fn export(log: &mut OpenLog, span: &CaseSpan, now: SystemTime) -> Result<(Files, bool), CaseError> {
    let names = CaseSpan::chains(&span.site, &span.crawler);
    // Where the log deleted the beginning, it says so later than the span ends.
    let to = if lacks_beginning(&log.database, span, &names)? {
        now.max(span.to)
    } else {
        span.to
    };
    let checkpoints = cover(log, &CaseSpan { to, ..span.clone() }, now)?;
    let key = log.key.verify_key();
    let database = &log.database;
    let last = checkpoints.last().map_or(0, |(number, _)| *number);
    let (spans, has_crawler) = spans(database, span, &names, &database.heads(last)?)?;
    let mut files = Files::new();
    let mut put = |path: &str, bytes: Vec<u8>| files.insert(path.to_owned(), bytes);
    let mut named = Named::default();
    for ((path, name), span) in CHAINS.iter().zip(&names).zip(&spans) {
        put(
            path,
            chain_text(database, name, span, &mut named)?.into_bytes(),
        );
    }
    let (chain, numbers) = &spans[0];
    let earlier: Vec<u64> = named.proofs.range(..numbers.start).copied().collect();
    let mut proofs = String::new();
    for number in earlier {
        proofs.push_str(&chain_text(
            database,
            &names[0],
            &(*chain, number..number + 1),
            &mut named,
        )?);
    }
    put(proofs::FILE, proofs.into_bytes());
    put("personal.jsonl", named.personal.into_bytes());
    let about = json!({
        "crawler": span.crawler, "site": span.site, "from": time_text(span.from), "to": time_text(span.to),
        "log": key.name, "made": time_text(now), "software": concat!("crawlgate ", env!("CARGO_PKG_VERSION")),
        "format": 1,
    });
    put("case.json", canonical_line(&about).into_bytes());
    put("key.vkey", format!("{}\n", key.line()).into_bytes());
    put("key.pem", key.pem().into_bytes());
    for (number, note) in (1..).zip(database.key_notes()?) {
        put(&format!("keys/{number:06}.note"), note.into_bytes());
    }
    for (number, note) in checkpoints {
        let proofs = canonical_line(&head_proofs(&database.heads(number)?, &names));
        put(
            &format!("checkpoints/{number:06}.json"),
            proofs.into_bytes(),
        );
        put(&format!("checkpoints/{number:06}.note"), note.into_bytes());
        for (place, (_, response)) in database.timestamps(number)?.into_iter().enumerate() {
            put(&format!("timestamps/{number:06}-{place}.tsr"), response);
        }
    }
    for document in named.documents {
        if let Some(bytes) = database.document(document.hash)? {
            put(&document.path(), bytes);
        }
    }
    Ok((files, has_crawler))
}

/// The error that a log has nothing of the crawler. It names the crawlers and sites that the log
/// has.
fn nothing(database: &EvidenceDatabase, span: &CaseSpan) -> Result<CaseError, DatabaseError> {
    let names = database
        .chains()?
        .into_iter()
        .map(|chain| chain.head.chain)
        .filter(|name| !name.crawler.is_empty());
    let known: BTreeSet<String> = names
        .map(|name| format!("{} on {}", name.crawler, name.site))
        .collect();
    let known = if known.is_empty() {
        "nothing".to_owned()
    } else {
        Vec::from_iter(known).join(", ")
    };
    Ok(CaseError::Nothing {
        crawler: span.crawler.clone(),
        site: span.site.clone(),
        known,
    })
}

/// The checkpoints of a span, as numbers and signed notes, from the last one before it to the first
/// one after its end. If the log has none after the end, one is made now.
///
/// # Errors
/// The log cannot be read or written.
pub fn cover(
    log: &mut OpenLog,
    span: &CaseSpan,
    now: SystemTime,
) -> Result<Vec<(u64, String)>, CaseError> {
    let OpenLog { key, database, .. } = log;
    let from = time_text(span.from);
    let to = time_text(span.to);
    let checkpoints = database.checkpoints(&from, &to)?;
    let notes = database.key_notes()?;
    let keys = Keys::read(&key.verify_key(), notes.iter().map(String::as_str))
        .map_err(|_| CaseError::Keys)?;
    if let Some((number, note)) = checkpoints.last() {
        let last = keys.checkpoint(note);
        if last.ok_or(CaseError::Checkpoint(*number))?.time >= to {
            return Ok(checkpoints);
        }
    }
    let moment = time_text(now);
    database.write(|log| log.checkpoint(key, &moment))?;
    Ok(database.checkpoints(&from, &to)?)
}

/// Whether the log deleted entries of one of the chains that the span may have needed: its oldest
/// kept entry is not the first of the chain, and is not from before the span's beginning.
fn lacks_beginning(
    database: &EvidenceDatabase,
    span: &CaseSpan,
    names: &[ChainName; 3],
) -> Result<bool, DatabaseError> {
    for (name, since) in names.iter().zip(CaseSpan::beginnings(span.from)) {
        let Some(chain) = database.chain(name)? else {
            continue;
        };
        if chain.first > 0 && database.first_since(chain.id, &since)? == Some(chain.first) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The part of each chain that the case takes, and whether the crawler did anything in this time. A
/// part ends with the head of the last checkpoint (`heads`). It begins before its time, if the log
/// has earlier entries, so that nobody can say that its beginning was cut off: with the last entry
/// of its kind (`served`, `published`, `start`) if that is 10,000 entries before at most, else one
/// entry before. A chain that is not there has an empty part.
fn spans(
    database: &EvidenceDatabase,
    span: &CaseSpan,
    names: &[ChainName; 3],
    heads: &[Head],
) -> Result<([Part; 3], bool), CaseError> {
    let mut found = [(0, 0..0), (0, 0..0), (0, 0..0)];
    let mut has_crawler = false;
    for (place, (kind, since)) in ["served", "published", "start"]
        .into_iter()
        .zip(CaseSpan::beginnings(span.from))
        .enumerate()
    {
        let head = heads.iter().find(|head| head.chain == names[place]);
        let (Some(head), Some(chain)) = (head, database.chain(&names[place])?) else {
            continue;
        };
        let Chain { id, first, .. } = chain;
        let begins = database
            .first_since(id, &since)?
            .unwrap_or(head.entries)
            .min(head.entries);
        if place == 0 {
            has_crawler = begins < head.entries
                && database
                    .first_since(id, &time_text(span.to))?
                    .is_none_or(|end| end > begins);
        }
        let before = database
            .last_before(id, kind, begins + 1)?
            .filter(|before| begins - before <= MAX_BEFORE);
        let before = before.unwrap_or(begins).min(begins.saturating_sub(1));
        found[place] = (id, before.max(first).min(head.entries)..head.entries);
    }
    let entries: u64 = found
        .iter()
        .map(|(_, numbers)| numbers.end - numbers.start)
        .sum();
    if entries > MAX_ENTRIES {
        Err(CaseError::TooLarge)
    } else {
        Ok((found, has_crawler))
    }
}

/// What belongs to the entries of a case.
#[derive(Default)]
struct Named {
    documents: BTreeSet<Document>,
    /// The numbers of proofs.
    proofs: BTreeSet<u64>,
    /// The personal values, a line each.
    personal: String,
}

/// The lines of a part of a chain, as a file of the case. Adds to `named` what the entries name:
/// documents, proofs and personal values.
fn chain_text(
    database: &EvidenceDatabase,
    chain: &ChainName,
    part: &Part,
    named: &mut Named,
) -> Result<String, DatabaseError> {
    let mut text = String::new();
    database.lines(part, |line| {
        if let Some(entry) = Entry::read(line) {
            named.documents.extend(Document::all_of(&entry));
            named
                .proofs
                .extend(named_proof(&entry).map(|(number, _)| number));
        }
        text.push_str(line);
        text.push('\n');
    })?;
    named
        .personal
        .extend(database.personal(chain, part)?.iter().map(canonical_line));
    Ok(text)
}

/// For each of these chains that a checkpoint covers: its head, and the path that proves that it
/// belongs to the checkpoint's root. `heads` are all heads of the checkpoint.
fn head_proofs(heads: &[Head], names: &[ChainName]) -> Vec<HeadProof> {
    let leaves: Vec<Hash> = heads.iter().map(Head::leaf).collect();
    let mut proofs = Vec::new();
    for name in names {
        if let Some(place) = heads.iter().position(|head| head.chain == *name) {
            proofs.push(HeadProof {
                head: heads[place].clone(),
                place,
                path: merkle::path(&leaves, place),
            });
        }
    }
    proofs
}

/// A log of a case that another machine exported.
pub struct Joined {
    files: Files,
    key: VerifyKey,
}

/// The logs of a case that was exported elsewhere. Their keys are taken from the case. A third
/// party that verifies the case uses the keys that it got from the operator.
///
/// # Errors
/// The file is no case.
pub fn read_joined(archive: &[u8]) -> Result<Vec<Joined>, CaseError> {
    let mut joined = Vec::new();
    for (number, files) in (1..).zip(read_logs(archive)?) {
        let key = text_of(&files, "key.vkey").and_then(|key| VerifyKey::parse(key).ok());
        joined.push(Joined {
            key: key.ok_or(CaseError::NoKey(number))?,
            files,
        });
    }
    Ok(joined)
}

/// The bytes of a case with the logs of this machine and those that were exported elsewhere
/// (`joined`), and what its check finds. May add a checkpoint to the logs. One log of several may
/// have nothing of the crawler.
///
/// # Errors
/// See [`CaseError`]; `Nothing` only without `joined`.
pub fn write_case(
    logs: &mut [OpenLog],
    joined: Vec<Joined>,
    span: &CaseSpan,
    now: SystemTime,
) -> Result<(Vec<u8>, CaseFindings), CaseError> {
    let mut parts = Vec::new();
    let mut alone = CaseFindings::default();
    let mut has_crawler = !joined.is_empty();
    for log in &mut *logs {
        let (mut files, has_own) = export(log, span, now)?;
        let key = log.key.verify_key();
        has_crawler |= has_own;
        alone = CaseFindings::of(examine(&[(&files, &key)]));
        files.insert(REPORT.to_owned(), report::page(&alone).into_bytes());
        manifest::add(&mut files, &log.key);
        parts.push(Joined { files, key });
    }
    // One log of several may have nothing of the crawler: it says so.
    if !has_crawler && let Some(log) = logs.first() {
        return Err(nothing(&log.database, span)?);
    }
    parts.extend(joined);
    let findings = match parts.as_slice() {
        [_] => alone,
        several => CaseFindings::of(examine(
            &several
                .iter()
                .map(|part| (&part.files, &part.key))
                .collect::<Vec<_>>(),
        )),
    };
    are_of_one_case(&findings)?;
    let files = parts.into_iter().map(|part| part.files).collect();
    let archive = tar::write(&join(files, report::page(&findings)));
    Ok((archive, findings))
}

/// Refuses logs of different crawlers or sites, and a log that is there twice.
fn are_of_one_case(findings: &CaseFindings) -> Result<(), CaseError> {
    let Some(first) = findings.logs.first() else {
        return Ok(());
    };
    for log in &findings.logs {
        if (&log.site, &log.crawler) != (&first.site, &first.crawler) {
            let other = format!(
                "one is about {} on {}, one about {} on {}",
                first.crawler, first.site, log.crawler, log.site
            );
            return Err(CaseError::Other(other));
        }
    }
    named_twice(&findings.logs).map_or(Ok(()), |log| {
        Err(CaseError::Other(format!("the log {log} is there twice")))
    })
}
