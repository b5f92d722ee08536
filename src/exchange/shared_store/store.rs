//! Implements [`ExchangeStore`], the store that several crawlgate instances share, for
//! [`SharedStore`] with Redis commands. The module `exchange::store` has the table of all keys.
//! [`EncodedCounts`] are one instance's request counts of one period, for dashboards. Each period
//! is a Redis hash with a field for each instance.

use super::connection::{
    EPOCH_PREFIX, KEYS, SharedStore, StoreConnection, parse_info, pop_last, refuse_eviction,
    run_pipeline,
};
use super::errors::unusable;
use super::redis_connection::RedisConnection;
use crate::exchange::codec::is_key_of;
use crate::exchange::store::MAX_CLIENT_FACTS;
use crate::exchange::{
    ExchangeStore, LogEntry, LogPosition, LogRead, Member, SharedFact, StoreBatch, StoreError,
    StoreIdentity, StoreSets, WriteResult,
};
use crate::facts::ClientMark;
use redis::{FromRedisValue, Pipeline, RedisResult, cmd, pipe};
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

/// The longest key of a fact or name in a member, in bytes. Hosts have at most 253, paths and
/// tokens of policies some more.
const MAX_NAME: usize = 4 * 1024;

/// An entry of a stream as Redis returns it: its id and its fields.
type RawLogEntry = (String, HashMap<String, String>);

impl ExchangeStore for SharedStore {
    /// Writes the epoch if there is none, renews the expiry of the keys, and reads identity, time
    /// and eviction policy.
    fn identity(&mut self, founding: &str) -> Result<(StoreIdentity, i64), StoreError> {
        let keys = KEYS.map(|(name, _)| self.key_name(name));
        let (identity, time, info) = self.with_connection(|connected| {
            let mut pipeline = pipe();
            pipeline.cmd("INFO").arg("memory").cmd("SET").arg((
                &keys[0],
                format!("{EPOCH_PREFIX}{founding}"),
                "NX",
            ));
            for key in &keys {
                pipeline.cmd("TTL").arg(key);
            }
            pipeline.cmd("GET").arg(&keys[0]).cmd("TIME");
            let mut answers = connected.run(&pipeline)?;
            let (seconds, micros): (i64, i64) = pop_last(&mut answers)?;
            let epoch = pop_last(&mut answers)?;
            let mut put_off = pipe();
            for key in keys.iter().rev() {
                // It is -1 for a key without an end, and -2 for one that is not there.
                let left: i64 = pop_last(&mut answers)?;
                if left == -1 || (0..KEY_EXPIRY - RENEW_EXPIRY_AFTER).contains(&left) {
                    put_off.cmd("EXPIRE").arg((key, KEY_EXPIRY));
                }
            }
            if !put_off.is_empty() {
                connected.run(&put_off)?;
            }
            answers.truncate(1);
            let info: String = pop_last(&mut answers)?;
            Ok((
                connected.identity(epoch),
                seconds * 1_000 + micros / 1_000,
                info,
            ))
        })?;
        // Operators change it while the store runs (`CONFIG SET`).
        refuse_eviction(&parse_info(&info), &self.settings.url)?;
        Ok((identity, time))
    }

    /// Writes the batch in one transaction that watches the epoch. Tries four times in all if the
    /// epoch is touched meanwhile. Writes nothing and returns no position if the store is another
    /// one or the batch is empty.
    fn write(
        &mut self,
        expected: &StoreIdentity,
        batch: &StoreBatch,
    ) -> Result<WriteResult, StoreError> {
        let epoch = self.key_name("epoch");
        let pipeline = self.build_pipeline(batch)?;
        let has_entry = batch.entry.is_some();
        self.with_connection(|connected| {
            for _ in 0..MAX_WRITE_ATTEMPTS {
                let mut watch = pipe();
                watch.cmd("WATCH").arg(&epoch).cmd("GET").arg(&epoch);
                let mut answers = connected.run(&watch)?;
                let identity = connected.identity(pop_last(&mut answers)?);
                if identity != *expected || pipeline.is_empty() {
                    let () = connected.connection.query(&cmd("UNWATCH"))?;
                    return Ok(WriteResult {
                        identity,
                        position: None,
                    });
                }
                // Otherwise the epoch was touched in between, and may be the same.
                if let Some(mut answers) = run_pipeline(&mut connected.connection, &pipeline)? {
                    let position: Option<String> = if has_entry {
                        pop_last(&mut answers)?
                    } else {
                        None
                    };
                    return Ok(WriteResult {
                        identity,
                        position: position.and_then(|place| place.try_into().ok()),
                    });
                }
            }
            // The next turn reads the identity again.
            Ok(WriteResult {
                identity: connected.identity(None),
                position: None,
            })
        })
    }

    /// Reads up to 25 entries after a position. `entries` is `None` if the entry at the position is
    /// not in the log any more.
    fn read(&mut self, after: LogPosition) -> Result<LogRead, StoreError> {
        let [epoch, log] = ["epoch", "log"].map(|name| self.key_name(name));
        let (identity, newest, raw) = self.with_connection(|connected| {
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
            let mut answers = connected.run(&pipeline)?;
            let entries: Vec<RawLogEntry> = pop_last(&mut answers)?;
            let newest: Vec<RawLogEntry> = pop_last(&mut answers)?;
            Ok((connected.identity(pop_last(&mut answers)?), newest, entries))
        })?;
        let last = newest
            .into_iter()
            .next()
            .map(|(place, _)| parse_position(place))
            .transpose()?
            .unwrap_or_default();
        let mut raw = raw.into_iter();
        let is_there = raw
            .next()
            .map(|(place, _)| parse_position(place))
            .transpose()?
            == Some(after);
        let entries = is_there
            .then(|| raw.map(parse_entry).collect::<Result<Vec<_>, StoreError>>())
            .transpose()?;
        Ok(LogRead {
            identity,
            last,
            entries,
        })
    }

    /// Reads all facts except robots.txt files, and all members, in parts.
    fn read_sets(&mut self) -> Result<StoreSets, StoreError> {
        let [served, clients, facts] =
            ["served", "clients", "facts"].map(|name| self.key_name(name));
        let (events, facts) = self.with_connection(|connected| {
            let connection = &mut connected.connection;
            let mut events: Vec<(String, f64)> = scan_all(connection, "ZSCAN", &served, None)?;
            events.extend(scan_all::<(String, f64)>(
                connection, "ZSCAN", &clients, None,
            )?);
            let facts: Vec<(String, String)> =
                scan_all(connection, "HSCAN", &facts, Some("[^v]*"))?;
            Ok((events, facts))
        })?;
        // Scores are whole seconds, which a double represents exactly.
        let events = events.into_iter().map(|(key, at)| {
            Ok(SharedFact {
                key: check_name(key)?,
                at: at as i64,
                value: String::new(),
            })
        });
        let facts = events.chain(
            facts
                .into_iter()
                .map(|(key, written)| parse_fact(key, &written)),
        );
        Ok(StoreSets {
            facts: facts.collect::<Result<_, StoreError>>()?,
            members: self.read_members()?,
        })
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        let members = self.key_name("members");
        let members: HashMap<String, String> = self.with_connection(|connected| {
            connected.connection.query(cmd("HGETALL").arg(&members))
        })?;
        members
            .values()
            .map(|written| read_json(written).and_then(check_member))
            .collect()
    }

    /// Reads the facts with these keys. Those that are not there are left out.
    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.key_name("facts");
        let written: Vec<Option<String>> = self.with_connection(|connected| {
            connected
                .connection
                .query(cmd("HMGET").arg(&facts).arg(keys))
        })?;
        let found = keys.iter().zip(written);
        found
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
        self.with_connection(|connected| {
            connected
                .connection
                .query(cmd("HEXISTS").arg((&key, instance)))
        })
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
        self.with_connection(|connected| {
            let mut query = pipe();
            for key in &keys {
                query
                    .cmd("HEXISTS")
                    .arg((key, instance))
                    .cmd("HLEN")
                    .arg(key);
            }
            let found = connected
                .run(&query)?
                .into_iter()
                .map(usize::from_redis_value);
            let found = found.collect::<Result<Vec<usize>, _>>()?;
            let mut write = pipe();
            for ((key, counts), found) in keys.iter().zip(counts).zip(found.chunks(2)) {
                if matches!(found, [0, fields] if *fields >= MAX_INSTANCES) {
                    continue;
                }
                write.cmd("HSET").arg((key, instance, &counts.value));
                write.cmd("EXPIRE").arg((key, counts.kept));
            }
            connected.run(&write)?;
            Ok(())
        })
    }

    /// Returns the counts of all instances by their ids, for each of these periods in order.
    pub fn counts(
        &mut self,
        periods: &[String],
    ) -> Result<Vec<HashMap<String, String>>, StoreError> {
        let keys: Vec<String> = periods
            .iter()
            .map(|period| self.counts_key(period))
            .collect();
        self.with_connection(|connected| {
            let mut read = pipe();
            for key in &keys {
                read.cmd("HGETALL").arg(key);
            }
            Ok(connected
                .run(&read)?
                .into_iter()
                .map(HashMap::from_redis_value)
                .collect::<Result<_, _>>()?)
        })
    }

    fn counts_key(&self, period: &str) -> String {
        self.key_name(&format!("counts:{period}"))
    }

    /// Builds the transaction that writes a batch, in the order of its fields. After facts that
    /// clients make, it deletes the oldest beyond `MAX_CLIENT_FACTS`.
    fn build_pipeline(&self, batch: &StoreBatch) -> Result<Pipeline, StoreError> {
        let [served, clients, facts, members, log] =
            ["served", "clients", "facts", "members", "log"].map(|name| self.key_name(name));
        let mut pipeline = pipe();
        let mut has_marks = false;
        pipeline.atomic();
        for (fact, command) in batch
            .facts
            .iter()
            .map(|fact| (fact, "HSET"))
            .chain(batch.if_missing.iter().map(|fact| (fact, "HSETNX")))
        {
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
                .arg((&members, &member.id, write_json(member)?));
        }
        if let Some(entry) = &batch.entry {
            pipeline
                .cmd("HSET")
                .arg((&members, &entry.member.id, write_json(&entry.member)?));
            pipeline.cmd("XADD").arg((
                &log,
                "MAXLEN",
                "~",
                MIN_LOG_LENGTH,
                "*",
                "e",
                write_json(entry)?,
            ));
        }
        Ok(pipeline)
    }
}

impl StoreConnection {
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

/// Parses an entry of the stream. Fails if a name in it is too long.
fn parse_entry(raw: RawLogEntry) -> Result<(LogPosition, LogEntry), StoreError> {
    let (place, mut fields) = raw;
    let entry: LogEntry = read_json(&fields.remove("e").unwrap_or_default())?;
    let facts = entry.facts.into_iter().map(|fact| {
        Ok(SharedFact {
            key: check_name(fact.key)?,
            ..fact
        })
    });
    let facts = facts.collect::<Result<_, StoreError>>()?;
    Ok((
        parse_position(place)?,
        LogEntry {
            member: check_member(entry.member)?,
            facts,
            ..entry
        },
    ))
}

/// Returns the name, or an error if it is longer than `MAX_NAME`, because names are kept and shown.
fn check_name(name: String) -> Result<String, StoreError> {
    match name.len() {
        ..=MAX_NAME => Ok(name),
        length => Err(StoreError::Newer(unreadable_message(&format!(
            "a name of {length} bytes"
        )))),
    }
}

/// Returns the member, or an error if one of its names is longer than `MAX_NAME`.
fn check_member(member: Member) -> Result<Member, StoreError> {
    let Member {
        id,
        run,
        continues,
        host,
        version,
        policies,
        crawlers,
        settled,
        ..
    } = &member;
    let settled = settled
        .iter()
        .flat_map(|StoreIdentity { run_id, epoch }| [run_id, epoch]);
    let names = [id, run, host, version, policies, crawlers]
        .into_iter()
        .chain(continues)
        .chain(settled);
    names
        .map(|name| check_name(name.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(member)
}

/// Parses what an instance wrote. The error is `StoreError::Newer`, because only another version
/// of crawlgate writes what this one cannot parse.
fn read_json<T: serde::de::DeserializeOwned>(written: &str) -> Result<T, StoreError> {
    serde_json::from_str(written).map_err(|error| StoreError::Newer(unreadable_message(&error)))
}

fn write_json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| unusable("unwritable-fact", format!("cannot write a fact: {error}")))
}

/// Items of one scan step, during which the server does nothing else.
const SCAN_COUNT: usize = 1_000;

/// Reads a whole set or hash in parts, by `ZSCAN` or `HSCAN`. `matching` is a pattern of keys. An
/// item that changes meanwhile may be missing or appear twice.
fn scan_all<T: FromRedisValue>(
    connection: &mut RedisConnection,
    command: &str,
    key: &str,
    matching: Option<&str>,
) -> RedisResult<Vec<T>> {
    let mut cursor = 0u64;
    let mut all = Vec::new();
    loop {
        let mut ask = cmd(command);
        ask.arg((key, cursor, "COUNT", SCAN_COUNT));
        if let Some(pattern) = matching {
            ask.arg(("MATCH", pattern));
        }
        let (next, part): (u64, Vec<T>) = connection.query(&ask)?;
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
    Ok(SharedFact {
        key: check_name(key)?,
        at,
        value,
    })
}

fn unreadable_message(what: &impl fmt::Display) -> String {
    format!(
        "another crawlgate wrote what this one cannot read ({what}); crawlgate counts no violations until that is \
         fixed. Run the same version on all instances"
    )
}
