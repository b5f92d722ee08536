//! [`Checkpoint`]: a signed summary of the evidence log. The log consists of hash chains, in which
//! each entry has the hash of the entry before it. A checkpoint has the root of a Merkle tree over
//! the last entries ([`ChainHead`]s) of all chains. So whoever has the checkpoint notices if an
//! earlier entry is changed. The text of a checkpoint has the three lines of C2SP `tlog-checkpoint`
//! (origin, number of leaves, root). Three more lines follow: the number of the checkpoint, the
//! hash of the previous checkpoint, and the time.

use super::{ChainName, Hash, canonical_json, merkle};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// The last entry of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainHead {
    pub chain: ChainName,
    /// How many entries the chain has had.
    pub entries: u64,
    /// The hash of the last entry.
    #[serde(rename = "head")]
    pub hash: Hash,
}

impl ChainHead {
    /// The leaf in the Merkle tree of a checkpoint.
    pub fn leaf_hash(&self) -> Hash {
        merkle::leaf_hash(canonical_json(self).as_bytes())
    }
}

/// A head with its inclusion proof, as in a case.
#[derive(Serialize, Deserialize)]
pub struct HeadProof {
    #[serde(flatten)]
    pub head: ChainHead,
    /// The index of the leaf.
    pub place: usize,
    /// The inclusion path.
    pub path: Vec<Hash>,
}

/// The content of a checkpoint. Its text is signed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The name of the log's key.
    pub origin: String,
    /// How many chains it covers.
    pub leaves: usize,
    /// The root of the Merkle tree.
    pub root: Hash,
    /// Its number, from 0.
    pub number: u64,
    /// The hash of the signed note before it; zeros before the first.
    pub previous: Hash,
    /// When it was made.
    pub time: String,
}

impl Checkpoint {
    pub fn to_text(&self) -> String {
        let Checkpoint {
            origin,
            leaves,
            root,
            number,
            previous,
            time,
        } = self;
        let root = BASE64.encode(root.0);
        format!("{origin}\n{leaves}\n{root}\nnumber {number}\nprevious {previous}\ntime {time}\n")
    }

    /// Accepts only what [`Checkpoint::to_text`] writes.
    pub fn parse(text: &str) -> Option<Checkpoint> {
        let mut lines = text.lines();
        let checkpoint = Checkpoint {
            origin: lines.next()?.to_owned(),
            leaves: lines.next()?.parse().ok()?,
            root: Hash::from_bytes(&BASE64.decode(lines.next()?).ok()?)?,
            number: lines.next()?.strip_prefix("number ")?.parse().ok()?,
            previous: Hash::parse(lines.next()?.strip_prefix("previous ")?)?,
            time: lines.next()?.strip_prefix("time ")?.to_owned(),
        };
        (checkpoint.to_text() == text).then_some(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_has_one_spelling() {
        let head = ChainHead {
            chain: ChainName::of_site("shop"),
            entries: 3,
            hash: Hash::ZERO,
        };
        let checkpoint = Checkpoint {
            origin: "crawlgate-evidence-0123456789abcdef".into(),
            leaves: 1,
            root: merkle::tree_root(&[head.leaf_hash()]),
            number: 7,
            previous: Hash::ZERO,
            time: "2026-11-23T06:00:00.000Z".into(),
        };
        assert_eq!(
            Checkpoint::parse(&checkpoint.to_text()),
            Some(checkpoint.clone())
        );
        assert_eq!(
            Checkpoint::parse(&checkpoint.to_text().replace("number 7", "number 07")),
            None
        );
        assert_eq!(
            Checkpoint::parse(&format!("{}more\n", checkpoint.to_text())),
            None
        );
    }
}
