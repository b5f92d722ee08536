//! [`Checkpoint`]: the heads of all chains at a moment, as C2SP `tlog-checkpoint` writes it: origin, number of leaves, root. Three
//! lines follow: its number, the hash of the checkpoint before it, and its time. Each leaf is the [`Head`] of a chain.

use super::canonical::{Hash, canonical};
use super::entry::ChainName;
use super::merkle;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

/// The head of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The chain.
    pub chain: ChainName,
    /// How many entries it has had.
    pub entries: u64,
    /// The hash of the last one.
    pub hash: Hash,
}

impl Head {
    /// The octets of the leaf.
    pub fn text(&self) -> String {
        let Head { chain, entries, hash } = self;
        canonical(&json!({"chain": chain.value(), "entries": entries, "head": hash.to_string()}))
    }

    /// The leaf.
    pub fn leaf(&self) -> Hash {
        merkle::leaf(self.text().as_bytes())
    }
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log, which is that of its key.
    pub origin: String,
    /// Chains.
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
        let Checkpoint { origin, leaves, root, number, previous, time } = self;
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
        let head = Head { chain: ChainName::of_site("shop"), entries: 3, hash: Hash::NONE };
        let checkpoint = Checkpoint {
            origin: "crawlgate-evidence-0123456789abcdef".into(),
            leaves: 1,
            root: merkle::root(&[head.leaf()]),
            number: 7,
            previous: Hash::NONE,
            time: "2026-11-23T06:00:00.000Z".into(),
        };
        assert_eq!(Checkpoint::read(&checkpoint.text()), Some(checkpoint.clone()));
        assert_eq!(Checkpoint::read(&checkpoint.text().replace("number 7", "number 07")), None);
        assert_eq!(Checkpoint::read(&format!("{}more\n", checkpoint.text())), None);
    }
}
