//! [`SharedStore`]: the one connection to the store, made anew after each error. [`examine`]
//! refuses a server that crawlgate cannot use: an old one, a node of a cluster, a replica, one that
//! deletes keys, or one with keys of another program.

use super::link::Link;
use super::refusal::{of_error, replica, unusable};
use crate::exchange::{Deadline, StoreError};
use crate::settings::{StoreSettings, StoreUrl};
use redis::{FromRedisValue, Pipeline, RedisResult, Value};
use std::collections::HashMap;

/// The oldest Redis with what is needed: `ZADD GT` and exclusive ranges of streams. Valkey says
/// that it is Redis 7.2.
const OLDEST: (u32, u32) = (6, 2);

/// What the value of the key `epoch` begins with, so that no value of another program is taken for
/// it.
pub(super) const MARK: &str = "crawlgate ";

/// The keys, and their types.
pub(super) const KEYS: [(&str, &str); 6] = [
    ("epoch", "string"),
    ("served", "zset"),
    ("clients", "zset"),
    ("facts", "hash"),
    ("members", "hash"),
    ("log", "stream"),
];

/// A Valkey or Redis.
pub struct SharedStore {
    pub(super) settings: StoreSettings,
    /// Until when answers are waited for.
    deadline: Deadline,
    connected: Option<Connected>,
}

/// A connection to a server that can be used.
pub(super) struct Connected {
    pub(super) connection: Link,
    /// `run_id` of `INFO server`.
    pub(super) run_id: String,
}

impl Connected {
    /// Sends commands and reads their answers. Of a transaction that was not done there are none.
    pub(super) fn run(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        Ok(run(&mut self.connection, pipeline)?.unwrap_or_default())
    }
}

impl SharedStore {
    /// A store by these settings, without a connection yet, and with a deadline for all its
    /// answers.
    pub fn new(settings: StoreSettings, deadline: Deadline) -> SharedStore {
        SharedStore {
            settings,
            deadline,
            connected: None,
        }
    }

    /// The name of a key.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.settings.prefix)
    }

    /// Does something over the connection, which is made anew if there is none. An error ends the
    /// connection: what was not read of an answer is not to be taken for the next.
    pub(super) fn ask<T>(
        &mut self,
        ask: impl FnOnce(&mut Connected) -> RedisResult<T>,
    ) -> Result<T, StoreError> {
        let mut connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.connect()?,
        };
        connected.connection.begin_call();
        let answer = ask(&mut connected).map_err(|error| of_error(&error, &self.settings.url))?;
        self.connected = Some(connected);
        Ok(answer)
    }

    fn connect(&self) -> Result<Connected, StoreError> {
        let mut connection = Link::open(&self.settings, &self.deadline)?;
        let run_id = examine(&mut connection, &self.settings)?;
        Ok(Connected { connection, run_id })
    }
}

/// Sends commands and reads the answers, in the order of the commands. `None` where a transaction
/// was not done, because a key that it watched was written. Stops at the first answer that does not
/// come or is an error.
pub(super) fn run(connection: &mut Link, pipeline: &Pipeline) -> RedisResult<Option<Vec<Value>>> {
    connection.send(&pipeline.get_packed_pipeline())?;
    // Before the answer of a transaction there is one for its beginning, and one for each command
    // that waited.
    let count = pipeline.len() + usize::from(pipeline.is_transaction());
    let answers = (0..count)
        .map(|_| connection.receive())
        .collect::<RedisResult<_>>()?;
    if pipeline.is_transaction() {
        Ok(Option::from_redis_value(connection.receive()?)?)
    } else {
        Ok(Some(answers))
    }
}

/// Takes the last answer out.
pub(super) fn last<T: FromRedisValue>(answers: &mut Vec<Value>) -> RedisResult<T> {
    Ok(T::from_redis_value(answers.pop().unwrap_or(Value::Nil))?)
}

/// Refuses a server that cannot be used (see the module). Returns its `run_id`, which tells one run
/// of a server from another.
fn examine(connection: &mut Link, settings: &StoreSettings) -> Result<String, StoreError> {
    let url = &settings.url;
    let info: String = connection
        .ask(redis::cmd("INFO").arg("everything"))
        .map_err(|error| of_error(&error, url))?;
    let info = fields(&info);
    let said = |name: &str| info.get(name).copied().unwrap_or_default();
    let version = said("redis_version");
    if number(version) < OLDEST {
        return Err(unusable(
            "too-old",
            format!(
                "the store at {url} is Redis {version}; crawlgate does not use it. Install Redis 6.2 or later, or Valkey"
            ),
        ));
    }
    if said("redis_mode") == "cluster" || said("cluster_enabled") == "1" {
        return Err(unusable(
            "cluster",
            format!(
                "the store at {url} is a node of a cluster; crawlgate does not use it. Name one server, or the address of one \
             with a replica that takes its place"
            ),
        ));
    }
    if said("role") == "slave" {
        return Err(replica(url));
    }
    refuse_eviction(&info, url)?;
    let foreign = foreign_key(connection, &settings.prefix);
    if let Some(key) = foreign.map_err(|error| of_error(&error, url))? {
        return Err(unusable(
            "foreign-key",
            format!(
                "the key `{key}` in the store at {url} is not crawlgate's; crawlgate does not use the store. Choose another \
             `prefix` or another database for `store` in crawlgate.yaml"
            ),
        ));
    }
    Ok(said("run_id").to_owned())
}

/// What `INFO` says, by name.
pub(super) fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect()
}

/// Refuses a server that deletes keys when its memory is full.
pub(super) fn refuse_eviction(
    info: &HashMap<&str, &str>,
    url: &StoreUrl,
) -> Result<(), StoreError> {
    match info.get("maxmemory_policy").copied().unwrap_or_default() {
        "noeviction" => Ok(()),
        policy => Err(StoreError::Evicts(format!(
            "the store at {url} deletes keys when its memory is full (`maxmemory-policy {policy}`), and crawlgate would \
             accuse crawlers of what it then does not know; crawlgate does not use it. Set `maxmemory-policy noeviction`"
        ))),
    }
}

/// A key with one of crawlgate's names that another program made: its type is another one, or the
/// `epoch` does not begin with `MARK`. `None` if there is none.
fn foreign_key(connection: &mut Link, prefix: &str) -> RedisResult<Option<String>> {
    let mut types = redis::pipe();
    for (name, _) in KEYS {
        types.cmd("TYPE").arg(format!("{prefix}{name}"));
    }
    let types = run(connection, &types)?
        .unwrap_or_default()
        .into_iter()
        .map(String::from_redis_value);
    let types = types.collect::<Result<Vec<String>, _>>()?;
    let found = types
        .iter()
        .zip(KEYS)
        .find(|(found, (_, wanted))| *found != "none" && found != wanted);
    if let Some((_, (name, _))) = found {
        return Ok(Some(format!("{prefix}{name}")));
    }
    let key = format!("{prefix}epoch");
    let epoch: Option<Vec<u8>> = connection.ask(redis::cmd("GET").arg(&key))?;
    Ok(epoch
        .filter(|epoch| !epoch.starts_with(MARK.as_bytes()))
        .map(|_| key))
}

/// The first two numbers of a version like `7.0.15`; 0 for what is no number.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
