//! Implements the trait [`ExchangeStore`] (the store that several crawlgate instances share) for
//! [`SharedStore`], with Redis commands. The table of all keys is in the module `exchange::store`.
//! [`EncodedCounts`] are the request counts of one instance in one period, for dashboards. Each
//! period has a Redis hash, with a field for each instance.

use super::connection::{EPOCH_PREFIX, KEYS, SharedStore, refuse_eviction};
use super::redis_connection::RedisConnection;
use crate::exchange::codec::is_key_of;
use crate::exchange::store::MAX_CLIENT_FACTS;
use crate::exchange::{
    ExchangeStore, LogEntry, LogPosition, LogReadResult, Member, SharedFact, StoreBatch,
    StoreContents, StoreError, StoreIdentity,
};
use crate::facts::ClientMark;
use redis::{FromRedisValue, InfoDict, Pipeline, RedisResult, Value, cmd, pipe};
use std::collections::HashMap;
use std::fmt;

/// The log keeps at least this many entries. Redis deletes whole nodes beyond it.
const MIN_LOG_LENGTH: usize = 20_000;
/// Log entries of one read. With 2,000 facts each they are below the limit of
/// [`RedisConnection`].
const MAX_ENTRIES_PER_READ: usize = 25;
/// Seconds after which a key expires that no instance renews: 40 days, longer than facts are kept.
const KEY_EXPIRY: i64 = 40 * 86_400;
/// Seconds after which the expiry of a key is renewed. A renewal touches the key, and so aborts
/// transactions of peers that watch it, such as the announcement of a robots.txt.
const RENEW_EXPIRY_AFTER: i64 = 86_400;
/// How often a transaction is tried that was aborted because the epoch was touched.
const MAX_WRITE_ATTEMPTS: usize = 4;

/// Instances in the hash of a period. Further instances are missing in the sums.
const MAX_INSTANCES: usize = 256;

/// An entry of a stream as Redis returns it: its id and its fields.
type RawLogEntry = (String, HashMap<String, String>);

impl ExchangeStore for SharedStore {
    /// Writes the epoch if there is none, renews the expiry of the keys, and reads identity, time
    /// and eviction policy.
    fn identity(&mut self, founding: &str) -> Result<(StoreIdentity, i64), StoreError> {
        let keys = KEYS.map(|(name, _)| self.key_name(name));
        let (identity, time, info) = self.with_connection(|connection| {
            let mut pipeline = pipe();
            pipeline.cmd("INFO").arg("memory").cmd("SET").arg((
                &keys[0],
                format!("{EPOCH_PREFIX}{founding}"),
                "NX",
            ));
            pipeline.cmd("GET").arg(&keys[0]).cmd("TIME");
            for key in &keys {
                pipeline.cmd("TTL").arg(key);
            }
            let mut answers: Vec<Value> = connection.query_all(&pipeline)?;
            let times_left = answers.split_off(4);
            let mut renewals = pipe();
            for (key, left) in keys.iter().zip(times_left) {
                // It is -1 for a key without an end, and -2 for one that is not there.
                let left = i64::from_redis_value(left)?;
                if left == -1 || (0..KEY_EXPIRY - RENEW_EXPIRY_AFTER).contains(&left) {
                    renewals.cmd("EXPIRE").arg((key, KEY_EXPIRY));
                }
            }
            let () = connection.query_all(&renewals)?;
            let (info, (), epoch, (seconds, micros)): (InfoDict, (), Option<String>, (i64, i64)) =
                FromRedisValue::from_redis_value(Value::Array(answers))?;
            Ok((
                connection.identity(epoch),
                seconds * 1_000 + micros / 1_000,
                info,
            ))
        })?;
        // Operators change it while the store runs (`CONFIG SET`).
        refuse_eviction(&info, &self.settings.url)?;
        Ok((identity, time))
    }

    /// Writes the batch in one transaction that watches the epoch. Tries four times in all if the
    /// epoch is touched meanwhile.
    fn write(
        &mut self,
        expected: &StoreIdentity,
        batch: &StoreBatch,
    ) -> Result<Option<LogPosition>, StoreError> {
        let epoch = self.key_name("epoch");
        let pipeline = self.build_pipeline(batch);
        let has_entry = batch.entry.is_some();
        self.with_connection(|connection| {
            for _ in 0..MAX_WRITE_ATTEMPTS {
                let mut watch = pipe();
                watch.cmd("WATCH").arg(&epoch).cmd("GET").arg(&epoch);
                let ((), found): ((), Option<String>) = connection.query_all(&watch)?;
                if connection.identity(found) != *expected {
                    let () = connection.query(&cmd("UNWATCH"))?;
                    return Ok(None);
                }
                // Otherwise the epoch was touched in between, and may be the same.
                let answers: Option<Vec<Value>> = connection.query_all(&pipeline)?;
                if let Some(mut answers) = answers {
                    let Some(last) = answers.pop().filter(|_| has_entry) else {
                        return Ok(Some(LogPosition::default()));
                    };
                    let position = String::from_redis_value(last)?;
                    return Ok(position.try_into().ok());
                }
            }
            // The next turn reads the identity again.
            Ok(None)
        })
    }

    /// Reads up to 25 entries after a position. `entries` is `None` if the entry at the position is
    /// not in the log any more.
    fn read(&mut self, after: LogPosition) -> Result<LogReadResult, StoreError> {
        let [epoch, log] = ["epoch", "log"].map(|name| self.key_name(name));
        let mut pipeline = pipe();
        pipeline.atomic().cmd("GET").arg(&epoch);
        pipeline.cmd("XREVRANGE").arg((&log, "+", "-", "COUNT", 1));
        pipeline.cmd("XRANGE").arg((
            &log,
            after.to_string(),
            "+",
            "COUNT",
            MAX_ENTRIES_PER_READ + 1,
        ));
        let (identity, newest, raw) = self.with_connection(|connection| {
            let (epoch, newest, raw): (_, Vec<RawLogEntry>, Vec<RawLogEntry>) =
                connection.query_all(&pipeline)?;
            Ok((connection.identity(epoch), newest, raw))
        })?;
        let mut newest = newest.into_iter();
        let last = newest.next().map(|(place, _)| parse_position(place));
        let mut raw = raw.into_iter();
        let first = raw.next().map(|(place, _)| parse_position(place));
        let is_there = first.transpose()? == Some(after);
        let entries = is_there.then(|| raw.map(parse_entry).collect::<Result<_, StoreError>>());
        Ok(LogReadResult {
            identity,
            last: last.transpose()?.unwrap_or_default(),
            entries: entries.transpose()?,
        })
    }

    /// Reads all facts except robots.txt files, and all members, in parts.
    fn read_sets(&mut self) -> Result<StoreContents, StoreError> {
        let [served, clients, facts] =
            ["served", "clients", "facts"].map(|name| self.key_name(name));
        let (events, facts) = self.with_connection(|connection| {
            let mut events: Vec<(String, f64)> = scan_all(connection, "ZSCAN", &served, "*")?;
            events.append(&mut scan_all(connection, "ZSCAN", &clients, "*")?);
            let facts: Vec<(String, String)> = scan_all(connection, "HSCAN", &facts, "[^v]*")?;
            Ok((events, facts))
        })?;
        // Scores are whole seconds, which a double represents exactly.
        let events = events.into_iter().map(|(key, at)| SharedFact {
            key,
            at: at as i64,
            value: String::new(),
        });
        let facts = events.map(Ok).chain(
            facts
                .into_iter()
                .map(|(key, written)| parse_fact(key, &written)),
        );
        Ok(StoreContents {
            facts: facts.collect::<Result<_, StoreError>>()?,
            members: self.read_members()?,
        })
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        let members = self.key_name("members");
        let members: HashMap<String, String> =
            self.with_connection(|connection| connection.query(cmd("HGETALL").arg(&members)))?;
        members.values().map(|written| read_json(written)).collect()
    }

    /// Reads the facts with these keys. Those that are not there are left out.
    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        let facts = self.key_name("facts");
        let written: Vec<Option<String>> = self
            .with_connection(|connection| connection.query(cmd("HMGET").arg(&facts).arg(keys)))?;
        keys.iter()
            .zip(written)
            .filter_map(|(key, written)| Some(parse_fact(key.clone(), &written?)))
            .collect()
    }
}

/// The request counts of an instance in one period, as stored.
pub struct EncodedCounts {
    /// The name of the period: its length and beginning.
    pub period: String,
    /// The counts as JSON.
    pub value: String,
    /// For how many seconds from now the counts of the period are kept.
    pub kept: u64,
}

/// The calls fail with a [`StoreError`].
impl SharedStore {
    /// Returns whether an instance has stored counts of a period.
    pub fn has_counts(&mut self, period: &str, instance: &str) -> Result<bool, StoreError> {
        let key = self.counts_key(period);
        self.with_connection(|connection| connection.query(cmd("HEXISTS").arg((&key, instance))))
    }

    /// Stores the counts of an instance, replacing its earlier counts of these periods. Skips a
    /// period that has counts of 256 other instances.
    pub fn put_counts(
        &mut self,
        instance: &str,
        counts: &[EncodedCounts],
    ) -> Result<(), StoreError> {
        let keys: Vec<String> = counts
            .iter()
            .map(|counts| self.counts_key(&counts.period))
            .collect();
        self.with_connection(|connection| {
            let mut query = pipe();
            for key in &keys {
                query
                    .cmd("HEXISTS")
                    .arg((key, instance))
                    .cmd("HLEN")
                    .arg(key);
            }
            let found: Vec<(bool, usize)> = connection.query_all(&query)?;
            let mut write = pipe();
            for ((key, counts), (is_known, instances)) in keys.iter().zip(counts).zip(found) {
                if is_known || instances < MAX_INSTANCES {
                    write.cmd("HSET").arg((key, instance, &counts.value));
                    write.cmd("EXPIRE").arg((key, counts.kept));
                }
            }
            connection.query_all(&write)
        })
    }

    /// Returns the counts of all instances by their ids, for each of these periods in order.
    pub fn counts(
        &mut self,
        periods: &[String],
    ) -> Result<Vec<HashMap<String, String>>, StoreError> {
        let mut read = pipe();
        for period in periods {
            read.cmd("HGETALL").arg(self.counts_key(period));
        }
        self.with_connection(|connection| connection.query_all(&read))
    }

    fn counts_key(&self, period: &str) -> String {
        self.key_name(&format!("counts:{period}"))
    }

    /// Builds the transaction that writes a batch, in the order of its fields. After facts that
    /// clients make, it deletes the oldest beyond `MAX_CLIENT_FACTS`.
    fn build_pipeline(&self, batch: &StoreBatch) -> Pipeline {
        let [served, clients, facts, members, log] =
            ["served", "clients", "facts", "members", "log"].map(|name| self.key_name(name));
        let mut pipeline = pipe();
        let mut has_marks = false;
        pipeline.atomic();
        for (part, command) in [(&batch.facts, "HSET"), (&batch.if_missing, "HSETNX")] {
            for fact in part {
                if fact.value.is_empty() {
                    let is_mark = is_key_of::<ClientMark>(&fact.key);
                    let set = if is_mark { &clients } else { &served };
                    has_marks |= is_mark;
                    pipeline.cmd("ZADD").arg((set, "GT", fact.at, &fact.key));
                } else {
                    let written = format!("{} {}", fact.at, fact.value);
                    pipeline.cmd(command).arg((&facts, &fact.key, written));
                }
            }
        }
        if has_marks {
            pipeline
                .cmd("ZREMRANGEBYRANK")
                .arg((&clients, 0, -1 - MAX_CLIENT_FACTS as i64));
        }
        if !batch.forget.is_empty() {
            pipeline.cmd("HDEL").arg((&facts, &batch.forget));
        }
        if let Some(before) = batch.served_before {
            for events in [&served, &clients] {
                pipeline
                    .cmd("ZREMRANGEBYSCORE")
                    .arg((events, "-inf", format!("({before}")));
            }
        }
        if !batch.forget_members.is_empty() {
            pipeline.cmd("HDEL").arg((&members, &batch.forget_members));
        }
        for member in &batch.members_if_missing {
            pipeline
                .cmd("HSETNX")
                .arg((&members, &member.id, write_json(member)));
        }
        if let Some(entry) = &batch.entry {
            pipeline
                .cmd("HSET")
                .arg((&members, &entry.member.id, write_json(&entry.member)));
            pipeline.cmd("XADD").arg((
                &log,
                "MAXLEN",
                "~",
                MIN_LOG_LENGTH,
                "*",
                "e",
                write_json(entry),
            ));
        }
        pipeline
    }
}

impl RedisConnection {
    /// The identity of the connected store. `epoch` is the value of its key, with `EPOCH_PREFIX`.
    fn identity(&self, epoch: Option<String>) -> StoreIdentity {
        let epoch = epoch.unwrap_or_default();
        StoreIdentity {
            run_id: self.run_id.clone(),
            epoch: epoch
                .strip_prefix(EPOCH_PREFIX)
                .unwrap_or(&epoch)
                .to_owned(),
        }
    }
}

fn parse_position(place: String) -> Result<LogPosition, StoreError> {
    LogPosition::try_from(place).map_err(|error| StoreError::Newer(error.to_string()))
}

/// Parses an entry of the stream.
fn parse_entry(raw: RawLogEntry) -> Result<(LogPosition, LogEntry), StoreError> {
    let (place, mut fields) = raw;
    let entry = read_json(&fields.remove("e").unwrap_or_default())?;
    Ok((parse_position(place)?, entry))
}

/// Parses what an instance wrote. The error is `StoreError::Newer`, because only another version
/// of crawlgate writes what this one cannot parse.
fn read_json<T: serde::de::DeserializeOwned>(written: &str) -> Result<T, StoreError> {
    serde_json::from_str(written).map_err(|error| StoreError::Newer(unreadable_message(&error)))
}

/// Members and entries have text as keys, so this cannot fail.
fn write_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Items of one scan step, during which the server does nothing else.
const SCAN_COUNT: usize = 1_000;

/// Reads a whole set or hash in parts, by `ZSCAN` or `HSCAN`. `matching` is a pattern of keys. An
/// item that changes meanwhile may be missing or appear twice.
fn scan_all<T: FromRedisValue>(
    connection: &mut RedisConnection,
    command: &str,
    key: &str,
    matching: &str,
) -> RedisResult<Vec<T>> {
    let mut cursor = 0u64;
    let mut all = Vec::new();
    loop {
        let arguments = (key, cursor, "COUNT", SCAN_COUNT, "MATCH", matching);
        let (next, part): (u64, Vec<T>) = connection.query(cmd(command).arg(arguments))?;
        all.extend(part);
        if next == 0 {
            return Ok(all);
        }
        cursor = next;
    }
}

/// Parses a fact with a value from the hash: the time, a space, the value.
fn parse_fact(key: String, written: &str) -> Result<SharedFact, StoreError> {
    let read = written
        .split_once(' ')
        .and_then(|(at, value)| Some((at.parse().ok()?, value.to_owned())));
    let (at, value) =
        read.ok_or_else(|| StoreError::Newer(unreadable_message(&format!("the fact {key}"))))?;
    Ok(SharedFact { key, at, value })
}

fn unreadable_message(what: &impl fmt::Display) -> String {
    format!(
        "another crawlgate wrote what this one cannot read ({what}); crawlgate counts no violations until that is \
         fixed. Run the same version on all instances"
    )
}
