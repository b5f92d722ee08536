//! [`Hash`]: a SHA-256 sum. It identifies files, lists of networks and entries of logs, and is
//! always written as lower-case hexadecimal digits.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256 sum, serialized as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Stands for the entry before the first one of a chain.
    pub const ZERO: Hash = Hash([0; 32]);

    /// The sum of these pieces, joined without a separator.
    pub fn digest(pieces: &[&[u8]]) -> Hash {
        let mut digest = Sha256::new();
        pieces.iter().for_each(|piece| digest.update(piece));
        Hash(digest.finalize().into())
    }

    /// Its first 16 hexadecimal digits.
    pub fn short_hex(&self) -> String {
        hex(&self.0[..8])
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Hash> {
        Some(Hash(parse_hex(text)?.try_into().ok()?))
    }

    /// A sum of 32 bytes; `None` for any other number.
    pub fn from_bytes(bytes: &[u8]) -> Option<Hash> {
        Some(Hash(bytes.try_into().ok()?))
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Hash, &'static str> {
        Hash::parse(&text).ok_or("this is no SHA-256 sum")
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hex(&hash.0)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses the output of [`hex`]. `None` for upper-case digits, other characters, and an odd number
/// of digits.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(hex_digit_value(*high)? << 4 | hex_digit_value(*low)?))
        .collect()
}

/// The value of a lower-case hexadecimal digit.
fn hex_digit_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_has_one_spelling() {
        let hash = Hash::digest(&[b"a", b"bc"]);
        assert_eq!(
            hash.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse(&hash.to_string().to_uppercase()), None);
        assert_eq!(Hash::parse("é".repeat(32).as_str()), None);
    }
}
