//! [`Version`]: the id of a robots.txt, which is a hash of its bytes. crawlgate uses it to record
//! which file a host published and which file a crawler may have cached.

use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The identity of the bytes of a robots.txt: the first 8 bytes of their SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub [u8; 8]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

impl Version {
    /// The version that these bytes are.
    pub fn of(body: &[u8]) -> Version {
        let mut first = [0; 8];
        first.copy_from_slice(&Sha256::digest(body)[..8]);
        Version(first)
    }

    /// The bytes as a number, the first of them the highest.
    pub fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

/// A text that is no version: not 16 hexadecimal digits.
#[derive(Debug, PartialEq, Eq)]
pub struct MalformedVersion;

impl FromStr for Version {
    type Err = MalformedVersion;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<Version, MalformedVersion> {
        match u64::from_str_radix(text, 16) {
            Ok(number) if text.len() == 16 => Ok(Version(number.to_be_bytes())),
            _ => Err(MalformedVersion),
        }
    }
}
