//! [`SharedStore`] as the [`Store`] of `exchange`: each operation in commands of Redis.
//! `exchange::store` has the table of keys. [`CountsOfPeriod`] are the request counts of the
//! instances, for the history: one hash for each period, with a field for each instance. Nothing is
//! judged by them.

use super::connection::{Connected, KEYS, MARK, SharedStore, fields, last, refuse_eviction, run};
use super::link::Link;
use super::refusal::unusable;
use crate::exchange::codec::is_of;
use crate::exchange::store::MOST_OF_CLIENTS;
use crate::exchange::{
    Batch, Entry, Identity, LogRead, Member, Position, Sets, SharedFact, Store, StoreError, Written,
};
use crate::facts::Mark;
use redis::{FromRedisValue, Pipeline, RedisResult};
use std::collections::HashMap;
use std::fmt;

/// How many entries the log has at the least; Redis cuts whole nodes off beyond it.
const LOG: usize = 20_000;
/// How many entries are read at once: with 2,000 facts each they are an answer that [`Link`] takes.
const MOST_ENTRIES: usize = 25;
/// Keys that no instance has touched for so long end by themselves: 40 days, longer than facts are
/// kept.
const END: i64 = 40 * 86_400;
/// The end of a key is put off when so much of the time is over. Each time touches the key, which
/// ends a transaction that watches it: another instance's announcement of a robots.txt, for one.
const PUT_OFF_AFTER: i64 = 86_400;
/// How often a transaction is tried that ended because the epoch was touched.
const TRIES: usize = 4;

/// Instances that have a field in the hash of a period. An instance that finds no room is missing
/// in the sums.
const MOST_INSTANCES: usize = 256;

/// Bytes of the key of a fact or of a name in a member: hosts have at most 253, paths and tokens of
/// policies some more.
const MAX_NAME: usize = 4 * 1024;

/// An entry of a stream: its place, and its fields.
type RawEntry = (String, HashMap<String, String>);

impl Store for SharedStore {
    /// Founds the store if it has no epoch, puts off the end of crawlgate's keys, and reads
    /// identity, time and the policy of eviction. See `Store` in `exchange`.
    fn identity(&mut self, founding: &str) -> Result<(Identity, i64), StoreError> {
        let keys = KEYS.map(|(name, _)| self.key(name));
        let (identity, time, info) = self.ask(|connected| {
            let mut pipeline = redis::pipe();
            pipeline.cmd("INFO").arg("memory").cmd("SET").arg((
                &keys[0],
                format!("{MARK}{founding}"),
                "NX",
            ));
            for key in &keys {
                pipeline.cmd("TTL").arg(key);
            }
            pipeline.cmd("GET").arg(&keys[0]).cmd("TIME");
            let mut answers = connected.run(&pipeline)?;
            let (seconds, micros): (i64, i64) = last(&mut answers)?;
            let epoch = last(&mut answers)?;
            let mut put_off = redis::pipe();
            for key in keys.iter().rev() {
                // It is -1 for a key without an end, and -2 for one that is not there.
                let left: i64 = last(&mut answers)?;
                if left == -1 || (0..END - PUT_OFF_AFTER).contains(&left) {
                    put_off.cmd("EXPIRE").arg((key, END));
                }
            }
            if !put_off.is_empty() {
                connected.run(&put_off)?;
            }
            answers.truncate(1);
            let info: String = last(&mut answers)?;
            Ok((
                connected.identity(epoch),
                seconds * 1_000 + micros / 1_000,
                info,
            ))
        })?;
        // Operators change it while the store runs (`CONFIG SET`).
        refuse_eviction(&fields(&info), &self.settings.url)?;
        Ok((identity, time))
    }

    /// Writes the batch in one transaction that watches the epoch. If the epoch was touched
    /// meanwhile, it tries again, four times in all. Nothing is written, and no position returned,
    /// if the store is another one, or the batch is empty.
    fn write(&mut self, expected: &Identity, batch: &Batch) -> Result<Written, StoreError> {
        let epoch = self.key("epoch");
        let pipeline = self.pipeline(batch)?;
        let has_entry = batch.entry.is_some();
        self.ask(|connected| {
            for _ in 0..TRIES {
                let mut watch = redis::pipe();
                watch.cmd("WATCH").arg(&epoch).cmd("GET").arg(&epoch);
                let mut answers = connected.run(&watch)?;
                let identity = connected.identity(last(&mut answers)?);
                if identity != *expected || pipeline.is_empty() {
                    let () = connected.connection.ask(&redis::cmd("UNWATCH"))?;
                    return Ok(Written {
                        identity,
                        position: None,
                    });
                }
                // Otherwise the epoch was touched in between, and may be the same.
                if let Some(mut answers) = run(&mut connected.connection, &pipeline)? {
                    let position: Option<String> =
                        if has_entry { last(&mut answers)? } else { None };
                    return Ok(Written {
                        identity,
                        position: position.and_then(|place| place.try_into().ok()),
                    });
                }
            }
            // The next turn says what it is.
            Ok(Written {
                identity: connected.identity(None),
                position: None,
            })
        })
    }

    /// Reads up to 25 entries after a position. `entries` is `None` if the entry at the position is
    /// not in the log any more.
    fn read(&mut self, after: Position) -> Result<LogRead, StoreError> {
        let [epoch, log] = ["epoch", "log"].map(|name| self.key(name));
        let (identity, newest, raw) = self.ask(|connected| {
            let mut pipeline = redis::pipe();
            pipeline.atomic().cmd("GET").arg(&epoch);
            pipeline.cmd("XREVRANGE").arg((&log, "+", "-", "COUNT", 1));
            pipeline
                .cmd("XRANGE")
                .arg((&log, after.to_string(), "+", "COUNT", MOST_ENTRIES + 1));
            let mut answers = connected.run(&pipeline)?;
            let entries: Vec<RawEntry> = last(&mut answers)?;
            let newest: Vec<RawEntry> = last(&mut answers)?;
            Ok((connected.identity(last(&mut answers)?), newest, entries))
        })?;
        let last = newest
            .into_iter()
            .next()
            .map(|(place, _)| position(place))
            .transpose()?
            .unwrap_or_default();
        let mut raw = raw.into_iter();
        let is_there = raw.next().map(|(place, _)| position(place)).transpose()? == Some(after);
        let entries = is_there
            .then(|| raw.map(entry).collect::<Result<Vec<_>, StoreError>>())
            .transpose()?;
        Ok(LogRead {
            identity,
            last,
            entries,
        })
    }

    /// Reads all facts but files of robots.txt, and all members, in parts.
    fn read_sets(&mut self) -> Result<Sets, StoreError> {
        let [served, clients, facts] = ["served", "clients", "facts"].map(|name| self.key(name));
        let (events, facts) = self.ask(|connected| {
            let connection = &mut connected.connection;
            let mut events: Vec<(String, f64)> = scan(connection, "ZSCAN", &served, None)?;
            events.extend(scan::<(String, f64)>(connection, "ZSCAN", &clients, None)?);
            let facts: Vec<(String, String)> = scan(connection, "HSCAN", &facts, Some("[^v]*"))?;
            Ok((events, facts))
        })?;
        // Scores are whole seconds, far below where a double loses them.
        let events = events.into_iter().map(|(key, at)| {
            Ok(SharedFact {
                key: short(key)?,
                at: at as i64,
                value: String::new(),
            })
        });
        let facts = events.chain(
            facts
                .into_iter()
                .map(|(key, written)| read_fact(key, &written)),
        );
        Ok(Sets {
            facts: facts.collect::<Result<_, StoreError>>()?,
            members: self.read_members()?,
        })
    }

    fn read_members(&mut self) -> Result<Vec<Member>, StoreError> {
        let members = self.key("members");
        let members: HashMap<String, String> = self.ask(|connected| {
            connected
                .connection
                .ask(redis::cmd("HGETALL").arg(&members))
        })?;
        members
            .values()
            .map(|written| read_json(written).and_then(checked))
            .collect()
    }

    /// Reads the facts with these keys. Those that are not there are left out.
    fn fetch(&mut self, keys: &[String]) -> Result<Vec<SharedFact>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let facts = self.key("facts");
        let written: Vec<Option<String>> = self.ask(|connected| {
            connected
                .connection
                .ask(redis::cmd("HMGET").arg(&facts).arg(keys))
        })?;
        let found = keys.iter().zip(written);
        found
            .filter_map(|(key, written)| Some(read_fact(key.clone(), &written?)))
            .collect()
    }
}

/// What an instance counted in a period.
pub struct CountsOfPeriod {
    /// The name of the period.
    pub period: String,
    /// What it counted.
    pub value: String,
    /// For how many seconds from now the counts of the period are kept.
    pub kept: u64,
}

/// Questions fail as [`StoreError`] says.
#[allow(clippy::missing_errors_doc)]
impl SharedStore {
    /// Whether an instance has told what it counted in a period.
    pub fn has_counts(&mut self, period: &str, instance: &str) -> Result<bool, StoreError> {
        let key = self.counts_key(period);
        self.ask(|connected| {
            connected
                .connection
                .ask(redis::cmd("HEXISTS").arg((&key, instance)))
        })
    }

    /// Tells what an instance counted, in place of what it told of these periods before. Leaves out
    /// a period of which 256 other instances have told.
    pub fn put_counts(
        &mut self,
        instance: &str,
        counts: &[CountsOfPeriod],
    ) -> Result<(), StoreError> {
        let keys: Vec<String> = counts
            .iter()
            .map(|counts| self.counts_key(&counts.period))
            .collect();
        self.ask(|connected| {
            let mut look = redis::pipe();
            for key in &keys {
                look.cmd("HEXISTS")
                    .arg((key, instance))
                    .cmd("HLEN")
                    .arg(key);
            }
            let found = connected
                .run(&look)?
                .into_iter()
                .map(usize::from_redis_value);
            let found = found.collect::<Result<Vec<usize>, _>>()?;
            let mut write = redis::pipe();
            for ((key, counts), found) in keys.iter().zip(counts).zip(found.chunks(2)) {
                if matches!(found, [0, others] if *others >= MOST_INSTANCES) {
                    continue;
                }
                write.cmd("HSET").arg((key, instance, &counts.value));
                write.cmd("EXPIRE").arg((key, counts.kept));
            }
            connected.run(&write)?;
            Ok(())
        })
    }

    /// For each of these periods, in order, what the instances counted, by their ids.
    pub fn counts(
        &mut self,
        periods: &[String],
    ) -> Result<Vec<HashMap<String, String>>, StoreError> {
        let keys: Vec<String> = periods
            .iter()
            .map(|period| self.counts_key(period))
            .collect();
        self.ask(|connected| {
            let mut read = redis::pipe();
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
        self.key(&format!("counts:{period}"))
    }
}

impl SharedStore {
    /// The transaction that writes a batch, in the order of its fields. After facts that clients
    /// make, it deletes the oldest beyond `MOST_OF_CLIENTS`.
    fn pipeline(&self, batch: &Batch) -> Result<Pipeline, StoreError> {
        let [served, clients, facts, members, log] =
            ["served", "clients", "facts", "members", "log"].map(|name| self.key(name));
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        for (fact, command) in batch
            .facts
            .iter()
            .map(|fact| (fact, "HSET"))
            .chain(batch.if_missing.iter().map(|fact| (fact, "HSETNX")))
        {
            if fact.value.is_empty() {
                let set = if is_of::<Mark>(&fact.key) {
                    &clients
                } else {
                    &served
                };
                pipeline.cmd("ZADD").arg((set, "GT", fact.at, &fact.key));
            } else {
                let written = format!("{} {}", fact.at, fact.value);
                pipeline.cmd(command).arg((&facts, &fact.key, written));
            }
        }
        if batch
            .facts
            .iter()
            .chain(&batch.if_missing)
            .any(|fact| is_of::<Mark>(&fact.key))
        {
            pipeline
                .cmd("ZREMRANGEBYRANK")
                .arg((&clients, 0, -1 - MOST_OF_CLIENTS as i64));
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
            pipeline
                .cmd("XADD")
                .arg((&log, "MAXLEN", "~", LOG, "*", "e", write_json(entry)?));
        }
        Ok(pipeline)
    }
}

impl Connected {
    /// The identity of the connected store. `epoch` is the value of its key, from which `MARK` is
    /// taken off.
    fn identity(&self, epoch: Option<String>) -> Identity {
        let epoch = epoch.unwrap_or_default();
        Identity {
            run_id: self.run_id.clone(),
            epoch: epoch.strip_prefix(MARK).unwrap_or(&epoch).to_owned(),
        }
    }
}

fn position(place: String) -> Result<Position, StoreError> {
    Position::try_from(place).map_err(|error| StoreError::Newer(error.to_string()))
}

/// Reads an entry of the stream, and refuses one with a name that is too long.
fn entry(raw: RawEntry) -> Result<(Position, Entry), StoreError> {
    let (place, mut fields) = raw;
    let entry: Entry = read_json(&fields.remove("e").unwrap_or_default())?;
    let facts = entry.facts.into_iter().map(|fact| {
        Ok(SharedFact {
            key: short(fact.key)?,
            ..fact
        })
    });
    let facts = facts.collect::<Result<_, StoreError>>()?;
    Ok((
        position(place)?,
        Entry {
            member: checked(entry.member)?,
            facts,
            ..entry
        },
    ))
}

/// The name, unless it is longer than `MAX_NAME`: that is no name, and it would be kept and
/// shown.
fn short(name: String) -> Result<String, StoreError> {
    match name.len() {
        ..=MAX_NAME => Ok(name),
        length => Err(StoreError::Newer(cannot_read(&format!(
            "a name of {length} bytes"
        )))),
    }
}

/// The member, unless one of its names is longer than `MAX_NAME`.
fn checked(member: Member) -> Result<Member, StoreError> {
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
        .flat_map(|Identity { run_id, epoch }| [run_id, epoch]);
    let names = [id, run, host, version, policies, crawlers]
        .into_iter()
        .chain(continues)
        .chain(settled);
    names
        .map(|name| short(name.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(member)
}

/// Reads what an instance wrote. What cannot be read was written by a newer crawlgate
/// (`StoreError::Newer`).
fn read_json<T: serde::de::DeserializeOwned>(written: &str) -> Result<T, StoreError> {
    serde_json::from_str(written).map_err(|error| StoreError::Newer(cannot_read(&error)))
}

fn write_json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| unusable("unwritable-fact", format!("cannot write a fact: {error}")))
}

/// How many members are asked for at once: a server does nothing else meanwhile.
const PART: usize = 1_000;

/// Reads a whole set or hash in parts, by `ZSCAN` or `HSCAN`; `matching` is a pattern of keys. An
/// item that changes meanwhile may be missing or there twice.
fn scan<T: FromRedisValue>(
    connection: &mut Link,
    command: &str,
    key: &str,
    matching: Option<&str>,
) -> RedisResult<Vec<T>> {
    let mut cursor = 0u64;
    let mut all = Vec::new();
    loop {
        let mut ask = redis::cmd(command);
        ask.arg((key, cursor, "COUNT", PART));
        if let Some(pattern) = matching {
            ask.arg(("MATCH", pattern));
        }
        let (next, part): (u64, Vec<T>) = connection.ask(&ask)?;
        all.extend(part);
        if next == 0 {
            return Ok(all);
        }
        cursor = next;
    }
}

/// Reads a fact with a value as it stands in the hash: the time, a blank, the value.
fn read_fact(key: String, written: &str) -> Result<SharedFact, StoreError> {
    let read = written
        .split_once(' ')
        .and_then(|(at, value)| Some((at.parse().ok()?, value.to_owned())));
    let (at, value) =
        read.ok_or_else(|| StoreError::Newer(cannot_read(&format!("the fact `{key}`"))))?;
    Ok(SharedFact {
        key: short(key)?,
        at,
        value,
    })
}

fn cannot_read(what: &impl fmt::Display) -> String {
    format!(
        "another crawlgate wrote what this one cannot read ({what}); crawlgate accuses nobody meanwhile. Run the same version \
         on all instances"
    )
}
