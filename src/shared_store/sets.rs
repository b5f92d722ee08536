//! Facts as fields of a hash, and large sets read in parts.

use crate::exchange::{Fact, StoreError};
use redis::{Connection, FromRedisValue, RedisResult};
use std::fmt;

/// How many members are asked for at once: a server does nothing else meanwhile.
const PART: usize = 1_000;

/// Reads a set or hash in parts.
pub(super) fn scan<T: FromRedisValue>(
    connection: &mut Connection,
    command: &str,
    key: &str,
    matching: Option<&str>,
) -> RedisResult<Vec<T>> {
    let (mut cursor, mut all) = (0u64, Vec::new());
    loop {
        let mut ask = redis::cmd(command);
        ask.arg(key).arg(cursor).arg("COUNT").arg(PART);
        if let Some(pattern) = matching {
            ask.arg("MATCH").arg(pattern);
        }
        let (next, part): (u64, Vec<T>) = ask.query(connection)?;
        all.extend(part);
        if next == 0 {
            return Ok(all);
        }
        cursor = next;
    }
}

/// A fact with a value, as it stands in the hash.
pub(super) fn write_fact(fact: &Fact) -> String {
    format!("{} {}", fact.at, fact.value)
}

/// The same, read.
pub(super) fn read_fact(key: String, written: &str) -> Result<Fact, StoreError> {
    let read = written.split_once(' ').and_then(|(at, value)| Some((at.parse().ok()?, value.to_owned())));
    let (at, value) = read.ok_or_else(|| StoreError::Newer(cannot_read(&format!("the fact `{key}`"))))?;
    Ok(Fact { key, at, value })
}

pub(super) fn cannot_read(what: &impl fmt::Display) -> String {
    format!(
        "another crawlgate wrote what this one cannot read ({what}); crawlgate accuses nobody meanwhile. Run the same version \
         on all instances"
    )
}
