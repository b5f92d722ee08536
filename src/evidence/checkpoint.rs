//! [`Checkpoint`]: a summary of the evidence log, which the log's key signs. It covers the last
//! entries (heads) of all hash chains of the log by a Merkle tree, in which each leaf is the
//! [`Head`] of a chain. Its text has the format of C2SP `tlog-checkpoint` (origin, number of
//! leaves, root) and three more lines: its number, the hash of the checkpoint before it, and its
//! time.

use super::{ChainName, Hash, canonical, merkle};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// The head of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The chain.
    pub chain: ChainName,
    /// How many entries it has had.
    pub entries: u64,
    /// The hash of the last one.
    #[serde(rename = "head")]
    pub hash: Hash,
}

impl Head {
    /// The leaf of the Merkle tree.
    pub fn leaf(&self) -> Hash {
        merkle::leaf(canonical(self).as_bytes())
    }
}

/// A head with the path that proves it, as it stands in a case.
#[derive(Serialize, Deserialize)]
pub struct HeadProof {
    /// The head.
    #[serde(flatten)]
    pub head: Head,
    /// The place of the leaf.
    pub place: usize,
    /// The path to the root.
    pub path: Vec<Hash>,
}

/// What a checkpoint says; its text is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log, which is that of its key.
    pub origin: String,
    /// How many chains it covers.
    pub leaves: usize,
    /// The root over their heads.
    pub root: Hash,
    /// Its number, from 0.
    pub number: u64,
    /// The hash of the signed note before it; zeros before the first.
    pub previous: Hash,
    /// When it was made.
    pub time: String,
}

impl Checkpoint {
    /// The text.
    pub fn text(&self) -> String {
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

    /// Reads what [`Checkpoint::text`] writes, and nothing else.
    pub fn read(text: &str) -> Option<Checkpoint> {
        let mut lines = text.lines();
        let checkpoint = Checkpoint {
            origin: lines.next()?.to_owned(),
            leaves: lines.next()?.parse().ok()?,
            root: Hash::from_octets(&BASE64.decode(lines.next()?).ok()?)?,
            number: lines.next()?.strip_prefix("number ")?.parse().ok()?,
            previous: Hash::parse(lines.next()?.strip_prefix("previous ")?)?,
            time: lines.next()?.strip_prefix("time ")?.to_owned(),
        };
        (checkpoint.text() == text).then_some(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_has_one_spelling() {
        let head = Head {
            chain: ChainName::of_site("shop"),
            entries: 3,
            hash: Hash::NONE,
        };
        let checkpoint = Checkpoint {
            origin: "crawlgate-evidence-0123456789abcdef".into(),
            leaves: 1,
            root: merkle::root(&[head.leaf()]),
            number: 7,
            previous: Hash::NONE,
            time: "2026-11-23T06:00:00.000Z".into(),
        };
        assert_eq!(
            Checkpoint::read(&checkpoint.text()),
            Some(checkpoint.clone())
        );
        assert_eq!(
            Checkpoint::read(&checkpoint.text().replace("number 7", "number 07")),
            None
        );
        assert_eq!(
            Checkpoint::read(&format!("{}more\n", checkpoint.text())),
            None
        );
    }
}
