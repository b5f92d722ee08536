//! [`RobotsVersionId`]: the id of one robots.txt, a hash of its bytes. By this id crawlgate
//! remembers which robots.txt a host published, and which robots.txt a crawler may still have in
//! its cache.

use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The id of a robots.txt: the first 8 bytes of its SHA-256, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RobotsVersionId(pub [u8; 8]);

impl fmt::Display for RobotsVersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.as_u64())
    }
}

impl RobotsVersionId {
    /// The id of these bytes.
    pub fn from_body(body: &[u8]) -> RobotsVersionId {
        let mut first = [0; 8];
        first.copy_from_slice(&Sha256::digest(body)[..8]);
        RobotsVersionId(first)
    }

    /// The id as a number, big-endian.
    pub fn as_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

/// The error is for a text that is not 16 hexadecimal digits.
impl FromStr for RobotsVersionId {
    type Err = ();

    fn from_str(text: &str) -> Result<RobotsVersionId, ()> {
        match u64::from_str_radix(text, 16) {
            Ok(number) if text.len() == 16 => Ok(RobotsVersionId(number.to_be_bytes())),
            _ => Err(()),
        }
    }
}
