//! [`EvidenceEntry`]: an entry of the evidence log, written as one line of canonical JSON. The
//! entries form hash chains: `previous` in an entry is the SHA-256 of the line before it.
//! [`parse_chain`] checks a range of a chain.
//!
//! An entry refers to a robots.txt, or to a list of a crawler's networks or keys, by its SHA-256
//! ([`DocumentRef`]). A personal value, such as the address of a client, is stored outside the
//! entry. The entry has only a salted hash of the value ([`commitment`]). So the value can be
//! deleted, and the entry can still be verified.

use super::canonical::parse_canonical;
use super::{Hash, canonical_json};
use crate::finding::Finding;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The name of a hash chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChainName {
    /// The site; empty for the chain of the log itself.
    pub site: String,
    /// The crawler's label; empty for the publications of a site.
    pub crawler: String,
}

impl ChainName {
    /// The chain about the log itself: runs, gaps and key changes.
    pub fn of_log() -> ChainName {
        ChainName::default()
    }

    /// The chain of a site's publications.
    pub fn of_site(site: &str) -> ChainName {
        ChainName::of_crawler(site, "")
    }

    /// The chain of a crawler on a site.
    pub fn of_crawler(site: &str, crawler: &str) -> ChainName {
        ChainName {
            site: site.to_owned(),
            crawler: crawler.to_owned(),
        }
    }
}

/// An entry of the evidence log.
#[derive(Debug, Serialize, Deserialize)]
pub struct EvidenceEntry {
    pub chain: ChainName,
    /// The name of the log's key.
    pub log: String,
    /// Its number in the chain, from 0.
    pub number: u64,
    /// The hash of the line before it; zeros before the first.
    pub previous: Hash,
    /// When it was written: RFC 3339 with milliseconds, UTC. Never decreases in a chain.
    pub time: String,
    /// `request`, `served`, `published`, ...
    pub kind: String,
    pub data: Map<String, Value>,
    /// The commitments to personal values, by name.
    pub personal: BTreeMap<String, Hash>,
}

impl EvidenceEntry {
    pub fn to_line(&self) -> String {
        canonical_json(self)
    }

    /// Accepts only what [`EvidenceEntry::to_line`] writes, with a valid time.
    pub fn parse(line: &str) -> Option<EvidenceEntry> {
        parse_canonical(line).filter(|entry: &EvidenceEntry| parse_time(&entry.time).is_some())
    }

    /// The hash of its line.
    pub fn hash(&self) -> Hash {
        line_hash(&self.to_line())
    }

    /// A string in the data; `None` if it is missing or of another type.
    pub fn data_text(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// Since when the log has all entries, if this entry of the chain of the log says so: it is the
    /// first one, or one about a deletion.
    pub fn complete_since(&self) -> Option<SystemTime> {
        let first = (self.number == 0).then_some(self.time.as_str());
        self.data_text("before").or(first).and_then(parse_time)
    }

    pub fn text_or_empty(&self, name: &str) -> String {
        self.data_text(name).unwrap_or_default().to_owned()
    }

    /// An unsigned number in the data; 0 if it is missing or of another type.
    pub fn number_or_zero(&self, name: &str) -> u64 {
        self.data
            .get(name)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }

    /// The strings of a list in the data; empty if it is missing.
    pub fn data_texts(&self, name: &str) -> Vec<&str> {
        self.data
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

pub fn line_hash(line: &str) -> Hash {
    Hash::digest(&[line.as_bytes()])
}

/// A time as entries write it. These texts sort by time.
pub fn format_time(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Accepts only what [`format_time`] writes.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let time = SystemTime::from(chrono::DateTime::parse_from_rfc3339(text).ok()?);
    (format_time(time) == text).then_some(time)
}

/// A reference to an entry of a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryRef {
    pub number: u64,
    /// The hash of its line.
    #[serde(rename = "sha256")]
    pub hash: Hash,
}

/// Parses consecutive lines of one chain, and checks that each follows the line before it by chain,
/// log, number, hash and time. The first line may have any number; the text may be empty.
///
/// # Errors
/// The first fault.
pub fn parse_chain(text: &str) -> Result<Vec<EvidenceEntry>, Finding> {
    let mut entries: Vec<EvidenceEntry> = Vec::new();
    let mut hash = Hash::ZERO;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(Finding::new("chain-cut-off", "the last line is cut off"));
    }
    for (place, line) in text.split_terminator('\n').enumerate() {
        entries.push(
            parse_next_entry(line, entries.last(), hash)
                .map_err(|(id, fault)| Finding::new(id, format!("line {} {fault}", place + 1)))?,
        );
        hash = line_hash(line);
    }
    Ok(entries)
}

/// Parses a line that follows an entry with this hash. The error is the id of the fault, and the end
/// of a sentence about the line.
fn parse_next_entry(
    line: &str,
    before: Option<&EvidenceEntry>,
    hash: Hash,
) -> Result<EvidenceEntry, (&'static str, &'static str)> {
    let changed = (
        "entry-changed",
        "does not follow the line before it: one of the two was changed",
    );
    let entry = EvidenceEntry::parse(line).ok_or(("no-entry", "is not an entry"))?;
    if let Some(before) = before {
        if before.chain != entry.chain || before.log != entry.log {
            return Err((
                "entry-of-other-chain",
                "belongs to another chain or another log",
            ));
        }
        if before.number.checked_add(1) != Some(entry.number) {
            return Err((
                "entry-number",
                "does not have the next number: entries were removed, added or moved",
            ));
        }
        if hash != entry.previous {
            return Err(changed);
        }
        if before.time > entry.time {
            return Err(("entry-time", "has an earlier time than the line before it"));
        }
    } else if entry.number == 0 && entry.previous != hash {
        return Err(changed);
    }
    Ok(entry)
}

/// The files of a case's three chains.
pub const CHAIN_FILES: [&str; 3] = [
    "chains/crawler.jsonl",
    "chains/site.jsonl",
    "chains/log.jsonl",
];

/// A file that an entry names by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentRef {
    /// Whether it is a list of networks or keys; else a robots.txt.
    pub is_list: bool,
    pub hash: Hash,
}

impl DocumentRef {
    /// The robots.txt files that an entry names, then the lists.
    pub fn named_by(entry: &EvidenceEntry) -> Vec<DocumentRef> {
        named_robots_files(entry)
            .into_iter()
            .map(|hash| DocumentRef {
                is_list: false,
                hash,
            })
            .chain(named_lists(entry).into_iter().map(|(_, list)| list))
            .collect()
    }

    /// Its path in a case.
    pub fn case_path(&self) -> String {
        if self.is_list {
            format!("lists/{}", self.hash)
        } else {
            format!("robots/{}.txt", self.hash)
        }
    }
}

/// The SHA-256 sums of the robots.txt files that an entry names: the one in `sha256`, and those in
/// `cached_sha256`.
pub fn named_robots_files(entry: &EvidenceEntry) -> Vec<Hash> {
    entry
        .data_text("sha256")
        .into_iter()
        .chain(entry.data_texts("cached_sha256"))
        .filter_map(Hash::parse)
        .collect()
}

/// The lists that a `proof` entry names, as JSON. Empty for other entries.
fn lists(entry: &EvidenceEntry) -> impl Iterator<Item = &Value> {
    entry
        .data
        .get("lists")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether a `proof` entry rests on a file that the site supplied itself.
pub fn has_supplied_list(entry: &EvidenceEntry) -> bool {
    lists(entry).any(|list| list["obtained"] == "directory")
}

/// The lists that a `proof` entry names, each with its URL, how the site got its copy, and when it
/// checked it. Empty for other entries.
pub fn named_lists(entry: &EvidenceEntry) -> Vec<(String, DocumentRef)> {
    let named = lists(entry).filter_map(|list| {
        let text = |name: &str| list.get(name).and_then(Value::as_str);
        let hash = Hash::parse(text("sha256")?)?;
        let source = text("source")?;
        let checked = text("checked").unwrap_or("?");
        let copy = match text("obtained") {
            Some("directory") => "from a file that the site supplied, dated",
            Some("mirror") => "from a mirror that the site chose, checked",
            _ => "as the site kept it, checked",
        };
        Some((
            format!("{source}, {copy} {checked}"),
            DocumentRef {
                is_list: true,
                hash,
            },
        ))
    });
    named.collect()
}

/// The `proof` entry of the same chain that an entry refers to.
pub fn named_proof(entry: &EvidenceEntry) -> Option<EntryRef> {
    EntryRef::deserialize(entry.data.get("proof_entry")?).ok()
}

/// The chain, the number of the entry, and the name of the value.
pub type PersonalValueKey = (ChainName, u64, String);

/// The personal values of a case.
pub type PersonalValues = BTreeMap<PersonalValueKey, String>;

/// `None` if the value was deleted or never recorded.
pub fn personal_value<'p>(
    personal: &'p PersonalValues,
    entry: &EvidenceEntry,
    name: &str,
) -> Option<&'p str> {
    personal
        .get(&(entry.chain.clone(), entry.number, name.to_owned()))
        .map(String::as_str)
}

/// The client's address, or its network if the entry has no more.
pub fn client_text(personal: &PersonalValues, entry: &EvidenceEntry) -> Option<String> {
    let client = personal_value(personal, entry, "client")?;
    let length = match entry.data_text("address") {
        Some("network") if client.contains(':') => "/48",
        Some("network") => "/24",
        _ => "",
    };
    Some(format!("{client}{length}"))
}

/// A personal value as a line of a case.
#[derive(Serialize, Deserialize)]
pub struct PersonalValueLine {
    pub chain: ChainName,
    /// The number of the entry.
    pub number: u64,
    pub name: String,
    /// In hexadecimal digits.
    pub salt: String,
    pub value: String,
}

/// The SHA-256 of a random salt and a personal value, which the entry has in place of the value. The
/// salt has 128 bits: after it is deleted, the value cannot be found by trying.
pub fn commitment(salt: &[u8], value: &str) -> Hash {
    Hash::digest(&[salt, value.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::note::random_bytes;
    use proptest::prelude::*;
    use serde_json::json;

    /// The lines of a chain.
    fn chain_text(entries: u64) -> String {
        let mut previous = Hash::ZERO;
        let mut text = String::new();
        for number in 0..entries {
            let data = json!({"target": format!("/{number}"), "status": 403});
            let entry = EvidenceEntry {
                chain: ChainName::of_crawler("shop", "gptbot"),
                log: "0123456789abcdef".into(),
                number,
                previous,
                time: format!("2026-11-23T06:00:{:02}.000Z", number % 60),
                kind: "request".into(),
                data: data.as_object().cloned().unwrap_or_default(),
                personal: [("client".to_owned(), Hash::digest(&[&number.to_be_bytes()]))].into(),
            };
            previous = line_hash(&entry.to_line());
            text.push_str(&entry.to_line());
            text.push('\n');
        }
        text
    }

    fn head_of_text(text: &str) -> Option<(u64, Hash)> {
        parse_chain(text)
            .ok()?
            .last()
            .map(|entry| (entry.number, entry.hash()))
    }

    fn text_lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn join_lines(lines: &[String]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn unchanged_chain_is_accepted() {
        assert_eq!(
            parse_chain(&chain_text(50)).map(|entries| entries.len()),
            Ok(50)
        );
        let from_the_middle = join_lines(&text_lines(&chain_text(50))[20..]);
        assert_eq!(
            head_of_text(&from_the_middle),
            head_of_text(&chain_text(50))
        );
    }

    proptest! {
        #[test]
        fn changed_byte_is_detected(place in 0usize..5_000, change in 1u8..=255) {
            let text = chain_text(8);
            let mut bytes = text.clone().into_bytes();
            let place = place % bytes.len();
            bytes[place] ^= change;
            let changed = String::from_utf8(bytes).ok();
            prop_assert!(changed.and_then(|changed| head_of_text(&changed)) != head_of_text(&text));
        }

        #[test]
        fn removed_entry_is_detected(place in 0usize..10) {
            let mut all = text_lines(&chain_text(10));
            all.remove(place);
            // Without its first entry it is a shorter span with the same head; that it begins later
            // shows in its number.
            let found = parse_chain(&join_lines(&all));
            match place {
                0 => prop_assert_eq!(found.map(|entries| entries[0].number), Ok(1)),
                9 => prop_assert_ne!(head_of_text(&join_lines(&all)), head_of_text(&chain_text(10))),
                _ => prop_assert_eq!(found.expect_err("a fault").id, "entry-number"),
            }
        }

        #[test]
        fn reordered_entries_are_detected(one in 0usize..10, other in 0usize..10) {
            prop_assume!(one != other);
            let mut all = text_lines(&chain_text(10));
            all.swap(one, other);
            prop_assert!(parse_chain(&join_lines(&all)).is_err());
        }

        #[test]
        fn added_entry_is_detected(place in 0usize..10) {
            let mut all = text_lines(&chain_text(10));
            let copy = all[place].clone();
            all.insert(place, copy);
            prop_assert!(parse_chain(&join_lines(&all)).is_err());
        }
    }

    #[test]
    fn back_dated_entry_is_detected() {
        let text = chain_text(3);
        let mut all = text_lines(&text);
        let before = EvidenceEntry::parse(&all[1]).expect("an entry");
        let mut forged = EvidenceEntry::parse(&all[2]).expect("an entry");
        forged.time = "2026-11-23T05:00:00.000Z".into();
        forged.previous = line_hash(&before.to_line());
        all[2] = forged.to_line();
        let fault = parse_chain(&join_lines(&all)).expect_err("a fault");
        assert_eq!(fault.id, "entry-time");
    }

    #[test]
    fn entry_with_unknown_field_is_rejected() {
        let line = text_lines(&chain_text(1)).remove(0);
        let more = line.replace("\"kind\":", "\"extra\":1,\"kind\":");
        assert!(EvidenceEntry::parse(&line).is_some() && EvidenceEntry::parse(&more).is_none());
    }

    #[test]
    fn same_value_has_different_commitments() {
        let [one, other] = [random_bytes::<16>(), random_bytes()].map(|salt| salt.expect("a salt"));
        assert_ne!(
            commitment(&one, "203.0.113.5"),
            commitment(&other, "203.0.113.5")
        );
        assert_eq!(
            commitment(&one, "203.0.113.5"),
            commitment(&one, "203.0.113.5")
        );
    }
}
