//! [`export`] takes a case from the log: what the log says of one crawler on one site in a span of time, as files. A case has
//! whole spans of three chains (of the crawler, the site and the log), so a missing entry in the middle is noticed.

use super::canonical::canonical_line;
use super::database::PersonalValue;
use super::{
    CHAINS, Chain, ChainName, DatabaseError, Document, Entry, EvidenceDatabase, Files, Hash, Head, HeadProof, Keys,
    OpenLog, PersonalLine, Rows, hex, merkle, named_proof, proofs, time_text,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// Entries that a case may have.
const MOST_ENTRIES: u64 = 500_000;
/// So many entries before the span are taken to reach the robots.txt that the crawler was served before it.
const MOST_BEFORE: u64 = 10_000;
/// No crawler uses a copy for longer: publications from so long before are part of a case.
const LONGEST_COPY: Duration = Duration::from_secs(32 * 86_400);

/// What a case is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSpan {
    /// The site.
    pub site: String,
    /// The crawler's label.
    pub crawler: String,
    /// From this moment.
    pub from: SystemTime,
    /// Until this moment.
    pub to: SystemTime,
}

impl CaseSpan {
    /// The three chains, in the order of [`CHAINS`].
    pub fn chains(site: &str, crawler: &str) -> [ChainName; 3] {
        [ChainName::of_crawler(site, crawler), ChainName::of_site(site), ChainName::of_log()]
    }

    /// Since when a case has each of the three chains.
    pub fn beginnings(from: SystemTime) -> [String; 3] {
        let published_since = from.checked_sub(LONGEST_COPY).unwrap_or(SystemTime::UNIX_EPOCH);
        [from, published_since, published_since].map(time_text)
    }
}

/// Why there is no case.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The log cannot be read.
    #[error("cannot read the evidence log: {0}")]
    Database(#[from] DatabaseError),
    /// Nothing was recorded.
    #[error("the evidence log has nothing of crawler `{crawler}` on site `{site}` in this time; it has: {known}")]
    Nothing {
        /// The crawler.
        crawler: String,
        /// The site.
        site: String,
        /// The chains that there are.
        known: String,
    },
    /// There is too much.
    #[error("the case would have more than {MOST_ENTRIES} entries; choose a shorter time with --from and --to")]
    TooLarge,
    /// A checkpoint in the log cannot be read.
    #[error("the evidence log is damaged: checkpoint {0} cannot be read")]
    Checkpoint(u64),
    /// The notes about changes of the key do not fit together.
    #[error("the evidence log is damaged: its changes of the key cannot be read")]
    Keys,
}

/// What was taken from a log.
pub struct Exported {
    /// All files but the report and the manifest.
    pub files: Files,
    /// Whether the log has an entry of the crawler in this time.
    pub has_crawler: bool,
}

/// Takes a case from the log. The last checkpoint is made now, unless there is one after the end of the span.
///
/// # Errors
/// See [`ExportError`].
pub fn export(log: &mut OpenLog, span: &CaseSpan, now: SystemTime) -> Result<Exported, ExportError> {
    let names = CaseSpan::chains(&span.site, &span.crawler);
    // Where the log deleted the beginning, it says so later than the span ends.
    let to = if lacks_beginning(&log.database, span, &names)? { now.max(span.to) } else { span.to };
    let checkpoints = cover(log, &CaseSpan { to, ..span.clone() }, now)?;
    let (key, database) = (log.key.verify_key(), &log.database);
    let last = checkpoints.last().map_or(0, |(number, _)| *number);
    let (spans, has_crawler) = spans(database, span, &names, &database.heads(last)?)?;
    let mut files = Files::new();
    let mut put = |path: &str, bytes: Vec<u8>| files.insert(path.to_owned(), bytes);
    let (mut named, mut personal) = (Named::default(), String::new());
    for ((path, name), span) in CHAINS.iter().zip(&names).zip(&spans) {
        put(path, chain_text(database, span, &mut named)?.into_bytes());
        personal.push_str(&personal_text(database, name, span)?);
    }
    let (chain, numbers) = &spans[0];
    let earlier: Vec<u64> = named.proofs.range(..numbers.start).copied().collect();
    let mut proofs = String::new();
    for number in earlier {
        let span = (*chain, number..number + 1);
        proofs.push_str(&chain_text(database, &span, &mut named)?);
        personal.push_str(&personal_text(database, &names[0], &span)?);
    }
    put(proofs::FILE, proofs.into_bytes());
    put("personal.jsonl", personal.into_bytes());
    let about = json!({
        "crawler": span.crawler, "site": span.site, "from": time_text(span.from), "to": time_text(span.to),
        "log": key.name(), "made": time_text(now), "software": concat!("crawlgate ", env!("CARGO_PKG_VERSION")),
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
        put(&format!("checkpoints/{number:06}.json"), proofs.into_bytes());
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
    Ok(Exported { files, has_crawler })
}

/// The error that a log has nothing of the crawler.
pub fn nothing(database: &EvidenceDatabase, span: &CaseSpan) -> ExportError {
    let known = match database.chains() {
        Ok(known) => known,
        Err(error) => return error.into(),
    };
    let names = known.into_iter().map(|chain| chain.head.chain).filter(|name| !name.crawler.is_empty());
    let known: BTreeSet<String> = names.map(|name| format!("{} on {}", name.crawler, name.site)).collect();
    let known = if known.is_empty() { "nothing".to_owned() } else { Vec::from_iter(known).join(", ") };
    ExportError::Nothing { crawler: span.crawler.clone(), site: span.site.clone(), known }
}

/// The checkpoints of a span. The last one is not from before the end of the span: if the log has no such checkpoint, it is
/// made now.
///
/// # Errors
/// The log cannot be read or written.
pub fn cover(log: &mut OpenLog, span: &CaseSpan, now: SystemTime) -> Result<Vec<(u64, String)>, ExportError> {
    let OpenLog { key, database, .. } = log;
    let (from, to) = (time_text(span.from), time_text(span.to));
    let checkpoints = database.checkpoints(&from, &to)?;
    let notes = database.key_notes()?;
    let keys = Keys::read(&key.verify_key(), notes.iter().map(String::as_str)).map_err(|_| ExportError::Keys)?;
    let last_time = |(number, note): &(u64, String)| {
        keys.checkpoint(note).map(|last| last.time).ok_or(ExportError::Checkpoint(*number))
    };
    if checkpoints.last().map(last_time).transpose()?.is_some_and(|last| last >= to) {
        return Ok(checkpoints);
    }
    let moment = time_text(now);
    database.write(|log| log.checkpoint(key, &moment))?;
    Ok(database.checkpoints(&from, &to)?)
}

/// Whether the log lacks entries of the beginning of a chain.
fn lacks_beginning(
    database: &EvidenceDatabase,
    span: &CaseSpan,
    names: &[ChainName; 3],
) -> Result<bool, DatabaseError> {
    for (name, since) in names.iter().zip(CaseSpan::beginnings(span.from)) {
        let Some(chain) = database.chain(name)? else { continue };
        if chain.first > 0 && database.first_since(chain.id, &since)? == Some(chain.first) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The part of a chain that a case has: row and numbers. A chain that is not there yet has none.
type Part = (i64, Range<u64>);

/// The parts, and whether the crawler did anything in this time. Each part begins with an entry from before its time, if the
/// log has one: so it shows that its beginning was not cut off.
fn spans(
    database: &EvidenceDatabase,
    span: &CaseSpan,
    names: &[ChainName; 3],
    heads: &[Head],
) -> Result<([Part; 3], bool), ExportError> {
    let (mut found, mut has_crawler) = ([(0, 0..0), (0, 0..0), (0, 0..0)], false);
    for (place, (kind, since)) in
        ["served", "published", "start"].into_iter().zip(CaseSpan::beginnings(span.from)).enumerate()
    {
        let head = heads.iter().find(|head| head.chain == names[place]);
        let (Some(head), Some(chain)) = (head, database.chain(&names[place])?) else { continue };
        let Chain { id, first, .. } = chain;
        let begins = database.first_since(id, &since)?.unwrap_or(head.entries).min(head.entries);
        if place == 0 {
            has_crawler =
                begins < head.entries && database.first_since(id, &time_text(span.to))?.is_none_or(|end| end > begins);
        }
        let before = database.last_before(id, kind, begins + 1)?.filter(|before| begins - before <= MOST_BEFORE);
        let before = before.unwrap_or(begins).min(begins.saturating_sub(1));
        found[place] = (id, before.max(first).min(head.entries)..head.entries);
    }
    let entries: u64 = found.iter().map(|(_, numbers)| numbers.end - numbers.start).sum();
    if entries > MOST_ENTRIES { Err(ExportError::TooLarge) } else { Ok((found, has_crawler)) }
}

/// What the entries of a case name.
#[derive(Default)]
struct Named {
    documents: BTreeSet<Document>,
    /// The numbers of proofs.
    proofs: BTreeSet<u64>,
}

/// The lines of a part of a chain; `named` gets what they name.
fn chain_text(database: &EvidenceDatabase, part: &Part, named: &mut Named) -> Result<String, DatabaseError> {
    let mut text = String::new();
    database.lines(part.0, part.1.clone(), |line| {
        if let Some(entry) = Entry::read(line) {
            named.documents.extend(Document::all_of(&entry));
            named.proofs.extend(named_proof(&entry).map(|(number, _)| number));
        }
        text.push_str(line);
        text.push('\n');
    })?;
    Ok(text)
}

/// The personal values of a part of a chain, a line each.
fn personal_text(database: &EvidenceDatabase, chain: &ChainName, part: &Part) -> Result<String, DatabaseError> {
    let values = database.personal(part.0, part.1.clone())?.into_iter();
    let line = |PersonalValue { number, name, salt, value }| {
        canonical_line(&PersonalLine { chain: chain.clone(), number, name, salt: hex(&salt), value })
    };
    Ok(values.map(line).collect())
}

/// The paths that prove the heads of some chains.
fn head_proofs(heads: &[Head], names: &[ChainName]) -> Vec<HeadProof> {
    let leaves: Vec<Hash> = heads.iter().map(Head::leaf).collect();
    let of = |name: &ChainName| {
        let place = heads.iter().position(|head| head.chain == *name)?;
        let Head { chain, entries, hash: head } = heads[place].clone();
        Some(HeadProof { chain, entries, head, place, path: merkle::path(&leaves, place) })
    };
    names.iter().filter_map(of).collect()
}
