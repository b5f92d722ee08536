//! [`examine`] refuses a server that crawlgate cannot use: an old one, a node of a cluster, a replica, one that deletes keys,
//! or one with keys of another program. Otherwise it returns the [`Server`] with the id of its run.

use super::commands::run;
use super::refusal::{Refusal, of_error};
use crate::exchange::StoreError;
use crate::settings::{StoreSettings, StoreUrl};
use redis::{Connection, FromRedisValue, RedisResult};
use std::collections::HashMap;

/// The oldest Redis with what is needed: `ZADD GT` and exclusive ranges of streams. Valkey says that it is Redis 7.2.
const OLDEST: (u32, u32) = (6, 2);

/// What the value of the key `epoch` begins with, so that no value of another program is taken for it.
pub(super) const MARK: &str = "crawlgate ";

/// The keys, and their types.
const KEYS: [(&str, &str); 6] = [
    ("epoch", "string"),
    ("served", "zset"),
    ("clients", "zset"),
    ("facts", "hash"),
    ("members", "hash"),
    ("log", "stream"),
];

/// A server, as long as one connection lasts.
pub(super) struct Server {
    /// `run_id` of `INFO server`.
    pub(super) run_id: String,
}

/// Refuses a server that cannot be used; returns which run of which server it is.
pub(super) fn examine(connection: &mut Connection, settings: &StoreSettings) -> Result<Server, StoreError> {
    let url = settings.url.to_string();
    let failed = |error: redis::RedisError| of_error(&error, &settings.url);
    let info: String = redis::cmd("INFO").arg("everything").query(connection).map_err(failed)?;
    let info = fields(&info);
    let said = |name: &str| info.get(name).copied().unwrap_or_default();
    let version = said("redis_version");
    if number(version) < OLDEST {
        return Err(Refusal::TooOld { url, version: version.to_owned() }.into());
    }
    if said("redis_mode") == "cluster" || said("cluster_enabled") == "1" {
        return Err(Refusal::Cluster { url }.into());
    }
    if said("role") == "slave" {
        return Err(Refusal::Replica { url }.into());
    }
    refuse_eviction(&info, &settings.url)?;
    if let Some(key) = foreign_key(connection, &settings.prefix).map_err(failed)? {
        return Err(Refusal::Foreign { url, key }.into());
    }
    Ok(Server { run_id: said("run_id").to_owned() })
}

/// What `INFO` says, by name.
pub(super) fn fields(info: &str) -> HashMap<&str, &str> {
    info.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

/// Refuses a server that deletes keys when its memory is full.
pub(super) fn refuse_eviction(info: &HashMap<&str, &str>, url: &StoreUrl) -> Result<(), Refusal> {
    match info.get("maxmemory_policy").copied().unwrap_or_default() {
        "noeviction" => Ok(()),
        policy => Err(Refusal::Evicts { url: url.to_string(), policy: policy.to_owned() }),
    }
}

/// A key that another program made.
fn foreign_key(connection: &mut Connection, prefix: &str) -> RedisResult<Option<String>> {
    let mut types = redis::pipe();
    for (name, _) in KEYS {
        types.cmd("TYPE").arg(format!("{prefix}{name}"));
    }
    let types = run(connection, &types)?.unwrap_or_default().into_iter().map(String::from_redis_value);
    let types = types.collect::<Result<Vec<String>, _>>()?;
    let found = types.iter().zip(KEYS).find(|(found, (_, wanted))| *found != "none" && found != wanted);
    if let Some((_, (name, _))) = found {
        return Ok(Some(format!("{prefix}{name}")));
    }
    let key = format!("{prefix}epoch");
    let epoch: Option<Vec<u8>> = redis::cmd("GET").arg(&key).query(connection)?;
    Ok(epoch.filter(|epoch| !epoch.starts_with(MARK.as_bytes())).map(|_| key))
}

/// `7.0.15` in numbers.
fn number(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}
