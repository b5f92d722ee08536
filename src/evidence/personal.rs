//! Personal values of entries. An entry has the [`commitment`] to a value: the SHA-256 of a fresh salt and the value. Salt and
//! value are stored beside it. Once these are deleted, the entry still verifies, and nobody can find the value by trying: the
//! salt has 128 bits.

use super::{ChainName, Entry, Hash};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which value: the chain, the number of the entry, and the name of the value.
pub type PersonalKey = (ChainName, u64, String);

/// Values of a case.
pub type Personal = BTreeMap<PersonalKey, String>;

/// A value of an entry.
pub fn value_of<'p>(personal: &'p Personal, entry: &Entry, name: &str) -> Option<&'p str> {
    personal.get(&(entry.chain.clone(), entry.number, name.to_owned())).map(String::as_str)
}

/// A value as a line of a case.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// The salt of a value.
pub type Salt = [u8; 16];

/// No random numbers can be had from the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandom;

/// A fresh salt.
///
/// # Errors
/// The operating system gives no random numbers.
pub fn fresh_salt() -> Result<Salt, NoRandom> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).map_err(|_| NoRandom)?;
    Ok(salt)
}

/// The commitment of an entry to a value.
pub fn commitment(salt: &[u8], value: &str) -> Hash {
    Hash::of(&[salt, value.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_never_has_the_same_commitment() {
        let [one, other] = [fresh_salt(), fresh_salt()].map(|salt| salt.expect("a salt"));
        assert_ne!(commitment(&one, "203.0.113.5"), commitment(&other, "203.0.113.5"));
        assert_eq!(commitment(&one, "203.0.113.5"), commitment(&one, "203.0.113.5"));
    }
}
