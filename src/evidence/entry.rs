//! [`Entry`]: one record of the evidence log, as one line of canonical JSON. The lines form hash
//! chains: each line has the SHA-256 of the line before it as `previous`. [`read_chain`] reads a
//! span of a chain and finds entries that were changed.
//!
//! A [`Document`] is a robots.txt or a list that entries name by its SHA-256. [`Personal`] values,
//! such as the address of a client, are stored beside their entry. The entry itself has only a
//! [`commitment`] (a salted hash) to each, so it still verifies when the values are deleted.

use super::canonical::read_canonical;
use super::{Hash, canonical};
use crate::finding::Finding;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The name of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChainName {
    /// The site; empty for the chain of the log itself.
    pub site: String,
    /// The crawler's label; empty for the publications of a site.
    pub crawler: String,
}

impl ChainName {
    /// The chain that says when crawlgate ran, and what the log lacks.
    pub fn of_log() -> ChainName {
        ChainName::default()
    }

    /// The publications of a site.
    pub fn of_site(site: &str) -> ChainName {
        ChainName::of_crawler(site, "")
    }

    /// What a crawler did on a site.
    pub fn of_crawler(site: &str, crawler: &str) -> ChainName {
        ChainName {
            site: site.to_owned(),
            crawler: crawler.to_owned(),
        }
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its chain.
    pub chain: ChainName,
    /// The id of the log.
    pub log: String,
    /// Its place in the chain, from 0.
    pub number: u64,
    /// The hash of the line before it; zeros before the first.
    pub previous: Hash,
    /// When it was written: RFC 3339 with milliseconds, UTC. Never before the entry before it.
    pub time: String,
    /// `request`, `served`, `published`, ...
    pub kind: String,
    /// What it says.
    pub data: Map<String, Value>,
    /// Commitments to personal values, by their name.
    pub personal: BTreeMap<String, Hash>,
}

impl Entry {
    /// The line.
    pub fn line(&self) -> String {
        canonical(self)
    }

    /// Reads a line. `None` unless it is exactly the line that [`Entry::line`] writes of an entry,
    /// with a valid time.
    pub fn read(line: &str) -> Option<Entry> {
        read_canonical(line).filter(|entry: &Entry| parse_time(&entry.time).is_some())
    }

    /// The text of this name in its data; `None` if there is none, or it is no text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.data.get(name)?.as_str()
    }

    /// As [`Entry::text`], empty where there is none.
    pub fn said(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    /// The number of this name in its data; 0 if there is none, or it is no whole number from 0.
    pub fn number_of(&self, name: &str) -> u64 {
        self.data
            .get(name)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }

    /// The texts of the list of this name in its data. Empty without a list; items that are no
    /// texts are left out.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let items = self.data.get(name).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

/// The hash of a line.
pub fn hash_of(line: &str) -> Hash {
    Hash::of(&[line.as_bytes()])
}

/// A moment as entries write it. Their order as texts is their order in time.
pub fn time_text(time: SystemTime) -> String {
    chrono::DateTime::<chrono::Utc>::from(time).to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Reads a moment as entries write it. `None` for every other spelling of a time.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    let time = SystemTime::from(chrono::DateTime::parse_from_rfc3339(text).ok()?);
    (time_text(time) == text).then_some(time)
}

/// An entry with the hash of its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The entry.
    pub entry: Entry,
    /// The hash.
    pub hash: Hash,
}

/// Reads the lines of a span of one chain, and checks that each has the chain, log, number, hash
/// and time that follow the line before it. Its first line is not tied to one before it; if its
/// number is 0, it must name none. An empty text is an empty span.
///
/// # Errors
/// The first fault.
pub fn read_chain(text: &str) -> Result<Vec<Link>, Finding> {
    let mut links: Vec<Link> = Vec::new();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(Finding::new("chain-cut-off", "the last line is cut off"));
    }
    for (place, line) in text.split_terminator('\n').enumerate() {
        let link = next_link(line, links.last())
            .map_err(|(id, fault)| Finding::new(id, format!("line {} {fault}", place + 1)))?;
        links.push(link);
    }
    Ok(links)
}

/// Reads a line that follows an entry. The error is the id of the fault, and the rest of a sentence
/// about the line.
fn next_link(line: &str, before: Option<&Link>) -> Result<Link, (&'static str, &'static str)> {
    let changed = (
        "entry-changed",
        "was not written after the line before it: one of both was changed",
    );
    let entry = Entry::read(line).ok_or(("no-entry", "is no entry"))?;
    if let Some(Link {
        entry: before,
        hash,
    }) = before
    {
        if before.chain != entry.chain || before.log != entry.log {
            return Err((
                "entry-of-other-chain",
                "belongs to another chain or another log",
            ));
        }
        if before.number.checked_add(1) != Some(entry.number) {
            return Err((
                "entry-number",
                "does not have the number that follows: entries were removed, added or moved",
            ));
        }
        if *hash != entry.previous {
            return Err(changed);
        }
        if before.time > entry.time {
            return Err(("entry-time", "has a time before that of the line before it"));
        }
    } else if entry.number == 0 && entry.previous != Hash::NONE {
        return Err(changed);
    }
    Ok(Link {
        hash: hash_of(line),
        entry,
    })
}

/// The files of the three chains.
pub const CHAINS: [&str; 3] = [
    "chains/crawler.jsonl",
    "chains/site.jsonl",
    "chains/log.jsonl",
];

/// A file that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Document {
    /// Whether it is a list of networks or keys; else it is a robots.txt.
    pub is_list: bool,
    /// Its SHA-256.
    pub hash: Hash,
}

impl Document {
    /// The documents that an entry names: robots.txt files, then lists.
    pub fn all_of(entry: &Entry) -> Vec<Document> {
        let robots = named_documents(entry).into_iter().map(|hash| Document {
            is_list: false,
            hash,
        });
        robots
            .chain(named_lists(entry).into_iter().map(|(_, list)| list))
            .collect()
    }

    /// Its path in a case.
    pub fn path(&self) -> String {
        if self.is_list {
            format!("lists/{}", self.hash)
        } else {
            format!("robots/{}.txt", self.hash)
        }
    }
}

/// The SHA-256 sums of the robots.txt files that an entry names: the one in `sha256`, and those in
/// `held_sha256`.
pub fn named_documents(entry: &Entry) -> Vec<Hash> {
    let hashes = entry
        .text("sha256")
        .into_iter()
        .chain(entry.texts("held_sha256"));
    hashes.filter_map(Hash::parse).collect()
}

/// The lists that a `proof` entry names: pairs of the place where the list is published, and the
/// document. Empty for other entries.
pub fn named_lists(entry: &Entry) -> Vec<(&str, Document)> {
    let lists = entry
        .data
        .get("lists")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let named = lists.filter_map(|list| {
        let hash = Hash::parse(list.get("sha256")?.as_str()?)?;
        Some((
            list.get("source")?.as_str()?,
            Document {
                is_list: true,
                hash,
            },
        ))
    });
    named.collect()
}

/// The `proof` entry of the same chain that an entry names: its number and the hash of its line.
pub fn named_proof(entry: &Entry) -> Option<(u64, Hash)> {
    let place = entry.data.get("proof_entry")?;
    Some((
        place.get("number")?.as_u64()?,
        Hash::parse(place.get("sha256")?.as_str()?)?,
    ))
}

/// Which value: the chain, the number of the entry, and the name of the value.
pub type PersonalKey = (ChainName, u64, String);

/// Values of a case.
pub type Personal = BTreeMap<PersonalKey, String>;

/// The personal value of an entry with this name; `None` if it was deleted or never there.
pub fn value_of<'p>(personal: &'p Personal, entry: &Entry, name: &str) -> Option<&'p str> {
    personal
        .get(&(entry.chain.clone(), entry.number, name.to_owned()))
        .map(String::as_str)
}

/// A value as a line of a case.
#[derive(Serialize, Deserialize)]
pub struct PersonalLine {
    /// The chain.
    pub chain: ChainName,
    /// The number of the entry.
    pub number: u64,
    /// The name of the value.
    pub name: String,
    /// The salt in hexadecimal digits.
    pub salt: String,
    /// The value.
    pub value: String,
}

/// What an entry has in place of a personal value: the SHA-256 of a fresh salt and the value. Salt
/// and value are stored beside the entry. Once these are deleted, the entry still verifies, and no
/// one can find the value by trying: the salt has 128 bits.
pub fn commitment(salt: &[u8], value: &str) -> Hash {
    Hash::of(&[salt, value.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::note::random;
    use proptest::prelude::*;
    use serde_json::json;

    /// A chain of so many entries as a text.
    fn chain(entries: u64) -> String {
        let mut previous = Hash::NONE;
        let mut text = String::new();
        for number in 0..entries {
            let data = json!({"target": format!("/{number}"), "status": 403});
            let entry = Entry {
                chain: ChainName::of_crawler("shop", "gptbot"),
                log: "0123456789abcdef".into(),
                number,
                previous,
                time: format!("2026-11-23T06:00:{:02}.000Z", number % 60),
                kind: "request".into(),
                data: data.as_object().cloned().unwrap_or_default(),
                personal: [("client".to_owned(), Hash::of(&[&number.to_be_bytes()]))].into(),
            };
            previous = hash_of(&entry.line());
            text.push_str(&entry.line());
            text.push('\n');
        }
        text
    }

    /// What somebody would compare with the head in a checkpoint.
    fn head(text: &str) -> Option<(u64, Hash)> {
        read_chain(text)
            .ok()?
            .last()
            .map(|link| (link.entry.number, link.hash))
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn joined(lines: &[String]) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_whole_chain_holds() {
        assert_eq!(read_chain(&chain(50)).map(|links| links.len()), Ok(50));
        let from_the_middle = joined(&lines(&chain(50))[20..]);
        assert_eq!(head(&from_the_middle), head(&chain(50)));
    }

    proptest! {
        #[test]
        fn each_changed_octet_is_noticed(place in 0usize..5_000, change in 1u8..=255) {
            let text = chain(8);
            let mut octets = text.clone().into_bytes();
            let place = place % octets.len();
            octets[place] ^= change;
            let changed = String::from_utf8(octets).ok();
            prop_assert!(changed.and_then(|changed| head(&changed)) != head(&text));
        }

        #[test]
        fn a_removed_entry_is_noticed(place in 0usize..10) {
            let mut all = lines(&chain(10));
            all.remove(place);
            // Without its first entry it is a shorter span with the same head; that it begins later
            // shows in its number.
            let found = read_chain(&joined(&all));
            match place {
                0 => prop_assert_eq!(found.map(|links| links[0].entry.number), Ok(1)),
                9 => prop_assert_ne!(head(&joined(&all)), head(&chain(10))),
                _ => prop_assert_eq!(found.expect_err("a fault").id, "entry-number"),
            }
        }

        #[test]
        fn entries_in_another_order_are_noticed(one in 0usize..10, other in 0usize..10) {
            prop_assume!(one != other);
            let mut all = lines(&chain(10));
            all.swap(one, other);
            prop_assert!(read_chain(&joined(&all)).is_err());
        }

        #[test]
        fn an_added_entry_is_noticed(place in 0usize..10) {
            let mut all = lines(&chain(10));
            let copy = all[place].clone();
            all.insert(place, copy);
            prop_assert!(read_chain(&joined(&all)).is_err());
        }
    }

    #[test]
    fn a_back_dated_entry_is_noticed() {
        let text = chain(3);
        let mut all = lines(&text);
        let before = Entry::read(&all[1]).expect("an entry");
        let mut forged = Entry::read(&all[2]).expect("an entry");
        forged.time = "2026-11-23T05:00:00.000Z".into();
        forged.previous = hash_of(&before.line());
        all[2] = forged.line();
        let fault = read_chain(&joined(&all)).expect_err("a fault");
        assert_eq!(fault.id, "entry-time");
    }

    #[test]
    fn an_entry_with_a_field_more_is_none() {
        let line = lines(&chain(1)).remove(0);
        let more = line.replace("\"kind\":", "\"extra\":1,\"kind\":");
        assert!(Entry::read(&line).is_some() && Entry::read(&more).is_none());
    }

    #[test]
    fn the_same_value_never_has_the_same_commitment() {
        let [one, other] = [random::<16>(), random()].map(|salt| salt.expect("a salt"));
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
