//! [`SharedStore`]: the connection to the Redis or Valkey server that several crawlgate instances
//! share. After an error, the next call connects again. [`check_server`] rejects a server that
//! crawlgate cannot use: an old version, a node of a cluster, a replica, one that evicts keys, or
//! one with keys of another program.

use super::errors::{from_redis_error, replica_error, unusable_store_error};
use super::redis_connection::RedisConnection;
use crate::exchange::{StoreDeadline, StoreError};
use crate::settings::{StoreSettings, StoreUrl};
use redis::{InfoDict, RedisResult, cmd, pipe};

/// The first Redis with `ZADD GT` and exclusive ranges of streams. Valkey reports 7.2.
const MIN_REDIS_VERSION: (u32, u32) = (6, 2);

/// The prefix of the value of the key `epoch`, by which it is told from values of other programs.
pub const EPOCH_PREFIX: &str = "crawlgate ";

/// The names of the keys and their types.
pub const KEYS: [(&str, &str); 6] = [
    ("epoch", "string"),
    ("served", "zset"),
    ("clients", "zset"),
    ("facts", "hash"),
    ("members", "hash"),
    ("log", "stream"),
];

/// The client of a Valkey or Redis server.
pub struct SharedStore {
    /// Where the server is, and the prefix of keys.
    pub settings: StoreSettings,
    /// When waiting for answers ends, set by a stop.
    deadline: StoreDeadline,
    connected: Option<RedisConnection>,
}

impl SharedStore {
    /// Creates a client without connecting. `deadline` limits all its calls.
    pub fn new(settings: StoreSettings, deadline: StoreDeadline) -> SharedStore {
        SharedStore {
            settings,
            deadline,
            connected: None,
        }
    }

    /// Returns the full name of a key, with the prefix of the settings.
    pub fn key_name(&self, name: &str) -> String {
        format!("{}{name}", self.settings.prefix)
    }

    /// Calls `ask` with the connection, and connects first if there is none. An error closes the
    /// connection, so that the rest of an answer is not taken for the next one.
    pub fn with_connection<T>(
        &mut self,
        ask: impl FnOnce(&mut RedisConnection) -> RedisResult<T>,
    ) -> Result<T, StoreError> {
        let mut connection = match self.connected.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.reset_answer_size_limit();
        let answer =
            ask(&mut connection).map_err(|error| from_redis_error(&error, &self.settings.url))?;
        self.connected = Some(connection);
        Ok(answer)
    }

    fn connect(&self) -> Result<RedisConnection, StoreError> {
        let mut connection = RedisConnection::open(&self.settings, &self.deadline)?;
        connection.run_id = check_server(&mut connection, &self.settings)?;
        Ok(connection)
    }
}

/// Checks that the server can be used (see the module). Returns its `run_id`.
fn check_server(
    connection: &mut RedisConnection,
    settings: &StoreSettings,
) -> Result<String, StoreError> {
    let url = &settings.url;
    let info: InfoDict = connection
        .query(cmd("INFO").arg("everything"))
        .map_err(|error| from_redis_error(&error, url))?;
    let version = info_text(&info, "redis_version");
    if version_numbers(&version) < MIN_REDIS_VERSION {
        return Err(unusable_store_error(
            "too-old",
            format!(
                "the store at {url} is Redis {version}; crawlgate does not use it. Install Redis 6.2 or later, or Valkey"
            ),
        ));
    }
    if info_text(&info, "redis_mode") == "cluster" || info_text(&info, "cluster_enabled") == "1" {
        return Err(unusable_store_error(
            "cluster",
            format!(
                "the store at {url} is a node of a cluster; crawlgate does not use it. Name a single server, or an \
                 address that fails over to a replica"
            ),
        ));
    }
    if info_text(&info, "role") == "slave" {
        return Err(replica_error(url));
    }
    refuse_eviction(&info, url)?;
    let foreign = find_foreign_key(connection, &settings.prefix);
    if let Some(key) = foreign.map_err(|error| from_redis_error(&error, url))? {
        return Err(unusable_store_error(
            "foreign-key",
            format!(
                "the key {key} in the store at {url} does not belong to crawlgate; crawlgate does not use the store. \
                 Choose another \"prefix\" or another database for \"store\" in crawlgate.yaml"
            ),
        ));
    }
    Ok(info_text(&info, "run_id"))
}

/// A value in the answer of `INFO`; empty if it is not there.
fn info_text(info: &InfoDict, name: &str) -> String {
    info.get(name).unwrap_or_default()
}

/// Rejects a server that deletes keys when its memory is full.
pub fn refuse_eviction(info: &InfoDict, url: &StoreUrl) -> Result<(), StoreError> {
    match info_text(info, "maxmemory_policy").as_str() {
        "noeviction" => Ok(()),
        policy => Err(StoreError::Evicts(format!(
            "the store at {url} deletes keys when its memory is full (maxmemory-policy {policy}). crawlgate does not \
             use it, because it would forget what crawlers were served. Set maxmemory-policy noeviction"
        ))),
    }
}

/// Returns a key with one of crawlgate's names that another program made: its type differs, or the
/// `epoch` does not begin with `EPOCH_PREFIX`.
fn find_foreign_key(connection: &mut RedisConnection, prefix: &str) -> RedisResult<Option<String>> {
    let mut types = pipe();
    for (name, _) in KEYS {
        types.cmd("TYPE").arg(format!("{prefix}{name}"));
    }
    let types: Vec<String> = connection.query_all(&types)?;
    let found = types
        .iter()
        .zip(KEYS)
        .find(|(found, (_, wanted))| *found != "none" && found != wanted);
    if let Some((_, (name, _))) = found {
        return Ok(Some(format!("{prefix}{name}")));
    }
    let key = format!("{prefix}epoch");
    let epoch: Option<Vec<u8>> = connection.query(cmd("GET").arg(&key))?;
    Ok(epoch
        .filter(|epoch| !epoch.starts_with(EPOCH_PREFIX.as_bytes()))
        .map(|_| key))
}

/// Parses the first two numbers of a version like `7.0.15`. A part that is no number is 0.
fn version_numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
