//! [`Document`]: a robots.txt or a list that entries name by its SHA-256, and its path in a case. [`named_proof`] reads which
//! proof an entry names.

use super::{Entry, Hash};
use serde_json::Value;

/// The files of the three chains.
pub const CHAINS: [&str; 3] = ["chains/crawler.jsonl", "chains/site.jsonl", "chains/log.jsonl"];

/// A file that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Document {
    /// Whether it is a list of networks or keys; else it is a robots.txt.
    pub is_list: bool,
    /// Its SHA-256.
    pub hash: Hash,
}

impl Document {
    /// The documents that an entry names.
    pub fn all_of(entry: &Entry) -> Vec<Document> {
        let robots = named_documents(entry).into_iter().map(|hash| Document { is_list: false, hash });
        let lists = named_lists(entry);
        robots.chain(lists.into_iter().map(|(_, hash)| Document { is_list: true, hash })).collect()
    }

    /// Its path in a case.
    pub fn path(&self) -> String {
        match self.is_list {
            true => format!("lists/{}", self.hash),
            false => format!("robots/{}.txt", self.hash),
        }
    }
}

/// The robots.txt files that an entry names.
pub fn named_documents(entry: &Entry) -> Vec<Hash> {
    let hashes = entry.text("sha256").into_iter().chain(entry.texts("held_sha256"));
    hashes.filter_map(Hash::parse).collect()
}

/// The lists that a proof names: where each is published, and its SHA-256.
pub fn named_lists(entry: &Entry) -> Vec<(&str, Hash)> {
    let lists = entry.data.get("lists").and_then(Value::as_array).into_iter().flatten();
    let named = |list: &Value| Hash::parse(list.get("sha256")?.as_str()?);
    lists.filter_map(|list| Some((list.get("source")?.as_str()?, named(list)?))).collect()
}

/// The proof that an entry names: its number and the hash of its line.
pub fn named_proof(entry: &Entry) -> Option<(u64, Hash)> {
    let place = entry.data.get("proof_entry")?;
    Some((place.get("number")?.as_u64()?, Hash::parse(place.get("sha256")?.as_str()?)?))
}
