//! JSON in the one spelling that hashes are made of: keys sorted, no blanks, whole numbers, as RFC 8785 writes them. The main
//! types are [`Hash`] and the functions [`canonical`] and [`read_canonical`]. Must not know what the values are for.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256 sum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What stands before the first entry of a chain.
    pub const NONE: Hash = Hash([0; 32]);

    /// The sum of these octets, one piece after the other.
    pub fn of(pieces: &[&[u8]]) -> Hash {
        let mut digest = Sha256::new();
        pieces.iter().for_each(|piece| digest.update(piece));
        Hash(digest.finalize().into())
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Hash> {
        Some(Hash(parse_hex(text)?.try_into().ok()?))
    }

    /// Reads 32 octets.
    pub fn from_octets(octets: &[u8]) -> Option<Hash> {
        Some(Hash(octets.try_into().ok()?))
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

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Octets as lower-case hexadecimal digits.
pub fn hex(octets: &[u8]) -> String {
    let mut text = String::with_capacity(2 * octets.len());
    for octet in octets {
        text.push(char::from(DIGITS[usize::from(octet >> 4)]));
        text.push(char::from(DIGITS[usize::from(octet & 0xf)]));
    }
    text
}

/// Reads what [`hex`] writes. Upper-case digits are another spelling, so they are refused.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}

/// The one spelling of a value.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            // Sorted here: a dependency may switch serde_json to the order of insertion.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|one, other| one.0.encode_utf16().cmp(other.0.encode_utf16()));
            text.push('{');
            for (place, (key, item)) in sorted.into_iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write(&Value::from(key.as_str()), text);
                text.push(':');
                write(item, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

/// Text that is no JSON in its one spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no JSON in its canonical spelling")]
pub struct NotCanonical;

/// Reads what [`canonical`] writes, and nothing else. So two texts never stand for one value.
///
/// # Errors
/// The text is no JSON, or another spelling of it.
pub fn read_canonical(text: &str) -> Result<Value, NotCanonical> {
    let value: Value = serde_json::from_str(text).map_err(|_| NotCanonical)?;
    if canonical(&value) == text { Ok(value) } else { Err(NotCanonical) }
}

#[cfg(test)]
mod tests {
    use super::{Hash, canonical, read_canonical};
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_escapes_are_minimal() {
        let value = json!({"b": [1, {"z": null, "a": true}], "a": "\"\\\n\u{7f}\u{1}é/"});
        assert_eq!(canonical(&value), "{\"a\":\"\\\"\\\\\\n\u{7f}\\u0001é/\",\"b\":[1,{\"a\":true,\"z\":null}]}");
    }

    #[test]
    fn another_spelling_is_refused() {
        assert!(read_canonical("{\"a\":1}").is_ok());
        for other in ["{\"a\": 1}", "{\"a\":1,\"a\":1}", "{\"b\":1,\"a\":1}", "\"\\u0041\"", "1 ", ""] {
            assert!(read_canonical(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_hash_has_one_spelling() {
        let hash = Hash::of(&[b"a", b"bc"]);
        assert_eq!(hash.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse(&hash.to_string().to_uppercase()), None);
        assert_eq!(Hash::parse("é".repeat(32).as_str()), None);
    }
}
